"""Labels: results of two kernels or commits in one folder, as levels of a factor and on their own."""

import json

import polars as pl
import pytest
import synthetic

from weir import Study, locate, notebooks, plans
from weir.change_points import change_points
from weir.cli import main
from weir.errors import InputError
from weir.export import export
from weir.load import load_study
from weir.report import write_report
from weir.study import class_table

SMALL = {"loads": (0.5,), "architectures": ("integrated",), "repetitions": 4, "duration_s": 1.0}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two labels, the second of which takes 1.5 times as long, with the same requests."""
    folder = tmp_path_factory.mktemp("results")
    for label, slower in (("6.12", 1.0), ("6.18", 1.5)):
        synthetic.write_study(folder / "quick", label=label, slower=slower, **SMALL)
    return folder


def test_labels_are_levels_of_a_factor(results):
    study = load_study(results / "quick")
    assert study.factors["label"] == ["6.12", "6.18"]
    assert len(study.runs) == 16 and study.missing == {} and study.stray == ()
    assert sorted(run.order for run in study.runs) == list(range(16))
    assert {run.levels["label"] for run in study.runs} == {"6.12", "6.18"}
    table = class_table(study)
    assert set(table["label"]) == {"6.12", "6.18"}


def test_one_label_is_the_study_that_it_would_be_alone(results, tmp_path):
    alone = synthetic.write_study(tmp_path / "quick", **SMALL)
    one, plain = load_study(results / "quick@6.12"), load_study(alone)
    assert one.factors == plain.factors and one.label == "6.12" and "label" not in one.runs[0].levels
    # What differs in the fixture is the place of the runs.
    drop = ["run"]
    assert class_table(one).drop(drop).equals(class_table(plain).drop(drop))


def test_frame_summary_comparisons_plan_and_export_have_the_label(results, tmp_path):
    study = Study("quick", results)
    assert set(study.frame()["label"]) == {"6.12", "6.18"}
    assert set(study.plan["label"]) == {"6.12", "6.18"} and study.plan.height == 16
    assert set(study.summary()["label"]) == {"6.12", "6.18"}
    ratios = study.effects("label", "response_mean_ms").filter(pl.col("class") == "video")
    # Paired by block: both labels have the same requests.
    assert set(ratios["n"]) == {4} and (ratios["estimate"] > 1.3).all()
    export(study.loaded, tmp_path / "tables")
    assert set(pl.read_parquet(tmp_path / "tables/runs.parquet")["label"]) == {"6.12", "6.18"}
    assert set(study.requests().select("label").unique().collect()["label"]) == {"6.12", "6.18"}


def test_runs_without_a_label_are_a_level_beside_those_with_one(results, tmp_path):
    folder = synthetic.write_study(tmp_path / "quick", **SMALL)
    assert "label" not in load_study(folder).factors
    synthetic.write_study(folder, label="patched", **SMALL)
    study = load_study(folder)
    assert study.factors["label"] == ["unlabelled", "patched"]
    assert {run.levels["label"] for run in study.runs} == {"unlabelled", "patched"}


def test_a_label_is_missing_runs_of_its_own_only(results, tmp_path):
    folder = synthetic.write_study(tmp_path / "quick", label="a", **SMALL)
    other = synthetic.write_study(tmp_path / "other" / "quick", label="b", **SMALL)
    (folder / "plan@b.json").write_text((other / "plan@b.json").read_text())
    assert len(load_study(folder).missing) == 8
    assert load_study(folder / ".." / "quick@a").missing == {}
    assert len(load_study(tmp_path / "quick@b").missing) == 8


def test_a_label_that_is_not_there_is_refused(results, capsys):
    with pytest.raises(InputError, match=r"has no runs with label `6.6` \(labels: 6.12, 6.18\).*LABEL=6.6"):
        load_study(results / "quick@6.6")
    assert main(["compare", "quick@6.12", "quick@6.6", "--results", str(results)]) == 2
    assert "make study STUDY=quick LABEL=6.6" in capsys.readouterr().err


def test_results_with_labels_only_are_found(results):
    assert locate.study("quick", results) == results / "quick"
    assert locate.study("quick@6.18", results) == results / "quick@6.18"
    assert locate.study("quick@7", results) is None
    assert locate.studies("quick", results) == {"quick": results / "quick"}
    assert notebooks.unread(results) == [] and plans.folders(results) == [results / "quick"]


def test_compare_names_labels(results, capsys):
    code = main(["compare", "quick@6.12", "quick@6.18", "--results", str(results), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 3
    assert document["before"].endswith("quick@6.12") and document["after"].endswith("quick@6.18")
    video = [c for c in document["changes"] if c["class"] == "video" and "response" in c["metric"]]
    assert all(change["paired"] and change["ratio"] > 1.2 for change in video)
    # Folders are named as before.
    assert main(["compare", str(results / "quick@6.12"), str(results / "quick@6.12")]) == 0


def test_summary_and_report_show_the_label(results, capsys):
    assert main(["summary", str(results / "quick")]) == 0
    assert "6.18" in capsys.readouterr().out
    assert main(["summary", str(results / "quick@6.18")]) == 0
    page = write_report(results / "quick")
    assert page.name == "report.html" and "6.12" in page.read_text()
    assert write_report(results / "quick@6.12").name == "report@6.12.html"


def test_a_study_may_ask_about_its_labels(tmp_path):
    for label, slower in (("a", 1.0), ("b", 2.0)):
        folder = synthetic.write_study(tmp_path / "quick", label=label, slower=slower, **SMALL)
        path = folder / f"plan@{label}.json"
        asked = json.loads(path.read_text()) | {"comparison": {"factor": "label", "baseline": "a"}}
        path.write_text(json.dumps(asked))
    sentences = Study("quick", tmp_path).answers()
    assert sentences and all("b takes" in one and "times that of a" in one for one in sentences)
    # Alone, a label has nothing to be compared with.
    assert load_study(tmp_path / "quick@a").comparison is None


def test_labels_are_no_change_over_the_order_of_runs(results, tmp_path):
    for label, slower in (("a", 1.0), ("b", 2.0)):
        synthetic.write_study(tmp_path / "s", label=label, slower=slower, **(SMALL | {"repetitions": 12}))
    study = load_study(tmp_path / "s")
    assert change_points(study, class_table(study)) == []
