"""Responses of a run as counts by class, interval of time and size: figures of any number of requests.

One streamed pass over the request table keeps no row, so memory depends on the grid and not on the requests.
Bins of responses are logarithmic: the share of requests up to the edge of a bin is exact, and a quantile is
within half a bin, `ERROR`, of the exact one.
"""

import math
from collections.abc import Iterable

import polars as pl

from weir.errors import InputError
from weir.load import RUN_AGAIN, Run
from weir.tables import is_sample, response_ms, scan_requests

BINS_PER_OCTAVE = 32
#: Largest relative error of a quantile that is read from the grid.
ERROR = 2 ** (0.5 / BINS_PER_OCTAVE) - 1
#: The bin of requests that failed or never completed.
UNBOUNDED_BIN = 2**30
#: Smaller responses are in one bin.
_SMALLEST_MS = 1e-4
#: A run has at most this many intervals.
MOST_INTERVALS = 100
#: An interval holds this many requests on average, so that a 95th percentile is not its largest value.
FEWEST_REQUESTS = 20
FEWEST_INTERVALS = 10
_WIDER = (1, 2, 5, 10)


def step_s(runs: Iterable[Run]) -> float:
    """The interval in seconds, of 1, 2 or 5 times a power of ten, that suits the longest of these runs."""
    longest = max(run.warmup_s + run.duration_s for run in runs)
    decade = 10.0 ** math.floor(math.log10(longest / MOST_INTERVALS))
    return next(step for f in _WIDER if longest / (step := f * decade) <= MOST_INTERVALS + 1e-9)


def counts(run: Run, step: float) -> pl.DataFrame:
    """The requests of a run, warm-up included, counted.

    Args:
        run: a run with request table.
        step: length of an interval in seconds.

    Returns:
        `class`, `interval` (0 is the first), `bin` of the response, `sample` (whether the response counts,
        as `tables.is_sample` says), `n`.

    Raises:
        InputError: the table is absent or damaged.
    """
    end_ns = run.window_ns[1]
    logarithm = pl.col("response_ms").clip(_SMALLEST_MS).log(2) * BINS_PER_OCTAVE
    of_response = pl.when(pl.col("response_ms").is_finite()).then(logarithm.ceil()).otherwise(UNBOUNDED_BIN)
    frame = (
        scan_requests(run)
        .filter(pl.col("intended_ns") < end_ns)
        .select("class", "intended_ns", response_ms(), is_sample(run).alias("sample"))
        .group_by(
            "class",
            (pl.col("intended_ns") // round(step * 1e9)).alias("interval"),
            of_response.cast(pl.Int32).alias("bin"),
            "sample",
        )
        .agg(pl.len().alias("n"))
    )
    try:
        return frame.collect(engine="streaming").sort("class", "interval", "bin", "sample")
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise InputError(run.path / "requests.parquet", f"cannot be read ({reason})", RUN_AGAIN) from error


def widened(grid: pl.DataFrame) -> int:
    """How many intervals make one, so that one of this class's grid has `FEWEST_REQUESTS` on average."""
    intervals = max(grid["interval"].n_unique(), 1)
    each = grid["n"].sum() / intervals
    for factor in _WIDER:
        if each * factor >= FEWEST_REQUESTS or intervals / factor < 2 * FEWEST_INTERVALS:
            return factor
    return _WIDER[-1]


def over_time(grid: pl.DataFrame, q: float, step: float, factor: int = 1) -> pl.DataFrame:
    """The q-quantile of the responses of each interval, by the inverse of the empirical distribution.

    Args:
        grid: the counts of one run and class.
        q: in (0, 1].
        step: length of an interval of the grid in seconds.
        factor: intervals of the grid that make one.

    Returns:
        `time_s` (the middle of the interval), `requests`, `response_ms` (infinite where unbounded).
    """
    wide = pl.col("interval") // factor
    by_bin = grid.group_by(wide, "bin").agg(pl.col("n").sum()).sort("interval", "bin")
    total, upto = pl.col("n").sum().over("interval"), pl.col("n").cum_sum().over("interval")
    reached = by_bin.with_columns(total=total, upto=upto).filter(
        # The slack keeps 0.95 * 20 = 19.000000000000004 at rank 19.
        pl.col("upto") >= (q * pl.col("total") - 1e-9).ceil().clip(1)
    )
    first = reached.group_by("interval", maintain_order=True).agg(pl.col("bin", "total").first())
    middle = (pl.lit(2.0)).pow((pl.col("bin") - 0.5) / BINS_PER_OCTAVE)
    return first.select(
        ((pl.col("interval") + 0.5) * step * factor).alias("time_s"),
        pl.col("total").alias("requests"),
        pl.when(pl.col("bin") == UNBOUNDED_BIN).then(math.inf).otherwise(middle).alias("response_ms"),
    )


def shares(grids: list[pl.DataFrame]) -> pl.DataFrame:
    """The share of measured requests that took at most t, over runs of one cell.

    Args:
        grids: the counts of one class, one table a run.

    Returns:
        `response_ms` (edges of bins), `share` (mean over runs), `low` and `high` (of the runs), sorted.
        Empty without measured requests. Requests that never completed keep shares below 1.
    """
    runs = []
    for position, grid in enumerate(grids):
        one = grid.filter("sample").group_by("bin").agg(pl.col("n").sum()).sort("bin")
        if one.height:
            share = pl.col("n").cum_sum() / pl.col("n").sum()
            runs.append(one.select("bin", share.alias(str(position))))
    if not runs:
        return pl.DataFrame(schema=dict.fromkeys(("response_ms", "share", "low", "high"), pl.Float64))
    bins = pl.concat([one.select("bin") for one in runs]).unique().sort("bin")
    table = bins
    for one in runs:
        table = table.join(one, on="bin", how="left")
    columns = [name for name in table.columns if name != "bin"]
    table = table.with_columns(pl.col(columns).fill_null(strategy="forward").fill_null(0.0))
    return table.filter(pl.col("bin") != UNBOUNDED_BIN).select(
        pl.lit(2.0).pow(pl.col("bin") / BINS_PER_OCTAVE).alias("response_ms"),
        pl.mean_horizontal(columns).alias("share"),
        pl.min_horizontal(columns).alias("low"),
        pl.max_horizontal(columns).alias("high"),
    )
