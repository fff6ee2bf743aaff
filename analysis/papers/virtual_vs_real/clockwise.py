"""Clockwise live: Figs. 7.1 and 7.2 of Bosch's thesis, measured beside simulated, and crosstalk."""

import itertools
from collections.abc import Iterator

import polars as pl
from matplotlib.figure import Figure

from papers.clockwise import CLAIMS
from papers.virtual_vs_real.results import LIVE, TESTBED, VIRTUAL
from weir import plots
from weir.claims import Claim, Found, text
from weir.labels import number
from weir.load import Study
from weir.statistics import mean_interval
from weir.study import class_table

#: The classes: who has no contract, and who has deadlines.
BEST_EFFORT, STREAMS = "cello", "video"
LATENCY, MISSES, RATE = "response_mean_ms", "deadline_miss_share", "throughput_mb_s"
#: What the thesis calls the schedulers, and its own.
THESIS = {"edf": "EDF", "lst": "LST", "deltal": "deltaL"}
DELTAL = "deltal"
#: Latencies that differ by less than this share have no order.
TIE = 0.1


def points(study: Study) -> pl.DataFrame:
    """One row per run, with what the figures show of it.

    Its columns: `testbed`, `scheduler`, `variant`, `repetition`, `mb_s` of the streams, `latency_ms` of best
    effort and `misses_pct` of the streams.
    """
    table = class_table(study)
    keys = ["run", TESTBED, "scheduler", "variant", "repetition"]
    best = table.filter(pl.col("class") == BEST_EFFORT).select(*keys, pl.col(LATENCY).alias("latency_ms"))
    streams = table.filter(pl.col("class") == STREAMS).select(
        "run", pl.col("offered_mb_s").alias("mb_s"), (100 * pl.col(MISSES)).alias("misses_pct")
    )
    return best.join(streams, on="run").drop("run").sort(*keys[1:])


def latencies(table: pl.DataFrame) -> Figure:
    """Best-effort latency and missed deadlines over the real-time load, measured and simulated."""
    lines = {}
    for panel, column in (("(a) best effort", "latency_ms"), ("(b) deadlines", "misses_pct")):
        for scheduler in table["scheduler"].unique(maintain_order=True):
            for words, testbed, line in (("measured", LIVE, "-"), ("simulated", VIRTUAL, "--")):
                rows = table.filter((pl.col("scheduler") == scheduler) & (pl.col(TESTBED) == testbed))
                if rows.height:
                    lines[panel, f"{scheduler}, {words}"] = plots.Curve(
                        *_by_load(rows, column), like=THESIS.get(scheduler), more={"linestyle": line}
                    )
    return plots.curves(
        lines, "Real-time load (MB/s)", ("Best-effort latency, mean (ms)", "Deadlines missed (%)"),
        note="Means over repetitions; bars: 95 % t intervals.",
    )  # fmt: skip


def _by_load(rows: pl.DataFrame, column: str) -> tuple[list[float], list]:
    groups = sorted(
        rows.group_by("variant", maintain_order=True), key=lambda group: float(group[1]["mb_s"].mean())
    )
    return (
        [float(group["mb_s"].mean()) for _, group in groups],
        [mean_interval(group[column].to_list()) for _, group in groups],
    )


def measured(table: pl.DataFrame) -> Iterator[Claim]:
    """B-F7.1 and B-F7.2 live: whether measured and simulated agree, and order the schedulers alike."""
    keys = ["scheduler", "variant", "repetition"]
    both = table.filter(pl.col(TESTBED) == LIVE).join(
        table.filter(pl.col(TESTBED) == VIRTUAL), on=keys, suffix="_virtual"
    )
    if both.is_empty():
        return
    log = (pl.col("latency_ms") / pl.col("latency_ms_virtual")).log().mean().exp().alias("ratio")
    ratio = both.group_by("repetition", maintain_order=True).agg(log).sort("repetition")["ratio"]
    note = "geometric means over loads and schedulers"
    yield CLAIMS.judged("B-F7.1 live", mean_interval(ratio.to_list()), note)
    alike, ordered = 0, 0
    means = both.group_by("variant", "scheduler", maintain_order=True).agg(
        pl.col("latency_ms", "latency_ms_virtual").mean()
    )
    for _, rows in means.group_by("variant", maintain_order=True):
        for (ours, theirs), (other, its) in itertools.combinations(
            zip(rows["latency_ms"], rows["latency_ms_virtual"], strict=True), 2
        ):
            if abs(theirs / its - 1) > TIE:
                ordered += 1
                alike += (ours > other) == (theirs > its)
    note = (
        f"of {ordered} pairs of schedulers whose simulated latencies differ by more than {TIE:.0%}, {alike} "
        f"have the same order"
    )
    share = 100.0 * alike / ordered if ordered else None
    yield CLAIMS.judged("B-F7.1 live order", share, note)
    own = table.filter(pl.col("scheduler") == DELTAL)
    if not own.filter(pl.col(TESTBED) == LIVE).is_empty():
        yield CLAIMS.over("B-F7.2 live deadlines", _worst_misses(own))


def crosstalk(table: pl.DataFrame) -> Iterator[Claim]:
    """B-F6.14 live: what others suffer from a stream that asks for more than it was promised."""
    found = _worst_misses(table)
    if "live" in found:
        yield CLAIMS.over("B-F6.14 live", found)


def _worst_misses(table: pl.DataFrame) -> dict[str, Found]:
    """By testbed: deadlines that the streams missed in the worst run, with what best effort waits."""
    found = {}
    for words, testbed in (("live", LIVE), ("simulated", VIRTUAL)):
        rows = table.filter(pl.col(TESTBED) == testbed)
        if not rows.is_empty():
            found[words] = Found(float(rows["misses_pct"].max()), "; ".join(_waits(rows)))
    return found


def _waits(rows: pl.DataFrame) -> Iterator[str]:
    variants = sorted(rows["variant"].unique())
    for scheduler in rows["scheduler"].unique(maintain_order=True):
        of = [
            rows.filter((pl.col("scheduler") == scheduler) & (pl.col("variant") == variant))["latency_ms"]
            for variant in (variants[0], variants[-1])
        ]
        least, most = (number(float(one.mean())) for one in of)
        yield f"{scheduler}: best effort waits {least} ms at {variants[0]}, {most} ms at {variants[-1]}"


def tabulated(table: pl.DataFrame) -> pl.DataFrame:
    """One row per load and scheduler: best-effort latency and missed deadlines on each testbed."""
    rows = []
    for (variant, scheduler), group in table.sort("mb_s").group_by(
        "variant", "scheduler", maintain_order=True
    ):
        row = {"streams": variant, "scheduler": scheduler, "MB/s": number(float(group["mb_s"].mean()))}
        for words, testbed in (("measured", LIVE), ("simulated", VIRTUAL)):
            of = group.filter(pl.col(TESTBED) == testbed)
            for name, column in (("latency (ms)", "latency_ms"), ("missed (%)", "misses_pct")):
                row[f"{words}: {name}"] = text(mean_interval(of[column].to_list())) if of.height else "none"
        rows.append(row)
    return pl.DataFrame(rows)
