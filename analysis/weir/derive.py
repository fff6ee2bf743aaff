"""`metrics.json`: the metrics of one run, computed from its tables and its classes.

Derived data: it can be deleted and computed again at any time. Which requests tell of responses is
`tables.is_sample`; offered load and arrivals are of those asked in the measured interval, and throughput of
what completed in it, whenever it was asked for, so that overload does not flatter it.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from weir import __version__, metrics, steady_state
from weir.documents import FORMAT, field, read_document, write_text
from weir.errors import DamagedError, InputError
from weir.load import RUN_AGAIN, AppClass, Run
from weir.manifest import METRICS, seal, unseal
from weir.tables import is_sample, response_ms, scan_block, scan_requests

#: Raised when a definition changes, so that a `metrics.json` of the older definition is computed again.
# From 4 on the file carries a checksum of itself and of the manifest of the files that it was computed from.
DEFINITIONS = 5
#: The response quantiles that are kept of every run.
QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999}
#: The interval in which arrivals are counted for burstiness.
BURST_INTERVAL_MS = 100
UNBOUNDED = "unbounded"
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
    requests = (
        scan_requests(run)
        .select(
            "class", "client", "size_bytes", "intended_ns", "completed_ns", "deadline_ns", "served_ns",
            "status", "warmup",
        )
        .with_columns(response_ms(), sample=is_sample(run))
    )  # fmt: skip
    requests = _collect(requests, run, "requests.parquet")
    _check_times(requests, run.path / "requests.parquet")
    known = {c.name for c in run.classes}
    for name in requests["class"].unique():
        if name not in known:
            raise InputError(
                run.path / "requests.parquet",
                f"column `class` holds {name!r}, run.json has {', '.join(sorted(known))}",
                "remove this run's folder and run the study again",
            )
    classes = {
        c.name: _class_metrics(run, c, requests.filter(pl.col("class") == c.name)) for c in run.classes
    }
    whole = _whole_run(run, classes)
    for app_class in run.classes:
        _judge(app_class, classes[app_class.name], requests.filter("sample"))
    return {"classes": classes, "devices": _devices(run), "run": whole}


def _summarised(run: Run) -> dict[str, Any]:
    """The metrics of a simulated run of which no request was kept: the simulator's own counts and quantiles.

    What needs every request (fairness among clients, burstiness, how far an objective was attained by
    request) has no value.
    """
    path = run.path / "summary.json"
    document = read_document(path, "remove this run's folder and simulate it again")
    summary = _decode(field(document, path, "classes", dict))
    classes = {}
    for app_class in run.classes:
        if app_class.name not in summary:
            raise InputError(path, f"has no class {app_class.name!r}", "simulate the run again")
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
    path = run.path / METRICS
    document = None if fresh else _kept(run)
    if document is not None:
        return {part: _decode(field(document, path, part, dict)) for part in ("classes", "devices", "run")}
    computed = run_metrics(run)
    if keep:
        header = {"format": FORMAT, "definitions": DEFINITIONS, "weir": __version__, "id": run.id}
        header |= {"manifest": run.manifest, "objectives": _objectives(run)}
        try:
            write_text(path, seal(json.dumps(header | _encode(computed), indent=2, allow_nan=False)))
        except PermissionError:
            pass
        except OSError as error:
            raise InputError(
                path, f"cannot be written ({error.strerror})", "make room on the disk"
            ) from error
    return computed


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


def _check_times(requests: pl.DataFrame, path: Path) -> None:
    for first, then in _ORDER:
        wrong = (requests[then] < requests[first]).fill_null(value=False).arg_true()
        if wrong.len():
            row = int(wrong[0])
            before, after = requests[first][row], requests[then][row]
            problem = f"row {row}: column `{then}` is {after}, before `{first}` ({before})"
            raise DamagedError(path, problem, RUN_AGAIN)


def _class_metrics(run: Run, app_class: AppClass, requests: pl.DataFrame) -> dict[str, Any]:
    low, high = run.measured_ns
    measured_s = (high - low) / 1e9
    measured = requests.filter(~pl.col("warmup"))
    ok = (pl.col("status") == 0) & pl.col("completed_ns").is_not_null()
    in_window = requests.filter(ok & (pl.col("completed_ns") >= low) & (pl.col("completed_ns") < high))
    sampled = requests.filter("sample")
    # Requests of one instant keep the order of the table: autocorrelation depends on it.
    response = sampled.sort("intended_ns", maintain_order=True)["response_ms"].to_numpy()
    per_client = np.bincount(
        in_window["client"].to_numpy(),
        weights=in_window["size_bytes"].to_numpy(),
        # A client that was starved counts, as a zero.
        minlength=app_class.clients,
    )
    interval_ns = BURST_INTERVAL_MS * 1_000_000
    arrivals = metrics.counts(measured["intended_ns"].to_numpy(), interval_ns, (low, high))
    served = sampled.filter(ok & pl.col("served_ns").is_not_null())
    queueing = (served["served_ns"] - served["intended_ns"]).to_numpy() / 1e6
    service = (served["completed_ns"] - served["served_ns"]).to_numpy() / 1e6
    return {
        "requests": sampled.height,
        "failed": sampled.filter(pl.col("status") != 0).height,
        "unfinished": sampled["completed_ns"].null_count(),
        "response_mean_ms": metrics.mean(response),
        **{f"response_{name}_ms": metrics.quantile(response, q) for name, q in QUANTILES.items()},
        "response_max_ms": metrics.quantile(response, 1.0),
        **_steadiness(response),
        "queueing_mean_ms": metrics.mean(queueing),
        "service_mean_ms": metrics.mean(service),
        "deadlines": sampled["deadline_ns"].count(),
        "deadline_miss_share": metrics.deadline_miss_share(
            _floats(sampled["completed_ns"]), _floats(sampled["deadline_ns"]), sampled["status"].to_numpy()
        ),
        "offered_mb_s": metrics.throughput_mb_s(measured["size_bytes"].to_numpy(), measured_s)
        if measured_s > 0
        else None,
        **_rates(app_class, in_window, measured_s),
        "jain_clients": metrics.jain_index(per_client),
        "arrival_peak_to_mean": metrics.peak_to_mean(arrivals),
        "arrival_dispersion": metrics.index_of_dispersion(arrivals),
    }


def _steadiness(response: np.ndarray) -> dict[str, Any]:
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


def _rates(app_class: AppClass, in_window: pl.DataFrame, measured_s: float) -> dict[str, Any]:
    # A benchmark of single accesses has no interval for rates to be of: it takes as long as they take. Nor
    # has a simulation that was given up in the warm-up.
    if app_class.engine == "access" or measured_s == 0:
        return {"throughput_mb_s": None, "requests_per_s": None}
    return {
        "throughput_mb_s": metrics.throughput_mb_s(in_window["size_bytes"].to_numpy(), measured_s),
        "requests_per_s": in_window.height / measured_s,
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


def _judge(app_class: AppClass, values: dict[str, Any], requests: pl.DataFrame | None) -> None:
    """Adds `objective_value`, `objective_limit`, `objective_attained` and what goes with the objective."""
    objective = app_class.objective or {}
    value = limit = error = within = None
    upper = True
    if "response_ms" in objective:
        q, limit = float(objective["response_ms"]["quantile"]), float(objective["response_ms"]["at_most"])
        if requests is None:
            value = values.get(f"response_p{q * 100:g}_ms".replace(".", ""))
        else:
            response = requests.filter(pl.col("class") == app_class.name)["response_ms"].to_numpy()
            value, within = metrics.quantile(response, q), metrics.share_within(response, limit)
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
    low, high = run.window_ns
    rows = _collect(frame.filter(pl.col("op").is_in(["read", "write"])), run, "block.parquet")
    # Where a source did not see the queueing, the request is there from the first time that it did see.
    rows = rows.with_columns(there_ns=pl.coalesce("queued_ns", "inserted_ns", "issued_ns"))
    # Hosts call their disks alike.
    rows = rows.with_columns(device=pl.concat_str(["host", "device"], separator=":", ignore_nulls=True))
    devices = {}
    for device in sorted(rows["device"].unique()):
        of_device = rows.filter(pl.col("device") == device)
        seen = of_device.drop_nulls(["there_ns", "issued_ns", "completed_ns"])
        there, issued, completed = (seen[n].to_numpy() for n in ("there_ns", "issued_ns", "completed_ns"))
        split = seen.filter(
            pl.col("queued_ns").is_not_null() & (pl.col("queued_ns") >= low) & (pl.col("queued_ns") < high)
        )
        queueing = (split["issued_ns"] - split["queued_ns"]).to_numpy() / 1e6
        service = (split["completed_ns"] - split["issued_ns"]).to_numpy() / 1e6
        done = seen.filter((pl.col("completed_ns") >= low) & (pl.col("completed_ns") < high))
        devices[device] = {
            "requests": of_device.height,
            "lost": of_device["completed_ns"].null_count(),
            "failed": of_device.filter(pl.col("status") != 0).height,
            "queueing_mean_ms": metrics.mean(queueing),
            "queueing_p95_ms": metrics.quantile(queueing, 0.95),
            "service_mean_ms": metrics.mean(service),
            "service_p95_ms": metrics.quantile(service, 0.95),
            "utilisation": metrics.utilisation(issued, completed, run.window_ns),
            "work_conservation": metrics.work_conservation(there, issued, completed, run.window_ns),
            "mean_depth": metrics.mean_number(issued, completed, run.window_ns),
            "mean_waiting": metrics.mean_number(there, issued, run.window_ns),
            "throughput_mb_s": metrics.throughput_mb_s(done["size_bytes"].to_numpy(), run.duration_s),
            "requests_per_s": done.height / run.duration_s,
        }
    return devices


def _floats(column: pl.Series) -> np.ndarray:
    """Times as floats with NaN for null: exact to 2^53 ns, which is 104 days."""
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _encode(value: Any) -> Any:
    """JSON has no infinity: it is written as a word, never as a missing value."""
    if isinstance(value, dict):
        return {name: _encode(part) for name, part in value.items()}
    return UNBOUNDED if isinstance(value, float) and math.isinf(value) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _decode(part) for name, part in value.items()}
    return math.inf if value == UNBOUNDED else value
