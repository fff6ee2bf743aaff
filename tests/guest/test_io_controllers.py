"""Controllers of disks that no kernel of Debian has, `io.latency` and `io.prio.class`, in a guest.

    make test-guest

The kernel is built from the source that Debian has (build_kernel.sh). The disk is a model of 7200 rpm: slow
enough for an emulated machine.
"""

import json

import polars as pl
import pytest
from machine import run_study

pytestmark = pytest.mark.guest

STUDY = """\
name: controllers
question: Do io.latency and io.prio.class keep an urgent client apart?
testbed: device
seed: 7
repetitions: 2
warmup_s: 5
duration_s: 20
capture: none
storage: {profile: hdd-7200, heads: 1, size_mib: 256}
classes:
  batch:
    workload: random-4k
    with: {files.size: {fixed: {bytes: 67108864}}, arrivals.closed.depth: 32}
    clients: 1
  urgent:
    workload: random-4k
    with: {files.size: {fixed: {bytes: 67108864}}, arrivals.closed.depth: 1}
    clients: 1
factors:
  variant:
    none: {}
    mq-deadline: {hold.scheduler: mq-deadline}
    io.latency: {classes.urgent.cgroup: io.latency=30000}
    io.prio.class: {hold.scheduler: mq-deadline, classes.urgent.cgroup: io.prio.class=promote-to-rt,
                    classes.batch.cgroup: io.prio.class=idle}
hold: {filesystem: raw, scheduler: none, queue_depth: 8}
"""
SHARED = "name: shared\nprofile: hdd-7200\nheads: 1\nsize_mib: 256\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the guest left, and the runs of each level."""
    left, plan = run_study(tmp_path_factory.mktemp("guest"), STUDY, SHARED)
    by_level = {}
    for entry in plan:
        by_level.setdefault(entry["levels"]["variant"], []).append(left / entry["id"])
    return left, by_level


def median_ms(runs):
    """Median response time of the urgent class in each run."""
    is_counted = (pl.col("class") == "urgent") & ~pl.col("warmup")
    tables = [pl.read_parquet(folder / "requests.parquet").filter(is_counted) for folder in runs]
    return [(rows["completed_ns"] - rows["submitted_ns"]).drop_nulls().median() / 1e6 for rows in tables]


def test_what_was_asked_is_read_back(results):
    left, by_level = results
    assert len(by_level) == 4
    for level, runs in by_level.items():
        for folder in runs:
            log = (left / f"{folder.name}.log").read_text() + (left / f"{folder.name}.json").read_text()
            assert folder.exists(), log
            rules = {
                rule["rule"]: rule for rule in json.loads((folder / "verdict.json").read_text())["rules"]
            }
            if "io." not in level:
                continue
            assert rules["R-CONTROL"]["status"] == "valid", rules["R-CONTROL"]
            classes = json.loads((folder / "observed.json").read_text())["controllers"]["classes"]
            assert classes["urgent"]["set"] == classes["urgent"]["read_back"] != "", classes


@pytest.mark.parametrize(("level", "beside"), [("io.latency", "none"), ("io.prio.class", "mq-deadline")])
def test_the_urgent_client_waits_less(results, level, beside):
    _, by_level = results
    without, under = median_ms(by_level[beside]), median_ms(by_level[level])
    print(f"median response time in ms: {beside} {without}, {level} {under}")
    assert max(under) < 0.7 * min(without)


def test_nothing_stays(results):
    left, _ = results
    assert (left / "clean.rc").read_text() == "0\n", (left / "clean.log").read_text()
    assert (left / "groups.txt").read_text() == ""
