"""Services of a study: they run with each run, within its memory, and end with it, also when it is killed."""

import json
import os
import re
import shutil
import signal
import socket
import urllib.request
from pathlib import Path

import polars as pl
import pytest
from support import wait_for, weir

STUDY = """\
name: served
question: Does a web server run meanwhile?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: {duration_s}
capture: optional
storage: {{profile: hdd-7200, heads: 1, size_mib: 192}}
classes:
  documents:
    workload: zipf-web
    with: {{files.count: 60}}
    clients: 10
    through: web
services:
  web: {{service: nginx, port: {port}, settings: {{workers: "1"}}}}
factors:
  warm_start: {starts}
hold:
  filesystem: ext4
  buffered: true
  memory_mib: 64
"""

TIERS = """\
name: tiers
question: What do a proxy, hot files and limits do?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 1
capture: optional
storage: {{profile: hdd-7200, heads: 1, size_mib: 192}}
classes:
  documents:
    workload: zipf-class0
    with: {{files.count: 300}}
    clients: 4
    through: proxy
    think_ms: 0
services:
  web: {{service: nginx, port: {port}, settings: {{workers: "1"}}}}
  proxy: {{service: nginx-proxy, port: {proxy}, before: web, settings: {{workers: "1"}}}}
factors:
  variant:
    hot: {{services.web.hot_mib: 4}}
    limited: {{services.web.read_mb_s: 1.0, services.web.memory_mib: 32}}
hold: {{filesystem: ext4, buffered: true, memory_mib: 64}}
"""
ACCESS = """\
name: access
question: What does opening and reading a file cost?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0
duration_s: 1
capture: optional
storage: {profile: hdd-7200, heads: 1, size_mib: 128}
access: {sizes: [4KiB, 256KiB], repeat: 2, files: 4}
hold: {filesystem: ext4}
factors:
  read_ahead_kib: [128]
"""


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def served(bench):
    """A bench with a study that has a web server; its port."""
    if not shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        pytest.skip("needs nginx (package nginx-light)")
    # Its own user reads the files.
    bench.folder.chmod(0o755)
    return bench, _free_port()


def _study(bench, **fields):
    file = bench.folder / "served.yml"
    file.write_text(STUDY.format(**fields))
    return file


def test_a_web_server_runs_within_the_memory_of_the_run(served):
    """This test will ask nginx, cold and warm, for a class's files: 64 MiB for it and their pages."""
    bench, port = served
    code, log = bench.play(
        _study(bench, port=port, duration_s=1, starts="[false, true]"), "--skip-tags", "report"
    )
    assert code == 0, log
    read_bytes, cached_bytes = {}, {}
    for folder in bench.run_folders("served").values():
        warm = json.loads((folder / "run.json").read_text())["levels"]["warm_start"]
        observed = json.loads((folder / "observed.json").read_text())
        assert [service["service"] for service in observed["services"]] == ["nginx"]
        assert "nginx" in observed["services"][0]["version"]
        (asked,) = observed["web"]["classes"]
        assert asked["requests"] == asked["answered"] > 0 and asked["failed"] == 0
        rows = pl.read_parquet(folder / "requests.parquet")
        measured = rows.filter(~pl.col("warmup"))
        assert len(measured) == asked["requests"] and set(rows["device"]) == {"shared"}
        assert set(rows["status"]) == {0} and (rows["completed_ns"] > rows["intended_ns"]).all()
        assert observed["memory"]["limit_bytes"] == 64 << 20
        assert 0 < observed["memory"]["used_bytes"] <= 64 << 20
        residency = observed["residency"]["documents"]
        assert 0 < residency["cached_bytes"] <= residency["total_bytes"]
        assert {"driver", "run.web"} <= set(observed["cpu"])
        rules = {rule["rule"]: rule for rule in json.loads((folder / "verdict.json").read_text())["rules"]}
        assert rules["R-STATE"]["status"] == "valid", rules["R-STATE"]
        assert rules["R-CACHED"]["status"] == "skipped"
        assert (folder / "logs/web.log").exists()
        read_bytes[warm], cached_bytes[warm] = observed["device_read_bytes"], residency["cached_bytes"]
    # What was read before the run began is not read again. Few of the 60 files are asked for in a second.
    assert 4 * read_bytes[True] < read_bytes[False], read_bytes
    assert cached_bytes[True] > cached_bytes[False]
    assert bench.leftovers() == []
    assert _groups(bench) == []


def test_a_run_that_is_killed_leaves_no_server(served):
    """This test will kill a run while its web server answers, and have `weir clean` end that server."""
    bench, port = served
    playbook = bench.start(_study(bench, port=port, duration_s=60, starts="[false]"), "--skip-tags", "report")
    wait_for(lambda: _answers(port), "the web server")
    server = int((bench.state / "processes/run.web.stat").read_text().split()[0])
    run = bench.living_run()
    os.kill(run, signal.SIGKILL)
    playbook.kill()
    playbook.wait()
    wait_for(lambda: not Path(f"/proc/{run}").exists(), "the run to be gone")
    assert Path(f"/proc/{server}").exists(), "nobody has ended it yet"
    done = weir("clean", "--state", bench.state)
    assert done.returncode == 0, done.stderr
    assert not Path(f"/proc/{server}/exe").exists() and not _answers(port)
    assert _groups(bench) == []
    # The playbook's worker outlives it for a moment.
    wait_for(lambda: bench.leftovers() == [], "the last of the playbook to end")


def test_tiers_hot_documents_and_limits(served):
    """This test will put a proxy before nginx, whose hot files lie in memory, or whose reads are limited."""
    bench, port = served
    file = bench.folder / "tiers.yml"
    file.write_text(TIERS.format(port=port, proxy=_free_port()))
    code, log = bench.play(file, "--skip-tags", "report")
    assert code == 0, log
    seen = {}
    for folder in bench.run_folders("tiers").values():
        rules = {r["rule"]: r for r in json.loads((folder / "verdict.json").read_text())["rules"]}
        for rule in ("R-PLANNED", "R-ERRORS", "R-STATE"):
            assert rules[rule]["status"] == "valid", rules[rule]
        variant = json.loads((folder / "run.json").read_text())["levels"]["variant"]
        observed = json.loads((folder / "observed.json").read_text())
        seen[variant] = (observed, pl.read_parquet(folder / "requests.parquet"))
    # Each tier has a group of its own. Of a variant with few requests the kernel may have counted no tick.
    for name in ("web", "proxy"):
        assert sum(sum(observed["cpu"][f"run.{name}"].values()) for observed, _ in seen.values()) > 0
    observed, rows = seen["hot"]
    hot = observed["hot"]["web"]["documents"]
    assert 0 < hot["files"] < 300 and 3 << 20 < hot["size_bytes"] <= 4 << 20
    assert 0.3 < hot["expected_share"] < 1
    assert hot["measured_share"] == pytest.approx(hot["expected_share"], abs=0.15)
    # The most popular files are those that were asked for most: none of them was read from the disk.
    assert observed["residency"]["documents"]["cached_bytes"] < rows.unique("file")["size_bytes"].sum()
    # Memory of the run holds the hot files as well.
    assert observed["memory"]["cache_bytes"] >= hot["size_bytes"]
    observed, rows = seen["limited"]
    (limit,) = observed["reads"].values()
    assert limit["limit_mb_s"] == 1.0 and 0 < limit["read_bytes"] < 1e6 * (limit["seconds"] + 1) + (1 << 20)
    # The device counts the same, and what others read: inodes, the start of the server.
    assert 0.5 < limit["read_bytes"] / observed["device_read_bytes"] < 2
    assert observed["memory"]["services"]["web"]["limit_bytes"] == 32 << 20
    assert len(seen["hot"][1]) > len(rows)
    assert bench.leftovers() == []
    assert _groups(bench) == []


def test_what_opening_and_reading_a_file_costs(bench):
    """This test will measure a file system in a study, and find each sample as a request."""
    file = bench.folder / "access.yml"
    file.write_text(ACCESS)
    code, log = bench.play(file, "--skip-tags", "report")
    assert code == 0, log
    (folder,) = bench.run_folders("access").values()
    rows = pl.read_parquet(folder / "requests.parquet")
    counts = dict(rows.group_by("class").len().iter_rows())
    # Two repetitions of four files: once each uncached, ten times otherwise.
    uncached = {"uncached-4KiB": 8, "uncached-256KiB": 8}
    assert counts == {"open-close": 160, "cached-4KiB": 80, "cached-256KiB": 80} | uncached
    assert (rows["intended_ns"] == rows["submitted_ns"]).all() and not rows["warmup"].any()
    took = rows.with_columns((pl.col("completed_ns") - pl.col("intended_ns")).alias("ns"))
    median = dict(took.group_by("class").agg(pl.col("ns").median()).iter_rows())
    assert median["cached-256KiB"] < median["uncached-256KiB"]
    observed = json.loads((folder / "observed.json").read_text())
    assert observed["device_read_bytes"] >= 8 * (4096 + (256 << 10))
    sizes = observed["access"]["report"]["sizes"]
    assert [size["read_uncached"]["verified"] for size in sizes] == ["yes", "yes"]
    rules = {r["rule"]: r["status"] for r in json.loads((folder / "verdict.json").read_text())["rules"]}
    assert rules["R-CACHED"] == rules["R-PLANNED"] == "valid" and rules["R-LATE"] == "skipped"


def _answers(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/0", timeout=1) as answer:
            return answer.status
    except urllib.error.HTTPError as answered:
        return answered.code
    except OSError:
        return None


def _groups(bench):
    # A name with other letters than these has a hash behind it.
    key = re.sub("[^A-Za-z0-9]", "-", str(bench.state).strip("/"))
    return [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/weir/{key}*")]
