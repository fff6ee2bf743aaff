"""Studies with `precision`: repetitions are added until it is reached, in virtual time and on devices."""

import json
import re
import shutil
import subprocess
import sys

from support import PATIENCE_S, ROOT, weir
from test_virtual import files_of

from weir.plan import read_plan

STUDY = """\
name: tiny
question: Is shortest seek time first faster than the order of arrival?
testbed: {testbed}
seed: 3
repetitions: 3
precision: {{class: text, effect: {effect}, at_most: {at_most}}}
warmup_s: 0.5
duration_s: {duration_s}
capture: optional
storage: {{profile: hdd-7200, heads: 1, size_mib: 256}}
classes:
  text: {{workload: poisson-text, clients: 60}}
factors:
  scheduler: {schedulers}
"""


def study_of(bench, **fields):
    usual = {"testbed": "simulator", "effect": 0.2, "at_most": 12, "duration_s": 5}
    file = bench.folder / "tiny.yml"
    file.write_text(STUDY.format(**{"schedulers": "[fcfs, sstf]"} | usual | fields))
    return file


def decision(bench):
    return json.loads((bench.results / "tiny/precision.json").read_text())


def blocks(bench):
    runs = read_plan(bench.results / "tiny/plan.json")["runs"]
    return sorted({run["block"] for run in runs if (bench.results / "tiny" / run["id"]).is_dir()})


def test_the_playbook_adds_repetitions_until_the_precision_is_reached(dry_bench):
    """This test will simulate a study, lose a decision and its last block, and continue."""
    study = study_of(dry_bench)
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0, log
    found = decision(dry_bench)
    assert found["status"] == "reached"
    assert 3 < found["after"] < 12
    assert blocks(dry_bench) == list(range(found["after"]))
    assert "tiny: 24 runs, 6 of them to do" in log
    assert log.count("tiny: more repetitions are needed") == found["after"] - 3
    assert f"precision reached after {found['after']} of at most 12 repetitions" in log
    before = files_of(dry_bench)
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0 and "tiny: 24 runs, 0 of them to do" in log, log
    assert files_of(dry_bench) == before
    # As after an interruption: in the middle of the last block, and before any decision.
    plan = read_plan(dry_bench.results / "tiny/plan.json")
    last = [run["id"] for run in plan["runs"] if run["block"] == found["after"] - 1]
    shutil.rmtree(dry_bench.results / "tiny" / last[0])
    (dry_bench.results / "tiny/precision.json").unlink()
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0, log
    assert decision(dry_bench) == found
    assert blocks(dry_bench) == list(range(found["after"]))


def test_repetitions_on_devices_are_added_one_after_the_other(bench):
    """This test will measure on a modelled disk, up to the most repetitions that the study allows."""
    study = study_of(
        bench, testbed="device", schedulers="[none, mq-deadline]", effect=0.001, at_most=4, duration_s=1
    )
    code, log = bench.play(study, "--skip-tags", "report")
    assert code == 0, log
    found = decision(bench)
    # On a busy machine too few runs may be valid to judge.
    assert found["status"] in ("at most", "reached", "cannot be judged"), log
    assert blocks(bench) == list(range(found["after"]))
    runs = len(bench.run_folders())
    assert f"[{runs}/{runs}]" in log
    assert bench.leftovers() == []


def test_simulate_and_plan_make_the_repetitions_of_the_decision(tmp_path):
    """This test will simulate a study by `weir simulate`, with decisions and a decision that is damaged."""
    study = tmp_path / "tiny.yml"
    numbers = {"testbed": "simulator", "effect": 0.2, "at_most": 12, "duration_s": 5}
    study.write_text(STUDY.format(schedulers="[fcfs, sstf]", **numbers))
    results, folder = tmp_path / "results", tmp_path / "results/tiny"
    assert weir("simulate", study, "--out", results).returncode == 0
    plan = read_plan(folder / "plan.json")
    assert (plan["repetitions"], plan["first_repetitions"]) == (12, 3)

    def made():
        return {run["block"] for run in plan["runs"] if (folder / run["id"]).is_dir()}

    def missing():
        done = weir("plan", study, "--json", "--missing", results)
        assert done.returncode == 0, done.stderr
        return {run["block"] for run in json.loads(done.stdout)["runs"]}

    assert made() == {0, 1, 2}
    assert missing() == set()
    decided = {"status": "go on", "repetitions": 5, "precision": plan["precision"]}
    (folder / "precision.json").write_text(json.dumps(decided))
    assert missing() == {3, 4}
    assert weir("simulate", study, "--out", results).returncode == 0
    assert made() == set(range(5))
    # About another precision: it is decided anew.
    other = decided | {"repetitions": 9, "precision": plan["precision"] | {"at_most": 20}}
    (folder / "precision.json").write_text(json.dumps(other))
    assert missing() == set()
    assert weir("simulate", study, "--out", results, "--repetitions", 6).returncode == 0
    assert made() == set(range(6))
    (folder / "precision.json").write_text("{")
    for command in (["plan", study, "--missing", results], ["simulate", study, "--out", results]):
        done = weir(*command)
        assert done.returncode == 2
        assert "precision.json" in done.stderr and "decide again: python -m weir precision" in done.stderr
    (folder / "precision.json").unlink()
    module = [sys.executable, "-m", "weir", "precision", folder, "--simulate", "--json"]
    done = subprocess.run(module, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == json.loads((folder / "precision.json").read_text())
    assert (found["status"], made()) == ("reached", set(range(max(found["after"], 6))))


def test_cells_that_are_precise_enough_are_repeated_no_more(dry_bench):
    """This test will simulate a study whose cells differ in how much their repetitions vary."""
    study = study_of(dry_bench, schedulers="[fcfs, sstf, scan, look]", duration_s=3, at_most=9)
    text = study.read_text()
    each = "precision: {class: text, width: 0.12, cell: {}, stop: each, at_most: 9}"
    study.write_text(re.sub("precision: .*", each, text))
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0, log
    found = decision(dry_bench)
    runs = read_plan(dry_bench.results / "tiny/plan.json")["runs"]
    made = [run for run in runs if (dry_bench.results / "tiny" / run["id"]).is_dir()]
    # Some cell stopped before the last one.
    assert min(found["stopped"].values()) < found["after"]
    for run in runs:
        assert (run in made) == (run["block"] < found["stopped"].get(run["cell"], found["after"]))
    before = files_of(dry_bench)
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0 and ", 0 of them to do" in log, log
    assert files_of(dry_bench) == before
    # Another precision is decided about, though no run is missing.
    study.write_text(study.read_text().replace("width: 0.12", "width: 9"))
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0 and ", 0 of them to do" in log, log
    assert (decision(dry_bench)["status"], decision(dry_bench)["after"]) == ("reached", 3)
    study.write_text(study.read_text().replace("width: 9", "width: 0.12"))
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0 and decision(dry_bench) == found, log
    # `weir simulate` by itself makes the same runs, also where it is told how many repetitions.
    shutil.copytree(dry_bench.results / "tiny", dry_bench.folder / "again/tiny", dirs_exist_ok=True)
    for run in made[-3:]:
        shutil.rmtree(dry_bench.folder / "again/tiny" / run["id"])
    done = weir("simulate", study, "--out", dry_bench.folder / "again", "--repetitions", found["after"])
    assert done.returncode == 0, done.stderr
    again = {run["id"] for run in runs if (dry_bench.folder / "again/tiny" / run["id"]).is_dir()}
    assert again == {run["id"] for run in made}


def test_a_plan_says_how_many_repetitions_a_change_needs(tmp_path):
    """This test will plan a simulated study with --power, also where there is no Python environment."""
    study = tmp_path / "tiny.yml"
    study.write_text(
        STUDY.format(testbed="simulator", effect=0.2, at_most=12, duration_s=5, schedulers="[fcfs, sstf]")
    )
    results = tmp_path / "results"
    assert weir("simulate", study, "--out", results).returncode == 0
    done = weir("plan", study, "--power", "--results", results)
    assert done.returncode == 0, done.stderr
    assert "repetitions for a change, with power 0.8" in done.stdout
    assert "sstf / fcfs" in done.stdout
    done = weir("plan", study, "--power", "--results", tmp_path / "none")
    assert done.returncode == 2
    assert "tiny" in done.stderr
    (tmp_path / "workloads").symlink_to(ROOT / "workloads")
    (tmp_path / "studies").mkdir()
    for name in ("testbeds", "traces"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = weir("plan", study, "--power", WEIR_ROOT=str(tmp_path), PATH="/nonexistent")
    assert done.returncode == 2
    assert ".venv/bin/python is absent, and python3 has none" in done.stderr and "make setup" in done.stderr
