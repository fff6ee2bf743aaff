"""The paper's studies as tables: what each stream got, second by second."""

import polars as pl

from weir.load import Run, Study
from weir.tables import scan_requests

#: Columns that `windows` adds to the levels of runs.
STREAM, SECOND, RATE = "stream", "second", "mb_s"


def windows(study: Study, window_s: int = 1) -> pl.DataFrame:
    """One row per valid run, stream and window: `repetition`, levels, `stream`, `second`, `mb_s`.

    `second` is when a window begins, from the start of the run; windows of the warm-up are left out, and a
    last one that is cut off. `mb_s` is what was answered in it, in MB (10^6 bytes) per second; 0 where
    nothing was.

    Raises:
        InputError: the requests of a run are absent or damaged.
    """
    names = sorted(one.name for one in study.classes)
    return pl.concat(
        [
            _of_run(run, names, window_s).with_columns(
                pl.lit(run.repetition).alias("repetition"),
                *(pl.lit(level).alias(name) for name, level in run.levels.items()),
            )
            for run in study.valid_runs
        ],
        how="vertical_relaxed",
    )


def _of_run(run: Run, names: list[str], window_s: int) -> pl.DataFrame:
    begin, end = (int(ns // 1e9) for ns in run.window_ns)
    seconds = list(range(begin, end - window_s + 1, window_s))
    grid = pl.DataFrame({STREAM: names}).join(pl.DataFrame({SECOND: seconds}), how="cross")
    at = (pl.col("completed_ns") // 1_000_000_000 - begin) // window_s * window_s + begin
    answered = (
        scan_requests(run)
        .filter(pl.col("completed_ns").is_not_null() & (pl.col("status") == 0))
        .group_by(pl.col("class").alias(STREAM), at.cast(pl.Int64).alias(SECOND), maintain_order=True)
        .agg((pl.col("size_bytes").sum() / 1e6 / window_s).alias(RATE))
        .collect()
    )
    found = grid.join(answered, on=[STREAM, SECOND], how="left")
    return found.with_columns(pl.col(RATE).fill_null(0.0)).sort(STREAM, SECOND)


def between(table: pl.DataFrame, from_s: float, to_s: float) -> pl.DataFrame:
    """The windows that begin between two times."""
    return table.filter((pl.col(SECOND) >= from_s) & (pl.col(SECOND) < to_s))


def rates(table: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Mean rate of each stream by repetition and levels: `mb_s`, with `share_pct` of all streams."""
    keys = ["repetition", *by]
    means = table.group_by(*keys, STREAM, maintain_order=True).agg(pl.col(RATE).mean())
    whole = pl.col(RATE).sum().over(keys)
    return means.with_columns((100 * pl.col(RATE) / whole).alias("share_pct")).sort(*keys, STREAM)


def totals(table: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Mean rate of all streams together by repetition and levels: `mb_s`."""
    sums = rates(table, *by).group_by("repetition", *by, maintain_order=True).agg(pl.col(RATE).sum())
    return sums.sort("repetition", *by)


def of_stream(table: pl.DataFrame, stream: str, column: str) -> list[float]:
    """A column of one stream, by repetition, in their order."""
    return table.filter(pl.col(STREAM) == stream).sort("repetition")[column].to_list()


def asked_mb_s(variant: str) -> float:
    """The rate that each stream asks for, of a variant such as `mb-08`."""
    return float(variant.removeprefix("mb-"))


def control(scheduler: str) -> str:
    """The name of a scheduler's control in figures."""
    if not scheduler.startswith("hds"):
        return "Linux alone"
    if "w1,stream2:w1" in scheduler:
        return "HDS, equal weights"
    return "HDS, 70 % and 30 %" if "stream1:0.7,stream2:0.3" in scheduler else "HDS"
