"""Studies of several hosts, which are network namespaces of this machine; some minutes: make test-roles."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import polars as pl
import pytest
from joint import Lab, begun_run, missing, mount_tmpfs, rules, study, unmount
from support import wait_for

pytestmark = pytest.mark.roles
SKIP = ("--skip-tags", "report")
#: Each host is given the binary, by a machine that may have other work, in seconds.
PATIENCE_S = 600


@pytest.fixture
def point(bench):
    """A file system that all hosts of a test see."""
    if lacking := missing("fio", "ip"):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    bench.folder.chmod(0o755)
    point = bench.folder / "shared"
    mount_tmpfs(point)
    yield point
    left = list(point.iterdir())
    unmount(point)
    assert left == []


@pytest.fixture
def lab(bench, point, request):
    """Namespaces: what the test's parameter says."""
    clients, servers = request.param
    lab = Lab(bench, clients, servers)
    lab.variables = {"weir_mounts": {"mounted": str(point)}}
    yield lab
    lab.close()


def _play(bench, *arguments):
    code = bench.start(*arguments).wait(PATIENCE_S)
    return code, bench.log.read_text()


def _disk(bench, point):
    """A disk that holds what is mounted at the point in place of what was: its name."""
    image = bench.folder / "disk"
    with image.open("wb") as file:
        file.truncate(256 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    attach = ["losetup", "--find", "--show", "--direct-io=on", image]
    loop = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(["mount", loop, point], check=True)
    return loop


@pytest.mark.parametrize("lab", [(("one", "two"), ("store",))], indirect=True)
def test_two_clients_ask_one_server_at_once(bench, point, lab):
    """This test will have two hosts ask a disk of a third, which records its requests."""
    loop = _disk(bench, point)
    try:
        lab.use(lab.write(**{lab.full("store"): {"weir_observed": [loop]}}))
        code, log = _play(bench, study(bench.folder, loads="[0.5, 1]", buffered="false"), *SKIP)
        assert [path.name for path in point.iterdir()] == ["lost+found"]
    finally:
        unmount(point)
        subprocess.run(["losetup", "--detach", loop], check=True)
    assert code == 0, log
    assert len(re.findall(r"^\[[12]/2\] ", log, re.MULTILINE)) == 2, log
    runs = bench.run_folders("together")
    assert len(runs) == 2
    for name, folder in runs.items():
        found = rules(folder)
        for rule in ("R-HOSTS", "R-PLANNED", "R-ERRORS", "R-STATE"):
            assert found[rule]["status"] == "valid", found[rule]
        table = pl.read_parquet(folder / "requests.parquet")
        assert set(table["host"]) == set(lab.clients)
        by_class = table.group_by("host", "class").len()
        assert len(by_class) == 4 and by_class["len"].min() > 5
        assert sorted(path.name for path in (folder / "hosts").iterdir()) == sorted(lab.clients + lab.servers)
        if found["R-LOSS"]["status"] != "skipped":
            _is_of_this_run(table, pl.read_parquet(folder / "block.parquet"), lab, Path(loop).name)
            metrics = json.loads((folder / "metrics.json").read_text())
            assert list(metrics["devices"]) == [f"{lab.servers[0]}:{Path(loop).name}"], name
    _leaves_no_token(bench, lab, log)
    # All is there: nothing is carried out.
    mtimes = {folder: folder.stat().st_mtime_ns for folder in runs.values()}
    again, log = _play(bench, bench.folder / "together.yml", *SKIP)
    assert again == 0 and "0 of them to do" in log, log
    assert mtimes == {folder: folder.stat().st_mtime_ns for folder in runs.values()}


def _is_of_this_run(requests, blocks, lab, disk):
    """What the disk did lies within what was asked of it, in time."""
    assert set(blocks["host"]) == set(lab.servers) and set(blocks["device"]) == {disk}
    reads = blocks.filter(pl.col("op") == "read")
    # Direct reads: each was one request of the disk at least.
    assert len(reads) >= len(requests) * 0.9
    slack_ns = 1_000_000
    assert reads["queued_ns"].min() >= requests["submitted_ns"].min() - slack_ns
    assert reads["completed_ns"].max() <= requests["completed_ns"].max() + slack_ns


def _leaves_no_token(bench, lab, log):
    tokens = [lab.state(name) / "coordination.token" for name in lab.addresses]
    assert not any(token.exists() for token in tokens)
    words = [log] + [file.read_text(errors="replace") for file in bench.results.rglob("*.json")]
    assert not any("joint_runs_token" in text for text in words)


def _kill_part(bench, lab, name):
    """Kills a client's part once the requests of its first run are on their way; returns the run's id."""
    results = bench.folder / f"host-{name}/results/together"
    process = bench.processes[-1]
    wait_for(lambda: begun_run(results, name) or process.poll() is not None, "a run to begin", PATIENCE_S)
    pid = json.loads((lab.state(name) / "journal/run.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    return begun_run(results, name)


@pytest.mark.parametrize("lab", [(("one", "two", "three"), ())], indirect=True)
def test_a_study_goes_on_without_a_client_that_was_lost(bench, point, lab):
    """This test will kill the second client in the first run: the third steps in."""
    lab.use(lab.write())
    process = bench.start(study(bench.folder, 3, "continue", "[0.5, 1]"), *SKIP)
    lost = lab.clients[1]
    broken = _kill_part(bench, lab, lost)
    assert process.wait(PATIENCE_S) == 0, bench.log.read_text()
    log = bench.log.read_text()
    runs = bench.run_folders("together")
    assert len(runs) == 2 and f"INVALID (R-HOSTS: host {lost} was lost after" in log, log
    assert rules(runs.pop(broken))["R-HOSTS"]["status"] == "invalid"
    (whole,) = runs.values()
    assert rules(whole)["R-HOSTS"]["status"] == "valid"
    table = pl.read_parquet(whole / "requests.parquet")
    assert set(table["host"]) == {lab.clients[0], lab.clients[2]}


@pytest.mark.parametrize("lab", [(("one", "two"), ())], indirect=True)
def test_a_study_ends_with_a_client_that_was_lost_and_goes_on_when_asked(bench, point, lab):
    """This test will kill the client that conducts, in a study that says `lost: stop`."""
    lab.use(lab.write())
    file = study(bench.folder, 3, "stop", "[0.5, 1]")
    process = bench.start(file, *SKIP)
    broken = _kill_part(bench, lab, lab.clients[0])
    assert process.wait(PATIENCE_S) != 0
    log = bench.log.read_text()
    assert f"{lab.clients[0]} was lost in run {broken}, and the study has `lost: stop`" in log, log
    assert list(bench.run_folders("together")) == [broken]
    assert list(point.iterdir()) == []
    code, log = _play(bench, file, *SKIP)
    assert code == 0 and "2 runs, 1 of them to do" in log, log
    runs = bench.run_folders("together")
    assert rules(runs.pop(broken))["R-HOSTS"]["status"] == "invalid"
    (whole,) = runs.values()
    assert rules(whole)["R-HOSTS"]["status"] == "valid"


@pytest.mark.parametrize("lab", [(("one",), ())], indirect=True)
def test_too_few_clients_are_refused(bench, point, lab):
    """This test will ask two hosts of an inventory that has one."""
    lab.use(lab.write())
    code, log = _play(bench, study(bench.folder), *SKIP)
    assert code != 0 and "the inventory group weir_clients has 1: list more" in " ".join(log.split()), log
    assert list(point.iterdir()) == [] and not bench.run_folders("together")
