"""Two results compared: equal data, an injected slowdown, scipy's tests, and what cannot be compared."""

import csv
import io
import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
import synthetic
from scipy import stats

from weir import comparison
from weir.cli import main
from weir.comparison import FORMATS, compare_studies, render, summary
from weir.errors import InputError
from weir.load import load_study
from weir.study import class_table


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared") / "before"
    return load_study(synthetic.write_study(folder, repetitions=4, duration_s=2.0))


@pytest.fixture
def tables(study, monkeypatch):
    """Gives each study a table of our own, by its path's name."""
    own = {}
    known = class_table(study)
    monkeypatch.setattr(comparison, "class_table", lambda one: own.get(one.path.name, known))
    return own, known


def named(study, name, seed=0):
    runs = tuple(replace(run, seed=run.seed + seed) for run in study.runs)
    return replace(study, path=study.path.parent / name, runs=runs)


def responses(table, values):
    names = [n for n in table.columns if n.startswith("response_p") and n.endswith("_ms")]
    return table.with_columns(**{n: pl.Series(values) for n in [*names, "throughput_mb_s"]})


def test_equal_results_are_the_same(study):
    found = compare_studies(study, named(study, "after"))
    assert {change.verdict for change in found.changes} == {"same"}
    assert {change.note for change in found.changes} == {"equal in every run"}
    assert found.hosts == () and found.unmatched == ()
    # Two classes, eight cells, two metrics.
    assert len(found.changes) == 32


def test_equal_data_are_never_worse(study, tables):
    """1,000 studies, each compared with itself."""
    own, table = tables
    one_cell = (pl.col("class") == "text") & (pl.col("scheduler") == "none") & (pl.col("load") == 0.5)
    table = table.filter(one_cell)
    rng = np.random.default_rng(10)
    for _ in range(1000):
        own["before"] = own["after"] = responses(table, rng.lognormal(2, 1, table.height))
        found = compare_studies(named(study, "before"), named(study, "after"))
        assert {change.verdict for change in found.changes} == {"same"}


@pytest.mark.parametrize("seed", [0, 100])
def test_runs_of_one_distribution_are_seldom_called_worse_or_better(study, tables, seed):
    """Paired by equal seeds, and by Welch's test where seeds differ."""
    own, table = tables
    rng = np.random.default_rng(7)
    wrong, tries = 0, 150
    for _ in range(tries):
        block = rng.lognormal(0, 0.5, 4)[table["repetition"].to_numpy()] if seed == 0 else 1.0
        for name in ("before", "after"):
            own[name] = responses(table, block * rng.lognormal(2, 0.1, table.height))
        found = compare_studies(named(study, "before"), named(study, "after", seed))
        assert {change.paired for change in found.changes} == {seed == 0}
        wrong += any(change.verdict in ("worse", "better") for change in found.changes)
    how = "paired" if seed == 0 else "unpaired"
    print(f"32 comparisons of one distribution, {how}: studies with a verdict {wrong / tries:.3f}")
    assert wrong / tries <= 0.06 + 2 * math.sqrt(0.06 * 0.94 / tries)


def test_a_slowdown_of_20_percent_is_found_and_an_improvement_is_none(study, tables):
    own, table = tables
    rng = np.random.default_rng(8)
    base = rng.lognormal(2, 0.3, table.height)
    own["before"] = responses(table, base)
    own["after"] = responses(table, base * 1.2 * rng.lognormal(0, 0.01, table.height))
    found = compare_studies(named(study, "before"), named(study, "after"))
    for change in found.changes:
        assert change.ratio == pytest.approx(1.2, rel=0.05)
        assert change.low < 1.2 < change.high
        # More response time is worse, more throughput is better.
        assert change.verdict == ("better" if "throughput" in change.metric else "worse")
    assert f"{len(found.changes)} comparisons: 16 worse, 16 better." == summary(found)
    turned = compare_studies(named(study, "after"), named(study, "before"))
    assert turned.count("worse") == 16


def test_one_paired_change_is_that_of_scipy(study, tables):
    own, table = tables
    key = (pl.col("class") == "text") & (pl.col("scheduler") == "none") & (pl.col("load") == 0.5)
    few = table.filter(key & (pl.col("architecture") == "integrated"))
    rng = np.random.default_rng(9)
    a, b = rng.lognormal(2, 0.2, 4), rng.lognormal(2.1, 0.2, 4)
    own["before"], own["after"] = responses(few, a), responses(few, b)
    for seed, expected in (
        (0, stats.ttest_rel(np.log(b), np.log(a))),
        (100, stats.ttest_ind(np.log(b), np.log(a), equal_var=False)),
    ):
        (change,) = compare_studies(
            named(study, "before"), named(study, "after", seed), ("response_p95_ms",)
        ).changes
        assert change.p == pytest.approx(min(expected.pvalue / 0.75, 1), rel=1e-9)
        low, high = expected.confidence_interval(1 - 0.05 * 0.75)
        assert (change.low, change.high) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-9)


def test_a_change_within_the_bound_is_the_same(study, tables):
    own, table = tables
    base = np.random.default_rng(1).lognormal(2, 0.3, table.height)
    own["before"] = responses(table, base)
    own["after"] = responses(table, base * np.random.default_rng(2).lognormal(0.01, 0.001, table.height))
    pair = named(study, "before"), named(study, "after")
    assert compare_studies(*pair).count("same") == 32
    assert compare_studies(*pair, equivalence=0.005).count("worse") > 12


def test_an_overload_after_is_worse_and_what_has_no_ratio_is_not_comparable(study, tables):
    own, table = tables
    text = pl.col("class") == "text"
    own["after"] = table.with_columns(
        response_p95_ms=pl.when(text & (pl.col("repetition") == 1))
        .then(math.inf)
        .otherwise("response_p95_ms")
    )
    found = compare_studies(named(study, "before"), named(study, "after"))
    judged = [c for c in found.changes if c.class_name == "text" and c.metric == "response_p95_ms"]
    assert {c.verdict for c in judged} == {"worse"}
    assert judged[0].note == "unbounded in 0 of 4 runs before, 1 of 4 after"
    own["before"] = own["after"]
    found = compare_studies(named(study, "before"), named(study, "after"))
    assert "not comparable" in {c.verdict for c in found.changes}


def test_cells_and_classes_of_one_side_are_named(study, tables):
    own, table = tables
    own["after"] = table.filter(pl.col("load") == 0.5)
    found = compare_studies(named(study, "before"), named(study, "after"))
    assert len(found.unmatched) == 8
    assert all("load 0.9" in name for name in found.unmatched)
    own["after"] = table.clear()
    with pytest.raises(InputError, match="no class and cell in common"):
        compare_studies(named(study, "before"), named(study, "after"))


def test_bad_input_is_refused(study):
    with pytest.raises(InputError, match="has no metric `speed`"):
        compare_studies(study, study, ("speed",))
    with pytest.raises(InputError, match="equivalence bound 0"):
        compare_studies(study, study, equivalence=0)
    varied = replace(study, factors=study.factors | {"depth": [1, 2]})
    with pytest.raises(InputError, match="varies factor `depth`"):
        compare_studies(study, varied)


def test_every_format_holds_every_change(study, tables):
    own, table = tables
    own["after"] = responses(table, np.random.default_rng(3).lognormal(2, 0.5, table.height))
    found = compare_studies(named(study, "before"), named(study, "after"))
    texts = {form: render(found, form) for form in FORMATS}
    assert len(json.loads(texts["json"])["changes"]) == 32
    assert len(list(csv.DictReader(io.StringIO(texts["csv"])))) == 32
    assert len(ElementTree.fromstring(texts["junit"]).findall("testcase")) == 32
    failures = int(ElementTree.fromstring(texts["junit"]).get("failures"))
    assert failures == found.count("worse")
    assert texts["markdown"].count("\n| ") >= 33
    assert texts["text"].strip().endswith(summary(found))
    with pytest.raises(ValueError, match="unknown format"):
        render(found, "yaml")


def test_the_command_ends_with_a_code_for_scripts(study, tmp_path, capsys):
    assert main(["compare", str(study.path), str(study.path)]) == 0
    assert "32 comparisons: 32 same." in capsys.readouterr().out
    slow = tmp_path / "slow"
    synthetic.write_study(slow, repetitions=4, duration_s=2.0)
    for path in slow.glob("*/requests.parquet"):
        rows = pl.read_parquet(path)
        took = pl.col("completed_ns") - pl.col("intended_ns")
        rows.with_columns(completed_ns=pl.col("intended_ns") + took * 2).write_parquet(path)
    assert main(["compare", str(study.path), str(slow), "--metric", "response_p95_ms"]) == 3
    assert "worse" in capsys.readouterr().out
    assert main(["compare", str(slow), str(study.path), "--metric", "response_p95_ms"]) == 0
    assert main(["compare", str(study.path), str(tmp_path / "none")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
