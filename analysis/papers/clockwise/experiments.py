"""The measurements of single disks of chapters 4 and 7, on modelled disks.

Raw requests begin a track and come without a seek, those of less than a track without a head switch; those of
dynamic partitions follow on each other from where a partition begins. The platter is at a random angle when
one begins. A drive's errors and bad blocks are not modelled.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from papers.clockwise import track_cache
from papers.clockwise.disk_times import Drive, Request, served_ms
from papers.clockwise.source import KB, SECTOR_BYTES
from weir.binary_cache import BinaryCache

#: Requests of each kind.
COUNT = 400
#: Block sizes that figures show; the thesis names only those of Figs. 7.3 and 7.4.
SIZES_KB = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
CDF_SIZES_KB = (1, 16, 64, 256, 512, 1024)
#: A copy of 1 KB from memory, in ms: a request that never goes to the disk. 72 MB/s (4.3.7).
COPY_MS_PER_KB = 1e3 / 72 / KB
#: Seeks over one distance: so many that the shortest and the longest, which meet the least and the most
#: rotational delay, are within 0.2 ms of the ends.
SEEKS = 4_000
#: Ultra-Wide SCSI instead of Fast SCSI-2, in 10^6 bytes a second (4.1.2). Most writes then take what the
#: platter needs (7.2.3): the drive loses no revolutions.
WIDE = {"interface_mb_s": 40, "writes_by_revolution": False}
#: The drive's cache in its factory settings: 5 lines of 89.5 KB, written out behind what is answered (4.3.3).
WRITE_BEHIND = {"write_cache_kib": 448, "write_cache_runs": 5}


@dataclass(frozen=True)
class Bench:
    """A drive and the binary that models it."""

    binary: BinaryCache
    drive: Drive

    @classmethod
    @cache
    def load(cls, binary: BinaryCache, profile: str = "quantum-atlas-ii") -> "Bench":
        """The bench of a profile."""
        return cls(binary, Drive.load(binary, profile))

    def raw(self, zone: int, sectors: int, *, write: bool = False, **changes: object) -> np.ndarray:
        """Service times in ms of requests that begin a track."""
        count, track = self._count(zone, sectors), self.drive.track(zone)
        # What fits a track is asked for again and again, so that no head is switched.
        asked = (
            [Request(0, sectors)] * count if sectors <= track else track_cache.aligned(track, sectors, count)
        )
        return self._served(zone, asked, write, changes)

    def partition(self, zone: int, block_kb: int, *, write: bool = False, **changes: object) -> np.ndarray:
        """Service times in ms of the blocks of a partition, one behind the other."""
        count = self._count(zone, block_kb * KB // SECTOR_BYTES)
        return self._served(zone, track_cache.blocks(block_kb, count), write, changes)

    def seeks(self, zone: int, distance_cylinders: int) -> np.ndarray:
        """Service times in ms of reads of a sector, each so many cylinders from the one before."""
        far = distance_cylinders * self.drive.heads * self.drive.track(zone)
        asked = [Request(far * (at % 2), 1) for at in range(SEEKS + 1)]
        # The first begins where the arm is.
        return self._served(zone, asked, False, {})[1:]

    def cached(self, zone: int, block_kb: int) -> tuple[np.ndarray, np.ndarray, float]:
        """Blocks of a partition with the track cache.

        Returns:
            Service times in ms, sectors that the disk was asked for (0 of a hit), and the share of hits.
        """
        count = max(COUNT, 20 * self.drive.track(zone) * SECTOR_BYTES // (block_kb * KB))
        count = min(count, self.drive.sectors(zone) // (2 * block_kb))
        found = track_cache.answers(self.drive.track(zone), block_kb, count)
        asked = [answer.request for answer in found if answer.request]
        served = iter(self._served(zone, asked, False, {}))
        copied = COPY_MS_PER_KB * block_kb
        times = np.array([next(served) if answer.request else copied for answer in found])
        sectors = np.array([answer.request.sectors if answer.request else 0 for answer in found])
        return times, sectors, float(np.mean(sectors == 0))

    def _served(self, zone: int, asked: list[Request], write: bool, changes: dict[str, object]) -> np.ndarray:
        if write:
            asked = [Request(one.start, one.sectors, is_write=True) for one in asked]
        return served_ms(self.binary, self.drive, zone, asked, changes=changes)

    def _count(self, zone: int, sectors: int) -> int:
        return min(COUNT, self.drive.sectors(zone) // (sectors + self.drive.track(zone)) - 2)


def sectors_of(block_kb: float) -> int:
    """Sectors of a block."""
    return round(block_kb * KB / SECTOR_BYTES)
