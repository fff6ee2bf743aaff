"""The playbook on this machine: a whole study, and studies that must not begin."""

import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from support import ROOT, hidden, judge, problems_by_schema, weir

from weir.plan import read_plan


@pytest.fixture(scope="module")
def study(shared_bench):
    """A tiny study, carried out once."""
    code, log = shared_bench.play(shared_bench.study(), "--skip-tags", "report")
    assert code == 0, log
    return shared_bench, log


def test_a_study_leaves_whole_folders(study):
    """This test will look into the folders of two runs on a modelled disk."""
    bench, _ = study
    plan = read_plan(bench.results / "tiny/plan.json")
    folders = bench.run_folders()
    assert sorted(folders) == sorted(run["id"] for run in plan["runs"])
    for run_id, folder in folders.items():
        assert json.loads((folder / "run.json").read_text())["id"] == run_id
        assert json.loads((folder / "verdict.json").read_text())["status"] in ("valid", "invalid")
        for kind in ("run", "host", "verdict", "manifest"):
            assert problems_by_schema(kind, json.loads((folder / f"{kind}.json").read_text())) == []
        observed = json.loads((folder / "observed.json").read_text())
        assert observed["media"] == {"text": "2 striped modelled disks hdd-7200"}
        assert observed["devices"]["shared"]["kind"] == "modelled"
        # 40 clients that ask once a second, for 1.2 s: 48 requests, and nearly never under 20.
        requests = pl.read_parquet(folder / "requests.parquet")
        assert requests.height > 20
        assert requests["completed_ns"].null_count() == 0
        assert (requests["completed_ns"] > requests["intended_ns"]).all()


def test_a_line_for_each_run_and_where_the_time_went(study):
    """This test will read what the playbook printed where there is no terminal."""
    bench, log = study
    for run_id in bench.run_folders():
        assert f"{run_id} repetition 1 scheduler=" in log
    assert "tiny: class text: 2 striped modelled disks hdd-7200" in log
    assert log.count("(2 striped modelled disks hdd-7200)") == 2
    assert "[1/2] " in log and "[2/2] " in log and " left" in log
    assert "2 runs in " in log and "% measuring" in log and "% orchestrating" in log
    assert "TASK [" not in log and "PLAY RECAP" not in log


def test_the_devices_are_gone_and_the_claim_is_given_up(study):
    """This test will look for processes, mounts and loop devices of the study."""
    bench, _ = study
    assert bench.leftovers() == []
    assert not (bench.state / "owner.json").exists()


def test_the_same_study_again_runs_nothing(study):
    """This test will carry out the finished study again and compare every file of its runs."""
    bench, _ = study

    def files():
        return {
            file: file.stat().st_mtime_ns
            for file in sorted(bench.results.rglob("*"))
            if file.is_file() and ".weir" not in file.parts
        }

    before = files()
    code, log = bench.play(bench.folder / "tiny.yml", "--skip-tags", "report")
    assert code == 0, log
    assert files() == before
    assert "2 runs, 0 of them to do" in log
    assert "[1/" not in log
    assert not (bench.state / "owner.json").exists()


def test_a_run_that_was_judged_invalid_is_repeated_on_request(study):
    """This test will mark one run invalid, and carry out the study again with and without the request."""
    bench, _ = study
    verdicts = [(run, folder / "verdict.json") for run, folder in bench.run_folders().items()]
    (doubted, file), (_, kept) = verdicts
    # On a busy machine the harness may have judged either way.
    for verdict, status in ((file, "invalid"), (kept, "valid")):
        judge(verdict.parent, status)
    before = file.read_text(), kept.stat().st_mtime_ns
    code, log = bench.play(bench.folder / "tiny.yml", "--skip-tags", "report")
    assert code == 0 and "2 runs, 0 of them to do" in log, log
    assert file.read_text() == before[0]
    retry = ("-e", '{"weir_retry_invalid": true}')
    code, log = bench.play(bench.folder / "tiny.yml", "--skip-tags", "report", *retry)
    assert code == 0 and "2 runs, 1 of them to do" in log and f"[1/1] {doubted}" in log, log
    assert file.read_text() != before[0]
    assert kept.stat().st_mtime_ns == before[1]
    assert hidden(bench.results / "tiny") == []


def test_a_host_claimed_by_a_living_study_is_left_alone(study):
    """This test will claim the host for its own process, and try to begin another study."""
    bench, _ = study
    stat = Path("/proc/self/stat").read_text()
    owner = {
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "pid": os.getpid(),
        "started_ticks": int(stat.rpartition(")")[2].split()[19]),
        "study": "another",
    }
    claim = bench.state / "owner.json"
    claim.write_text(json.dumps(owner))
    code, log = bench.play(bench.study("rival"))
    assert code != 0
    assert f"study another (process {os.getpid()})" in " ".join(log.split())
    assert json.loads(claim.read_text()) == owner
    assert not (bench.results / "rival").exists()
    claim.unlink()


def test_check_mode_shows_the_plan_and_touches_nothing(dry_bench):
    """This test will carry out a study with --check."""
    if os.geteuid() != 0:
        pytest.skip("needs root: that is asserted before anything else of the host is looked at")
    code, log = dry_bench.play(dry_bench.study(), "--check")
    assert code == 0, log
    assert "repetition 1 scheduler=mq-deadline" in log
    assert not dry_bench.state.exists() and not dry_bench.results.exists()
    assert dry_bench.leftovers() == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("poisson-text", "poison-text"), "did you mean `poisson-text`?"),
        (("size_mib: 128", "size_mib: 8000000"), "MiB of memory"),
    ],
)
def test_a_study_that_cannot_be_is_refused_in_plain_words(dry_bench, change, says):
    """This test will begin a study with an unknown workload, and one that needs more memory than there is."""
    file = dry_bench.study()
    file.write_text(file.read_text().replace(*change))
    code, log = dry_bench.play(file)
    assert code != 0
    assert says in log
    assert "Traceback" not in log and '{"' not in log
    assert not dry_bench.state.exists() and not dry_bench.results.exists()


def test_a_scheduler_that_the_kernel_has_not_is_refused(dry_bench):
    """This test will ask for each of the schedulers; it needs a kernel that has not all of them."""
    listed = json.loads(weir("list", "schedulers", "--json").stdout)
    absent = [entry["name"] for entry in listed if not entry["available"]]
    if not absent or os.geteuid() != 0:
        pytest.skip("needs root, and a kernel without one of " + ", ".join(entry["name"] for entry in listed))
    code, log = dry_bench.play(dry_bench.study(schedulers=f"[{absent[0]}]"))
    # Where it is a module that can be loaded there is nothing to refuse.
    if f"scheduler {absent[0]}" not in log:
        pytest.skip(f"{absent[0]} is a module that can be loaded")
    assert code != 0 and not dry_bench.state.exists()


def test_no_study_named(dry_bench):
    """This test will begin without saying which study."""
    code, log = dry_bench.play("")
    assert code != 0
    assert "no study is named: give -e study=NAME" in log


def test_a_cluster_shares_the_blocks_and_gives_back_the_results(bench):
    """This test will carry out two blocks on two hosts, which are this one under two names, as if remote."""
    hosts = {
        name: {
            "weir_remote": True,
            "weir_host_folder": str(bench.folder / name),
            "weir_state": str(bench.folder / name / "state"),
        }
        for name in ("one", "two")
    }
    common = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    inventory = bench.folder / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))
    study = bench.study(schedulers="[mq-deadline]", repetitions=2)
    variables = json.dumps({"study": str(study), "weir_results": str(bench.results)})
    # Extra variables beat the inventory's: here the state folders must be the hosts' own.
    playbook = [ROOT / ".venv/bin/ansible-playbook", ROOT / "ansible/playbooks/study.yml"]
    bench.command = lambda _, *arguments: [*playbook, "-i", inventory, "-e", variables, *arguments]
    code, log = bench.play(study, "--skip-tags", "report")
    assert code == 0, log
    plan = read_plan(bench.results / "tiny/plan.json")
    assert sorted(bench.run_folders()) == sorted(run["id"] for run in plan["runs"])
    for name, run in zip(("one", "two"), plan["runs"], strict=True):
        assert (bench.folder / name / "results/tiny" / run["id"]).is_dir()
        assert f"{run['id']} repetition {run['repetition'] + 1} scheduler=mq-deadline on {name}" in log
    assert hidden(bench.results / "tiny") == []


def test_the_playbook_is_found_with_its_settings_or_says_where_they_are(tmp_path):
    """This test will start the playbook as a person does, where its settings are and where they are not."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    clean["HOME"] = str(tmp_path)
    command = ROOT / ".venv/bin/ansible-playbook"
    study, alias = ROOT / "ansible/playbooks/study.yml", ROOT / "ansible/study.yml"
    inventory = ["-i", ROOT / "ansible/inventories/localhost.yml"]
    for name, arguments, folder, wanted in (
        ("quikc", [study], ROOT, "did you mean `quick`?"),
        ("quikc", [alias], ROOT, "did you mean `quick`?"),
        ("quick", [study], ROOT / "ansible", f"start ansible-playbook in {ROOT}"),
        ("quick", [study, *inventory], tmp_path, f"start ansible-playbook in {ROOT}"),
    ):
        done = subprocess.run(
            [command, "-e", f"study={name}", *arguments],
            cwd=folder,
            env=clean,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 2 and wanted in done.stdout + done.stderr, done
