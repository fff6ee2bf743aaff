"""Contracts of classes: schedulers that know them, in a study in virtual time."""

import json

import polars
import pytest
from support import simulate

# Streams of 1 MiB every half second, each served in less than 45 ms, and more text than the disk can serve.
STUDY = """\
name: contracts
question: Who keeps the deadlines of streams, whatever else is asked of the disk?
testbed: simulator
seed: 3
repetitions: 1
warmup_s: 1
duration_s: 20
storage: {profile: hdd-7200, heads: 1, size_mib: 4096, stripe_unit_kib: 1024}
classes:
  video:
    workload: mpeg-vbr
    with:
      arrivals: {periodic: {interval_ms: 500}}
      files: {count: 64, size: {fixed: {bytes: 1048576}}}
      sizes: whole_file
      access: random
      deadline: {after: {ms: 500}}
      block_bytes: 1048576
    clients: 8
    contract: {cost_ms: 45, period_ms: 500}
  text: {workload: interactive-64k, clients: 150}
factors:
  scheduler: [edf-background, usd, lst, deltal, fcfs]
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contracts")
    done = simulate(folder, STUDY)
    assert done.returncode in (0, 3), done.stderr
    found = {}
    for run in (folder / "results/contracts").glob("*/run.json"):
        scheduler = json.loads(run.read_text())["levels"]["scheduler"]
        found[scheduler] = polars.read_parquet(run.parent / "requests.parquet")
    return found


def late(requests):
    done, due = polars.col("completed_ns"), polars.col("deadline_ns")
    return requests.filter(done.is_null() | (done > due))


def test_deltal_keeps_every_deadline(served):
    video = served["deltal"].filter(polars.col("class") == "video")
    assert len(video) >= 8 * 2 * 20
    assert late(video).is_empty()
    # What the contract says a request takes is what none takes longer than.
    assert (video["completed_ns"] - video["served_ns"]).max() <= 45_000_000


def test_without_contracts_streams_wait_behind_text(served):
    video = served["fcfs"].filter(polars.col("class") == "video")
    assert not late(video).is_empty()


def test_text_uses_the_slack(served):
    def mean_wait_ms(scheduler):
        text = served[scheduler].filter(polars.col("class") == "text").drop_nulls("completed_ns")
        return (text["completed_ns"] - text["intended_ns"]).mean() / 1e6

    assert mean_wait_ms("deltal") < mean_wait_ms("edf-background")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("cost_ms: 45", "cost_ms: 0"), ["classes.video.contract.cost_ms", "must be above 0"]),
        (("cost_ms: 45, ", ""), ["classes.video.contract", "`cost_ms` is missing"]),
        (("testbed: simulator", "testbed: device"), ["its testbed is device", "[device, simulator]"]),
        (("deltal, fcfs", "deltal mode=exakt, fcfs"), ["factors.scheduler", "mode=exakt", "exact or thesis"]),
    ],
)
def test_contracts_that_are_wrong_are_refused_by_field(tmp_path, change, says):
    assert change[0] in STUDY
    done = simulate(tmp_path, STUDY.replace(*change, 1))
    assert done.returncode == 2
    for part in says:
        assert part in done.stderr, done.stderr


def test_more_than_there_is_room_for_is_refused_by_class_and_remedy(tmp_path):
    study = STUDY.replace("clients: 8", "clients: 12").replace("usd, lst, deltal, fcfs", "deltal")
    done = simulate(tmp_path, study)
    assert done.returncode != 0
    assert "rejected=best-effort" in done.stderr, done.stderr
    study = study.replace("[edf-background, deltal]", '["deltal rejected=best-effort"]')
    assert simulate(tmp_path, study).returncode in (0, 3)
