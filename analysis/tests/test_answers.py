"""Answers of studies whose effect is known, and the power of the advice against simulated studies."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import synthetic
from scipy import stats

from weir.answers import answers, drifting, main_factor, repetitions_needed
from weir.detection import detected
from weir.load import load_study
from weir.multiplicity import ALLOWANCE
from weir.report import render
from weir.study import class_table


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load_study(synthetic.write_study(tmp_path_factory.mktemp("answers") / "s", repetitions=5))


def with_effect(study, table, ratio, spread, seed=1, factor=None):
    """The table with lognormal responses, times `ratio` at the second level of the factor."""
    rng = np.random.default_rng(seed)
    factor = factor or main_factor(study)
    second = str(study.factors[factor][1])
    values = rng.lognormal(2, spread, table.height)
    shifted = np.where(table[factor].cast(pl.String) == second, values * ratio, values)
    metrics = [name for name in table.columns if name.startswith("response_p") and name.endswith("_ms")]
    return table.with_columns(**{name: pl.Series(shifted) for name in metrics})


def test_a_clear_effect_is_the_first_sentence_and_settled(study):
    table = with_effect(study, class_table(study), 3.0, 0.05)
    first, *_ = answers(study, table)
    assert first.settled
    assert first.ratio == pytest.approx(3, rel=0.1)
    assert first.low < 3 < first.high
    assert first.agree == first.cells > 1
    text = first.sentence()
    assert f"{first.level} takes {first.ratio:.2f} times that of {first.baseline} (95 % CI" in text
    assert text.endswith("; settled: longer.")


def test_an_effect_that_is_not_settled_says_what_would_settle_it(study):
    table = with_effect(study, class_table(study), 1.15, 0.8)
    first, *_ = answers(study, table)
    assert not first.settled
    assert first.low < 1 < first.high
    assert first.needed > first.n
    assert f"not settled: about {first.needed} repetitions needed" in first.sentence()


def test_an_overloaded_level_is_an_answer_of_its_own(study):
    table = class_table(study)
    factor = main_factor(study)
    second = pl.col(factor).cast(pl.String) == str(study.factors[factor][1])
    table = table.with_columns(response_p95_ms=pl.when(second).then(math.inf).otherwise("response_p95_ms"))
    name = next(a.class_name for a in answers(study, table) if a.metric == "response_p95_ms")
    found = next(a for a in answers(study, table) if a.class_name == name)
    assert found.ratio == math.inf
    assert "unbounded at the level in" in found.sentence()
    assert not found.settled


def test_levels_that_never_meet_say_so(study):
    table = class_table(study)
    factor = main_factor(study)
    alone = table.filter(pl.col(factor).cast(pl.String) == str(study.factors[factor][0]))
    found = answers(study, alone)
    assert {a.ratio for a in found} == {None}
    assert all("cannot be compared (no pair of valid runs)" in a.sentence() for a in found)


def test_a_study_without_names_to_compare_has_no_answer(study):
    numbers = replace(study, factors={"load": [0.5, 1.0]})
    assert main_factor(numbers) is None
    assert answers(numbers, class_table(study)) == []
    assert answers(study, class_table(study).clear()) == []


def test_an_answer_does_not_depend_on_which_level_is_called_baseline(study):
    factor = main_factor(study)
    table = with_effect(study, class_table(study), 2.0, 0.2)
    turned = replace(study, factors=study.factors | {factor: list(reversed(study.factors[factor]))})
    for one in answers(study, table):
        other = next(a for a in answers(turned, table) if a.class_name == one.class_name)
        assert other.ratio == pytest.approx(1 / one.ratio)
        assert (other.low, other.high) == pytest.approx((1 / one.high, 1 / one.low))


def test_null_studies_are_settled_in_at_most_6_of_100(study):
    table, wrong, tries = class_table(study), 0, 200
    for seed in range(tries):
        wrong += any(a.settled for a in answers(study, with_effect(study, table, 1.0, 0.5, seed)))
    assert wrong / tries <= 0.06 + 2 * math.sqrt(0.06 * 0.94 / tries)


@pytest.mark.parametrize(("effect", "deviation"), [(0.2, 0.3), (0.5, 0.3), (0.1, 0.5)])
def test_the_advised_repetitions_have_the_power_that_is_said(effect, deviation):
    n = repetitions_needed(effect, deviation)
    rng = np.random.default_rng(n)
    x = rng.normal(effect, deviation, (4000, n))
    t = np.abs(x.mean(1)) / (x.std(1, ddof=1) / math.sqrt(n))
    from scipy import stats

    found = (t > stats.t.ppf(1 - 0.05 * ALLOWANCE / 2, n - 1)).mean()
    assert 0.78 <= found <= 0.92
    if n > 2:
        assert repetitions_needed(effect, deviation, power=0.95) > n
    assert repetitions_needed(effect, deviation, family=20) > n


def test_no_number_of_repetitions_settles_no_effect():
    assert repetitions_needed(0.0, 1.0) is None
    assert repetitions_needed(1e-6, 1.0) is None
    assert repetitions_needed(0.1, 0.0) == 2


@pytest.mark.parametrize(
    ("ratio", "deviation"), [(4.386961404902408, 0.7085715995137787), (1.1, 0.2), (30, 0.4)]
)
def test_no_smaller_number_of_repetitions_has_the_power(ratio, deviation):
    """All numbers in turn, of which the first case has some without a value of the distribution function."""
    effect = math.log(ratio)

    def power(n):
        critical = float(stats.t.ppf(1 - 0.05 * ALLOWANCE / 4, n - 1))
        return float(detected(effect / deviation * math.sqrt(n), critical, n - 1))

    assert repetitions_needed(effect, deviation, family=2) == next(
        n for n in range(2, 10_000) if power(n) >= 0.8
    )


def test_drifting_runs_are_counted_by_class(study):
    table = class_table(study)
    table = table.with_columns(drift_p=pl.when(pl.col("repetition") == 0).then(0.001).otherwise(None))
    for name, drifts, unknown, runs in drifting(study, table):
        of = table.filter(pl.col("class") == name)
        assert (drifts, unknown, runs) == (of.height // 5, of.height - of.height // 5, of.height)


def test_a_study_may_name_the_comparison_that_answers_it(study):
    named = replace(study, comparison={"factor": "architecture", "baseline": "integrated"})
    assert main_factor(named) == "architecture"
    found = answers(named, class_table(named))
    assert {(a.factor, a.level, a.baseline) for a in found} == {("architecture", "partitioned", "integrated")}
    first = replace(study, comparison={"factor": "architecture"})
    assert {a.baseline for a in answers(first, class_table(first))} == {str(study.factors["architecture"][0])}


def test_the_report_begins_with_the_answer(study):
    page = render(study)
    first, *others = answers(study, class_table(study))
    assert page.index(study.question) < page.index(first.sentence()) < page.index('id="design"')
    for answer in others:
        assert answer.sentence() in page
    assert "Steady state" in page


def test_a_study_of_both_testbeds_is_answered_on_devices(tmp_path):
    both = load_study(
        synthetic.write_study(tmp_path / "s", both_testbeds=True, repetitions=2, duration_s=2.0)
    )
    table = class_table(both)
    found = answers(both, table)
    assert {a.testbed for a in found} == {"device"}
    alone = replace(
        both, factors={name: levels for name, levels in both.factors.items() if name != "testbed"}
    )
    of_device = answers(alone, table.filter(pl.col("testbed") == "device"))
    assert [a.ratio for a in found] == [a.ratio for a in of_device]
    assert "testbed device)" in found[0].sentence()
    simulated = answers(both, table.filter(pl.col("testbed") == "simulator"))
    assert {a.testbed for a in simulated} == {"simulator"}
