"""Figures for Prometheus: lines are of the format, values those of the study and the server."""

import json
import re
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest as as_text
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from weir import exporter
from weir.cli import main
from weir.errors import InputError
from weir.load import load_study
from weir.locate import SAMPLE
from weir.study import class_table

DASHBOARD = Path(__file__).parents[2] / "docs/how-to/grafana-dashboard.json"
QUICK = SAMPLE / "quick"


class Server:
    """The answers of `weir serve --status` and `weir top` of a server with one class and one head."""

    def output(self, command, *_):
        op = {"requests": 3, "bytes": 12288}
        times = {"count": 3, "median_ns": 2000, "p99_ns": 5000}
        stats = {"read": op, "write": op, "discard": op, "flush": 1, "errors": 0, "busy_ns": 5 * 10**8}
        if command == "serve":
            spec = {"name": "disk", "live": {"policy": "hds"}}
            server = {"state": {"spec": spec}, "running": True, "stats": {**stats, "service_error": times}}
            gone = {"state": {"spec": {"name": "gone"}}, "running": False, "stats": None}
            return json.dumps([server, gone])
        one = {"name": "video", "requests": 3, "bytes": 9, "errors": 0, "misses": 1, "queue": 2, "share": 1.0}
        one |= {"mean_ms": 2.5, "p99_ms": 7.0, "accounts": {"tokens_kb": 1.5}}
        head = {"waiting": 4, "slack_ms": 12.5, "accounts": {}}
        return json.dumps({"classes": [one], "heads": [head]})


def registry(studies=(), states=()):
    made = CollectorRegistry()
    made.register(exporter.Figures(list(studies), list(states), Server()))
    return made


def values(text):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_study_has_its_runs_and_results():
    found = values(as_openmetrics(registry([QUICK])).decode())
    study = load_study(QUICK)
    assert found["weir_study_runs", "quick", "valid"] == len(study.runs_with("valid")) == 39
    assert found["weir_study_runs", "missing", "quick"] == 0
    table = class_table(study, keep=False)
    for cell in table.partition_by("class", *study.factors):
        row = cell.row(0, named=True)
        name = ", ".join(row[factor] for factor in study.factors)
        key = ("weir_study_result", *sorted([row["class"], name, "response_p95_ms", "quick"]))
        assert found[key] == pytest.approx(cell["response_p95_ms"].mean(), rel=1e-12)


def test_a_server_has_its_classes_in_base_units(tmp_path):
    found = values(as_openmetrics(registry(states=[tmp_path])).decode())
    assert found["weir_server_up", "disk"] == 1 and found["weir_server_up", "gone"] == 0
    assert found["weir_server_busy_seconds_total", "disk"] == 0.5
    assert found["weir_server_lateness_seconds", "disk", "p99"] == 5e-6
    assert found["weir_class_deadline_misses_total", "disk", "video"] == 1
    assert found["weir_class_response_seconds", "disk", "mean", "video"] == 0.0025
    assert found["weir_head_slack_seconds", "0", "disk"] == 0.0125
    assert found["weir_class_account", "disk", "tokens_kb", "video"] == 1.5


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (package prometheus)")
def test_promtool_accepts_the_text_format(tmp_path):
    text = as_text(registry([QUICK], [tmp_path]))
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dashboard_asks_for_metrics_that_exist(tmp_path):
    dashboard = json.loads(DASHBOARD.read_text())
    asked = json.dumps([dashboard["panels"], dashboard["templating"]])
    names = set(re.findall(r"weir_\w+", asked))
    assert len(names) > 10
    assert {name.removesuffix("_total") for name in names} <= set(exporter.METRICS)
    shown = {name for name, *_ in values(as_openmetrics(registry([QUICK], [tmp_path])).decode())}
    conditional = {"weir_study_broken_rules", "weir_study_steal_ratio"}
    assert names - conditional <= shown


def test_files_and_addresses_that_cannot_be_used_are_refused(tmp_path, capsys):
    for listen in ("0.0.0.0:9464", "9464x", "127.0.0.1:0", "example.org:9464"):
        assert main(["exporter", str(QUICK), "--listen", listen]) == 2
        assert f"--listen: is {listen}" in capsys.readouterr().err
    assert main(["exporter", str(QUICK), "--out", str(tmp_path)]) == 2
    assert main(["exporter"]) == 2
    assert main(["exporter", str(tmp_path)]) == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot listen"):
            exporter._serve(CollectorRegistry(), taken.getsockname())


def test_it_answers_over_http(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    exporter._serve(registry(states=[tmp_path]), ("127.0.0.1", port))
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        text = answer.read().decode()
    assert text.endswith("# EOF\n") and values(text)["weir_server_up", "disk"] == 1
