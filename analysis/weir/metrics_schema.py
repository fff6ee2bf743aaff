"""JSON Schema of `metrics.json`: every metric of a class, of a device, and of a run.

`weir.derive` computes these metrics. Names and units in figures are those of `weir.labels`.
"""

from typing import Any

from weir.derive import DEFINITIONS, UNBOUNDED
from weir.documents import FORMAT
from weir.labels import LABELS

#: Metrics that no figure shows, and what they are.
WITHOUT_LABEL = {
    "requests": "Requests whose responses count",
    "failed": "Requests that failed",
    "lost": "Block requests whose completion was not captured",
    "unfinished": "Requests that never completed",
    "deadlines": "Requests with a deadline",
    "arrival_peak_to_mean": "Largest number of arrivals in 100 ms relative to the mean",
    "arrival_dispersion": "Variance of the arrivals in 100 ms relative to the mean",
    "objective_value": "Value that the objective of the class limits",
    "objective_limit": "Limit of the objective",
    "objective_attained": "Whether the value is within the limit",
    "head_time_share": "Share of the heads' time; of simulated runs without records",
    "disk_accesses": "Disk accesses of completed requests, one for each piece that a disk serves; of "
    "simulated runs without records",
    "access_queueing_mean_ms": "Mean queueing delay of a disk access (ms); of simulated runs without records",
    "access_service_mean_ms": "Mean service time of a disk access, seek, rotation and transfer (ms); of "
    "simulated runs without records",
    "queueing_p95_ms": "95th percentile of queueing delay (ms)",
    "service_p95_ms": "95th percentile of service time (ms)",
    "mean_depth": "Mean number of requests at the device",
    "mean_waiting": "Mean number of requests in the queue",
    "jain_classes_weighted": "Jain's index over classes, relative to their reserved shares",
}
_CLASS = (
    "requests", "failed", "unfinished", "response_mean_ms", "response_p50_ms", "response_p90_ms",
    "response_p95_ms", "response_p99_ms", "response_p999_ms", "response_max_ms", "effective_requests",
    "drift_ratio", "drift_p", "response_p95_beyond", "response_p99_beyond", "response_p999_beyond",
    "queueing_mean_ms", "service_mean_ms", "deadlines", "deadline_miss_share", "offered_mb_s",
    "throughput_mb_s", "requests_per_s", "jain_clients", "arrival_peak_to_mean", "arrival_dispersion",
    "throughput_share", "objective_value", "objective_limit", "objective_attained",
    "within_objective_share", "share_error",
)  # fmt: skip
_DEVICE = (
    "requests", "lost", "failed", "queueing_mean_ms", "queueing_p95_ms", "service_mean_ms",
    "service_p95_ms", "utilisation", "work_conservation", "mean_depth", "mean_waiting",
    "throughput_mb_s", "requests_per_s",
)  # fmt: skip
_RUN = (
    "throughput_mb_s", "requests_per_s", "jain_classes", "jain_classes_weighted",
)  # fmt: skip
#: Metrics of a class that only a simulated run without records has.
_SUMMARISED = ("head_time_share", "disk_accesses", "access_queueing_mean_ms", "access_service_mean_ms")
_COUNTS = ("requests", "failed", "lost", "unfinished", "deadlines", "disk_accesses")


def schema() -> dict[str, Any]:
    """The schema of the file, as an object."""
    text = {"type": "string"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Metrics",
        "description": "Metrics of one run: `metrics.json`.",
        "type": "object",
        "properties": {
            "format": {"const": FORMAT, "description": "Version of this layout."},
            "definitions": {"const": DEFINITIONS, "description": "Version of the definitions of metrics."},
            "weir": text | {"description": "The version of weir that computed them."},
            "id": text | {"description": "The run."},
            "manifest": {
                "type": ["string", "null"],
                "description": "Checksum of the manifest of the files that they were computed from.",
            },
            "objectives": {
                "type": "object",
                "description": "Objective of each class.",
                "additionalProperties": {"type": ["object", "null"]},
            },
            "classes": _by_name("Metrics of each class.", _CLASS, _SUMMARISED),
            "devices": _by_name("Metrics of each device; empty without block requests.", _DEVICE),
            "run": {"description": "Metrics of the run as a whole."} | _metrics(_RUN),
            "checksum": text | {"description": "SHA-256 of all before this field."},
        },
        "required": [
            "format", "definitions", "weir", "id", "manifest", "objectives", "classes", "devices", "run",
            "checksum",
        ],
        "additionalProperties": False,
        "$defs": {
            "metric": {
                "description": f"null: no value. `{UNBOUNDED}`: infinity.",
                "anyOf": [{"type": ["number", "null"]}, {"const": UNBOUNDED}],
            }
        },
    }  # fmt: skip


def _by_name(description: str, names: list[str], optional: list[str] | None = None) -> dict[str, Any]:
    each = _metrics(names, optional or [])
    return {"type": "object", "description": description, "additionalProperties": each}


def _metrics(names: list[str], optional: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _metric(name) for name in [*names, *(optional or [])]},
        "required": names,
        "additionalProperties": False,
    }


def _metric(name: str) -> dict[str, Any]:
    about = {"description": LABELS[name].axis if name in LABELS else WITHOUT_LABEL[name]}
    if name in _COUNTS:
        return about | {"type": "integer", "minimum": 0}
    if name == "objective_attained":
        return about | {"type": ["boolean", "null"]}
    return about | {"$ref": "#/$defs/metric"}
