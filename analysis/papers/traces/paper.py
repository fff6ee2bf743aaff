"""What the papers print of their workloads. KB is 1024 bytes; Mb is 10^6 bits.

Numbers that are claims come from the papers' registers. Shenoy: P. Shenoy, P. Goyal, H. Vin, "Architectural
considerations for next generation file systems", ACM Multimedia 1999. Bosch: P. Bosch, "Mixed-media file
systems", PhD thesis, University of Twente, 1999.
"""

from dataclasses import dataclass

from papers.clockwise import CLAIMS as BOSCH
from papers.shenoy import CLAIMS as SHENOY
from weir.claims import Claims


def printed(claims: Claims, id: str) -> float:
    """The number that a paper prints of a claim.

    Raises:
        InputError: its register has no such claim.
    """
    number = claims.register[id].paper
    assert number is not None, id
    return number


# Shenoy, Table 2: mean bit rate in Mb/s of the four MPEG-1 films; 2.3: 30 frames a round of 1 s.
MPEG_MBIT_S = {
    name: printed(SHENOY, f"S-T2 {name}") for name in ("frasier", "newscast", "flintstones", "olympics")
}
MPEG_RATE_HZ = 30.0
AGGREGATE_CLIENTS = 10

# Shenoy, Table 3: the Auspex trace; the rates are those behind a cache of 64 MB.
NFS_KB_S = printed(SHENOY, "S-T3 rate")
NFS_GAP_MS = printed(SHENOY, "S-T3 gap")
NFS_SIZE_BYTES = printed(SHENOY, "S-T3 size")
NFS_PEAK_TO_MEAN = printed(SHENOY, "S-F6a")
#: Before the cache.
NFS_ORIGINAL_KB_S = printed(SHENOY, "S-T3 before cache")
NFS_ORIGINAL_GAP_MS = 9.14
#: Shenoy, 3.3: a load that exceeds the capacity of 200 clients with probability delta has this mean and peak,
#: in clients. They are one distribution (Fig. 6b) drawn to three scales, so they give its points.
NFS_CAPACITY = 200
NFS_LOADS = {0.01: (48.4, 244), 0.03: (64.7, 333), 0.05: (76.9, 401)}


@dataclass(frozen=True)
class Film:
    """A Motion-JPEG film of Bosch, 3.1.1.

    Attributes:
        name: as the thesis has it.
        short: in the names of its claims and of its specification.
    """

    name: str
    short: str

    @property
    def workload(self) -> str:
        """Our specification."""
        return f"mjpeg-{self.short}"

    @property
    def mean_kb(self) -> float:
        """Mean size of a frame."""
        return printed(BOSCH, f"B-F3.1 {self.short} mean")

    @property
    def std_kb(self) -> float:
        """Its standard deviation."""
        return printed(BOSCH, f"B-F3.1 {self.short} std")


FILMS = (
    Film("The Hunt for Red October", "red-october"),
    Film("Red October, clip", "red-october-clip"),
    Film("A Close Shave", "wallace"),
)
FILM_RATE_HZ = 25.0
#: Bosch, 3.1.2: share of buffers that are full early; one number for the three films.
EARLY_SHARE = printed(BOSCH, "B-F3.2 wallace")
#: The thesis does not list its block sizes; these run from below a frame to the block that it uses elsewhere.
BLOCKS_KB = (4, 16, 64, 256, 1024)


#: Bosch, Table 3.1: lengths of windows in seconds, users, and what it prints of each length in KB/s, by the
#: names of `series.UserRates`.
SPRITE_WINDOWS_S = (600, 10)
SPRITE_USERS = 40
SPRITE_RATES = {
    "mean": "average per user",
    "std": "standard deviation",
    "user_peak": "peak per user",
    "total_peak": "peak of all",
}


@dataclass(frozen=True)
class Machine:
    """A row of Bosch, Tables 3.2 and 3.3; `disks` are their types by number."""

    name: str
    disks: tuple[str, ...]
    bus: str
    total_ios: int

    @property
    def io_per_s(self) -> float:
        """Requests per second and disk."""
        return printed(BOSCH, f"B-T3.3 {self.name} rate")

    @property
    def read_share(self) -> float:
        """Share of reads."""
        return printed(BOSCH, f"B-T3.3 {self.name} reads")


#: Bosch, 3.2.2: "throughout the 63 day trace period".
TRACE_DAYS = 63
MACHINES = (
    Machine("CELLO", ("HPC2474S",) + ("HP2204",) * 7, "SCSI-2, FiberLink", 29_351_277),
    Machine("SNAKE", ("Quantum PD425S", "HP97560", "HP97560"), "SCSI", 12_554_885),
    Machine("HPLAJW", ("HP335H", "HP335H"), "HP-IB", 416_262),
)


@dataclass(frozen=True)
class Peak:
    """The busiest hour or minute of a disk of CELLO: requests, day of the trace, time of day."""

    requests: int
    day: int
    time: str


_HOURS = (
    (44, "3 PM"), (7, "6 AM"), (16, "11 AM"), (58, "10 AM"), (3, "11 AM"), (44, "4 PM"), (15, "1 AM"),
    (9, "2 PM"),
)  # fmt: skip
_MINUTES = (
    (10, "13:05"), (4, "13:10"), (55, "13:46"), (13, "12:34"), (3, "11:07"), (39, "13:52"), (47, "10:12"),
    (51, "19:42"),
)  # fmt: skip
#: Bosch, Tables 3.4 and 3.5, by disk.
HOUR_PEAKS, MINUTE_PEAKS = (
    tuple(Peak(round(printed(BOSCH, f"{table} disk {disk}")), *when) for disk, when in enumerate(times))
    for table, times in (("B-T3.4", _HOURS), ("B-T3.5", _MINUTES))
)
#: Bosch, Table 6.5: requests of June 1st, 1992, by disk.
DAY_REQUESTS = (200_796, 3_973, 193_539, 2_054, 431, 122_730, 249_801, 27_683)
#: Bosch, 3.2.2: requests that a disk can serve in a minute, at 25.9 ms each.
SERVED_PER_MINUTE = 2317
#: Bosch, 3.2.2: "primarily busy from 8AM to 7PM", "a load peak at approximately 5:30AM".
WORK_HOURS = (8, 19)
SPIKE_HOUR = 5
