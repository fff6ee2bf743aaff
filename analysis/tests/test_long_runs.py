"""Metrics of long runs, computed window by window: equal to those of the whole table, in bounded memory."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text

from weir import derive, metrics, steady_state, tables
from weir.derive import NEED_REQUESTS, run_metrics
from weir.device_totals import Union
from weir.distribution import Distribution
from weir.errors import InputError
from weir.load import load_run, load_study
from weir.plots import study_figures
from weir.series import Series
from weir.tables import in_windows, scan_measured, scan_requests

ROOT = Path(__file__).parents[2]
ROWS = 20_000
#: Metrics that a long run estimates from a part of its requests.
ESTIMATED = {name for name in NEED_REQUESTS if name.startswith(("effective", "drift")) or "beyond" in name}


@pytest.fixture
def short(monkeypatch):
    """Sizes at which 20,000 requests are many."""
    for name, size in (
        ("distribution.MOST_KEPT", 2048), ("series.STRETCH", 2048), ("series.PIECE", 32),
        ("steady_state.PIECE", 32), ("tables.ROWS_AT_ONCE", 3000),
    ):  # fmt: skip
        monkeypatch.setattr(f"weir.{name}", size)


def correlated(rng, n, lag1):
    """Logarithms of responses: an autoregression of order 1 with variance 1."""
    noise = rng.standard_normal(n) * math.sqrt(1 - lag1**2)
    noise[0] /= math.sqrt(1 - lag1**2)
    for at in range(1, n):
        noise[at] += lag1 * noise[at - 1]
    return noise


def requests(seed: int, ties: bool = False) -> pl.DataFrame:
    """Two open classes and one closed, with failures, losses, deadlines, and equal times if asked."""
    rng = np.random.default_rng(seed)
    intended = np.sort(rng.integers(0, 5 * 10**9, ROWS))
    took = (np.exp(0.7 * correlated(rng, ROWS, 0.8)) * 3e6).astype(np.int64)
    if ties:
        intended, took = intended // 10**7 * 10**7, took // 10**6 * 10**6
    names = rng.choice(["text", "video", "copy"], ROWS, p=[0.6, 0.3, 0.1])
    where = lambda kept, values: pl.select(  # noqa: E731
        pl.when(pl.Series(kept)).then(pl.Series(values)).otherwise(None)
    ).to_series()
    lost = rng.random(ROWS) < 0.002
    return pl.DataFrame(
        {
            "request": np.arange(ROWS, dtype=np.uint64), "class": names, "device": ["d"] * ROWS,
            "client": rng.integers(0, 3, ROWS).astype(np.uint32), "file": np.zeros(ROWS, np.uint32),
            "op": ["read"] * ROWS, "offset": np.zeros(ROWS, np.uint64),
            "size_bytes": 4096 * rng.integers(1, 9, ROWS).astype(np.uint64),
            "intended_ns": intended, "submitted_ns": intended,
            "completed_ns": where(~lost, intended + took),
            "deadline_ns": where(names == "video", intended + 5_000_000),
            "served_ns": where((rng.random(ROWS) < 0.9) & ~lost, intended + took // 3),
            "status": np.where(rng.random(ROWS) < 0.003, 5, 0).astype(np.int32),
            "warmup": intended < 10**9,
        }
    )  # fmt: skip


@pytest.fixture
def run(tmp_path):
    folder = synthetic.write_study(
        tmp_path / "s", repetitions=1, loads=(0.5,), schedulers=("none",), architectures=("integrated",)
    )
    found = load_run(folder / "none-integrated-0.5-0")
    text, video = found.classes
    promise = {"response_ms": {"quantile": 0.9, "at_most": 6.5}}
    copy = replace(text, name="copy", engine="fio", objective=promise)
    return replace(found, classes=(text, video, copy))


ORDERS = {
    "asking": lambda rows: rows,
    "completion": lambda rows: rows.sort("completed_ns", nulls_last=True),
    "none": lambda rows: rows.sample(fraction=1, shuffle=True, seed=3),
}


def close(found, expected):
    """Two metrics: equal, or both numbers that differ by rounding."""
    if isinstance(expected, float) and isinstance(found, float) and math.isfinite(expected):
        return math.isclose(found, expected, rel_tol=1e-9)
    return found == expected


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ties", [False, True])
def test_a_run_in_windows_has_the_metrics_of_its_whole_table(run, order, ties, monkeypatch, request):
    rows = ORDERS[order](requests(5, ties))
    path = run.path / "requests.parquet"
    rows.write_parquet(path, row_group_size=500)
    whole = run_metrics(run)
    request.getfixturevalue("short")
    windows = len(list(in_windows(scan_requests(run), path, "intended_ns")))
    assert windows >= 5
    found = run_metrics(run)
    for name, expected in whole["classes"].items():
        values = found["classes"][name]
        assert values.keys() == expected.keys()
        different = [m for m in expected if m not in ESTIMATED and not close(values[m], expected[m])]
        assert different == [], name
        assert values["failed"] and values["unfinished"] and values["response_p50_ms"] < math.inf
        # The estimates are those of the same responses as one array.
        of_class = rows.filter(pl.col("class") == name).filter(tables.is_sample(run))
        response = of_class.sort("intended_ns", maintain_order=True).select(tables.response_ms())
        x = response["response_ms"].to_numpy()
        assert x.size == values["requests"]
        assert values["effective_requests"] == pytest.approx(steady_state.effective_size(x), rel=1e-9)
        assert values["drift_p"] == pytest.approx(steady_state.drift(x).p, rel=1e-6)
        assert values["response_p95_beyond"] == pytest.approx(steady_state.effective_beyond(x, 0.95))
    assert [n for n, expected in whole["run"].items() if not close(found["run"][n], expected)] == []
    assert found["classes"]["text"]["requests"] > 2048 > found["classes"]["copy"]["requests"]


@pytest.mark.usefixtures("short")
def test_windows_hold_every_row_once_in_order_of_time(run):
    path = run.path / "requests.parquet"
    for order in ORDERS.values():
        rows = order(requests(6, ties=True))
        rows.write_parquet(path, row_group_size=700)
        windows = [window.collect() for window in in_windows(scan_requests(run), path, "intended_ns")]
        assert max(window.height for window in windows) < 2 * tables.ROWS_AT_ONCE
        ends = [(window["intended_ns"].min(), window["intended_ns"].max()) for window in windows]
        assert all(before[1] < after[0] for before, after in pairwise(ends))
        assert sorted(pl.concat(windows)["request"]) == list(range(ROWS))
    # Without statistics nothing says where a time is: the table is one window.
    rows.write_parquet(path, row_group_size=700, statistics=False)
    assert [w.collect().height for w in in_windows(scan_requests(run), path, "intended_ns")] == [ROWS]


@pytest.mark.usefixtures("short")
def test_damage_is_reported_with_its_row_whatever_the_window(run):
    rows = ORDERS["none"](requests(7))
    late = pl.int_range(pl.len()) == 12_345
    before = pl.col("intended_ns") - 1
    wrong = rows.with_columns(completed_ns=pl.when(late).then(before).otherwise(pl.col("completed_ns")))
    wrong.write_parquet(run.path / "requests.parquet", row_group_size=500)
    with pytest.raises(Exception, match="row 12345: column `completed_ns`"):
        run_metrics(run)
    other = rows.with_columns(pl.when(late).then(pl.lit("audio")).otherwise(pl.col("class")).alias("class"))
    other.write_parquet(run.path / "requests.parquet", row_group_size=500)
    with pytest.raises(Exception, match=r"column `class` holds 'audio', run.json has copy, text, video"):
        run_metrics(run)


@pytest.mark.parametrize("order", ["queued", "completed", "none"])
def test_a_block_table_in_parts_has_the_metrics_of_the_whole(run, order, request):
    rng = np.random.default_rng(8)
    queued = np.sort(rng.integers(0, 5 * 10**9, ROWS))
    issued = queued + rng.exponential(2e5, ROWS).astype(np.int64)
    block = pl.DataFrame(
        {
            "device": rng.choice(["loop0", "loop1"], ROWS), "sector": np.zeros(ROWS, np.int64),
            "size_bytes": np.full(ROWS, 4096), "op": rng.choice(["read", "write", "flush"], ROWS),
            "queued_ns": queued, "inserted_ns": queued, "issued_ns": issued,
            "completed_ns": issued + rng.exponential(3e5, ROWS).astype(np.int64),
            "status": (rng.random(ROWS) < 0.01).astype(np.int32),
        }
    )  # fmt: skip
    gone = [pl.when(pl.int_range(pl.len()) % every != 7).then(pl.col(name)).otherwise(None).alias(name)
            for name, every in (("queued_ns", 19), ("completed_ns", 501))]  # fmt: skip
    block = block.with_columns(gone)
    block = block.sample(fraction=1, shuffle=True, seed=1) if order == "none" else block.sort(f"{order}_ns")
    block.write_parquet(run.path / "block.parquet", row_group_size=500)
    whole = run_metrics(run)["devices"]
    request.getfixturevalue("short")
    found = run_metrics(run)["devices"]
    assert found.keys() == whole.keys() == {"loop0", "loop1"}
    for name, values in whole.items():
        assert found[name] == pytest.approx(values, rel=1e-9)
        seen = block.filter(pl.col("op") != "flush", pl.col("device") == name).drop_nulls(
            ["issued_ns", "completed_ns"]
        )
        ends = (seen["issued_ns"], seen["completed_ns"], run.window_ns)
        assert values["utilisation"] == pytest.approx(metrics.utilisation(*ends), rel=1e-12)
        assert values["mean_depth"] == pytest.approx(metrics.mean_number(*ends), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.floats(-1e308, allow_nan=False),
            st.sampled_from([0.0, 1.0, math.inf, 5e-324]),
            st.integers(-9, 9),
        ),
        min_size=1,
        max_size=300,
    ),
    st.floats(0.001, 1),
    st.integers(1, 50),
)
def test_quantiles_of_many_values_are_those_of_all_of_them(values, q, size):
    x = np.array(values, dtype=float) + 0.0
    distribution = Distribution()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weir.distribution.MOST_KEPT", 0)
        for part in np.array_split(x, size):
            distribution.add(part)
    assert distribution.is_counted
    distribution.resolve_among(x, [q])
    rank = metrics.rank(x.size, q)
    assert distribution.quantile(q) == np.sort(x)[rank]
    assert distribution.number_above(q) == (x > np.sort(x)[rank]).sum()
    assert distribution.largest == x.max()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 40), st.integers(-2, 9)), max_size=60), st.integers(1, 20))
def test_the_union_of_intervals_in_parts_is_that_of_all(intervals, parts):
    start = np.array([a for a, _ in intervals], dtype=np.int64)
    end = start + np.array([b for _, b in intervals], dtype=np.int64)
    union = Union((0, 35))
    for own in np.array_split(np.arange(start.size), parts):
        union.add(start[own], end[own])
    assert union.covered_ns == metrics.union_ns(start, end, (0, 35))


@pytest.mark.usefixtures("short")
def test_stretches_are_spread_evenly_over_the_series():
    for n in (2049, 10_000, 16 * 2048, 100_003):
        x = np.arange(n, dtype=float)
        series = Series()
        for part in np.array_split(x, 37):
            series.add(part)
        places = [first for first, _ in series.stretches]
        assert all((part == x[first : first + 2048]).all() for first, part in series.stretches)
        assert 1 <= len(places) <= 8 and (n < 8 * 2048 or len(places) >= 4)
        assert len(set(np.diff(places))) <= 1
        pieces = series.pieces()
        assert pieces.size == n // 32
        assert pieces[5] == pytest.approx(np.log(x[160:192]).mean())


@pytest.mark.usefixtures("short")
def test_estimates_from_stretches_are_near_those_of_the_whole_series():
    rng = np.random.default_rng(9)
    sizes, beyond, false, found = [], [], 0, 0
    for _ in range(40):
        x = np.exp(correlated(rng, 40_000, 0.8))
        sizes.append(steady_state.effective_size(x) / 40_000)
        beyond.append(steady_state.effective_beyond(x, 0.95))
        false += bool(steady_state.drift(x).drifts)
        ramp = steady_state.drift(x * np.linspace(1, 2, x.size))
        found += bool(ramp.drifts) and 1.5 < ramp.ratio < 2.6
    # exp of an autoregression: its autocorrelation is (e^(0.8^k) - 1) / (e - 1).
    rho = (np.exp(0.8 ** np.arange(1, 200)) - 1) / (math.e - 1)
    assert np.mean(sizes) == pytest.approx(1 / (1 + 2 * rho.sum()), rel=0.05)
    assert 300 < np.mean(beyond) < 2000
    assert false <= 4 and found == 40


def test_the_tail_of_a_long_run_is_drawn_from_counts(run, monkeypatch):
    requests(10).write_parquet(run.path / "requests.parquet")
    study = replace(load_study(run.path.parent), runs=(run,))
    (short_line,) = study_figures.tail(study, "text").axes[0].lines
    monkeypatch.setattr("weir.plots.study_figures.MOST_KEPT", 2048)
    figure = study_figures.tail(study, "text")
    (line,) = figure.axes[0].lines
    x = scan_measured([run]).filter(pl.col("class") == "text").collect()["response_ms"].to_numpy()
    t, above = line.get_xydata().T
    assert 100 < t.size < 1000
    assert above == pytest.approx([(x > edge).mean() for edge in t], abs=1e-12)
    shares = [np.interp(0.01, *part.get_xydata().T[::-1, ::-1]) for part in (short_line, line)]
    assert shares[0] == pytest.approx(shares[1], rel=0.03)
    lost = f"Never completed: {np.isinf(x).mean():.2%}"
    assert any(lost in text.get_text().replace("\n", " ") for text in figure.findobj(Text))


def test_processes_keep_the_metrics_that_one_would(single_folder, monkeypatch):
    runs = load_study(single_folder).valid_runs
    computed = {run.id: run_metrics(run) for run in runs}
    monkeypatch.setattr(derive, "FEWEST_IN_PARALLEL", 2)
    done = list(derive.keep_metrics(runs, workers=2))
    assert [run.id for run in done] == [run.id for run in runs]
    # What was kept is believed.
    monkeypatch.setattr(derive, "run_metrics", lambda run: pytest.fail(f"{run.id} is computed again"))
    assert {run.id: derive.metrics_of(run) for run in runs} == computed
    assert list(derive.keep_metrics(runs, workers=2)) == []
    (runs[1].path / "metrics.json").unlink()
    (runs[1].path / "requests.parquet").write_bytes(b"PAR1")
    (runs[0].path / "metrics.json").unlink()
    with pytest.raises(InputError, match=r"requests\.parquet: is cut short or is not Parquet"):
        list(derive.keep_metrics(runs, workers=2))


# Peak memory by getrusage would begin with that of the test's own process.
CHILD = """
import json, re, sys
from pathlib import Path
from weir.derive import run_metrics
from weir.load import load_study
def mib(field):
    return int(re.search(field + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
run = load_study(sys.argv[1]).runs[0]
before = mib("VmRSS")
found = run_metrics(run)["classes"]
print(json.dumps([sum(c["requests"] for c in found.values()), mib("VmHWM") - before]))
"""


def test_memory_does_not_grow_with_the_requests(tmp_path):
    """4,000,000 requests in one run: 273 MiB; the whole table at once took 1,007 MiB."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "analysis"), "POLARS_MAX_THREADS": "2"}
    used = []
    for rows in (2_000_000, 4_000_000):
        folder = tmp_path / str(rows)
        writer = ROOT / "analysis/bench/synthetic_study.py"
        subprocess.run([sys.executable, writer, folder, str(rows), "1"], check=True, env=environment)
        child = [sys.executable, "-c", CHILD, folder]
        out = subprocess.run(child, check=True, env=environment, capture_output=True, text=True).stdout
        count, peak_mib = json.loads(out)
        assert count > 0.99 * rows
        used.append(peak_mib)
    assert used[1] < 500 and used[1] < 1.4 * used[0]
