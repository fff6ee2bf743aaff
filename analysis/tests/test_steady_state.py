"""Steady state against series whose autocorrelation, drift and warm-up are known, and against brute force."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from weir.steady_state import (
    autocorrelation,
    autocorrelation_time,
    drift,
    effective_beyond,
    effective_size,
    mser5,
    quantile_is_supported,
)


def correlated(rng, runs, n, lag1):
    """Rows of standard normal values whose neighbours correlate by `lag1` (an AR(1) process)."""
    noise = rng.standard_normal((runs, n)) * math.sqrt(1 - lag1**2)
    noise[:, 0] = rng.standard_normal(runs)
    return lfilter([1], [1, -lag1], noise, axis=1)


def responses(rng, runs, n, lag1, sigma=0.8):
    """Lognormal responses; their coefficient of variation is 0.95 at sigma 0.8."""
    return np.exp(sigma * correlated(rng, runs, n, lag1))


def test_a_run_without_drift_is_seldom_called_drifting():
    rng = np.random.default_rng(1)
    for lag1 in (0.0, 0.5, 0.8):
        called = np.mean([drift(x).drifts is True for x in responses(rng, 600, 4000, lag1)])
        print(f"no drift, lag-1 autocorrelation {lag1}: flagged {called:.3f}")
        assert called <= 0.05, (lag1, called)


def test_a_response_that_doubles_over_the_run_is_called_drifting():
    rng = np.random.default_rng(2)
    ramp = np.linspace(1, 2, 4000)
    for lag1 in (0.0, 0.5, 0.8):
        found = [drift(x * ramp) for x in responses(rng, 300, 4000, lag1)]
        called = np.mean([one.drifts is True for one in found])
        print(f"a doubling, lag-1 autocorrelation {lag1}: flagged {called:.3f}")
        assert called >= 0.95, (lag1, called)
        assert np.median([one.ratio for one in found]) == pytest.approx(2, rel=0.1)


def test_a_drift_at_the_ratio_that_it_names_is_found_as_often_as_it_says():
    rng = np.random.default_rng(3)
    named = np.median([drift(x).detectable_ratio for x in responses(rng, 300, 4000, 0.8)])
    ramp = np.exp(np.linspace(0, math.log(named), 4000))
    called = np.mean([drift(x * ramp).drifts is True for x in responses(rng, 400, 4000, 0.8)])
    assert 0.9 <= called <= 0.99, (named, called)


def test_a_run_too_short_to_tell_says_how_long_it_must_be():
    rng = np.random.default_rng(4)
    short = responses(rng, 1, 300, 0.95)[0]
    found = drift(short)
    assert found.drifts is None
    assert found.needed > 1
    longer = responses(rng, 1, math.ceil(300 * found.needed * 3), 0.95)[0]
    assert drift(longer).drifts is not None


@pytest.mark.parametrize("values", [[], [5.0], [math.inf] * 40, [0.0] * 40])
def test_nothing_to_test_is_no_drift_and_no_error(values):
    assert drift(values).drifts is None


def test_equal_responses_do_not_drift():
    assert drift([3.0] * 200).drifts is False


def test_unfinished_requests_at_the_end_are_a_drift():
    rng = np.random.default_rng(5)
    x = responses(rng, 1, 2000, 0.3)[0]
    x[1000:][rng.random(1000) < 0.4] = math.inf
    assert drift(x).drifts is True


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=60))
def test_autocorrelation_agrees_with_its_definition(values):
    x = np.asarray(values) - np.mean(values)
    found = autocorrelation(values)
    assert found.size == x.size
    if np.ptp(values) > 1e-3:
        expected = [x[: x.size - lag] @ x[lag:] / (x @ x) for lag in range(x.size)]
        assert found == pytest.approx(expected, abs=1e-6)


def test_the_effective_size_of_an_autoregression_is_known():
    rng = np.random.default_rng(6)
    for lag1 in (0.0, 0.5, 0.8, 0.95):
        times = [autocorrelation_time(x) for x in correlated(rng, 60, 20_000, lag1)]
        assert np.mean(times) == pytest.approx((1 + lag1) / (1 - lag1), rel=0.08), lag1


def test_the_effective_size_gives_the_variance_of_the_mean():
    rng = np.random.default_rng(7)
    x = responses(rng, 500, 3000, 0.8)
    said = np.mean([row.var() / effective_size(row) for row in x])
    assert said == pytest.approx(x.mean(axis=1).var(), rel=0.25)


def test_the_effective_size_is_of_ranks_where_a_response_is_unbounded():
    x = np.tile([1.0, 2.0, math.inf, 1.5], 50)
    assert 1 <= effective_size(x) <= x.size
    assert effective_size([1.0]) == 1


def test_a_tail_of_one_slow_moment_does_not_support_its_quantile():
    rng = np.random.default_rng(8)
    x = rng.exponential(1, 10_000)
    assert effective_beyond(x, 0.99) == pytest.approx(100, rel=0.2)
    assert quantile_is_supported(x, 0.99)
    x[4000:4100] += 100
    assert effective_beyond(x, 0.99) < 2
    assert not quantile_is_supported(x, 0.99)
    assert quantile_is_supported(x, 0.5)


def test_a_quantile_that_is_biased_is_not_supported():
    """At lag-1 = 0.99, the 0.99 quantile of 2,000 requests is far too low, and is mostly refused."""
    rng = np.random.default_rng(9)
    x = responses(rng, 200, 2000, 0.99, sigma=1.0)
    true = math.exp(2.3263478740408408)
    estimates = np.quantile(x, 0.99, axis=1, method="inverted_cdf")
    assert np.median(estimates) < 0.8 * true
    assert np.mean([quantile_is_supported(row, 0.99) for row in x]) < 0.1


def test_mser5_finds_a_warm_up_and_leaves_steady_state_alone():
    rng = np.random.default_rng(10)
    steady = rng.exponential(1, 2000)
    assert mser5(steady) <= 200
    cold = steady.copy()
    cold[:400] += 4
    assert 395 <= mser5(cold) <= 420
    assert mser5(np.concatenate((steady[:500], steady[:1500] + 20))) in (None, 500)
    assert mser5(np.linspace(1, 20, 2000)) is None
    assert mser5([1.0] * 10) == 0


@given(st.lists(st.floats(0.01, 100), min_size=25, max_size=120))
def test_mser5_agrees_with_its_definition(values):
    means = np.asarray(values)[: len(values) // 5 * 5].reshape(-1, 5).mean(axis=1)
    k = means.size
    statistic = [((means[d:] - means[d:].mean()) ** 2).sum() / (k - d) ** 2 for d in range(k - 4)]
    best = mser5(values)
    if best is None:
        assert min(statistic[k // 2 + 1 :], default=math.inf) <= min(statistic) + 1e-9
    else:
        assert statistic[best // 5] == pytest.approx(min(statistic), rel=1e-6, abs=1e-9)
