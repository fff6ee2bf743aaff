"""Distributions by cell and courses over time, against all requests in memory."""

import math
import re

import numpy as np
import polars as pl
import pytest
import synthetic
from matplotlib.colors import to_hex

from weir import alt_texts, response_grid
from weir.labels import DASH, number
from weir.load import load_study
from weir.plots import responses as response_figures
from weir.plots import study_figures
from weir.report import render
from weir.report_figures import exhibits
from weir.responses import MOST_CELLS, responses
from weir.study import class_table, in_plan_order
from weir.tables import scan_measured, scan_requests


def test_shares_are_those_of_all_requests(study_folder):
    study = load_study(study_folder)
    found = responses(study, class_table(study))["text"]
    one = found.shares.filter(scheduler="none", architecture="integrated", load=0.9)
    runs = [
        scan_measured([run]).filter(pl.col("class") == "text").collect()["response_ms"].to_numpy()
        for run in study.valid_runs
        if list(run.levels.values()) == ["none", "integrated", 0.9]
    ]
    assert len(runs) == 3
    for t, *shares in one.select("response_ms", "share", "low", "high").rows():
        exact = [(x <= t).mean() for x in runs]
        assert shares == pytest.approx([np.mean(exact), min(exact), max(exact)], abs=1e-12)
    assert one["share"].is_sorted() and one["share"][-1] == 1


def test_the_course_is_the_quantile_of_what_was_due_in_each_interval(study_folder):
    study = load_study(study_folder)
    found = responses(study, class_table(study))["text"]
    run = study.valid_runs[0]
    requests = scan_requests(run).filter(pl.col("class") == "text").collect()
    took = ((requests["completed_ns"] - requests["intended_ns"]) / 1e6).to_numpy()
    interval = (requests["intended_ns"].to_numpy() // (found.step_s * 1e9)).astype(int)
    course = found.course.filter(run=run.id)
    assert course["requests"].sum() == requests.height
    # 3 s of 50 requests/s: intervals of 20 requests would be too few to see a course.
    assert course.height >= response_grid.FEWEST_INTERVALS
    for time_s, value in course.select("time_s", "response_ms").rows():
        x = np.sort(took[interval == int(time_s // found.step_s)])
        exact = x[math.ceil(found.q * x.size - 1e-9) - 1]
        assert value == pytest.approx(exact, rel=response_grid.ERROR + 1e-9)
    # The warm-up is there, and is marked as such.
    assert found.warmup_s == run.warmup_s and course["time_s"][0] < run.warmup_s


@pytest.mark.parametrize(("intervals", "each", "wider"), [(60, 6, 5), (60, 20, 1), (60, 1, 5), (100, 1, 10)])
def test_intervals_are_widened_until_a_quantile_is_not_the_largest_value(intervals, each, wider):
    grid = pl.DataFrame({"interval": range(intervals), "n": [each] * intervals})
    assert response_grid.widened(grid) == wider


def test_requests_that_never_completed_are_neither_dropped_nor_given_a_time(study_folder):
    path = study_folder / "none-partitioned-0.5-0" / "requests.parquet"
    requests = pl.read_parquet(path)
    late = (pl.col("class") == "text") & (pl.col("intended_ns") > 2e9)
    requests.with_columns(
        completed_ns=pl.when(late).then(None).otherwise(pl.col("completed_ns"))
    ).write_parquet(path)
    study = load_study(study_folder)
    found = responses(study, class_table(study))["text"]
    cell = found.shares.filter(scheduler="none", architecture="partitioned", load=0.5)
    assert cell["low"].max() < 0.7 and cell["high"].max() == 1
    own = found.course.filter(run=study.runs[0].id)
    assert own.filter(pl.col("time_s") > 2 + found.step_s)["response_ms"].is_infinite().all()
    figure = response_figures.over_time(study, found)
    assert "Triangles: unbounded" in " ".join(
        t.get_text().replace("\n", " ") for t in figure.findobj(lambda a: hasattr(a, "get_text"))
    )


def test_the_grid_does_not_grow_with_the_requests(tmp_path):
    """Ten times the requests at ten times the length have no more intervals, and few more bins."""
    sizes = []
    for name, duration_s in (("short", 4.0), ("long", 40.0)):
        folder = synthetic.write_study(
            tmp_path / name, schedulers=("none",), architectures=("integrated",), loads=(0.9,), repetitions=1,
            duration_s=duration_s,
        )  # fmt: skip
        run = load_study(folder).runs[0]
        step = response_grid.step_s([run])
        grid = response_grid.counts(run, step)
        assert grid["interval"].n_unique() <= response_grid.MOST_INTERVALS
        sizes.append((grid["n"].sum(), grid["bin"].n_unique()))
    assert sizes[1][0] > 7 * sizes[0][0]
    assert sizes[1][1] < 2 * sizes[0][1]


def test_large_studies_show_the_cells_with_the_longest_responses(tmp_path):
    loads = tuple(round(0.1 + 0.01 * i, 2) for i in range(MOST_CELLS + 2))
    folder = synthetic.write_study(
        tmp_path / "many", schedulers=("none",), architectures=("integrated",), loads=loads, repetitions=1,
        duration_s=1.0,
    )  # fmt: skip
    study = load_study(folder)
    table = class_table(study)
    found = responses(study, table)["text"]
    assert (found.shown, found.cells) == (MOST_CELLS, MOST_CELLS + 2)
    assert f"{MOST_CELLS} of {MOST_CELLS + 2} cells" in response_figures.runs_text(found)
    rows = table.filter(pl.col("class") == "text").sort("response_p95_ms")
    assert set(found.course["load"]) == set(rows["load"][2:])


def test_of_many_repetitions_the_first_of_each_cell_are_shown(study_folder, monkeypatch):
    monkeypatch.setattr("weir.responses.MOST_RUNS", 17)
    study = load_study(study_folder)
    found = responses(study, class_table(study))["text"]
    assert (found.repetitions, found.most_repetitions) == ((2, 2), 3)
    assert set(found.course["repetition"]) == {0, 1}
    assert found.course["run"].n_unique() == 16
    assert response_figures.runs_text(found) == "n = 2 of 3 repetitions"
    figure = response_figures.over_time(study, found)
    assert {len(axis.lines) for axis in figure.axes if axis.get_visible()} == {2}


def colours(figure):
    names = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    handles = [to_hex(h.get_color()) for legend in figure.legends for h in legend.get_lines()]
    return dict(zip(names, handles, strict=True))


def test_a_level_has_one_colour_in_all_figures(study_folder):
    study = load_study(study_folder)
    table = class_table(study)
    rows = table.filter(pl.col("class") == "text")
    found = responses(study, table)["text"]
    ours = colours(response_figures.distributions(study, found))
    theirs = colours(study_figures.intervals(study, rows, "response_p95_ms"))
    assert ours == theirs == {"partitioned": ours["partitioned"], "integrated": ours["integrated"]}
    drawn = response_figures.over_time(study, found)
    for axis in drawn.axes:
        level = axis.get_title().split(",")[0].strip()
        assert {to_hex(line.get_color()) for line in axis.lines} == {ours[level]}
        assert len(axis.lines) == 3


@pytest.mark.parametrize("duration_s", [10.0, 1.0])
def test_two_factors_of_names_are_a_heat_map(tmp_path, duration_s):
    folder = synthetic.write_study(tmp_path / "crossed", duration_s=duration_s, repetitions=2)
    for path in (folder / "plan.json", *folder.glob("*/run.json")):
        path.write_text(path.read_text().replace('"architecture"', '"filesystem"'))
    study = load_study(folder)
    table = class_table(study)
    found = {exhibit.name: exhibit for exhibit in exhibits(study, table)}
    figure = found["text-map"].figure
    assert [axis.get_title() for axis in figure.axes] == ["load 0.5", "load 0.9"]
    drawn = sorted(text.get_text() for axis in figure.axes for text in axis.texts)
    cells = table.filter(pl.col("class") == "text").group_by("scheduler", "filesystem", "load")
    values = cells.agg(pl.col("response_p95_ms").log().mean().exp())["response_p95_ms"]
    # Within 1 s too few responses of a cell are longer than the quantile: there is no number to show.
    is_long = duration_s > 1
    assert drawn == (sorted(number(value) for value in values) if is_long else [DASH] * len(values))
    note = " ".join(figure.texts[-1].get_text().split())
    assert "geometric mean of runs, n = 2 repetitions." in note
    assert (f" {DASH} " in note) != is_long


def test_texts_in_place_of_figures_have_the_numbers(study_folder):
    study = load_study(study_folder)
    table = class_table(study)
    rows = table.filter((pl.col("class") == "text") & (pl.col("load") == 0.5))
    text = alt_texts.estimates(rows, ["response_p50_ms"], ["scheduler", "architecture"])
    cell = rows.filter(scheduler="none", architecture="integrated")["response_p50_ms"].mean()
    assert text.startswith("Median response time (ms), mean over runs: ")
    assert f"{cell:.2f} for none, integrated" in text
    page = render(study)
    alts = re.findall(r'<img src="[^"]*" alt="([^"]*)"', page)
    assert len(alts) == 12 and all(re.search(r"\d", alt) for alt in alts)
    # Many cells are told by the lowest and the highest.
    assert "16 cells" not in text and "highest" in alt_texts.estimates(
        table, ["response_p50_ms"], ["class", "scheduler", "architecture", "load"]
    )


def test_a_summary_without_requests_has_no_distribution(study_folder):
    study = load_study(study_folder)
    table = in_plan_order(class_table(study), study)
    (study.runs[0].path / "requests.parquet").unlink()
    assert responses(study, table) == {}
