"""Responses of a study for its figures: distributions by cell, and the course of every run over time."""

import math
from dataclasses import dataclass

import polars as pl

from weir import response_grid
from weir.derive import QUANTILES
from weir.load import AppClass, Run, Study
from weir.study import objective_metric

#: Figures show at most this many cells: those with the longest responses. Tables show all.
MOST_CELLS = 48
#: Figures show at most about this many runs of a class: the first repetitions of each cell.
MOST_RUNS = 1000


@dataclass(frozen=True)
class Responses:
    """Responses of one class.

    Attributes:
        shares: share of requests that took at most `response_ms`, by cell: mean over runs, `low`, `high`.
        course: the quantile `q` of each interval of each run: `run`, `repetition`, `time_s`, `requests`,
            `response_ms`.
        q: the quantile of `course`.
        step_s: length of the intervals of `course`.
        warmup_s: end of the longest warm-up.
        repetitions: runs of a cell, fewest and most.
        most: the first runs of a cell that are in both tables, at most.
        shown: cells in both tables.
        cells: cells with valid runs.
    """

    shares: pl.DataFrame
    course: pl.DataFrame
    q: float
    step_s: float
    warmup_s: float
    repetitions: tuple[int, int]
    most: int
    shown: int
    cells: int


def responses(study: Study, table: pl.DataFrame) -> dict[str, Responses]:
    """The responses of each class with measured requests; one pass over the requests of each run shown.

    A study with a valid run of which no request was kept has none: a figure of a part of its runs would
    mislead.

    Args:
        study: the study.
        table: one row per valid run and class.

    Raises:
        InputError: a request table is damaged.
    """
    runs = {run.id: run for run in study.valid_runs}
    if not runs or not all((run.path / "requests.parquet").exists() for run in runs.values()):
        return {}
    names = list(study.varied)
    cells = {c.name: _cells(table, c.name, names) for c in study.classes}
    shown = {c.name: _slowest(cells[c.name], objective_metric(c)[0]) for c in study.classes}
    wanted: dict[str, list[str]] = {}
    for name, of_class in shown.items():
        for cell in of_class:
            for run in cell["run"].head(_most(of_class)):
                wanted.setdefault(run, []).append(name)
    step = response_grid.step_s(runs.values())
    grids = {}
    for run, classes in wanted.items():
        grid = response_grid.counts(runs[run], step)
        grids |= {(name, run): grid.filter(pl.col("class") == name) for name in classes}
    return {
        c.name: _of_class(shown[c.name], len(cells[c.name]), c, names, runs, grids, step)
        for c in study.classes
        if shown[c.name]
    }


def _cells(table: pl.DataFrame, class_name: str, names: list[str]) -> list[pl.DataFrame]:
    """The rows of each cell that has measured requests of the class, in the table's order."""
    rows = table.filter((pl.col("class") == class_name) & (pl.col("requests") > 0))
    if not names:
        return [rows] if rows.height else []
    return rows.partition_by(names, maintain_order=True)


def _slowest(cells: list[pl.DataFrame], metric: str) -> list[pl.DataFrame]:
    """The cells to show, in their order: all, or `MOST_CELLS` with the longest responses."""
    means = [cell[metric].mean() for cell in cells]
    longest = sorted(range(len(cells)), key=lambda i: -math.inf if means[i] is None else means[i])
    return [cells[i] for i in sorted(longest[-MOST_CELLS:])]


def _most(shown: list[pl.DataFrame]) -> int:
    """The runs of each cell to show, at most; two are needed to see how runs differ."""
    return max(MOST_RUNS // len(shown), 2)


def _of_class(
    shown: list[pl.DataFrame],
    cells: int,
    app_class: AppClass,
    names: list[str],
    runs: dict[str, Run],
    grids: dict[tuple[str, str], pl.DataFrame],
    step: float,
) -> Responses:
    q = min(QUANTILES[objective_metric(app_class)[0].split("_")[1]], QUANTILES["p95"])
    counts, most = [cell.height for cell in shown], _most(shown)
    shown = [cell.head(most) for cell in shown]
    own = {run: grids[app_class.name, run] for cell in shown for run in cell["run"]}
    # One length for all runs, so that their courses can be compared.
    factor = max(map(response_grid.widened, own.values()))
    shares = [_beside(response_grid.shares([own[run] for run in cell["run"]]), cell, names) for cell in shown]
    course = [
        _beside(response_grid.over_time(own[run], q, step, factor), cell[i], ["run", "repetition", *names])
        for cell in shown
        for i, run in enumerate(cell["run"])
    ]
    return Responses(
        shares=pl.concat(shares),
        course=pl.concat(course),
        q=q,
        step_s=step * factor,
        warmup_s=max(runs[run].warmup_s for run in own),
        repetitions=(min(counts), max(counts)),
        most=most,
        shown=len(shown),
        cells=cells,
    )


def _beside(points: pl.DataFrame, row: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Points with the columns of the first of these rows."""
    return points.join(row.select(names).head(1), how="cross") if names else points
