"""`weir admit`: verdicts of known task sets, and what it says of files that are wrong."""

import json
import re

import pytest
from support import ROOT, weir

EXAMPLES = ROOT / "docs/reference/tasks"


def test_streams_of_clockwise_are_admitted_with_the_slack_of_the_thesis():
    for mode in ("thesis", "exact"):
        done = weir("admit", EXAMPLES / "tasks-clockwise.yml", "--mode", mode, "--json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert (report["verdict"], report["mode"], report["streams"]) == ("admitted", mode, 48)
        assert report["utilisation"] == pytest.approx(0.9215, abs=1e-4)
        slack = report["slack"]
        assert round(slack["deltaL_ns"] / 1e6) == 925
        assert slack["deltaL_ns"] == slack["deltaLm"]["slack_ns"] < slack["deltaLn"]["slack_ns"]
        assert slack["deltaLm"]["interval_ns"] == 4_465_116_279


def test_what_usd_admits_is_rejected_by_task_interval_and_shortfall():
    done = weir("admit", EXAMPLES / "tasks-usd.yml", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert (report["verdict"], report["sum_test"]) == ("rejected", True)
    assert report["utilisation"] == pytest.approx(0.6475)
    # In ns: the interval begins 1 ns before the requests that are blocked.
    assert report["rejection"] == {
        "reason": "blocked",
        "task": "tau4",
        "interval_ns": 250_000_001,
        "shortfall_ns": 23_999_999,
        "first_streams_that_fit": 3,
        "first_that_does_not": "tau4",
    }
    done = weir("admit", EXAMPLES / "tasks-usd.yml")
    assert done.returncode == 1
    assert "rejected: 4 streams, utilisation 0.6475" in done.stdout
    assert "`tau4`" in done.stdout
    assert "L = 250.000001 ms short by 23.999999 ms" in done.stdout


def test_what_the_documentation_shows_is_what_is_printed():
    text = (ROOT / "docs/reference/schedulers-clockwise.md").read_text()
    (console,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    commands = re.split(r"^\$ weir admit ", console, flags=re.MULTILINE)[1:]
    assert len(commands) == 2
    for command in commands:
        file, printed = command.split("\n", 1)
        assert weir("admit", file).stdout == printed


def test_more_than_the_whole_disk_is_an_overload(tmp_path):
    file = tmp_path / "full.yml"
    file.write_text(
        "tasks: [{name: a, cost_ms: 7, period_ms: 20, streams: 2}, {name: b, cost_ms: 8, period_ms: 22}]"
    )
    done = weir("admit", file, "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert not report["sum_test"]
    rejection = report["rejection"]
    assert rejection.pop("excess_utilisation") == pytest.approx(0.7 + 8 / 22 - 1)
    assert rejection == {"reason": "overload", "first_streams_that_fit": 2, "first_that_does_not": "b"}


def test_modes_differ_where_nearly_all_of_the_disk_is_used(tmp_path):
    file = tmp_path / "full.yml"
    tasks = [(3, 12), (4, 11), (3, 8)]
    lines = [f"- {{name: t{p}, cost_ms: {c}e-6, period_ms: {p}e-6}}" for c, p in tasks]
    file.write_text("tasks:\n" + "\n".join(lines) + "\n")
    slack = {}
    for mode in ("thesis", "exact"):
        report = json.loads(weir("admit", file, "--mode", mode, "--json").stdout)
        slack[mode] = report["slack"]["deltaL_ns"]
    assert slack == {"thesis": 2, "exact": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tasks: [{name: a, cost_ms: -1, period_ms: 2}]", ["tasks.0.cost_ms", "is -1", "must be above 0"]),
        ("tasks: [{name: a, cost_ms: 1, perod_ms: 2}]", ["tasks.0.perod_ms", "did you mean `period_ms`?"]),
        ("tasks: []", ["tasks", "is empty"]),
        ("task: [", []),
    ],
)
def test_files_that_are_wrong_are_refused(tmp_path, text, says):
    file = tmp_path / "wrong.yml"
    file.write_text(text)
    done = weir("admit", file)
    assert done.returncode == 2
    for part in ["wrong.yml", *says]:
        assert part in done.stderr, done.stderr
    assert "panicked" not in done.stderr and not done.stdout


def test_a_file_that_is_not_there(tmp_path):
    done = weir("admit", tmp_path / "none.yml")
    assert done.returncode == 2 and "none.yml: cannot be read" in done.stderr
