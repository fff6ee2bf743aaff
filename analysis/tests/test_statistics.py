"""Intervals against a table, scipy and their properties; comparisons against pairs made by hand."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from weir.statistics import (
    common_spread,
    compare,
    difference_interval,
    mean_interval,
    ratio_interval,
    summarise,
)

METHODS = ("t", "bootstrap-percentile", "bootstrap-bca")
samples = st.lists(st.floats(0.1, 1000), min_size=2, max_size=8)


def test_t_interval_by_hand():
    # Mean 2, standard deviation 1, t(0.975, 2) = 4.302653 (any table): 2 -+ 4.302653 / sqrt(3).
    interval = mean_interval([1, 2, 3])
    assert interval.low == pytest.approx(2 - 2.484138, abs=1e-5)
    assert interval.high == pytest.approx(2 + 2.484138, abs=1e-5)
    assert (interval.estimate, interval.n, interval.method) == (2, 3, "t")


def test_t_interval_agrees_with_scipy():
    x = np.random.default_rng(3).normal(10, 2, 12)
    low, high = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    interval = mean_interval(x)
    assert (interval.low, interval.high) == pytest.approx((low, high))


@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover_the_true_mean_about_as_often_as_they_say(method):
    rng = np.random.default_rng(11)
    tries = 300 if method == "t" else 60
    covered = 0
    for _ in range(tries):
        interval = mean_interval(rng.normal(5, 1, 20), method)
        covered += interval.low <= 5 <= interval.high
    # Bootstrap intervals of 20 values are a little narrow; three standard errors below 0.92.
    assert covered / tries > 0.92 - 3 * math.sqrt(0.08 * 0.92 / tries)


@given(samples)
def test_t_interval_holds_the_mean_and_is_blind_to_order(x):
    interval = mean_interval(x)
    assert mean_interval(x[::-1]).estimate == pytest.approx(interval.estimate)
    if len(set(x)) > 1:
        assert interval.low <= interval.estimate <= interval.high


@pytest.mark.parametrize("method", METHODS[1:])
def test_bootstrap_intervals_are_the_same_every_time(method):
    x = [3.0, 5.0, 4.0, 8.0, 6.5, 3.5, 5.5, 4.5, 7.0, 6.0]
    assert mean_interval(x, method) == mean_interval(x, method)
    assert mean_interval(x, method).method == method


@pytest.mark.parametrize("method", METHODS[1:])
def test_a_bootstrap_of_few_repetitions_is_refused(method):
    interval = mean_interval(range(9), method)
    assert (interval.estimate, interval.low, interval.method) == (4, None, "none")
    assert interval.note == "n = 9: a bootstrap needs at least 10 repetitions"


def test_the_log_interval_is_that_of_the_logarithms():
    x = [1.0, 10.0, 100.0]
    interval = mean_interval(x, "log-t")
    low, high = stats.ttest_1samp(np.log(x), 0).confidence_interval(0.95)
    assert interval.estimate == pytest.approx(10)
    assert (interval.low, interval.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert interval.estimand == "geometric mean of runs"
    with pytest.raises(ValueError, match="above 0"):
        mean_interval([0.0, 1.0], "log-t")


def cells(rng, draw, n):
    """A study of 12 cells whose medians differ tenfold, with `n` repetitions each, as a table."""
    rows = []
    for cell in range(12):
        rows += [(str(cell), "text", r, r, float(x) * 10 ** (cell / 11)) for r, x in enumerate(draw(rng, n))]
    return table(rows)


DRAWS = {
    "normal, 10 %": lambda rng, n: rng.normal(1, 0.1, n),
    "lognormal, sigma 0.3": lambda rng, n: rng.lognormal(0, 0.3, n),
    "lognormal, sigma 1": lambda rng, n: rng.lognormal(0, 1, n),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("pool", [False, True])
@pytest.mark.parametrize("n", [3, 10])
def test_an_interval_holds_the_estimand_that_it_names_in_93_to_97_of_100_cells(name, pool, n):
    draw = DRAWS[name]
    rng = np.random.default_rng(n)
    # The geometric mean of runs, to four digits.
    true = math.exp(float(np.log(draw(rng, 2_000_000)).mean()))
    held = []
    # 170 studies of 12 cells: 2,040 intervals.
    for _ in range(170):
        found = summarise(cells(rng, draw, n), "x", ["scheduler"], "log-t", pool=pool)
        assert set(found["estimand"]) == {"geometric mean of runs"}
        at = true * 10 ** (found["scheduler"].cast(pl.Float64) / 11)
        held.append(((found["low"] <= at) & (at <= found["high"])).mean())
    print(f"{name}, n = {n}, {'pooled' if pool else 'own'} variance: coverage {np.mean(held):.3f}")
    assert 0.93 <= np.mean(held) <= 0.97


def test_a_pooled_interval_of_three_repetitions_is_far_narrower():
    rng = np.random.default_rng(9)
    data = cells(rng, DRAWS["lognormal, sigma 1"], 3)
    own, pooled = (summarise(data, "x", ["scheduler"], "log-t", pool=pool) for pool in (False, True))
    width = [float((np.log(f["high"]) - np.log(f["low"])).median()) for f in (own, pooled)]
    assert width[1] < width[0] / 1.5
    assert pooled["estimate"].to_list() == own["estimate"].to_list()


def test_spreads_that_differ_are_not_pooled():
    rng = np.random.default_rng(4)
    groups = [rng.normal(0, 1, 5), rng.normal(0, 1, 5), rng.normal(0, 30, 5)]
    assert common_spread(groups) is None
    pooled = common_spread(groups[:2])
    assert pooled.degrees == 8
    assert pooled.variance == pytest.approx(np.mean([g.var(ddof=1) for g in groups[:2]]))
    assert common_spread([[1.0, 2.0]]) is None


def test_a_value_of_zero_keeps_a_table_to_the_mean_of_runs():
    data = table([("none", "text", 0, 0, 0.0), ("none", "text", 1, 1, 4.0), ("bfq", "text", 0, 0, 2.0)])
    found = summarise(data, "x", ["scheduler"], "log-t")
    assert found["estimand"].to_list() == ["mean of runs"] * 2
    assert found["estimate"].to_list() == [2, 2]


def test_one_repetition_has_no_interval():
    interval = mean_interval([7.0])
    assert (interval.estimate, interval.low, interval.high, interval.n) == (7, None, None, 1)
    assert interval.note == "n = 1: no interval"


@pytest.mark.parametrize("method", METHODS)
def test_equal_repetitions_claim_no_certainty(method):
    interval = mean_interval([0.0, 0.0, 0.0], method)
    assert (interval.estimate, interval.low, interval.high) == (0, None, None)


def test_an_unbounded_repetition_makes_the_estimate_unbounded():
    interval = mean_interval([1.0, math.inf])
    assert interval.estimate == math.inf
    assert interval.low is None


def test_bounds_cut_an_interval():
    interval = mean_interval([0.0, 0.01, 0.05], bounds=(0, 1))
    assert interval.low == 0
    assert interval.high < 1
    assert interval.note == "cut at 0"


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_nothing_has_no_mean(values):
    with pytest.raises(ValueError):
        mean_interval(values)


def test_an_unknown_method_is_an_error():
    with pytest.raises(ValueError, match="jackknife"):
        mean_interval([1.0, 2.0], "jackknife")


def test_ratio_by_hand():
    # Ratios 2, 2, 4: geometric mean 16^(1/3); their logarithms in base 2 are 1, 1, 2.
    interval = ratio_interval([2, 4, 8], [1, 2, 2])
    assert interval.estimate == pytest.approx(16 ** (1 / 3))
    half = 4.302653 * np.std([1, 1, 2], ddof=1) / math.sqrt(3)
    assert interval.low == pytest.approx(2 ** (4 / 3 - half), rel=1e-5)
    assert interval.high == pytest.approx(2 ** (4 / 3 + half), rel=1e-5)


@given(st.lists(st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)), min_size=2, max_size=8))
def test_the_inverse_ratio_has_the_inverse_interval(pairs):
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    forth, back = ratio_interval(a, b), ratio_interval(b, a)
    assert forth.estimate == pytest.approx(1 / back.estimate)
    if forth.low is not None and back.high is not None:
        assert forth.low == pytest.approx(1 / back.high, rel=1e-6)


def test_zero_has_a_difference_but_no_ratio():
    with pytest.raises(ValueError, match="difference"):
        ratio_interval([0, 1], [1, 1])
    assert difference_interval([0.0, 0.2], [0.1, 0.1]).estimate == pytest.approx(0)


def table(rows):
    schema = ["scheduler", "class", "repetition", "block", "x"]
    return pl.DataFrame(rows, schema=schema, orient="row")


ROWS = [
    ("none", "text", 0, 0, 10.0),
    ("none", "text", 1, 1, 40.0),
    ("bfq", "text", 0, 0, 5.0),
    ("bfq", "text", 1, 1, 20.0),
    ("bfq", "text", 2, 2, 90.0),
]


def test_summaries_are_over_repetitions():
    found = summarise(table(ROWS), "x", ["scheduler", "class"])
    assert found["estimate"].to_list() == [25, pytest.approx(115 / 3)]
    assert found["n"].to_list() == [2, 3]


def test_cells_are_never_mixed_as_repetitions():
    with pytest.raises(ValueError, match="several rows of one repetition"):
        summarise(table(ROWS), "x", ["class"])


def test_pairs_share_a_block_and_lonely_runs_are_left_out():
    found = compare(table(ROWS), "x", "scheduler", "none", ["class", "scheduler"])
    # Block 2 has no baseline. Both ratios are 1/2 though the blocks differ fourfold.
    assert found.select("scheduler", "estimate", "n").rows() == [("bfq", pytest.approx(0.5), 2)]


def test_a_level_that_never_meets_the_baseline_says_so():
    rows = [("none", "text", 0, 0, 1.0), ("bfq", "text", 1, 1, 1.0)]
    found = compare(table(rows), "x", "scheduler", "none", ["class"])
    assert found.select("estimate", "n", "note").rows() == [(None, 0, "no pair of valid runs")]


def test_a_metric_that_a_class_does_not_have_is_no_comparison():
    rows = [("none", "video", 0, 0, None), ("bfq", "video", 0, 0, None), *ROWS]
    assert compare(table(rows), "x", "scheduler", "none", ["class"])["class"].to_list() == ["text"]


def test_no_comparison_vanishes_with_an_overloaded_run():
    """Unbounded or zero values in a cell leave its row, with a sign where there is one."""
    endless = math.inf
    cases = {
        "treated": ([endless, 2.0], [1.0, 1.0], endless, "unbounded at the level in 1 of 2 blocks"),
        "baseline": ([1.0, 2.0], [endless, endless], 0.0, "unbounded at the baseline in 2 of 2 blocks"),
        "both": ([endless, 2.0], [endless, 1.0], None, "unbounded at both levels (1 and 1 of 2 blocks)"),
        "zero": ([0.0, 2.0], [1.0, 1.0], None, "not above 0 in all blocks"),
        "fine": ([2.0, 2.5], [1.0, 1.0], math.sqrt(5), ""),
    }
    rows = []
    for name, (treated, baseline, _, _) in cases.items():
        rows += [("bfq", name, block, block, value) for block, value in enumerate(treated)]
        rows += [("none", name, block, block, value) for block, value in enumerate(baseline)]
    found = compare(table(rows), "x", "scheduler", "none", ["class"])
    assert found["class"].to_list() == list(cases)
    for (name, estimate, note), case in zip(
        found.select("class", "estimate", "note").rows(), cases.values(), strict=True
    ):
        assert estimate == (None if case[2] is None else pytest.approx(case[2])), name
        assert note == case[3], name


def test_comparisons_of_a_table_are_one_family():
    rng = np.random.default_rng(2)
    rows = []
    for name in ("a", "b", "c", "d"):
        for block in range(5):
            base = rng.lognormal(0, 0.5)
            rows.append(("none", name, block, block, base))
            rows.append(("bfq", name, block, block, base * rng.lognormal(2 if name == "a" else 0, 0.2)))
    found = compare(table(rows), "x", "scheduler", "none", ["class"])
    assert found["p"][0] < 0.01
    assert (found["p"] >= 0.05)[1:].all()
    # The interval of the family is wider than a comparison's own, unless the common variance is smaller.
    assert (found["family_low"] < found["estimate"]).all()
    assert (found["estimate"] < found["family_high"]).all()
    flipped = compare(table(rows), "x", "scheduler", "bfq", ["class"])
    assert flipped["family_low"].to_list() == pytest.approx((1 / found["family_high"]).to_list())
