"""The isolation benchmark: every desideratum against numbers made by hand, and its properties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.isolation import desiderata as d

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


def test_what_is_conserved():
    assert d.conserved(45.0, 90.0) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="above 0"):
        d.conserved(1.0, 0.0)
