"""Claims of section 3.3 and Figs. 3 to 8.

Every number is formed within a repetition first; its interval is over repetitions.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from papers.hds import fluid
from papers.hds.results import RATE, SECOND, STREAM, asked_mb_s, between, control, of_stream, rates, totals
from weir.claims import Claim, Claims, Found, over_seeds, text
from weir.labels import number
from weir.statistics import Interval, mean_interval

CLAIMS = Claims.beside(__file__)
#: The id of a claim, and what runs show of it.
Shown = tuple[str, Found]
#: A stream that gets this share of what it asks for gets what it asks for.
SATISFIED = 0.97
#: By how much a rate may differ that is constant.
STEADY = 0.05
#: The controls of Fig. 3.
ALONE, EQUAL, SHARED = "Linux alone", "HDS, equal weights", "HDS, 70 % and 30 %"
#: Fig. 5: the streams that borrow from 60 to 120 s.
BORROWERS = ("stream1", "stream2")
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


@dataclass(frozen=True)
class Evidence:
    """What runs show of claims that are judged at several settings.

    Attributes:
        found: by claim, then by setting.
    """

    found: dict[str, dict[str, Found]] = field(default_factory=dict)

    def add(self, setting: str, shown: Iterable[Shown]) -> None:
        """Adds what the runs of one setting show."""
        for id, one in shown:
            self.found.setdefault(id, {})[setting] = one

    def claims(self) -> list[Claim]:
        """The claims of which the setting that decides has runs."""
        return [CLAIMS.over(id, by) for id, by in self.found.items() if CLAIMS.register[id].setting in by]


def reservation(table: pl.DataFrame) -> Iterator[Claim]:
    """H-R: what greedy leaves get, as shares of the total."""
    (scheduler,) = table["scheduler"].unique()
    reserved = fluid.shares(fluid.tree_of(scheduler))
    got = rates(table)
    for leaf in ("a", "b", "c"):
        note = f"measured share of a greedy leaf; by the arithmetic {number(100 * reserved[leaf])} %"
        yield CLAIMS.judged(f"H-R {leaf}", over_seeds(of_stream(got, leaf, "share_pct")), note)


def overload(table: pl.DataFrame) -> Iterator[Shown]:
    """H-F3: two streams that ask for more and more, under three controls."""
    table = table.with_columns(
        pl.col("scheduler").map_elements(control, return_dtype=pl.String).alias("control"),
        pl.col("variant").map_elements(asked_mb_s, return_dtype=pl.Float64).alias("asked"),
    )
    got = rates(table, "control", "asked")
    satisfied = {
        name: bool((rows[RATE] >= SATISFIED * rows["asked"]).all())
        for (name,), rows in got.filter(pl.col("asked") == got["asked"].min()).group_by(
            "control", maintain_order=True
        )
    }
    full = got.filter(pl.col("asked") == got["asked"].max())
    beyond = saturated(got, ALONE)
    spread = variability(table, beyond)
    yield (
        "H-F3 a",
        Found(
            _of_mean(spread[ALONE]),
            f"at saturation; with equal weights {number(100 * np.mean(spread[EQUAL]))} %; both get the "
            f"least that they ask for: {_yes(satisfied[ALONE])}",
            shape=satisfied[ALONE] and bool(np.mean(spread[ALONE]) > np.mean(spread[EQUAL])),
        ),
    )
    of_equal = full.filter(pl.col("control") == EQUAL)
    yield (
        "H-F3 b",
        Found(
            over_seeds(of_stream(of_equal, "stream1", "share_pct")),
            f"at the highest rate; total {number(of_equal[RATE].sum() / of_equal['repetition'].n_unique())} "
            "MB/s",
            shape=satisfied[EQUAL] and bool(np.mean(spread[EQUAL]) < np.mean(spread[ALONE])),
        ),
    )
    yield "H-F3 b cost", _cost(got.filter(pl.col("asked").is_in(beyond)))
    of_shared = full.filter(pl.col("control") == SHARED)
    highest = got.filter((pl.col("control") == SHARED) & (pl.col("asked") >= 0.75 * got["asked"].max()))
    first = (
        highest.filter(pl.col(STREAM) == "stream1")
        .group_by("asked", maintain_order=True)
        .agg(pl.col(RATE).mean())[RATE]
    )
    steady = float(first.max() - first.min()) <= STEADY * float(first.mean())
    yield (
        "H-F3 c share",
        Found(
            over_seeds(of_stream(of_shared, "stream1", "share_pct")),
            f"at the highest rate; constant within {STEADY:.0%} over the highest rates: {_yes(steady)}",
            shape=satisfied[SHARED] and steady,
        ),
    )
    for at in (1, 2):
        ours = over_seeds(of_stream(of_shared, f"stream{at}", RATE))
        yield f"H-F3 c stream {at}", Found(ours, "at the highest rate")


def greedy(table: pl.DataFrame) -> Iterator[Shown]:
    """H-F3 where both streams ask for all that they can get; what holds below saturation is not looked at."""
    table = table.with_columns(
        pl.col("scheduler").map_elements(control, return_dtype=pl.String).alias("control"),
        pl.lit(0.0).alias("asked"),
    )
    got = rates(table, "control", "asked")
    spread = variability(table, [0.0])
    more = bool(np.mean(spread[ALONE]) > np.mean(spread[EQUAL]))
    yield "H-F3 a", Found(_of_mean(spread[ALONE]), "greedy streams", shape=more)
    equal = got.filter(pl.col("control") == EQUAL)
    yield "H-F3 b", Found(over_seeds(of_stream(equal, "stream1", "share_pct")), "greedy streams", shape=more)
    yield "H-F3 b cost", _cost(got)
    shared = got.filter(pl.col("control") == SHARED)
    yield "H-F3 c share", Found(over_seeds(of_stream(shared, "stream1", "share_pct")), "greedy streams")
    for at in (1, 2):
        ours = over_seeds(of_stream(shared, f"stream{at}", RATE))
        yield f"H-F3 c stream {at}", Found(ours, "greedy streams")


def _of_mean(spread: list[float]) -> Interval:
    """Standard deviations by the mean, in %, over repetitions."""
    return mean_interval(100 * np.array(spread), bounds=(0.0, np.inf))


def _cost(got: pl.DataFrame) -> Found:
    """The total with equal weights as a part of the total without control, at the same rates asked for."""
    sums = got.group_by("repetition", "control", "asked", maintain_order=True).agg(pl.col(RATE).sum())
    means = (
        sums.group_by("repetition", "control", maintain_order=True)
        .agg(pl.col(RATE).mean())
        .sort("repetition")
    )
    ours, without = (means.filter(pl.col("control") == name)[RATE].to_numpy() for name in (EQUAL, ALONE))
    note = f"{number(ours.mean())} and {number(without.mean())} MB/s at saturation"
    return Found(over_seeds(ours / without), note)


def saturated(got: pl.DataFrame, name: str) -> list[float]:
    """The rates asked for at which a control leaves the streams together without what they ask for."""
    sums = (
        got.filter(pl.col("control") == name).group_by("asked", maintain_order=True).agg(pl.col(RATE).mean())
    )
    return sorted(sums.filter(pl.col(RATE) < SATISFIED * pl.col("asked"))["asked"].to_list())


def variability(table: pl.DataFrame, asked: list[float]) -> dict[str, list[float]]:
    """By control and repetition: standard deviation over windows by the mean, of a stream at these rates."""
    each = (
        table.filter(pl.col("asked").is_in(asked))
        .group_by("control", "repetition", "asked", STREAM, maintain_order=True)
        .agg((pl.col(RATE).std() / pl.col(RATE).mean()).alias("cv"))
    )
    means = (
        each.group_by("control", "repetition", maintain_order=True)
        .agg(pl.col("cv").mean())
        .sort("control", "repetition")
    )
    return {name: rows["cv"].to_list() for (name,), rows in means.group_by("control", maintain_order=True)}


def alone(table: pl.DataFrame) -> pl.DataFrame:
    """Rates of two greedy readers without token buckets, by disk scheduler and requests in flight."""
    each = table.group_by("scheduler", "variant", "repetition", STREAM, maintain_order=True).agg(
        pl.col(RATE).mean(), (pl.col(RATE).std() / pl.col(RATE).mean()).alias("cv")
    )
    runs = each.group_by("scheduler", "variant", "repetition", maintain_order=True).agg(
        pl.col(RATE).sum(), pl.col("cv").max()
    )
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


def isolation(table: pl.DataFrame) -> Iterator[Shown]:
    """H-F4."""
    rows = rates(table.filter(pl.col("scheduler").str.starts_with("hds")))
    without = rates(table.filter(~pl.col("scheduler").str.starts_with("hds")))
    for at in (1, 2, 3):
        note = f"{number(float(np.mean(of_stream(rows, f'stream{at}', RATE))))} MB/s"
        if alone := of_stream(without, f"stream{at}", "share_pct"):
            note += f"; without token buckets {number(float(np.mean(alone)))} %"
        yield f"H-F4 {at}", Found(over_seeds(of_stream(rows, f"stream{at}", "share_pct")), note)


def borrowing(table: pl.DataFrame, times: Times = PAPER) -> Iterator[Shown]:
    """H-F5."""
    (scheduler,) = table["scheduler"].unique()
    root = fluid.root_mb_s(scheduler)
    reserved = fluid.shares(fluid.tree_of(scheduler))
    begins = [at * times.phase_s for at in range(3)]
    parts = [between(table, at + times.settled_s, at + times.phase_s) for at in begins]
    phases = [rates(part) for part in parts]
    alone = [100 * rate / root for rate in of_stream(phases[0], "stream1", RATE)]
    yield "H-F5 alone", Found(over_seeds(alone), f"the root has {number(root)} MB/s")
    pair = [np.array(of_stream(phases[1], name, RATE)) / root for name in BORROWERS]
    least = [
        bool((got >= SATISFIED * reserved[name]).all()) for got, name in zip(pair, BORROWERS, strict=True)
    ]
    note = (
        f"stream 1 {number(100 * pair[0].mean())} %, stream 2 {number(100 * pair[1].mean())} %; each at "
        f"least what it reserves: {_yes(all(least))}"
    )
    yield "H-F5 surplus", Found(over_seeds(100 * (pair[0] + pair[1])), note, shape=all(least))
    varies, loaded = (100 * _deviation(part) / root for part in parts[1:])
    note = f"mean of the two streams; under full load {number(loaded.mean())} %"
    more = bool(varies.mean() > loaded.mean())
    yield "H-F5 variation", Found(mean_interval(varies, bounds=(0.0, np.inf)), note, shape=more)
    for at in (1, 2, 3):
        got = of_stream(phases[2], f"stream{at}", "share_pct")
        note = f"from {begins[2] + times.settled_s} to {begins[2] + times.phase_s} s"
        yield f"H-F5 {at}", Found(over_seeds(got), note)


def _deviation(table: pl.DataFrame) -> np.ndarray:
    """By repetition, the standard deviation of a rate over windows, mean of the streams that borrow."""
    each = table.filter(pl.col(STREAM).is_in(BORROWERS)).group_by("repetition", STREAM, maintain_order=True)
    means = each.agg(pl.col(RATE).std()).group_by("repetition", maintain_order=True).agg(pl.col(RATE).mean())
    return means.sort("repetition")[RATE].to_numpy()


def throughput(table: pl.DataFrame, times: Times = PAPER) -> Iterator[Shown]:
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
    yield "H-F6", Found(over_seeds(drop), f"MB/s by streams {means}")


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


def root(table: pl.DataFrame, times: Times = PAPER) -> Iterator[Shown]:
    """H-F7."""
    off = off_points(table, times)
    yield "H-F7 holds", Found(over_seeds(off[:, 0]), f"at {times.step_s} s")
    mb_s = times.step_kb_s * 1024 / 1e6
    fails = [int(np.flatnonzero(row > OFF_POINTS)[0]) if (row > OFF_POINTS).any() else None for row in off]
    kept = [len(row) for row, at in zip(off, fails, strict=True) if at is None]
    means = ", ".join(
        f"+{number(step * mb_s)}: {number(value)}" for step, value in enumerate(off.mean(axis=0))
    )
    note = f"more than {OFF_POINTS:g} points off for the first time; points off by MB/s more {means}"
    if kept:
        yield "H-F7 fails", Found(None, f"shares are kept up to the end; {note}", shape=False)
    else:
        # It gets worse from there to the end: no lucky step between.
        grows = bool(off[:, -1].mean() > off[:, 0].mean() + OFF_POINTS)
        ours = over_seeds([at * mb_s for at in fails if at is not None])
        yield "H-F7 fails", Found(ours, note, shape=grows)


def adaptive(table: pl.DataFrame, times: Times = PAPER) -> Iterator[Shown]:
    """H-F8."""
    end = int(table[SECOND].max()) + 1
    before = between(table, times.second_s + times.settled_s, times.adapts_s)
    after = between(table, end - times.last_s, end)
    first, second = (
        tuple(np.array(of_stream(rates(part), name, RATE)) for part in (before, after))
        for name in ("stream1", "stream2")
    )
    note = f"from {times.second_s + times.settled_s} to {times.adapts_s} s"
    yield "H-F8 before", Found(over_seeds(first[0] / second[0]), note)
    sums = [np.array(totals(part)[RATE]) for part in (before, after)]
    last = f"in the last {times.last_s} s"
    note = f"total {number(sums[0].mean())} MB/s before, {number(sums[1].mean())} {last}"
    yield "H-F8 total", Found(over_seeds(sums[1] / sums[0]), note)
    off = _off_windows(between(table, times.adapts_s, end), times.ratio_s)
    note = (
        f"{last}; off by more than {RATIO_OFF:.0%} in {number(100 * off)} % of the "
        f"windows of {times.ratio_s} s since the root adapts"
    )
    yield "H-F8 ratio", Found(over_seeds(first[1] / second[1]), note)
    note = f"{number(second[0].mean())} MB/s before, {number(second[1].mean())} {last}"
    yield "H-F8 stream 2", Found(over_seeds(second[1] / second[0]), note)


def _off_windows(table: pl.DataFrame, window_s: int) -> float:
    """The share of windows in which streams 1 and 2 do not have the ratio that they reserve."""
    (scheduler,) = table["scheduler"].unique()
    reserved = fluid.shares(fluid.tree_of(scheduler))
    window = pl.col(SECOND) // window_s
    each = table.group_by("repetition", window, STREAM, maintain_order=True).agg(pl.col(RATE).mean())
    wide = each.pivot(STREAM, index=["repetition", SECOND], values=RATE)
    ratio = wide["stream1"] / wide["stream2"] / (reserved["stream1"] / reserved["stream2"])
    return float(((ratio - 1).abs() > RATIO_OFF).mean())


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
