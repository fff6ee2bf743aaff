"""Contracts of best effort: Figs. 6.12 to 6.14, results and verdicts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from weir.clockwise.bands import BANDS
from weir.clockwise.disk_verdicts import yes
from weir.clockwise.results import DISKS, disk, shown_disks
from weir.documents import read_document
from weir.labels import number
from weir.load import RUN_AGAIN, Run, Study
from weir.traces.claims import Claim, over_seeds

#: The CELLO disk that has a contract.
CLASS = "cello5"
#: Length of the busy period that is shown, in minutes; the thesis shows about half an hour.
PERIOD_MIN = 50
#: Minutes of high load: this share of the period's.
BUSIEST = 0.2
SETTINGS = {"qos-0": "0 %", "qos-10": "10 %", "qos-20": "20 %"}


@dataclass(frozen=True)
class Minutes:
    """Disk 5 by minute of the measured interval, of one run.

    Attributes:
        requests: asked.
        mean_ms: mean latency of the answered ones; nan without any.
        max_ms: longest.
        slack_ms: deltaL of the disks, the least.
        from_min: when the interval begins.
    """

    requests: np.ndarray
    mean_ms: np.ndarray
    max_ms: np.ndarray
    slack_ms: float | None
    from_min: float

    @classmethod
    def of(cls, run: Run) -> "Minutes":
        """From a run's series."""
        series = read_document(run.path / "series.json", RUN_AGAIN)
        heads = read_document(run.path / "summary.json", RUN_AGAIN)["heads"]
        own = series["classes"][CLASS]
        per = round(60 / series["bin_s"])
        count = len(own["requests"]) // per * per

        def column(name: str) -> np.ndarray:
            values = [np.nan if v is None else float(v) for v in own[name][:count]]
            return np.array(values).reshape(-1, per)

        requests = column("requests")
        answered = requests - column("unfinished")
        means, longest = column("response_mean_ms"), column("response_max_ms")
        total = answered.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.nansum(means * answered, axis=1) / total
        top = np.where(total > 0, np.nan_to_num(longest, nan=0.0).max(axis=1), np.nan)
        slacks = [head["slack_ms"] for head in heads if head.get("slack_ms") is not None]
        slack = min(slacks) if slacks else None
        return cls(requests.sum(axis=1), mean, top, slack, series["from_s"] / 60)

    def period(self) -> slice:
        """The busiest time of the period's length."""
        window = np.convolve(self.requests, np.ones(PERIOD_MIN), "valid")
        first = int(window.argmax())
        return slice(first, first + PERIOD_MIN)

    def busy(self) -> np.ndarray:
        """Its minutes of high load, by place."""
        period = self.period()
        order = np.argsort(-self.requests[period], kind="stable")
        return period.start + order[: max(1, int(BUSIEST * PERIOD_MIN))]


@dataclass(frozen=True)
class Contracts:
    """Fig. 6.13's runs: by setting, then by repetition; `server` is how slots are given out."""

    minutes: dict[str, list[Minutes]]

    @classmethod
    def load(cls, study: Study, scheduler: str = "deltal") -> "Contracts":
        """Those of a scheduler's settings."""
        found: dict[str, list[Minutes]] = {name: [] for name in SETTINGS}
        for run in sorted(study.valid_runs, key=lambda run: run.repetition):
            if run.levels.get("scheduler", "deltal") == scheduler:
                found[str(run.levels["variant"])].append(Minutes.of(run))
        return cls(found)

    def busy_s(self, setting: str) -> list[float]:
        """Mean latency in the minutes of high load, in s, by repetition: of requests, not of minutes."""
        found = []
        for own, plain in zip(self.minutes[setting], self.minutes["qos-0"], strict=True):
            at = plain.busy()
            weights = own.requests[at]
            found.append(float(np.nansum(own.mean_ms[at] * weights) / weights.sum() / 1e3))
        return found


def contracts(found: Contracts, container: Contracts) -> Iterator[Claim]:
    """B-F6.12, B-F6.13."""
    plain = found.minutes["qos-0"]
    rates = []
    for run in plain:
        own = run.requests[run.period()]
        rates.append(float(own[own > run.requests.mean()].mean() / 60))
    peak = max(float(run.requests[run.period()].max()) for run in plain) / 60
    start = plain[0].from_min + plain[0].period().start
    note = (
        f"from minute {start:.0f} on for {PERIOD_MIN}; busiest minute {number(peak)} I/Os/s; the day is "
        "synthetic"
    )
    yield BANDS.judged("B-F6.12", over_seeds(rates), note)
    for name, key in (("0", "qos-0"), ("10", "qos-10"), ("20", "qos-20")):
        slack = [run.slack_ms for run in found.minutes[key] if run.slack_ms is not None]
        yield BANDS.judged(f"B-F6.13 {name}", slack[0] if slack else None, "as the scheduler reckons it")
    busy = {key: found.busy_s(key) for key in SETTINGS}
    own_way = {key: container.busy_s(key) for key in SETTINGS} if container.minutes["qos-10"] else {}
    better = float(np.mean(busy["qos-0"])) > float(np.mean(busy["qos-10"]))
    words = ", ".join(f"{SETTINGS[key]} {number(np.mean(values))} s" for key, values in busy.items())
    as_thesis = ", ".join(f"{SETTINGS[key]} {number(np.mean(values))} s" for key, values in own_way.items())
    note = (
        f"{words}; slots by containers, as in the thesis: {as_thesis or 'not run'}; less than without: "
        f"{yes(better)}"
    )
    yield BANDS.judged("B-F6.13 mean", over_seeds(busy["qos-10"]), note, shape=better)
    more = [a / b for a, b in zip(busy["qos-20"], busy["qos-10"], strict=True)]
    yield BANDS.judged("B-F6.13 more", over_seeds(more), note)


def over_allocation(study: Study) -> pl.DataFrame:
    """Fig. 6.14: `kind` (rt, bef), `factor`, `repetition` and mean latency in ms by CELLO disk."""
    rows = []
    for run in study.valid_runs:
        kind, factor = re.fullmatch(r"(rt|bef)-(\d+)", str(run.levels["variant"])).groups()
        classes = read_document(run.path / "summary.json", RUN_AGAIN)["classes"]
        row: dict[str, object] = {"kind": kind, "factor": int(factor), "repetition": run.repetition}
        for at in DISKS:
            value = classes[disk(at)]["response_mean_ms"] if disk(at) in classes else None
            row[disk(at)] = np.inf if isinstance(value, str) else value
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None).sort("kind", "factor", "repetition")


def crosstalk(rows: pl.DataFrame) -> Iterator[Claim]:
    """B-F6.14."""
    disks = shown_disks(rows)
    top = int(rows["factor"].max())

    def at(kind: str, factor: int) -> np.ndarray:
        part = rows.filter((pl.col("kind") == kind) & (pl.col("factor") == factor)).sort("repetition")
        return part.select(disk(d) for d in disks).to_numpy().astype(float)

    factors = sorted(rows["factor"].unique())
    end = at("rt", top)
    middle = at("rt", factors[len(factors) // 2])
    steady = bool((np.abs(end.mean(axis=0) / middle.mean(axis=0) - 1) < 0.15).mean() > 0.5)
    first = at("rt", factors[0])
    note = (
        f"by disk {', '.join(number(v) for v in end.mean(axis=0))} ms; at a factor of 1 "
        f"{number(first.mean())}, of {factors[len(factors) // 2]} {number(middle.mean())}; steady from "
        f"there on: {yes(steady)}"
    )
    yield BANDS.judged("B-F6.14 plateau", over_seeds(end.mean(axis=1)), note, shape=steady)
    loose = at("bef", top)
    per_run = np.exp(np.mean(np.log(loose) - np.log(end), axis=1))
    rises = [float(at("bef", f).mean()) for f in factors]
    note = (
        "means over disks by factor "
        f"{', '.join(f'{f}: {number(v)} ms' for f, v in zip(factors, rises, strict=True))}"
    )
    if not np.isfinite(per_run).all():
        yield BANDS.judged("B-F6.14 unscheduled", None, f"requests were never answered; {note}", shape=True)
    else:
        yield BANDS.judged("B-F6.14 unscheduled", over_seeds(per_run), note, shape=rises[-1] > rises[0])
