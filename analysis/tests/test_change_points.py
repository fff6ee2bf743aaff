"""Change points over the order of runs: false warnings, changes that are found, where they are printed."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from synthetic import write_study

from weir import change_points
from weir.change_points import divisions
from weir.cli import main
from weir.load import load_study
from weir.report import render
from weir.study import class_table


def series(rng, blocks, cells, block_deviation, change=0.0, at=0.5):
    """Residuals of a study whose host changes by `change` after the share `at` of the runs."""
    values = rng.normal(0, 0.1, blocks * cells)
    values += np.repeat(rng.normal(0, block_deviation, blocks), cells)
    values[int(at * values.size) :] += change
    cell = np.concatenate([rng.permutation(cells) for _ in range(blocks)])
    means = np.bincount(cell, values) / blocks
    return values - means[cell], np.repeat(np.arange(blocks), cells)


@pytest.mark.parametrize(
    ("blocks", "cells", "deviation"), [(3, 8, 0.0), (3, 8, 0.3), (10, 8, 0.3), (5, 20, 0.1)]
)
def test_a_host_that_does_not_change_gets_few_warnings(blocks, cells, deviation, monkeypatch):
    """Blocks may differ by their requests. Three standard errors above 5 % of 400 studies are 8.3 %."""
    monkeypatch.setattr(change_points, "PERMUTATIONS", 199)
    rng = np.random.default_rng(1)
    share = np.mean([bool(divisions(*series(rng, blocks, cells, deviation))) for _ in range(400)])
    print(f"{blocks} blocks of {cells} runs, deviation of blocks {deviation}: warnings {share:.3f}")
    assert share <= 0.083


@pytest.mark.parametrize(("blocks", "cells", "least"), [(3, 24, 0.7), (10, 8, 0.85)])
def test_a_change_of_two_deviations_is_found(blocks, cells, least, monkeypatch):
    monkeypatch.setattr(change_points, "PERMUTATIONS", 199)
    rng = np.random.default_rng(2)
    found = [divisions(*series(rng, blocks, cells, 0.05, 0.2)) for _ in range(100)]
    share = np.mean([bool(places) for places in found])
    middle = blocks * cells / 2
    near = np.mean([min(abs(place - middle) for place, _ in places) <= 5 for places in found if places])
    print(f"{blocks} blocks of {cells} runs: found {share:.2f}, of these within 5 runs {near:.2f}")
    assert share >= least and near >= 0.8


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("changes") / "trial"
    return load_study(write_study(folder, repetitions=4))


def slower(study, factor, first):
    """The table with responses `factor` times as long from a place in the plan on."""
    table = class_table(study)
    slow = pl.when(pl.col("order") >= first).then(factor).otherwise(1.0)
    return table.with_columns(response_p95_ms=pl.col("response_p95_ms") * slow)


def test_a_change_has_its_place_and_its_size(study):
    assert change_points.change_points(study, class_table(study)) == []
    changes = change_points.change_points(study, slower(study, 3.0, 13))
    assert {change.class_name for change in changes} == {"text", "video"}
    for change in changes:
        assert 11 <= change.order <= 15
        assert 1.5 < change.ratio < 6
        assert f"from run {change.order} of the plan on" in change.sentence()


def test_runs_in_virtual_time_have_no_host(study):
    virtual = replace(study, runs=tuple(replace(run, testbed="simulator") for run in study.runs))
    assert change_points.change_points(virtual, slower(study, 3.0, 13)) == []


def test_a_long_series_is_shortened(study, monkeypatch):
    monkeypatch.setattr(change_points, "LONGEST", 16)
    places = {change.order for change in change_points.change_points(study, slower(study, 3.0, 20))}
    assert places and all(18 <= place <= 22 for place in places)


def test_summary_and_page_warn(study, monkeypatch, capsys):
    found = change_points.change_points(study, slower(study, 3.0, 13))
    monkeypatch.setattr("weir.report.change_points", lambda *_: found)
    monkeypatch.setattr("weir.change_points.change_points", lambda *_: found)
    assert found[0].sentence() in render(study)
    assert main(["summary", str(study.path)]) == 0
    assert f"warning: {found[0].sentence()}" in capsys.readouterr().out
