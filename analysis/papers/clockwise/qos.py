"""Contracts of best effort: Figs. 6.12 to 6.14, results and claims."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from papers.clockwise import CLAIMS
from papers.clockwise.admission import Admit
from papers.clockwise.disk_claims import yes
from papers.clockwise.results import DISKS, THESIS, disk, shown_disks
from papers.clockwise.streams import LAYOUTS, Task, in_turn
from weir.claims import Claim, Found, over_seeds
from weir.documents import read_document
from weir.labels import number
from weir.load import RUN_AGAIN, Run, Study
from weir.register import BAND
from weir.statistics import Interval, ratio_interval

#: The CELLO disk that has a contract.
CLASS = "cello5"
#: Length of the busy period that is shown, in minutes.
PERIOD_MIN = 50
#: Minutes of high load: this share of the day's, those in which all CELLO disks together ask most, for
#: together they use up the slack.
BUSIEST = 0.01
#: Of schedulers by which a slot is used up by what is served before its release.
SPEND = "early=spend"
SETTINGS = {"qos-0": "0 %", "qos-10": "10 %", "qos-20": "20 %"}


@dataclass(frozen=True)
class Minutes:
    """Disk 5 by minute of the measured interval, of one run.

    Attributes:
        requests: asked.
        all_requests: asked of all CELLO disks.
        mean_ms: mean latency of the answered ones; nan without any.
        max_ms: longest.
        from_min: when the interval begins.
    """

    requests: np.ndarray
    all_requests: np.ndarray
    mean_ms: np.ndarray
    max_ms: np.ndarray
    from_min: float

    @classmethod
    def of(cls, run: Run) -> "Minutes":
        """From a run's series."""
        series = read_document(run.path / "series.json", RUN_AGAIN)
        own = series["classes"][CLASS]
        per = round(60 / series["bin_s"])
        count = len(own["requests"]) // per * per

        def column(name: str, of: dict[str, list[float | None]] = own) -> np.ndarray:
            values = [np.nan if v is None else float(v) for v in of[name][:count]]
            return np.array(values).reshape(-1, per)

        requests = column("requests")
        every = sum(
            column("requests", of) for name, of in series["classes"].items() if name.startswith("cello")
        )
        answered = requests - column("unfinished")
        means, longest = column("response_mean_ms"), column("response_max_ms")
        total = answered.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.nansum(means * answered, axis=1) / total
        top = np.where(total > 0, np.nan_to_num(longest, nan=0.0).max(axis=1), np.nan)
        return cls(requests.sum(axis=1), every.sum(axis=1), mean, top, series["from_s"] / 60)

    def period(self) -> slice:
        """The busiest time of the period's length."""
        first = int(np.convolve(self.all_requests, np.ones(PERIOD_MIN), "valid").argmax())
        return slice(first, first + PERIOD_MIN)

    def busy(self) -> np.ndarray:
        """The day's minutes of high load in which the disk is asked for anything, by place."""
        order = np.argsort(-self.all_requests, kind="stable")
        busiest = order[: max(1, int(BUSIEST * len(order)))]
        return np.sort(busiest[self.requests[busiest] > 0])

    def calm(self) -> np.ndarray:
        """The minutes of the period that are none of these."""
        period = self.period()
        return np.setdiff1d(np.arange(period.start, period.stop), self.busy())


@dataclass(frozen=True)
class Contracts:
    """Fig. 6.13's runs: by setting, then by repetition; `server` is how slots are given out."""

    minutes: dict[str, list[Minutes]]

    @classmethod
    def load(cls, study: Study, *, container: bool) -> "Contracts":
        """Those in which slots are given out by containers, or those in which they are not."""
        found: dict[str, list[Minutes]] = {name: [] for name in SETTINGS}
        for run in sorted(study.valid_runs, key=lambda run: run.repetition):
            if (THESIS in str(run.levels.get("scheduler", ""))) == container:
                found[str(run.levels["variant"])].append(Minutes.of(run))
        return cls(found)

    def at_s(self, setting: str, *, busy: bool) -> list[float]:
        """Mean latency of requests in minutes of high load, or in the period's others, in s."""
        found = []
        for own, plain in zip(self.minutes[setting], self.minutes["qos-0"], strict=True):
            at = plain.busy() if busy else plain.calm()
            weights = own.requests[at]
            found.append(float(np.nansum(own.mean_ms[at] * weights) / weights.sum() / 1e3))
        return found


def delta_l(admit: Admit) -> Iterator[Claim]:
    """B-F6.13: deltaL of 24 pairs and a server, by the thesis's definition."""
    pairs = LAYOUTS["rotation"].tasks(in_turn(24))
    for name, cost_ms in (("0", 0), ("10", 100), ("20", 200)):
        tasks = [*pairs, *([Task("server", cost_ms, 3000.0)] if cost_ms else [])]
        found, exact = admit(tasks, "thesis"), admit(tasks, "exact")
        note = f"utilisation {found.utilisation:.3f}; over all intervals {number(exact.delta_l_ms)} ms"
        yield CLAIMS.judged(f"B-F6.13 {name}", found.delta_l_ms, note)


def contracts(found: Contracts, sporadic: Contracts) -> Iterator[Claim]:
    """B-F6.12, B-F6.13.

    Args:
        found: runs in which slots are given out by containers, as in the thesis.
        sporadic: the same with a replenishment for each request, the scheduler's own way.
    """
    plain = found.minutes["qos-0"]
    rates = []
    for run in plain:
        own = run.requests[run.period()]
        rates.append(float(own[own > run.requests.mean()].mean() / 60))
    peak = max(float(run.requests.max()) for run in plain) / 60
    start = plain[0].from_min + plain[0].period().start
    note = f"from minute {start:.0f} on for {PERIOD_MIN}; the day's busiest minute {number(peak)} I/Os/s"
    missed = "the stand-in has the day's total and its busiest minute, not the hour that the thesis chose"
    yield CLAIMS.judged("B-F6.12", over_seeds(rates), note, missed=missed)
    ways = {"containers": found} | ({"replenishment": sporadic} if sporadic.minutes["qos-10"] else {})
    yield CLAIMS.over("B-F6.13 mean", {name: _mean(way) for name, way in ways.items()})
    yield CLAIMS.over("B-F6.13 more", {name: _more(way) for name, way in ways.items()})
    yield CLAIMS.over("B-F6.13 anomaly", {name: _anomaly(way) for name, way in ways.items()})


def _mean(found: Contracts) -> Found:
    busy = {key: found.at_s(key, busy=True) for key in SETTINGS}
    better = all(a > b for a, b in zip(busy["qos-0"], busy["qos-10"], strict=True))
    note = f"{_settings(busy)}; less than without in every run: {yes(better)}"
    return Found(over_seeds(busy["qos-10"]), note, better)


def _more(found: Contracts) -> Found:
    busy = {key: found.at_s(key, busy=True) for key in SETTINGS}
    more = [a / b for a, b in zip(busy["qos-20"], busy["qos-10"], strict=True)]
    return Found(over_seeds(more), _settings(busy))


def _anomaly(found: Contracts) -> Found:
    calm = {key: found.at_s(key, busy=False) for key in SETTINGS}
    ratio = [a / b for a, b in zip(calm["qos-10"], calm["qos-0"], strict=True)]
    ordered = float(np.mean(calm["qos-20"])) > float(np.mean(calm["qos-10"]))
    note = f"{_settings(calm)}; 20 % is worse than 10 %: {yes(ordered)}"
    missed = "requests of a contract go first in slack here, so that it does no harm when there is slack"
    return Found(over_seeds(ratio), note, ordered, missed=missed)


def _settings(found: dict[str, list[float]]) -> str:
    return ", ".join(f"{SETTINGS[key]} {number(np.mean(values))} s" for key, values in found.items())


def over_allocation(study: Study, *, spend: bool) -> pl.DataFrame:
    """Fig. 6.14: `kind` (rt, bef), `factor`, `repetition` and mean latency in ms by CELLO disk.

    Args:
        study: the runs.
        spend: those in which what is served early uses its slot up, as section 6.3.2 reads, or the others.
    """
    rows = []
    for run in study.valid_runs:
        if (SPEND in str(run.levels.get("scheduler", ""))) != spend:
            continue
        kind, factor = re.fullmatch(r"(rt|bef)-(\d+)", str(run.levels["variant"])).groups()
        classes = read_document(run.path / "summary.json", RUN_AGAIN)["classes"]
        row: dict[str, object] = {"kind": kind, "factor": int(factor), "repetition": run.repetition}
        for at in DISKS:
            value = classes[disk(at)]["response_mean_ms"] if disk(at) in classes else None
            row[disk(at)] = np.inf if isinstance(value, str) else value
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None).sort("kind", "factor", "repetition")


def crosstalk(rows: pl.DataFrame, kept: pl.DataFrame) -> Iterator[Claim]:
    """B-F6.14.

    Args:
        rows: what is served early uses its slot up.
        kept: it leaves its slot to the next.
    """
    ways = {"slots used up (6.3.2)": rows} | ({} if kept.is_empty() else {"slots left to the next": kept})
    yield CLAIMS.over("B-F6.14 plateau", {name: _plateau(way) for name, way in ways.items()})
    yield CLAIMS.over("B-F6.14 unscheduled", {name: _unscheduled(way) for name, way in ways.items()})
    yield CLAIMS.over("B-F6.14 little", {name: _little(way) for name, way in ways.items()})


def _factors(rows: pl.DataFrame) -> list[int]:
    return sorted(rows["factor"].unique())


def _plateau(rows: pl.DataFrame) -> Found:
    first, *_, before, top = _factors(rows)
    least, earlier, end = (_latencies(rows, "rt", factor) for factor in (first, before, top))
    steady = abs(float(end.mean() / earlier.mean()) - 1) <= BAND
    rises = bool(end.mean() > least.mean())
    low, high = CLAIMS.register["B-F6.14 plateau"].bounds or (0.0, np.inf)
    by_disk = end.mean(axis=0)
    inside = bool(((by_disk >= low * (1 - BAND)) & (by_disk <= high * (1 + BAND))).all())
    note = (
        f"by disk {', '.join(number(v) for v in by_disk)} ms, all near the range: {yes(inside)}; "
        f"means at factors of {first} and {before}: {number(least.mean())} and {number(earlier.mean())} ms; "
        f"within {BAND:.0%} at the last two: {yes(steady)}"
    )
    missed = "a request waits for a block of 1 MB that was begun, some 60 ms on a disk that is full"
    return Found(over_seeds(end.mean(axis=1)), note, steady and rises and inside, missed=missed)


def _unscheduled(rows: pl.DataFrame) -> Found:
    factors = _factors(rows)
    loose = {factor: _latencies(rows, "bef", factor) for factor in factors}
    # With some factors requests are never answered.
    answered = [factor for factor, values in loose.items() if np.isfinite(values).all()]
    words = ", ".join(f"{factor}: {number(float(values.mean()))}" for factor, values in loose.items())
    if not answered:
        return Found(None, f"requests are left unanswered at all factors: {words} ms")
    last = answered[-1]
    note = f"at a factor of {last}, the last at which all are answered; unscheduled by factor {words} ms"
    rises = bool(loose[last].mean() > loose[factors[0]].mean())
    return Found(_by_scheduled(rows, last), note, rises)


def _little(rows: pl.DataFrame) -> Found:
    first = _factors(rows)[0]
    if not np.isfinite(_latencies(rows, "bef", first)).all():
        return Found(None, "requests are left unanswered")
    return Found(_by_scheduled(rows, first), "geometric means over disks")


def _by_scheduled(rows: pl.DataFrame, factor: int) -> Interval:
    """Geometric mean over disks of latencies without a contract, by that with one."""
    each = [np.exp(np.log(_latencies(rows, kind, factor)).mean(axis=1)) for kind in ("bef", "rt")]
    return ratio_interval(*each)


def _latencies(rows: pl.DataFrame, kind: str, factor: int) -> np.ndarray:
    """Mean latencies in ms by repetition and CELLO disk."""
    part = rows.filter((pl.col("kind") == kind) & (pl.col("factor") == factor)).sort("repetition")
    return part.select(disk(d) for d in shown_disks(rows)).to_numpy().astype(float)
