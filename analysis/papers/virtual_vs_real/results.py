"""Runs of both testbeds as pairs: quantiles of response side by side, and the parts of their difference."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import polars as pl

from weir.claims import text
from weir.documents import read_document
from weir.load import RUN_AGAIN, Run, Study
from weir.statistics import mean_interval, ratio_interval
from weir.study import class_table
from weir.tables import response_ms, scan_requests

LIVE, VIRTUAL, TESTBED = "device", "simulator", "testbed"
#: The quantiles that are compared, as class metrics.
QUANTILES = {"p50": "response_p50_ms", "p95": "response_p95_ms", "p99": "response_p99_ms"}
#: How far a live quantile may be from the virtual one, as a share of it: twice what two repetitions of a live
#: run of 1,000
#: requests differ by at the quantile.
BANDS = {"p50": 0.05, "p95": 0.05, "p99": 0.1}
#: The parts of what a live answer takes more than a virtual one, in the order in which a request meets them.
PARTS = {
    "sent_ms": "sent after its time",
    "way_ms": "the kernel's and the client's way",
    "answered_ms": "answered after the model (timer, dispatch)",
    "other_ms": "served in another order or state",
}


def of_both(study: Study) -> bool:
    """Whether a study has valid runs of both testbeds."""
    return {LIVE, VIRTUAL} <= {run.testbed for run in study.valid_runs}


def pairs(study: Study) -> Iterator[tuple[Run, Run]]:
    """Each valid live run with the virtual one that was asked the same: same levels, same repetition."""

    def key(run: Run) -> tuple[object, ...]:
        return run.repetition, *sorted((k, str(v)) for k, v in run.levels.items() if k != TESTBED)

    virtual = {key(run): run for run in study.valid_runs if run.testbed == VIRTUAL}
    for run in study.valid_runs:
        if run.testbed == LIVE and key(run) in virtual:
            yield run, virtual[key(run)]


def cell(run: Run) -> str:
    """The levels of a run but for its testbed, for readers."""
    return ", ".join(str(level) for name, level in run.levels.items() if name != TESTBED)


def is_own(run: Run) -> bool:
    """Whether the scheduler of a live run is a policy of weir's own, and not the kernel's."""
    return bool(read_document(run.path / "run.json", RUN_AGAIN).get("live", False))


def quantiles(study: Study) -> pl.DataFrame:
    """One row per pair of runs, class and quantile.

    Its columns: `cell`, `is_own`, `is_open` (an open loop), `class`, `quantile`, `repetition`,
    `live_ms`, `virtual_ms`.
    """
    table = class_table(study)
    rows = []
    for live, virtual in pairs(study):
        of = [table.filter(pl.col("run") == run.id) for run in (live, virtual)]
        open_loop = {one.name for one in live.classes if one.engine == "replay"}
        for name in of[0]["class"].to_list():
            both = [one.filter(pl.col("class") == name) for one in of]
            if any(one.is_empty() for one in both):
                continue
            for quantile, metric in QUANTILES.items():
                found = [one[metric][0] for one in both]
                if all(value is not None and np.isfinite(value) for value in found):
                    rows.append(
                        {
                            "cell": cell(live),
                            "is_own": is_own(live),
                            "is_open": name in open_loop,
                            "class": name,
                            "quantile": quantile,
                            "repetition": live.repetition,
                            "live_ms": float(found[0]),
                            "virtual_ms": float(found[1]),
                        }
                    )
    return pl.DataFrame(rows, schema=_QUANTILES)


_QUANTILES = {
    "cell": pl.String, "is_own": pl.Boolean, "is_open": pl.Boolean, "class": pl.String, "quantile": pl.String,
    "repetition": pl.Int64, "live_ms": pl.Float64, "virtual_ms": pl.Float64,
}  # fmt: skip


def side_by_side(table: pl.DataFrame) -> pl.DataFrame:
    """One row per cell and class: each quantile in virtual time, live, and live by virtual, paired.

    Args:
        table: what `quantiles` gives.
    """
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for (name, app_class, quantile), group in table.group_by(
        "cell", "class", "quantile", maintain_order=True
    ):
        row = rows.setdefault((str(name), str(app_class)), {"cell": str(name), "class": str(app_class)})
        row[f"{quantile} virtual (ms)"] = text(mean_interval(group["virtual_ms"].to_list()))
        row[f"{quantile} live (ms)"] = text(mean_interval(group["live_ms"].to_list()))
        row[f"{quantile} live / virtual"] = text(ratio_interval(group["live_ms"], group["virtual_ms"]))
    return pl.DataFrame(list(rows.values()))


def parts(study: Study) -> pl.DataFrame:
    """One row per pair of runs and class: mean responses, and the parts of their difference.

    Over all requests that were answered, the warm-up's among them, since the server counts those, too; all in
    ms:

        live_ms = virtual_ms + sent_ms + way_ms + answered_ms + other_ms

    `sent_ms` is from a request's time to its submission (the replayer's own stamps; 0 in a closed loop, whose
    requests are
    due when they are sent). The server says how long a request was with it (`other_ms` is that less the
    virtual response) and
    by how much its answers were late against its models (`answered_ms`, of all classes together). What is
    left, `way_ms`, is
    the way of requests and answers through io_uring, the block layer, loop device and FUSE. Classes of which
    the server
    counted more requests than were sent, because the kernel cut them, are left out.
    """
    rows = []
    for live, virtual in pairs(study):
        tables = [_answered(run) for run in (live, virtual)]
        for name in sorted(tables[0]["class"].unique()):
            ours, theirs = (table.filter(pl.col("class") == name) for table in tables)
            served = _served(live, name)
            if served is None or served["requests"] != ours.height or theirs.is_empty():
                continue
            live_ms, virtual_ms = float(ours["response_ms"].mean()), float(theirs["response_ms"].mean())
            sent_ms = float((ours["submitted_ns"] - ours["intended_ns"]).mean()) / 1e6
            answered_ms = float(served["late_ns"]) / 1e6
            rows.append(
                {
                    "cell": cell(live),
                    "class": name,
                    "repetition": live.repetition,
                    "live_ms": live_ms,
                    "virtual_ms": virtual_ms,
                    "sent_ms": sent_ms,
                    "way_ms": live_ms - sent_ms - served["mean_ms"] - answered_ms,
                    "answered_ms": answered_ms,
                    "other_ms": served["mean_ms"] - virtual_ms,
                }
            )
    return pl.DataFrame(rows, schema=_PARTS)


_PARTS = {
    "cell": pl.String, "class": pl.String, "repetition": pl.Int64, "live_ms": pl.Float64,
    "virtual_ms": pl.Float64, "sent_ms": pl.Float64, "way_ms": pl.Float64, "answered_ms": pl.Float64,
    "other_ms": pl.Float64,
}  # fmt: skip


def explained(table: pl.DataFrame) -> pl.DataFrame:
    """One row per cell and class: mean responses, and each part of the difference, with intervals."""
    names = {"virtual_ms": "virtual", "live_ms": "live"} | PARTS
    rows = []
    for (name, app_class), group in table.group_by("cell", "class", maintain_order=True):
        found = {
            f"{words} (ms)": text(mean_interval(group[column].to_list())) for column, words in names.items()
        }
        rows.append({"cell": name, "class": app_class} | found)
    return pl.DataFrame(rows)


def servers(studies: Iterable[Study]) -> pl.DataFrame:
    """One row per study: how late its servers answered against their models, over its live runs."""
    rows = []
    for study in studies:
        found = [
            model["service_error"]
            for run in study.valid_runs
            if run.testbed == LIVE
            for model in run.observed.get("models", {}).values()
            if model["service_error"]["count"]
        ]
        if found:
            rows.append(
                {
                    "study": study.name,
                    "runs": len(found),
                    "median (us)": f"{np.median([one['median_ns'] for one in found]) / 1e3:.0f}",
                    "worst 99th percentile (us)": f"{max(one['p99_ns'] for one in found) / 1e3:.0f}",
                    "latest (ms)": f"{max(one['max_ns'] for one in found) / 1e6:.1f}",
                }
            )
    return pl.DataFrame(rows)


def _answered(run: Run) -> pl.DataFrame:
    return scan_requests(run).with_columns(response_ms()).filter(pl.col("response_ms").is_finite()).collect()


def _served(run: Run, name: str) -> dict[str, float] | None:
    """Statistics of a class from its server: requests, mean response, mean lateness of answers."""
    for device, found in run.observed.get("live", {}).items():
        for one in (found.get("stats") or {}).get("classes", []):
            if one["name"] == name:
                error = run.observed["models"][device]["service_error"]
                return {"requests": one["requests"], "mean_ms": one["mean_ms"], "late_ns": error["mean_ns"]}
    return None


def together(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Tables of several studies as one; cells bear the study's name where there are several."""
    named = [
        table.with_columns(pl.format("{}: {}", pl.lit(name), "cell").alias("cell"))
        if len(tables) > 1
        else table
        for name, table in tables.items()
    ]
    return pl.concat(named)


def tabulated(
    tables: Mapping[str, pl.DataFrame], show: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """The tables that `show` makes of each study, below each other, with the study."""
    shown = [
        show(table).insert_column(0, pl.lit(name).alias("study"))
        for name, table in tables.items()
        if table.height
    ]
    return pl.concat(shown, how="diagonal")


def agreement(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """One row per quantile: live by virtual under weir's own policies.

    Geometric means over cells and classes, of open loops: a closed loop's requests are not the same on both
    testbeds, since each waits for the answer before it.

    Args:
        tables: what `quantiles` gives, by study.
    """
    table = together(tables).filter("is_own", "is_open")
    rows = []
    for quantile, band in BANDS.items():
        own = table.filter(pl.col("quantile") == quantile)
        if own.is_empty():
            continue
        log = (pl.col("live_ms") / pl.col("virtual_ms")).log()
        by_repetition = (
            own.group_by("repetition", maintain_order=True)
            .agg(log.mean().exp().alias("ratio"))
            .sort("repetition")
        )
        of_cell = own.group_by("cell", "class", maintain_order=True).agg(log.mean().exp().alias("ratio"))[
            "ratio"
        ]
        ratio = mean_interval(by_repetition["ratio"].to_list())
        rows.append(
            {
                "quantile": quantile,
                "live / virtual": text(ratio),
                "within": f"{band:.0%}",
                "agrees": "yes" if abs(ratio.estimate - 1) <= band else "no",
                "cells and classes": len(of_cell),
                "their ratios": f"{of_cell.min():.3f} to {of_cell.max():.3f}",
            }
        )
    return pl.DataFrame(rows)
