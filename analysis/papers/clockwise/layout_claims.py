"""Claims of the simulations of layouts: Figs. 6.5 to 6.11, 7.1 and 7.2.

Ratios of latencies are geometric means over disks and loads within a repetition; intervals are over
repetitions.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from papers.clockwise import CLAIMS
from papers.clockwise.disk_claims import yes
from papers.clockwise.results import SCHEDULERS, between, disk, means, of, ratio, shown_disks
from weir.claims import Claim, Found, text
from weir.labels import number
from weir.statistics import Interval, mean_interval

#: Loads in MB/s of the rotating layout, which ends at 18: low, medium and extreme.
LOW, MEDIUM, EXTREME = (1.0, 4.2), (8.0, 14.0), (16.0, 18.0)
#: The same of the random layout, which ends at 12.4.
RANDOM_MEDIUM, RANDOM_HIGH = (5.0, 9.0), (11.0, 12.5)
#: The CELLO disks of the figures of chapter 7.
SLICE_FIGURES = {"B-F7.1": (0, 2, 5), "B-F7.2": (6, 7)}
#: Shares by which numbers of switches may be apart before they count as different.
APART = (0.02, 0.05, 0.1, 0.2)


def _settled(found: Interval | None, *, above: float | None = None, below: float | None = None) -> bool:
    """Whether the whole interval lies on one side."""
    if found is None:
        return False
    low = found.estimate if found.low is None else found.low
    high = found.estimate if found.high is None else found.high
    return (above is None or low > above) and (below is None or high < below)


def misses(tables: dict[str, pl.DataFrame]) -> Iterator[Claim]:
    """B-F6.5: deadlines that deltaL missed in every run; the others beside it."""
    count = {name: [0, 0] for name in SCHEDULERS}
    for rows in tables.values():
        for name in SCHEDULERS:
            own = rows.filter(pl.col("scheduler") == name)
            count[name][0] += int(own["missed"].sum())
            count[name][1] += int(own["deadlines"].sum())
    asked = count["deltaL"][1]
    words = ", ".join(f"{name} {missed:,} of {total:,}" for name, (missed, total) in count.items())
    note = f"{asked:,} deadlines in {', '.join(tables)}; all: {words}"
    yield CLAIMS.judged("B-F6.5 misses", float(count["deltaL"][0]), note, shape=asked > 0)


def rotation(rows: pl.DataFrame, repeated: pl.DataFrame) -> Iterator[Claim]:
    """B-F6.5.

    Args:
        rows: all loads.
        repeated: a low, a medium and an extreme one, repeated more often.
    """
    disks = shown_disks(rows)
    edf, lst, delta = (of(repeated, name) for name in SCHEDULERS)
    worst = []
    for loads in (LOW, MEDIUM):
        for other in (lst, delta):
            worst.append(ratio(between(edf, *loads), between(other, *loads), disks))
    words = ", ".join("none" if w is None else text(w) for w in worst)
    medium = min((w for w in worst[2:] if w), key=lambda w: w.estimate, default=None)
    holds = all(_settled(w, above=1.0) for w in worst)
    yield CLAIMS.judged(
        "B-F6.5 EDF", medium, f"EDF by LST and by deltaL, at low and at medium load: {words}", shape=holds
    )
    low = ratio(between(lst, *LOW), between(delta, *LOW), disks)
    yield CLAIMS.judged("B-F6.5 low", low, f"{_loads(repeated, LOW)}, all disks")
    middle = ratio(between(lst, *MEDIUM), between(delta, *MEDIUM), disks)
    note = f"{_loads(repeated, MEDIUM)}, all disks"
    yield CLAIMS.judged("B-F6.5 medium", middle, note, shape=_settled(middle, below=1.0))
    end = between(lst, *EXTREME), between(delta, *EXTREME)
    high = ratio(*end, disks)
    each = {at: ratio(*end, [at]) for at in disks}
    worse = [at for at, found in each.items() if found and found.estimate > 1]
    sure = [at for at, found in each.items() if _settled(found, above=1.0)]
    note = (
        f"{_loads(repeated, EXTREME)}; LST is worse on disks {_list(worse)}, with 95 % on {_list(sure)}; by "
        "disk "
        f"{', '.join(number(found.estimate) if found else 'none' for found in each.values())}"
    )
    yield CLAIMS.judged("B-F6.5 extreme", high, note, shape=len(worse) > len(disks) / 2)
    worst_of_all = ratio(end[0], between(edf, *EXTREME), disks)
    note = f"{_loads(repeated, EXTREME)}, all disks"
    yield CLAIMS.judged("B-F6.5 worst", worst_of_all, note, shape=_settled(worst_of_all, above=1.0))
    edf, delta = of(rows, "EDF"), of(rows, "deltaL")
    loads = sorted({round(x, 6) for x in rows["mb_s"] if x > 0})
    beside = {x: ratio(between(delta, x, x), between(edf, x, x), disks) for x in loads}
    known = {x: found for x, found in beside.items() if found}
    top = max(known, key=lambda x: known[x].estimate, default=None)
    found = known[top] if top is not None else None
    yield CLAIMS.judged(
        "B-F6.5 never worse", found, f"at {number(top)} MB/s, the load at which it comes nearest"
    )


def _loads(rows: pl.DataFrame, limits: tuple[float, float]) -> str:
    """The loads of a table within limits, in words."""
    return f"at {', '.join(number(x) for x in sorted(between(rows, *limits)['mb_s'].unique()))} MB/s"


def bursts(rows: pl.DataFrame) -> Iterator[Claim]:
    """B-F6.6."""
    rows = rows.filter(pl.col("tasks") > 0)
    switches = {name: means(of(rows, name), "switches") for name in SCHEDULERS}
    lengths = {name: means(of(rows, name), "burst_mean") for name in SCHEDULERS}
    spread = {name: means(of(rows, name), "burst_sd") for name in ("LST", "deltaL")}
    tasks = switches["LST"]["tasks"].to_numpy()
    more = switches["LST"]["switches"].to_numpy() / switches["deltaL"]["switches"].to_numpy() - 1
    rises = {name: _trend(switches[name]["switches"]) > 0 for name in ("LST", "deltaL")}
    falls = _trend(switches["EDF"].filter(pl.col("tasks") > 4)["switches"]) < 0
    note = (
        f"LST has {number(100 * more[-1])} % more at {tasks[-1]} tasks; LST and deltaL rise: "
        f"{yes(rises['LST'])}, {yes(rises['deltaL'])}; EDF falls: {yes(falls)}"
    )
    shape = all(rises.values()) and falls
    apart = {f"{100 * share:g} % apart": _parting(tasks, more, share) for share in APART}
    yield CLAIMS.over("B-F6.6 switches", {name: Found(at, note, shape) for name, at in apart.items()})
    even = lengths["LST"]["burst_mean"].to_numpy() / lengths["deltaL"]["burst_mean"].to_numpy()
    grows = _trend(lengths["EDF"].filter(pl.col("tasks") >= 4)["burst_mean"]) > 0
    shrink = all(_trend(lengths[name]["burst_mean"]) < 0 for name in ("LST", "deltaL"))
    note = (
        f"{number(even.min())} to {number(even.max())} over loads; LST and deltaL shrink: {yes(shrink)}; "
        f"EDF grows: {yes(grows)}"
    )
    yield CLAIMS.judged("B-F6.6 mean", float(even.mean()), note, shape=grows and shrink)
    late = spread["LST"]["tasks"].to_numpy() >= CLAIMS.register["B-F6.6 switches"].paper
    wider = spread["deltaL"]["burst_sd"].to_numpy()[late] / spread["LST"]["burst_sd"].to_numpy()[late]
    note = f"{number(wider.min())} to {number(wider.max())}" if len(wider) else ""
    yield CLAIMS.judged("B-F6.6 deviation", float(wider.mean()) if len(wider) else None, note)


def _parting(tasks: np.ndarray, more: np.ndarray, share: float) -> float | None:
    """The tasks from which on the excess is above a share; None if it never stays so."""
    return next((float(tasks[at]) for at in range(len(tasks)) if (more[at:] > share).all()), None)


def _trend(values: pl.Series) -> float:
    """Rank correlation with the order: above 0 of what rises on the whole."""
    x = values.to_numpy()
    if len(x) < 2 or np.ptp(x) == 0:
        return 0.0
    return float(np.corrcoef(np.arange(len(x)), x.argsort().argsort())[0, 1])


def random(rows: pl.DataFrame, sequential: pl.DataFrame) -> Iterator[Claim]:
    """B-F6.7, B-F6.8."""
    disks = shown_disks(rows)
    lst, delta = of(rows, "LST"), of(rows, "deltaL")
    for name, loads in (("medium", RANDOM_MEDIUM), ("high", RANDOM_HIGH)):
        both = between(lst, *loads), between(delta, *loads)
        found = ratio(*both, disks)
        note = f"{loads[0]:g} to {loads[1]:g} MB/s"
        shape = None
        if name == "medium":
            worse = [at for at in disks if (one := ratio(*both, [at])) and one.estimate >= 1]
            note += f"; LST is not better on disks {_list(worse)}"
            shape = not worse and _settled(found, below=1.0)
        yield CLAIMS.judged(f"B-F6.7 {name}", found, note, shape=shape)
    for scheduler in SCHEDULERS:
        found = ratio(of(rows, scheduler), of(sequential, scheduler), [0])
        every = ratio(of(rows, scheduler), of(sequential, scheduler), disks)
        note = f"over common loads; all disks {text(every) if every else 'none'}"
        yield CLAIMS.judged(f"B-F6.8 {scheduler.lower()}", found, note, shape=_settled(found, above=1.0))


def over_predicted(rows: pl.DataFrame) -> Iterator[Claim]:
    """B-F6.9."""
    for name in ("LST", "deltaL"):
        loads = sorted({x for x in rows["mb_s"] if x > 0})
        top = loads[len(loads) // 2 :]
        filled = between(of(rows, name, "spare=fill"), top[0])
        plain = between(of(rows, name), top[0])
        found = ratio(filled, plain, [0])
        every = ratio(filled, plain, shown_disks(rows))
        note = f"from {number(top[0])} MB/s on; all disks {text(every) if every else 'none'}"
        missed = "it cannot be told from none"
        yield CLAIMS.judged(
            f"B-F6.9 {name.lower()}", found, note, shape=_settled(found, below=1.0), missed=missed
        )


def optimized(rows: pl.DataFrame, large: pl.DataFrame, sequential: pl.DataFrame) -> Iterator[Claim]:
    """B-F6.10, B-F6.11."""
    disks = shown_disks(rows)
    apart = {}
    for name, part in (("here", rows), ("rotation", sequential)):
        end = float(part["mb_s"].max())
        found = ratio(between(of(part, "LST"), end), between(of(part, "deltaL"), end), disks)
        apart[name] = found
    if all(apart.values()):
        share = abs(np.log(apart["here"].estimate)) / max(abs(np.log(apart["rotation"].estimate)), 1e-9)
        note = f"LST by deltaL {text(apart['here'])}, with the rotating layout {text(apart['rotation'])}"
    else:
        share, note = None, "a load is missing"
    yield CLAIMS.judged("B-F6.10 closer", share, note)
    common = max({round(x, 6) for x in rows["mb_s"]} & {round(x, 6) for x in large["mb_s"]})
    lower = ratio(
        between(of(large, "deltaL"), common, common), between(of(rows, "deltaL"), common, common), disks
    )
    whole = ratio(of(large, "deltaL"), of(rows, "deltaL"), disks)
    note = f"at {number(common)} MB/s; over all common loads {text(whole) if whole else 'none'}"
    yield CLAIMS.judged("B-F6.11 lower", lower, note, shape=_settled(lower, below=1.0))
    top = sorted({x for x in large["mb_s"]})[-2]
    end_lst, end_delta = between(of(large, "LST"), top), between(of(large, "deltaL"), top)
    each = {at: one for at in disks if (one := ratio(end_lst, end_delta, [at]))}
    least = min(each, key=lambda at: each[at].estimate, default=None)
    words = ", ".join(f"{at}: {number(one.estimate)}" for at, one in each.items())
    note = f"from {number(top)} MB/s on; by disk {words}"
    yield CLAIMS.judged("B-F6.11 extreme", None if least is None else each[least], note)


def slice_of_the_day(rows: pl.DataFrame) -> Iterator[Claim]:
    """B-F7.1 and B-F7.2: the simulated half of each, on the disks that it shows."""
    end = float(rows["mb_s"].max())
    edf, lst, delta = (between(of(rows, name), end) for name in SCHEDULERS)
    shown = shown_disks(rows)
    for figure, disks in SLICE_FIGURES.items():
        there = [disk for disk in disks if disk in shown]
        high, beside = (ratio(lst, delta, there), ratio(delta, edf, there)) if there else (None, None)
        holds = _settled(high, above=1.0) and beside is not None and beside.estimate <= 1.05
        note = (
            f"at {number(end)} MB/s, disks {_list(there)}; "
            f"deltaL by EDF {text(beside) if beside else 'none'}; "
            "the measured half needs the thesis's machine"
        )
        missed = "" if holds else "of the orderings that both halves of the figure show, not all hold"
        yield CLAIMS.judged(figure, high, note, shape=holds, missed=missed)


def latency_table(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean latencies in ms over disks (geometric) by load and scheduler, intervals over repetitions."""
    disks = shown_disks(rows)
    found = []
    for (load,), part in rows.sort("mb_s").group_by("mb_s", maintain_order=True):
        line: dict[str, str] = {"MB/s": number(load), "pairs": str(part["tasks"][0] // 2)}
        for (scheduler, setting), own in part.sort("scheduler", "setting").group_by(
            "scheduler", "setting", maintain_order=True
        ):
            values = [
                float(np.exp(np.mean(np.log([row[disk(at)] for at in disks]))))
                for row in own.iter_rows(named=True)
            ]
            line[f"{scheduler} {setting}".strip()] = text(mean_interval(values))
        found.append(line)
    return pl.DataFrame(found)


def _list(disks: list[int]) -> str:
    return ", ".join(map(str, disks)) or "none"
