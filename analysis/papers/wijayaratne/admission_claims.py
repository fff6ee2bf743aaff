"""Claims of Figs. 5 to 9: how many streams are admitted, when they begin, and how full the disks are then.

Every number is formed within a repetition first; its interval is over repetitions.
"""

import numpy as np
import polars as pl

from papers.wijayaratne.bands import CLAIMS
from papers.wijayaratne.results import levels, load_pct
from weir.claims import Claim
from weir.load import Study
from weir.statistics import Interval, mean_interval

#: The policies that begin at random places or far from each other.
SCATTERED = ("prime-hopping", "fixed-distance", "random-start")
#: "Significantly", "clearly": by more than this share; "slowly": by less.
CLEARLY = 0.25
#: Fig. 6: the load of so many rounds is averaged, so that a single idle round ends no stretch.
SMOOTH_ROUNDS = 10
#: Fig. 6: nearly full.
FULL_PCT = 90.0
#: Fig. 6: "for several seconds between rounds 1800 and 2600": stretches of hundreds of rounds.
LONG_ROUNDS = 100


def more_pct(part: float, whole: float) -> float:
    """Relative difference of two numbers in %; infinite where the second is 0."""
    return 100 * (part / whole - 1) if whole else float("inf")


def by_repetition(table: pl.DataFrame, value: str, **cell: object) -> list[float]:
    """The mean of a column in each repetition, over the runs of these levels."""
    for name, level in cell.items():
        table = table.filter(
            pl.col(name).is_in(level) if isinstance(level, list | tuple) else pl.col(name) == level
        )
    return table.group_by("repetition").agg(pl.col(value).mean()).sort("repetition")[value].to_list()


def means(table: pl.DataFrame, value: str, name: str, **cell: object) -> dict[object, float]:
    """The mean of a column over all runs of these levels, by the levels of one factor."""
    for factor, level in cell.items():
        table = table.filter(pl.col(factor) == level)
    rows = table.group_by(name).agg(pl.col(value).mean()).sort(name)
    return dict(rows.rows())


def paired_more_pct(
    table: pl.DataFrame, value: str, of: dict[str, object], than: dict[str, object]
) -> Interval:
    """Relative difference of two cells, or means of cells, in %, by repetition."""
    pairs = zip(by_repetition(table, value, **of), by_repetition(table, value, **than), strict=True)
    return mean_interval([more_pct(a, b) for a, b in pairs])


def layouts(table: pl.DataFrame) -> list[Claim]:
    """W-F5."""
    key = ["repetition", "layout", "block_kib", "stream"]
    wide = table.pivot("rule", index=key, values="admitted").with_columns(
        more=100 * (pl.col("trace-based") / pl.col("peak-rate") - 1)
    )
    ours = mean_interval(wide.group_by("repetition").agg(pl.col("more").mean())["more"].to_list())
    of_stream = means(wide, "more", "stream")
    cells = wide.group_by("layout", "block_kib", "stream").agg(pl.col("more").mean())["more"]
    trace = table.filter(pl.col("rule") == "trace-based")
    streams = trace["stream"].unique(maintain_order=True).to_list()
    curve = {
        (layout, stream): list(means(trace, "admitted", "block_kib", layout=layout, stream=stream).values())
        for layout in ("cdl", "bctl")
        for stream in streams
    }
    mean = {layout: np.mean([curve[layout, s] for s in streams], axis=0) for layout in ("cdl", "bctl")}
    # "Improves significantly" with every step; "drops slowly", where less than a stream is no step.
    grows = min(np.diff(mean["cdl"])) > 0 and mean["cdl"][-1] > (1 + CLEARLY) * mean["cdl"][0]
    falls = (
        max(np.diff(mean["bctl"])) < 1
        and (1 - CLEARLY) * mean["bctl"][0] < mean["bctl"][-1] < mean["bctl"][0]
    )
    each = ", ".join(f"{stream} {value:.0f}" for stream, value in of_stream.items())
    changes = {
        layout: ", ".join(
            f"{s} {more_pct(curve[layout, s][-1], curve[layout, s][0]):+.0f} %" for s in streams
        )
        for layout in mean
    }
    shape = bool(grows) and bool(falls) and bool((wide["more"] > 0).all())
    note = (
        f"means by stream {each}; by cell {cells.min():.0f} to {cells.max():.0f}; from 32 to 256 KiB "
        f"CDL changes by {changes['cdl']} (mean of streams grows: {_yes(grows)}), BCTL by {changes['bctl']} "
        f"(falls slowly: {_yes(falls)})"
    )
    return [CLAIMS.judged("W-F5", ours, note, shape=shape)]


def load(study: Study, policy: str = "random-start", layout: str = "bctl") -> list[Claim]:
    """W-F6."""
    found = [
        run for run in study.valid_runs if (levels(run)["policy"], levels(run)["layout"]) == (policy, layout)
    ]
    mean, longest = [], []
    for run in found:
        disks = np.array(load_pct(run))
        mean.append(float(disks.mean()))
        longest.append(max(longest_stretch(disk) for disk in disks))
    elsewhere = max(longest_stretch(disk) for run in study.valid_runs for disk in np.array(load_pct(run)))
    note = (
        f"mean over all rounds and disks; the longest stretch with the mean of {SMOOTH_ROUNDS} rounds "
        f"above {FULL_PCT:.0f} % on some disk has {min(longest)} to {max(longest)} rounds; of other policies "
        f"and layouts at most {elsewhere}"
    )
    return [CLAIMS.judged("W-F6", mean_interval(mean), note, shape=min(longest) >= LONG_ROUNDS)]


def longest_stretch(load_pct_of_disk: np.ndarray) -> int:
    """Rounds of the longest stretch in which a disk is nearly full."""
    smooth = np.convolve(load_pct_of_disk, np.ones(SMOOTH_ROUNDS) / SMOOTH_ROUNDS, "valid")
    edges = np.flatnonzero(np.diff(np.concatenate(([0], (smooth >= FULL_PCT).astype(int), [0]))))
    return int((edges[1::2] - edges[::2]).max(initial=0))


def policies(table: pl.DataFrame) -> list[Claim]:
    """W-F7 and W-F8."""
    taken = {layout: means(table, "admitted", "policy", layout=layout) for layout in ("cdl", "bctl")}
    waits = {
        layout: means(table, "startup_mean_rounds", "policy", layout=layout) for layout in ("cdl", "bctl")
    }
    text = {
        layout: ", ".join(
            f"{policy} {value:.0f}" for policy, value in sorted(of.items(), key=lambda item: item[1])
        )
        for layout, of in taken.items()
    }
    at_32 = {"layout": "bctl", "block_kib": 32}
    greedy = paired_more_pct(
        table, "admitted", at_32 | {"policy": "minimal-load"}, at_32 | {"policy": "greedy"}
    )
    # Less than a stream is no difference.
    least = all(of["greedy"] - min(of.values()) < 1 for of in taken.values())
    others = paired_more_pct(
        table,
        "admitted",
        {"layout": "bctl", "policy": "minimal-load"},
        {"layout": "bctl", "policy": SCATTERED},
    )
    best = max(taken["bctl"], key=taken["bctl"].get) == "minimal-load"
    not_best = max(taken["cdl"], key=taken["cdl"].get) != "minimal-load"
    scattered = [np.mean([waits[layout][policy] for policy in SCATTERED]) for layout in waits]
    ours = mean_interval(by_repetition(table, "startup_mean_rounds", policy=SCATTERED))
    smallest = all(min(of, key=of.get) == "greedy" for of in waits.values())
    below = {
        policy: [of[policy] < mean for of, mean in zip(waits.values(), scattered, strict=True)]
        for policy in ("minimal-load", "last-scheduled")
    }
    waited = "; ".join(
        f"{layout}: " + ", ".join(f"{policy} {value:.0f}" for policy, value in of.items())
        for layout, of in waits.items()
    )
    by_layout = f"mean streams over block sizes, CDL: {text['cdl']}; BCTL: {text['bctl']}"
    return [
        CLAIMS.judged(
            "W-F7 greedy", greedy, f"greedy is least in both layouts: {_yes(least)}; {by_layout}", shape=least
        ),
        CLAIMS.judged(
            "W-F7 others",
            others,
            f"best in BCTL: {_yes(best)}; not best in CDL: {_yes(not_best)}",
            shape=best and not_best,
        ),
        CLAIMS.judged(
            "W-F8",
            ours,
            f"mean rounds waited, {waited}",
            shape=smallest and all(all(of) for of in below.values()),
        ),
    ]


def statistical(table: pl.DataFrame) -> list[Claim]:
    """W-F9."""
    targets = sorted(table["latency_target_rounds"].unique().to_list())
    drops = sorted(table["drop_pct"].unique().to_list())

    def gain(target: int, drop: float) -> Interval:
        cell = {"latency_target_rounds": target}
        return paired_more_pct(table, "admitted", cell | {"drop_pct": drop}, cell | {"drop_pct": 0})

    def streams(target: int) -> Interval:
        return mean_interval(by_repetition(table, "admitted", latency_target_rounds=target, drop_pct=0))

    taken = {target: means(table, "admitted", "drop_pct", latency_target_rounds=target) for target in targets}
    never_fewer = all(np.diff([of[drop] for drop in drops]).min() >= 0 for of in taken.values())
    waiting_helps = bool(np.diff([taken[target][0] for target in targets]).min() >= 0)
    gains = {drop: {target: gain(target, drop) for target in targets} for drop in (1, 2, 5)}
    most = max(gains[5].values(), key=lambda interval: interval.estimate)
    others = max((gains[1][t] for t in targets if t != targets[0]), key=lambda interval: interval.estimate)
    used = means(table, "utilisation_pct", "latency_target_rounds", drop_pct=0)
    curve = [used[target] for target in targets]
    peak = int(np.argmax(curve))
    text = {drop: ", ".join(f"{t}: {i.estimate:.1f}" for t, i in of.items()) for drop, of in gains.items()}
    grows = f"streams grow with the latency target: {_yes(waiting_helps)}"
    curve_text = ", ".join(f"{target}: {value:.1f} %" for target, value in zip(targets, curve, strict=True))
    return [
        CLAIMS.judged("W-F9 100", streams(100), grows, shape=waiting_helps),
        CLAIMS.judged("W-F9 1000", streams(1000), grows, shape=waiting_helps),
        CLAIMS.judged(
            "W-F9 5%", most, f"by latency target {text[5]}; drops never bring fewer: {_yes(never_fewer)}",
            shape=never_fewer,
        ),
        CLAIMS.judged("W-F9 2% 100", gains[2][100], f"by latency target {text[2]}"),
        CLAIMS.judged(
            "W-F9 2% 1000", gains[2][1000], f"by latency target {text[2]}",
            shape=gains[2][1000].estimate < gains[2][100].estimate,
        ),
        CLAIMS.judged("W-F9 1% 100", gains[1][100], f"by latency target {text[1]}"),
        CLAIMS.judged("W-F9 1%", others, f"the most of the other targets; by latency target {text[1]}"),
        CLAIMS.judged(
            "W-F9 utilisation", curve[peak], f"highest at {targets[peak]} rounds: {curve_text}",
            shape=0 < peak < len(targets) - 1,
        ),
    ]  # fmt: skip


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
