"""The report page and the commands, on a synthetic study."""

import json
import pickle
import re
from pathlib import Path

import pytest
import synthetic

from weir import labels, notebooks, present
from weir.cli import main
from weir.errors import InputError
from weir.load import load_study
from weir.report import write_report
from weir.study import class_table

ROOT = Path(__file__).resolve().parents[2]
OF_STUDIES = list(notebooks.STUDY_NOTEBOOKS)


def test_the_page_holds_the_study_and_needs_nothing_else(study_folder):
    synthetic.set_validity(study_folder / "none-partitioned-0.5-0", "invalid", "R-LOSS", "lost <3> of 10")
    synthetic.set_validity(study_folder / "none-partitioned-0.5-1", "skipped", "R-FS", "no kyber here")
    page = write_report(study_folder).read_text()
    assert "Does a shared array serve text and video better than a disk each?" in page
    assert "22 of 24" in page
    assert "R-LOSS: lost &lt;3&gt; of 10" in page
    assert "no kyber here" in page
    assert page.count("data:image/svg+xml;base64,") == 12
    assert "Geometric mean of runs, 95 % interval (log-t" in page
    assert "Mean of runs, 95 % interval (t" in page
    assert "system.kernel_release" in page
    assert "Each run measures 2.00 s after a warm-up of 1.00 s. Kernel: 6.18.0.</p>" in page
    assert "make study STUDY=quick" in page
    # Nothing to fetch: test_interactive.py asks a browser too.
    page = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    assert set(re.findall("<script[^>]*>", page)) == {
        '<script type="module">',
        '<script type="application/json">',
    }
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', page) == []
    assert "url(" not in page


def test_a_page_accounts_for_the_capture(study_folder):
    assert "No block-layer capture" in write_report(study_folder).read_text()
    runs = sorted(path.parent for path in study_folder.glob("*/observed.json"))
    for run, (rows, lost) in zip(runs, [(1200, 2), (900, 1), (300, 0)], strict=False):
        path = run / "observed.json"
        observed = json.loads(path.read_text())
        capture = {"source": "bpf", "rows": rows, "lost": lost, "filled": 0, "unexplained": 0}
        path.write_text(json.dumps(observed | {"capture": capture}))
    # An invalid run is in no table.
    synthetic.set_validity(runs[2], "invalid", "R-LATE", "late")
    page = re.sub(r"<[^>]+>", " ", write_report(study_folder).read_text())
    page = re.sub(r"\s+", " ", page)
    assert "No block-layer capture" not in page
    assert "Block requests recorded 2,100 1,200 2 " in page
    assert "Lost: the completion was missed 3 2 2 " in page
    assert "losses do not explain 0 0 2 " in page


def test_values_of_rules_have_units(study_folder):
    runs = sorted(path.parent for path in study_folder.glob("*/observed.json"))
    # `verdict.json` has shares and nanoseconds.
    entries = [("R-LOSS", 0.01, 0.0001), ("R-LATE", 2_345_678, 1_000_000), ("R-SITE", 0, 1)]
    for run, (rule, value, limit) in zip(runs, entries, strict=False):
        entry = {"rule": rule, "status": "valid", "reason": "", "value": value, "limit": limit}
        (run / "verdict.json").write_text(json.dumps({"status": "valid", "rules": [entry]}))
    found = {line["rule"]: line for line in present.rules(load_study(study_folder)).to_dicts()}
    shown = {rule: (found[rule]["largest value"], found[rule]["limit"]) for rule, *_ in entries}
    assert shown == {
        "R-LOSS": ("1.00 %", "0.0100 %"),
        "R-LATE": ("2.35 ms", "1.00 ms"),
        "R-SITE": ("0", "1.00"),
    }


def test_a_page_says_what_each_class_was_carried_out_on(study_folder):
    """This test will note the disks of two runs, one modelled and one real, and leave the others without."""
    runs = sorted(path.parent for path in study_folder.glob("*/observed.json"))
    for run, text in zip(runs, ("modelled disk hdd-7200", "real disk by-id/nvme-A"), strict=False):
        file = run / "observed.json"
        observed = json.loads(file.read_text())
        names = [c["name"] for c in json.loads((run / "run.json").read_text())["classes"]]
        file.write_text(json.dumps(observed | {"media": dict.fromkeys(names, text)}))
    page = write_report(study_folder).read_text()
    assert "<td>modelled disk hdd-7200 or real disk by-id/nvme-A</td>" in page


def test_a_page_without_a_valid_run_says_so(single_folder):
    for run in load_study(single_folder).runs:
        synthetic.set_validity(run.path, "invalid", "R-LATE", "sent 9 ms late")
    page = write_report(single_folder).read_text()
    assert "No run is valid yet" in page
    assert "R-LATE: sent 9 ms late" in page
    assert "<img" not in page


def test_a_page_tells_how_many_runs_were_repeated(single_folder):
    assert "more than once" not in write_report(single_folder).read_text()
    for run in load_study(single_folder).runs[:2]:
        verdict = json.loads((run.path / "verdict.json").read_text())
        (run.path / "verdict.json").write_text(json.dumps(verdict | {"attempt": 2}))
    words = "repeated because of CPU steal</dt><dd>2</dd>"
    assert words in write_report(single_folder).read_text()


def test_one_repetition_has_no_brackets(single_folder):
    study = load_study(single_folder)
    table = present.results(study, class_table(study), "text")
    assert table["n"].to_list() == [1] * 4
    assert not any("[" in value for value in table["Mean response time (ms)"])
    assert "<img" in write_report(single_folder).read_text()


def test_a_simulated_study_has_a_split_too(tmp_path):
    folder = synthetic.write_study(tmp_path / "sim", repetitions=2, loads=(0.5,), block_table=False)
    assert "Source: the simulator" in write_report(folder).read_text()


def test_a_study_of_a_single_cell(tmp_path):
    folder = synthetic.write_study(
        tmp_path / "one", schedulers=("none",), architectures=("integrated",), loads=(0.5,), repetitions=3
    )
    page = write_report(folder).read_text()
    assert page.count('<img src="data:') == 10  # nothing to compare
    assert main(["summary", str(folder)]) == 0


def test_objectives_kept_are_counted(study_folder):
    study = load_study(study_folder)
    table = class_table(study)
    kept = present.attainment(study, table)
    assert kept.columns == ["scheduler", "architecture", "load", "text", "video"]
    first = table.filter(**{"class": "text", "scheduler": "none", "architecture": "partitioned", "load": 0.5})
    assert kept["text"][0] == f"{first['objective_attained'].sum()} of 3 runs"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"), (float("inf"), "unbounded"), (0.0, "0"), (9.996, "10.0"), (1234.5, "1234"),
        (0.012345, "0.0123"), (-2.5, "-2.50"), (1e-9, "0.000000"),
    ],
)  # fmt: skip
def test_numbers_for_people(value, text):
    assert labels.number(value) == text


def test_objectives_in_words():
    assert labels.objective_text({"share": 0.25}) == "at least 0.25 of all bytes"
    assert labels.objective_text({"rate_mb_s": 4}) == "at least 4 MB/s"
    assert labels.objective_text(None) == "none"


def test_commands_say_what_they_did(study_folder, capsys):
    assert main(["metrics", str(study_folder)]) == 0
    assert "24 of 24 runs are valid" in capsys.readouterr().out
    assert len(list(study_folder.glob("*/metrics.json"))) == 24
    assert main(["report", str(study_folder), "--out", str(study_folder / "page.html")]) == 0
    assert (study_folder / "page.html").exists()
    assert main(["summary", str(study_folder)]) == 0
    out = capsys.readouterr().out
    assert "95th percentile of response time (ms)" in out
    assert "objectives attained" in out
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_bad_input_is_exit_code_2_and_one_line(tmp_path, capsys):
    for arguments in (
        ["metrics", str(tmp_path / "nothing")],
        ["report", str(tmp_path)],
        ["summary", str(tmp_path)],
        ["figures", "--study", "no-such-study", "--results", str(tmp_path / "results")],
        ["figures", "no_such_notebook"],
    ):
        assert main(arguments) == 2
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("error: ")
        assert ";" in lines[0]


def test_several_studies_have_a_page_each(single_folder, tmp_path, capsys):
    other = synthetic.write_study(tmp_path / "other", loads=(0.5,), repetitions=1, duration_s=1.0)
    assert main(["report", str(single_folder), str(other)]) == 0
    pages = [single_folder / "report.html", other / "report.html"]
    assert capsys.readouterr().out.splitlines() == [f"report: {page}" for page in pages]
    assert all(page.stat().st_size for page in pages)
    # One that is not a study is said by the process that read it.
    error = pickle.loads(pickle.dumps(InputError(tmp_path, "is no study", "name another")))
    assert str(error) == f"{tmp_path}: is no study; name another"
    assert main(["report", str(single_folder), str(other), "--out", str(tmp_path / "page.html")]) == 2
    assert "name one study" in capsys.readouterr().err


def test_a_page_that_cannot_be_written(single_folder, capsys):
    target = single_folder / "plan.json" / "page.html"
    assert main(["report", str(single_folder), "--out", str(target)]) == 2
    assert "cannot be written" in capsys.readouterr().err


def claims(folder, *entries):
    (folder / "claims.json").write_text(json.dumps(entries))


def test_claims_are_printed_and_on_the_page(single_folder, capsys):
    claim = {
        "id": "C1", "status": "shape only", "paper": 2.0, "ours": 1.62, "interval": [1.5, 1.75],
        "unit": "times", "note": "smaller disks",
    }  # fmt: skip
    claims(single_folder, claim)
    table = present.claims(single_folder.parent)
    assert table.row(0, named=True)["interval"] == "[1.50, 1.75]"
    assert "shape only" in write_report(single_folder).read_text()
    claims(single_folder, claim | {"status": "almost"})
    with pytest.raises(InputError, match="almost"):
        present.claims(single_folder.parent)


def test_notebooks_without_results_name_the_command(tmp_path, capsys):
    (tmp_path / "results").mkdir()
    assert main(["figures", "isolation", "--results", str(tmp_path / "results")]) == 2
    said = "isolation: skipped: no results of isolation; make study STUDY=isolation\n"
    assert capsys.readouterr().err == said


def test_a_notebook_falls_back_to_the_quick_study(study_folder):
    results = study_folder.parent
    assert notebooks.study_for("partitioned_vs_integrated", results).name == "quick"
    synthetic.write_study(results / "kernel-schedulers", repetitions=1, loads=(0.5,), duration_s=1.0)
    assert notebooks.study_for("partitioned_vs_integrated", results).name == "kernel-schedulers"


def test_every_notebook_has_a_source():
    sources = {path.stem for path in (ROOT / "analysis" / "notebooks").glob("*.py")} - {"start"}
    assert sources == set(notebooks.names())


# The kernel's own client leaves an event loop to the collector.
@pytest.mark.filterwarnings("default")
def test_the_notebooks_run(tmp_path, capsys):
    results = tmp_path / "results"
    synthetic.write_study(results / "kernel-schedulers", loads=(0.9,), repetitions=2, duration_s=2.0)
    synthetic.write_study(
        results / "file-systems", factor="filesystem", schedulers=("none", "bfq"), loads=(0.5,), repetitions=2
    )
    sources = ROOT / "analysis" / "notebooks"
    assert main(["figures", *OF_STUDIES, "--results", str(results), "--sources", str(sources)]) == 0
    for name in OF_STUDIES:
        notebook = json.loads((results / "notebooks" / f"{name}.ipynb").read_text())
        kinds = {
            kind for cell in notebook["cells"] for o in cell.get("outputs", []) for kind in o.get("data", {})
        }
        assert {"image/png", "text/html"} <= kinds
        page = (results / "notebooks" / f"{name}.html").read_text()
        assert re.findall(r'src="(?!data:|")[^"]+"', page) == []
    figures_made = {path.name for path in (results / "kernel-schedulers" / "figures").iterdir()}
    assert {"text-response.pdf", "text-response.png", "text-response.svg"} <= figures_made


def test_a_notebook_that_fails_is_exit_code_1(study_folder, tmp_path, capsys):
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in notebooks.names():
        (sources / f"{name}.py").write_text("# %%\n1 / 0\n")
    arguments = [
        "figures",
        "partitioned_vs_integrated",
        "--results",
        str(study_folder.parent),
        "--sources",
        str(sources),
    ]
    assert main(arguments) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_an_end_that_is_cut_has_a_star():
    assert labels.with_interval(0.02, 0.0, 0.05, "pooled variance, cut at 0") == "0.0200 [0*, 0.0500]"
    assert labels.with_interval(0.9, 0.7, 1.0, "cut at 1") == "0.900 [0.700, 1.00*]"
    assert labels.with_interval(0.02, 0.0, 0.05) == "0.0200 [0, 0.0500]"
