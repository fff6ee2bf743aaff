"""Allocation of variation: a textbook's example, another program, and what commands and pages print."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
from synthetic import write_study

from weir.cli import main
from weir.load import load_study
from weir.report import render
from weir.study import class_table
from weir.variation import _allocate, _codes, variation


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return load_study(write_study(tmp_path_factory.mktemp("variation") / "trial"))


def test_the_example_of_the_textbook():
    """Jain (1991), example 18.2: a 2 x 2 design with three repetitions and no blocks."""
    y = np.array([15, 18, 12, 25, 28, 19, 45, 48, 51, 75, 75, 81], dtype=float)
    memory = pl.Series(["4"] * 6 + ["16"] * 6)
    cache = pl.Series((["1"] * 3 + ["2"] * 3) * 2)
    codes = {"memory": _codes(memory, ["4", "16"]), "cache": _codes(cache, ["1", "2"])}
    terms = _allocate(y, codes, [("cache",), ("memory",), ("cache", "memory")])
    assert {term.name: round(term.squares) for term in terms} == {
        "cache": 1083,
        "memory": 5547,
        "cache x memory": 300,
        "residual": 102,
    }
    assert sum(term.share for term in terms) == pytest.approx(1)


def with_effects(table, rng, lost=0):
    """The table with known effects on responses of class text, and with as many rows lost."""
    effect = {"none": 0.0, "mq-deadline": 0.3, "partitioned": 0.0, "integrated": -0.2}
    rows = table.filter(pl.col("class") == "text")
    log = [effect[row["scheduler"]] + effect[row["architecture"]] * row["load"] for row in rows.to_dicts()]
    noise = rng.normal(0, 0.1, rows.height) + rng.normal(0, 0.1, 3)[rows["block"].to_numpy()]
    rows = rows.with_columns(response_p95_ms=pl.Series(np.exp(np.array(log) + noise)))
    return rows.sample(rows.height - lost, seed=int(rng.integers(1000)))


@pytest.mark.parametrize("lost", [0, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_terms_and_levels_agree_with_statsmodels(study, seed, lost):
    rows = with_effects(class_table(study), np.random.default_rng(seed), lost)
    found = variation(study, rows, "text")
    frame = pd.DataFrame(rows.to_dict(as_series=False))
    frame["y"] = np.log(frame["response_p95_ms"])
    model = ols(
        "y ~ (C(scheduler, Sum) + C(architecture, Sum) + C(load, Sum))**2 + C(block, Sum)", frame
    ).fit()
    expected = anova_lm(model, typ=2)
    by_name = {
        ":".join(f"C({name}, Sum)" for name in term.factors): term
        for term in found.terms
        if term.factors != ("residual",)
    }
    for name, row in expected.iterrows():
        term = found.terms[-1] if name == "Residual" else by_name[name]
        assert term.degrees == row["df"]
        assert term.squares == pytest.approx(row["sum_sq"], rel=1e-9)
        if name != "Residual":
            assert term.p == pytest.approx(row["PR(>F)"], rel=1e-9)
    ends = model.conf_int(alpha=0.05)
    for factor, level, text in (("scheduler", "mq-deadline", "mq-deadline"), ("load", "0.5", "0.5")):
        (effect,) = (one for one in found.effects if (one.factor, one.level) == (factor, level))
        low, high = ends.loc[f"C({factor}, Sum)[S.{text}]"]
        assert (np.log(effect.low), np.log(effect.high)) == pytest.approx((low, high), rel=1e-9)
    assert found.is_balanced == (lost == 0)
    assert (sum(term.share for term in found.terms) == pytest.approx(1)) == (lost == 0)


def test_a_design_without_repetitions_has_shares_and_no_tests(tmp_path):
    alone = load_study(write_study(tmp_path / "alone", repetitions=1, loads=(0.5,)))
    found = variation(alone, class_table(alone), "text")
    assert all(term.p is None for term in found.terms)
    assert all(effect.low is None for effect in found.effects)
    assert "No degrees of freedom are left" in found.notes()[-1]
    assert sum(term.share for term in found.terms) == pytest.approx(1)


def test_factors_that_vary_together_are_named(study):
    rows = class_table(study).filter(
        ((pl.col("scheduler") == "none") & (pl.col("load") == 0.5))
        | ((pl.col("scheduler") != "none") & (pl.col("load") == 0.9))
    )
    found = variation(study, rows, "text")
    assert {term.degrees for term in found.terms if term.factors in (("scheduler",), ("load",))} == {0}
    assert any("Not separable" in note and "scheduler, load" in note for note in found.notes())
    assert not found.effects


def test_unbounded_values_are_left_out_and_counted(study):
    table = class_table(study)
    first = table["run"][0]
    infinite = pl.when(pl.col("run") == first).then(np.inf).otherwise(pl.col("response_p95_ms"))
    found = variation(study, table.with_columns(response_p95_ms=infinite), "text")
    assert (found.n, found.left_out) == (23, 1)
    assert found.notes()[0] == "1 runs with an unbounded value are left out."


def test_a_study_of_both_testbeds_is_analysed_on_devices(tmp_path):
    both = load_study(write_study(tmp_path / "s", both_testbeds=True, repetitions=2, duration_s=2.0))
    table = class_table(both)
    found = variation(both, table, "text")
    on_devices = table.filter(pl.col("testbed") == "device")
    assert found.terms == variation(both, on_devices, "text").terms
    assert found.n == on_devices.filter(pl.col("class") == "text").height < table.height / 2
    assert not any("testbed" in term.factors for term in found.terms)


def test_the_command_and_the_page_say_the_same(study, capsys):
    assert main(["variation", str(study.path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    shares = {tuple(term["factors"]): term["share"] for term in document["variation"][0]["terms"]}
    assert main(["variation", study.name, "--results", str(study.path.parent), "--class", "text"]) == 0
    printed = capsys.readouterr().out
    assert f"{shares[('scheduler',)]:.1%}" in printed and "video, log" not in printed
    page = render(study)
    assert "Allocation of variation" in page
    assert variation(study, class_table(study), "text").sentence() in page


def test_a_class_or_metric_that_is_not_there_is_refused(study, capsys):
    assert main(["variation", str(study.path), "--class", "audio"]) == 2
    assert "there is no class `audio`; classes: text, video" in capsys.readouterr().err
    assert main(["variation", str(study.path), "--metric", "speed"]) == 2
    assert "`speed` is no metric of a class" in capsys.readouterr().err
