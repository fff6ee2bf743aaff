"""Intervals against a table, scipy and their properties; comparisons against pairs made by hand."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from weir.statistics import compare, difference_interval, mean_interval, ratio_interval, summarise

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
    x = [3.0, 5.0, 4.0, 8.0, 6.5]
    assert mean_interval(x, method) == mean_interval(x, method)
    assert mean_interval(x, method).method == method


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


def test_a_level_that_never_meets_the_baseline_is_left_out():
    rows = [("none", "text", 0, 0, 1.0), ("bfq", "text", 1, 1, 1.0)]
    assert compare(table(rows), "x", "scheduler", "none", ["class"]).is_empty()
