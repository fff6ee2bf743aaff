"""The runs of the studies as tables: what classes were answered, and what that asked of disks and network."""

from typing import Any

import polars as pl

from papers.data_center.names import OPERATIONS, RESERVED, SECOND_CLIENTS
from papers.data_center.samples import BATCHES, OF_BATCHES
from weir.errors import InputError
from weir.load import RUN_AGAIN, Run, Study
from weir.tables import scan_block, scan_requests

#: The host of the test network that has the file system mounted.
CLIENT = "client"
#: Bins of Fig. 6, in s.
BIN_S = 0.5
#: An answer of at most so many bytes within such a time did not wait for a disk's arm.
QUICK_BYTES, QUICK_MS = 65536, 3.0
_SERVED = (pl.col("status") == 0) & pl.col("completed_ns").is_not_null()


def served(study: Study | None) -> pl.DataFrame | None:
    """One row per valid run and class.

    Returns:
        `variant`, `filesystem`, `sites` (1 or 2), `repetition`, `class`; of the measured interval `per_s`
        (requests answered in a second), `mb_s` and `response_ms` (mean of those answered in it), and each in
        batches of equal time; `hot_pct`, the share of requests that hot documents took, null without any;
        `quick_pct`, of the answers of at most `QUICK_BYTES` the share that came within `QUICK_MS`, also in
        batches. None if there is no run.

    Raises:
        InputError: the requests of a run are absent or damaged.
    """
    return _table(study, _served)


def _served(run: Run) -> list[dict[str, Any]]:
    start, end = run.window_ns
    at = (pl.col("completed_ns") - start) * BATCHES // (end - start)
    response = ((pl.col("completed_ns") - pl.col("intended_ns")) / 1e6).sum()
    is_small = pl.col("size_bytes") <= QUICK_BYTES
    parts = (
        scan_requests(run)
        .filter(_SERVED & (pl.col("completed_ns") >= start) & (pl.col("completed_ns") < end))
        .group_by("class", at.alias("batch"), maintain_order=True)
        .agg(
            pl.len().alias("count"),
            pl.col("size_bytes").sum().alias("bytes"),
            response.alias("waited_ms"),
            is_small.sum().alias("small"),
            (is_small & _is_quick()).sum().alias("quick"),
        )
        .collect()
    )
    rows = []
    for one in run.classes:
        if one.clients == 0:
            continue
        every = pl.DataFrame({"batch": range(BATCHES)}, schema={"batch": pl.Int64})
        own = every.join(parts.filter(pl.col("class") == one.name), on="batch", how="left").sort("batch")
        count, size = own["count"].fill_null(0), own["bytes"].fill_null(0)
        small, quick = own["small"].fill_null(0), own["quick"].fill_null(0)
        each_s = run.duration_s / BATCHES
        rows.append(
            {
                "class": one.name,
                "hot_pct": _hot_pct(run, one.name),
                "per_s": count.sum() / run.duration_s,
                "mb_s": size.sum() / 1e6 / run.duration_s,
                "response_ms": own["waited_ms"].sum() / count.sum() if count.sum() else None,
                "quick_pct": 100 * quick.sum() / small.sum() if small.sum() else None,
                f"per_s{OF_BATCHES}": (count / each_s).to_list(),
                f"mb_s{OF_BATCHES}": (size / 1e6 / each_s).to_list(),
                f"response_ms{OF_BATCHES}": (own["waited_ms"] / own["count"]).to_list(),
                f"quick_pct{OF_BATCHES}": [
                    100 * a / b if b else None for a, b in zip(quick, small, strict=True)
                ],
            }
        )
    return rows


def _is_quick() -> pl.Expr:
    """Whether an answer came too soon to have waited for a disk's arm."""
    begun = pl.coalesce("submitted_ns", "intended_ns")
    return pl.col("completed_ns") - begun <= int(QUICK_MS * 1e6)


def _hot_pct(run: Run, name: str) -> float | None:
    """Share of a class's requests for hot documents, in %; None without hot documents."""
    for classes in (run.observed.get("hot") or {}).values():
        share = (classes.get(name) or {}).get("measured_share")
        if share is not None:
            return 100 * float(share)
    return None


def operations(study: Study | None) -> pl.DataFrame | None:
    """One row per valid run and operation of the study of access: `us`, the median, and that of batches.

    Raises:
        InputError: the requests of a run are absent or damaged.
    """
    return _table(study, _operations)


def _operations(run: Run) -> list[dict[str, Any]]:
    begun = pl.coalesce("submitted_ns", "intended_ns")
    found = (
        scan_requests(run)
        .filter(_SERVED & ~pl.col("warmup"))
        .sort("request")
        .select("class", ((pl.col("completed_ns") - begun) / 1e3).alias("us"))
        .collect()
    )
    rows = []
    for name in OPERATIONS:
        us = found.filter(pl.col("class") == name)["us"]
        if us.len():
            size = -(-us.len() // BATCHES)
            batches = [us.slice(at, size).median() for at in range(0, us.len(), size)]
            rows.append({"class": name, "us": us.median(), f"us{OF_BATCHES}": batches})
    return rows


def traffic(study: Study | None) -> pl.DataFrame | None:
    """One row per valid run: what the whole run, with its warm-up, asked of network and disks.

    Returns:
        `answered` (requests), `served_mb`, `network_mb` (received and sent by the host that has the file
        system mounted; 0 without a network), `read_mb` (from devices), `kib_each` (network and served, by
        request), `per_served` (network and served, by served), `network_mb_s`, and `read_mb_s` (from devices;
        in the measured interval where their requests were captured); None if there is no run.

    Raises:
        InputError: a run's files are absent or damaged.
    """
    return _table(study, _traffic)


def _traffic(run: Run) -> list[dict[str, Any]]:
    count, size, last_ns = (
        scan_requests(run)
        .filter(_SERVED)
        .select(pl.len(), pl.col("size_bytes").sum(), pl.col("completed_ns").max())
        .collect()
        .row(0)
    )
    path = run.path / "observed.json"
    try:
        moved = run.observed["network"]
        network = sum(moved[CLIENT][f"{way}_bytes"] for way in ("received", "sent")) if moved else 0
        read = run.observed["device_read_bytes"]
    except KeyError as error:
        raise InputError(path, f"lacks {error}", RUN_AGAIN) from error
    return [
        {
            "answered": count,
            "served_mb": size / 1e6,
            "network_mb": network / 1e6,
            "read_mb": read / 1e6,
            "kib_each": (size + network) / 1024 / count if count else None,
            "per_served": (size + network) / size if size else None,
            "read_mb_s": _read_mb_s(run, read / 1e6 / (last_ns / 1e9)) if last_ns else None,
            "network_mb_s": network / 1e6 / (last_ns / 1e9) if last_ns else None,
        }
    ]


def _read_mb_s(run: Run, whole_run: float) -> float:
    """The rate of reading in the measured interval; without a capture, that of the whole run."""
    captured = _captured(run)
    return whole_run if captured is None else captured / 1e6 / run.duration_s


def _captured(run: Run) -> int | None:
    """Bytes that devices read in the measured interval; None without a capture."""
    block = scan_block(run)
    if block is None:
        return None
    start, end = run.window_ns
    within = (pl.col("completed_ns") >= start) & (pl.col("completed_ns") < end)
    reads = block.filter(within & (pl.col("op") == "read"))
    return int(reads.select(pl.col("size_bytes").cast(pl.Int64).sum()).collect().item())


def hits(study: Study | None) -> pl.DataFrame | None:
    """One row per valid run: what memory answered, by bytes and by accesses.

    Returns:
        `hit_pct`, the share of the bytes served that did not come from a device (of the measured interval
        where the requests of devices were captured, else of the whole run; what is read ahead and never asked
        for counts as a miss, and a cache that only loses has 0); `quick_pct`, the share of the answers of at
        most `QUICK_BYTES` that came within `QUICK_MS`, an estimate of the share of accesses that hit: a busy
        host makes some hits slow. `slow_pct` is the rest of it. None if there is no run.

    Raises:
        InputError: a run's files are absent or damaged.
    """
    return _table(study, _hits)


def _hits(run: Run) -> list[dict[str, Any]]:
    start, end = run.window_ns
    within = (pl.col("completed_ns") >= start) & (pl.col("completed_ns") < end)
    asked = scan_requests(run).filter(within & _SERVED)
    size, quick_pct = (
        asked.select(
            pl.col("size_bytes").cast(pl.Int64).sum(),
            100 * _is_quick().filter(pl.col("size_bytes") <= QUICK_BYTES).mean(),
        )
        .collect()
        .row(0)
    )
    read = _captured(run)
    if read is None:
        whole = _traffic(run)[0]
        share = 1 - whole["read_mb"] / whole["served_mb"] if whole["served_mb"] else None
    else:
        share = 1 - read / size if size else None
    hit_pct = None if share is None else 100 * max(share, 0.0)
    slow_pct = None if quick_pct is None else 100 - quick_pct
    return [{"hit_pct": hit_pct, "quick_pct": quick_pct, "slow_pct": slow_pct}]


def activity(study: Study | None) -> pl.DataFrame | None:
    """One row per valid run with captured devices and bin: `second` (from the run's start), `mb_s` read.

    Raises:
        InputError: a run's table is damaged.
    """
    return _table(study, _activity)


def _activity(run: Run) -> list[dict[str, Any]]:
    block = scan_block(run)
    if block is None:
        return []
    bins = range(int((run.warmup_s + run.duration_s) / BIN_S))
    found = (
        block.filter((pl.col("op") == "read") & pl.col("completed_ns").is_not_null())
        .group_by((pl.col("completed_ns") // int(BIN_S * 1e9)).alias("bin"), maintain_order=True)
        .agg(pl.col("size_bytes").cast(pl.Int64).sum())
        .collect()
    )
    read = dict(found.iter_rows())
    return [{"second": at * BIN_S, "mb_s": read.get(at, 0) / 1e6 / BIN_S} for at in bins]


def _table(study: Study | None, rows_of: Any) -> pl.DataFrame | None:
    if study is None:
        return None
    rows = [_identity(run) | row for run in study.valid_runs for row in rows_of(run)]
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None


def _variant(run: Run) -> str:
    # The only schedulers of weir's own in these studies are those that reserve.
    is_reserved = str(run.levels.get("scheduler", "")).startswith("hds")
    return RESERVED if is_reserved else str(run.levels.get("variant", ""))


def _identity(run: Run) -> dict[str, Any]:
    return {
        "variant": _variant(run),
        "filesystem": str(run.levels.get("filesystem", "")),
        "sites": 2 if run.levels.get(SECOND_CLIENTS, 0) else 1,
        "repetition": run.repetition,
    }
