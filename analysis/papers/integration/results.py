"""Where an integrated server is better than a partitioned one: criterion, map and region, by scheduler.

The criteria precede the full runs. A point of the map is a mix of text and video clients. Text is
not slower where the mean response time on the partitioned server, divided by that on the integrated one, is
at least 1. Video is not later where the integrated server violates at most `EQUAL_PCT` percentage points more
of the deadlines. Both servers have the same requests in a repetition, so each repetition gives one paired
difference. A criterion is decided at a point if the paired t test over repetitions
(`weir.multiplicity.judge`) has a p-value of at most `LEVEL` after Benjamini and Hochberg's correction over
the points of the map. Integration is better at a point where each class that has clients meets its criterion,
and worse where one fails it. The paper's conclusion holds where integration is better in at least `HOLDS_PCT`
per cent of the map, the limit of claims S-F7 of `papers.shenoy`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from papers.shenoy.results import (
    EQUAL_PCT,
    FULL_PCT,
    SERVERS,
    Surface,
    crossing,
    text_table,
    video_table,
)
from weir.claims import text as with_interval
from weir.labels import number, scheduler_label
from weir.load import Study
from weir.multiplicity import ALLOWANCE, Paired, false_discovery, judge
from weir.statistics import Interval, mean_interval

#: The share of wrong decisions among all decided points of a map, on average.
LEVEL = 0.05
#: The part of the map in which integration must be better, in %: the paper's "large operating region" (S-F7).
HOLDS_PCT = 75
#: T is where the mean response time of text is this many times that of an idle device (the paper's 100 ms).
IDLE_TIMES = 6
#: The load at which a device counts as idle, as a share of the load of the limits.
IDLE_LOAD = 0.05
#: The devices, in the order of figures: the names of the studies without their prefix. The first, the paper's
#: disk, is the control.
DEVICES = ("seagate-elite3", "hdd-7200", "ssd-sata", "ssd-nvme")
#: What one part of a comparison is called, in the order of figures.
BOTH, OF_TEXT, OF_VIDEO = "both", "text", "video"
#: What a criterion, and integration as a whole, can be at a point.
BETTER, UNDECIDED, WORSE, ABSENT = 1, 0, -1, 2


@dataclass(frozen=True)
class Region:
    """Both metrics of both servers over the mixes that the partitioned one bears.

    Attributes:
        response: mean response time of text in ms, by server; infinite where requests were left unanswered.
        violated: violated deadlines of video in per cent, by server.
    """

    response: dict[str, Surface]
    violated: dict[str, Surface]

    @classmethod
    def of(cls, text: pl.DataFrame, video: pl.DataFrame, scheduler: str) -> "Region":
        """Of the tables of a study whose factors are architecture, scheduler and numbers of clients.

        Args:
            text: as `papers.shenoy.results.text_table` gives it.
            video: as `papers.shenoy.results.video_table` gives it.
            scheduler: the integrated server's; a partitioned server has its classes' own schedulers.
        """
        chosen = (pl.col("architecture") == SERVERS[0]) | (pl.col("scheduler") == scheduler)
        of_text, of_video = text.filter(chosen), video.filter(chosen)
        return cls(
            {server: Surface.of(of_text, server, "response_ms") for server in SERVERS},
            {server: Surface.of(of_video, server, "violated_pct") for server in SERVERS},
        )

    @cached_property
    def text(self) -> Surface:
        """Logarithm of the ratio of responses, partitioned / integrated; above 0 integration is faster.

        Infinite where one server left requests unanswered; NaN where both did, or where a run is missing.
        """
        apart, shared = (self.response[server].without_text_zero() for server in SERVERS)
        with np.errstate(invalid="ignore", divide="ignore"):
            return Surface(apart.text, apart.video, np.log(apart.values) - np.log(shared.values))

    @cached_property
    def video(self) -> Surface:
        """Percentage points of violated deadlines, integrated - partitioned; above 0 integration is later."""
        apart, shared = (self.violated[server].without_video_zero() for server in SERVERS)
        return Surface(apart.text, apart.video, shared.values - apart.values)

    @cached_property
    def faster(self) -> np.ndarray:
        """The criterion of text by numbers of text and video clients: `BETTER`, `UNDECIDED` or `WORSE`."""
        return decided(self.text.values)

    @cached_property
    def on_time(self) -> np.ndarray:
        """The criterion of video, as `faster`."""
        return decided(EQUAL_PCT - self.video.values)

    @cached_property
    def points(self) -> np.ndarray:
        """Integration as a whole by numbers of text and video clients, the row and column of 0 included.

        `BETTER` where each class that has clients meets its criterion, `WORSE` where one fails it,
        `UNDECIDED` elsewhere; `ABSENT` where there are no clients.
        """
        both = [np.full((len(self.text.text) + 1, len(self.video.video) + 1), ABSENT) for _ in range(2)]
        both[0][1:, :], both[1][:, 1:] = self.faster, self.on_time
        # ABSENT is above BETTER: the worse of the two is the smaller number.
        return np.minimum(*both)

    @cached_property
    def estimates(self) -> dict[str, np.ndarray]:
        """Whether means over repetitions meet the criteria, decided or not: of `both`, `text`, `video`."""
        text, video = _mean(self.text.values) >= 0, _mean(self.video.values) <= EQUAL_PCT
        meets = np.ones(self.points.shape, dtype=bool)
        meets[1:, :] &= text
        meets[:, 1:] &= video
        return {BOTH: meets[self.points != ABSENT], OF_TEXT: text, OF_VIDEO: video}

    @cached_property
    def decisions(self) -> dict[str, np.ndarray]:
        """The decisions at the points that have clients: of `both`, `text`, `video`."""
        return {BOTH: self.points[self.points != ABSENT], OF_TEXT: self.faster, OF_VIDEO: self.on_time}

    def part(self, value: int, of: str = BOTH) -> float:
        """The part of the map with this decision, in per cent."""
        return 100 * float((self.decisions[of] == value).mean())

    def share(self, of: str = BOTH) -> Interval:
        """The part of the map in which integration is better, in per cent.

        The estimate counts means over repetitions. The interval reaches from the part that is decided better
        to the part that is not decided worse.

        Args:
            of: `both`, `text` (not slower) or `video` (not later).
        """
        estimate = 100 * float(self.estimates[of].mean())
        # Of floating point: decided points are exact counts.
        low = min(self.part(BETTER, of), estimate)
        high = max(100 - self.part(WORSE, of), estimate)
        return Interval(estimate, low, high, len(self.text.values), "decided points")

    def ratio(self) -> Interval:
        """Geometric mean over the map of the ratio of text responses, with its interval over repetitions.

        Points at which a run left requests unanswered have no ratio and are left out.
        """
        values = self.text.values
        finite = np.isfinite(values).all(axis=0)
        return mean_interval(np.exp(values[:, finite].mean(axis=1)), "log-t")

    def unanswered(self) -> int:
        """Points of the map at which the integrated server left requests of text unanswered."""
        return int(np.isneginf(self.text.values).any(axis=0).sum())


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean over repetitions; NaN, without a warning, where infinite values have both signs."""
    with np.errstate(invalid="ignore"):
        return np.asarray(values.mean(axis=0))


def decided(gains: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Where a gain is decided to be above or below 0, as one family with its false-discovery rate.

    An infinite gain is that of a server that left requests unanswered: one in any repetition decides, unless
    another repetition has the opposite one. Gains that are equal in all repetitions, as where neither server
    violates a deadline, have no variance and are decided by their value.

    Args:
        gains: by repetition (rows), text and video; NaN where a run is missing.
        level: share of wrong decisions among all decisions.

    Returns:
        `BETTER`, `WORSE` or `UNDECIDED`, by text and video.
    """
    found = np.full(gains.shape[1:], UNDECIDED)
    places, family = [], []
    for place in np.ndindex(found.shape):
        values = gains[(slice(None), *place)]
        if np.isnan(values).any():
            continue
        if np.isinf(values).any():
            signs = set(np.sign(values[np.isinf(values)]))
            found[place] = int(signs.pop()) if len(signs) == 1 else UNDECIDED
        elif np.ptp(values) == 0:
            found[place] = int(np.sign(values[0])) or BETTER
        else:
            places.append(place)
            family.append(Paired(dict(enumerate(values.tolist())), place))
    judged = judge(family) if family else []
    p = np.minimum(false_discovery([one.p for one in judged]) / ALLOWANCE, 1)
    for place, one, adjusted in zip(places, judged, p, strict=True):
        if adjusted <= level:
            found[place] = BETTER if one.estimate > 0 else WORSE
    return found


def regions(studies: dict[str, Study]) -> dict[tuple[str, str], Region]:
    """The region of each device and scheduler, in the order of figures.

    Args:
        studies: by device; those of other names are left out.
    """
    found = {}
    for device in DEVICES:
        if device in studies:
            text, video = text_table(studies[device]), video_table(studies[device])
            for scheduler in studies[device].factors["scheduler"]:
                found[device, scheduler_name(str(scheduler))] = Region.of(text, video, str(scheduler))
    return found


def scheduler_name(level: str) -> str:
    """What figures call a scheduler: `fcfs` in virtual time is the kernel's `none`."""
    name = level.split()[0]
    return "none" if name == "fcfs" else scheduler_label(name)


def holds(region: Region) -> str:
    """Whether the paper's conclusion holds in a region: `holds`, `fails` or `undecided`."""
    share = region.share()
    if share.low >= HOLDS_PCT:
        return "holds"
    return "fails" if share.high < HOLDS_PCT else "undecided"


def answer(found: dict[tuple[str, str], Region]) -> str:
    """The answer in words, a sentence for each device."""
    said = []
    for device in dict.fromkeys(device for device, _ in found):
        parts = []
        for status, verb in (("holds", "holds"), ("undecided", "is undecided"), ("fails", "fails")):
            names = [
                f"{scheduler} ({_range(region.part(BETTER), 100 - region.part(WORSE))} % of the map)"
                for (there, scheduler), region in found.items()
                if there == device and holds(region) == status
            ]
            if names:
                parts.append(f"{verb} under {_listed(names)}")
        said.append(f"{device}: that integration is better {'; '.join(parts)}.")
    return "\n".join(said)


def _range(low: float, high: float) -> str:
    """Two ends as one number where they are equal."""
    ends = [f"{end:.0f}" for end in (low, high)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def summary(found: dict[tuple[str, str], Region]) -> pl.DataFrame:
    """A row per device and scheduler: parts of the map, text and video in it, the ratio with its interval."""
    rows = []
    for (device, scheduler), region in found.items():
        rows.append(
            {
                "device": device,
                "together": scheduler,
                "conclusion": holds(region),
                "mixes": region.decisions[BOTH].size,
                "better (%)": number(region.part(BETTER)),
                "undecided (%)": number(region.part(UNDECIDED)),
                "worse (%)": number(region.part(WORSE)),
                "text slower (%)": number(region.part(WORSE, OF_TEXT)),
                "video later (%)": number(region.part(WORSE, OF_VIDEO)),
                "text, partitioned / integrated": with_interval(region.ratio()),
                "video later at most (points)": number(max(float(np.nanmax(region.video.mean)), 0)),
                "text unanswered (mixes)": region.unanswered(),
            }
        )
    return pl.DataFrame(rows)


def limits(study: Study) -> pl.DataFrame:
    """T, V and the root of HDS of each device, from the calibration.

    T and V are means over repetitions of the places where the lines between the loads reach the limits.

    Args:
        study: partitioned servers only; its factors are `variant`, the device and the class at its limit, and
            `load`.

    Returns:
        `device`, `idle_ms` (mean response time of text), `text_per_s` (T in requests per second),
        `video_clients` (V), `root_kb_s` (mean of the throughput of a text device at T and of a video
        device at V, in 1024 bytes per second).
    """
    text = _with_throughput(text_table(study), study, "text")
    video = _with_throughput(video_table(study), study, "video")
    rows = []
    for device in DEVICES:
        found: list[dict[str, float]] = []
        for repetition in text["repetition"].unique().sort():
            ms, pct = (
                table.filter(
                    (pl.col("variant") == f"{device}-{name}") & (pl.col("repetition") == repetition)
                ).sort("load")
                for name, table in (("text", text), ("video", video))
            )
            idle = float(ms.filter(pl.col("load") == IDLE_LOAD)["answered_ms"][0])
            of_text = _at_limit(ms, "answered_ms", IDLE_TIMES * idle)
            of_video = _at_limit(pct, "violated_pct", FULL_PCT)
            root = (of_text["device_kb_s"] + of_video["device_kb_s"]) / 2
            found.append(
                {
                    "idle_ms": idle,
                    "text_per_s": of_text["requests_per_s"],
                    "video_clients": of_video["class_clients"],
                    "root_kb_s": root,
                }
            )
        rows.append({"device": device} | pl.DataFrame(found).mean().row(0, named=True))
    return pl.DataFrame(rows)


def _with_throughput(table: pl.DataFrame, study: Study, name: str) -> pl.DataFrame:
    """A table of one class with the mean KB/s of its devices and the number of its clients."""
    rows = []
    for run in study.valid_runs:
        observed = run.observed["simulator"]
        # Text has the first half of a partitioned server's devices, video the other.
        half = len(observed["heads"]) // 2
        heads = observed["heads"][:half] if name == "text" else observed["heads"][half:]
        moved_bytes = sum(head["bytes"] for head in heads)
        rows.append(
            {
                "run": run.id,
                "device_kb_s": moved_bytes / half / 1024 / observed["simulated_s"],
                "class_clients": float(next(one.clients for one in run.classes if one.name == name)),
            }
        )
    return table.join(pl.DataFrame(rows), on="run")


def _at_limit(rows: pl.DataFrame, metric: str, limit: float) -> dict[str, float]:
    """What a server does at the load at which a metric reaches its limit, by linear interpolation."""
    load = rows["load"].to_numpy()
    full = crossing(load, rows[metric].to_numpy(), limit)
    names = ("requests_per_s", "class_clients", "device_kb_s")
    return {name: float(np.interp(full, load, rows[name].to_numpy())) for name in names}
