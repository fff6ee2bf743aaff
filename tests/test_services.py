"""Services of a study: they run with each run, within its memory, and end with it, also when it is killed."""

import json
import os
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
  memory_mib: [64]
hold:
  filesystem: ext4
  buffered: true
"""


@pytest.fixture
def served(bench):
    """A bench with a study that has a web server; its port."""
    if not shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        pytest.skip("needs nginx (package nginx-light)")
    # Its own user reads the files.
    bench.folder.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return bench, port


def _study(bench, **fields):
    file = bench.folder / "served.yml"
    file.write_text(STUDY.format(**fields))
    return file


def test_a_web_server_runs_within_the_memory_of_the_run(served):
    """This test will ask nginx for the files of a class, which has 64 MiB for itself and their pages."""
    bench, port = served
    code, log = bench.play(_study(bench, port=port, duration_s=1), "--skip-tags", "report")
    assert code == 0, log
    (folder,) = bench.run_folders("served").values()
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
    assert bench.leftovers() == []
    assert _groups(bench) == []


def test_a_run_that_is_killed_leaves_no_server(served):
    """This test will kill a run while its web server answers, and have `weir clean` end that server."""
    bench, port = served
    playbook = bench.start(_study(bench, port=port, duration_s=60), "--skip-tags", "report")
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


def _answers(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/0", timeout=1) as answer:
            return answer.status
    except urllib.error.HTTPError as answered:
        return answered.code
    except OSError:
        return None


def _groups(bench):
    key = str(bench.state).strip("/").replace("/", "-")
    return [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/weir/{key}")]
