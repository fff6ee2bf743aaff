"""Imported results: figures agree with the program's own, damage is refused, none passes as weir's own."""

import errno
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weir
from weir import locate, metrics, present
from weir.cli import main
from weir.derive import QUANTILES
from weir.errors import InputError
from weir.imported import elbencho, fio, folder, recorded
from weir.imported.outcome import Histogram
from weir.load import load_study
from weir.plots import study_figures
from weir.study import class_table

FOREIGN = Path(__file__).parent / "foreign"
BINARY = locate.project() / "target/release/weir"
needs_binary = pytest.mark.skipif(not BINARY.exists(), reason="target/release/weir is not built: make setup")


def _import(tmp_path, study, *arguments):
    return main(["import", "results", study, *map(str, arguments), "--results", str(tmp_path)])


def _log(name):
    """Lines of a latency log: time in ms, latency in ns, direction, size, offset, priority."""
    return [[int(cell) for cell in line.split(", ")] for line in (FOREIGN / name).read_text().splitlines()]


def _latency(name="few.json"):
    return json.loads((FOREIGN / name).read_text())["jobs"][0]["read"]["lat_ns"]


def test_quantiles_of_the_histogram_are_those_of_fio():
    """fio reads its percentiles off the same bins; 99.9 % of 3000 are 2997 requests here, and 2998 in fio.

    The middle of a bin may be beyond the maximum, which fio keeps exactly.
    """
    own = _latency()
    histogram = fio.read(FOREIGN / "few.json").classes[0].histogram
    values = np.repeat(histogram.value_ns, histogram.requests)
    figures = fio.read(FOREIGN / "few.json").classes[0].figures
    for name, q in QUANTILES.items():
        reported_ns = min(own["percentile"][f"{q * 100:.6f}"], own["max"])
        place = metrics.rank(own["N"], q)
        assert reported_ns in values[place : place + 2]
        assert figures[f"response_{name}_ms"] * 1e6 == pytest.approx(values[place])
    assert figures["response_mean_ms"] == pytest.approx(own["mean"] / 1e6)
    assert figures["response_max_ms"] == own["max"] / 1e6
    assert figures["requests"] == own["N"] == 3000


def test_quantiles_of_the_histogram_are_within_its_bins_of_those_of_every_request():
    logged = [row[1] for job in (1, 2) for row in _log(f"few_lat.{job}.log")]
    assert len(logged) == 3000
    figures = fio.read(FOREIGN / "few.json").classes[0].figures
    for name, q in QUANTILES.items():
        exact_ms = metrics.quantile(logged, q) / 1e6
        assert abs(figures[f"response_{name}_ms"] - exact_ms) <= exact_ms * fio.BIN_WIDTH


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=300), st.sampled_from([0.5, 0.9, 0.95, 1.0]))
def test_a_histogram_has_the_rank_quantiles_of_its_values(values, q):
    counts = {float(value): values.count(value) for value in values}
    assert Histogram.of(counts, 0.0).quantile_ns(q) == metrics.quantile(values, q)


@needs_binary
def test_logs_have_every_request_of_fio(tmp_path):
    assert _import(tmp_path, "logs", FOREIGN / "few_lat.1.log", FOREIGN / "few_lat.2.log") == 0
    study = load_study(tmp_path / "logs")
    (row,) = class_table(study).to_dicts()
    own = _latency()
    assert row["requests"] == own["N"]
    assert row["response_mean_ms"] == pytest.approx(own["mean"] / 1e6, rel=1e-6)
    assert row["response_max_ms"] == own["max"] / 1e6
    (run,) = study.runs
    rows = pl.read_parquet(run.path / "requests.parquet")
    assert sorted(rows["client"].unique()) == [0, 1]
    assert rows["intended_ns"].min() == 0 and rows["intended_ns"].is_sorted()
    subprocess.run([BINARY, "verify", tmp_path / "logs"], check=True, capture_output=True)


@needs_binary
def test_reads_and_writes_are_classes(tmp_path):
    assert _import(tmp_path, "mixed", FOREIGN / "log_lat.1.log", FOREIGN / "log_lat.2.log") == 0
    lines = [row[2] for job in (1, 2) for row in _log(f"log_lat.{job}.log")]
    table = class_table(load_study(tmp_path / "mixed"))
    assert dict(table.select("class", "requests").rows()) == {
        "log-read": lines.count(0),
        "log-write": lines.count(1),
    }


@needs_binary
def test_blkparse_has_the_delays_of_its_events(tmp_path):
    """The text is of a stream made from fio's log: what goes in comes out."""
    logged = [row[1] for row in _log("few_lat.1.log")][:120]
    outcome = recorded.block_requests(FOREIGN / "blkparse.txt", "blkparse")
    rows = pl.from_arrow(outcome.requests)
    assert sorted(rows["completed_ns"] - rows["intended_ns"]) == sorted(logged)
    assert (rows["served_ns"] - rows["intended_ns"]).drop_nulls().is_in([2000]).all()
    assert _import(tmp_path, "block", FOREIGN / "blkparse.txt") == 0


@needs_binary
def test_biosnoop_has_the_documented_delays():
    outcome = recorded.block_requests(FOREIGN / "biosnoop.txt", "biosnoop")
    rows = pl.from_arrow(outcome.requests)
    found = sorted((rows["completed_ns"] - rows["intended_ns"]) / 1e6)
    assert found == pytest.approx([0.60, 0.61, 0.74, 0.79, 0.93, 0.98, 1.09, 1.24])
    assert set(rows["class"]) == {"write"}


@needs_binary
def test_biosnoop_has_the_requests_that_fio_counted():
    """Both recorded one run. fio's mean may be 15 % longer: its system calls were emulated."""
    outcome = recorded.block_requests(FOREIGN / "biosnoop-0.31.0.txt", "biosnoop")
    rows = pl.from_arrow(outcome.requests)
    own = json.loads((FOREIGN / "biosnoop-0.31.0-fio.json").read_text())["jobs"][0]
    assert set(rows["class"]) == {"read", "write"}
    for direction in ("read", "write"):
        one = rows.filter(pl.col("class") == direction)
        assert one.height == own[direction]["total_ios"] > 0
        assert one["size_bytes"].sum() == own[direction]["io_bytes"]
        fio_ns = own[direction]["lat_ns"]["mean"]
        assert 0.85 * fio_ns < (one["completed_ns"] - one["intended_ns"]).mean() < fio_ns


def test_bpftrace_has_a_histogram_and_no_invented_rows():
    outcome = recorded.bpftrace(FOREIGN / "biosnoop-bt.txt")
    given_ms = [
        int(line.split()[-1])
        for line in (FOREIGN / "biosnoop-bt.txt").read_text().splitlines()
        if line[:1].isdigit()
    ]
    figures = outcome.classes[0].figures
    assert outcome.requests is None and figures["requests"] == len(given_ms)
    exact = metrics.quantile(given_ms, 0.5)
    assert exact <= figures["response_p50_ms"] < exact + 1
    assert figures["throughput_mb_s"] is None and figures["response_mean_ms"] is None


def test_elbencho_has_means_and_no_percentile(tmp_path):
    outcome = elbencho.read(FOREIGN / "elbencho.csv")
    assert [one.name for one in outcome.classes] == ["write", "read"]
    write, read = (one.figures for one in outcome.classes)
    assert (write["response_mean_ms"], write["response_max_ms"]) == (9.383, 120.903)
    assert read["throughput_mb_s"] == pytest.approx(9048 * 2**20 / 1e6, rel=0.01)
    assert read["response_p95_ms"] is None and any("no percentile" in text for text in outcome.unknown)


#: Of elbencho's console, by the name of the phase in the table: the lines with its figures.
_CONSOLE = {
    "": ("IOPS", "Throughput MiB/s", "Total MiB", "IO latency", "IO lat % us", "IO lat hist"),
    "write": ("IOPS write", "MiB/s write", "MiB write", "IO wr latency", "IO wr lat % us", "IO wr lat hist"),
    "read": ("IOPS read", "MiB/s read", "MiB read", "IO rd latency", "IO rd lat % us", "IO rd lat hist"),
}


def _printed_us(text):
    """A time that elbencho printed, with the largest error of its rounding, in us."""
    digits, unit = re.fullmatch(r"([0-9.]+)(us|ms|s)", text).groups()
    factor = {"us": 1, "ms": 1e3, "s": 1e6}[unit]
    decimals = len(digits.partition(".")[2])
    return float(digits) * factor, factor * 10.0**-decimals


def _console(text):
    """What elbencho printed: by class as weir names it, the last values of each line."""
    found = {}
    for phase in text.split("---\n")[:-1]:
        lines = dict(re.findall(r"^(?:[A-Z]\S*)? *(\S.*?) *: +(.*)$", phase, re.MULTILINE))
        name = re.search(r"^([A-Z][A-Z0-9-]+) ", phase, re.MULTILINE)[1].lower()
        if name == "operation":
            name = re.findall(r"^([A-Z][A-Z0-9-]+) ", phase, re.MULTILINE)[1].lower()
        for kind, keys in _CONSOLE.items():
            if keys[0] in lines:
                title = f"{name}-rwmix-read" if kind == "read" else name
                found[title] = [lines.get(key) for key in ("Elapsed time", *keys)]
    return found


def _assert_as_printed(file, console):
    """The imported figures are those that the same call printed, within its rounding."""
    outcome = elbencho.read(file)
    printed = _console(console)
    assert [one.name for one in outcome.classes] == list(printed)
    for one in outcome.classes:
        elapsed, iops, mib, size, latency, percentiles, bins = printed[one.name]
        figures = one.figures
        is_json = file.suffix == ".json"
        assert figures["requests_per_s"] == pytest.approx(float(iops.split()[-1]), rel=1e-3, abs=1)
        # All are cut to whole numbers: the rate, and in the table the size in MiB and the time in ms.
        elapsed_us, rounding_us = _printed_us(elapsed.split()[-1])
        slack = 0 if is_json else 1 / float(size.split()[-1]) + (1e3 + rounding_us) / elapsed_us
        expected = float(mib.split()[-1]) * 2**20 / 1e6
        assert expected * (1 - slack) <= figures["throughput_mb_s"] <= (expected + 1.05) * (1 + slack)
        low, mean, high = (_printed_us(word.partition("=")[2]) for word in latency.split()[1:4])
        assert abs(figures["response_mean_ms"] * 1e3 - mean[0]) <= mean[1]
        assert abs(figures["response_max_ms"] * 1e3 - high[0]) <= high[1]
        if not is_json or bins is None:
            assert one.histogram is None and figures["response_p95_ms"] is None
            continue
        counts = [int(word) for word in re.findall(r": (\d+)", bins)]
        assert list(one.histogram.requests) == counts and figures["requests"] == sum(counts)
        for q, upto in re.findall(r"(\d+)%<=(\d+)", percentiles):
            value_us = one.histogram.quantile_ns(int(q) / 100) / 1e3
            assert float(upto) / (1 + elbencho.BIN_WIDTH) - 1 <= value_us <= float(upto) + 1
        assert one.histogram.value_ns[0] >= low[0] * 1e3
    return outcome


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("call", ["two", "mix", "dir"])
def test_figures_of_elbencho_are_those_that_it_printed(call, form):
    file = FOREIGN / f"elbencho-3.1-10-{call}.{form}"
    outcome = _assert_as_printed(file, file.with_suffix(".txt").read_text())
    assert outcome.program == "elbencho 3.1-10"
    expected = {"two": ["write", "read"], "mix": ["rwmix70", "rwmix70-rwmix-read"], "dir": ["write", "read"]}
    assert [one.name for one in outcome.classes] == expected[call]
    assert {one.clients for one in outcome.classes} == {1 if call == "dir" else 2}
    both = [elbencho.read(file.with_suffix(f".{form}")) for form in ("csv", "json")]
    assert both[0].classes[0].workload == both[1].classes[0].workload
    says_so = any("no percentile" in text for text in outcome.unknown)
    assert says_so == (form == "csv" or call == "dir")


@pytest.mark.skipif(shutil.which("elbencho") is None, reason="elbencho is not installed")
def test_files_of_the_installed_elbencho_are_read(tmp_path):
    command = ["elbencho", "-w", "-r", "-t", "2", "-b", "4k", "-s", "32m", "--rand", "--lat", "--lathisto"]
    command += ["--latpercent", "--csvfile", "live.csv", "--jsonfile", "live.json", "file"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    for form in ("csv", "json"):
        _assert_as_printed(tmp_path / f"live.{form}", done.stdout)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text[:400], "line 1 is not JSON"),
        (lambda text: text.replace('"iops"', '"ops"'), "row 1: field .iops. is missing"),
        (lambda text: text.replace('"avg_us":"', '"avg_us":"x'), "row 1: field .avg_us. is .x.*not a number"),
        (lambda text: text.replace('"count":"', '"count":"-'), "field .histogram. holds no counts"),
        (lambda text: text.replace("-32us", "-us"), "field .histogram. holds no counts"),
        (lambda text: text.replace("IO", "OI"), "no phase has a latency of blocks"),
        (lambda text: text + text, "row 3: phase .write. comes twice"),
    ],
)
def test_a_damaged_result_of_elbencho_is_refused(tmp_path, change, problem):
    text = (FOREIGN / "elbencho-3.1-10-two.json").read_text()
    (tmp_path / "e.json").write_text(change(text))
    with pytest.raises(InputError, match=problem):
        elbencho.read(tmp_path / "e.json")


def test_percentiles_alone_make_no_rows(tmp_path, capsys):
    assert _import(tmp_path, "p", FOREIGN / "percentiles.json") == 0
    assert "percentiles only, without a histogram" in capsys.readouterr().out
    (run,) = load_study(tmp_path / "p").runs
    assert not (run.path / "requests.parquet").exists()
    assert json.loads((run.path / "summary.json").read_text())["histograms"] == {}


@pytest.fixture
def imported(tmp_path):
    for level, name in (("none", "few.json"), ("bfq", "few2.json")):
        assert _import(tmp_path, "s", FOREIGN / name, "--level", f"scheduler={level}") == 0
    return tmp_path / "s"


def test_an_imported_run_is_not_valid_but_imported(imported, capsys):
    study = load_study(imported)
    assert [run.validity.status for run in study.runs] == ["imported"] * 2
    reasons = {run.validity.reasons for run in study.runs}
    assert "R-IMPORTED: imported from few.json by fio 3.33; weir did not judge it" in reasons
    assert not study.runs_with("valid") and len(study.valid_runs) == 2
    assert main(["summary", str(imported)]) == 0
    out = capsys.readouterr().out
    assert "0 valid, 2 imported" in out and "weir did not judge it" in out
    assert any("coordinated omission" in line for line in present.provenance(study))


def test_report_compare_export_and_notebooks_read_it(imported, tmp_path, monkeypatch, capsys):
    assert main(["report", str(imported)]) == 0
    page = (imported / "report.html").read_text()
    assert "by fio 3.33; weir did not judge it" in page and "planned runs are valid" not in page
    again = tmp_path / "again"
    for level, name in (("none", "few2.json"), ("bfq", "few.json")):
        assert _import(again, "s", FOREIGN / name, "--level", f"scheduler={level}") == 0
    capsys.readouterr()
    assert main(["compare", str(imported), str(again / "s"), "--format", "json"]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    # Seeds are unknown: runs are never paired across studies.
    assert changes and not any(change["paired"] for change in changes)
    assert main(["export", str(imported), str(tmp_path / "out")]) == 0
    assert set(pl.read_parquet(tmp_path / "out/runs.parquet")["status"]) == {"imported"}
    monkeypatch.setenv("WEIR_RESULTS", str(tmp_path))
    notebook = weir.Study("s")
    assert "2 imported" in repr(notebook)
    assert notebook.summary("response_p95_ms")["estimate"].cast(pl.Float64).is_finite().all()


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, "closed loop (fio)"),
        ({"rate_iops": "500"}, "closed loop (fio), at most 500/s by each client"),
        ({"rate_iops": "2k,1"}, "closed loop (fio), at most 2048/s by each client"),
        ({"rate_iops": ",100"}, "closed loop (fio)"),
        ({"rate": "1m"}, "closed loop (fio), at most 256/s by each client"),
        ({"rate": "1m", "bssplit": "4k/50:8k/50"}, "closed loop (fio)"),
        ({"rate_iops": "x"}, "closed loop (fio)"),
    ],
)
def test_a_report_names_the_rate_of_a_paced_load(tmp_path, options, shown):
    document = json.loads((FOREIGN / "few.json").read_text())
    document["jobs"][0]["job options"] |= options
    (tmp_path / "f.json").write_text(json.dumps(document))
    assert _import(tmp_path, "paced", tmp_path / "f.json") == 0
    assert main(["report", str(tmp_path / "paced")]) == 0
    assert f"<td>{shown}</td>" in (tmp_path / "paced/report.html").read_text()


def test_a_report_names_the_rate_of_a_paced_class(study_folder):
    """A study of an imported job has the rate in the recipe of its workload."""
    plan = json.loads((study_folder / "plan.json").read_text())
    closed = {"arrivals": {"closed": {"depth": 1, "think_us": 0, "rate_per_s": 2.5}}}
    for run in plan["runs"]:
        run["classes"][0] |= {"engine": "fio", "recipe": closed}
    (study_folder / "plan.json").write_text(json.dumps(plan))
    first = load_study(study_folder).classes[0]
    assert (first.engine, first.rate_per_s) == ("fio", 2.5)
    assert main(["report", str(study_folder)]) == 0
    page = (study_folder / "report.html").read_text()
    assert "closed loop (fio), at most 2.50/s by each client" in page and "open loop (replay)" in page


@pytest.mark.parametrize("pattern", ["few2*", "**/few2.jso?", "HERE/few2*"])
def test_a_mapping_names_the_cells(tmp_path, pattern):
    for name in ("few.json", "few2.json"):
        shutil.copy(FOREIGN / name, tmp_path)
    text = "comparison: {factor: scheduler, baseline: none}\nruns:\n"
    text += "  - {levels: {scheduler: none}, files: [few.json]}\n"
    text += f"  - {{levels: {{scheduler: bfq}}, files: ['{pattern}']}}\n"
    (tmp_path / "map.yml").write_text(text.replace("HERE", str(tmp_path)))
    assert _import(tmp_path, "m", "--map", tmp_path / "map.yml") == 0
    study = load_study(tmp_path / "m")
    assert study.factors == {"scheduler": ["none", "bfq"]}
    assert study.comparison == {"factor": "scheduler", "baseline": "none"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("runs: []", "field `runs` is []"),
        ("run: []", "field `run` is unknown"),
        ("runs: [{levels: {a: off}, files: [x]}]", "field `runs[0].levels.a` is False"),
        ("runs: [{levels: {a: 1}, files: ['*.none']}]", "no file matches `*.none`"),
        ("runs: [{levels: {a: .nan}, files: [few.json]}]", "field `runs[0].levels.a` is nan"),
        ("runs: [{levels: {'': 1}, files: [few.json]}]", "factor '' is no name"),
        ("comparison: {factor: a, baseline: 2}\nruns: [{levels: {a: 1}, files: [few.json]}]", "no level `2`"),
        ("comparison: {factor: b}\nruns: [{levels: {a: 1}, files: [few.json]}]", "there is no factor `b`"),
        ("{", "is not YAML"),
        ("runs: !!timestamp x", "is not YAML"),
        ("[" * 500_000, "is nested too deeply"),
        ("- " * 500_000, "is nested too deeply"),
        # 4^60 times the same text.
        (
            "runs:\n- &a0 [x]\n" + "".join(f"- &a{i} [{f'*a{i - 1},' * 4}]\n" for i in range(1, 61)),
            "field `runs[0]` is ['x']",
        ),
        (
            "question:\n- &a0 [x]\n" + "".join(f"- &a{i} [{f'*a{i - 1},' * 4}]\n" for i in range(1, 61)),
            "field `question` is [['x'], ",
        ),
    ],
)
def test_a_wrong_mapping_is_refused(tmp_path, capsys, text, problem):
    shutil.copy(FOREIGN / "few.json", tmp_path)
    (tmp_path / "map.yml").write_text(text)
    assert _import(tmp_path / "results", "m", "--map", tmp_path / "map.yml") == 2
    error = capsys.readouterr().err
    assert problem in error and len(error) < 20_000
    assert not (tmp_path / "results/m").exists()


def test_what_does_not_go_together_is_refused(imported, capsys):
    results = imported.parent
    before = sorted(results.rglob("*"))
    few, other = FOREIGN / "few.json", FOREIGN / "percentiles.json"
    for arguments, problem in (
        ((few, "--level", "scheduler=kyber"), "is in the study already, as run"),
        ((other, "--level", "scheduler=none"), "give --latency lat"),
        ((FOREIGN / "elbencho.csv", "--latency", "clat"), "--latency is clat"),
        ((FOREIGN / "elbencho.csv",), "its levels are of the factors none"),
        ((FOREIGN / "averaged_lat.1.log", "--level", "scheduler=none"), "averages only"),
        ((FOREIGN / "README.md",), "is of no format that weir imports"),
        ((FOREIGN / "absent.json",), "there is no such file"),
        ((few, "--level", "scheduler"), "not FACTOR=LEVEL"),
        ((other, "--level", "a=1", "--level", " a=2"), "factor `a` comes twice"),
        ((other, "--level", "scheduler=1", "--latency", "lat"), "text and a number"),
        ((), "FILE"),
    ):
        if "averages only" in problem and not BINARY.exists():
            continue
        assert _import(results, "s", *arguments) == 2, problem
        assert problem in capsys.readouterr().err
    assert sorted(results.rglob("*")) == before


def test_a_study_that_weir_ran_takes_no_imported_run(study_folder, capsys):
    assert _import(study_folder.parent, study_folder.name, FOREIGN / "few.json") == 2
    assert "is a study that weir ran" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text[:3000], "is not whole JSON of fio"),
        (lambda text: text + text, "holds several JSON objects"),
        (lambda text: text.replace('"N" : 3000', '"N" : 2999'), "hold 3000 requests, `N` is 2999"),
        (lambda text: re.sub(r'"(c?lat_ns)" : {', r'"\1" : [], "was" : {', text), "has no `clat_ns`"),
        (lambda text: re.sub(r'("bins" : {\s*"\d+" : )', r"\1-", text), "holds no counts"),
        (
            lambda text: text.replace('"total_ios" : 3000', '"total_ios" : 0'),
            "no job of it completed a request",
        ),
    ],
)
def test_a_damaged_result_of_fio_is_refused(tmp_path, change, problem):
    text = (FOREIGN / "few.json").read_text()
    assert change(text) != text
    (tmp_path / "x.json").write_text(change(text))
    with pytest.raises(InputError, match=problem.replace("`", ".")):
        fio.read(tmp_path / "x.json")


def test_notes_of_fio_before_the_object_are_passed_over(tmp_path):
    text = (
        "note: both iodepth >= 1 and synchronous I/O engine are selected\n"
        + (FOREIGN / "few.json").read_text()
    )
    (tmp_path / "x.json").write_text(text)
    assert fio.read(tmp_path / "x.json").classes == fio.read(FOREIGN / "few.json").classes


def test_a_run_with_errors_is_invalid(tmp_path):
    text = (FOREIGN / "few.json").read_text().replace('"error" : 0', '"error" : 5', 1)
    (tmp_path / "x.json").write_text(text)
    assert _import(tmp_path, "e", tmp_path / "x.json") == 0
    study = load_study(tmp_path / "e")
    assert [run.validity.status for run in study.runs] == ["invalid"] and not study.valid_runs


@pytest.mark.parametrize("at", ["_seal", "write_document"])
def test_an_import_that_fails_leaves_everything_as_it_was(imported, tmp_path, monkeypatch, capsys, at):
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for end, path in enumerate(files, 1):
        path.write_text((FOREIGN / "few.json").read_text() + "\n" * end)
    before = sorted(imported.rglob("*"))
    whole = getattr(folder, at)
    written = []

    def full(path, *rest):
        written.append(path)
        # The second run, or the plan, which is the last document.
        if path.name == "plan.json" or (at == "_seal" and len(written) == len(files)):
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(path, *rest)

    monkeypatch.setattr(folder, at, full)
    assert _import(imported.parent, "s", *files, "--level", "scheduler=none") == 2
    assert "cannot be written (No space left on device)" in capsys.readouterr().err
    assert len(written) > 1 and sorted(imported.rglob("*")) == before


@pytest.mark.parametrize(
    ("is_imported", "remedy"), [(True, "latency logs of fio"), (False, "records: summary")]
)
def test_without_requests_a_tail_names_what_has_them(imported, is_imported, remedy):
    study = load_study(imported)
    for run in study.runs:
        document = json.loads((run.path / "run.json").read_text())
        if not is_imported:
            del document["imported"]
        (run.path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="only a summary") as error:
        study_figures.tail(study, study.classes[0].name)
    assert remedy in error.value.remedy


@needs_binary
@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_files_of_the_installed_fio_are_read(tmp_path):
    """JSON+ and latency logs of one call agree, whatever the version of fio."""
    command = ["fio", "--name=live", "--rw=randread", "--bs=4k", "--size=1m", "--number_ios=600"]
    command += ["--io_size=64m", "--norandommap", "--lat_percentiles=1", "--write_lat_log=live"]
    command += ["--log_offset=1", "--output-format=json+", "--output=live.json"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (of_json,) = fio.read(tmp_path / "live.json").classes
    outcome = recorded.fio_logs([tmp_path / "live_lat.1.log"])
    rows = pl.from_arrow(outcome.requests)
    delays = (rows["completed_ns"] - rows["submitted_ns"]).to_list()
    assert of_json.figures["requests"] == len(delays) == 600
    assert of_json.figures["response_mean_ms"] == pytest.approx(sum(delays) / len(delays) / 1e6, rel=1e-3)
    for name in ("p50", "p90", "p95"):
        exact_ms = metrics.quantile(delays, QUANTILES[name]) / 1e6
        assert abs(of_json.figures[f"response_{name}_ms"] - exact_ms) <= exact_ms * fio.BIN_WIDTH


@needs_binary
@pytest.mark.skipif(shutil.which("blkparse") is None, reason="blkparse is not installed (package blktrace)")
def test_text_of_the_installed_blkparse_is_read(tmp_path):
    """The binary trace is weir's, since few kernels let blktrace run; blkparse prints it."""
    logged = _log("few_lat.1.log")[:300]
    (tmp_path / "few_lat.1.log").write_text("".join(", ".join(map(str, line)) + "\n" for line in logged))
    converted = [BINARY, "trace", "convert", "few_lat.1.log", "--format", "fio-log", "--sort"]
    converted += ["--to", "blktrace", "--out", "live.blktrace.0"]
    subprocess.run(converted, cwd=tmp_path, check=True, capture_output=True)
    text = subprocess.run(["blkparse", "-i", "live"], cwd=tmp_path, check=True, capture_output=True).stdout
    (tmp_path / "live.txt").write_bytes(text)
    rows = pl.from_arrow(recorded.block_requests(tmp_path / "live.txt", "blkparse").requests)
    assert sorted(rows["completed_ns"] - rows["intended_ns"]) == sorted(line[1] for line in logged)
    assert sorted(rows["offset"]) == sorted(line[4] for line in logged)
