"""Change points over the order of runs: whether the host changed while a study was running.

The series is the logarithm of a class's metric less the mean of its cell, in the order of runs. Changes are
found by E-divisive: Matteson and James, "A nonparametric approach for multiple change point analysis of
multivariate data" (Journal of the American Statistical Association 109(505), 2014), sections 2 and 3. Blocks
differ by their requests as well, so the permutations of the test move whole blocks, and runs within blocks:
a change between two of a few blocks is no evidence about the host.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from weir.labels import label, number
from weir.load import TESTBED, Study
from weir.plans import LABEL
from weir.study import objective_metric

Array = NDArray[np.float64]
#: Probability of a warning about a host that does not change, over all classes of a study.
LEVEL = 0.05
PERMUTATIONS = 499
#: Runs on each side of a change.
FEWEST = 5
#: A longer series is divided into as many means of consecutive runs.
LONGEST = 300
#: A permutation test draws from a generator of its own with this seed, so that a page is the same every time.
SEED = 20_250_102


@dataclass(frozen=True)
class Change:
    """A change of level between two runs.

    Attributes:
        class_name: the class.
        metric: the metric.
        order: the place in the plan of the first run after it.
        ratio: geometric mean of the runs after it, to the next change, relative to those before, cells taken
            out.
        p: probability of a statistic at least this large if the order of runs had no influence.
    """

    class_name: str
    metric: str
    order: int
    ratio: float
    p: float

    def sentence(self) -> str:
        """The change, and what it means for the study."""
        what = f"{self.class_name}, {label(self.metric).text.lower()}"
        return (
            f"{what}: from run {self.order} of the plan on, {number(self.ratio)} times that of the runs "
            f"before (p = {number(self.p)}). The host or its disk may have changed."
        )


def change_points(study: Study, table: pl.DataFrame) -> list[Change]:
    """The changes of each class over the order of the runs on devices.

    Runs in virtual time have no host that could change them.

    Args:
        study: the study.
        table: one row per valid run and class.
    """
    if table.is_empty():
        return []
    measured = {run.id for run in study.valid_runs if run.testbed != "simulator"}
    rows = table.filter(pl.col("run").is_in(measured)).sort("order")
    series = [found for one in study.classes if (found := _series(study, rows, one.name)) is not None]
    changes = []
    for name, metric, frame in series:
        changes += _changes(name, metric, frame, LEVEL / len(series))
    return changes


def _series(study: Study, rows: pl.DataFrame, name: str) -> tuple[str, str, pl.DataFrame] | None:
    """Residuals of a class in the order of runs: `order`, `block`, `value`."""
    metric, _ = objective_metric(next(one for one in study.classes if one.name == name))
    rows = rows.filter((pl.col("class") == name) & pl.col(metric).is_finite() & (pl.col(metric) > 0))
    cell = [factor for factor in study.varied if factor != TESTBED]
    value = pl.col(metric).log()
    residual = value - (value.mean().over(cell) if cell else value.mean())
    # A cell of one run has no residual.
    kept = rows.filter(pl.len().over(cell) > 1) if cell else rows
    if kept.height < 2 * FEWEST:
        return None
    # Runs with different labels are made at different times, also those of one block.
    times = [column for column in (LABEL, "block") if column in kept.columns]
    block = pl.struct(times).rank("dense").cast(pl.Int64)
    return name, metric, kept.select("order", block.alias("block"), value=residual)


def _changes(name: str, metric: str, frame: pl.DataFrame, level: float) -> Iterator[Change]:
    size = -(-frame.height // LONGEST)
    groups = frame.with_columns(part=pl.int_range(pl.len()).over("block") // size)
    means = groups.group_by("block", "part", maintain_order=True).agg(
        pl.col("order").first(), pl.col("value").mean(), pl.len()
    )
    values, blocks = means["value"].to_numpy(), means["block"].to_numpy()
    places = divisions(values, blocks, level)
    edges = [0, *(place for place, _ in places), values.size]
    counts = means["len"].to_numpy()
    levels = [float(np.average(values[a:b], weights=counts[a:b])) for a, b in pairwise(edges)]
    for (place, p), (before, after) in zip(places, pairwise(levels), strict=True):
        yield Change(name, metric, int(means["order"][place]), float(np.exp(after - before)), p)


def divisions(values: Array, blocks: NDArray[np.int64], level: float = LEVEL) -> list[tuple[int, float]]:
    """The places at which a series changes, each with its p value, in order.

    Args:
        values: the series.
        blocks: the block of each value; values of a block are consecutive.
        level: a place joins the result where p is at most this.
    """
    rng = np.random.default_rng(SEED)
    found: list[tuple[int, float]] = []
    open_parts = [(0, values.size)]
    while open_parts:
        begin, end = open_parts.pop()
        if end - begin < 2 * FEWEST:
            continue
        distances = np.abs(values[begin:end, None] - values[None, begin:end])
        place, statistic = _division(distances)
        above = 0
        for _ in range(PERMUTATIONS):
            order = _permutation(blocks[begin:end], rng)
            above += _division(distances[np.ix_(order, order)])[1] >= statistic
        p = (above + 1) / (PERMUTATIONS + 1)
        if p <= level:
            found.append((begin + place, p))
            open_parts += [(begin, begin + place), (begin + place, end)]
    return sorted(found)


def _division(distances: Array) -> tuple[int, float]:
    """The division of a series with the largest statistic, from the distances between its values."""
    n = distances.shape[0]
    upper = np.triu(distances, 1)
    left = np.cumsum(upper.sum(axis=0))[FEWEST - 1 : n - FEWEST]
    right = np.cumsum(upper.sum(axis=1)[::-1])[::-1][FEWEST : n - FEWEST + 1]
    m = np.arange(FEWEST, n - FEWEST + 1, dtype=float)
    rest = n - m
    between = upper.sum() - left - right
    energy = 2 * between / (m * rest) - 2 * left / (m * (m - 1)) - 2 * right / (rest * (rest - 1))
    statistics = m * rest / n * energy
    best = int(np.argmax(statistics))
    return FEWEST + best, float(statistics[best])


def _permutation(blocks: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.intp]:
    """Another order of the values: of the blocks, and of the values within each."""
    names = np.unique(blocks)
    ranks = np.empty(names.size)
    ranks[rng.permutation(names.size)] = np.arange(names.size)
    return np.lexsort((rng.random(blocks.size), ranks[np.searchsorted(names, blocks)]))
