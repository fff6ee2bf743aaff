"""A/A: duplicates are no repetitions of their cell, and their difference is printed beside the effects."""

import json
import math
import shutil

import pytest
from synthetic import write_study

from weir.cli import main
from weir.derive import metrics_of
from weir.duplicates import floors
from weir.load import load_study
from weir.report import render
from weir.study import class_table


def duplicate(study, source, of):
    """Adds a duplicate of the run `of`, with the data of the run `source`."""
    name = f"{of.id}-again"
    shutil.copytree(source.path, study.path / name)
    changed = json.loads((of.path / "run.json").read_text()) | {"id": name, "duplicate": True}
    (study.path / name / "run.json").write_text(json.dumps(changed))
    (study.path / name / "metrics.json").unlink(missing_ok=True)
    plan = json.loads((study.path / "plan.json").read_text())
    plan["runs"].append(changed)
    (study.path / "plan.json").write_text(json.dumps(plan))


@pytest.fixture
def study(tmp_path):
    """A study whose first cell has the data of another block as its duplicate."""
    made = load_study(write_study(tmp_path / "trial", loads=(0.5,)))
    first = sorted((run for run in made.runs if run.cell == made.runs[0].cell), key=lambda run: run.block)
    for run, other in zip(first, [*first[1:], first[0]], strict=True):
        duplicate(made, other, run)
    return load_study(made.path)


def test_duplicates_are_no_repetitions(study, tmp_path):
    plain = load_study(write_study(tmp_path / "plain", loads=(0.5,)))
    assert len(study.duplicates) == 3
    columns = ["class", "scheduler", "architecture", "block", "response_p95_ms"]
    assert class_table(study).select(columns).equals(class_table(plain).select(columns))
    assert f"{len(study.runs)} of {len(study.runs)}" in render(study)


def test_the_floor_is_the_ratio_of_the_two_runs(study):
    found = {floor.class_name: floor for floor in floors(study)}
    assert set(found) == {"text", "video"}
    firsts = {(run.cell, run.block): run for run in study.valid_runs}
    ratios = [
        metrics_of(run)["classes"]["text"]["response_p95_ms"]
        / metrics_of(firsts[run.cell, run.block])["classes"]["text"]["response_p95_ms"]
        for run in study.duplicates
    ]
    floor = found["text"]
    assert floor.ratio == pytest.approx(math.prod(ratios) ** (1 / 3))
    assert floor.largest == pytest.approx(max(max(ratio, 1 / ratio) for ratio in ratios))
    assert floor.low < floor.ratio < floor.high and floor.n == 3


def test_summary_and_page_print_it(study, capsys):
    sentence = floors(study)[0].sentence()
    assert sentence.startswith(
        "A/A, text, 95th percentile of response time: none, partitioned, repeated within"
    )
    assert main(["summary", str(study.path)]) == 0
    assert sentence in capsys.readouterr().out
    page = render(study)
    assert sentence in page and "one cell is repeated within each block (A/A)" in page


def test_a_study_without_duplicates_has_no_floor(study_folder):
    assert floors(load_study(study_folder)) == []
