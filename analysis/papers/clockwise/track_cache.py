"""The cache of tracks in main memory (7.2.2, Figs. 7.5 and 7.6).

A request of a partition that is read sequentially goes on to the end of the track in which it ends; what is
read too much is kept, and the next request begins with it.
"""

from collections import OrderedDict
from dataclasses import dataclass

from papers.clockwise.disk_times import Request
from papers.clockwise.source import KB, SECTOR_BYTES

#: The superblock is a sector at sector 16, partitions begin behind it (7.2.2).
FIRST_SECTOR = 17
#: Tracks that are kept. One stream needs one.
BUFFERS = 16


@dataclass(frozen=True)
class Answer:
    """The result of a request: sectors from the cache, and the request to the disk, if any."""

    cached: int
    request: Request | None


class TrackCache:
    """Ends of tracks, the least recently used of which makes room.

    Args:
        track: sectors of a track.
        buffers: how many ends are kept.
    """

    def __init__(self, track: int, buffers: int = BUFFERS) -> None:
        self.track, self.buffers = track, buffers
        #: By track: the first of its sectors that is kept; all behind it are.
        self._kept: OrderedDict[int, int] = OrderedDict()

    def read(self, start: int, sectors: int) -> Answer:
        """A request of a sequential partition: first sector and how many."""
        end = start + sectors
        track = start // self.track
        first = self._kept.get(track)
        cached = 0
        if first is not None and first <= start:
            self._kept.move_to_end(track)
            cached = min((track + 1) * self.track, end) - start
        if cached == sectors:
            return Answer(cached, None)
        rounded = -(-end // self.track) * self.track
        if rounded > end:
            self._keep(rounded // self.track - 1, end)
        return Answer(cached, Request(start + cached, rounded - start - cached))

    def _keep(self, track: int, first: int) -> None:
        self._kept[track] = first
        self._kept.move_to_end(track)
        while len(self._kept) > self.buffers:
            self._kept.popitem(last=False)


def blocks(block_kb: int, count: int) -> list[Request]:
    """Blocks one behind the other, from where partitions begin."""
    sectors = block_kb * KB // SECTOR_BYTES
    return [Request(FIRST_SECTOR + at * sectors, sectors) for at in range(count)]


def aligned(track: int, sectors: int, count: int) -> list[Request]:
    """Requests that each begin a track."""
    step = -(-sectors // track) * track
    return [Request(at * step, sectors) for at in range(count)]


def answers(track: int, block_kb: int, count: int) -> list[Answer]:
    """Results of sequential blocks."""
    cache = TrackCache(track)
    return [cache.read(one.start, one.sectors) for one in blocks(block_kb, count)]
