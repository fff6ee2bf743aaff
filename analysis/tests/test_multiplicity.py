"""Families of comparisons against tables, scipy, and how often they err over simulated studies."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from weir.multiplicity import Paired, false_discovery, holm, judge, simultaneous_t, variances_agree


def study(rng, *, comparisons, group, n, deviation=lambda: 1.0, effect=0.0):
    """A family in which the first comparison of each group has an effect, and the others none."""
    family = []
    for name in range(comparisons // group):
        block, spread = rng.normal(0, 2, n), deviation()
        baseline = block + rng.normal(0, spread, n)
        for position in range(group):
            treated = block + rng.normal(0, spread, n) + (effect if position == 0 else 0)
            family.append(Paired(dict(enumerate(treated - baseline)), name))
    return family


def test_holm_by_hand():
    # Ordered 0.01, 0.02, 0.03, 0.4: times 4, 3, 2, 1, never falling.
    assert holm([0.03, 0.01, 0.4, 0.02]) == pytest.approx([0.06, 0.04, 0.4, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1, 1])
    assert holm([]).size == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_keeps_the_order_and_lies_between_p_and_bonferroni(p):
    adjusted = holm(p)
    assert (adjusted >= np.asarray(p) - 1e-12).all()
    assert (adjusted <= np.minimum(np.asarray(p) * len(p), 1) + 1e-12).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= -1e-12).all()


def test_false_discovery_by_hand():
    # Ordered 0.01, 0.02, 0.03, 0.4: times 4/1, 4/2, 4/3, 1, never rising towards the smallest.
    assert false_discovery([0.03, 0.01, 0.4, 0.02]) == pytest.approx([0.04, 0.04, 0.4, 0.04])
    assert false_discovery([0.9, 0.8]) == pytest.approx([0.9, 0.9])
    assert false_discovery([]).size == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_false_discovery_is_that_of_scipy_and_below_holm(p):
    adjusted = false_discovery(p)
    assert adjusted == pytest.approx(stats.false_discovery_control(p))
    assert (adjusted <= holm(p) + 1e-12).all()


@pytest.mark.parametrize(("size", "degrees"), [(1, 5), (1, 60), (3, 12), (5, 20), (9, 40)])
def test_the_simultaneous_t_is_that_of_dunnett(size, degrees):
    # scipy integrates the multivariate t distribution by another method, to about 1e-3 in probability.
    correlation = np.full((size, size), 0.5) + np.eye(size) * 0.5
    critical = simultaneous_t([size], degrees)
    inside = stats.multivariate_t(shape=correlation, df=degrees, seed=1).cdf(
        np.full(size, critical), lower_limit=np.full(size, -critical), maxpts=200_000
    )
    assert inside == pytest.approx(0.95, abs=3e-3)


def test_dunnetts_table():
    # Dunnett (Biometrics 20, 1964), two-sided 5 %, 20 degrees of freedom, 1 to 9 treatments.
    table = [2.09, 2.38, 2.54, 2.65, 2.73, 2.80, 2.86, 2.90, 2.95]
    found = [simultaneous_t([size], 20) for size in range(1, 10)]
    assert found == pytest.approx(table, abs=0.008)


def test_groups_that_share_nothing_need_a_larger_t():
    assert simultaneous_t([1] * 6, 30) > simultaneous_t([6], 30) > simultaneous_t([1], 30)
    with pytest.raises(ValueError, match="at least one"):
        simultaneous_t([], 5)


def test_bartletts_test_agrees_with_scipy():
    rng = np.random.default_rng(3)
    for spread in (1, 1.5, 4):
        samples = [rng.normal(0, s, 6) for s in (1, 1, spread)]
        found = variances_agree([x.var(ddof=1) for x in samples], [5, 5, 5])
        assert found == (stats.bartlett(*samples).pvalue >= 0.2)
    assert not variances_agree([0.0, 1.0], [2, 2])
    assert variances_agree([4.0, 1.0], [0, 2])


def test_a_family_of_one_is_a_paired_t_test_at_the_allowance():
    differences = [0.3, 0.9, 0.4, 0.5]
    (found,) = judge([Paired(dict(enumerate(differences)))])
    assert found.p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    low, high = stats.ttest_1samp(differences, 0).confidence_interval(1 - 0.05 * 0.75)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert not found.pooled


def test_the_common_variance_is_that_of_an_analysis_of_variance():
    # Two treatments and a baseline in four blocks; residual mean square of the two-way layout by hand.
    cells = np.array([[1.0, 2.0, 4.0], [2.0, 2.5, 6.0], [0.0, 2.0, 3.5], [3.0, 3.0, 6.5]])
    residual = cells - cells.mean(0) - cells.mean(1)[:, None] + cells.mean()
    square = (residual**2).sum() / (2 * 3)
    family = [Paired(dict(enumerate(cells[:, i] - cells[:, 0]))) for i in (1, 2)]
    found = judge(family)
    assert found[0].pooled
    assert found[0].degrees == 6
    error = math.sqrt(2 * square / 4)
    assert found[0].p == pytest.approx(2 * stats.t.sf(found[0].estimate / error, 6))


def test_a_block_that_lacks_a_level_costs_degrees_and_no_bias():
    family = [Paired({0: 1.0, 1: 1.2, 2: 0.9}), Paired({0: 1.1, 1: 0.8})]
    found = judge(family)
    # Eight values, three levels, three blocks: 8 - 5.
    assert [one.n for one in found] == [3, 2]
    assert found[0].degrees == 3 if found[0].pooled else 2


@pytest.mark.parametrize(("comparisons", "group"), [(8, 4), (48, 6), (48, 1), (100, 10)])
def test_a_false_difference_is_found_in_at_most_6_of_100_studies(comparisons, group):
    rng = np.random.default_rng(comparisons + group)
    for n in (3, 10):
        tries, wrong, outside = 400, 0, 0
        for _ in range(tries):
            judged = judge(study(rng, comparisons=comparisons, group=group, n=n))
            wrong += any(one.adjusted_p <= 0.05 for one in judged)
            outside += any(one.low > 0 or one.high < 0 for one in judged)
        shares = f"{wrong / tries:.3f} by p, {outside / tries:.3f} by interval"
        print(f"{comparisons} comparisons without a difference, n = {n}: studies with one found {shares}")
        # Two standard errors above 0.06; over 2,500 studies each is at most 0.06.
        most = 0.06 + 2 * math.sqrt(0.06 * 0.94 / tries)
        assert wrong / tries <= most, (n, wrong / tries)
        assert outside / tries <= most, (n, outside / tries)


@pytest.mark.parametrize("levels", [3, 6])
def test_of_all_pairs_a_false_difference_is_found_in_at_most_6_of_100_studies(levels):
    rng = np.random.default_rng(levels)
    for n, spread in ((3, 1), (10, 1), (5, 10)):
        tries, wrong, outside = 400, 0, 0
        for _ in range(tries):
            # The last level has another spread.
            spreads = np.array([1] * (levels - 1) + [spread])[:, None]
            values = rng.normal(0, 2, n) + rng.normal(0, 1, (levels, n)) * spreads
            pairs = [(i, j) for i in range(levels) for j in range(i + 1, levels)]
            family = [Paired(dict(enumerate(values[j] - values[i])), i) for i, j in pairs]
            judged = judge(family, all_pairs=True)
            wrong += any(one.adjusted_p <= 0.05 for one in judged)
            outside += any(one.low > 0 or one.high < 0 for one in judged)
        print(f"{levels} levels, n = {n}: studies with a difference found {wrong / tries}, {outside / tries}")
        most = 0.06 + 2 * math.sqrt(0.06 * 0.94 / tries)
        assert max(wrong, outside) / tries <= most, (n, wrong / tries, outside / tries)


def test_the_common_variance_of_all_pairs_is_that_of_levels_and_blocks():
    values = np.random.default_rng(1).normal(0, 1, (4, 6))
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    found = judge([Paired(dict(enumerate(values[j] - values[i])), i) for i, j in pairs], all_pairs=True)
    with_first = judge([Paired(dict(enumerate(values[j] - values[0]))) for j in range(1, 4)])
    assert {one.degrees for one in found} == {15} == {one.degrees for one in with_first}
    # The same errors, and a wider interval: it is one of six comparisons.
    for of_all, of_three in zip(found[:3], with_first, strict=True):
        assert of_all.p == pytest.approx(of_three.p)
        assert of_all.low < of_three.low < of_three.high < of_all.high


def test_spreads_that_differ_between_cells_cause_no_false_differences():
    rng = np.random.default_rng(5)
    tries, wrong = 300, 0
    for _ in range(tries):
        family = study(rng, comparisons=48, group=6, n=5, deviation=lambda: rng.choice([1, 3, 10]))
        wrong += any(one.adjusted_p <= 0.05 for one in judge(family))
    assert wrong / tries <= 0.06 + 2 * math.sqrt(0.06 * 0.94 / tries)


def test_an_effect_is_found_and_its_simultaneous_interval_holds_it():
    rng = np.random.default_rng(6)
    tries, found, held = 100, 0, 0
    for _ in range(tries):
        judged = judge(study(rng, comparisons=24, group=4, n=5, effect=6.0))[::4]
        found += all(one.adjusted_p <= 0.05 for one in judged)
        held += all(one.low <= 6 <= one.high for one in judged)
    # In one study of six the variances are not pooled, and four degrees of freedom find it less often.
    assert found / tries > 0.8
    assert held / tries > 0.9


def test_what_cannot_be_judged_has_no_interval():
    (alone,) = judge([Paired({0: 1.0})])
    assert (alone.estimate, alone.low, alone.adjusted_p) == (1.0, None, None)
    equal = judge([Paired({0: 1.0, 1: 1.0}), Paired({0: 0.0, 1: 0.0})])
    assert [one.p for one in equal] == [None, None]
    for bad in ({}, {0: math.inf}):
        with pytest.raises(ValueError, match="finite"):
            judge([Paired(bad)])
