"""Responses over time, from the histograms in the `series.parquet` of runs.

A row of a series is a count of requests, so that series of many runs add up, and no request is read.
"""

from collections.abc import Iterable, Sequence

import polars as pl

from weir.errors import InputError
from weir.load import RUN_AGAIN, Run
from weir.tables import scan_table

#: Columns of `series.parquet`, and whether they hold names or integers.
COLUMNS = {
    "class": "name",
    "start_ns": "integer",
    "response_ns": "integer",
    "requests": "integer",
    "size_bytes": "integer",
    "late": "integer",
}
#: Buckets of a power of two: a response time is known to within 1 / 64.
SUB_BITS = 6


def course(
    runs: Iterable[Run],
    every_s: float = 1.0,
    quantiles: Sequence[float] = (0.5, 0.95, 0.99),
    by: Sequence[str] = (),
) -> pl.DataFrame:
    """Requests and response times of classes in intervals of intended time, of the measured part of the runs.

    The first interval begins with the measured part; the last one may be cut short by its end.

    Args:
        runs: runs with a series; those without requests have none.
        every_s: length of an interval; a multiple of the 0.1 s of a series.
        quantiles: quantiles of response time, each between 0 and 1.
        by: factors whose levels are kept apart; the runs of a cell are added up.

    Returns:
        Columns `by`, `class`, `start_s` (since the start of the runs), `runs`, `requests`,
        `requests_per_s` and `mb_per_s` (of one run), `failed` (or never answered), `late` (deadlines), and
        for each quantile such as 0.95 `response_p95_ms`: the middle of its bucket, infinite where so many
        requests failed.

    Raises:
        InputError: no run has a series, or one is damaged.
        ValueError: `every_s` or a quantile is out of range.
    """
    every_ns = round(every_s * 1e9)
    if every_ns <= 0 or every_ns % 100_000_000:
        raise ValueError(f"every_s is {every_s}, expected a multiple of 0.1")
    if any(not 0 < q < 1 for q in quantiles):
        raise ValueError(f"quantiles are {list(quantiles)}, expected numbers between 0 and 1")
    by = list(by)
    frames, counted = [], {}
    for run in runs:
        path = run.path / "series.parquet"
        if not path.exists():
            continue
        cell = tuple(run.levels.get(name) for name in by)
        counted[cell] = counted.get(cell, 0) + 1
        low, high = run.window_ns
        levels = [pl.lit(run.levels.get(name)).alias(name) for name in by]
        frames.append(
            scan_table(path, COLUMNS)
            .filter(pl.col("start_ns") >= low, pl.col("start_ns") < high)
            .with_columns((pl.col("start_ns") - low) // every_ns * every_ns + low, *levels)
        )
    if not frames:
        raise InputError("results", "no run has a series.parquet", RUN_AGAIN)
    keys = [*by, "class", "start_ns"]
    rows = (
        pl.concat(frames, how="vertical_relaxed")
        .group_by(*keys, "response_ns")
        .agg(pl.sum("requests", "size_bytes", "late"))
        .sort(*keys, "response_ns", nulls_last=True)
        .collect()
    )
    rows = rows.with_columns(
        up_to=pl.col("requests").cum_sum().over(keys), all=pl.col("requests").sum().over(keys)
    )
    found = [
        pl.col("response_ns").filter(pl.col("up_to") >= q * pl.col("all")).first().alias(_name(q))
        for q in quantiles
    ]
    failed = pl.col("requests").filter(pl.col("response_ns").is_null()).sum().alias("failed")
    table = rows.group_by(keys, maintain_order=True).agg(
        pl.sum("requests", "size_bytes", "late"), failed, *found
    )
    cells = pl.DataFrame(
        [dict(zip(by, cell, strict=True)) | {"runs": count} for cell, count in counted.items()], strict=False
    )
    if by:
        table = table.join(cells, on=by, how="left", nulls_equal=True)
    else:
        table = table.with_columns(runs=pl.lit(cells["runs"].sum()))
    per_run = 1 / (pl.col("runs") * (every_ns / 1e9))
    return table.select(
        *by,
        "class",
        (pl.col("start_ns") / 1e9).alias("start_s"),
        "runs",
        "requests",
        (pl.col("requests") * per_run).alias("requests_per_s"),
        (pl.col("size_bytes") * per_run / 1e6).alias("mb_per_s"),
        "failed",
        "late",
        *(_middle_ms(_name(q)) for q in quantiles),
    )


def _name(q: float) -> str:
    """`response_p95_ms` of 0.95, `response_p999_ms` of 0.999."""
    return f"response_p{f'{q:.10f}'.rstrip('0')[2:].ljust(2, '0')}_ms"


def _middle_ms(name: str) -> pl.Expr:
    """Middle of the bucket that begins at a time in ns, in ms; infinite where there is none."""
    value = pl.col(name).cast(pl.Float64)
    # A bucket is 2^(bits - 7) ns wide, below 64 ns 1 ns.
    width = 2.0 ** (value.clip(1).log(2).floor() - SUB_BITS).clip(0)
    return ((value + width / 2) / 1e6).fill_null(float("inf")).alias(name)
