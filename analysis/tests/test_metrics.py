"""Every metric against numbers computed by hand, its properties, and other implementations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir import metrics

INF, NAN = math.inf, math.nan
positive = st.floats(1e-6, 1e9, allow_nan=False)


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([4, 1, 3, 2], 0.5, 2),  # rank ceil(2) = 2
        ([4, 1, 3, 2], 0.75, 3),
        ([4, 1, 3, 2], 1.0, 4),
        (range(1, 21), 0.95, 19),  # 0.95 * 20 is 19.000000000000004 in floats
        (range(1, 101), 0.99, 99),
        ([1, 2, INF, INF], 0.5, 2),
        ([1, 2, INF, INF], 0.75, INF),
        ([5, 6], 0.95, None),  # would only be the maximum
        ([], 0.5, None),
    ],
)
def test_quantile_by_hand(values, q, expected):
    assert metrics.quantile(list(values), q) == expected


def test_quantile_refuses_what_has_no_answer():
    with pytest.raises(ValueError, match="NaN"):
        metrics.quantile([1.0, NAN], 0.5)
    with pytest.raises(ValueError, match=r"\(0, 1\]"):
        metrics.quantile([1.0], 0.0)


@given(st.lists(positive, min_size=4, max_size=200), st.sampled_from([0.25, 0.5, 0.75]))
def test_quantile_agrees_with_numpy(values, q):
    # These q are exact in binary, so both see the same rank.
    assert metrics.quantile(values, q) == np.quantile(values, q, method="inverted_cdf")


@given(st.lists(positive, min_size=100, max_size=300), st.randoms())
def test_quantiles_are_ordered_observed_and_blind_to_order(values, random):
    found = [metrics.quantile(values, q) for q in (0.5, 0.9, 0.95, 0.99, 1.0)]
    assert found == sorted(found)
    assert set(found) <= set(values)
    shuffled = values.copy()
    random.shuffle(shuffled)
    assert [metrics.quantile(shuffled, q) for q in (0.5, 0.9, 0.95, 0.99, 1.0)] == found


def test_mean_of_nothing_is_nothing_and_of_the_unfinished_is_unbounded():
    assert metrics.mean([]) is None
    assert metrics.mean([1, 2, 6]) == 3
    assert metrics.mean([1, INF]) == INF


def test_share_within_counts_the_bound_itself():
    assert metrics.share_within([1, 2, 3, INF], 2) == 0.5
    assert metrics.share_within([], 2) is None


def test_deadline_miss_share_by_hand():
    completed = [10, 21, NAN, 40, 5, 7]
    deadline = [10, 20, 30, 50, NAN, 8]
    status = [0, 0, 0, 5, 0, 0]
    # In time, late, never, failed, no deadline (not counted), in time.
    assert metrics.deadline_miss_share(completed, deadline, status) == 3 / 5
    assert metrics.deadline_miss_share([1], [NAN], [0]) is None


def test_throughput_is_in_decimal_megabytes():
    assert metrics.throughput_mb_s([1_500_000, 500_000], 4) == 0.5
    assert metrics.throughput_mb_s([], 4) == 0


def test_jain_by_hand():
    assert metrics.jain_index([1, 1, 1, 1]) == 1
    assert metrics.jain_index([1, 0, 0, 0]) == 0.25
    assert metrics.jain_index([1, 2, 3]) == pytest.approx(36 / (3 * 14))
    # Two to one as promised is fair.
    assert metrics.jain_index([20, 10], [2, 1]) == 1
    assert metrics.jain_index([0, 0]) is None
    assert metrics.jain_index([]) is None


@pytest.mark.parametrize(("x", "w"), [([-1, 2], None), ([1, 2], [1]), ([1, 2], [1, 0])])
def test_jain_refuses_nonsense(x, w):
    with pytest.raises(ValueError):
        metrics.jain_index(x, w)


@given(st.lists(positive, min_size=1, max_size=50), positive)
def test_jain_lies_between_1_over_n_and_1_whatever_the_unit(x, unit):
    index = metrics.jain_index(x)
    assert 1 / len(x) - 1e-9 <= index <= 1 + 1e-9
    assert metrics.jain_index([v * unit for v in x]) == pytest.approx(index)
    assert metrics.jain_index(x[::-1]) == pytest.approx(index)


def test_reservations_slowdown_and_what_follows_from_it():
    assert metrics.share_error(0.4, 0.5) == pytest.approx(-0.2)
    assert metrics.slowdown(30, 10) == 3
    assert metrics.isolation(30, 10) == pytest.approx(1 / 3)
    assert metrics.interference(30, 10) == 2
    with pytest.raises(ValueError):
        metrics.slowdown(30, 0)
    with pytest.raises(ValueError):
        metrics.share_error(1, 0)


def test_union_by_hand():
    # [0,4) and [2,6) overlap, [8,9) stands alone, [20,30) is cut at 24, [40,50) lies outside.
    start, end = [8, 0, 2, 20, 40], [9, 4, 6, 30, 50]
    assert metrics.union_ns(start, end, (0, 24)) == 6 + 1 + 4
    assert metrics.union_ns([], [], (0, 24)) == 0
    assert metrics.utilisation(start, end, (0, 24)) == 11 / 24


@given(st.lists(st.tuples(st.integers(-20, 120), st.integers(0, 60)), max_size=30))
def test_union_agrees_with_marking_every_nanosecond(intervals):
    marked = {t for s, length in intervals for t in range(max(s, 0), min(s + length, 100))}
    start, end = [s for s, _ in intervals], [s + length for s, length in intervals]
    assert metrics.union_ns(start, end, (0, 100)) == len(marked)


def test_work_conservation_by_hand():
    # One request waits from 0 to 10 before an idle device and is served until 20; the next is served at once.
    queued, issued, completed = [0, 30], [10, 30], [20, 40]
    assert metrics.work_conservation(queued, issued, completed, (0, 50)) == 20 / 30
    assert metrics.work_conservation([0, 0], [0, 10], [10, 20], (0, 50)) == 1
    assert metrics.work_conservation([], [], [], (0, 50)) is None


def test_mean_number_by_hand():
    # Two requests for 10 of 20 ns, one of them for 5 more: (10 + 15) / 20.
    assert metrics.mean_number([0, 0], [10, 15], (0, 20)) == 1.25


def test_arrival_counts_leave_out_a_part_of_an_interval():
    times = [0, 5, 10, 19, 25, -1, 30]
    assert metrics.counts(times, 10, (0, 29)).tolist() == [2, 2]
    assert metrics.counts(times, 10, (0, 30)).tolist() == [2, 2, 1]


def test_burstiness_by_hand():
    assert metrics.peak_to_mean([1, 2, 3]) == 1.5
    assert metrics.peak_to_mean([0, 0]) is None
    # Mean 2, unbiased variance ((1)^2 + 0 + 1^2) / 2 = 1.
    assert metrics.index_of_dispersion([1, 2, 3]) == 0.5
    assert metrics.index_of_dispersion([4, 4, 4]) == 0
    assert metrics.index_of_dispersion([4]) is None


def test_poisson_arrivals_have_dispersion_one():
    times = np.cumsum(np.random.default_rng(7).exponential(1e6, 400_000)).astype(np.int64)
    arrivals = metrics.counts(times, 20_000_000, (0, int(times[-1])))
    # 20,000 intervals: the standard error of the index is sqrt(2 / n) = 0.01.
    assert metrics.index_of_dispersion(arrivals) == pytest.approx(1, abs=0.04)


def test_promises():
    assert metrics.attained(9.9, 10, upper=True) is True
    assert metrics.attained(INF, 10, upper=True) is False
    assert metrics.attained(9.9, 10, upper=False) is False
    assert metrics.attained(None, 10, upper=True) is None
    assert metrics.shares([1, 3]) == [0.25, 0.75]
    assert metrics.shares([0, 0]) is None
