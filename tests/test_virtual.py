"""The playbook in virtual time: without root or devices, over several hosts, beside devices."""

import json
import os
import shutil
import subprocess

import pytest
from support import hidden, judge

from weir.plan import read_plan

NOBODY = 65534
STUDY = """\
name: tiny
question: Does the machinery work?
testbed: {testbed}
seed: 7
repetitions: {repetitions}
warmup_s: 0.2
duration_s: 2
storage: {{profile: hdd-7200, heads: 2, size_mib: 128}}
classes:
  text: {{workload: poisson-text, clients: 20}}
factors:
  scheduler: {schedulers}
  architecture: [partitioned, integrated]
"""


def study_of(bench, testbed, schedulers="[look, fcfs]", repetitions=2):
    file = bench.folder / "tiny.yml"
    file.write_text(STUDY.format(testbed=testbed, schedulers=schedulers, repetitions=repetitions))
    return file


def files_of(bench):
    return {
        file: file.stat().st_mtime_ns
        for file in bench.results.rglob("*")
        if file.is_file() and ".weir" not in file.parts
    }


def as_nobody(bench):
    """Lets the bench's playbooks run without root and its rights; skips where that cannot be."""
    if os.geteuid() != 0:
        return
    # A namespace, and not another user: that one may not read a Python below root's home.
    prefix = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
    try:
        tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"cannot become nobody: {error}")
    if tried.returncode != 0:
        pytest.skip(f"cannot become nobody: {tried.stderr.strip()}")
    command = bench.command
    bench.command = lambda *arguments: [*prefix, *command(*arguments)]


def test_a_simulated_study_needs_no_device_and_is_done_once(dry_bench):
    """This test will simulate a study afresh, again, and with a run invalid and one gone."""
    study = study_of(dry_bench, "simulator")
    code, log = dry_bench.play(study)
    assert code == 0, log
    assert "tiny: 8 runs, 8 of them to do" in log and "tiny: 8 runs, all valid" in log
    assert not dry_bench.state.exists()
    plan = read_plan(dry_bench.results / "tiny/plan.json")
    runs = dry_bench.run_folders()
    assert sorted(runs) == sorted(run["id"] for run in plan["runs"])
    page = (dry_bench.results / "tiny/report.html").read_text()
    assert "All runs were carried out in virtual time" in page
    before = files_of(dry_bench)
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0 and "tiny: 8 runs, 0 of them to do" in log, log
    assert files_of(dry_bench) == before
    doubted, *_ = runs
    verdict = runs[doubted] / "verdict.json"
    judge(runs[doubted], "invalid")
    shutil.rmtree(runs[sorted(set(runs) - {doubted})[0]])
    code, log = dry_bench.play(study, "--skip-tags", "report", "-e", '{"weir_retry_invalid": true}')
    assert code == 0 and "tiny: 8 runs, 2 of them to do" in log, log
    assert json.loads(verdict.read_text())["status"] == "valid"
    assert sorted(dry_bench.run_folders()) == sorted(runs)


def test_without_root_a_study_of_both_testbeds_is_answered_in_virtual_time(dry_bench):
    """This test will carry out a study of both testbeds as a user who may not have devices."""
    study = study_of(dry_bench, "[device, simulator]", "[none, bfq]", 1)
    as_nobody(dry_bench)
    code, log = dry_bench.play(study)
    assert code == 0, log
    assert "tiny: in virtual time only, since devices cannot be had here: no root" in log
    assert "4 runs, 4 of them to do" in log and "4 valid, 0 invalid, 0 skipped, 0 missing" in log
    page = (dry_bench.results / "tiny/report.html").read_text()
    assert "in virtual time only, since devices cannot be had here: no root" in page
    before = files_of(dry_bench)
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0 and "4 runs, 0 of them to do" in log, log
    assert files_of(dry_bench) == before


def test_without_root_a_study_of_devices_is_refused_and_told_of_virtual_time(dry_bench):
    """This test will begin a study of devices as a user who may not have any."""
    study = study_of(dry_bench, "device", "[none]", 1)
    as_nobody(dry_bench)
    code, log = dry_bench.play(study)
    assert code != 0
    assert "run it as root" in log and "[device, simulator]" in log
    assert not dry_bench.results.exists()


def test_both_testbeds_stand_beside_each_other(bench):
    """This test will carry out a study on modelled disks and in virtual time."""
    study = study_of(bench, "[device, simulator]", "[mq-deadline]", 1)
    study.write_text(study.read_text() + "capture: optional\n")
    code, log = bench.play(study, "--skip-tags", "report")
    assert code == 0, log
    assert "tiny: 4 runs, 4 of them to do" in log and "2 runs, all valid" in log and "[2/2] " in log
    plan = read_plan(bench.results / "tiny/plan.json")
    assert [run["testbed"] for run in plan["runs"]] == ["device"] * 2 + ["simulator"] * 2
    assert sorted(bench.run_folders()) == sorted(run["id"] for run in plan["runs"])
    # A busy machine may have been late on its devices; what is invalid would not be compared.
    for folder in bench.run_folders().values():
        judge(folder, "valid")
    code, log = bench.play(study)
    assert code == 0 and "tiny: 4 runs, 0 of them to do" in log, log
    page = (bench.results / "tiny/report.html").read_text()
    assert "Both testbeds" in page and "2 runs (testbed simulator) were carried out in virtual time" in page


def test_several_hosts_share_what_is_simulated(dry_bench):
    """This test will simulate on two hosts, which are this one under two names, as if remote."""
    hosts = {
        name: {"weir_remote": True, "weir_host_folder": str(dry_bench.folder / name)}
        for name in ("one", "two")
    }
    common = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "weir_state": str(dry_bench.state),
    }
    inventory = dry_bench.folder / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))
    study = study_of(dry_bench, "simulator")
    code, log = dry_bench.play(study, "-i", inventory, "--skip-tags", "report")
    assert code == 0, log
    plan = read_plan(dry_bench.results / "tiny/plan.json")
    shares = [sorted(run["id"] for run in plan["runs"] if run["order"] % 2 == part) for part in (0, 1)]
    for name, share in zip(("one", "two"), shares, strict=True):
        there = (dry_bench.folder / name / "results/tiny").iterdir()
        assert sorted(entry.name for entry in there if entry.is_dir() and entry.name != ".weir") == share
    assert sorted(dry_bench.run_folders()) == sorted([*shares[0], *shares[1]])
    assert hidden(dry_bench.results / "tiny") == []
