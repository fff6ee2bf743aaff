"""Studies of both testbeds: told apart in every table, side by side in figures, and named on the page."""

import json

import pytest
from synthetic import write_study

from weir import present
from weir.load import load_study
from weir.plots.layout import place
from weir.report import render
from weir.report_figures import exhibits
from weir.study import class_table, device_table, per_run


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results") / "both"
    return load_study(write_study(folder, loads=(0.5,), repetitions=2, both_testbeds=True))


def test_the_testbed_is_a_factor(both):
    table = class_table(both)
    assert table.columns.count("testbed") == 1
    assert table.group_by("testbed").len()["len"].to_list() == [16, 16]
    assert set(device_table(both)["testbed"]) == {"device"}
    assert per_run(table, both).height == 16


def test_testbeds_are_panels_beside_each_other(both):
    table = class_table(both)
    _, layout = place(both, table)
    assert (layout.x, layout.hue, layout.col, layout.row) == ("scheduler", "architecture", "testbed", None)
    _, layout = place(both, table, "testbed")
    assert layout.x == "testbed" and layout.col != "testbed"
    names = [exhibit.name for exhibit in exhibits(both, table)]
    assert {"text-response", "video-tail", "split", "ratio-testbed"} <= set(names)


def test_one_metric_of_both_in_one_row(both):
    grid = present.side_by_side(both, class_table(both), "text", "response_p95_ms")
    assert grid.columns == ["scheduler", "architecture", "device", "simulator"]
    assert grid.height == 4
    assert all("[" in text for text in grid["simulator"])


def test_the_page_says_what_was_virtual_and_why(both):
    page = render(both)
    assert "8 runs (testbed simulator) were carried out in virtual time" in page
    assert "Both testbeds" in page
    plan_path = both.path / "plan.json"
    plan = json.loads(plan_path.read_text())
    plan_path.write_text(json.dumps(plan | {"note": "in virtual time only: no root"}))
    assert "in virtual time only: no root" in render(load_study(both.path))


def test_a_study_of_devices_says_nothing_of_virtual_time(tmp_path):
    study = load_study(write_study(tmp_path / "one", loads=(0.5,), repetitions=1))
    assert present.side_by_side(study, class_table(study), "text", "response_p95_ms") is None
    assert "virtual time" not in render(study)


def test_runs_of_which_no_request_was_kept_have_no_distribution(tmp_path):
    study = load_study(write_study(tmp_path / "one", loads=(0.5,), repetitions=1, block_table=False))
    table = class_table(study)
    for run in study.runs:
        (run.path / "requests.parquet").unlink()
    names = [exhibit.name for exhibit in exhibits(study, table)]
    assert "text-response" in names and not [name for name in names if name.endswith("tail")]
