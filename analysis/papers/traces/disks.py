"""The disks of CELLO and HPLAJW: Bosch Figs. 3.4-3.6, Tables 3.2-3.5."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
import polars as pl

from papers.traces import paper, series
from weir.binary_cache import NOT_AT_HAND, BinaryCache
from weir.claims import over_seeds, text
from weir.errors import InputError
from weir.labels import number
from weir.statistics import Interval

#: A day for each day of the paper's trace; they are all of one kind, that of June 1st.
SEEDS = range(1, paper.TRACE_DAYS + 1)
DAY_S = 86_400
#: A week of a workstation of the same group, machine HPLAJW of the tables.
REAL = "disksim/ajw.1week.srt"

#: Disks with enough load for a daily shape: June 1st has more than a request per minute on them.
BUSY = (0, 2, 5, 6)
#: Disks of each figure of minutes.
FIGURES = {"3.5": (0, 1, 2, 3), "3.6": (4, 5, 6, 7)}


def per_minute(requests: pl.LazyFrame) -> pl.LazyFrame:
    """Requests and reads of each disk (file) and minute that has any."""
    minute = (pl.col("intended_ns") // 60_000_000_000).alias("minute")
    reads = (pl.col("op").cast(pl.String) == "read").sum().alias("reads")
    return requests.group_by("file", minute, maintain_order=True).agg(pl.len().alias("requests"), reads)


@dataclass(frozen=True)
class Workstation:
    """The recorded week of HPLAJW.

    Attributes:
        minutes: requests by disk, day and minute of the day.
        duration_s: from the first request to the last.
        requests: of both disks.
        read_share: of the requests.
        queues: length of its disk's queue at each request's arrival, itself included.
        response_ms: mean time from arrival to completion.
        disks: types of the disks, of the file's header.
        bus: kind of the bus, of the header.
    """

    minutes: np.ndarray
    duration_s: float
    requests: int
    read_share: float
    queues: np.ndarray
    response_ms: float
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

    @property
    def work_share(self) -> Interval:
        """Share of the busy disks' requests in working hours, over days."""
        begin, end = paper.WORK_HOURS
        busy = self.hours[list(BUSY)]
        return over_seeds(busy[:, :, begin:end].sum(axis=(0, 2)) / busy.sum(axis=(0, 2)))

    @property
    def work_minutes(self) -> np.ndarray:
        """The minutes that Figs. 3.5 and 3.6 show."""
        begin, end = (60 * hour for hour in paper.WORK_HOURS)
        return self.minutes[:, :, begin:end]


def spikes(mean: np.ndarray) -> np.ndarray:
    """Of each row of 24 hourly loads: whether the hour from 5 to 6 has more than its neighbours."""
    at = paper.SPIKE_HOUR
    return (mean[:, at] > mean[:, at - 1]) & (mean[:, at] > mean[:, at + 1])


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
    done = rows.drop_nulls("completed_ns")
    queues = [
        queue_lengths(own["intended_ns"].to_numpy(), own["completed_ns"].to_numpy())
        for own in done.partition_by("device")
    ]
    response_ms = float((done["completed_ns"] - done["intended_ns"]).mean()) / 1e6
    return Workstation(
        minutes, duration_s, rows.height, reads, np.concatenate(queues), response_ms, disks, bus
    )


def queue_lengths(arrived: np.ndarray, completed: np.ndarray) -> np.ndarray:
    """Requests of a disk that are not completed when one arrives, itself included, by order of arrival."""
    order = np.argsort(arrived, kind="stable")
    gone = np.searchsorted(np.sort(completed), arrived[order], side="right")
    return np.arange(1, len(order) + 1) - gone


def _printed(of: str) -> tuple[paper.Peak, ...]:
    return paper.HOUR_PEAKS if of == "hour" else paper.MINUTE_PEAKS
