"""The metrics of a run whose every request is written by hand."""

import json
import os
from dataclasses import replace

import polars as pl
import pytest
import synthetic

from weir.derive import metrics_of, run_metrics
from weir.load import load_run, load_study
from weir.manifest import seal
from weir.study import class_table, comparable, device_table, in_plan_order, per_run, run_table

MS = 1_000_000
TYPES = {
    "request": pl.UInt64, "client": pl.UInt32, "file": pl.UInt32, "offset": pl.UInt64,
    "size_bytes": pl.UInt64,
    "intended_ns": pl.Int64, "submitted_ns": pl.Int64, "completed_ns": pl.Int64, "deadline_ns": pl.Int64,
    "served_ns": pl.Int64, "status": pl.Int32,
}  # fmt: skip
# class, client, bytes, intended, completed, deadline, served (ms), status. The window is 1000 to 3000 ms.
REQUESTS = [
    ("text", 0, 500_000, 900, 1100, None, None, 0),  # warm-up, but completed within the window
    ("text", 0, 1_000_000, 1000, 1010, None, 1004, 0),
    ("text", 1, 1_000_000, 2000, 2030, None, 2010, 0),
    ("text", 1, 1_000_000, 2900, 3100, None, 2950, 0),  # completed after the window
    ("text", 1, 1_000_000, 2950, None, None, None, 0),  # never completed
    ("video", 0, 2_000_000, 1000, 1020, 1040, None, 0),
    ("video", 0, 2_000_000, 1040, 1090, 1080, None, 0),  # late
    ("video", 0, 2_000_000, 1080, 1081, 1120, None, 5),  # failed
]


@pytest.fixture
def run(tmp_path):
    folder = synthetic.write_study(tmp_path / "s", repetitions=1, loads=(0.5,), duration_s=2.0)
    path = folder / "none-partitioned-0.5-0"
    names = [
        "class",
        "client",
        "size_bytes",
        "intended_ns",
        "completed_ns",
        "deadline_ns",
        "served_ns",
        "status",
    ]
    rows = pl.DataFrame(REQUESTS, schema=names, orient="row").with_columns(pl.col("^.*_ns$") * MS)
    rows = rows.with_columns(
        pl.col("class").cast(pl.Categorical),
        request=pl.int_range(pl.len()),
        device=pl.lit("loop0").cast(pl.Categorical),
        file=None,
        op=pl.lit("read").cast(pl.Categorical),
        offset=0,
        submitted_ns=pl.col("intended_ns"),
        warmup=pl.col("intended_ns") < 1000 * MS,
    ).cast(TYPES)
    rows.write_parquet(path / "requests.parquet")
    return load_run(path)


def test_a_class_by_hand(run):
    text = run_metrics(run)["classes"]["text"]
    assert (text["requests"], text["failed"], text["unfinished"]) == (4, 0, 1)
    # Responses 10, 30, 200 ms and one without end.
    assert text["response_p50_ms"] == 30
    assert text["response_mean_ms"] == text["response_max_ms"] == float("inf")
    assert text["response_p95_ms"] is None  # four requests cannot say
    assert text["queueing_mean_ms"] == pytest.approx((4 + 10 + 50) / 3)
    assert text["service_mean_ms"] == pytest.approx((6 + 20 + 150) / 3)
    # 0.5 + 1 + 1 MB completed within two seconds; 4 MB were asked for.
    assert text["throughput_mb_s"] == 1.25
    assert text["requests_per_s"] == 1.5
    assert text["offered_mb_s"] == 2
    # Clients 0 and 1 received 1.5 and 1 MB, clients 2 and 3 nothing.
    assert text["jain_clients"] == pytest.approx(2.5**2 / (4 * (1.5**2 + 1)))
    assert text["deadline_miss_share"] is None


def test_a_closed_loop_by_hand(run):
    closed = replace(run, classes=tuple(replace(c, engine="fio") for c in run.classes))
    text = run_metrics(closed)["classes"]["text"]
    # What was answered in the window: 200 ms (asked before it), 10 and 30; what never was; not what was in
    # flight at its end.
    assert (text["requests"], text["unfinished"], text["requests_per_s"]) == (4, 1, 1.5)
    assert text["response_max_ms"] == float("inf")
    assert text["response_p50_ms"] == pytest.approx(30)
    assert text["queueing_mean_ms"] == pytest.approx((4 + 10) / 2)
    assert text["offered_mb_s"] == 2
    # One that failed in the window is a sample without end, as in an open loop.
    assert run_metrics(closed)["classes"]["video"]["response_max_ms"] == float("inf")


def test_deadlines_and_failures_by_hand(run):
    video = run_metrics(run)["classes"]["video"]
    assert video["deadlines"] == 3
    assert video["deadline_miss_share"] == pytest.approx(2 / 3)
    assert video["failed"] == 1
    assert video["response_max_ms"] == float("inf")
    assert video["throughput_mb_s"] == 2
    assert (video["objective_value"], video["objective_limit"]) == (pytest.approx(2 / 3), 0.01)
    assert video["objective_attained"] is False


def test_the_run_as_a_whole_by_hand(run):
    found = run_metrics(run)
    assert found["run"]["throughput_mb_s"] == 3.25
    assert found["run"]["jain_classes"] == pytest.approx(3.25**2 / (2 * (1.25**2 + 2**2)))
    assert found["run"]["jain_classes_weighted"] is None
    assert found["classes"]["text"]["throughput_share"] == pytest.approx(1.25 / 3.25)


def test_single_accesses_have_times_and_no_rates(run):
    """They take as long as they take, whatever the study's interval is."""
    accesses = [replace(app_class, engine="access", objective=None) for app_class in run.classes]
    found = run_metrics(replace(run, classes=accesses))
    assert found["classes"]["text"]["response_p50_ms"] == 30
    rates = ("throughput_mb_s", "throughput_share", "requests_per_s")
    assert {found["classes"]["text"][name] for name in rates} == {None}
    assert set(found["run"].values()) == {None}


@pytest.mark.parametrize(
    ("objective", "value", "attained", "error"),
    [
        ({"rate_mb_s": 1.0}, 1.25, True, 0.25),
        ({"rate_mb_s": 2.5}, 1.25, False, -0.5),
        ({"share": 0.5}, 1.25 / 3.25, False, 1.25 / 3.25 / 0.5 - 1),
        ({"response_ms": {"quantile": 0.5, "at_most": 30}}, 30, True, None),
        ({"response_ms": {"quantile": 0.99, "at_most": 30}}, None, None, None),
        (None, None, None, None),
    ],
)
def test_objectives_by_hand(run, objective, value, attained, error):
    entry = json.loads((run.path / "run.json").read_text())
    entry["classes"][0]["objective"] = objective
    text = run_metrics(load_run(run.path, entry))["classes"]["text"]
    assert text["objective_value"] == (None if value is None else pytest.approx(value))
    assert text["objective_attained"] is attained
    assert text["share_error"] == (None if error is None else pytest.approx(error))


def test_within_an_objective_counts_the_unfinished_as_outside(run):
    entry = json.loads((run.path / "run.json").read_text())
    entry["classes"][0]["objective"] = {"response_ms": {"quantile": 0.5, "at_most": 30}}
    assert run_metrics(load_run(run.path, entry))["classes"]["text"]["within_objective_share"] == 0.5


def test_shares_that_are_all_promised_are_weighted(run):
    entry = json.loads((run.path / "run.json").read_text())
    entry["classes"][0]["objective"] = {"share": 1.25 / 3.25}
    entry["classes"][1]["objective"] = {"share": 2 / 3.25}
    found = run_metrics(load_run(run.path, entry))["run"]
    assert found["jain_classes_weighted"] == pytest.approx(1)


def test_a_device_by_hand(run):
    rows = pl.read_parquet(run.path / "block.parquet").head(4)
    column = lambda values: pl.Series([None if v is None else v * MS for v in values], dtype=pl.Int64)  # noqa: E731
    rows.with_columns(
        queued_ns=column([1000, 1000, 2000, 2900]),
        inserted_ns=column([None] * 4),
        issued_ns=column([1000, 1100, 2050, 2950]),
        completed_ns=column([1100, 1200, 2100, None]),
        size_bytes=pl.Series([1_000_000] * 4, dtype=pl.UInt32),
        device=pl.lit("loop0").cast(pl.Categorical),
    ).write_parquet(run.path / "block.parquet")
    device = run_metrics(run)["devices"]["loop0"]
    assert (device["requests"], device["lost"]) == (4, 1)
    assert device["queueing_mean_ms"] == 50
    assert device["service_mean_ms"] == pytest.approx((100 + 100 + 50) / 3)
    # Busy 1000-1200 and 2050-2100 of 2000 ms; requests were there 2000-2100 as well.
    assert device["utilisation"] == 0.125
    assert device["work_conservation"] == pytest.approx(250 / 300)
    assert device["mean_depth"] == 0.125
    assert device["throughput_mb_s"] == 1.5


def test_what_is_kept_is_what_was_computed(run):
    computed = metrics_of(run)
    document = json.loads((run.path / "metrics.json").read_text())
    assert document["classes"]["text"]["response_max_ms"] == "unbounded"
    assert metrics_of(run) == computed
    # Kept numbers are believed only while they are newer than the requests.
    del document["checksum"]
    document["classes"]["text"]["requests"] = 12345
    (run.path / "metrics.json").write_text(seal(json.dumps(document, indent=2)))
    assert metrics_of(run)["classes"]["text"]["requests"] == 12345
    later = (run.path / "metrics.json").stat().st_mtime_ns + 10**9
    os.utime(run.path / "requests.parquet", ns=(later, later))
    assert metrics_of(run)["classes"]["text"]["requests"] == 4


def test_tables_hold_valid_runs_in_plan_order(study_folder):
    synthetic.set_validity(study_folder / "none-partitioned-0.5-0", "invalid", "R-LOSS", "lost")
    (study_folder / "mq-deadline-integrated-0.9-2" / "requests.parquet").unlink()
    synthetic.set_validity(
        study_folder / "mq-deadline-integrated-0.9-2", "skipped", "R-FS", "no such scheduler"
    )
    study = load_study(study_folder)
    table = class_table(study)
    assert table.height == 2 * 22
    assert not {"none-partitioned-0.5-0", "mq-deadline-integrated-0.9-2"} & set(table["run"])
    assert table["class"].unique(maintain_order=True).to_list() == ["text", "video"]
    assert table["scheduler"].unique(maintain_order=True).to_list() == ["none", "mq-deadline"]
    assert in_plan_order(table.reverse(), study).equals(table)
    assert run_table(study).height == 22


def test_devices_are_averaged_by_their_requests(study_folder):
    study = load_study(study_folder)
    devices = device_table(study)
    one = devices.filter(pl.col("run") == study.runs[0].id)
    a, b = one["requests"].to_list()
    x, y = one["queueing_mean_ms"].to_list()
    mean = per_run(devices, study).filter(pl.col("run") == study.runs[0].id)["queueing_mean_ms"].item()
    assert mean == pytest.approx((a * x + b * y) / (a + b))


def test_block_table_and_simulator_agree_on_the_split(tmp_path):
    device = load_study(synthetic.write_study(tmp_path / "d", repetitions=1, loads=(0.9,)))
    simulated = load_study(
        synthetic.write_study(tmp_path / "s", repetitions=1, loads=(0.9,), block_table=False)
    )
    assert device_table(simulated).is_empty()
    from_blocks = per_run(device_table(device), device)
    from_classes = per_run(class_table(simulated), simulated)
    for part in ("queueing_mean_ms", "service_mean_ms"):
        # The block layer sees a request 40 us after it was intended, and windows differ by who asks.
        assert from_blocks[part].to_list() == pytest.approx(from_classes[part].to_list(), rel=0.1, abs=0.1)


def test_cells_that_the_plan_has_without_the_baseline_are_not_comparable(study_folder):
    study = load_study(study_folder)
    table = class_table(study)
    assert comparable(study, table, "scheduler", "none").height == table.height
    first, *_ = study.runs
    gone = replace(first, levels=first.levels | {"load": 7})
    by_design = replace(study, runs=(gone, *(run for run in study.runs if run.levels["scheduler"] != "none")))
    assert comparable(by_design, table, "scheduler", "none").is_empty()
    # A planned run that is missing is no matter of design.
    missing = {run.id: run.levels for run in study.runs if run.levels["scheduler"] == "none"}
    lost = replace(by_design, missing=missing)
    assert comparable(lost, table, "scheduler", "none").height == table.height
