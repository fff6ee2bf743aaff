"""Realised power is the planned one, and the sentence of a study's page agrees with its table."""

import json
import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy import special, stats
from synthetic import write_study
from test_answers import with_effect

from weir import multiplicity
from weir.cli import main
from weir.load import load_study
from weir.multiplicity import ALLOWANCE, Paired, judge
from weir.power import Design, power_of, probability, repetitions, smallest_effect
from weir.report import render
from weir.study import class_table

STUDIES = 1000


@pytest.mark.parametrize(("pilot", "effect", "deviation"), [(4, 0.4, 0.5), (6, 0.1, 0.2), (12, 0.18, 0.3)])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_studies_as_long_as_their_pilots_advise_have_the_planned_power(pilot, effect, deviation, power):
    rng = np.random.default_rng([pilot, round(power * 100)])
    pilots = rng.normal(effect, deviation, (STUDIES, pilot)).std(axis=1, ddof=1)
    n = np.array([repetitions(Design(float(s), pilot - 1), effect, power) for s in pilots], dtype=float)
    # The mean and the variance of n normal differences, each study of its own length.
    mean = rng.normal(effect, deviation / np.sqrt(n))
    variance = deviation**2 * rng.chisquare(n - 1) / (n - 1)
    t = mean / np.sqrt(variance / n)
    realised = (t > stats.t.ppf(1 - 0.05 * ALLOWANCE / 2, n - 1)).mean()
    print(f"pilot of {pilot}, power {power}: realised {realised:.3f}, median n {np.median(n):.0f}")
    assert realised == pytest.approx(power, abs=0.05)


@pytest.mark.parametrize("groups", [(2,), (3, 3)])
def test_a_family_that_is_judged_has_the_planned_power(groups, monkeypatch):
    cached = lru_cache(multiplicity.simultaneous_t)
    monkeypatch.setattr(multiplicity, "simultaneous_t", lambda sizes, *more: cached(tuple(sizes), *more))
    rng = np.random.default_rng(8)
    deviation, effect = 0.3, 0.2
    design = Design(deviation, 1000, groups, True)
    n = repetitions(design, effect)
    found = []
    for _ in range(STUDIES):
        # Runs: levels share the baseline's, so that differences in a group correlate by 1/2.
        runs = rng.normal(0, deviation / math.sqrt(2), (len(groups), groups[0] + 1, n))
        family = [
            Paired(dict(enumerate(level - group[0] + effect)), g)
            for g, group in enumerate(runs)
            for level in group[1:]
        ]
        found.append([j.low is not None and j.low > 0 for j in judge(family)])
    realised = float(np.mean(found))
    print(f"family {groups}: realised {realised:.3f} with n = {n}")
    assert realised == pytest.approx(0.8, abs=0.05)


def test_with_a_known_deviation_it_is_the_power_of_the_t_test():
    design = Design(0.3, 10**6)
    for n in (3, 10, 40):
        critical = stats.t.ppf(1 - 0.05 * ALLOWANCE / 2, n - 1)
        expected = 1 - special.nctdtr(n - 1, 0.2 / 0.3 * math.sqrt(n), critical)
        assert probability(design, 0.2, n) == pytest.approx(float(expected), abs=1e-4)


def test_a_few_blocks_of_pilot_ask_for_more_repetitions():
    assert repetitions(Design(0.3, 2), 0.2) > repetitions(Design(0.3, 20), 0.2)
    assert repetitions(Design(0.3, 20, (8,)), 0.2) > repetitions(Design(0.3, 20), 0.2)
    assert repetitions(Design(0.3, 20), 1e-6) is None
    assert repetitions(Design(0.3, 20), 0.0) is None


def test_the_smallest_effect_is_found_with_the_planned_power():
    design = Design(0.3, 9)
    effect = smallest_effect(design, 12)
    assert probability(design, effect, 12) == pytest.approx(0.8, abs=1e-4)
    assert repetitions(design, effect * 1.001) == 12
    assert smallest_effect(design, 1) is None
    # Blocks of a deterministic study differ by rounding.
    assert smallest_effect(Design(1e-16, 11), 12) == pytest.approx(0, abs=1e-8)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("power") / "trial"
    return load_study(write_study(folder, repetitions=4, loads=(0.5, 0.9), architectures=("integrated",)))


def test_every_comparison_of_a_study_has_a_row_and_a_cost(study):
    table = with_effect(study, class_table(study), 2.0, 0.2)
    found = power_of(study, table)
    assert [one.class_name for one in found.comparisons] == ["text", "video"]
    spent_s = sum(sum(run.observed["timing"].values()) for run in study.runs)
    assert found.block_s == pytest.approx(spent_s / study.repetitions)
    for one in found.comparisons:
        assert one.needed[0.05] > one.needed[0.10] > one.needed[0.20]
        assert one.hours[0.10] == pytest.approx(one.needed[0.10] * found.block_s / 3600)
    sentence = found.sentence()
    assert sentence.startswith("Repetitions that show a change of 10% with probability 0.8: ")
    assert f"{found.comparisons[0].needed[0.10]:,} for text" in sentence


def test_a_study_of_numbers_plans_for_two_of_its_cells(study):
    numbers = replace(study, factors={"load": [0.5, 0.9]}, comparison=None)
    table = with_effect(study, class_table(study), 1.0, 0.2)
    pairs = {one.pair for one in power_of(numbers, table).comparisons}
    assert pairs == {"one cell / another"}


def test_one_repetition_says_why_there_is_no_plan(tmp_path):
    alone = load_study(write_study(tmp_path / "alone", repetitions=1, loads=(0.5,)))
    found = power_of(alone, class_table(alone))
    assert {one.note for one in found.comparisons} == {"one repetition, or no variation between blocks"}
    assert found.sentence() == ""


def test_the_command_and_the_page_say_the_same(study, capsys):
    assert main(["power", str(study.path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    needed = [one["needed"]["10"] for one in document["comparisons"]]
    assert main(["power", study.name, "--results", str(study.path.parent)]) == 0
    sentence = capsys.readouterr().out.strip().splitlines()[-1]
    assert f"{needed[0]:,} for text" in sentence
    assert sentence in render(study)


def test_a_power_that_is_no_probability_is_refused(study, capsys):
    assert main(["power", str(study.path), "--power", "80"]) == 2
    assert capsys.readouterr().err == "error: --power: is 80, not between 0 and 1; give 0.8\n"
    assert main(["power", "absent", "--results", str(study.path.parent)]) == 2
    assert "there is no such folder" in capsys.readouterr().err
