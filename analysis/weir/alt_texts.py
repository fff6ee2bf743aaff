"""Texts in place of figures, for readers who do not see them: made from the data that is drawn."""

from collections.abc import Sequence

import polars as pl

from weir.labels import label, number
from weir.responses import Responses
from weir.statistics import summarise
from weir.study import cell_label

#: More cells than this are told by the lowest and the highest.
MOST_CELLS = 8


def estimates(table: pl.DataFrame, metrics: Sequence[str], by: Sequence[str]) -> str:
    """Metrics by cell, such as `Median response time (ms), mean over runs: 12.0 for none, 14.1 for bfq`.

    Args:
        table: one row per run.
        metrics: columns; those without a value are left out.
        by: the columns that tell cells apart.
    """
    texts = []
    for metric in metrics:
        summary = summarise(table, metric, by)
        values = [(row["estimate"], cell_label(row, by)) for row in summary.iter_rows(named=True)]
        if values:
            texts.append(f"{label(metric).axis}, mean over runs: {_listed(values)}.")
    return " ".join(texts)


def ratios(comparisons: pl.DataFrame, by: Sequence[str]) -> str:
    """Ratios by cell.

    Args:
        comparisons: as `statistics.compare` makes them.
        by: the columns that tell comparisons apart.
    """
    rows = comparisons.iter_rows(named=True)
    values = [(row["estimate"], cell_label(row, by)) for row in rows if row["estimate"] is not None]
    return f"Ratio of the level to the baseline: {_listed(values)}." if values else "No comparison."


def course(found: Responses, by: Sequence[str]) -> str:
    """The range over time of each cell."""
    groups = found.course.group_by(by, maintain_order=True) if by else [((), found.course)]
    texts = []
    for key, rows in groups:
        low, high = rows["response_ms"].min(), rows["response_ms"].max()
        cell = cell_label(dict(zip(by, key, strict=True)), by)
        texts.append((high, f"{number(low)} to {number(high)} for {cell}"))
    return f"Response time over time (ms): {_few(texts)}."


def _listed(values: Sequence[tuple[float, str]]) -> str:
    return _few([(value, f"{number(value)} for {cell}") for value, cell in values])


def _few(texts: list[tuple[float, str]]) -> str:
    if len(texts) <= MOST_CELLS:
        return "; ".join(text for _, text in texts)
    low, high = (chosen(texts, key=lambda pair: pair[0])[1] for chosen in (min, max))
    return f"lowest {low}; highest {high}; {len(texts)} cells"
