"""Claims of section 3.3 and Figs. 3 to 8.

Every number is formed within a repetition first; its interval is over repetitions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from papers.hds import fluid
from papers.hds.results import RATE, SECOND, STREAM, asked_mb_s, between, control, of_stream, rates, totals
from weir.claims import Claim, Claims, over_seeds, text
from weir.labels import number
from weir.statistics import mean_interval

CLAIMS = Claims.beside(__file__)
#: A stream that gets this share of what it asks for gets what it asks for.
SATISFIED = 0.97
#: Fig. 7: how many points a share may be off.
OFF_POINTS = 5.0
#: When the ratio of a window is said to be off.
RATIO_OFF = 0.1


@dataclass(frozen=True)
class Times:
    """When something happens in an experiment, in seconds; the paper's are the defaults.

    Attributes:
        settled_s: after a stream begins or the root changes, so long until rates are looked at.
        phase_s: Fig. 5: from one stream's begin to the next.
        stream_s: Fig. 6: the same.
        step_s: Fig. 7: length of a step.
        step_kb_s: Fig. 7: by how much the root rises in each, in KB/s (1024 bytes).
        second_s: Fig. 8: when the second stream begins.
        adapts_s: Fig. 8: when the root begins to adapt.
        last_s: Fig. 8: the end that is looked at.
        ratio_s: Fig. 8: windows of the ratio.
    """

    settled_s: int = 5
    phase_s: int = 60
    stream_s: int = 25
    step_s: int = 20
    step_kb_s: int = 384
    second_s: int = 40
    adapts_s: int = 70
    last_s: int = 60
    ratio_s: int = 5


PAPER = Times()


def reservation(table: pl.DataFrame) -> Iterator[Claim]:
    """H-R: what greedy leaves get, as shares of the total."""
    (scheduler,) = table["scheduler"].unique()
    reserved = fluid.shares(fluid.tree_of(scheduler))
    got = rates(table)
    for leaf in ("a", "b", "c"):
        note = f"measured share of a greedy leaf; by the arithmetic {number(100 * reserved[leaf])} %"
        yield CLAIMS.judged(f"H-R {leaf}", over_seeds(of_stream(got, leaf, "share_pct")), note)


def overload(table: pl.DataFrame) -> Iterator[Claim]:
    """H-F3: two streams that ask for more and more, under three controls."""
    table = table.with_columns(
        pl.col("scheduler").map_elements(control, return_dtype=pl.String).alias("control"),
        pl.col("variant").map_elements(asked_mb_s, return_dtype=pl.Float64).alias("asked"),
    )
    got = rates(table, "control", "asked")
    satisfied = {
        name: bool((rows[RATE] >= SATISFIED * rows["asked"]).all())
        for (name,), rows in got.filter(pl.col("asked") == got["asked"].min()).group_by("control")
    }
    full = got.filter(pl.col("asked") == got["asked"].max())
    alone, equal, shared = "Linux alone", "HDS, equal weights", "HDS, 70 % and 30 %"
    spread = variability(table, saturated(got, alone))
    yield CLAIMS.judged(
        "H-F3 a",
        mean_interval(100 * np.array(spread[alone]), bounds=(0.0, np.inf)),
        f"at saturation; with equal weights {number(100 * np.mean(spread[equal]))} %; both get the "
        f"least that they ask for: {_yes(satisfied[alone])}",
        shape=satisfied[alone] and bool(np.mean(spread[alone]) > np.mean(spread[equal])),
    )
    of_equal = full.filter(pl.col("control") == equal)
    yield CLAIMS.judged(
        "H-F3 b",
        over_seeds(of_stream(of_equal, "stream1", "share_pct")),
        f"at the highest rate; total {number(of_equal[RATE].sum() / of_equal['repetition'].n_unique())} MB/s",
        shape=satisfied[equal] and np.mean(spread[equal]) < np.mean(spread[alone]),
    )
    of_shared = full.filter(pl.col("control") == shared)
    beyond = got.filter((pl.col("control") == shared) & (pl.col("asked") >= 0.75 * got["asked"].max()))
    first = beyond.filter(pl.col(STREAM) == "stream1").group_by("asked").agg(pl.col(RATE).mean())[RATE]
    steady = float(first.max() - first.min()) <= 0.05 * float(first.mean())
    yield CLAIMS.judged(
        "H-F3 c share",
        over_seeds(of_stream(of_shared, "stream1", "share_pct")),
        f"at the highest rate; constant within 5 % over the highest rates: {_yes(steady)}",
        shape=satisfied[shared] and steady,
    )
    for at in (1, 2):
        ours = over_seeds(of_stream(of_shared, f"stream{at}", RATE))
        yield CLAIMS.judged(f"H-F3 c stream {at}", ours, "at the highest rate")


def saturated(got: pl.DataFrame, name: str) -> list[float]:
    """The rates asked for at which a control leaves the streams together without what they ask for."""
    sums = got.filter(pl.col("control") == name).group_by("asked").agg(pl.col(RATE).mean())
    return sorted(sums.filter(pl.col(RATE) < SATISFIED * pl.col("asked"))["asked"].to_list())


def variability(table: pl.DataFrame, asked: list[float]) -> dict[str, list[float]]:
    """By control and repetition: standard deviation over windows by the mean, of a stream at these rates."""
    each = (
        table.filter(pl.col("asked").is_in(asked))
        .group_by("control", "repetition", "asked", STREAM)
        .agg((pl.col(RATE).std() / pl.col(RATE).mean()).alias("cv"))
    )
    means = each.group_by("control", "repetition").agg(pl.col("cv").mean()).sort("control", "repetition")
    return {name: rows["cv"].to_list() for (name,), rows in means.group_by("control", maintain_order=True)}


def alone(table: pl.DataFrame) -> pl.DataFrame:
    """Rates of two greedy readers without token buckets, by disk scheduler and requests in flight."""
    each = table.group_by("scheduler", "variant", "repetition", STREAM).agg(
        pl.col(RATE).mean(), (pl.col(RATE).std() / pl.col(RATE).mean()).alias("cv")
    )
    runs = each.group_by("scheduler", "variant", "repetition").agg(pl.col(RATE).sum(), pl.col("cv").max())
    rows = []
    for (variant, scheduler), of in runs.sort("variant", "scheduler").group_by(
        "variant", "scheduler", maintain_order=True
    ):
        spread = [0.0 if np.isnan(cv) else cv for cv in of["cv"].fill_null(0.0)]
        rows.append(
            {
                "requests in flight": variant,
                "disk scheduler": scheduler,
                "total (MB/s)": text(over_seeds(of[RATE])),
                "variability": text(over_seeds(spread)),
            }
        )
    return pl.DataFrame(rows)


def isolation(table: pl.DataFrame) -> Iterator[Claim]:
    """H-F4."""
    rows = rates(table.filter(pl.col("scheduler").str.starts_with("hds")))
    without = rates(table.filter(~pl.col("scheduler").str.starts_with("hds")))
    for at in (1, 2, 3):
        alone = float(np.mean(of_stream(without, f"stream{at}", "share_pct")))
        rate = float(np.mean(of_stream(rows, f"stream{at}", RATE)))
        note = f"{number(rate)} MB/s; without token buckets {number(alone)} %"
        yield CLAIMS.judged(f"H-F4 {at}", over_seeds(of_stream(rows, f"stream{at}", "share_pct")), note)


def borrowing(table: pl.DataFrame, times: Times = PAPER) -> Iterator[Claim]:
    """H-F5."""
    (scheduler,) = table["scheduler"].unique()
    root = fluid.root_mb_s(scheduler)
    reserved = fluid.shares(fluid.tree_of(scheduler))
    begins = [at * times.phase_s for at in range(3)]
    phases = [rates(between(table, at + times.settled_s, at + times.phase_s)) for at in begins]
    alone = [100 * rate / root for rate in of_stream(phases[0], "stream1", RATE)]
    yield CLAIMS.judged("H-F5 alone", over_seeds(alone), f"the root has {number(root)} MB/s")
    pair = [np.array(of_stream(phases[1], name, RATE)) / root for name in ("stream1", "stream2")]
    least = [
        bool((got >= SATISFIED * reserved[name]).all()) for got, name in zip(pair, reserved, strict=False)
    ]
    note = (
        f"stream 1 {number(100 * pair[0].mean())} %, stream 2 {number(100 * pair[1].mean())} %; each at "
        f"least what it reserves: {_yes(all(least))}"
    )
    yield CLAIMS.judged("H-F5 surplus", over_seeds(100 * (pair[0] + pair[1])), note, shape=all(least))
    for at in (1, 2, 3):
        got = of_stream(phases[2], f"stream{at}", "share_pct")
        note = f"from {begins[2] + times.settled_s} to {begins[2] + times.phase_s} s"
        yield CLAIMS.judged(f"H-F5 {at}", over_seeds(got), note)


def throughput(table: pl.DataFrame, times: Times = PAPER) -> Iterator[Claim]:
    """H-F6."""
    streams = table[STREAM].n_unique()
    every_s = times.stream_s
    steps = [
        np.array(totals(between(table, at * every_s + times.settled_s, (at + 1) * every_s))[RATE])
        for at in range(streams)
    ]
    by_step = np.stack(steps)
    drop = 100 * (1 - by_step.min(axis=0) / by_step.max(axis=0))
    means = ", ".join(f"{at + 1}: {number(step.mean())}" for at, step in enumerate(steps))
    yield CLAIMS.judged("H-F6", over_seeds(drop), f"MB/s by streams {means}")


def off_points(table: pl.DataFrame, times: Times = PAPER) -> np.ndarray:
    """Fig. 7: by repetition and step of the root, how far the worst stream's share is off, in points."""
    (scheduler,) = table["scheduler"].unique()
    reserved = fluid.shares(fluid.tree_of(scheduler))
    step_s = times.step_s
    last = int(table[SECOND].max()) // step_s
    found = []
    for step in range(last + 1):
        got = rates(between(table, step * step_s + times.settled_s, (step + 1) * step_s))
        off = [
            np.abs(np.array(of_stream(got, name, "share_pct")) - 100 * own) for name, own in reserved.items()
        ]
        found.append(np.max(off, axis=0))
    return np.stack(found, axis=1)


def root(table: pl.DataFrame, times: Times = PAPER) -> Iterator[Claim]:
    """H-F7."""
    off = off_points(table, times)
    yield CLAIMS.judged("H-F7 holds", over_seeds(off[:, 0]), f"at {times.step_s} s")
    mb_s = times.step_kb_s * 1024 / 1e6
    fails = [int(np.flatnonzero(row > OFF_POINTS)[0]) if (row > OFF_POINTS).any() else None for row in off]
    kept = [len(row) for row, at in zip(off, fails, strict=True) if at is None]
    means = ", ".join(
        f"+{number(step * mb_s)}: {number(value)}" for step, value in enumerate(off.mean(axis=0))
    )
    note = f"more than {OFF_POINTS:g} points off for the first time; points off by MB/s more {means}"
    if kept:
        yield CLAIMS.judged("H-F7 fails", None, f"shares are kept up to the end; {note}", shape=False)
    else:
        # It gets worse from there to the end: no lucky step between.
        grows = bool(off[:, -1].mean() > off[:, 0].mean() + OFF_POINTS)
        ours = over_seeds([at * mb_s for at in fails if at is not None])
        yield CLAIMS.judged("H-F7 fails", ours, note, shape=grows)


def adaptive(table: pl.DataFrame, times: Times = PAPER) -> Iterator[Claim]:
    """H-F8."""
    end = int(table[SECOND].max()) + 1
    before = between(table, times.second_s + times.settled_s, times.adapts_s)
    after = between(table, end - times.last_s, end)
    gain = np.array(totals(after)[RATE]) / np.array(totals(before)[RATE])
    ratio = {}
    for name, part in (("before", before), ("after", after)):
        got = rates(part)
        ratio[name] = np.array(of_stream(got, "stream1", RATE)) / np.array(of_stream(got, "stream2", RATE))
    note = (
        f"total {number(totals(before)[RATE].mean())} MB/s before, {number(totals(after)[RATE].mean())} in "
        f"the last {times.last_s} s"
    )
    yield CLAIMS.judged("H-F8 total", over_seeds(gain), note)
    off = _off_windows(between(table, times.adapts_s, end), times.ratio_s)
    note = (
        f"in the last {times.last_s} s; before {number(ratio['before'].mean())}; off by more than "
        f"{RATIO_OFF:.0%} in {number(100 * off)} % of the windows of {times.ratio_s} s since then. By the "
        f"text stream 2 keeps its rate meanwhile, which cannot be if the ratio is kept and the total rises"
    )
    yield CLAIMS.judged("H-F8 ratio", over_seeds(ratio["after"]), note)


def _off_windows(table: pl.DataFrame, window_s: int) -> float:
    """The share of windows in which streams 1 and 2 are not 3:1."""
    window = pl.col(SECOND) // window_s
    each = table.group_by("repetition", window, STREAM).agg(pl.col(RATE).mean())
    wide = each.pivot(STREAM, index=["repetition", SECOND], values=RATE)
    return float(((wide["stream1"] / wide["stream2"] / 3 - 1).abs() > RATIO_OFF).mean())


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
