"""Labels from the command to the results: runs of two kernels or commits beside each other in one folder."""

import importlib.util
import json
import shutil

import pytest
from support import ROOT, load_plugin, simulate, weir

from weir import plans
from weir.cli import main
from weir.load import load_study

STUDY = """\
name: trial
question: Does the label keep runs apart?
testbed: simulator
seed: 7
repetitions: 3
warmup_s: 0.2
duration_s: 2
storage: {profile: hdd-7200, heads: 1, size_mib: 512}
classes:
  text: {workload: poisson-text, clients: 20}
factors:
  scheduler: [look, fcfs]
"""
WRONG = "use 1 to 40 letters, digits, -, _, . and + only, no -, . or + at the beginning"


def runs_of(folder):
    return {path.parent.name for path in folder.glob("*/run.json")}


def test_runs_with_a_label_lie_beside_those_without_and_are_resumed_alone(tmp_path):
    folder = tmp_path / "results/trial"
    for place, label in enumerate([(), ("--label", "6.12"), ("--label", "6.18")]):
        done = simulate(tmp_path, STUDY, *label)
        assert done.returncode == 0 and "trial: 6 runs, all valid" in done.stdout, done.stderr
        assert len(runs_of(folder)) == 6 * (place + 1)
    assert list(plans.files(folder)) == [None, "6.12", "6.18"]
    study = load_study(folder)
    assert study.factors["label"] == ["unlabelled", "6.12", "6.18"] and not study.missing and not study.stray
    # A run of one label that is gone is missing, and made again, in that label only.
    gone = next(iter(load_study(folder.with_name("trial@6.12")).runs)).path
    requests = (gone / "requests.parquet").read_bytes()
    shutil.rmtree(gone)
    missing = weir("plan", tmp_path / "trial.yml", "--label", "6.12", "--missing", tmp_path / "results")
    assert "1 runs, 5 more are done" in missing.stdout and gone.name in missing.stdout
    others = weir("plan", tmp_path / "trial.yml", "--label", "6.18", "--missing", tmp_path / "results")
    assert "0 runs, 6 more are done" in others.stdout
    assert simulate(tmp_path, STUDY, "--label", "6.12").returncode == 0
    assert (gone / "requests.parquet").read_bytes() == requests
    assert main(["compare", str(folder) + "@6.12", str(folder) + "@6.18"]) == 0
    assert "18 runs: 18 as they were written" in weir("verify", folder).stdout
    (gone / "run.json").unlink()
    (gone / "manifest.json").unlink()
    assert weir("verify", folder).returncode == 1


def test_the_field_of_a_study_is_the_option_of_the_command(tmp_path):
    def ids(text, *label):
        (tmp_path / "trial.yml").write_text(text)
        return [run["id"] for run in json.loads(weir("plan", "trial.yml", "--json", *label, cwd=tmp_path,
                                                     WEIR_ROOT=str(ROOT)).stdout)["runs"]]  # fmt: skip

    labelled = STUDY.replace("seed: 7", 'seed: 7\nlabel: "6.12"')
    assert ids(labelled) == ids(STUDY, "--label", "6.12") != ids(STUDY)
    assert ids(labelled, "--label", "6.18") == ids(STUDY, "--label", "6.18")


@pytest.mark.parametrize("label", ["", "a b", "../x", "a@b", ".x", "-x", "+1", "l" * 41])
def test_a_wrong_label_is_refused_and_nothing_is_touched(tmp_path, label):
    for done in (
        simulate(tmp_path, STUDY, f"--label={label}"),
        weir("plan", tmp_path / "trial.yml", f"--label={label}"),
        simulate(tmp_path, STUDY.replace("seed: 7", f"seed: 7\nlabel: {json.dumps(label)}")),
        weir("check", tmp_path / "trial.yml"),
    ):
        assert done.returncode == 2 and WRONG in done.stderr and f"`{label}`" in done.stderr, done.stderr
    assert "trial.yml:5" in done.stderr and "label: is" in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_number_is_no_label(tmp_path):
    """6.10 would be read as 6.1."""
    done = simulate(tmp_path, STUDY.replace("seed: 7", "seed: 7\nlabel: 6.10"))
    assert done.returncode == 2 and "trial.yml:5" in done.stderr and "label" in done.stderr, done.stderr
    assert not (tmp_path / "results").exists()


def test_a_plan_has_its_label(tmp_path):
    assert simulate(tmp_path, STUDY, "--label", "a").returncode == 0
    plan = tmp_path / "results/trial/plan@a.json"
    again = weir("simulate", plan, "--out", tmp_path / "results")
    assert again.returncode == 0 and len(runs_of(plan.parent)) == 6
    other = weir("simulate", plan, "--out", tmp_path / "results", "--label", "b")
    assert other.returncode == 2 and "is a plan, which has its label: leave it out" in other.stderr


def test_the_playbook_keeps_labels_apart_and_resumes_each(dry_bench):
    file = dry_bench.folder / "trial.yml"
    file.write_text(STUDY)
    folder = dry_bench.results / "trial"
    for place, label in enumerate(("6.12", "6.18")):
        code, log = dry_bench.play(file, "-e", f"label={label}")
        assert code == 0 and "trial: 6 runs, 6 of them to do" in log, log
        assert len(runs_of(folder)) == 6 * (place + 1)
    assert not (folder / "plan.json").exists()
    assert "6.12" in (folder / "report.html").read_text()
    shutil.rmtree(load_study(folder.with_name("trial@6.18")).runs[0].path)
    code, log = dry_bench.play(file, "-e", "label=6.12", "--skip-tags", "report")
    assert code == 0 and "trial: 6 runs, 0 of them to do" in log, log
    code, log = dry_bench.play(file, "-e", "label=6.18", "--skip-tags", "report")
    assert code == 0 and "trial: 6 runs, 1 of them to do" in log, log
    before = sorted(folder.rglob("*"))
    for wrong in ("a/b", ""):
        code, log = dry_bench.play(file, "-e", f"label='{wrong}'")
        assert code != 0 and f"--label: is `{wrong}`; {WRONG}" in log, log
    assert sorted(folder.rglob("*")) == before


def test_make_passes_only_right_labels():
    spec = importlib.util.spec_from_file_location("arguments", ROOT / "setup/arguments.py")
    arguments = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(arguments)
    given = "LABEL STUDY HOSTS KIND N ROLE A B TO FORM RETRY ATTEMPTS CLASS CAPACITY_ARGS PAGE ROWS RUNS DIST"
    names = given.split()

    def problems(goal, **values):
        return list(arguments.problems([goal], list(values), dict.fromkeys(names, "") | values))

    assert problems("study", STUDY="quick", LABEL="v6.12-rc1+") == []
    assert problems("compare", A="quick@6.12", B="quick@6.18") == []
    assert problems("report", STUDY="quick@6.12") == []
    for label in ("", "a b", "a/b", "$(x)", "a,b"):
        (said,) = problems("study", STUDY="quick", LABEL=label)
        assert said == f"LABEL={label}: {WRONG}"
    assert any("STUDY=quick@a" in said for said in problems("study", STUDY="quick@a"))


def test_each_label_has_its_own_hosts_of_blocks(tmp_path):
    assignment = load_plugin("filter/assignment")
    runs = [
        {"id": f"{block}-{n}", "block": block, "testbed": "device"} for block in range(2) for n in range(2)
    ]
    (tmp_path / "blocks@a.json").write_text(json.dumps({"0": "two", "1": "one"}))
    half = [run for run in runs if run["id"] == "0-1"]
    hosts = ["one", "two"]
    assert assignment.assign_blocks(half, runs, hosts, tmp_path, label="a")["hosts"] == {"0": "two"}
    assert assignment.assign_blocks(half, runs, hosts, tmp_path, label="b")["hosts"] == {"0": "one"}
    assert assignment.assign_blocks(half, runs, hosts, tmp_path)["hosts"] == {"0": "one"}
