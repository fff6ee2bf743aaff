"""Claims of Figs. 5 to 9 and 12: how many streams are admitted, when they begin, how full the disks are.

Every number is formed within a repetition first; its interval is over repetitions.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from papers.wijayaratne import CLAIMS
from papers.wijayaratne.results import levels, load_pct
from weir.claims import Claim, Found
from weir.labels import number
from weir.load import Run, Study
from weir.statistics import Interval, mean_interval

#: The policies that begin at random places or far from each other.
SCATTERED = ("prime-hopping", "fixed-distance", "random-start")
LAYOUTS = ("cdl", "bctl")
#: Fig. 6: the load of so many rounds is averaged, so that a single idle round ends no stretch.
SMOOTH_ROUNDS = 10
#: Fig. 6: nearly full.
FULL_PCT = 90.0
#: What requests are assumed to take: parameters that the paper leaves open.
READING = ("seek", "rotation", "transfer")
#: What is 1 where films have the paper's sizes, as the reading's other part.
SCALE = "frame_scale"
#: The paper's words, "worst case service times": the reading of Figs. 5 to 9. Studies that vary it have
#: others beside it.
BASE_READING = {"seek": "sweep", "rotation": "whole", "transfer": "lowest"}


def stated(id: str, found: Mapping[str, Found]) -> Claim:
    """A claim over settings; if its register names none, the first decides and the note has the others."""
    if CLAIMS.register[id].setting:
        return CLAIMS.over(id, found)
    (name, one), *others = found.items()
    rest = [f"{other}: {number(of.value)}" for other, of in others if of.value is not None]
    note = "; ".join([f"{name}: {one.note}", *rest]) if others else one.note
    return CLAIMS.judged(id, one.ours, note, shape=one.shape)


def is_base_reading(at: Mapping[str, object]) -> bool:
    """Whether levels are those of `BASE_READING`, where they have any."""
    return all(at.get(name, level) == level for name, level in BASE_READING.items())


def of_base_reading(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of `BASE_READING`, of a study that varies it; else all."""
    if READING[0] not in table.columns:
        return table
    return table.filter(*(pl.col(name) == level for name, level in BASE_READING.items()))


def more_pct(part: float, whole: float) -> float:
    """Relative difference of two numbers in %; infinite where the second is 0."""
    return 100 * (part / whole - 1) if whole else float("inf")


def by_repetition(table: pl.DataFrame, value: str, **cell: object) -> list[float]:
    """The mean of a column in each repetition, over the runs of these levels."""
    for name, level in cell.items():
        table = table.filter(
            pl.col(name).is_in(level) if isinstance(level, list | tuple) else pl.col(name) == level
        )
    return (
        table.group_by("repetition", maintain_order=True)
        .agg(pl.col(value).mean())
        .sort("repetition")[value]
        .to_list()
    )


def means(table: pl.DataFrame, value: str, name: str, **cell: object) -> dict[object, float]:
    """The mean of a column over all runs of these levels, by the levels of one factor."""
    for factor, level in cell.items():
        table = table.filter(pl.col(factor) == level)
    rows = table.group_by(name, maintain_order=True).agg(pl.col(value).mean()).sort(name)
    return dict(rows.rows())


def paired_more_pct(
    table: pl.DataFrame, value: str, of: dict[str, object], than: dict[str, object]
) -> Interval:
    """Relative difference of two cells, or means of cells, in %, by repetition."""
    return mean_interval(_paired(table, value, of, than))


def layouts(table: pl.DataFrame) -> list[Claim]:
    """W-F5."""
    key = ["repetition", "layout", "block_kib", "stream"]
    wide = table.pivot("rule", index=key, values="admitted").with_columns(
        more=100 * (pl.col("trace-based") / pl.col("peak-rate") - 1)
    )
    cells = (
        wide.group_by("layout", "block_kib", "stream", maintain_order=True)
        .agg(pl.col("more").mean())
        .sort("more")
    )
    ends = [cells.row(at, named=True) for at in (0, -1)]
    found = []
    for name, end in zip(("least", "most"), ends, strict=True):
        at = {name: end[name] for name in ("layout", "block_kib", "stream")}
        note = f"{end['stream']} in {end['layout'].upper()} with {end['block_kib']} KiB"
        found.append(CLAIMS.judged(f"W-F5 {name}", mean_interval(by_repetition(wide, "more", **at)), note))
    trace = table.filter(pl.col("rule") == "trace-based")
    return [*found, _over_blocks(trace, "cdl"), _over_blocks(trace, "bctl")]


def _over_blocks(trace: pl.DataFrame, layout: str) -> Claim:
    """From the smallest to the largest block."""
    streams = trace["stream"].unique(maintain_order=True).to_list()
    small, large = trace["block_kib"].min(), trace["block_kib"].max()
    of = {
        stream: np.array([
            by_repetition(trace, "admitted", layout=layout, stream=stream, block_kib=block)
            for block in (small, large)
        ])
        for stream in streams
    }  # fmt: skip
    more = {stream: 100 * (last / first - 1) for stream, (first, last) in of.items()}
    note = ", ".join(f"{stream} {values.mean():+.0f} %" for stream, values in more.items())
    if layout == "cdl":
        least = min(more, key=lambda stream: more[stream].mean())
        curve = list(means(trace, "admitted", "block_kib", layout=layout).values())
        grows = bool(np.diff(curve).min() > 0)
        note += f"; mean of streams grows with every block size: {_yes(grows)}"
        return CLAIMS.judged("W-F5 CDL", mean_interval(more[least].tolist()), note, shape=grows)
    falls = all(values.mean() < 0 for values in more.values())
    mean = -np.mean(list(more.values()), axis=0)
    return CLAIMS.judged("W-F5 BCTL", mean_interval(mean.tolist()), note, shape=falls)


def load(study: Study) -> list[Claim]:
    """W-F6, for each layout, policy and reading."""
    mean, busy = {}, {}
    runs: dict[str, list[Run]] = {}
    for run in study.valid_runs:
        at = levels(run)
        other = [] if is_base_reading(at) else [str(at[name]) for name in READING]
        runs.setdefault(", ".join([str(at["layout"]).upper(), str(at["policy"]), *other]), []).append(run)
    for name, of in runs.items():
        disks = [np.array(load_pct(run)) for run in of]
        mean[name] = Found(mean_interval([float(one.mean()) for one in disks]), "over all rounds and disks")
        longest = [float(max(longest_stretch(disk) for disk in one)) for one in disks]
        note = f"with the mean of {SMOOTH_ROUNDS} rounds above {FULL_PCT:.0f} %"
        busy[name] = Found(mean_interval(longest), note)
    return [CLAIMS.over("W-F6 mean", mean), CLAIMS.over("W-F6 busy", busy)]


def longest_stretch(load_pct_of_disk: np.ndarray) -> int:
    """Rounds of the longest stretch in which a disk is nearly full."""
    smooth = np.convolve(load_pct_of_disk, np.ones(SMOOTH_ROUNDS) / SMOOTH_ROUNDS, "valid")
    edges = np.flatnonzero(np.diff(np.concatenate(([0], (smooth >= FULL_PCT).astype(int), [0]))))
    return int((edges[1::2] - edges[::2]).max(initial=0))


def policies(films: Mapping[str, pl.DataFrame]) -> list[Claim]:
    """W-F7 and W-F8, for each kind of films and each reading.

    Args:
        films: results of studies with the same factors, by their films; those of other figures come first.
    """
    tables = {}
    for name, table in films.items():
        readings = by_reading(table, READING) if READING[0] in table.columns else {"": table}
        base = ", ".join(BASE_READING.values())
        for reading in sorted(readings, key=lambda reading: reading != base):
            tables[", ".join(filter(None, (name, reading)))] = readings[reading]
    by_setting = {setting: _policies(table) | _waits(table) for setting, table in tables.items()}
    ids = next(iter(by_setting.values()))
    return [stated(id, {setting: of[id] for setting, of in by_setting.items()}) for id in ids]


def _policies(table: pl.DataFrame) -> dict[str, Found]:
    """W-F7."""
    taken = {layout: means(table, "admitted", "policy", layout=layout) for layout in LAYOUTS}
    text = "; ".join(
        f"{layout.upper()}: " + ", ".join(f"{policy} {value:.0f}" for policy, value in of.items())
        for layout, of in taken.items()
    )
    at_32 = {"layout": "bctl", "block_kib": 32}
    greedy = paired_more_pct(
        table, "admitted", at_32 | {"policy": "minimal-load"}, at_32 | {"policy": "greedy"}
    )
    # Less than a stream is no difference.
    least = all(of["greedy"] - min(of.values()) < 1 for of in taken.values())
    best = max(taken["bctl"], key=taken["bctl"].get) == "minimal-load"
    gain = {
        layout: _paired(
            table, "admitted", {"layout": layout, "policy": "minimal-load"},
            {"layout": layout, "policy": SCATTERED},
        )
        for layout in LAYOUTS
    }  # fmt: skip
    apart = {
        layout: np.array([
            by_repetition(table, "admitted", layout=layout, policy=policy) for policy in SCATTERED
        ])
        for layout in LAYOUTS
    }  # fmt: skip
    spread = {layout: 100 * (of.max(axis=0) / of.min(axis=0) - 1) for layout, of in apart.items()}
    most = max(spread, key=lambda layout: spread[layout].mean())
    said = ", ".join(f"{layout.upper()} {np.mean(values):.1f} %" for layout, values in gain.items())
    less = [bctl - cdl for bctl, cdl in zip(gain["bctl"], gain["cdl"], strict=True)]
    note = f"greedy is least in both layouts: {_yes(least)}; mean streams {text}"
    return {
        "W-F7 greedy": Found(greedy, note, least),
        "W-F7 equal": Found(mean_interval(spread[most].tolist()), f"in {most.upper()}"),
        "W-F7 others": Found(mean_interval(gain["bctl"]), f"best of all in BCTL: {_yes(best)}", best),
        "W-F7 CDL": Found(mean_interval(less), f"gains {said}"),
    }


def _waits(table: pl.DataFrame) -> dict[str, Found]:
    """W-F8."""
    waits = {layout: means(table, "startup_mean_rounds", "policy", layout=layout) for layout in LAYOUTS}
    text = "; ".join(
        f"{layout.upper()}: " + ", ".join(f"{policy} {value:.0f}" for policy, value in of.items())
        for layout, of in waits.items()
    )
    smallest = all(min(of, key=of.get) == "greedy" for of in waits.values())
    ours = mean_interval(by_repetition(table, "startup_mean_rounds", policy=SCATTERED))
    found = {"W-F8": Found(ours, f"mean rounds waited, {text}", smallest)}
    for policy in ("minimal-load", "last-scheduled"):
        less = {
            layout: [
                -one
                for one in _paired(
                    table, "startup_mean_rounds", {"layout": layout, "policy": policy},
                    {"layout": layout, "policy": SCATTERED},
                )
            ]
            for layout in LAYOUTS
        }  # fmt: skip
        at = min(less, key=lambda layout, of=less: np.mean(of[layout]))
        found[f"W-F8 {policy.replace('-', ' ')}"] = Found(mean_interval(less[at]), f"in {at.upper()}")
    return found


def statistical(table: pl.DataFrame) -> list[Claim]:
    """W-F9, but for the numbers of streams without drops."""
    targets = sorted(table["latency_target_rounds"].unique().to_list())
    drops = sorted(table["drop_pct"].unique().to_list())
    first, last = targets[0], targets[-1]

    def gain(target: int, drop: float) -> Interval:
        cell = {"latency_target_rounds": target}
        return paired_more_pct(table, "admitted", cell | {"drop_pct": drop}, cell | {"drop_pct": 0})

    taken = {target: means(table, "admitted", "drop_pct", latency_target_rounds=target) for target in targets}
    never_fewer = all(np.diff([of[drop] for drop in drops]).min() >= 0 for of in taken.values())
    gains = {drop: {target: gain(target, drop) for target in targets} for drop in (1, 2, 5)}
    most = max(gains[5].values(), key=lambda interval: interval.estimate)
    others = max((gains[1][t] for t in targets if t != first), key=lambda interval: interval.estimate)
    text = {drop: ", ".join(f"{t}: {i.estimate:.1f}" for t, i in of.items()) for drop, of in gains.items()}
    return [
        CLAIMS.judged(
            "W-F9 5%", most, f"by latency target {text[5]}; drops never bring fewer: {_yes(never_fewer)}",
            shape=never_fewer,
        ),
        CLAIMS.judged("W-F9 2% 100", gains[2][first], f"by latency target {text[2]}"),
        CLAIMS.judged(
            "W-F9 2% 1000", gains[2][last], f"by latency target {text[2]}",
            shape=gains[2][last].estimate < gains[2][first].estimate,
        ),
        _same(taken[first], taken[last][0]),
        *_utilisation(table, targets, drops),
        CLAIMS.judged("W-F9 1%", others, f"the most of the other targets; by latency target {text[1]}"),
        CLAIMS.judged("W-F9 1% 100", gains[1][first], f"by latency target {text[1]}"),
    ]  # fmt: skip


def _same(streams: dict[object, float], wanted: float) -> Claim:
    """W-F9 same: the share of drops that brings the wanted number of streams, between those of the study."""
    drops = np.array(list(streams), dtype=float)
    taken = np.maximum.accumulate(list(streams.values()))
    reached = bool(taken[-1] >= wanted)
    drop = float(np.interp(wanted, taken, drops)) if reached else None
    note = f"{wanted:.0f} streams are wanted, {taken[-1]:.0f} get in at {drops[-1]:g} % of drops"
    return CLAIMS.judged("W-F9 same", drop, note)


def _utilisation(table: pl.DataFrame, targets: list[int], drops: list[float]) -> list[Claim]:
    used = means(table, "utilisation_pct", "latency_target_rounds", drop_pct=0)
    curve = [used[target] for target in targets]
    text = ", ".join(f"{target}: {value:.1f} %" for target, value in zip(targets, curve, strict=True))
    more = {
        target: np.subtract(*(
            by_repetition(table, "utilisation_pct", latency_target_rounds=target, drop_pct=drop)
            for drop in (drops[-1], 0)
        ))
        for target in targets
    }  # fmt: skip
    least = min(more, key=lambda target: more[target].mean())
    return [
        CLAIMS.judged("W-F9 utilisation", float(targets[int(np.argmax(curve))]), text),
        CLAIMS.judged(
            "W-F9 utilisation drops", mean_interval(more[least].tolist()), f"at {least} rounds"
        ),
    ]  # fmt: skip


def readings(table: pl.DataFrame) -> list[Claim]:
    """W-F9 without drops, for each reading of what the paper leaves open."""
    targets = sorted(table["latency_target_rounds"].unique().to_list())
    found: dict[int, dict[str, Found]] = {target: {} for target in targets}
    for name, rows in by_reading(table, ("layout", *READING)).items():
        streams = {
            target: by_repetition(rows, "admitted", latency_target_rounds=target) for target in targets
        }
        grows = bool(np.mean(streams[targets[-1]]) > np.mean(streams[targets[0]]))
        note = f"streams grow with the latency target: {_yes(grows)}"
        for target in targets:
            found[target][name] = Found(mean_interval(streams[target]), note, grows)
    return [CLAIMS.over(f"W-F9 {target}", found[target]) for target in targets]


def shares(table: pl.DataFrame) -> list[Claim]:
    """W-F12 streams, for each reading of what the paper leaves open."""
    found = {
        name: Found(mean_interval(by_repetition(rows, "admitted")))
        for name, rows in by_reading(table, ("layout", "block_kib", *READING)).items()
    }
    return [CLAIMS.over("W-F12 streams", found)]


def by_reading(table: pl.DataFrame, names: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Rows by the levels of some parameters, such as `BCTL, 64 KiB, sweep, whole, lowest`.

    Films of other than the paper's sizes have theirs at the end.
    """
    names = [*names, SCALE] if SCALE in table.columns else list(names)
    found = {}
    for levels_of, rows in table.group_by(names, maintain_order=True):
        words = []
        for name, level in zip(names, levels_of, strict=True):
            word = {"layout": str(level).upper(), "block_kib": f"{level} KiB", SCALE: f"films times {level}"}
            if name != SCALE or level != 1:
                words.append(word.get(name, str(level)))
        found[", ".join(words)] = rows
    return found


def _paired(table: pl.DataFrame, value: str, of: dict[str, object], than: dict[str, object]) -> list[float]:
    pairs = zip(by_repetition(table, value, **of), by_repetition(table, value, **than), strict=True)
    return [more_pct(a, b) for a, b in pairs]


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
