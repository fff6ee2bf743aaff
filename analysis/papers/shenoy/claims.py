"""The claims of the paper, judged."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from papers.shenoy.load import OVERLOADS, Distribution, Improvement
from papers.shenoy.results import EQUAL_PCT, FULL_MS, FULL_PCT, SERVERS, TEXT, VIDEO, Surface, capacities
from weir.claims import Claim, Claims, over_seeds
from weir.labels import number
from weir.statistics import Interval, mean_interval, ratio_interval

CLAIMS = Claims.beside(__file__)
#: Within this share two responses are comparable.
EQUAL = 0.05
#: "Low" and "light" are below this share of a server's limit, "heavy" above.
HALF = 0.5
#: "Light and moderate" video loads go up to this share of V.
MODERATE = 0.6
#: A service time is "largely independent" of what changes it by less than this share.
LARGELY = 0.2
#: A response is flat if it stays within this share of its mean.
FLAT = 0.05


def limits(text: pl.DataFrame, video: pl.DataFrame) -> Iterator[Claim]:
    """S-TV, and S-F13 of one kind alone."""
    found = {
        "T": capacities(text, "partitioned", TEXT, "response_ms", FULL_MS),
        "V": capacities(video, "partitioned", VIDEO, "violated_pct", FULL_PCT),
    }
    fitted = "the text files' size was chosen so that it is"
    yield CLAIMS.judged("S-TV T", _reached(found["T"]), f"between the runs' points; {fitted}")
    yield CLAIMS.judged("S-TV V", _reached(found["V"]), "between the runs' points; nothing was fitted to it")
    for kind, table, clients, metric, limit, name in (
        ("text", text, TEXT, "response_ms", FULL_MS, "T"),
        ("video", video, VIDEO, "violated_pct", FULL_PCT, "V"),
    ):
        together = capacities(table, "integrated", clients, metric, limit)
        share = [100 * one / (2 * other) for one, other in zip(together, found[name], strict=True)]
        note = f"{number(np.mean(together))} clients, where 2{name} is {number(2 * np.mean(found[name]))}"
        yield CLAIMS.judged(f"S-F13 {kind} alone", _reached(share), note)


def _reached(values: list[float]) -> Interval | None:
    """Over seeds; None if the runs do not go as far as the limit in each."""
    return None if np.isnan(values).any() else over_seeds(values)


def together(text: Surface, video: Surface, full: tuple[float, float]) -> Iterator[Claim]:
    """S-F13 of both: how far the integrated server gets on the ray to the partitioned one's limits."""
    # Of integers: whole shares are exact.
    shares = np.arange(0, 1200) / 1000
    ms, pct = (surface.at(shares * full[0], shares * full[1]) for surface in (text, video))
    kept = []
    for one_ms, one_pct in zip(ms, pct, strict=True):
        over = _first((one_ms > FULL_MS) | (one_pct > FULL_PCT))
        # Full at the first point: nothing is borne on this ray.
        kept.append(shares[max(over - 1, 0)])
    slow, late = _first(ms.mean(axis=0) > FULL_MS), _first(pct.mean(axis=0) > FULL_PCT)
    first = "neither" if slow == late == len(shares) else "text" if slow <= late else "video"
    mean = np.mean(kept)
    note = f"{mean * full[0]:.0f} text and {mean * full[1]:.0f} video clients; {first} is the first to suffer"
    yield CLAIMS.judged("S-F13 together", over_seeds(100 * (1 - np.array(kept))), note)


def _first(over: np.ndarray) -> int:
    """The first place where it is so; their number where it is nowhere so."""
    return int(over.argmax()) if over.any() else len(over)


def region(text: dict[str, Surface], video: dict[str, Surface]) -> Iterator[Claim]:
    """S-F7: where the integrated server is worse."""
    apart, shared = (text[server].without_text_zero() for server in SERVERS)
    worse = shared.mean > apart.mean * (1 + EQUAL)
    low = np.add.outer(apart.text, 0 * apart.video) < HALF * apart.text[-1]
    heavy = np.add.outer(0 * apart.text, apart.video) > HALF * apart.video[-1]
    share = 100 * (1 - (shared.values > apart.values * (1 + EQUAL)).mean(axis=(1, 2)))
    note = f"{number(100 * np.mean(worse & low & heavy))} % worse at low text and heavy video"
    elsewhere = worse & ~(low & heavy)
    if elsewhere.any():
        t, v = np.nonzero(elsewhere)
        note += (
            f", {number(100 * np.mean(elsewhere))} % elsewhere: {_range(apart.text[t])} text and "
            f"{_range(apart.video[v])} video clients"
        )
    only = bool(elsewhere.mean() < EQUAL)
    yield CLAIMS.judged("S-F7 text", over_seeds(share), note, shape=only)
    apart, shared = (video[server].without_video_zero() for server in SERVERS)
    more = shared.values - apart.values
    worse = more.mean(axis=0) > EQUAL_PCT
    t, v = np.nonzero(worse)
    light = (apart.text[t] <= HALF * apart.text[-1]) | (apart.video[v] <= HALF * apart.video[-1])
    note = f"at most {number(more.mean(axis=0).max())} percentage points more"
    if t.size:
        note += (
            f", from {number(apart.text[t].min())} text and {number(apart.video[v].min())} video clients on"
        )
    yield CLAIMS.judged(
        "S-F7 video",
        over_seeds(100 * (1 - (more > EQUAL_PCT).mean(axis=(1, 2)))),
        note,
        shape=not light.any(),
    )


def _range(values: np.ndarray) -> str:
    return f"{number(values.min())} to {number(values.max())}"


def against_video(text: dict[str, Surface]) -> Iterator[Claim]:
    """S-F9: the response of text as video is added."""
    apart, shared = (text[server].without_text_zero() for server in SERVERS)
    quarters = [int(np.argmin(np.abs(apart.text - share * apart.text[-1]))) for share in (0.25, 0.5, 0.75, 1)]
    flat = all(np.ptp(apart.mean[at]) <= FLAT * apart.mean[at].mean() for at in quarters)
    rising = all((np.diff(shared.mean[at]) > -FLAT * shared.mean[at][:-1]).all() for at in quarters)
    least = (apart.values[:, quarters[2:]] / shared.values[:, quarters[2:]]).min(axis=(1, 2))
    last = [
        f"{number(shared.mean[at][0])} to {number(shared.mean[at][-1])} ms at {number(apart.text[at])} "
        f"(apart {number(apart.mean[at].mean())})"
        for at in quarters
    ]
    note = f"integrated from no video to V: {', '.join(last)}"
    yield CLAIMS.judged("S-F9", over_seeds(least), note, shape=bool(flat and rising))


def against_text(text: dict[str, Surface]) -> Iterator[Claim]:
    """S-F10: the response of text as text is added."""
    apart, shared = (text[server].without_text_zero() for server in SERVERS)
    growth = {name: (s.mean[-1] - s.mean[0]) for name, s in zip(SERVERS, (apart, shared), strict=True)}
    rising = all((np.diff(s.mean, axis=0) > 0).mean() > 0.95 for s in (apart, shared))
    faster = bool((growth["partitioned"] > growth["integrated"]).mean() > HALF)
    heavy = apart.text >= 0.9 * apart.text[-1]
    least = (apart.values[:, heavy] / shared.values[:, heavy]).min(axis=(1, 2))
    better = (shared.mean[heavy] < apart.mean[heavy]).mean(axis=0) == 1
    until = apart.video[better].max() if better.any() else 0
    more_apart, more_together = growth["partitioned"].mean(), growth["integrated"]
    note = (
        f"from {number(apart.text[0])} to {number(apart.text[-1])} text clients {number(more_apart)} ms more "
        f"apart, {number(more_together[0])} (no video) to {number(more_together[-1])} ms (V) together; at "
        f"heavy text together is better up to {number(until)} video clients"
    )
    yield CLAIMS.judged("S-F10", over_seeds(least), note, shape=bool(rising and faster))


def parts(service: dict[str, Surface], queueing: dict[str, Surface]) -> Iterator[Claim]:
    """S-F11: what the response of text grows by, from the lightest to the heaviest text load at half of V."""
    shares, notes, level = [], [], True
    for server in SERVERS:
        s, q = service[server].without_text_zero(), queueing[server].without_text_zero()
        half = int(np.argmin(np.abs(s.video - HALF * s.video[-1])))
        ds, dq = s.values[:, -1, half] - s.values[:, 0, half], q.values[:, -1, half] - q.values[:, 0, half]
        shares.append(100 * dq / (ds + dq))
        level = level and abs(ds.mean()) <= LARGELY * s.mean[0, half]
        notes.append(
            f"{server}: service {number(s.mean[0, half])} to {number(s.mean[-1, half])} ms, "
            f"queueing {number(q.mean[0, half])} to {number(q.mean[-1, half])} ms"
        )
    yield CLAIMS.judged("S-F11", over_seeds(np.minimum(*shares)), "; ".join(notes), shape=bool(level))


def deadlines(video: dict[str, Surface]) -> Iterator[Claim]:
    """S-F12: violated deadlines over the video load."""
    apart, shared = (video[server].without_video_zero() for server in SERVERS)
    moderate = apart.video <= MODERATE * apart.video[-1]
    most = max(apart.mean[:, moderate].max(), shared.mean[:, moderate].max())
    none = most < EQUAL_PCT
    light = apart.text <= HALF * apart.text[-1]
    comparable = float((shared.mean[light, -1] - apart.mean[light, -1]).max()) < FULL_PCT
    more = shared.values[:, -1, -1] - apart.values[:, -1, -1]
    note = (
        f"up to {MODERATE:.0%} of V at most {number(most)} %; at V and light text "
        f"{number(apart.mean[light, -1].max())} % apart, {number(shared.mean[light, -1].max())} % together; "
        f"at T and V {number(apart.mean[-1, -1])} and {number(shared.mean[-1, -1])} %"
    )
    yield CLAIMS.judged("S-F12", over_seeds(more), note, shape=bool(none and comparable))


def schedulers(text: pl.DataFrame, video: pl.DataFrame) -> Iterator[Claim]:
    """S-F2 and S-F3: fair sharing and SCAN on an integrated server."""
    heavy = (text[TEXT].max() * 0.75, video[VIDEO].max())

    def at(table: pl.DataFrame, server: str, scheduler: str, t: float, v: float, metric: str) -> np.ndarray:
        rows = table.filter(
            (pl.col("architecture") == server)
            & (pl.col("scheduler") == scheduler)
            & (pl.col(TEXT) == t)
            & (pl.col(VIDEO) == v)
        )
        return rows.sort("repetition")[metric].to_numpy()

    middle = sorted(video[VIDEO].unique())[1]
    ratio = at(text, "integrated", "round-robin", heavy[0], middle, "response_ms") / at(
        text, "partitioned", "cello", heavy[0], middle, "response_ms"
    )
    note = f"text under round-robin at {heavy[0]:g} text and {middle} video clients"
    yield CLAIMS.judged("S-F2", over_seeds(ratio), note)
    least = sorted(video[VIDEO].unique())[0]
    slower = at(text, "integrated", "scan", heavy[0], heavy[1], "response_ms") / at(
        text, "integrated", "scan", heavy[0], least, "response_ms"
    )
    few, many = text[TEXT].min(), text[TEXT].max()
    hurt = at(video, "integrated", "scan", many, heavy[1], "violated_pct").mean()
    free = at(video, "integrated", "scan", few, heavy[1], "violated_pct").mean()
    alone = at(video, "partitioned", "cello", many, heavy[1], "violated_pct").mean()
    note = (
        f"(a) text under SCAN with {heavy[1]} video clients beside {least}; "
        f"(b) {number(free)} % violated with {few} text clients, {number(hurt)} % with {many}, "
        f"{number(alone)} % apart"
    )
    yield CLAIMS.judged("S-F3", over_seeds(slower), note, shape=bool(hurt > free + EQUAL_PCT and hurt > alone))


def bursty(text: pl.DataFrame, video: pl.DataFrame) -> Iterator[Claim]:
    """S-F15."""

    def of(table: pl.DataFrame, server: str, variant: str, clients: int, metric: str) -> np.ndarray:
        rows = table.filter(
            (pl.col("architecture") == server) & (pl.col("variant") == variant) & (pl.col(VIDEO) == clients)
        )
        return rows.sort("repetition")[metric].to_numpy()

    half, heavy = sorted(video[VIDEO].unique())
    ratios = {}
    for variant in sorted(text["variant"].unique()):
        ratios[variant] = of(text, "partitioned", variant, half, "response_ms") / of(
            text, "integrated", variant, half, "response_ms"
        )
    beside = ", ".join(
        f"{number(np.exp(np.log(ratio).mean()))} with {name.removeprefix('at-3000-')}"
        for name, ratio in ratios.items()
        if name.startswith("at-")
    )
    note = f"at {half} video clients, the geometric mean over ten streams; at the same load {beside}"
    apart, shared = (of(text, server, "kb-s-3000", half, "response_ms") for server in SERVERS)
    yield CLAIMS.judged("S-F15", ratio_interval(apart, shared), note)
    worst = {server: of(video, server, "kb-s-2500", heavy, "violated_pct") for server in SERVERS}
    note = ", ".join(f"{number(values.mean())} % {server}" for server, values in worst.items())
    yield CLAIMS.judged(
        "S-F15 video", over_seeds(np.maximum(*worst.values())), f"{note}, at {heavy} video clients"
    )


def distributions(found: list[Distribution], capacity: float, window_s: int) -> Iterator[Claim]:
    """S-F16: mean and peak load for each probability of overload."""
    for overload in OVERLOADS:
        loads = [one.clients(capacity, overload) for one in found]
        note = f"of the stand-in for the trace, over windows of {window_s} s"
        yield CLAIMS.judged(f"S-F16 mean {overload:g}", over_seeds(load.mean() for load in loads), note)
        yield CLAIMS.judged(f"S-F16 peak {overload:g}", over_seeds(load.max() for load in loads), note)


def improvements(found: dict[float, list[Improvement]]) -> Iterator[Claim]:
    """S-F17: what sharing brings, for each probability of overload."""
    means = [np.mean([one.difference_ms.mean() for one in found[overload]]) for overload in OVERLOADS]
    growing = all(b > a for a, b in pairwise(means))
    for overload, mean in zip(OVERLOADS, means, strict=True):
        percent = [float(one.percent.mean()) for one in found[overload]]
        note = f"{number(mean)} ms on average"
        yield CLAIMS.judged(
            f"S-F17 {overload:g}", mean_interval(percent), note, shape=bool(mean > 0 and growing)
        )


def partitions(text: pl.DataFrame) -> Iterator[Claim]:
    """S-F18: the improvement for each size of the partition, over the text loads that it bears by itself."""
    found, notes = [], []
    for variant in sorted(text["variant"].unique()):
        rows = text.filter(pl.col("variant") == variant)
        by = {s: rows.filter(pl.col("architecture") == s).sort(TEXT, "repetition") for s in SERVERS}
        apart, shared = (by[s].pivot(on="repetition", index=TEXT, values="response_ms") for s in SERVERS)
        a, b = apart.drop(TEXT).to_numpy(), shared.drop(TEXT).to_numpy()
        borne = a.mean(axis=1) <= FULL_MS
        percent = 100 * (a[borne] - b[borne]).sum(axis=0) / a[borne].sum(axis=0)
        found.append(percent)
        notes.append(f"{int(variant.removeprefix('text-'))} disks for text: {number(percent.mean())} %")
    yield CLAIMS.judged("S-F18", over_seeds(np.min(found, axis=0)), "; ".join(notes))
