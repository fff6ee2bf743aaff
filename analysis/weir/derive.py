"""`metrics.json`: the metrics of one run, computed from its tables and its classes.

Derived data: it can be deleted and computed again at any time. Which requests tell of responses is
`tables.is_sample`; offered load and arrivals are of those asked in the measured interval, and throughput of
what completed in it, whenever it was asked for, so that overload does not flatter it.
"""

import json
import math
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl

from weir import __version__, class_totals, device_totals, metrics, steady_state
from weir.class_totals import ClassTotals
from weir.device_totals import DeviceTotals
from weir.distribution import Distribution
from weir.documents import FORMAT, field, read_document, write_text
from weir.errors import DamagedError, InputError
from weir.load import RUN_AGAIN, AppClass, Run
from weir.manifest import METRICS, seal, unseal
from weir.series import Series
from weir.tables import in_parts, in_windows, is_sample, response_ms, scan_block, scan_requests

#: Raised when a definition changes, so that a `metrics.json` of the older definition is computed again.
# From 4 on the file carries a checksum of itself and of the manifest of the files that it was computed from.
DEFINITIONS = 5
#: The response quantiles that are kept of every run.
QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999}
UNBOUNDED = "unbounded"
#: While it is set, no `metrics.json` is read or written; a notebook's kernel inherits it.
FROM_TABLES_VARIABLE = "WEIR_METRICS_FROM_TABLES"
#: Runs from which on several processes compute metrics sooner than one: each takes a second to start.
FEWEST_IN_PARALLEL = 500
RUNS_AT_ONCE = 16
_SIMULATE_AGAIN = "remove this run's folder and simulate it again"
#: Metrics of a class that no summary can give.
NEED_REQUESTS = (
    "jain_clients", "arrival_peak_to_mean", "arrival_dispersion", "effective_requests", "drift_ratio",
    "drift_p", "response_p95_beyond", "response_p99_beyond", "response_p999_beyond",
)  # fmt: skip


def run_metrics(run: Run) -> dict[str, Any]:
    """Computes the metrics of a valid run.

    Returns:
        `classes` (name -> metric -> value), `devices` (name -> metric -> value; empty without a block
        table) and `run` (metrics of the run as a whole). None: no value. Infinite: not bounded by what was
        observed.

    Raises:
        InputError: a table is absent or damaged, or names a class that the run does not have.
    """
    if not (run.path / "requests.parquet").exists() and (run.path / "summary.json").exists():
        return _summarised(run)
    totals = _class_totals(run)
    classes = {c.name: _class_metrics(run, c, totals[c.name]) for c in run.classes}
    whole = _whole_run(run, classes)
    for app_class in run.classes:
        _judge(app_class, classes[app_class.name], totals[app_class.name])
    return {"classes": classes, "devices": _devices(run), "run": whole}


def _summarised(run: Run) -> dict[str, Any]:
    """The metrics of a run of which only a summary was kept, by the simulator or another program.

    What needs every request (fairness among clients, burstiness, how far an objective was attained by
    request) has no value.
    """
    path = run.path / "summary.json"
    again = "remove the study's folder and import its files again" if run.imported else _SIMULATE_AGAIN
    document = read_document(path, again)
    summary = _decode(field(document, path, "classes", dict))
    classes = {}
    for app_class in run.classes:
        if app_class.name not in summary:
            raise InputError(path, f"has no class {app_class.name!r}", again)
        values = dict.fromkeys(NEED_REQUESTS) | summary[app_class.name]
        classes[app_class.name] = values
    whole = _whole_run(run, classes)
    for app_class in run.classes:
        _judge(app_class, classes[app_class.name], None)
    return {"classes": classes, "devices": {}, "run": whole}


def metrics_of(run: Run, *, fresh: bool = False, keep: bool = True) -> dict[str, Any]:
    """The metrics of a run: from its `metrics.json` if that is current, else computed and kept there.

    Args:
        run: a valid run.
        fresh: compute them even if the file is current.
        keep: write the file; where the folder cannot be written (results of another user) it is left.

    Raises:
        InputError: as `run_metrics`.
        DamagedError: the file is damaged, or a table is.
    """
    if FROM_TABLES_VARIABLE in os.environ:
        if run.path not in _computed:
            _computed[run.path] = run_metrics(run)
        return _computed[run.path]
    path = run.path / METRICS
    document = None if fresh else _kept(run)
    if document is not None:
        return {part: _decode(field(document, path, part, dict)) for part in ("classes", "devices", "run")}
    computed = run_metrics(run)
    if keep:
        try:
            write_text(path, as_text(run, computed))
        except PermissionError:
            pass
        except OSError as error:
            raise InputError(
                path, f"cannot be written ({error.strerror})", "make room on the disk"
            ) from error
    return computed


def as_text(run: Run, computed: dict[str, Any]) -> str:
    """What `metrics.json` holds: the metrics that `run_metrics` computed of a run, and a checksum."""
    header = {"format": FORMAT, "definitions": DEFINITIONS, "weir": __version__, "id": run.id}
    header |= {"manifest": run.manifest, "objectives": _objectives(run)}
    return seal(json.dumps(header | _encode(computed), indent=2, allow_nan=False))


_computed: dict[Path, dict[str, Any]] = {}


@contextmanager
def from_tables() -> Iterator[None]:
    """Within it, metrics are computed from tables, once; no `metrics.json` is read or written."""
    before = os.environ.get(FROM_TABLES_VARIABLE)
    os.environ[FROM_TABLES_VARIABLE] = "1"
    try:
        yield
    finally:
        _computed.clear()
        if before is None:
            del os.environ[FROM_TABLES_VARIABLE]


def keep_metrics(runs: Sequence[Run], *, fresh: bool = False, workers: int = 1) -> Iterator[Run]:
    """Computes the metrics of runs that have no `metrics.json`; yields each run when its file is written.

    Args:
        runs: valid runs.
        fresh: compute those of all runs.
        workers: processes, of which more than one are started for `FEWEST_IN_PARALLEL` runs or more.

    Raises:
        InputError: as `run_metrics`.
        DamagedError: a table is damaged.
    """
    wanted = [run for run in runs if fresh or not (run.path / METRICS).exists()]
    if workers < 2 or len(wanted) < FEWEST_IN_PARALLEL:
        yield from map(_keep, wanted)
        return
    # Not by fork: the threads of polars do not survive it.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_keep, wanted, chunksize=RUNS_AT_ONCE)


def _keep(run: Run) -> Run:
    metrics_of(run, fresh=True)
    return run


def _objectives(run: Run) -> dict[str, Any]:
    """The objectives of the run: those of the plan may change later."""
    return {c.name: c.objective for c in run.classes}


def _kept(run: Run) -> dict[str, Any] | None:
    """The content of `metrics.json`; None if absent or computed from other files or definitions."""
    path = run.path / METRICS
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", "check its permissions") from error
    parts = unseal(text)
    if parts is None:
        if _is_of_older_definitions(text):
            return None
        problem = "is damaged: its checksum does not match its content"
        raise DamagedError(path, problem, "remove the file: it is computed again")
    document = json.loads(parts[0])
    expected = {
        "definitions": DEFINITIONS, "id": run.id, "manifest": run.manifest, "objectives": _objectives(run),
    }  # fmt: skip
    if any(document.get(name) != value for name, value in expected.items()):
        return None
    # The checksum of the manifest says of which files; without one only times do.
    return document if run.manifest is not None or _is_newest(run) else None


def _is_of_older_definitions(text: str) -> bool:
    try:
        document = json.loads(text)
    except ValueError:
        return False
    version = document.get("definitions") if isinstance(document, dict) else None
    return isinstance(version, int) and version < DEFINITIONS


def _is_newest(run: Run) -> bool:
    try:
        written = (run.path / METRICS).stat().st_mtime_ns
        sources = [
            run.path / name for name in ("run.json", "requests.parquet", "summary.json", "block.parquet")
        ]
        return all(written >= source.stat().st_mtime_ns for source in sources if source.exists())
    except FileNotFoundError:
        return False


def _collect(frame: pl.LazyFrame, run: Run, name: str) -> pl.DataFrame:
    try:
        return frame.collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        # The footer was whole, the pages are not.
        raise InputError(
            run.path / name,
            f"is damaged ({str(error).splitlines()[0]})",
            "remove this run's folder and run the study again",
        ) from error


#: No request is answered before it is asked, served before it is asked, or answered before it is served.
_ORDER = (("intended_ns", "completed_ns"), ("intended_ns", "served_ns"), ("served_ns", "completed_ns"))


def _class_totals(run: Run) -> dict[str, ClassTotals]:
    """The totals of each class, with quantiles: one pass over the requests, or two of a long run."""
    path = run.path / "requests.parquet"
    requests = scan_requests(run)
    totals = {c.name: ClassTotals(run, c) for c in run.classes}
    wrong = pl.any_horizontal(_is_before(then, first) for first, then in _ORDER).alias("wrong")
    for window in in_windows(requests, path, "intended_ns"):
        frame = _collect(window.select(*class_totals.columns(run), wrong), run, path.name)
        if frame["wrong"].any():
            _report_times(requests, run)
        if frame["class"].null_count():
            _report_class(requests, run)
        rows = {column.name: column.to_numpy() for column in frame}
        for code, of_class in enumerate(totals.values()):
            of_class.add(class_totals.only(rows, rows["class"] == code))
    sample = requests.filter(is_sample(run))
    wanted = {name: _quantiles(c) for name, c in zip(totals, run.classes, strict=True)}
    distributions = {name: (of_class.series.distribution, wanted[name]) for name, of_class in totals.items()}
    _resolve(sample.select(key="class", value=response_ms()), distributions, run, path.name)
    return totals


def _quantiles(app_class: AppClass) -> list[float]:
    promise = (app_class.objective or {}).get("response_ms")
    return [*QUANTILES.values(), *([float(promise["quantile"])] if promise else [])]


def _resolve(
    frame: pl.LazyFrame, distributions: dict[str, tuple[Distribution, list[float]]], run: Run, table: str
) -> None:
    """Gives distributions the values from which these quantiles are taken.

    Args:
        frame: `key` of a distribution, and `value`, of all rows.
        distributions: by key, with the quantiles.
        run: the run.
        table: the name of its file.
    """
    bins = [
        (key, low, high)
        for key, (distribution, qs) in distributions.items()
        for low, high in distribution.open_bins(qs)
    ]
    if not bins:
        return
    key, value = pl.col("key"), pl.col("value")
    within = pl.any_horizontal((key == name) & (value >= low) & (value < high) for name, low, high in bins)
    found = _collect(frame.filter(within).group_by("key", "value").len().sort("key", "value"), run, table)
    for name in {name for name, _, _ in bins}:
        own = found.filter(pl.col("key") == name)
        distributions[name][0].resolve(own["value"].to_numpy(), own["len"].to_numpy().astype(np.int64))


#: No request is answered before it is asked, served before it is asked, or answered before it is served.
_ORDER = (("intended_ns", "completed_ns"), ("intended_ns", "served_ns"), ("served_ns", "completed_ns"))


def _is_before(then: str, first: str) -> pl.Expr:
    return (pl.col(then) < pl.col(first)).fill_null(value=False)


def _report_times(requests: pl.LazyFrame, run: Run) -> NoReturn:
    path = run.path / "requests.parquet"
    for first, then in _ORDER:
        row = requests.with_row_index("row").filter(_is_before(then, first)).head(1).collect()
        if row.height:
            place, after, before = row.select("row", then, first).row(0)
            problem = f"row {place}: column `{then}` is {after}, before `{first}` ({before})"
            raise DamagedError(path, problem, RUN_AGAIN)
    raise AssertionError("a time is out of order, and is not found again")


def _report_class(requests: pl.LazyFrame, run: Run) -> NoReturn:
    known = sorted(c.name for c in run.classes)
    name = requests.filter(~pl.col("class").is_in(known)).select("class").head(1).collect().item()
    raise InputError(
        run.path / "requests.parquet",
        f"column `class` holds {name!r}, run.json has {', '.join(known)}",
        "remove this run's folder and run the study again",
    )


def _class_metrics(run: Run, app_class: AppClass, totals: ClassTotals) -> dict[str, Any]:
    low, high = run.measured_ns
    measured_s = (high - low) / 1e9
    quantile = totals.series.distribution.quantile
    return {
        "requests": totals.requests,
        "failed": totals.failed,
        "unfinished": totals.unfinished,
        "response_mean_ms": totals.response.value,
        **{f"response_{name}_ms": quantile(q) for name, q in QUANTILES.items()},
        "response_max_ms": totals.series.distribution.largest if totals.requests else None,
        **_steadiness(totals.series),
        "queueing_mean_ms": totals.queueing.value,
        "service_mean_ms": totals.service.value,
        "deadlines": totals.deadlines,
        "deadline_miss_share": totals.late / totals.deadlines if totals.deadlines else None,
        "offered_mb_s": totals.offered / 1e6 / measured_s if measured_s > 0 else None,
        **_rates(app_class, totals, measured_s),
        "jain_clients": metrics.jain_index(totals.completed_by_client),
        "arrival_peak_to_mean": metrics.peak_to_mean(totals.arrivals),
        "arrival_dispersion": metrics.index_of_dispersion(totals.arrivals),
    }


def _steadiness(response: Series) -> dict[str, Any]:
    """Drift of the responses, in the order of asking, and what their tail rests on: `weir.steady_state`."""
    drift = steady_state.drift(response)
    return {
        "effective_requests": steady_state.effective_size(response),
        "drift_ratio": drift.ratio,
        "drift_p": drift.p,
        **{
            f"response_{name}_beyond": steady_state.effective_beyond(response, QUANTILES[name])
            for name in ("p95", "p99", "p999")
        },
    }


def _rates(app_class: AppClass, totals: ClassTotals, measured_s: float) -> dict[str, Any]:
    # A benchmark of single accesses has no interval for rates to be of: it takes as long as they take. Nor
    # has a simulation that was given up in the warm-up.
    if app_class.engine == "access" or measured_s == 0:
        return {"throughput_mb_s": None, "requests_per_s": None}
    return {
        "throughput_mb_s": float(totals.completed_by_client.sum()) / 1e6 / measured_s,
        "requests_per_s": totals.completed / measured_s,
    }


def _whole_run(run: Run, classes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Metrics of the run as a whole; adds each class's share of the throughput to its metrics."""
    received = [classes[c.name]["throughput_mb_s"] for c in run.classes]
    if None in received:
        for app_class in run.classes:
            classes[app_class.name]["throughput_share"] = None
        names = ("throughput_mb_s", "requests_per_s", "jain_classes", "jain_classes_weighted")
        return dict.fromkeys(names)
    parts = metrics.shares(received)
    for position, app_class in enumerate(run.classes):
        classes[app_class.name]["throughput_share"] = parts[position] if parts else None
    promised = [(c.objective or {}).get("share") for c in run.classes]
    return {
        "throughput_mb_s": sum(received),
        "requests_per_s": sum(classes[c.name]["requests_per_s"] for c in run.classes),
        "jain_classes": metrics.jain_index(received) if len(received) > 1 else None,
        "jain_classes_weighted": (
            metrics.jain_index(received, promised) if len(promised) > 1 and all(promised) else None
        ),
    }


def _judge(app_class: AppClass, values: dict[str, Any], totals: ClassTotals | None) -> None:
    """Adds `objective_value`, `objective_limit`, `objective_attained` and what goes with the objective."""
    objective = app_class.objective or {}
    value = limit = error = within = None
    upper = True
    if "response_ms" in objective:
        q, limit = float(objective["response_ms"]["quantile"]), float(objective["response_ms"]["at_most"])
        if totals is None:
            value = values.get(f"response_p{q * 100:g}_ms".replace(".", ""))
        else:
            value = totals.series.distribution.quantile(q)
            within = totals.within / totals.requests if totals.requests else None
    elif "deadline_miss_share" in objective:
        value, limit = values["deadline_miss_share"], float(objective["deadline_miss_share"])
        within = None if value is None else 1 - value
    elif "rate_mb_s" in objective or "share" in objective:
        name, metric = (
            ("share", "throughput_share") if "share" in objective else ("rate_mb_s", "throughput_mb_s")
        )
        value, limit, upper = values[metric], float(objective[name]), False
        error = None if value is None else metrics.share_error(value, limit)
    values["objective_value"], values["objective_limit"] = value, limit
    values["objective_attained"] = None if limit is None else metrics.attained(value, limit, upper)
    values["within_objective_share"], values["share_error"] = within, error


def _devices(run: Run) -> dict[str, dict[str, Any]]:
    frame = scan_block(run)
    if frame is None:
        return {}
    requests = frame.filter(pl.col("op").is_in(["read", "write"]))
    found: dict[str, DeviceTotals] = {}
    for part in in_parts(frame):
        reads_and_writes = part.filter(pl.col("op").is_in(["read", "write"]))
        rows = _collect(reads_and_writes.select(*device_totals.columns(run)), run, "block.parquet")
        for (name,), own in rows.group_by("device"):
            columns = {column.name: column.to_numpy() for column in own.drop("device")}
            found.setdefault(name, DeviceTotals(run)).add(columns)
    seconds, window = run.duration_s, run.window_ns[1] - run.window_ns[0]
    split = requests.select(*device_totals.columns(run)).filter("split")
    for names, of in (("queueing", device_totals.queueing_ms()), ("service", device_totals.service_ms())):
        distributions = {name: (getattr(totals, names), [0.95]) for name, totals in found.items()}
        _resolve(split.select(key="device", value=of), distributions, run, "block.parquet")
    return {
        name: {
            "requests": of_device.requests,
            "lost": of_device.lost,
            "failed": of_device.failed,
            "queueing_mean_ms": of_device.queueing_mean.value,
            "queueing_p95_ms": of_device.queueing.quantile(0.95),
            "service_mean_ms": of_device.service_mean.value,
            "service_p95_ms": of_device.service.quantile(0.95),
            "utilisation": of_device.busy.covered_ns / window,
            "work_conservation": (
                of_device.busy.covered_ns / of_device.present.covered_ns
                if of_device.present.covered_ns
                else None
            ),
            "mean_depth": of_device.busy.total_ns / window,
            "mean_waiting": of_device.waiting_ns / window,
            "throughput_mb_s": of_device.completed_bytes / 1e6 / seconds,
            "requests_per_s": of_device.completed / seconds,
        }
        for name, of_device in sorted(found.items())
    }


def _encode(value: Any) -> Any:
    """JSON has no infinity: it is written as a word, never as a missing value."""
    if isinstance(value, dict):
        return {name: _encode(part) for name, part in value.items()}
    return UNBOUNDED if isinstance(value, float) and math.isinf(value) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _decode(part) for name, part in value.items()}
    return math.inf if value == UNBOUNDED else value
