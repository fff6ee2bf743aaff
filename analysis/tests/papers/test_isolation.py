"""The isolation benchmark: every desideratum against numbers made by hand, and its properties."""

import json
import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papers.isolation import desiderata as d
from papers.isolation import figures, qos, results, summary
from weir.load import load_study
from weir.plots import encode

POSITIVE = st.floats(0.01, 1e6)


def test_what_a_mechanism_adds():
    assert d.added(12.0, 10.0) == pytest.approx(0.2)
    assert d.added(9.0, 10.0) == pytest.approx(-0.1)
    with pytest.raises(ValueError, match="above 0"):
        d.added(1.0, 0.0)


def test_fairness_by_weights():
    assert d.weighted_fairness([400, 200, 100], [4, 2, 1]) == pytest.approx(1.0)
    # x = 1, 2, 4: 49 / (3 * 21).
    assert d.weighted_fairness([400, 400, 400], [4, 2, 1]) == pytest.approx(49 / 63)
    assert d.weighted_fairness([900, 0, 0], [1, 1, 1]) == pytest.approx(1 / 3)
    # Half of what each has alone is fair, whatever that is.
    assert d.weighted_fairness([50, 500], [1, 1], alone=[100, 1000]) == pytest.approx(1.0)
    assert d.weighted_fairness([0, 0], [1, 1]) is None
    with pytest.raises(ValueError, match="alone"):
        d.weighted_fairness([1, 2], [1, 1], alone=[1, 0])


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=6), POSITIVE)
def test_fairness_is_bounded_and_has_no_unit(pairs, factor):
    received, weights = (list(part) for part in zip(*pairs, strict=True))
    index = d.weighted_fairness(received, weights)
    assert 1 / len(pairs) - 1e-9 <= index <= 1 + 1e-9
    assert d.weighted_fairness([x * factor for x in received], weights) == pytest.approx(index, rel=1e-6)
    assert d.weighted_fairness(weights, weights) == pytest.approx(1.0)


def test_errors_of_shares():
    assert d.largest_share_error([400, 200, 100], [4, 2, 1]) == pytest.approx(0.0)
    assert d.largest_share_error([100, 100], [3, 1]) == pytest.approx(0.25)
    assert d.largest_share_error([0, 0], [1, 1]) is None
    with pytest.raises(ValueError, match="weight"):
        d.largest_share_error([1, 2], [1])


def test_who_is_beaten_by_none():
    points = [(0.5, 1.2), (0.9, 3.0), (0.9, 2.0), (0.4, 1.5), (1.0, 9.0)]
    assert d.frontier(points) == [0, 2, 4]
    assert d.frontier([]) == []
    # Equal points beat each other not.
    assert d.frontier([(1.0, 1.0), (1.0, 1.0)]) == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_all_others_are_beaten_by_one_of_the_frontier(points):
    kept = d.frontier(points)
    assert kept
    for i, (use, slow) in enumerate(points):
        beaten = any(points[k][0] >= use and points[k][1] <= slow and points[k] != (use, slow) for k in kept)
        assert beaten != (i in kept)
    assert [points[k][1] for k in kept] == sorted(points[k][1] for k in kept)


def test_rates_are_counted_in_whole_intervals():
    ms = 1_000_000
    completed = [100 * ms, 149 * ms, 150 * ms, 310 * ms, 99 * ms]
    # From 100 to 340 ms there are four whole intervals of 50 ms; what lies outside is not counted.
    assert d.rates_per_s(completed, 100 * ms, 340 * ms).tolist() == [40.0, 20.0, 0.0, 0.0]
    assert d.rates_per_s(completed, 0, 10 * ms).size == 0


def test_a_burst_is_answered_when_it_has_its_rate():
    at_once = [100.0] * 20
    assert d.burst_response_ms(at_once) == 50
    # Nothing for three intervals, then all of it: the fourth is the first that holds.
    late = [0.0] * 3 + [100.0] * 17
    assert d.burst_response_ms(late) == 200
    # A single good interval is none that holds.
    flicker = [100.0] + [0.0] * 5 + [100.0] * 14
    assert d.burst_response_ms(flicker) == 350
    assert d.burst_response_ms([0.0] * 20) is None
    assert d.burst_response_ms([1.0] * 7) is None


@given(st.integers(0, 9), st.integers(24, 60), POSITIVE)
def test_a_burst_that_is_silent_first_is_answered_after_it(silent, size, rate):
    rates = np.concatenate([np.zeros(silent), np.full(size - silent, rate)])
    assert d.burst_response_ms(rates) == (silent + 1) * d.INTERVAL_MS


def test_the_delay_to_a_fair_share():
    ms = 1_000_000
    # A fair share of 100/s: 90 a second are enough.
    due = [round((k + 1) * 1000 / 90 * ms) for k in range(90)]
    assert d.share_delay_ms(due, 0, 1000 * ms, 100) == pytest.approx(0, abs=1e-4)
    # All 200 ms late.
    assert d.share_delay_ms([at + 200 * ms for at in due], 0, 1200 * ms, 100) == pytest.approx(200, abs=1e-4)
    # Nothing for 200 ms, then twice the share: what was missed first is the delay, however much follows.
    fast = [round((200 + 5 * (k + 1)) * ms) for k in range(160)]
    assert d.share_delay_ms(fast, 0, 1000 * ms, 100) == pytest.approx(205 - 1000 / 90, abs=1e-4)
    # Half of the share for ever.
    assert d.share_delay_ms(due[::2], 0, 1000 * ms, 100) == math.inf
    assert d.share_delay_ms([], 0, 1000 * ms, 100) == math.inf
    with pytest.raises(ValueError, match="above 0"):
        d.share_delay_ms(due, 0, 1000 * ms, 0)


@given(st.integers(0, 400), st.integers(20, 200))
def test_a_delay_is_the_least_that_is_enough(late_ms, rate):
    """The definition will be tried at every request, of a client that is late and has its share then."""
    gap_ms, end_ms = 1000 / rate, 2000
    at_ms = np.arange(late_ms, end_ms, gap_ms)[1:]
    found = d.share_delay_ms((at_ms * 1e6).astype(int), 0, end_ms * MS, rate)
    assert found <= late_ms + 1e-3
    needed = 0.9 * rate / 1e3

    def is_enough(delay_ms):
        times = np.append(at_ms[at_ms <= end_ms], end_ms)
        return all(t <= delay_ms + (k + 1) / needed + 1e-4 for k, t in enumerate(times))

    assert is_enough(found)
    assert found == 0 or not is_enough(found - 0.1)


def test_what_is_conserved():
    assert d.conserved(45.0, 90.0) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="above 0"):
        d.conserved(1.0, 0.0)


# The studies as tables, from runs made by hand.

MS = 1_000_000


def write(folder, variants, *, warmup_s, duration_s, repetitions=2):
    """A study of which each variant is a function of repetition: class -> times of answers, response."""
    runs = [
        {
            "format": 1, "id": f"{variant.replace('/', '-')}-{block}", "study": folder.name, "question": "?",
            "testbed": "device", "cell": variant, "levels": {"variant": variant}, "repetition": block,
            "block": block, "order": 0, "seed": 1, "warmup_s": warmup_s, "duration_s": duration_s,
            "classes": [
                {"name": name, "workload": "random-4k", "clients": 1 + (name == "tenant")}
                for name in made(0)
            ],
        }
        for variant, made in variants.items()
        for block in range(repetitions)
    ]  # fmt: skip
    plan = {
        "format": 1, "study": folder.name, "question": "?", "seed": 1, "repetitions": repetitions,
        "factors": {"variant": list(variants)}, "devices": [], "runs": runs, "estimate_s": 1,
    }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(plan))
    for run in runs:
        path = folder / run["id"]
        path.mkdir()
        (path / "run.json").write_text(json.dumps(run))
        (path / "verdict.json").write_text(json.dumps({"status": "valid", "rules": []}))
        cpu = {"driver": {"user_ns": 1_000_000, "system_ns": 3_000_000}}
        (path / "observed.json").write_text(json.dumps({"cpu": cpu}))
        parts = variants[run["levels"]["variant"]](run["repetition"])
        pl.concat([rows(name, at, ms, warmup_s) for name, (at, ms) in parts.items()]).write_parquet(
            path / "requests.parquet"
        )
    return load_study(folder)


def rows(name, completed_ns, response_ms, warmup_s, client=0):
    completed = pl.Series(np.asarray(completed_ns, dtype=np.int64))
    intended = completed - pl.Series(
        np.round(np.broadcast_to(response_ms, completed.len()) * MS).astype(np.int64)
    )
    n = completed.len()
    none = pl.Series([None] * n, dtype=pl.Int64)
    return pl.DataFrame(
        {
            "request": pl.Series(range(n), dtype=pl.UInt64), "class": pl.Series([name] * n, dtype=pl.String),
            "client": pl.Series([client] * n, dtype=pl.UInt32),
            "op": pl.Series(["read"] * n, dtype=pl.String),
            "offset": pl.Series([0] * n, dtype=pl.UInt64),
            "size_bytes": pl.Series([4096] * n, dtype=pl.UInt64),
            "intended_ns": intended, "submitted_ns": intended, "completed_ns": completed,
            "deadline_ns": none, "served_ns": none, "status": pl.Series([0] * n, dtype=pl.Int32),
            "warmup": intended < warmup_s * 1e9,
        }
    )  # fmt: skip


def every(period_ms, from_s, to_s):
    return np.arange(from_s * 1000, to_s * 1000, period_ms) * MS


def overhead_of(us, rate):
    return lambda block: {"reader": (every(1000 / rate, 0, 2), us / 1e3)}


@pytest.fixture
def studies(tmp_path):
    """Of the three studies: a baseline, and a mechanism that is slower, divides well, and wastes half."""
    overhead = {
        "none/latency": overhead_of(100, 1000),
        "none/throughput": overhead_of(100, 1000),
        "io.max/latency": overhead_of(150, 1000),
        "io.max/throughput": overhead_of(150, 800),
    }
    fair = {"a": (every(1, 0, 2), 5), "b": (every(2, 0, 2), 5), "c": (every(4, 0, 2), 5)}
    equal = {name: (every(2, 0, 2), 5) for name in "abc"}
    fairness = {
        "none/weights": lambda _: equal,
        "io.max/weights": lambda _: fair,
        "none/greedy": lambda _: equal,
    }
    priority = {
        "alone": lambda _: {"batch": ([], 1), "urgent": (every(1, 2, 5), 1)},
        "none": lambda _: {"batch": (every(1, 0, 5), 30), "urgent": (every(10, 2, 5), 10)},
        # It waits 0.5 s for the first answer, then has all that it has alone, twice as slow.
        "io.max/50": lambda _: {
            "batch": (every(2, 0, 5), 30),
            "urgent": (every(2, 2.5, 5), np.where(every(2, 2.5, 5) == 2500 * MS, 500, 2)),
        },
    }
    return {
        "overhead": write(tmp_path / "isolation-overhead", overhead, warmup_s=0.5, duration_s=1.5),
        "fairness": write(tmp_path / "isolation-fairness", fairness, warmup_s=0.5, duration_s=1.5),
        "priority": write(tmp_path / "isolation-priority", priority, warmup_s=0.5, duration_s=4.5),
    }


def test_each_study_is_a_table(studies):
    cost = results.overhead(studies["overhead"])
    slow = cost.filter((pl.col("mechanism") == "io.max") & (pl.col("setting") == "throughput")).row(
        0, named=True
    )
    assert slow["p50_us"] == pytest.approx(150) and slow["requests_per_s"] == pytest.approx(800, rel=0.01)
    # 4 ms of processor time over all 1600 requests, the warm-up among them.
    assert slow["cpu_us"] == pytest.approx(2.5)
    shared = results.fairness(studies["fairness"])
    jain = {
        (row["mechanism"], row["setting"]): row["jain"]
        for row in shared.iter_rows(named=True)
        if row["block"] == 0
    }
    assert jain["io.max", "weights"] == pytest.approx(1.0, abs=0.001)
    assert jain["none", "weights"] == pytest.approx(49 / 63, abs=0.001)
    assert jain["none", "greedy"] == pytest.approx(1.0)
    urgent = results.compared(results.priority(studies["priority"]))
    assert set(urgent["mechanism"]) == {"none", "io.max"}
    held = urgent.filter(pl.col("mechanism") == "io.max").row(0, named=True)
    assert held["slowdown"] == pytest.approx(2.0)
    # 500 and 500 of 1000 and 100 requests a second.
    assert held["utilisation"] == pytest.approx(1000 / 1100, rel=0.01)
    assert held["conserved"] == pytest.approx(0.5, rel=0.01)
    assert held["burst_ms"] == 550


def test_a_pause_of_the_host_in_one_baseline_changes_nothing():
    """A table whose third repetition of both baselines met a pause will be compared."""
    rates = {"lone_per_s": 100.0, "all_per_s": 100.0, "urgent_per_s": 10.0, "burst_ms": 50.0}
    struck = {"lone_per_s": 5.0, "all_per_s": 5.0, "p99_ms": 90.0}
    rows = [
        {"mechanism": name, "setting": "", "block": block} | rates | {"p99_ms": p99_ms} | added
        for block, added in enumerate(({}, {}, struck))
        for name, p99_ms, added in (("alone", 1.0, added), ("none", 4.0, added), ("sfq", 2.0, {}))
    ]
    found = results.compared(pl.DataFrame(rows)).filter(pl.col("mechanism") == "sfq")
    for column, expected in (("slowdown", 2.0), ("utilisation", 1.0), ("conserved", 1.0)):
        assert found[column].to_list() == [expected] * 3
    without = pl.DataFrame([row for row in rows if row["mechanism"] != "alone"])
    assert results.compared(without).is_empty()


def test_tenants_are_a_table(tmp_path):
    """A newcomer beside two tenants will have its share at once, after a second, and never."""
    both = {"tenant": (every(4, 0, 9), 20)}
    made = {
        "none": lambda _: both | {"newcomer": (every(5, 3, 9)[1:], 5)},
        "bfq": lambda _: (
            both | {"newcomer": (every(5, 4, 9), np.where(every(5, 4, 9) == 4000 * MS, 1000, 5))}
        ),
        "kyber": lambda _: both | {"newcomer": (every(200, 3, 9)[1:], 200)},
    }
    study = write(tmp_path / "isolation-tenants", made, warmup_s=1, duration_s=8)
    # The second tenant.
    for folder in tmp_path.glob("isolation-tenants/*-*/"):
        more = rows("tenant", every(8, 0, 9), 40, 1, client=1)
        table = pl.concat([pl.read_parquet(folder / "requests.parquet"), more])
        table.write_parquet(folder / "requests.parquet")
    found = results.tenants(load_study(study.path))
    first = {row["mechanism"]: row for row in found.iter_rows(named=True)}
    assert {row["tenants"] for row in first.values()} == {2}
    # 250 and 125 requests a second.
    assert first["none"]["jain"] == pytest.approx(375**2 / (2 * (250**2 + 125**2)), rel=1e-3)
    assert first["none"]["p99_ms"] == pytest.approx(40) and first["none"]["worst"] == pytest.approx(1)
    # 200/s are more than a third of 575/s; 5/s are not.
    assert first["none"]["delta_ms"] == pytest.approx(0, abs=1e-3)
    needed_per_s = 0.9 * first["bfq"]["requests_per_s"] / 3
    assert first["bfq"]["delta_ms"] == pytest.approx(1000 - 1000 / needed_per_s)
    assert first["kyber"]["delta_ms"] == math.inf
    assert results.of_tenants(found, "delta_ms", "kyber", 2).estimate == math.inf
    assert results.of_tenants(found, "jain", "none", 3) is None
    lines = summary.tenants(found)
    assert lines["n"].to_list() == [2, 2, 2] and lines["mechanism"].to_list() == ["none", "kyber", "bfq"]
    assert len(encode(figures.tenants(found), "png")) > 10_000


def _of_rates(slowdowns, utilisations):
    found = zip((20, 50, 80, 100, 125), slowdowns, utilisations, strict=True)
    return pl.DataFrame(
        [
            {"mechanism": "io.weight", "setting": str(vrate), "slowdown": slow, "utilisation": use}
            for vrate, slow, use in found
        ]
        + [{"mechanism": "none", "setting": "", "slowdown": 12.0, "utilisation": 1.0}]
    )


def test_the_parameters_of_iocost_are_chosen():
    rows = _of_rates((2.0, 2.1, 2.3, 5.0, 9.0), (0.2, 0.5, 0.8, 0.98, 1.0))
    chosen = {one.name: one for one in qos.solutions(rows)}
    assert chosen["isolation"].vrate == 50 and chosen["bandwidth"].vrate == 100
    assert chosen["bandwidth"].slowdown == 5.0
    model = dict(zip(qos.MODEL, range(10, 70, 10), strict=True))
    text = qos.parameters(model, list(chosen.values()))
    half, whole = (f"rbps={n} rseqiops={2 * n} rrandiops={3 * n} wbps={4 * n}" for n in (5, 10))
    assert text.count(f"MAJ:MIN ctrl=user model=linear {half} ") == 1
    assert text.count(f"MAJ:MIN ctrl=user model=linear {whole} ") == 1
    assert text.count("MAJ:MIN enable=1 ctrl=user rpct=0 wpct=0 min=100.00 max=100.00") == 2
    # Runs report the scaled model that was set.
    costs = [{"model": {n: 100 * p for n in qos.MODEL}, "scale_percent": p * 50} for p in (1, 2, 4)]
    controllers = [{"controllers": {"cost": {"loop0": cost | {"calibrated": True}}}} for cost in costs]
    study = SimpleNamespace(valid_runs=[SimpleNamespace(observed=observed) for observed in controllers])
    assert qos.models(study) == dict.fromkeys(qos.MODEL, 200.0)
    # A host without iocost skips all of its cells.
    assert qos.solutions(rows.filter(pl.col("mechanism") == "none")) == []
    assert "no parameters" in qos.parameters({}, [])
    assert len(encode(figures.rates(rows), "png")) > 10_000


def test_the_slowdown_by_writeback_is_paired():
    rows = pl.DataFrame(
        [
            {"scheduler": name, "writers": writers, "block": block,
             "p50_ms": base * (factor if writers else 1), "p99_ms": None,
             "requests_per_s": 10.0, "written_mb_s": 5.0 * writers}
            for name, factor in (("none", 3.0), ("bfq", 1.5))
            for block, base in enumerate((1.0, 2.0, 4.0))
            for writers in (0, 1)
        ]
    )  # fmt: skip
    found = results.slowdowns(rows, "p50_ms")
    assert {name: one.estimate for name, one in found.items()} == pytest.approx({"none": 3.0, "bfq": 1.5})
    assert found["none"].n == 3 and results.slowdowns(rows, "p99_ms") == {}
    # A second run of one cell and block, as duplicates are, is no pair.
    doubled = pl.concat([rows, rows.head(1)])
    assert results.slowdowns(doubled, "p50_ms")["none"].n == 3
    lines = summary.writeback(rows)
    assert lines["n"].to_list() == [3, 3] and lines["99th percentile, beside / alone"].to_list() == ["", ""]
    assert lines["median, beside / alone"].to_list()[0].startswith("3.00")


def test_each_cell_has_its_interval():
    """Geometric means but of shares and delays; arithmetic where a rate is 0; paired ratios of rates."""
    rows = pl.DataFrame(
        {
            "block": [0, 1, 2],
            "p50_us": [1.0, 2.0, 4.0],
            "jain": [0.9, 1.0, 1.0],
            "conserved": [0.0, 0.5, 1.0],
            "p99_us": [1.0, None, 2.0],
            "requests_per_s": [100.0, 200.0, 400.0],
        }
    )
    found = results.over_repetitions(rows, "p50_us")
    # Student's t with 2 degrees of freedom: 4.303 standard errors of the logarithms, whose deviation is ln 2.
    half = 4.302653 * math.log(2) / math.sqrt(3)
    ends = (2 * math.exp(-half), 2 * math.exp(half))
    assert (found.estimate, found.low, found.high) == pytest.approx((2, *ends))
    jain = results.over_repetitions(rows, "jain")
    assert jain.estimate == pytest.approx(29 / 30) and jain.high == 1.0
    assert results.over_repetitions(rows, "conserved").estimate == pytest.approx(0.5)
    assert results.over_repetitions(rows, "p99_us") is results.over_repetitions(rows, "none") is None
    free = rows.with_columns(requests_per_s=2 * pl.col("requests_per_s"))
    assert results.rate_percent(rows.reverse(), free).estimate == pytest.approx(50)
    assert results.rate_percent(rows, free.clear()) is None


def test_the_page_is_drawn(studies):
    cost, shared = results.overhead(studies["overhead"]), results.fairness(studies["fairness"])
    urgent = results.compared(results.priority(studies["priority"]))
    lines = summary.summary(cost, shared, urgent)
    assert lines["mechanism"].to_list() == ["none", "io.max"]
    assert lines["of the rate (%)"].to_list() == ["100", "80.0"]
    assert lines["setting"].to_list() == ["", "50"] and lines["Jain, greedy"].to_list() == ["1.00", ""]
    for figure in (
        figures.overhead(cost),
        figures.fairness(shared),
        figures.priority(urgent),
        figures.bursts(urgent),
    ):
        assert len(encode(figure, "png")) > 10_000


def test_what_a_host_lacks_is_listed(studies):
    folder = studies["priority"].path / "io.max-50-0"
    rule = {"rule": "R-CONTROL", "status": "skipped", "reason": "class batch: this kernel has no io.max"}
    (folder / "verdict.json").write_text(json.dumps({"status": "skipped", "rules": [rule]}))
    found = results.skipped({"priority": load_study(studies["priority"].path)})
    assert found.rows() == [("priority", "io.max/50", "R-CONTROL: class batch: this kernel has no io.max")]
