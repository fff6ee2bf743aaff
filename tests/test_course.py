"""`weir.course`: responses over time from the histograms of runs, beside the requests themselves."""

import math

import polars as pl
import pytest
from support import simulate

import weir as analysis
from weir.course import course
from weir.errors import InputError
from weir.load import load_study
from weir.tables import scan_measured

STUDY = """\
name: trial
question: Does the scheduler change the course of responses?
testbed: simulator
seed: 3
repetitions: 3
warmup_s: 2
duration_s: 10
storage: {profile: hdd-7200, heads: 1, size_mib: 2048, placement: spread}
classes:
  text: {workload: poisson-text, clients: 40}
  video: {workload: mpeg-vbr, clients: 10}
factors:
  scheduler: [look, fcfs]
"""


WARMUP_NS = 2 * 10**9


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    done = simulate(folder, STUDY)
    assert done.returncode == 0, done.stderr
    return folder / "results"


def expected(study, every_ns, q):
    """The same from the requests: count, bytes and quantile by cell, class and interval."""
    return (
        scan_measured(study.valid_runs)
        .with_columns(start_s=((pl.col("intended_ns") - WARMUP_NS) // every_ns * every_ns + WARMUP_NS) / 1e9)
        .group_by("scheduler", "class", "start_s")
        .agg(
            pl.len().alias("n"),
            pl.sum("size_bytes"),
            pl.col("response_ms").sort().gather((pl.len() * q).ceil().cast(pl.Int64) - 1).first().alias("r"),
        )
        .collect()
    )


@pytest.mark.parametrize("every_s", [0.1, 1, 5])
def test_it_agrees_with_the_requests(results, every_s):
    study = load_study(results / "trial")
    found = course(study.valid_runs, every_s, [0.95], ["scheduler"])
    other = expected(study, round(every_s * 1e9), 0.95)
    both = found.join(other, on=["scheduler", "class", "start_s"], how="full")
    assert both.height == found.height == other.height and both.null_count().sum_horizontal().item() == 0
    assert found["start_s"].min() >= 2 and found["start_s"].max() < 12
    assert both["requests"].to_list() == both["n"].to_list() and set(both["runs"]) == {3}
    rate = both["n"] / 3 / every_s
    assert both["requests_per_s"].to_list() == pytest.approx(rate.to_list())
    assert (both["mb_per_s"] * 3e6 * every_s).to_list() == pytest.approx(both["size_bytes"].to_list())
    # A bucket is 1/64 wide, and the value is its middle.
    far = ((both["response_p95_ms"] / both["r"]) - 1).abs().max()
    assert far <= 1 / 64, far


def test_runs_add_up_and_a_study_has_it(results):
    study = analysis.Study("trial", results)
    apart, together = study.course(every_s=2), study.course(every_s=2, by=[])
    assert apart.columns[:3] == ["scheduler", "class", "start_s"] and together.columns[0] == "class"
    assert apart["requests"].sum() == together["requests"].sum()
    assert set(together["runs"]) == {6}
    assert {"response_p50_ms", "response_p95_ms", "response_p99_ms"} <= set(apart.columns)
    assert "response_p999_ms" in study.course(quantiles=[0.999]).columns


def test_requests_without_answer_are_unbounded(results, tmp_path):
    study = load_study(results / "trial")
    run = study.valid_runs[0]
    rows = pl.read_parquet(run.path / "series.parquet")
    gone = rows.with_columns(
        response_ns=pl.when(pl.col("class") == "video").then(None).otherwise("response_ns")
    )
    run.path.joinpath("series.parquet").chmod(0o644)
    kept = run.path.joinpath("series.parquet").read_bytes()
    try:
        gone.write_parquet(run.path / "series.parquet")
        found = course([run]).filter(pl.col("class") == "video")
        assert found["failed"].to_list() == found["requests"].to_list()
        assert all(math.isinf(value) for value in found["response_p50_ms"])
    finally:
        run.path.joinpath("series.parquet").write_bytes(kept)


def test_what_cannot_be_is_refused(results):
    study = load_study(results / "trial")
    for every_s in (0, 0.05, -1):
        with pytest.raises(ValueError, match=r"multiple of 0\.1"):
            course(study.valid_runs, every_s)
    with pytest.raises(ValueError, match="between 0 and 1"):
        course(study.valid_runs, quantiles=[95])
    with pytest.raises(InputError, match="no run has a series"):
        course([])
