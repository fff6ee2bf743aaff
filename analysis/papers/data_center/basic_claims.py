"""Claims of Tables 2, 4 and 5, and Table 6: what a file system costs, alone and behind a web server."""

from collections.abc import Iterator

import polars as pl

from papers.data_center import printed
from papers.data_center.judge import judged
from papers.data_center.names import DOCUMENTS, EXT4, OPERATIONS, SIZES, STRIPED, TMPFS, document
from papers.data_center.samples import interval, ratio, sample, shown
from weir.claims import Claim
from weir.labels import number
from weir.statistics import Interval


def access(table: pl.DataFrame | None) -> Iterator[Claim]:
    """V-T2, of a table of `results.operations`."""
    for name, filesystem in STRIPED.items():
        yield from _access(table, f"V-T2 open-close {name}", "open-close", filesystem)
        for state in ("cached", "uncached"):
            for size in ("4KiB", "1MiB"):
                yield from _access(table, f"V-T2 {state} {size} {name}", f"{state}-{size}", filesystem)
    yield from _access(table, "V-T2 open-close tmpfs", "open-close", TMPFS)


def _access(table: pl.DataFrame | None, name: str, operation: str, filesystem: str) -> Iterator[Claim]:
    assert operation in OPERATIONS
    ours, local = (
        sample(table, "us", filesystem=where, **{"class": operation}) for where in (filesystem, EXT4)
    )
    if ours is None or local is None:
        return
    note = f"medians, {number(ours.mean)} by {number(local.mean)} us"
    yield from judged(name, ratio(ours, local), note)


def response(table: pl.DataFrame | None, asked: pl.DataFrame | None) -> Iterator[Claim]:
    """V-T45, of tables of `results.served` and of `results.traffic`."""
    for name, filesystem in STRIPED.items():
        for size in SIZES:
            yield from _response(table, f"V-T45 cached {size} {name}", size, filesystem)
        for size in (SIZES[0], SIZES[-1]):
            words = _from_disks(asked, size, filesystem)
            yield from _response(table, f"V-T45 uncached {size} {name}", size, filesystem, words)
    yield from _slower(table)


def _response(
    table: pl.DataFrame | None, name: str, size: str, filesystem: str, uncached: str = ""
) -> Iterator[Claim]:
    cached = not uncached
    pair = [_documents(table, "response_ms", where, size, cached=cached) for where in (filesystem, EXT4)]
    ours, local = pair
    if ours is None or local is None:
        return
    note = f"{number(ours.mean)} by {number(local.mean)} ms{uncached}"
    yield from judged(name, ratio(ours, local), note)


def _from_disks(asked: pl.DataFrame | None, size: str, filesystem: str) -> str:
    """Bytes read from the disks relative to the bytes requested from them."""
    parts = []
    for where in (filesystem, EXT4):
        levels = {"variant": document(size, where, cached=False), "filesystem": where}
        read, given = (sample(asked, metric, **levels) for metric in ("read_mb", "served_mb"))
        if read is not None and given is not None and given.mean > 0:
            parts.append(number(100 * read.mean / given.mean))
    return f"; disks read {' and '.join(parts)} % of the bytes" if parts else "; what disks read is not known"


def _slower(table: pl.DataFrame | None) -> Iterator[Claim]:
    """Uncached documents are slower, on all file systems and for all sizes."""
    found: list[tuple[Interval, str]] = []
    for filesystem in (EXT4, *STRIPED.values()):
        for size in SIZES:
            pair = (
                _documents(table, "response_ms", filesystem, size, cached=cached) for cached in (False, True)
            )
            of = ratio(*pair)
            if of is not None:
                found.append((of, f"{filesystem}, {size}"))
    if found:
        least, where = min(found, key=lambda one: one[0].estimate)
        yield from judged("V-T45 uncached slower", least, f"{where}, the least of {len(found)}")


def _documents(table: pl.DataFrame | None, metric: str, filesystem: str, size: str, *, cached: bool):
    variant = document(size, filesystem, cached=cached)
    levels = {"variant": variant, "filesystem": filesystem, "class": DOCUMENTS}
    return sample(table, metric, **levels)


def access_table(table: pl.DataFrame | None) -> pl.DataFrame:
    """Table 2 beside today's: microseconds, of the paper and of ours by turns."""
    rows = []
    for operation, (what, size) in OPERATIONS.items():
        row = {"operation": f"{what}, {size}"}
        for filesystem in _filesystems(table):
            was = printed.access_us(filesystem, operation)
            found = sample(table, "us", filesystem=filesystem, **{"class": operation})
            row[f"{filesystem}, paper (us)"] = "" if was is None else number(was)
            row[f"{filesystem} (us)"] = "" if found is None else shown(interval(found))
        rows.append(row)
    return pl.DataFrame(rows)


def documents_table(table: pl.DataFrame | None, metric: str) -> pl.DataFrame:
    """Tables 4 and 5 (`response_ms`, in us) or Table 6 (`per_s`) beside today's."""
    was_of = printed.response_us if metric == "response_ms" else printed.per_s
    scale, unit = (1000.0, "us") if metric == "response_ms" else (1.0, "1/s")
    rows = []
    for cached in (True, False):
        for size in SIZES:
            row = {"document": f"{size}, {'cached' if cached else 'not cached'}"}
            for filesystem in _filesystems(table):
                was = was_of(filesystem, size, cached=cached)
                found = _documents(table, metric, filesystem, size, cached=cached)
                row[f"{filesystem}, paper ({unit})"] = "" if was is None else number(was)
                row[f"{filesystem} ({unit})"] = "" if found is None else _scaled(interval(found), scale)
            rows.append(row)
    return pl.DataFrame(rows)


def _scaled(of: Interval, scale: float) -> str:
    ends = (None if end is None else end * scale for end in (of.low, of.high))
    low, high = ends
    return shown(Interval(of.estimate * scale, low, high, of.n, of.method))


def _filesystems(table: pl.DataFrame | None) -> list[str]:
    here = set() if table is None else set(table["filesystem"])
    every = [EXT4, TMPFS, *STRIPED.values()]
    return every + sorted(here - set(every))
