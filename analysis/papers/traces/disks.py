"""The disks of CELLO and HPLAJW: Bosch Figs. 3.4-3.6, Tables 3.2-3.5."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
import polars as pl

from papers.traces import paper, series
from weir.binary_cache import NOT_AT_HAND, BinaryCache
from weir.claims import Claim, claim, is_met, over_seeds, text
from weir.errors import InputError
from weir.labels import number

#: A day for each day of the paper's trace; they are all of one kind, that of June 1st.
SEEDS = range(1, paper.TRACE_DAYS + 1)
DAY_S = 86_400
#: A week of a workstation of the same group, machine HPLAJW of the tables.
REAL = "disksim/ajw.1week.srt"

#: Maxima are single numbers of a table, so the band is narrower than that of a plot.
PEAK_BAND = 0.1
#: "Primarily busy from 8AM to 7PM": an even load would have 0.46 in these 11 of 24 hours.
WORK_SHARE = 0.6
#: "Substantial difference between the mean and maximum load".
ABOVE_MEAN = 2.0
#: Disks with enough load for a daily shape: June 1st has more than a request per minute on them.
BUSY = (0, 2, 5, 6)
#: Disks of each figure of minutes.
FIGURES = {"3.5": (0, 1, 2, 3), "3.6": (4, 5, 6, 7)}


def per_minute(requests: pl.LazyFrame) -> pl.LazyFrame:
    """Requests and reads of each disk (file) and minute that has any."""
    minute = (pl.col("intended_ns") // 60_000_000_000).alias("minute")
    reads = (pl.col("op").cast(pl.String) == "read").sum().alias("reads")
    return requests.group_by("file", minute).agg(pl.len().alias("requests"), reads)


@dataclass(frozen=True)
class Workstation:
    """The recorded week of HPLAJW.

    Attributes:
        minutes: requests by disk, day and minute of the day.
        duration_s: from the first request to the last.
        requests: of both disks.
        read_share: of the requests.
        disks: types of the disks, of the file's header.
        bus: kind of the bus, of the header.
    """

    minutes: np.ndarray
    duration_s: float
    requests: int
    read_share: float
    disks: tuple[str, ...]
    bus: str

    @property
    def io_per_s(self) -> float:
        """Requests per second and disk."""
        return self.requests / self.duration_s / len(self.disks)


@dataclass(frozen=True)
class Cello:
    """The synthetic server and the recorded workstation.

    Attributes:
        minutes: requests by disk, day (seed) and minute of the day.
        read_shares: by day.
        real: None if it is not at hand.
    """

    minutes: np.ndarray
    read_shares: list[float]
    real: Workstation | None

    @classmethod
    def load(cls, binary: BinaryCache) -> "Cello":
        """Makes the days, or reads them from the cache."""
        days = binary.each(lambda seed: binary.stream("cello-1992-06-01", seed, DAY_S, per_minute), SEEDS)
        minutes = np.zeros((len(paper.HOUR_PEAKS), len(days), 1440), dtype=np.int64)
        for day, found in enumerate(days):
            file, minute, requests = (found[name].to_numpy() for name in ("file", "minute", "requests"))
            minutes[file, day, minute] = requests
        return cls(
            minutes, [float(d["reads"].sum() / d["requests"].sum()) for d in days], _workstation(binary)
        )

    @cached_property
    def hours(self) -> np.ndarray:
        """Requests by disk, day and hour."""
        return series.by_hour(self.minutes)

    def maxima(self, of: str) -> np.ndarray:
        """Requests of the busiest hour or minute, by disk and day."""
        return (self.hours if of == "hour" else self.minutes).max(axis=2)

    def machines(self) -> pl.DataFrame:
        """Bosch, Table 3.2."""
        rows = []
        for machine in paper.MACHINES:
            real = ""
            if machine.name == "HPLAJW":
                real = NOT_AT_HAND if self.real is None else f"{', '.join(self.real.disks)}; {self.real.bus}"
            modelled = f"{len(self.minutes)} disks of one size" if machine.name == "CELLO" else "none"
            rows.append((machine.name, f"{', '.join(machine.disks)}; {machine.bus}", modelled, real))
        names = ("machine", "paper", "synthetic", "real: header of the week's trace")
        return pl.DataFrame(rows, schema=names, orient="row")

    def loads(self) -> pl.DataFrame:
        """Bosch, Table 3.3."""
        rows = []
        for machine in paper.MACHINES:
            ours = ("", "")
            if machine.name == "CELLO":
                ours = (number(self._io_per_s), text(over_seeds(self.read_shares)))
            real = ("", "")
            if machine.name == "HPLAJW":
                real = (NOT_AT_HAND,) * 2
                if self.real is not None:
                    real = (number(self.real.io_per_s), number(self.real.read_share))
            checked = machine.total_ios / len(machine.disks) / paper.TRACE_DAYS / DAY_S
            printed = (f"{machine.total_ios:,}", number(machine.io_per_s), number(checked))
            rows.append(
                (machine.name, *printed, ours[0], real[0], number(machine.read_share), ours[1], real[1])
            )
        names = (
            "machine", "paper: I/Os", "paper: I/O/s and disk", "total by disks and 63 days",
            "synthetic: June 1st", "real: one week", "paper: reads", "synthetic: reads", "real: reads",
        )  # fmt: skip
        return pl.DataFrame(rows, schema=names, orient="row")

    def peaks(self, of: str) -> pl.DataFrame:
        """Bosch, Table 3.4 (`of` "hour") or 3.5 ("minute"): the maximum, and a day's mean maximum."""
        rows = []
        found = self.maxima(of)
        for disk, peak in enumerate(_printed(of)):
            printed = (f"{peak.requests:,}", f"day {peak.day}, {peak.time}")
            rows.append((disk, *printed, f"{found[disk].max():,}", text(over_seeds(found[disk])), ""))
        rows += self._real_peaks(of)
        names = (
            "disk", f"paper: I/Os per {of}", "paper: when", f"synthetic: largest of {len(SEEDS)} days",
            "synthetic: mean over days", "real: HPLAJW, one week",
        )  # fmt: skip
        table = [(str(row[0]), *row[1:]) for row in rows]
        return pl.DataFrame(table, schema=names, orient="row")

    def claims(self) -> Iterator[Claim]:
        """B-T3.2 to B-T3.5, B-F3.4 to B-F3.6."""
        yield from self._machine_claims()
        yield from self._load_claims()
        for of, table in (("hour", "B-T3.4"), ("minute", "B-T3.5")):
            found = self.maxima(of)
            for disk, peak in enumerate(_printed(of)):
                yield self._peak_claim(f"{table} disk {disk}", of, peak, found[disk], disk)
        yield from self._hour_claims()
        for figure, disks in FIGURES.items():
            yield self._minute_claim(figure, disks)

    @property
    def _io_per_s(self) -> float:
        return float(self.minutes.sum() / self.minutes.shape[0] / self.minutes.shape[1] / DAY_S)

    def _real_peaks(self, of: str) -> list[tuple[str, ...]]:
        if self.real is None:
            return [("HPLAJW", "", "", "", "", NOT_AT_HAND)]
        values = self.real.minutes if of == "minute" else series.by_hour(self.real.minutes)
        return [
            (f"HPLAJW {disk}", "", "", "", "", f"{of_disk.max():,}") for disk, of_disk in enumerate(values)
        ]

    def _machine_claims(self) -> Iterator[Claim]:
        machine = next(m for m in paper.MACHINES if m.name == "HPLAJW")
        count = None
        if self.real is not None and (self.real.disks, self.real.bus) == (machine.disks, machine.bus):
            count = float(len(self.real.disks))
        words = "disks of HPLAJW" if self.real is None else f"disks of HPLAJW: {', '.join(self.real.disks)}"
        missed = NOT_AT_HAND if self.real is None else "the header names other disks"
        yield claim(
            "B-T3.2 HPLAJW", len(machine.disks), count, "disks",
            f"{words}, as the header of the recorded week has them", band=0, missed=missed,
        )  # fmt: skip
        for machine in paper.MACHINES[:2]:
            yield claim(
                f"B-T3.2 {machine.name}", len(machine.disks), None, "disks", "disks and buses",
                missed="they stand in the header of the real trace, which is not at hand",
            )  # fmt: skip

    def _load_claims(self) -> Iterator[Claim]:
        cello, _, station = paper.MACHINES
        yield claim(
            "B-T3.3 CELLO rate", cello.io_per_s, self._io_per_s, "I/O/s", "per disk",
            missed="the specification stands for June 1st (Table 6.5), a busier day than most",
        )  # fmt: skip
        yield claim(
            "B-T3.3 CELLO reads", cello.read_share, over_seeds(self.read_shares), "share",
            "of the requests; the specification is held to it",
        )  # fmt: skip
        missed = NOT_AT_HAND if self.real is None else "one week of nine is at hand"
        rate, reads = (None, None) if self.real is None else (self.real.io_per_s, self.real.read_share)
        note = "real: the recorded week"
        yield claim("B-T3.3 HPLAJW rate", station.io_per_s, rate, "I/O/s", f"{note}, per disk", missed=missed)
        yield claim("B-T3.3 HPLAJW reads", station.read_share, reads, "share", note, missed=missed)
        yield claim(
            "B-T3.3 SNAKE rate", paper.MACHINES[1].io_per_s, None, "I/O/s", "per disk",
            missed="its trace is not at hand and no stand-in is specified",
        )  # fmt: skip

    def _peak_claim(self, name: str, of: str, peak: paper.Peak, found: np.ndarray, disk: int) -> Claim:
        if peak.day == paper.DAY_OF_SPECIFICATION:
            # Like for like: one day's maximum, whose mean has an interval over days.
            part = f"{peak.requests / paper.DAY_REQUESTS[disk]:.0%}"
            missed = f"it holds {part} of that day's requests, and the generator bounds minutes, not hours"
            note = f"busiest {of} of the very day that the specification stands for"
            return claim(name, peak.requests, over_seeds(found), "I/Os", note, band=PEAK_BAND, missed=missed)
        # A maximum of another day, if it were met, would be met by chance.
        note = f"largest of {len(found)} days like day {paper.DAY_OF_SPECIFICATION}"
        near = " (near by chance)" if is_met(float(found.max()), peak.requests, PEAK_BAND) else ""
        missed = f"the paper's is of day {peak.day}, and the real trace is not at hand{near}"
        return claim(
            name, peak.requests, float(found.max()), "I/Os", note, band=PEAK_BAND, is_comparable=False,
            missed=missed,
        )  # fmt: skip

    def _hour_claims(self) -> Iterator[Claim]:
        mean = self.hours.mean(axis=1)
        top = self.hours.max(axis=1)
        begin, end = paper.WORK_HOURS
        work, whole = mean[list(BUSY), begin:end].sum(axis=1), mean[list(BUSY)].sum(axis=1)
        checks = {
            "work hours": bool((work >= WORK_SHARE * whole).all()),
            "5:30 peak on all disks": bool((spikes(mean)).all()),
            "maximum twice the mean on all disks": bool(
                (top.max(axis=1) >= ABOVE_MEAN * mean.max(axis=1)).all()
            ),
        }
        said = ", ".join(f"{words}: {'yes' if holds else 'no'}" for words, holds in checks.items())
        failed = [words for words, holds in checks.items() if not holds]
        busy = self.hours[list(BUSY)]
        share = over_seeds(busy[:, :, begin:end].sum(axis=(0, 2)) / busy.sum(axis=(0, 2)))
        yield claim(
            "B-F3.4 daily shape", None, share, "share 8-19 h", f"busy disks; {said}",
            shape_holds=not failed, missed=f"ours lacks: {', '.join(failed)}; its days are all of one kind",
        )  # fmt: skip
        ours, printed = order(top.max(axis=1)), order([p.requests for p in paper.HOUR_PEAKS])
        yield claim(
            "B-F3.4 order", None, None, "", f"disks by busiest hour: paper {printed}, ours {ours}",
            shape_holds=ours == printed, missed="the maxima are of other days than June 1st",
        )  # fmt: skip

    def _minute_claim(self, figure: str, disks: tuple[int, ...]) -> Claim:
        shown = self.work_minutes[list(disks)]
        mean, top = shown.mean(axis=1), shown.max(axis=(1, 2))
        over = [d for d, value in zip(disks, top, strict=True) if value > paper.SERVED_PER_MINUTE]
        printed = [d for d in disks if paper.MINUTE_PEAKS[d].requests > paper.SERVED_PER_MINUTE]
        apart = bool((top >= ABOVE_MEAN * mean.max(axis=1)).all())
        largest = max(disks, key=lambda d: paper.MINUTE_PEAKS[d].requests)
        met = all(
            is_met(value, paper.MINUTE_PEAKS[d].requests, PEAK_BAND)
            for d, value in zip(disks, top, strict=True)
        )
        note = (
            f"busiest minute of disk {largest}; all four within 10 %: {'yes' if met else 'no'}; disks above "
            f"{paper.SERVED_PER_MINUTE} a minute: paper {_list(printed)}, ours {_list(over)}"
        )
        return claim(
            f"B-F{figure}", paper.MINUTE_PEAKS[largest].requests, float(top[disks.index(largest)]), "I/Os",
            note, band=PEAK_BAND, shape_holds=apart and over == printed, is_comparable=False,
            missed="no maximum of the paper is of June 1st, to whose own the specification is held",
        )  # fmt: skip

    @property
    def work_minutes(self) -> np.ndarray:
        """The minutes that Figs. 3.5 and 3.6 show."""
        begin, end = (60 * hour for hour in paper.WORK_HOURS)
        return self.minutes[:, :, begin:end]


def spikes(mean: np.ndarray) -> np.ndarray:
    """Of each row of 24 hourly loads: whether the hour from 5 to 6 has more than its neighbours."""
    at = paper.SPIKE_HOUR
    return (mean[:, at] > mean[:, at - 1]) & (mean[:, at] > mean[:, at + 1])


def order(values: np.ndarray | list[int]) -> str:
    """Disks from the largest value down."""
    return " ".join(str(disk) for disk in sorted(range(len(values)), key=lambda d: -values[d]))


def read_header(text_: str) -> tuple[datetime, tuple[str, ...], str]:
    """Start, types of the disks and kind of bus of an HP SRT trace's header.

    Raises:
        ValueError: it has no date or no disk.
    """
    date = re.search(r'tracedate\s*=\s*"([^"]+)"', text_)
    disks = tuple(name.upper() for name in re.findall(r"disktype\s*=\s*(\w+)", text_))
    bus = re.search(r"bustype\s*=\s*(\w+)", text_)
    if date is None or not disks or bus is None:
        raise ValueError("no tracedate, disktype or bustype")
    start = datetime.strptime(date[1], "%a %b %d %H:%M:%S %Y")
    return start, disks, bus[1].upper().replace("_", "-")


def _workstation(binary: BinaryCache) -> Workstation | None:
    path, rows = binary.path_of(REAL), binary.recording(REAL)
    if path is None or rows is None:
        return None
    head = path.read_bytes()[:65_536].partition(b"\f")[0].decode("latin-1")
    try:
        start, disks, bus = read_header(head)
    except ValueError as error:
        remedy = "is this the week of HPLAJW that DiskSim has?"
        raise InputError(path, f"has an unknown header ({error})", remedy) from error
    first = start.hour * 3600 + start.minute * 60 + start.second
    seconds = rows["intended_ns"].to_numpy() // 1_000_000_000 + first
    of = rows["device"].cast(pl.String)
    days = int(seconds.max()) // DAY_S + 1
    minutes = np.zeros((len(disks), days, 1440), dtype=np.int64)
    for disk in range(len(disks)):
        at = seconds[(of == str(disk)).to_numpy()] // 60
        minutes[disk] = np.bincount(at, minlength=days * 1440).reshape(days, 1440)
    duration_s = float(rows["intended_ns"].max() / 1e9)
    reads = float((rows["op"].cast(pl.String) == "read").mean() or 0.0)
    return Workstation(minutes, duration_s, rows.height, reads, disks, bus)


def _printed(of: str) -> tuple[paper.Peak, ...]:
    return paper.HOUR_PEAKS if of == "hour" else paper.MINUTE_PEAKS


def _list(disks: list[int]) -> str:
    return ", ".join(map(str, disks)) or "none"
