"""Claims of single disks: Table 4.1, Figs. 4.5 to 4.10, 7.3 to 7.8."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from papers.clockwise import CLAIMS, source, track_cache
from papers.clockwise.disk_times import Drive
from papers.clockwise.experiments import COUNT, WIDE, WRITE_BEHIND, Bench, sectors_of
from papers.clockwise.source import MB, SECTOR_BYTES
from weir.claims import Claim
from weir.labels import number

#: Sizes of several tracks in every zone.
LARGE_KB = (256, 512, 1024)
#: Cylinders at which the seek curve changes, and the whole stroke (4.3.2).
KNEE, STROKE = 1_500, 5_811
#: Cylinders of the seeks whose times are compared; they are within the outermost zone.
FAR = 1_000
#: Why unaligned reads are less late in the model than a revolution.
CHANGE_OF_TRACKS = (
    "raw requests of several tracks begin with a change of tracks (0.6 to 2.8 ms), blocks of a partition "
    "mostly where the one before ended"
)
#: Fig. 4.6: a loss of bandwidth by more than this share is one.
LOSS = 0.05


def zones(drive: Drive) -> Iterator[Claim]:
    """B-T4.1."""
    capacity, bandwidth = [], []
    for (track, cylinders), zone in zip(drive.zones, source.ZONES, strict=True):
        capacity.append(abs(cylinders * drive.heads * track * SECTOR_BYTES / MB - zone.capacity_mb))
        bandwidth.append(abs(bandwidth_mb_s(drive, track) - zone.bandwidth_mb_s))
    printed = [(z.sectors_per_track, z.cylinders) for z in source.ZONES]
    same = printed == list(drive.zones)
    note = f"the model's zones are the table's: {yes(same)}"
    yield CLAIMS.judged("B-T4.1 capacity", max(capacity), note, shape=same)
    yield CLAIMS.judged("B-T4.1 bandwidth", max(bandwidth), note, shape=same)


def bandwidth_mb_s(drive: Drive, track: int) -> float:
    """Media transfer rate in MB/s."""
    return track * SECTOR_BYTES / drive.revolution_ms * 1e3 / MB


def seeks(bench: Bench) -> Iterator[Claim]:
    """B-F4.5."""
    drive = bench.drive
    printed = 9.5 - 1.5e-6 * (np.array([500, 1000]) - 2000) ** 2
    ours = [drive.seek_ms(d) for d in (500, 1000)]
    far = [drive.seek_ms(d) for d in (2000, 3000, 4000)]
    linear = abs((far[2] - far[1]) - (far[1] - far[0])) < 0.05
    note = (
        f"at 500 and 1,000 cylinders {number(ours[0])} and {number(ours[1])} ms, by the thesis's formula "
        "with its "
        f"coefficient in us {number(printed[0])} and {number(printed[1])}"
    )
    yield CLAIMS.judged(
        "B-F4.5 one", drive.seek_ms(1), "the formula would give 3.5 ms, against its own measurement"
    )
    yield CLAIMS.judged("B-F4.5 knee", drive.seek_ms(KNEE), note, shape=linear)
    yield CLAIMS.judged("B-F4.5 longest", drive.seek_ms(STROKE), "over the whole stroke")
    spread = seek_spread_ms(bench.seeks(0, FAR), drive.revolution_ms)
    yield CLAIMS.judged("B-F4.5 spread", spread, f"{number(FAR)} cylinders")


def seek_spread_ms(times: np.ndarray, revolution_ms: float) -> float:
    """By how much seeks over one distance differ, from times of reads of a sector.

    The waits of many reads for their sector differ by a revolution.
    """
    return max(float(np.ptp(times)) - revolution_ms, 0.0)


def cached_writes(bench: Bench) -> Iterator[Claim]:
    """B-F4.6."""
    zones = range(len(bench.drive.zones))
    fits, large = ([write_behind_mb_s(bench, zone, kb) for zone in zones] for kb in (256, 1024))
    lost = [1 - after / before for before, after in zip(fits, large, strict=True)]
    falls, stays = min(lost[2:]) > LOSS, max(lost[:2]) <= LOSS
    note = (
        f"1 MB loses {', '.join(number(100 * part) for part in lost)} % in zones 0 to 11; zones 2 to 11 "
        f"fall: {yes(falls)}, zones 0 and 1 do not: {yes(stays)}"
    )
    missed = (
        "" if stays else "in the model a block of more than the cache waits for the platter in zone 0 too"
    )
    yield CLAIMS.judged("B-F4.6", fits[0], note, shape=falls and stays, missed=missed)


def write_behind_mb_s(bench: Bench, zone: int, block_kb: int) -> float:
    """Bandwidth of writes with the drive's cache on, in MB/s."""
    return block_kb / 1024 / bench.raw(zone, sectors_of(block_kb), write=True, **WRITE_BEHIND).mean() * 1e3


def ends_off_pct(times: np.ndarray, printed: tuple[float, float]) -> float:
    """The larger error of the shortest and the longest time, in %."""
    return 100 * max(abs(times.min() / printed[0] - 1), abs(times.max() / printed[1] - 1))


def reads(bench: Bench) -> Iterator[Claim]:
    """B-F4.7."""
    for sectors, printed in source.READS_MS.items():
        times = bench.raw(0, sectors)
        yield CLAIMS.judged(f"B-F4.7 {sectors}", ends_off_pct(times, printed), _range(times))
    for zone in (0, 11):
        times = bench.raw(zone, sectors_of(1024))
        yield CLAIMS.judged(f"B-F4.7 zone {zone}", float(times.mean()), f"without a seek; {_range(times)}")
    drive = bench.drive
    every = range(len(drive.zones))
    top = [bandwidth_mb_s(drive, drive.track(zone)) for zone in every]
    large = [1e3 / bench.raw(zone, sectors_of(1024)).mean() for zone in every]
    small = [16 / 1024 / bench.raw(zone, sectors_of(16)).mean() * 1e3 for zone in every]
    ordered = all(a >= b - 0.05 for a, b in pairwise(large))
    below = all(a <= b for a, b in zip(large, top, strict=True))
    note = (
        f"1 MB: {number(large[0])} to {number(large[-1])} MB/s, by zone: {yes(ordered)}; below Table 4.1: "
        f"{yes(below)}"
    )
    share = 100 * max(a / b for a, b in zip(small, top, strict=True))
    yield CLAIMS.judged("B-F4.7 shape", share, note, shape=ordered and below)


def writes(bench: Bench) -> Iterator[Claim]:
    """B-F4.10."""
    for sectors, printed in source.WRITES_MS.items():
        times = bench.raw(0, sectors, write=True)
        yield CLAIMS.judged(f"B-F4.10 {sectors}", ends_off_pct(times, printed), _range(times))
    track = bench.drive.track(0)
    longer, whole = (bench.raw(0, n, write=True).mean() for n in (track + 10, track))
    missed = "requests of more than a track also begin with a change of tracks, which those of a track do not"
    note = f"{number(longer)} and {number(whole)} ms in zone 0"
    yield CLAIMS.judged("B-F4.10 zig-zag", float(longer - whole), note, missed=missed)


def unaligned_reads(bench: Bench) -> Iterator[Claim]:
    """B-F7.3, B-F7.4."""
    for name, zone in (("B-F7.3", 0), ("B-F7.4", 11)):
        more = {
            kb: _longest(bench.partition(zone, kb)) - _longest(bench.raw(zone, sectors_of(kb)))
            for kb in LARGE_KB
        }
        block = bench.partition(zone, 1024)
        words = ", ".join(f"{kb} KB {number(ms)}" for kb, ms in more.items())
        note = f"longest of {COUNT}: {words}; 1 MB of a partition: {_range(block)}"
        low, high = source.INNER_READS_MS
        inside = None if zone == 0 else bool(block.min() >= low and block.max() <= high)
        yield CLAIMS.judged(
            name, float(np.mean(list(more.values()))), note, shape=inside, missed=CHANGE_OF_TRACKS
        )


def _longest(times: np.ndarray) -> float:
    return float(times.max())


def cache_of_tracks(bench: Bench) -> Iterator[Claim]:
    """B-7.2.2, B-F7.5, B-F7.6."""
    first, second = (answer for answer in track_cache.answers(bench.drive.track(0), 1024, 2))
    asked = [one.request.sectors if one.request else 0 for one in (first, second)]
    yield CLAIMS.judged("B-7.2.2 first", float(asked[0]), f"{asked[0] - 2048} of them are kept")
    yield CLAIMS.judged(
        "B-7.2.2 second", float(asked[1]), f"{second.cached} from the cache", shape=second.cached == 83
    )
    raw = {kb: float(bench.raw(0, sectors_of(kb)).mean()) for kb in (1, 16, *LARGE_KB)}
    uncached = {kb: float(bench.partition(0, kb).mean()) for kb in LARGE_KB}
    with_cache = {kb: float(bench.cached(0, kb)[0].mean()) for kb in raw}
    more = np.mean([uncached[kb] - raw[kb] for kb in LARGE_KB])
    yield CLAIMS.judged("B-F7.5 uncached", float(more), "zone 0; 256 KB to 1 MB", missed=CHANGE_OF_TRACKS)
    more = np.mean([with_cache[kb] - raw[kb] for kb in LARGE_KB])
    small = with_cache[1] < raw[1] and with_cache[16] < raw[16]
    note = f"1 KB {number(with_cache[1])} ms, raw {number(raw[1])}"
    yield CLAIMS.judged("B-F7.5 cached", float(more), note, shape=small)
    _, _, hits = bench.cached(0, 1)
    yield CLAIMS.judged("B-F7.5 hits", 100 * hits, "one miss a track of 89.5 KB")
    times, sectors, _ = bench.cached(0, 512)
    five, six = times[sectors == 5 * 179], times[sectors == 6 * 179]
    share = 100 * len(five) / (len(five) + len(six))
    yield CLAIMS.judged("B-F7.6 split", share, "by arithmetic 0.28: 1,024 sectors are 5.72 tracks")
    below = float(np.median(five)) < float(np.median(bench.raw(0, 1024)))
    note = f"medians; five tracks are faster than raw: {yes(below)}"
    yield CLAIMS.judged("B-F7.6 apart", float(np.median(six) - np.median(five)), note, shape=below)


def written_tracks(bench: Bench) -> Iterator[Claim]:
    """B-F7.7, B-F7.8."""
    track = bench.drive.track(0)
    ten, more, eleven = (
        float(np.median(bench.raw(0, n, write=True))) for n in (10 * track, 10 * track + 1, 11 * track)
    )
    yield CLAIMS.judged("B-F7.7 ten", ten, "zone 0, without a seek")
    yield CLAIMS.judged("B-F7.7 eleven", eleven, "zone 0, without a seek")
    yield CLAIMS.judged("B-F7.7 sector", more - ten, "10 tracks and a sector against 10")
    raw = bench.raw(0, 2048, write=True)
    wide = bench.raw(0, 2048, write=True, **WIDE)
    low, high = source.RAW_WRITES_MS
    inside = 100 * float(np.mean((raw >= low) & (raw <= high)))
    yield CLAIMS.judged("B-F7.8 raw", inside, _range(raw))
    slow = "the model's platter, whose changes of tracks take 1 ms each, is nearly as slow as Fast SCSI-2"
    yield CLAIMS.judged("B-F7.8 wide", float(np.median(wide) / np.median(raw)), _range(wide), missed=slow)
    inner = [bench.partition(11, 1024, write=True), bench.raw(11, 2048, write=True)]
    later = float(np.quantile(inner[0], 0.9) - np.quantile(inner[1], 0.9))
    note = "blocks of a partition against aligned ones"
    missed = (
        "the rule of writes loses one revolution beyond whole tracks, aligned or not; why the drive loses "
        "another one is unknown to the thesis too"
    )
    yield CLAIMS.judged("B-F7.8 unaligned", later, note, missed=missed)


def _range(times: np.ndarray) -> str:
    return f"{number(times.min())} to {number(times.max())} ms, mean {number(times.mean())}"


def yes(holds: bool) -> str:
    """A word for the notes."""
    return "yes" if holds else "no"
