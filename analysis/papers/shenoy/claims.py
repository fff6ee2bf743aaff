"""Claims of Figs. 2, 3 and 13 to 18: schedulers, capacity, bursts, loads that vary, partition sizes."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import polars as pl

from papers.shenoy import CLAIMS
from papers.shenoy.load import OVERLOADS, Distribution, Improvement, by_seed
from papers.shenoy.results import (
    EQUAL_PCT,
    FULL_MS,
    FULL_PCT,
    SERVERS,
    TEXT,
    VIDEO,
    Surface,
    along,
    capacities,
)
from weir.claims import Claim, Found, over_seeds
from weir.labels import number
from weir.statistics import Interval, ratio_interval

#: Text load of the claims about schedulers: three quarters of the paper's T.
HEAVY_TEXT = 150
#: SCAN as the paper has it: in the increasing order of cylinder numbers.
SCAN = "c-scan"
#: Mixes of the capacity line: shares of 2T, the rest of 2V. The ends and the middle are claims of their own.
MIXES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)
#: A mix is far below the line if it loses more than this, in %.
FAR_PCT = 10
#: What the requests of bursty text are, by variant: the open parameters of the stand-in for the trace.
BURSTS = {
    "kb-s-3000": "8 KiB", "at-3000-2kib": "2 KiB", "at-3000-4kib": "4 KiB", "at-3000-32kib": "32 KiB",
    "at-3000-mmpp": "8 KiB, Markov-modulated",
}  # fmt: skip
#: Why a ratio has no value.
UNBOUNDED = "a response is unbounded"
#: Half of the text server's capacity, and the load of the heaviest claim about video, in KB/s.
HALF_KB_S, HEAVY_KB_S = 3000, 2500


def _at(table: pl.DataFrame, metric: str, **level: object) -> np.ndarray:
    """A metric by repetition at some levels; `text` and `video` are numbers of clients."""
    columns = {"text": TEXT, "video": VIDEO}
    for name, value in level.items():
        table = table.filter(pl.col(columns.get(name, name)) == value)
    return table.sort("repetition")[metric].to_numpy()


def fair_sharing(text: pl.DataFrame, video: pl.DataFrame) -> Iterator[Claim]:
    """S-F2: round-robin on an integrated server."""
    middle = sorted(video[VIDEO].unique())[1]
    at = {"text": HEAVY_TEXT, "video": middle}
    together = _at(text, "response_ms", architecture="integrated", scheduler="round-robin", **at)
    apart = _at(text, "response_ms", architecture="partitioned", **at)
    note = f"text under round-robin at {HEAVY_TEXT} text and {middle} video clients"
    yield CLAIMS.judged("S-F2", _bounded(together / apart), note + _unbounded(together, "round-robin"))


def scan(text: pl.DataFrame, video: pl.DataFrame) -> Iterator[Claim]:
    """S-F3: SCAN on an integrated server."""
    few, many = video[VIDEO].min(), video[VIDEO].max()
    shared = {"architecture": "integrated", "scheduler": SCAN}
    slow, fast = (_at(text, "response_ms", text=HEAVY_TEXT, video=v, **shared) for v in (many, few))
    note = f"{many} video clients beside {few}, at {HEAVY_TEXT} text clients"
    yield CLAIMS.judged("S-F3 a", _bounded(slow / fast), note + _unbounded(slow, "SCAN"))
    loads = sorted(video[TEXT].unique())
    free = _at(video, "violated_pct", text=loads[0], video=many, **shared)
    found = {}
    for load in loads[1:]:
        hurt = _at(video, "violated_pct", text=load, video=many, **shared)
        alone = _at(video, "violated_pct", text=load, video=many, architecture="partitioned")
        note = (
            f"{number(hurt.mean())} % violated with {load} text clients, {number(free.mean())} % with "
            f"{loads[0]}, {number(alone.mean())} % apart"
        )
        shape = bool(hurt.mean() > alone.mean() + EQUAL_PCT)
        found[f"{load} text clients"] = Found(over_seeds(hurt - free), note, shape)
    yield CLAIMS.over("S-F3 b", found)


def limits(text: pl.DataFrame, video: pl.DataFrame) -> Iterator[Claim]:
    """S-TV, and S-F13 of one kind alone."""
    for kind, name, table, clients, metric, limit in (
        ("text", "T", text, TEXT, "answered_ms", FULL_MS),
        ("video", "V", video, VIDEO, "violated_pct", FULL_PCT),
    ):
        apart, together = (capacities(table, server, clients, metric, limit) for server in SERVERS)
        yield CLAIMS.judged(f"S-TV {name}", _reached(apart), "between the runs' points")
        share = [100 * one / (2 * other) for one, other in zip(together, apart, strict=True)]
        note = f"{number(np.mean(together))} clients, where 2{name} is {number(2 * np.mean(apart))}"
        yield CLAIMS.judged(f"S-F13 {kind} alone", _reached(share), note)


def _bounded(ratios: np.ndarray) -> Interval | None:
    """Over seeds; None if a response is unbounded in one."""
    return over_seeds(ratios) if np.isfinite(ratios).all() else None


def _unbounded(response_ms: np.ndarray, of: str) -> str:
    """What a note says of runs that left requests unanswered."""
    count = int(np.isinf(response_ms).sum())
    return f"; {count} of {len(response_ms)} runs ({of}) do not drain" if count else ""


def _reached(values: list[float]) -> Interval | None:
    """Over seeds; None if the runs do not go as far as the limit in each."""
    return None if np.isnan(values).any() else over_seeds(values)


def line(text: Surface, video: Surface, full: tuple[float, float]) -> Iterator[Claim]:
    """S-F14 line: how far the integrated server gets on rays to the straight line from 2V to 2T."""
    lost = np.array(
        [along(text, video, (2 * mix * full[0], 2 * (1 - mix) * full[1])).lost_pct for mix in MIXES]
    )
    by_mix = lost.mean(axis=1)
    said = ", ".join(f"{mix:.0%}: {number(loss)} %" for mix, loss in zip(MIXES, by_mix, strict=True))
    shape = bool(by_mix.max() <= FAR_PCT)
    yield CLAIMS.judged("S-F14 line", over_seeds(lost.mean(axis=0)), f"by share of 2T {said}", shape=shape)


def together(text: pl.DataFrame, video: pl.DataFrame, full: tuple[float, float]) -> Iterator[Claim]:
    """S-F13 of both: how far the integrated server gets on the ray to the partitioned one's limits."""
    found = {}
    for scheduler in text["scheduler"].unique(maintain_order=True):
        if scheduler.split()[0] != "cello":
            continue
        rays = [table.filter(pl.col("scheduler") == scheduler) for table in (text, video)]
        reached = along(_ray(rays[0], "answered_ms"), _ray(rays[1], "violated_pct"), full)
        kept = 1 - reached.lost_pct.mean() / 100
        note = (
            f"{kept * full[0]:.0f} text and {kept * full[1]:.0f} video clients; {reached.first} is the first "
            "to suffer"
        )
        found[scheduler] = Found(over_seeds(reached.lost_pct), note)
    yield CLAIMS.over("S-F13 together", found)


def _ray(table: pl.DataFrame, metric: str) -> Surface:
    """Runs on one ray, as a surface that is level across it."""
    wide = table.sort(TEXT).pivot(on="repetition", index=TEXT, values=metric)
    values = wide.drop(TEXT).to_numpy().T
    return Surface(wide[TEXT].to_numpy().astype(float), np.array([0.0, 1e6]), np.stack([values] * 2, axis=2))


def bursty(text: pl.DataFrame) -> Iterator[Claim]:
    """S-F15: the response of bursty text."""
    half = text[VIDEO].min()
    found = {}
    for variant, name in BURSTS.items():
        if variant in text["variant"]:
            apart, shared = (
                _at(text, "response_ms", architecture=server, variant=variant, video=half)
                for server in SERVERS
            )
            note = f"at {half} video clients, the geometric mean over {len(apart)} streams"
            note += _unbounded(apart, SERVERS[0]) + _unbounded(shared, SERVERS[1])
            finite = bool(np.isfinite([apart, shared]).all())
            ratio = ratio_interval(apart, shared) if finite else None
            found[name] = Found(ratio, note, missed="" if finite else UNBOUNDED)
    yield CLAIMS.over("S-F15", found)


def bursty_deadlines(video: pl.DataFrame) -> Iterator[Claim]:
    """S-F15 of video: deadlines beside bursty text."""
    half, heavy = sorted(video[VIDEO].unique())

    def of(server: str, kb_s: int, clients: int) -> np.ndarray:
        variant = f"kb-s-{kb_s:04d}"
        return _at(video, "violated_pct", architecture=server, variant=variant, video=clients)

    loads = sorted(int(name[5:]) for name in video["variant"].unique() if name.startswith("kb-s-"))
    moderate = [of(server, load, half) for server in SERVERS for load in loads if load <= HALF_KB_S]
    note = f"at {half} video clients and up to {HALF_KB_S} KB/s"
    yield CLAIMS.judged("S-F15 moderate", over_seeds(np.max(moderate, axis=0)), note)
    worst = {server: of(server, HEAVY_KB_S, heavy) for server in SERVERS}
    said = ", ".join(f"{number(values.mean())} % {server}" for server, values in worst.items())
    note = f"{said}, at {heavy} video clients and {HEAVY_KB_S} KB/s"
    yield CLAIMS.judged("S-F15 video", over_seeds(np.maximum(*worst.values())), note)
    more = {
        (load, clients): of("integrated", load, clients) - of("partitioned", load, clients)
        for load in loads
        for clients in (half, heavy)
    }
    load, clients = max(more, key=lambda at: abs(more[at].mean()))
    note = f"at {clients} video clients and {load} KB/s"
    yield CLAIMS.judged("S-F15 isolated", over_seeds(more[load, clients]), note)


def distributions(found: Distribution, capacity: float) -> Iterator[Claim]:
    """S-F16: mean and peak load for each probability of overload."""
    for overload in OVERLOADS:
        clients = found.clients(capacity, overload)
        note = f"of the printed loads, where {capacity:.0f} text clients are the capacity"
        yield CLAIMS.judged(f"S-F16 mean {overload:g}", float(clients.mean()), note)
        yield CLAIMS.judged(f"S-F16 peak {overload:g}", float(clients.max()), note)


def improvements(found: Mapping[str, Mapping[float, list[Improvement]]]) -> Iterator[Claim]:
    """S-F17: what sharing brings, for each reading of the load and each probability of overload."""
    ms, percent = {}, {}
    for reading, by_overload in found.items():
        of_ms = {overload: by_seed(made, "difference_ms") for overload, made in by_overload.items()}
        means = [values.mean() for values in of_ms.values()]
        note = ", ".join(f"{number(mean)} ms at {at:g}" for at, mean in zip(of_ms, means, strict=True))
        growing = all(means[0] > 0 and b > a for a, b in pairwise(means))
        least, most = min(of_ms), max(of_ms)
        ms[reading] = Found(over_seeds(of_ms[most] / of_ms[least]), note, bool(growing))
        for overload, made in by_overload.items():
            one = over_seeds(by_seed(made, "percent"))
            note = f"{number(of_ms[overload].mean())} ms on average"
            percent.setdefault(overload, {})[reading] = Found(one, note)
    yield CLAIMS.over("S-F17 ms", ms)
    for overload, readings in percent.items():
        yield CLAIMS.over(f"S-F17 {overload:g}", readings)


def partitions(text: pl.DataFrame) -> Iterator[Claim]:
    """S-F18: the improvement for each size of the partition, over the text loads that it bears by itself."""
    found, notes = [], []
    for variant in sorted(text["variant"].unique()):
        rows = text.filter(pl.col("variant") == variant)
        by = {s: rows.filter(pl.col("architecture") == s).sort(TEXT, "repetition") for s in SERVERS}
        apart, shared = (by[s].pivot(on="repetition", index=TEXT, values="response_ms") for s in SERVERS)
        a, b = apart.drop(TEXT).to_numpy(), shared.drop(TEXT).to_numpy()
        # A mean over repetitions of which one is unbounded is unbounded.
        borne = a.mean(axis=1) <= FULL_MS
        percent = 100 * (a[borne] - b[borne]).sum(axis=0) / a[borne].sum(axis=0)
        found.append(percent)
        notes.append(f"{int(variant.removeprefix('text-'))} disks for text: {number(percent.mean())} %")
    yield CLAIMS.judged("S-F18", _bounded(np.min(found, axis=0)), "; ".join(notes))
