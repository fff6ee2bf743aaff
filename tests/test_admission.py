"""Admission control as a study (`testbed: admission`), and admitted streams in a simulated server."""

import json

import pytest
from support import simulate, weir

from papers.wijayaratne.results import admission_table, demand_blocks, load_pct
from weir.load import load_study

STUDY = """\
name: trial
question: How many streams get in?
testbed: admission
seed: 7
repetitions: 2
warmup_s: 0
duration_s: 100
storage: {profile: seagate-barracuda, heads: 4, size_mib: 4096}
classes:
  lambs: {workload: mpeg-lambs, clients: 1}
  news: {workload: mpeg-news, clients: 1}
factors:
  admission:
    layout: [cdl, bctl]
    rule: [trace-based, peak-rate]
hold:
  admission: {latency_target_rounds: 50}
"""
SERVED = """\
name: trial
question: Are streams that got in served in time?
testbed: simulator
seed: 7
repetitions: 2
warmup_s: 30
duration_s: 60
records: summary
storage: {profile: seagate-barracuda, heads: 4, size_mib: 4096, placement: spread}
classes:
  lambs: {workload: mpeg-lambs, clients: 1, wants: real_time}
  aperiodic: {workload: aperiodic-4-128k, clients: 40, wants: throughput, stripe_unit_kib: 128}
factors:
  admission: {layout: [cdl, bctl], streams: [3, 500]}
hold:
  scheduler: wr-round estimate=bound
  admission: {latency_target_rounds: 50, share_pct: 50}
"""


@pytest.fixture(scope="module")
def admitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("admission")
    done = simulate(folder, STUDY)
    assert done.returncode == 0, done.stderr
    assert "8 runs, all valid" in done.stdout
    assert "streams asked" in done.stdout
    return folder / "results/trial"


def test_what_a_stream_needs_lets_more_in_than_its_peak(admitted):
    table = admission_table(load_study(admitted))
    wide = table.pivot("rule", index=["repetition", "layout"], values="admitted")
    assert (wide["trace-based"] > wide["peak-rate"]).all()
    assert (table["asked"] == table["admitted"] + 1).all(), "they ask until one is refused"


def test_no_disk_is_promised_more_than_a_round(admitted):
    for run in load_study(admitted).valid_runs:
        disks = load_pct(run)
        assert len(disks) == 4
        assert 50 < max(map(max, disks)) <= 100
        rows = admission_table(load_study(admitted)).filter(load_is_of(run))
        mean = sum(map(sum, disks)) / sum(map(len, disks))
        assert rows["utilisation_pct"].item() == pytest.approx(mean, abs=0.01)


def load_is_of(run):
    import polars as pl

    of = {name.removeprefix("admission."): level for name, level in run.levels.items()}
    return pl.all_horizontal(
        pl.col("repetition") == run.repetition, *(pl.col(name) == level for name, level in of.items())
    )


def test_the_outcome_does_not_depend_on_jobs_or_shards(admitted, tmp_path):
    def contents(folder):
        return {
            (run.name, name): (run / name).read_bytes()
            for run in (path.parent for path in folder.glob("*/run.json"))
            for name in ("run.json", "admission.json", "load.json", "verdict.json")
        }

    for part in (1, 2):
        assert simulate(tmp_path, STUDY, "--shard", f"{part}/2", "--jobs", 1).returncode == 0
    assert contents(tmp_path / "results/trial") == contents(admitted)


def test_the_example_of_the_paper_needs_3_and_1_blocks(tmp_path):
    done = weir("simulate", "wijayaratne-example", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = load_study(tmp_path / "wijayaratne-example").valid_runs
    assert demand_blocks(run) == {"example": [3, 1]}


def test_streams_that_got_in_miss_nothing_and_others_are_not_served(tmp_path):
    done = simulate(tmp_path, SERVED)
    assert done.returncode == 0, done.stderr
    runs = load_study(tmp_path / "results/trial").valid_runs
    assert len(runs) == 8
    most = 0
    for run in runs:
        admission = json.loads((run.path / "admission.json").read_text())
        summary = json.loads((run.path / "summary.json").read_text())["classes"]["lambs"]
        assert 3 <= admission["admitted"] < 500
        most = max(most, admission["admitted"])
        assert summary["deadlines"] > 0
        assert summary["deadline_miss_share"] == 0
        # Streams ask once in each round at most, and have half of the disks' time.
        assert summary["requests"] <= admission["admitted"] * 120
        assert 0 < summary["head_time_share"] < 0.5
    assert most > 3


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("rule: [trace-based, peak-rate]", "rule: [trace-based, peek]"), ["peek"]),
        (("latency_target_rounds: 50", "policy: prime-hopping, hop_rounds: 9"), ["hop_rounds", "prime"]),
        (("mpeg-news", "random-4k"), ["classes.news.workload", "no video"]),
        (("latency_target_rounds: 50", "stream: lamb"), ["admission.stream", "did you mean `lambs`?"]),
        (("seagate-barracuda", '"null"'), ["without service time", "another profile"]),
    ],
)
def test_what_cannot_be_admitted_is_refused_by_field(tmp_path, change, says):
    assert change[0] in STUDY
    done = simulate(tmp_path, STUDY.replace(*change, 1))
    assert done.returncode == 2
    for part in says:
        assert part in done.stderr, done.stderr
