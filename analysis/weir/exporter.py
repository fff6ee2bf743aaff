"""Progress of studies and figures of block servers, for Prometheus: as a file, or over HTTP on loopback.

Values are read when they are asked for. Nothing is written into a study's folder, and no server is changed.
"""

import ipaddress
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest as as_text
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics
from prometheus_client.registry import Collector

from weir.binary_cache import BinaryCache
from weir.documents import write_text
from weir.errors import InputError
from weir.progress import Follower, Progress, be_idle
from weir.statistics import summarise
from weir.study import cell_label, objective_metric

#: File names with this ending get the text format, which the textfile collector of node_exporter reads.
TEXTFILE = ".prom"
#: Help of every metric, in the order in which they are shown.
METRICS = {
    "weir_study_runs": "Runs of a study: valid, invalid, skipped, damaged, unread, running or missing.",
    "weir_study_left_seconds": "Estimate of the time until a study is complete.",
    "weir_study_idle_seconds": "Time since a run was finished or began.",
    "weir_study_steal_ratio": "CPU steal of the last run, as a share of the wanted CPU time.",
    "weir_study_broken_rules": "Runs that are not valid because of a rule.",
    "weir_study_result": "Estimate of the metric of a class's objective over the valid runs of a cell.",
    "weir_study_result_runs": "Valid runs behind weir_study_result.",
    "weir_server_up": "Whether the process of a block server is running.",
    "weir_server_requests": "Requests done.",
    "weir_server_bytes": "Bytes of requests done.",
    "weir_server_errors": "Requests that failed.",
    "weir_server_busy_seconds": "Time with at least one request under way.",
    "weir_server_lateness_seconds": "From the end of service in the model to the answer.",
    "weir_class_requests": "Requests of a class done.",
    "weir_class_bytes": "Bytes of requests of a class done.",
    "weir_class_errors": "Requests of a class that failed.",
    "weir_class_deadline_misses": "Requests of a class done after their deadlines.",
    "weir_class_queue": "Requests of a class that are not done.",
    "weir_class_share": "Part of the bytes of the last second.",
    "weir_class_response_seconds": "Response time: mean and 99th percentile.",
    "weir_class_account": "What the policy has in account for a class.",
    "weir_head_waiting": "Parts of requests that wait for a head.",
    "weir_head_slack_seconds": "By how much all promises can be put off (deltaL).",
    "weir_head_account": "What the policy has in account for all classes.",
}
_COUNTERS = {
    "weir_server_requests",
    "weir_server_bytes",
    "weir_server_errors",
    "weir_server_busy_seconds",
    "weir_class_requests",
    "weir_class_bytes",
    "weir_class_errors",
    "weir_class_deadline_misses",
}
#: Values of one metric, with the labels of each.
_Sample = tuple[str, dict[str, str], float]


class Figures(Collector):
    """The figures of studies and servers, read at each collection.

    Args:
        studies: folders of studies, or `STUDY@LABEL`.
        states: state folders of servers.
        binary: what asks the servers.
    """

    def __init__(self, studies: list[Path], states: list[Path], binary: BinaryCache | None) -> None:
        self._followers = {path.name: Follower(path) for path in studies}
        self._states = states
        self._binary = binary

    def collect(self) -> Iterator[Metric]:
        """The metrics that have a value now."""
        found: dict[str, Metric] = {}
        for name, labels, value in self._samples():
            if name not in found:
                kind = CounterMetricFamily if name in _COUNTERS else GaugeMetricFamily
                found[name] = kind(name, METRICS[name], labels=list(labels))
            found[name].add_metric(list(labels.values()), value)
        yield from (found[name] for name in METRICS if name in found)

    def document(self) -> dict[str, Any]:
        """The same values as JSON."""
        found: dict[str, list[dict[str, Any]]] = {}
        for name, labels, value in self._samples():
            found.setdefault(name, []).append({"labels": labels, "value": value})
        metrics = [
            {
                "name": name,
                "type": "counter" if name in _COUNTERS else "gauge",
                "help": about,
                "samples": found[name],
            }
            for name, about in METRICS.items()
            if name in found
        ]
        return {"metrics": metrics}

    def describe(self) -> list[Metric]:
        """None: a collector is registered without being asked."""
        return []

    def _samples(self) -> Iterator[_Sample]:
        for name, follower in self._followers.items():
            yield from _of_study(name, follower.progress())
        for state in self._states:
            yield from self._of_servers(state)

    def _of_servers(self, state: Path) -> Iterator[_Sample]:
        assert self._binary is not None
        for server in json.loads(self._binary.output("serve", "--status", state, "--json")):
            spec, stats = server["state"]["spec"], server["stats"]
            labels = {"server": spec["name"]}
            yield "weir_server_up", labels, float(server["running"])
            if stats is not None:
                yield from _of_server(labels, stats)
                if spec.get("live"):
                    asked = ("top", "--once", "--json", "--server", spec["name"], "--state", state)
                    yield from _of_classes(labels, json.loads(self._binary.output(*asked)))


def _of_study(name: str, progress: Progress) -> Iterator[_Sample]:
    labels = {"study": name}
    study = progress.study
    for status, count in progress.counts.items():
        yield "weir_study_runs", {**labels, "status": status}, count
    if progress.is_complete or progress.left_s is not None:
        yield "weir_study_left_seconds", labels, 0.0 if progress.is_complete else progress.left_s or 0.0
    if progress.idle_s is not None:
        yield "weir_study_idle_seconds", labels, progress.idle_s
    if progress.steal:
        yield "weir_study_steal_ratio", labels, progress.steal[-1]
    broken: dict[str, int] = {}
    for run in study.runs:
        for rule in run.validity.rules:
            if rule.status == run.validity.status != "valid":
                broken[rule.rule] = broken.get(rule.rule, 0) + 1
    for rule, count in sorted(broken.items()):
        yield "weir_study_broken_rules", {**labels, "rule": rule}, count
    for app_class in study.classes if study.valid_runs else ():
        metric, _ = objective_metric(app_class)
        rows = progress.table.filter(progress.table["class"] == app_class.name).drop_nulls(metric)
        if rows.is_empty():
            continue
        for row in summarise(rows, metric, list(study.varied)).iter_rows(named=True):
            of = {**labels, "class": app_class.name, "cell": cell_label(row, study.varied), "metric": metric}
            if row["estimate"] is not None:
                yield "weir_study_result", of, row["estimate"]
            yield "weir_study_result_runs", of, row["n"]


def _of_server(labels: dict[str, str], stats: dict[str, Any]) -> Iterator[_Sample]:
    for op in ("read", "write", "discard"):
        yield "weir_server_requests", {**labels, "op": op}, stats[op]["requests"]
        yield "weir_server_bytes", {**labels, "op": op}, stats[op]["bytes"]
    yield "weir_server_requests", {**labels, "op": "flush"}, stats["flush"]
    yield "weir_server_errors", labels, stats["errors"]
    yield "weir_server_busy_seconds", labels, stats["busy_ns"] / 1e9
    if stats["service_error"]["count"]:
        for statistic in ("median", "p99"):
            lateness_s = stats["service_error"][f"{statistic}_ns"] / 1e9
            yield "weir_server_lateness_seconds", {**labels, "statistic": statistic}, lateness_s


def _of_classes(labels: dict[str, str], stats: dict[str, Any]) -> Iterator[_Sample]:
    for one in stats["classes"]:
        of = {**labels, "class": one["name"]}
        yield "weir_class_requests", of, one["requests"]
        yield "weir_class_bytes", of, one["bytes"]
        yield "weir_class_errors", of, one["errors"]
        yield "weir_class_deadline_misses", of, one["misses"]
        yield "weir_class_queue", of, one["queue"]
        yield "weir_class_share", of, one["share"]
        for statistic in ("mean", "p99"):
            response_s = one[f"{statistic}_ms"] / 1e3
            yield "weir_class_response_seconds", {**of, "statistic": statistic}, response_s
        for account, value in one["accounts"].items():
            yield "weir_class_account", {**of, "account": account}, value
    for number, head in enumerate(stats["heads"]):
        of = {**labels, "head": str(number)}
        yield "weir_head_waiting", of, head["waiting"]
        if head["slack_ms"] is not None:
            yield "weir_head_slack_seconds", of, head["slack_ms"] / 1e3
        for account, value in head["accounts"].items():
            yield "weir_head_account", {**of, "account": account}, value


def _address(text: str) -> tuple[str, int]:
    """Host and port of `PORT`, `HOST:PORT` or `[HOST]:PORT`."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    try:
        if ipaddress.ip_address(host).is_loopback and 1 <= int(port) <= 65535:
            return host, int(port)
    except ValueError:
        pass
    remedy = "give PORT or 127.0.0.1:PORT; weir answers on the loopback interface only"
    raise InputError("--listen", f"is {text}: no loopback address and port", remedy)


def export(
    figures: Figures,
    out: Path | None,
    listen: str | None,
    interval_s: float,
    say: Callable[[dict[str, Any]], None] | None = None,
) -> int:
    """Shows the figures once on standard output, or keeps them in a file or under an address until ctrl-c.

    Args:
        figures: what is shown.
        out: file to replace every `interval_s`: OpenMetrics, or the text format if it ends with `.prom`.
        listen: loopback address to answer `GET /metrics` at; the client chooses the format.
        interval_s: seconds between two replacements.
        say: gets where they are shown, once they are, or the figures that are shown once; None: the figures
            are shown as text.

    Returns:
        The exit code.

    Raises:
        InputError: a study, a state folder, the file or the address cannot be used.
    """
    where = None if listen is None else _address(listen)
    registry = CollectorRegistry()
    registry.register(figures)
    # What cannot be read at all is said before anything is served.
    first = as_openmetrics(registry).decode()
    if out is not None:
        _replace(out, registry)
    if out is None and listen is None:
        if say is None:
            print(first, end="")
        else:
            say(figures.document())
        return 0
    be_idle()
    if where is not None:
        _serve(registry, where)
    if say is not None:
        url = None if where is None else _url(*where)
        say({"pid": os.getpid(), "url": url, "path": None if out is None else str(out)})
    try:
        while True:
            if out is not None:
                try:
                    _replace(out, registry)
                # A study's plan is being replaced, or a server has just ended. The time of the file shows it.
                except InputError as error:
                    print(f"not updated: {error}", file=sys.stderr)
            time.sleep(interval_s)
    except KeyboardInterrupt:
        return 0


def _url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


def _serve(registry: CollectorRegistry, where: tuple[str, int]) -> None:
    try:
        start_http_server(where[1], addr=where[0], registry=registry)
    except OSError as error:
        problem = f"cannot listen at {where[0]}:{where[1]} ({error.strerror})"
        raise InputError("--listen", problem, "give another port") from error


def _replace(out: Path, registry: CollectorRegistry) -> None:
    make = as_text if out.suffix == TEXTFILE else as_openmetrics
    try:
        write_text(out, make(registry).decode())
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise InputError(out, problem, "name another file with --out") from error
