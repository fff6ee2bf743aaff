"""Results of fio: `--output-format=json` and `json+`.

JSON+ has the histogram of response times (`bins`): 64 bins of equal width in each power of two, which fio
names by their middle. JSON has percentiles of the same bins only. Jobs of one name are one class; a class
that reads and writes is two, `NAME-read` and `NAME-write`.
"""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from weir.derive import QUANTILES
from weir.errors import InputError
from weir.imported import fio_jobs, text
from weir.imported.outcome import MEASURES, ClassOutcome, Histogram, Outcome, figures, has_quantile

#: Most requests of a bin.
MOST_REQUESTS = 1 << 53
#: Width of a bin relative to its lower end (`FIO_IO_U_PLAT_BITS` in fio's stat.h).
BIN_WIDTH = 1 / 64
DIRECTIONS = ("read", "write", "trim")
#: Without a wish, the first that has percentiles: fio writes those of `lat` where `lat_percentiles=1`.
PREFERRED = ("lat", "clat")
_AGAIN = "run fio again with --output-format=json+"
#: Options that say what a job does, in the order in which they are shown.
_SAID = (
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "bssplit",
    "rwmixread",
    "iodepth",
    "rate",
    "rate_iops",
    "ioengine",
)


def is_fio(head: str) -> bool:
    """Whether a text is JSON of fio, with or without fio's notes before it."""
    return '"fio version"' in head[:65536]


def read(path: Path, measure: str | None = None) -> Outcome:
    """Reads the result of one call of fio.

    Args:
        path: the file.
        measure: lat, clat or slat; the first of `PREFERRED` that the file has percentiles of if None.

    Raises:
        InputError: the file is no JSON of fio, or has no response times of this measure.
    """
    document = _document(path)
    entries = list(_entries(document, path))
    shared = _object(document, "global options")
    by_name: dict[tuple[str, str], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for entry in entries:
        for direction in DIRECTIONS:
            part = entry.get(direction)
            if isinstance(part, dict) and text.whole(part.get("total_ios")) > 0:
                by_name.setdefault((str(entry["jobname"]), direction), []).append((entry, part))
    if not by_name:
        raise InputError(
            path, "no job of it completed a request", "is the run complete? look at fio's own output"
        )
    chosen = measure or _measure(part for parts in by_name.values() for _, part in parts)
    names = [name for name, _ in by_name]
    unknown: list[str] = []
    classes = []
    for (name, direction), parts in by_name.items():
        title = name if names.count(name) == 1 else f"{name}-{direction}"
        classes.append(_class(title, direction, parts, chosen, shared, path, unknown))
    runtimes = [text.whole(part.get("runtime")) for parts in by_name.values() for _, part in parts]
    return Outcome(
        files=(path,),
        program=str(document["fio version"]).replace("fio-", "fio "),
        form="fio JSON+" if all(one.histogram for one in classes) else "fio JSON",
        measure=chosen,
        classes=tuple(classes),
        duration_s=max(max(runtimes) / 1e3, 1e-3),
        began_s=_began(document, max(runtimes)),
        unknown=tuple(dict.fromkeys(unknown)),
        broken=_broken(entries),
    )


def _document(path: Path) -> dict[str, Any]:
    content = text.read(path)
    # fio writes its notes to the same file, before the object: "note: both iodepth >= 1 and ...".
    lines = content.splitlines(keepends=True)
    first = next((place for place, line in enumerate(lines) if line.startswith("{")), 0)
    body = "".join(lines[first:])
    try:
        document, end = text.json_object(body)
    except ValueError as error:
        raise InputError(
            path, f"is not whole JSON of fio ({error})", "was fio interrupted? run it again"
        ) from error
    if "{" in body[end:]:
        problem = "holds several JSON objects (of --status-interval, or appended to one file)"
        raise InputError(path, problem, "keep the last of one call of fio, each call in a file of its own")
    if not isinstance(document, dict) or "fio version" not in document:
        raise InputError(path, "field `fio version` is missing: it is no JSON of fio", _AGAIN)
    return document


def _entries(document: dict[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The jobs; of several hosts (`--client`) those of each, without fio's sum of them."""
    name = "client_stats" if "client_stats" in document else "jobs"
    entries = document.get(name)
    if not isinstance(entries, list) or not entries:
        raise InputError(path, f"field `{name}` is {entries!r}, not a list of jobs", _AGAIN)
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("jobname"), str):
            raise InputError(path, f"field `{name}` has an entry without `jobname`", _AGAIN)
        if name == "jobs" or entry["jobname"] != "All clients":
            yield entry


def _measure(parts: Iterable[dict[str, Any]]) -> str:
    parts = list(parts)
    for name in PREFERRED:
        if all(_object(_object(part, f"{name}_ns"), "percentile") for part in parts):
            return name
    return "clat"


def _class(
    name: str,
    direction: str,
    parts: list[tuple[dict[str, Any], dict[str, Any]]],
    measure: str,
    shared: dict[str, Any],
    path: Path,
    unknown: list[str],
) -> ClassOutcome:
    latencies = [_latency(part, measure, path, name) for _, part in parts]
    requests = sum(text.whole(one.get("N")) for one in latencies)
    bins = [one.get("bins") for one in latencies]
    histogram = None
    if all(isinstance(one, dict) and one for one in bins):
        histogram = _histogram(bins, latencies, measure, path, name)
        if histogram.n != requests:
            problem = f"job `{name}`: `bins` of `{measure}_ns` hold {histogram.n} requests, `N` is {requests}"
            raise InputError(path, problem, "was the file changed? " + _AGAIN)
        quantiles = {key: histogram.quantile_ns(q) for key, q in QUANTILES.items()}
    elif len(latencies) == 1:
        quantiles = _percentiles(latencies[0], requests)
        missing = [
            key
            for key, value in quantiles.items()
            if value is None and has_quantile(requests, QUANTILES[key])
        ]
        if missing:
            listed = ", ".join(missing)
            unknown.append(
                f"class {name}: fio's percentile_list has no {listed}, and there is no histogram (json+)"
            )
        else:
            unknown.append(f"class {name}: percentiles only, without a histogram (json+): no distribution")
    else:
        quantiles = {}
        unknown.append(
            f"class {name}: {len(latencies)} jobs have percentiles of their own, which cannot be joined "
            "without a histogram: no percentile (json+ or group_reporting has them)"
        )
    runtime_s = max(text.whole(part.get("runtime")) for _, part in parts) / 1e3
    options = shared | _object(parts[0][0], "job options")
    return ClassOutcome(
        name=name,
        workload=", ".join(f"{key} {options[key]}" for key in _SAID if key in options) or "unknown",
        clients=sum(_numjobs(entry, shared, len(parts)) for entry, _ in parts),
        engine="fio",
        figures=figures(
            requests=requests,
            mean_ns=sum(_number(one, "mean") * text.whole(one.get("N")) for one in latencies)
            / max(requests, 1),
            max_ns=max(_number(one, "max") for one in latencies),
            quantiles_ns=quantiles,
            size_bytes=sum(text.whole(part.get("io_bytes")) for _, part in parts),
            seconds=runtime_s,
            completed=sum(text.whole(part.get("total_ios")) for _, part in parts),
        ),
        histogram=histogram,
        medium=str(options.get("filename") or options.get("directory") or ""),
        rate_per_s=_rate_per_s(options, direction, path),
    )


def _latency(part: dict[str, Any], measure: str, path: Path, name: str) -> dict[str, Any]:
    found = _object(part, f"{measure}_ns")
    if not text.whole(found.get("N")):
        known = [one for one in MEASURES if text.whole(_object(part, f"{one}_ns").get("N"))]
        remedy = f"name one that it has with --latency: {', '.join(known)}" if known else _AGAIN
        raise InputError(path, f"job `{name}` has no `{measure}_ns`", remedy)
    return found


def _histogram(
    bins: list[dict[str, int]], latencies: list[dict[str, Any]], measure: str, path: Path, name: str
) -> Histogram:
    counts: dict[float, int] = {}
    # The middle of a bin may lie outside of what was measured: fio keeps the exact ends apart.
    low = min(_number(one, "min", -math.inf) for one in latencies)
    high = max(_number(one, "max", math.inf) for one in latencies)
    try:
        for of_job in bins:
            for key, count in of_job.items():
                value = min(max(float(key), low), high)
                if not 0 <= count < MOST_REQUESTS or not math.isfinite(value):
                    raise ValueError(f"{count} requests of {key} ns")
                counts[value] = counts.get(value, 0) + int(count)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            path, f"job `{name}`: `bins` of `{measure}_ns` holds no counts ({error})", _AGAIN
        ) from error
    return Histogram.of(counts, BIN_WIDTH)


def _percentiles(latency: dict[str, Any], requests: int) -> dict[str, float | None]:
    given = _object(latency, "percentile")
    return {
        key: _number(given, f"{q * 100:.6f}")
        if f"{q * 100:.6f}" in given and has_quantile(requests, q)
        else None
        for key, q in QUANTILES.items()
    }


def _numjobs(entry: dict[str, Any], shared: dict[str, Any], entries: int) -> int:
    """Processes of an entry: with `group_reporting` it stands for all of `numjobs`."""
    if entries > 1:
        return 1
    options = shared | _object(entry, "job options")
    given = str(options.get("numjobs", 1))
    is_number = re.fullmatch("[0-9]{1,9}", given) is not None
    return int(given) if is_number and "group_reporting" in options else 1


def _rate_per_s(options: dict[str, Any], direction: str, path: Path) -> float | None:
    """The limit of each process in one direction, by `rate_iops`, or by `rate` where all have one size."""

    def given(name: str, *others: str) -> int | None:
        value = next((str(options[one]) for one in (name, *others) if one in options), "")
        # Read, write and trim; what is left out is that of reads.
        parts = value.split(",")
        at = DIRECTIONS.index(direction)
        part = parts[at].strip() if at < len(parts) else parts[0].strip()
        try:
            return fio_jobs.size_bytes(fio_jobs.Option(name, value, path, 0, False), part) or None
        except InputError:
            return None

    if iops := given("rate_iops"):
        return float(iops)
    has_one_size = not {"bssplit", "bsrange", "blocksize_range"} & options.keys()
    is_given = bool({"bs", "blocksize"} & options.keys())
    size_bytes = (given("bs", "blocksize") if is_given else 4096) if has_one_size else None
    bytes_per_s = given("rate")
    return bytes_per_s / size_bytes if bytes_per_s and size_bytes else None


def _began(document: dict[str, Any], runtime_ms: int) -> float | None:
    """When the jobs began: fio notes when they ended."""
    ended_ms = document.get("timestamp_ms")
    return (ended_ms - runtime_ms) / 1e3 if isinstance(ended_ms, int) else None


def _broken(entries: list[dict[str, Any]]) -> str:
    return "; ".join(
        f"fio reported error {entry.get('error') or entry.get('first_error')} in job {entry['jobname']}"
        + (f", {entry['total_err']} requests failed" if text.whole(entry.get("total_err")) else "")
        for entry in entries
        if text.whole(entry.get("error")) or text.whole(entry.get("total_err"))
    )


def _object(of: dict[str, Any], name: str) -> dict[str, Any]:
    """A field that is an object; empty if it is absent or something else."""
    value = of.get(name)
    return value if isinstance(value, dict) else {}


def _number(of: dict[str, Any], name: str, absent: float = math.nan) -> float:
    return text.number(of.get(name), absent)
