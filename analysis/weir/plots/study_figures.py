"""Figures of a study by its factors. Each returns a matplotlib figure; `weir.plots.save` writes it.

Every figure shows runs or their number, gives axes with units, and says below what its bars are and of how
many repetitions. A group of one repetition has no bar. The tables that are drawn hold valid runs only.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from weir import response_grid
from weir.distribution import MOST_KEPT
from weir.load import Level, Run, Study
from weir.plots import charts, distributions
from weir.plots.layout import Layout, place
from weir.study import comparable
from weir.support import SHOWN, caution, footnote, with_support
from weir.tables import scan_measured

_NO_REQUEST = "class {} has no measured request in a valid run"


def intervals(
    study: Study,
    table: pl.DataFrame,
    metric: str,
    *,
    limit: float | None = None,
    x: str | None = None,
) -> Figure:
    """A metric by the study's factors: runs as small points, their estimate, and its interval.

    A cell whose quantile rests on too few independent responses has a dash (`weir.support`).

    Args:
        study: the study.
        table: one row per run (of one class, or of the runs as a whole).
        metric: the column to draw.
        limit: the objective's limit, drawn as a line.
        x: the factor along the axis; chosen from the study's if None.

    Raises:
        ValueError: no row has a value of the metric.
    """
    kept = with_support(table.drop_nulls(metric), metric, study.varied)
    table, at = place(study, kept, x)
    own = {"fit": True, "shown": SHOWN, "note": footnote(study, kept, metric, study.varied) or ""}
    return charts.intervals(table, metric, limit=limit, order=_order(study, at), **own, **_places(at))


def ratios(
    study: Study,
    table: pl.DataFrame,
    metric: str,
    factor: str,
    baseline: Level | None = None,
    *,
    as_difference: bool = False,
) -> Figure:
    """Each level of a factor against a baseline level, paired by block, with the interval of the ratio.

    Args:
        study: the study.
        table: one row per run and class.
        metric: the column to compare.
        factor: the factor whose levels are compared.
        baseline: the level that they are compared with; the plan's first if None.
        as_difference: draw differences, for a metric that may be zero.

    Raises:
        ValueError: no pair of runs can be compared.
    """
    if baseline is None:
        baseline = study.factors[factor][0]
    kept = comparable(study, table, factor, baseline)
    return charts.ratios(
        kept,
        metric,
        factor,
        baseline,
        by=[name for name in study.varied if name != factor],
        order={"class": [c.name for c in study.classes]},
        as_difference=as_difference,
        note=caution(kept, metric, ["class", *study.varied]),
    )


def tail(study: Study, class_name: str, *, band: bool = False) -> Figure:
    """The share of one class's requests that took longer than t: a line per run, or their mean (`band`).

    Lines need the requests of one run at a time, a band those of all runs.

    Raises:
        ValueError: the class has no request in a valid run.
        InputError: a request table is damaged.
    """
    if band:
        columns = ["run", "response_ms", *study.varied]
        requests = scan_measured(study.valid_runs).filter(pl.col("class") == class_name)
        table, at = place(study, requests.select(columns).collect())
        if table.is_empty():
            raise ValueError(_NO_REQUEST.format(class_name))
        return distributions.tail(table, order=_order(study, at), band=True, **_places(at))
    parts, requests, lost = [], 0, 0.0
    for run in study.valid_runs:
        points, n, share = _exceedance(run, class_name)
        levels = [pl.lit(run.levels.get(name)).alias(name) for name in study.varied]
        parts.append(points.with_columns(pl.lit(run.id).alias("run"), *levels))
        requests, lost = requests + n, lost + n * share
    if not requests:
        raise ValueError(_NO_REQUEST.format(class_name))
    table, at = place(study, pl.concat(parts, how="vertical_relaxed"))
    own = {"above": "above", "lost": lost / requests}
    return distributions.tail(table, order=_order(study, at), **own, **_places(at))


def _exceedance(run: Run, class_name: str) -> tuple[pl.DataFrame, int, float]:
    """The points of one run's line, the number of its requests, and the share that never completed.

    The points of many requests are the edges of the bins of `response_grid`.
    """
    found = scan_measured([run]).filter(pl.col("class") == class_name)
    n = found.select(pl.len()).collect().item()
    if n > MOST_KEPT:
        grid = response_grid.counts(run, response_grid.step_s([run])).filter(pl.col("class") == class_name)
        bins = response_grid.shares([grid]).select("response_ms", above=1 - pl.col("share"))
        return bins.filter(pl.col("above") > 0), n, float(bins["above"].min() or 0)
    values = found.select("response_ms").collect()["response_ms"].to_numpy()
    t, above = distributions.exceedance(values) if n else (values, values)
    return pl.DataFrame({"response_ms": t, "above": above}), n, float(np.isinf(values).mean()) if n else 0.0


def split(study: Study, table: pl.DataFrame) -> Figure:
    """Mean queueing delay and mean service time, stacked, with the interval of each.

    Args:
        study: the study.
        table: one row per run with `queueing_mean_ms` and `service_mean_ms`.

    Raises:
        ValueError: no run has both.
    """
    return charts.split(table, by=list(study.varied), fit=True)


def _places(at: Layout) -> dict[str, str | None]:
    return {"x": at.x, "hue": at.hue, "col": at.col, "row": at.row}


def _order(study: Study, at: Layout) -> Mapping[str, Sequence[Level]]:
    """All levels of the plan, so that a level has one colour in all figures of the study."""
    return {name: study.factors[name] for name in at.factors if name in study.factors}
