"""The probability that a t test finds an effect: against simulation and statsmodels, and at its extremes."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from weir.detection import detected, fewest


@pytest.mark.parametrize(("effect", "n"), [(0.2, 30), (0.8, 12), (1.5, 5)])
def test_it_is_the_power_of_statsmodels_and_of_simulated_tests(effect, n):
    critical = float(stats.t.ppf(0.975, n - 1))
    found = float(detected(effect * math.sqrt(n), critical, n - 1))
    other = TTestPower().power(effect, n, 0.05)
    # Theirs counts the other tail too.
    assert found == pytest.approx(other, abs=0.003)
    samples = np.random.default_rng(1).normal(effect, 1, (20_000, n))
    t = samples.mean(axis=1) / samples.std(axis=1, ddof=1) * math.sqrt(n)
    assert found == pytest.approx(float((t > critical).mean()), abs=0.015)


def test_it_rises_with_repetitions_and_is_always_a_number():
    """Of these 10,000 numbers 22 have no value of the distribution function itself."""
    ratio = math.log(4.386961404902408) / 0.7085715995137787
    powers = np.array(
        [
            float(detected(ratio * math.sqrt(n), stats.t.ppf(1 - 0.009375, n - 1), n - 1))
            for n in range(2, 10_001)
        ]
    )
    assert np.isfinite(powers).all() and (np.diff(powers) >= -1e-9).all()
    assert powers[0] < 0.3 and powers[-1] == 1


def test_the_fewest_repetitions_are_found():
    for threshold in (1, 2, 3, 77, 100):
        assert fewest(lambda n, least=threshold: n >= least, 100) == max(threshold, 2)
    assert fewest(lambda n: n >= 101, 100) is None
