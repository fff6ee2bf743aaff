"""Numbers printed in the papers, with their place. KB is 1024 bytes; Mb is 10^6 bits.

Shenoy: P. Shenoy, P. Goyal, H. Vin, "Architectural considerations for next generation file systems", ACM
Multimedia 1999. Bosch: P. Bosch, "Mixed-media file systems", PhD thesis, University of Twente, 1999.
"""

from dataclasses import dataclass

# Shenoy, Table 2: frames and mean bit rate in Mb/s of the four MPEG-1 films; 2.3: 30 frames a round of 1 s.
MPEG_MBIT_S = {"frasier": 1.49, "newscast": 2.33, "flintstones": 1.67, "olympics": 1.49}
MPEG_RATE_HZ = 30.0
AGGREGATE_CLIENTS = 10

# Shenoy, Table 3: the Auspex trace; the rates are those behind a cache of 64 MB.
NFS_KB_S = 83.91
NFS_GAP_MS = 22.53
NFS_SIZE_BYTES = 2048.22
NFS_PEAK_TO_MEAN = 12.51
#: Before the cache.
NFS_ORIGINAL_KB_S = 218.64
NFS_ORIGINAL_GAP_MS = 9.14
NFS_OPERATIONS = 218_724
#: Shenoy, 3.3: a load that exceeds the capacity of 200 clients with probability delta has this mean and peak,
#: in clients. They are one distribution (Fig. 6b) drawn to three scales, so they give its points.
NFS_CAPACITY = 200
NFS_LOADS = {0.01: (48.4, 244), 0.03: (64.7, 333), 0.05: (76.9, 401)}


@dataclass(frozen=True)
class Film:
    """A Motion-JPEG film of Bosch, 3.1.1.

    Attributes:
        name: as the thesis has it.
        workload: our specification.
        mean_kb: mean size of a frame.
        std_kb: its standard deviation.
        kb_s: mean rate; of A Close Shave that of Table 6.3, for its frame size is printed rounded.
    """

    name: str
    workload: str
    mean_kb: float
    std_kb: float
    kb_s: float


# Bosch, 3.1.1: "33(3.3) KB", and "10(1.4)-11(2.3) KB" with every second pixel.
FILMS = (
    Film("The Hunt for Red October", "mjpeg-red-october", 33.0, 3.3, 825.0),
    Film("Red October, clip", "mjpeg-red-october-clip", 11.0, 2.3, 275.0),
    Film("A Close Shave", "mjpeg-wallace", 10.0, 1.4, 245.0),
)
FILM_RATE_HZ = 25.0
#: Bosch, 3.1.2: "when only 10 % more bandwidth than the average ... is allocated, only 20 % of all requests
#: arrive quicker than expected".
EARLY_SHARE = 0.2
#: The thesis does not list its block sizes; these run from below a frame to the block that it uses elsewhere.
BLOCKS_KB = (4, 16, 64, 256, 1024)


@dataclass(frozen=True)
class UserLoad:
    """A column of Bosch, Table 3.1, in KB/s, for windows of `window_s`."""

    window_s: int
    mean: float
    std: float
    user_peak: float
    total_peak: float


SPRITE_USERS = 40
SPRITE = (UserLoad(600, 8.0, 36, 458, 681), UserLoad(10, 47.0, 268, 9871, 9977))


@dataclass(frozen=True)
class Machine:
    """A row of Bosch, Tables 3.2 and 3.3; `io_per_s` is per disk, `disks` are their types by number."""

    name: str
    disks: tuple[str, ...]
    bus: str
    total_ios: int
    io_per_s: float
    read_share: float


#: Bosch, 3.2.2: "throughout the 63 day trace period".
TRACE_DAYS = 63
MACHINES = (
    Machine("CELLO", ("HPC2474S",) + ("HP2204",) * 7, "SCSI-2, FiberLink", 29_351_277, 0.67, 0.44),
    Machine("SNAKE", ("Quantum PD425S", "HP97560", "HP97560"), "SCSI", 12_554_885, 0.77, 0.43),
    Machine("HPLAJW", ("HP335H", "HP335H"), "HP-IB", 416_262, 0.04, 0.42),
)


@dataclass(frozen=True)
class Peak:
    """The busiest hour or minute of a disk of CELLO: requests, day of the trace, time of day."""

    requests: int
    day: int
    time: str


#: Bosch, Table 3.4, by disk.
HOUR_PEAKS = (
    Peak(41_119, 44, "3 PM"), Peak(4_078, 7, "6 AM"), Peak(75_921, 16, "11 AM"), Peak(49_025, 58, "10 AM"),
    Peak(10_509, 3, "11 AM"), Peak(91_052, 44, "4 PM"), Peak(72_011, 15, "1 AM"), Peak(21_588, 9, "2 PM"),
)  # fmt: skip
#: Bosch, Table 3.5, by disk.
MINUTE_PEAKS = (
    Peak(5_827, 10, "13:05"), Peak(1_956, 4, "13:10"), Peak(4_057, 55, "13:46"), Peak(4_132, 13, "12:34"),
    Peak(1_471, 3, "11:07"), Peak(3_908, 39, "13:52"), Peak(2_937, 47, "10:12"), Peak(3_017, 51, "19:42"),
)  # fmt: skip
#: Bosch, Table 6.5: requests of June 1st, 1992, by disk.
DAY_REQUESTS = (200_796, 3_973, 193_539, 2_054, 431, 122_730, 249_801, 27_683)
#: The day of the trace that our specification stands for, June 1st, 1992.
DAY_OF_SPECIFICATION = 44
#: Bosch, 3.2.2: requests that a disk can serve in a minute, at 25.9 ms each.
SERVED_PER_MINUTE = 2317
#: Bosch, 3.2.2: "primarily busy from 8AM to 7PM", "a load peak at approximately 5:30AM".
WORK_HOURS = (8, 19)
SPIKE_HOUR = 5
