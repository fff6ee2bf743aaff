"""Tail quantiles of cells that rest on too few independent responses to be shown as numbers.

A quantile of a run that has few independent responses beyond it is the maximum of a few slow moments: it is
too low, and more repetitions do not change that. With 2 such responses in each run the geometric mean of
runs is a quarter too low, with 3 at most a tenth (`test_support.py`). The interval over runs needs ten of
them, in all runs of the cell together.
"""

import math
from collections.abc import Iterable

import polars as pl

from weir.derive import QUANTILES
from weir.labels import DASH, LABELS, label, number
from weir.load import Study
from weir.steady_state import FEWEST_BEYOND
from weir.study import cell_label

#: Independent responses beyond a quantile that each run of a cell has on average, at least.
FEWEST_PER_RUN = 3
#: A column of truths: whether the quantile of the row's cell is shown.
SHOWN = "quantile_shown"


def tail_metrics() -> dict[str, str]:
    """The tail quantiles, and the column that has the number of independent responses beyond each."""
    names = {f"response_{name}_ms": f"response_{name}_beyond" for name in QUANTILES}
    return {metric: beyond for metric, beyond in names.items() if beyond in LABELS}


def with_support(table: pl.DataFrame, metric: str, by: Iterable[str], name: str = SHOWN) -> pl.DataFrame:
    """Adds a column of truths: whether the metric of the row's cell is shown as a number.

    It is true of a metric that is no tail quantile, of runs that kept no requests, and of quantiles that
    are unbounded.

    Args:
        table: one row per run of one class.
        metric: the metric.
        by: the columns that tell cells apart.
        name: the column that is added.
    """
    beyond = tail_metrics().get(metric)
    if beyond not in table.columns or table.is_empty():
        return table.with_columns(pl.lit(value=True).alias(name))
    mean, n = _mean_beyond(metric, beyond), pl.col(metric).count()
    enough = (mean >= FEWEST_PER_RUN) & (mean * n >= FEWEST_BEYOND)
    shown = enough.fill_null(value=True) | pl.col(metric).is_infinite().any().fill_null(value=False)
    by = list(by)
    return table.with_columns((shown.over(by) if by else shown).alias(name))


def footnote(study: Study, table: pl.DataFrame, metric: str, by: Iterable[str]) -> str | None:
    """Why cells have a dash in place of a quantile, and how long to run instead; None if no cell has one.

    The numbers are those of the cell that has the fewest independent responses beyond the quantile.

    Args:
        study: the study.
        table: one row per run of one class.
        metric: the metric.
        by: the columns that tell cells apart.
    """
    by, beyond = list(by), tail_metrics().get(metric)
    hidden = with_support(table.drop_nulls(metric), metric, by).filter(~pl.col(SHOWN))
    if beyond is None or hidden.is_empty():
        return None
    # A study of one cell has no column to group by.
    cells = hidden.group_by(by or pl.lit(0).alias("_"), maintain_order=True).agg(
        pl.len().alias("n"), _mean_beyond(metric, beyond).alias("mean"), pl.col("requests").mean(), "run"
    )
    worst = cells.sort("mean", maintain_order=True).row(0, named=True)
    q = QUANTILES[metric.removeprefix("response_").removesuffix("_ms")]
    n, mean = worst["n"], worst["mean"]
    durations = {run.id: run.duration_s for run in study.runs}
    duration_s = max(durations[run] for run in worst["run"])
    longer = max(FEWEST_PER_RUN / mean, FEWEST_BEYOND / (mean * n)) if mean else math.inf
    advice = f"Run at least {math.ceil(duration_s * longer)} s" if math.isfinite(longer) else "Run longer"
    runs = "1 run" if n == 1 else f"{n} runs"
    wanted = f"{FEWEST_BEYOND} in all runs" + (f" and {FEWEST_PER_RUN} in each" if n > 1 else "")
    return (
        f"{DASH} {label(metric).text}: too few independent responses beyond it. "
        f"{cell_label(worst, by)}: {worst['requests'] * (1 - q):.0f} requests a run beyond it, "
        f"as independent as {number(mean)}; {number(mean * n)} in {runs}. "
        f"Wanted: {wanted}. {advice} instead of {duration_s:g} s."
    )


def caution(table: pl.DataFrame, metric: str, by: Iterable[str]) -> str:
    """What a comparison of cells must say whose quantiles are not shown as numbers; empty if all are.

    Args:
        table: one row per run of the cells that are compared.
        metric: the metric.
        by: the columns that tell cells apart.
    """
    by = list(by)
    rows = with_support(table.drop_nulls(metric), metric, by)
    cells = rows.group_by(by or pl.lit(0)).agg(pl.col(SHOWN).all())
    hidden = cells.height - cells[SHOWN].sum()
    if not hidden:
        return ""
    return f"The quantile rests on too few independent responses in {hidden} of {cells.height} cells."


def _mean_beyond(metric: str, beyond: str) -> pl.Expr:
    return pl.col(beyond).filter(pl.col(metric).is_not_null()).mean()
