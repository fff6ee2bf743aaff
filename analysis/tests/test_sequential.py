"""Boundaries against published tables and another integral; errors and runs of simulated studies."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import special, stats

from weir import sequential
from weir.sequential import half_width, interval, look_level, looks, nominal_levels, reached, spent

STUDIES = 20_000
CHANGE = math.log1p(0.1)

#: Jennison and Turnbull, "Group Sequential Methods" (1999), table 2.1: Pocock's constants at two-sided 5 %.
POCOCK = {2: 2.178, 3: 2.289, 4: 2.361, 5: 2.413}


def critical(levels):
    return -stats.norm.ppf(np.array(levels) / 2)


@pytest.mark.parametrize(("count", "constant"), POCOCK.items())
def test_boundaries_are_the_constants_of_pocock(count, constant, monkeypatch):
    """What Pocock's boundary spends up to each look, by another integration, gives this boundary back."""
    n = np.arange(1, count + 1)
    # Correlation of the standardised means after i and j groups.
    correlation = np.sqrt(np.minimum.outer(n, n) / np.maximum.outer(n, n))
    uncrossed = [1 - math.erf(constant / math.sqrt(2))]
    for k in n[1:]:
        normal = stats.multivariate_normal(cov=correlation[:k, :k], seed=1, abseps=1e-7, maxpts=1_000_000)
        uncrossed.append(1 - float(normal.cdf(np.full(k, constant), lower_limit=np.full(k, -constant))))
    assert uncrossed[-1] == pytest.approx(0.05, abs=1e-4)
    shares = dict(zip(n / count, uncrossed, strict=True))
    monkeypatch.setattr(sequential, "spent", lambda share, level: shares[share])
    nominal_levels.cache_clear()
    found = critical(nominal_levels(tuple(int(k) for k in n), 0.05))
    nominal_levels.cache_clear()
    assert found == pytest.approx(constant, abs=2e-3)


def test_boundaries_of_lan_and_demets():
    """Proschan, Lan and Wittes, "Statistical Monitoring of Clinical Trials" (2006): five equal looks."""
    found = critical(nominal_levels((1, 2, 3, 4, 5), 0.05))
    assert found == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=2e-3)


def test_one_look_has_the_whole_level():
    assert nominal_levels((7,), 0.05) == pytest.approx((0.05,))
    assert spent(1, 0.05) == pytest.approx(0.05)
    assert spent(0, 0.05) == 0


def test_looks_end_at_the_most_and_grow_by_at_most_a_twentieth():
    assert looks(3, 8) == (3, 4, 5, 6, 7, 8)
    assert looks(5, 5) == (5,)
    found = looks(2, 1000)
    assert found[-1] == 1000
    assert all(b - a == 1 or b <= 1.05 * a for a, b in pairwise(found))
    with pytest.raises(ValueError, match="looks from 1 to 8"):
        looks(1, 8)


def test_the_level_of_a_look_is_that_of_the_last_one_made():
    at = looks(3, 12)
    levels = nominal_levels(at, 0.05 * sequential.ALLOWANCE / 2)
    found = [look_level(at, made, 0.95, 2) for made in (5, 99, 1)]
    assert found == pytest.approx([levels[2], levels[-1], levels[0]])


def test_an_interval_is_that_of_the_t_test():
    values = np.random.default_rng(4).normal(0.2, 0.3, 9)
    found = interval(values, 0.02)
    expected = stats.ttest_1samp(values, 0)
    assert (found.low, found.high) == pytest.approx(expected.confidence_interval(0.98))
    assert found.p == pytest.approx(expected.pvalue)
    same = interval(np.full(3, 0.1), 0.02)
    assert (same.low, same.high, same.p) == pytest.approx((0.1, 0.1, 0))


def test_an_interval_is_precise_enough_where_it_decides():
    low, high = np.array([0.01, -0.09, -0.09, -0.2]), np.array([0.5, 0.09, 0.11, -0.01])
    assert reached(low, high, None, 0.1).tolist() == [True, True, False, True]
    assert reached(low, high, 0.105, None).tolist() == [False, True, False, True]


def fixed(deviation: float, power: float) -> int:
    """Repetitions of the t test that finds a change of 10 % with this power at the 5 % level."""
    n = 2
    while special.nctdtr(n - 1, CHANGE / deviation * math.sqrt(n), stats.t.ppf(0.975, n - 1)) > 1 - power:
        n += 1
    return n


def simulated(
    effect: float,
    deviation: float,
    at: tuple[int, ...],
    width: float | None = None,
    level: float | None = None,
):
    """Of simulated studies that stop: repetitions, whether the interval covers the effect and excludes 0."""
    rng = np.random.default_rng([round(effect * 1000), round(deviation * 1000)])
    sums = rng.normal(effect, deviation, (STUDIES, at[-1]))
    squares = np.cumsum(sums**2, axis=1)
    np.cumsum(sums, axis=1, out=sums)
    n_at_stop = np.zeros(STUDIES)
    low, high = np.empty(STUDIES), np.empty(STUDIES)
    for n in at:
        going = n_at_stop == 0
        mean = sums[going, n - 1] / n
        error = np.sqrt((squares[going, n - 1] - n * mean**2) / (n - 1) / n)
        half = half_width(error, n, level or look_level(at, n, 0.95))
        low[going], high[going] = mean - half, mean + half
        done = reached(mean - half, mean + half, width, None if width else 0.1) | (n == at[-1])
        n_at_stop[going] = np.where(done, n, 0)
    return n_at_stop, (low <= effect) & (effect <= high), (low > 0) | (high < 0)


@pytest.mark.parametrize(("deviation", "most"), [(0.1, 26), (0.2, 90), (0.3, 200)])
def test_studies_that_stop_early_keep_their_errors_and_make_fewer_runs(deviation, most):
    at = looks(3, most)
    n_null, covered_null, false = simulated(0, deviation, at)
    n_change, covered, found = simulated(CHANGE, deviation, at)
    power = found.mean()
    same_power = fixed(deviation, power)
    print(
        f"deviation {deviation}, at most {most}: false positives {false.mean():.4f}, "
        f"coverage {covered_null.mean():.4f} (no change) {covered.mean():.4f} (10 %), power {power:.4f}, "
        f"fixed design of this power {same_power}; mean repetitions {n_null.mean():.1f} (no change, "
        f"{n_null.mean() / same_power:.2f}) {n_change.mean():.1f} (10 %, {n_change.mean() / same_power:.2f})"
    )
    assert false.mean() <= 0.05
    assert min(covered_null.mean(), covered.mean()) >= 0.95
    assert power >= 0.95
    assert n_change.mean() <= (0.6 if most > 50 else 0.7) * same_power
    assert n_null.mean() <= 0.9 * same_power


def test_intervals_of_fixed_designs_would_claim_differences_that_are_not_there():
    _, _, false = simulated(0, 0.2, looks(3, 90), level=0.05)
    print(f"95 % intervals of a fixed design at each look: false positives {false.mean():.4f}")
    assert false.mean() > 0.2


@pytest.mark.parametrize("deviation", [0.1, 0.3])
def test_a_width_that_is_reached_keeps_the_coverage(deviation):
    n, covered, _ = simulated(0.7, deviation, looks(3, 200), width=0.1)
    print(f"deviation {deviation}: coverage {covered.mean():.4f}, mean repetitions {n.mean():.1f}")
    assert covered.mean() >= 0.95
