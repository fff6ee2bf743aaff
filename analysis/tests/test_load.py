"""Loading: what is taken, what is ignored, and errors that name the file and what to do."""

import json

import polars as pl
import pytest
import synthetic

from weir.derive import run_metrics
from weir.errors import InputError
from weir.load import load_study
from weir.plan import read_plan
from weir.study import class_table
from weir.tables import scan_measured, scan_requests


def first_run(folder):
    return folder / json.loads((folder / "plan.json").read_text())["runs"][0]["id"]


def change(path, **fields):
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_study_has_its_runs_in_order(study_folder):
    study = load_study(study_folder)
    assert len(study.runs) == len(study.valid_runs) == 24
    assert [run.order for run in study.runs] == list(range(24))
    assert not study.missing and not study.stray
    assert study.varied == {
        "scheduler": ["none", "mq-deadline"],
        "architecture": ["partitioned", "integrated"],
        "load": [0.5, 0.9],
    }
    assert study.runs[0].window_ns == (1_000_000_000, 3_000_000_000)


def compact(folder, *runs):
    """Writes the runs in place of those of the plan; returns the plan's file."""
    plan = folder / "plan.json"
    change(plan, format=2, runs=list(runs))
    return plan


def test_a_run_has_what_its_like_has_and_its_own_fields(tmp_path):
    classes = [{"name": "web", "clients": 4}, {"x": 1}]
    base = {"id": "a", "levels": {"load": 1, "disk": "x"}, "classes": classes}
    (tmp_path / "plan.json").write_text("{}")
    other = {"id": "b", "like": 0, "levels": {"load": 2}, "classes": {"web": {"clients": 8}}}
    plan = read_plan(compact(tmp_path, base, other, {"id": "c", "like": 1, "classes": []}))
    levels, other_classes = {"load": 2, "disk": "x"}, [{"name": "web", "clients": 8}, {"x": 1}]
    assert plan["runs"] == [
        base,
        {"id": "b", "levels": levels, "classes": other_classes},
        {"id": "c", "levels": levels, "classes": []},
    ]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"id": "b", "like": 1}, "run 1: field `like` is 1, not the place of an earlier run"),
        ({"id": "b", "like": -1}, "run 1: field `like` is -1"),
        ({"id": "b", "like": "a"}, "`like`"),
        (["b"], "not an object"),
    ],
)
def test_a_run_that_names_no_earlier_run_is_refused(tmp_path, entry, problem):
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(InputError) as refused:
        read_plan(compact(tmp_path, {"id": "a"}, entry))
    assert problem in str(refused.value) and "plan.json" in str(refused.value)


def test_work_in_progress_and_other_folders_are_ignored(study_folder):
    run = first_run(study_folder)
    for name in (f".{run.name}.partial", f"{run.name}.partial", "figures", "logs"):
        (study_folder / name).mkdir()
    assert len(load_study(study_folder).runs) == 24


def test_missing_and_stray_runs_are_told_apart(study_folder):
    first_run(study_folder).rename(study_folder.parent / "gone")
    synthetic.write_run(
        study_folder / "older",
        json.loads((study_folder.parent / "gone" / "run.json").read_text()) | {"id": "older"},
        block_table=False,
    )
    study = load_study(study_folder)
    levels = {"scheduler": "none", "architecture": "partitioned", "load": 0.5}
    assert study.missing == {"none-partitioned-0.5-0": levels}
    assert study.stray == ("older",)
    assert "older" not in {run.id for run in study.runs}


def test_the_plans_word_on_levels_and_objectives_is_taken(study_folder):
    change(first_run(study_folder) / "run.json", levels={"scheduler": "as shown before"}, order=99)
    study = load_study(study_folder)
    assert study.runs[0].levels["scheduler"] == "none"
    assert study.runs[0].order == 0


def test_a_new_objective_is_judged_anew(study_folder):
    before = class_table(load_study(study_folder))
    assert (first_run(study_folder) / "metrics.json").exists()
    plan = json.loads((study_folder / "plan.json").read_text())
    for run in plan["runs"]:
        run["classes"][0]["objective"] = {"response_ms": {"quantile": 0.5, "at_most": 1e-6}}
    (study_folder / "plan.json").write_text(json.dumps(plan))
    after = class_table(load_study(study_folder))
    text = pl.col("class") == "text"
    assert before.filter(text)["objective_attained"].any()
    assert not after.filter(text)["objective_attained"].any()
    assert before["response_p95_ms"].equals(after["response_p95_ms"])


def test_factors_with_a_value_per_class_are_levels_of_text(study_folder):
    plan = json.loads((study_folder / "plan.json").read_text())
    plan["factors"]["clients"] = [{"text": 10, "video": 4}]
    (study_folder / "plan.json").write_text(json.dumps(plan))
    assert load_study(study_folder).factors["clients"] == ["text=10 video=4"]


def problem(folder, then=lambda study: class_table(study)):
    with pytest.raises(InputError) as caught:
        then(load_study(folder))
    return caught.value


def test_no_study(tmp_path):
    error = problem(tmp_path / "nothing")
    assert "make study STUDY=nothing" in error.remedy


def test_a_folder_without_a_plan(tmp_path):
    assert problem(tmp_path).path == tmp_path / "plan.json"


def test_a_plan_that_is_cut_short(study_folder):
    plan = study_folder / "plan.json"
    plan.write_text(plan.read_text()[:500])
    assert "is not JSON" in problem(study_folder).problem


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"format": 99}, "field `format` is 99"),
        ({"repetitions": "three"}, "field `repetitions` is 'three'"),
        ({"repetitions": True}, "field `repetitions` is True"),
        ({"factors": {"scheduler": []}}, "field `factors.scheduler` is []"),
        ({"runs": ["x"]}, "field `runs` holds 'x'"),
    ],
)
def test_a_plan_with_a_wrong_field(study_folder, fields, words):
    change(study_folder / "plan.json", **fields)
    error = problem(study_folder)
    assert error.path == study_folder / "plan.json"
    assert words in error.problem


def test_a_run_in_the_wrong_folder(study_folder):
    change(first_run(study_folder) / "run.json", id="another")
    assert "field `id` is 'another'" in problem(study_folder).problem


def test_an_unknown_status(study_folder):
    change(first_run(study_folder) / "verdict.json", status="maybe")
    assert "field `status` is 'maybe'" in problem(study_folder).problem


@pytest.mark.parametrize("keep", [0, 100, -20])
def test_a_table_that_is_cut_short(study_folder, keep):
    path = first_run(study_folder) / "requests.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    error = problem(study_folder)
    assert error.path == path
    assert "cut short" in error.problem
    assert "run the study again" in error.remedy


def test_a_table_whose_pages_are_damaged(study_folder):
    path = first_run(study_folder) / "requests.parquet"
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 2] = b"\xff" * (len(data) // 2 - 4)
    path.write_bytes(data)
    assert problem(study_folder).path == path


def test_a_missing_table(study_folder):
    path = first_run(study_folder) / "requests.parquet"
    path.unlink()
    assert problem(study_folder).problem == "there is no such file"


def test_a_missing_column(study_folder):
    path = first_run(study_folder) / "requests.parquet"
    pl.read_parquet(path).drop("deadline_ns").write_parquet(path)
    assert "column `deadline_ns` is missing" in problem(study_folder).problem


def test_a_column_of_another_type(study_folder):
    path = first_run(study_folder) / "requests.parquet"
    pl.read_parquet(path).with_columns(pl.col("intended_ns") / 1e9).write_parquet(path)
    assert "column `intended_ns` is Float64, not integer" in problem(study_folder).problem


def test_a_class_that_the_run_does_not_have(study_folder):
    path = first_run(study_folder) / "requests.parquet"
    pl.read_parquet(path).with_columns(pl.lit("audio").alias("class")).write_parquet(path)
    assert "column `class` holds 'audio'" in problem(study_folder).problem


def test_a_factor_with_the_name_of_a_metric(study_folder):
    plan = json.loads((study_folder / "plan.json").read_text())
    plan["factors"]["requests"] = [1, 2]
    (study_folder / "plan.json").write_text(json.dumps(plan))
    assert "factor `requests`" in problem(study_folder).problem


def test_a_run_of_several_hosts_tells_their_clients_and_disks_apart(study_folder):
    plan = json.loads((study_folder / "plan.json").read_text())
    run_id = first_run(study_folder).name
    for document in (next(run for run in plan["runs"] if run["id"] == run_id), plan["runs"][0]):
        document["hosts"] = {"clients": 2, "lost": "stop"}
    (study_folder / "plan.json").write_text(json.dumps(plan))
    folder = study_folder / run_id
    for table in ("requests", "block"):
        rows = pl.read_parquet(folder / f"{table}.parquet")
        hosts = pl.Series("host", ["a", "b"] * rows.height)[: rows.height]
        rows.with_columns(hosts).write_parquet(folder / f"{table}.parquet")
    for name in ("a", "b"):
        (folder / "hosts" / name).mkdir(parents=True)
        (folder / "hosts" / name / "host.json").write_text((folder / "host.json").read_text())
    (folder / "host.json").unlink()
    run = next(run for run in load_study(study_folder).runs if run.id == run_id)
    assert {one.name: one.clients for one in run.classes} == {"text": 8, "video": 4}
    assert sorted(run.host) == ["a", "b"] and run.host["a"]["weir"] == {"version": "0.1.0"}
    assert set(scan_requests(run).collect()["host"]) == {"a", "b"}
    found = run_metrics(run)["devices"]
    assert sorted(found) == ["a:loop0", "a:loop1", "b:loop0", "b:loop1"]
    assert sum(device["requests"] for device in found.values()) == scan_requests(run).collect().height


def test_names_come_back_as_written_and_responses_from_intended_times(study_folder):
    study = load_study(study_folder)
    rows = scan_requests(study.runs[0]).collect()
    assert set(rows["class"]) == {"text", "video"}
    measured = scan_measured(study.runs[:2]).collect()
    assert not measured["warmup"].any()
    assert measured["run"].n_unique() == 2
    expected = (measured["completed_ns"] - measured["intended_ns"]) / 1e6
    assert measured["response_ms"].equals(expected, check_names=False)


def test_no_run_to_read():
    with pytest.raises(InputError):
        scan_measured([])
