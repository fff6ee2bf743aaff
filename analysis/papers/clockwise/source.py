"""Numbers printed in the thesis, with their place.

KB is 1024 bytes and MB 2^20, as its Table 4.1 needs; errata are named where they matter.
"""

from dataclasses import dataclass

KB, MB = 1024, 2**20
SECTOR_BYTES = 512
#: 7,200 revolutions a minute (4.3).
REVOLUTION_MS = 60_000 / 7_200


@dataclass(frozen=True)
class Zone:
    """A row of Table 4.1: a Quantum Atlas-II has `cylinders` ("tracks") of ten heads in it."""

    first_cylinder: int
    cylinders: int
    sectors_per_track: int
    capacity_mb: float
    bandwidth_mb_s: float


#: Table 4.1. Section 4.1.1 has 108 sectors per track at least, the table 107.
ZONES = tuple(
    Zone(*row)
    for row in (
        (0, 1772, 179, 1548, 10.5), (1772, 352, 170, 292, 9.9), (2124, 416, 164, 333, 9.6),
        (2540, 312, 161, 245, 9.4), (2852, 232, 159, 180, 9.3), (3084, 416, 152, 308, 8.9),
        (3500, 280, 149, 203, 8.7), (3780, 488, 139, 331, 8.1), (4268, 520, 129, 327, 7.5),
        (4788, 208, 125, 126, 7.3), (4996, 392, 116, 222, 6.8), (5388, 424, 107, 221, 6.3),
    )
)  # fmt: skip

#: 4.3.4 and 4.3.5: shortest and longest reads and writes in zone 0, in ms, by sectors.
READS_MS = {2: (2.0, 11.1), 179: (15.0, 20.9), 180: (15.1, 21.0), 358: (27.4, 29.5)}
WRITES_MS = {2: (1.0, 10.8), 179: (10.3, 18.7)}
#: Fig. 7.4: the axis of the plot of 1 MB. 7.2.3: most raw writes of 1 MB to zone 0 through Fast SCSI-2.
INNER_READS_MS = (170, 200)
RAW_WRITES_MS = (111, 120)
#: Fig. 7.10: means and 90th percentiles of service times of 2 to 5 disks.
PARALLEL_MS = ((72.0, 73.3), (73.9, 75.3))

#: Table 6.3: bandwidth of a stream, and its periods in s for blocks of 256 KB, 512 KB, 1 and 2 MB.
PERIOD_BLOCKS_KB = (256, 512, 1024, 2048)
PERIODS_S = {
    "WG": (245, (0.886, 1.772, 3.543, 7.087)),
    "RO": (817, (0.313, 0.627, 1.253, 2.507)),
    "RGB16 384x288": (5.3 * KB, (0.047, 0.094, 0.189, 0.377)),
    "RGB16 768x576": (21.1 * KB, (0.012, 0.024, 0.047, 0.094)),
    "CD": (172, (1.488, 2.977, 5.953, 11.907)),
}

#: Table 6.4: worst-case service times in ms by block in KB, then by zone.
WORST_CASE_MS = {
    128: (42, 42, 42, 42, 42, 42, 42, 43, 44, 50, 50, 50),
    256: (55, 55, 58, 57, 62, 63, 63, 63, 63, 65, 67, 69),
    512: (81, 83, 85, 86, 89, 89, 89, 95, 99, 102, 107, 114),
    1024: (134, 140, 143, 146, 145, 152, 154, 163, 173, 178, 189, 204),
}
#: 4.3.2: the longest seek, which Table 6.4 has in it.
LONGEST_SEEK_MS = 17.8

#: Table 6.5, by disk of CELLO: requests of June 1st, 1992, and of its busiest minute.
DAY_PEAKS = (2_654, 1_777, 2_840, 994, 144, 2_598, 2_412, 1_349)
#: Table 7.1, by disk: requests from 16:48:00 to 17:09:40 and of the busiest second. Its caption has 17:48:00.
SLICE_FROM_S, SLICE_S = 60_480, 1_300
SLICE_REQUESTS = (31_066, 0, 1_015, 6, 6, 8_401, 12_427, 831)
SLICE_PEAKS = (130, 0, 42, 6, 6, 88, 207, 31)
#: Disks 1, 3 and 4 have no load to speak of in that slice.
SLICE_DISKS = (0, 2, 5, 6, 7)

#: Table 6.2: cost and period of a set that the User-Safe Disk admits, in ms, and the times at which requests
#: that were all released at 0 are done (Fig. 6.3).
USD_TASKS_MS = ((42, 250), (69, 250), (122, 1000), (163, 2000))
USD_DONE_MS = (42, 111, 233, 396, 438, 507)
#: Section 6.4.2's example in words; the numbers are ours: cost, period, release of the first request.
LST_TASKS_MS = ((10, 40, 0), (20, 30, 20))
LST_BEST_EFFORT_MS = 25

#: Section 4.5: what runs at the network's rate, what a transaction of it moves and costs, and its share of
#: PCI.
NETWORK_MBIT_S = 135.7
BUS_SHARES = (
    ("OPPO sends", 1536, 14_700, 17.0),
    ("NCR53c810 reads", 64, 570, 15.8),
    ("OPPO receives", 64, 560, 15.5),
    ("NCR53c810 writes", 64, 870, 24.2),
    ("NCR53c875 writes", 512, 4_260, 14.8),
    ("NCR53c875 reads", 512, 3_920, 13.6),
)
