"""Several rings in a study: a machine of two processors always has one.

    make test-guest

Under software emulation: function is shown here, not speed. The rate is beyond what the guest keeps: its run
is late.
"""

import json

import polars as pl
import pytest
from machine import run_study

pytestmark = pytest.mark.guest

STUDY = """\
name: rings
question: Does a study send by several rings?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 0.8
capture: none
storage: {profile: "null", heads: 1, size_mib: 64}
classes:
  text:
    workload: poisson-text
    with:
      arrivals.poisson.rate_per_s: 1000
      files.count: 8
      sizes: {drawn: {fixed: {bytes: 4096}}}
    clients: 200
factors: {scheduler: [none]}
hold: {filesystem: raw, queue_depth: 64}
"""
SHARED = 'name: shared\nprofile: "null"\nheads: 1\nsize_mib: 64\n'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of the run, and what weir said."""
    left, (planned,) = run_study(tmp_path_factory.mktemp("guest"), STUDY, SHARED, cpus=4)
    return left / planned["id"], (left / f"{planned['id']}.log").read_text()


def test_a_study_sends_by_several_rings(run):
    folder, log = run
    assert folder.exists(), log
    replayed = json.loads((folder / "observed.json").read_text())["replay"]
    print(replayed["submission"])
    assert replayed["submission"]["rings"] == 2 and replayed["submission"]["fixed_buffers"]
    assert replayed["planned"] == pytest.approx(200_000, rel=0.05)


def test_each_request_is_sent_once_and_in_its_order(run):
    folder, _ = run
    replayed = json.loads((folder / "observed.json").read_text())["replay"]
    rows = pl.read_parquet(folder / "requests.parquet")
    assert rows.height == replayed["planned"] == replayed["sent"]
    assert rows["completed_ns"].null_count() == replayed["unfinished"]
    assert replayed["completed"] + replayed["unfinished"] == replayed["planned"]
    assert rows["intended_ns"].is_sorted() and rows["request"].is_unique().all()
    assert (rows["submitted_ns"] >= rows["intended_ns"]).all()
    # Nobody would take this run for one that was on time.
    certificate = replayed["certificate"]
    assert certificate["trusted_per_s"] is None and certificate["kept_per_s"] < certificate["asked_per_s"] / 2
    judged = {
        rule["rule"]: rule["status"] for rule in json.loads((folder / "verdict.json").read_text())["rules"]
    }
    assert judged["R-LATE"] == "invalid"
