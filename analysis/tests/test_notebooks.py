"""The committed notebooks on the sample results, the places of results, and JupyterLab."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import jupytext
import nbformat
import polars as pl
import pytest
import synthetic
from IPython.core.interactiveshell import InteractiveShell

import weir
from weir import judged, lab, locate, make_sample, notebooks, paper_registry
from weir.cli import main
from weir.derive import metrics_of, run_metrics
from weir.errors import InputError, Skipped
from weir.load import load_study
from weir.statistics import compare, summarise
from weir.study import class_table

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / notebooks.SOURCES
BINARY = ROOT / "target/release/weir"
#: Notebooks of papers that are committed as executed on results which are too large for the repository.
ON_RESULTS = [
    name for name, paper in paper_registry.papers().items() if paper.studies and judged.studies(paper.studies)
]
#: Of a paper, cells with this tag say something about all of its studies, about runs on devices, or about a
#: trace that is not in the repository.
WHOLE = "whole"
#: Papers of which every run is simulated again: within a minute.
AGAIN = ("hierarchical_disk_sharing",)
MEBI = 1 << 20


def texts(notebook):
    """What each code cell says, without figures."""
    return [
        "".join(
            output.text if output.output_type == "stream" else f"{kind}: {output.data[kind]}"
            for output in cell.outputs
            for kind in (["stream"] if output.output_type == "stream" else sorted(output.data))
            if not kind.startswith("image/")
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def committed(name):
    return nbformat.read(SOURCES / f"{name}.ipynb", as_version=4)


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """A folder of results without results."""
    monkeypatch.setenv(locate.RESULTS_VARIABLE, str(tmp_path / "none"))
    return tmp_path / "none"


@pytest.mark.parametrize("name", notebooks.names())
def test_a_notebook_is_a_pair_with_outputs(name):
    notebook = committed(name)
    nbformat.validate(notebook)
    source = jupytext.read(SOURCES / f"{name}.py")
    pairs = zip(notebook.cells, source.cells, strict=True)
    assert all((here.cell_type, here.source) == (there.cell_type, there.source) for here, there in pairs)
    for cell in notebook.cells:
        assert cell.cell_type != "code" or all(output.output_type != "error" for output in cell.outputs)
    said = "".join(texts(notebook))
    skipped = r"skipped: no results of \S+; make (study|figures) STUDY="
    assert re.search(r"\d", said) or re.search(skipped, said)
    # No path of the machine that executed it.
    assert str(ROOT) not in said and "/tmp/" not in said


def test_notebooks_and_sample_are_small():
    assert sum(path.stat().st_size for path in SOURCES.glob("*.ipynb")) < 12 * MEBI
    assert sum(path.stat().st_size for path in locate.SAMPLE.rglob("*") if path.is_file()) < 8 * MEBI


# The kernel's own client leaves an event loop to the collector.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", notebooks.names())
def test_a_notebook_gives_the_numbers_that_are_committed(name, tmp_path, monkeypatch):
    """Of the notebook of a paper, those cells that there are results for."""
    if name in ("traces", *AGAIN) and not BINARY.exists():
        pytest.skip("needs target/release/weir")
    monkeypatch.delenv("WEIR_TRACES", raising=False)
    if name in AGAIN:
        assert paper_registry.run_missing(paper_registry.papers()[name].studies, tmp_path / "none")
    began = time.monotonic()
    notebooks.execute(SOURCES / f"{name}.py", tmp_path / "out", tmp_path / "none", page=False)
    # 2 minutes on a quiet machine.
    assert time.monotonic() - began < 600
    found = nbformat.read(tmp_path / "out" / f"{name}.ipynb", as_version=4)
    cells = [cell for cell in found.cells if cell.cell_type == "code"]
    if name in notebooks.ON_DEVICES:
        # It falls back to the sample, which is of another study.
        assert texts(found)[0].startswith("Sample of study quick: 39 of 39 planned runs are valid")
        assert texts(committed(name))[0].startswith(f"Study {notebooks.ON_DEVICES[name]}: ")
        return
    pairs = zip(cells, texts(found), texts(committed(name)), strict=True)
    if name in ON_RESULTS:
        pairs = [pair for pair in pairs if not is_of_all(*pair[:2])]
        assert name not in AGAIN or len(pairs) > 10
    for _, again, before in pairs:
        assert again == before
    assert name in AGAIN or not list(tmp_path.glob("none/*/plan.json"))


def is_of_all(cell, said):
    """Whether what a cell says depends on results that the repository has not."""
    return WHOLE in cell.metadata.get("tags", ()) or said.startswith("skipped: no results of")


def test_a_number_that_differs_is_seen():
    notebook = committed("00-quick-tour")
    before = texts(notebook)
    cell = next(c for c in notebook.cells if c.cell_type == "code" and "over 100 ms" in c.source)
    data = cell.outputs[0].data
    changed = re.sub(r"(\d)(?=\D*$)", lambda d: str((int(d[1]) + 1) % 10), data["text/plain"])
    assert changed != data["text/plain"]
    data["text/plain"] = changed
    assert texts(notebook) != before


@pytest.mark.parametrize("name", make_sample.STUDIES)
def test_the_sample_is_whole_and_its_metrics_are_current(name):
    study = load_study(locate.SAMPLE / name)
    assert (
        study.runs_with("valid") == study.runs
        and not study.missing
        and not study.stray
        and not study.unsealed
    )
    run = study.runs[0]
    kept, computed = dict(_leaves(metrics_of(run, keep=False))), dict(_leaves(run_metrics(run)))
    numbers = {path for path, value in computed.items() if isinstance(value, float)}
    assert {path: kept[path] for path in numbers} == pytest.approx(
        {path: computed[path] for path in numbers}, rel=1e-9
    )
    assert kept | dict.fromkeys(numbers) == computed | dict.fromkeys(numbers)
    assert all(json.loads((run.path / "run.json").read_text())["testbed"] for run in study.runs)


def _leaves(document, path=()):
    """The values of nested objects, with their paths."""
    for name, part in document.items():
        if isinstance(part, dict):
            yield from _leaves(part, (*path, name))
        else:
            yield (*path, name), part


def test_results_are_found_from_any_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(locate.RESULTS_VARIABLE, raising=False)
    monkeypatch.delenv(locate.ROOT_VARIABLE, raising=False)
    for folder in (ROOT, SOURCES, tmp_path):
        monkeypatch.chdir(folder)
        assert locate.project() == ROOT
        assert locate.results() == ROOT / "results"
    other = tmp_path / "other"
    (other / "workloads").mkdir(parents=True)
    (other / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(other / "deep/er")
    assert locate.results() == other.resolve() / "results"
    monkeypatch.setenv(locate.RESULTS_VARIABLE, str(tmp_path / "mine"))
    assert locate.results() == (tmp_path / "mine").resolve()


def test_results_of_the_user_come_before_the_sample(tmp_path):
    assert locate.study("quick", tmp_path) == locate.SAMPLE / "quick"
    assert set(locate.studies("hds", tmp_path)) == {"hds-reservation", "hds-borrowing"}
    synthetic.write_study(tmp_path / "quick", loads=(0.5,), repetitions=1, duration_s=1.0)
    (tmp_path / "hds-root").mkdir()
    (tmp_path / "hds-root/plan.json").write_text("{}")
    assert locate.study("quick", tmp_path) == tmp_path / "quick"
    # Never mixed.
    assert set(locate.studies("hds", tmp_path)) == {"hds-root"}
    assert locate.output(tmp_path / "quick", tmp_path) == tmp_path / "quick"
    assert locate.output(locate.SAMPLE / "quick", tmp_path) == tmp_path / "notebooks/sample/quick"


def test_a_study_is_one_object(empty):
    study = weir.Study("quick")
    assert study.is_sample and study.plan.height == 39 and set(study.plan["status"]) == {"valid"}
    table = class_table(study.loaded)
    assert study.runs.equals(table)
    by = ["class", *study.factors]
    for name in ("text", "video"):
        of_class = table.filter(pl.col("class") == name)
        wanted = summarise(of_class, "response_p95_ms", by, "log-t", bounds=(0, float("inf")), pool=True)
        found = study.summary("response_p95_ms").filter(pl.col("class") == name)
        assert found.drop("quantile_shown").equals(wanted)
        assert set(found["estimand"]) == {"geometric mean of runs"} and (found["low"] > 0).all()
    found = study.effects("architecture", baseline="partitioned")
    others = ["class", *(name for name in study.factors if name != "architecture")]
    wanted = compare(table, "response_p95_ms", "architecture", "partitioned", others)
    assert found.drop("settled").equals(wanted)
    for row in found.iter_rows(named=True):
        assert row["settled"] == (row["p"] <= 0.05)
    answers = study.answers("architecture")
    assert len(answers) == 2 and all("settled" in answer for answer in answers)
    requests = study.requests("text").select(pl.len(), pl.col("class").n_unique()).collect().row(0)
    assert requests[0] > 3000 and requests[1] == 1
    flags = [f"response_{q}_shown" for q in ("p95", "p99", "p999")]
    assert list(study.frame().columns) == [*study.runs.columns, *flags]
    shown = study.frame()["response_p99_shown"]
    assert len(shown) == study.runs.height and shown.any() and not shown.all()
    assert study.devices["device"].n_unique() == 3 and study.whole_runs.height == 36
    html = study._repr_html_()
    assert "Study quick" in html and "39 valid" in html and "sample" in html
    assert "response_p95_ms" in study.metrics
    for figure in (study.plot(), study.plot_effects("scheduler"), study.plot_tail("video")):
        assert figure.axes
    with pytest.raises(InputError, match="varied factors: scheduler, filesystem, architecture, testbed"):
        study.effects("load")


def test_a_study_without_results_names_the_command(empty):
    with pytest.raises(Skipped) as error:
        weir.Study("mine")
    assert str(error.value) == "skipped: no results of mine; make study STUDY=mine"


# traitlets and ipywidgets warn of each other.
@pytest.mark.filterwarnings("default")
def test_controls_draw_what_is_chosen(empty):
    controls = weir.Study("quick").controls()
    class_name, _, quantile, factor = controls.children[:4]
    assert class_name.options == ("text", "video")
    assert [label for label, _ in quantile.options] == ["median", "90 %", "95 %", "99 %", "99.9 %"]
    assert [value for _, value in factor.options] == ["", *weir.Study("quick").factors]
    drawn = []
    study = weir.Study("quick")
    study.plot = lambda *arguments: drawn.append(arguments) or weir.Study.plot(study, *arguments)
    controls = study.controls()
    controls.update()
    controls.children[2].value = "p99"
    controls.children[3].value = "architecture"
    assert drawn[-1] == ("response_p99_ms", "text", "architecture")


def test_cells_without_input_are_skipped_and_others_run():
    shell = InteractiveShell()
    notebooks._skip_cells(shell)
    shell.run_cell("from weir.errors import Skipped\ntable = 1\nlost = Skipped.no_results('mine')")
    skipped = shell.run_cell("table = 2\nraise lost\nrest = table", store_history=True)
    assert skipped.success
    # Of the other cell's table nothing is drawn.
    assert "table" not in shell.user_ns
    assert shell.run_cell("print(table)").success
    assert shell.run_cell("print(rest)").success
    assert shell.run_cell("kept = 3").success and shell.user_ns["kept"] == 3
    assert not shell.run_cell("nobody_has_set_this").success
    assert not shell.run_cell("1 / 0").success
    shell.run_cell("table = 4")
    assert shell.run_cell("assert table == 4").success


# The kernel's own client leaves an event loop to the collector.
@pytest.mark.filterwarnings("default")
def test_figures_of_any_study(tmp_path, monkeypatch, capsys):
    results = tmp_path / "results"
    monkeypatch.setenv(locate.RESULTS_VARIABLE, str(results))
    monkeypatch.chdir(tmp_path)
    synthetic.write_study(results / "mine", loads=(0.5,), repetitions=2, duration_s=1.0)
    assert notebooks.unread(results) == ["mine"]
    monkeypatch.setattr(paper_registry, "run_missing", lambda *_: [])
    # Of a paper that was executed before.
    shutil.copytree(locate.JUDGED / "traces", results / "traces")
    assert main(["figures", "--study", "mine"]) == 0
    said = capsys.readouterr().out
    assert "mine (mine)" in said and "S-T2" not in said
    made = nbformat.read(results / "notebooks/mine.ipynb", as_version=4)
    assert [c.source for c in made.cells if "parameters" in c.metadata.get("tags", ())] == ["NAME = 'mine'"]
    assert (results / "notebooks/mine.html").exists() and list((results / "mine/figures").glob("yours-*.pdf"))
    assert main(["figures", "--study", "nothing"]) == 2
    assert "no notebook reads nothing" in capsys.readouterr().err


def test_figures_of_a_fresh_clone_are_of_the_sample(empty, monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(notebooks, "execute", lambda source, *_: ran.append(source.stem) or [])
    monkeypatch.setattr(notebooks.BinaryCache, "find", lambda _: None)
    assert main(["figures"]) == 0
    of_sample = ["00-quick-tour", "partitioned_vs_integrated", "multi_filesystem"]
    assert ran == [*of_sample, "clockwise", "hierarchical_disk_sharing", "traces"]
    said = capsys.readouterr().err.splitlines()
    assert "isolation: skipped: no results of isolation; make study STUDY=isolation" in said
    assert len(said) == len(notebooks.names()) - len(ran) - 1


def test_the_first_page_says_what_each_notebook_shows(empty):
    (cell,) = nbformat.reads(lab.start_page(empty), as_version=4).cells
    for name in notebooks.names():
        assert f"[{name}]({name}.ipynb)" in cell.source
    rows = {row.split("|")[1].strip(): row for row in cell.source.splitlines() if row.startswith("| [")}
    assert "| sample of quick |" in rows["[00-quick-tour](00-quick-tour.ipynb)"]
    of_shenoy = rows["[partitioned_vs_integrated_shenoy](partitioned_vs_integrated_shenoy.ipynb)"]
    assert "| as committed; yours: make figures STUDY=shenoy |" in of_shenoy
    assert not any("skipped" in row for row in rows.values())


def test_the_first_page_of_a_clone_without_a_binary_shows_the_traces_as_committed(empty, monkeypatch):
    monkeypatch.setenv(locate.BINARY_VARIABLE, str(empty / "weir"))
    (cell,) = nbformat.reads(lab.start_page(empty), as_version=4).cells
    (row,) = (row for row in cell.source.splitlines() if row.startswith("| [traces]"))
    assert "| as committed; yours: set WEIR_BINARY to the weir binary |" in row


def test_jupyterlab_follows_a_dark_system():
    """The server finds the settings that `make lab` gives it, as a browser would ask for them."""
    from jupyterlab_server.config import ConfigManager

    paths = [lab.environment(Path("results"))["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0]]
    overrides = ConfigManager(read_config_path=[f"{path}/labconfig" for path in paths])
    theme = overrides.get("default_setting_overrides")["@jupyterlab/apputils-extension:themes"]
    assert theme == {"adaptive-theme": True}


def get(url, token=None):
    request = urllib.request.Request(url, headers={"Authorization": f"token {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.status, json.loads(answer.read())


def test_jupyterlab_serves_the_notebooks_to_who_has_the_token(empty, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Kernels are reached over socket files, whose paths have 107 characters at most.
    runtime = Path(tempfile.mkdtemp())
    environment = lab.environment(empty) | {"JUPYTER_RUNTIME_DIR": str(runtime), "HOME": str(tmp_path)}
    options = ["--no-browser", f"--port={port}", "--ServerApp.port_retries=0"]
    log = (tmp_path / "log").open("w")
    server = subprocess.Popen([*lab.command(ROOT), *options], env=environment, stderr=log, cwd=tmp_path)
    try:
        deadline = time.monotonic() + 120
        while not (started := list(runtime.glob("jpserver-*.json"))) and time.monotonic() < deadline:
            assert server.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.2)
        time.sleep(0.5)
        told = json.loads(started[0].read_text())
        assert told["hostname"] == "127.0.0.1" and len(told["token"]) >= 32
        url = f"http://127.0.0.1:{port}"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            get(f"{url}/api/contents/analysis/notebooks")
        _, folder = get(f"{url}/api/contents/analysis/notebooks", told["token"])
        listed = {entry["name"] for entry in folder["content"]}
        assert {f"{name}.ipynb" for name in notebooks.names()} <= listed
        _, page = get(f"{url}/api/contents/analysis/notebooks/your-study.ipynb", told["token"])
        # Read as a pair, by jupytext: cells with their outputs.
        cells = page["content"]["cells"]
        assert len(cells) == len(committed("your-study").cells) and any(c.get("outputs") for c in cells)
        begin = "import weir; study = weir.Study('quick'); "
        assert run_in_kernel(port, told["token"], begin + "print(study.plan.height)") == "39\n"
        shown = run_in_kernel(port, told["token"], begin + "study.controls()")
        assert "application/vnd.jupyter.widget-view+json" in shown
    finally:
        server.terminate()
        server.wait(30)
        log.close()
        shutil.rmtree(runtime)


def run_in_kernel(port, token, code):
    """What a cell prints or shows, in a kernel that the server starts in the folder of the notebooks."""
    import websocket

    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/kernels",
        data=json.dumps({"name": "python3", "path": "analysis/notebooks"}).encode(),
        headers={"Authorization": f"token {token}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        kernel = json.loads(answer.read())["id"]
    socket_url = f"ws://127.0.0.1:{port}/api/kernels/{kernel}/channels?token={token}"
    channel = websocket.create_connection(socket_url, timeout=90)
    header = {"msg_id": "one", "msg_type": "execute_request", "session": "s", "version": "5.3"}
    content = {"code": code, "silent": False, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "buffers": []}
    channel.send(json.dumps(message | {"channel": "shell"}))
    said = ""
    while True:
        found = json.loads(channel.recv())
        if found["parent_header"].get("msg_id") != "one":
            continue
        assert found["msg_type"] != "error", found["content"]
        if found["msg_type"] == "stream":
            said += found["content"]["text"]
        elif found["msg_type"] in ("display_data", "execute_result"):
            said += " ".join(found["content"]["data"])
        elif found["msg_type"] == "status" and found["content"]["execution_state"] == "idle":
            channel.close()
            return said


def test_the_package_alone_finds_the_sample(tmp_path):
    """In another folder, without a project: as installed from a registry."""
    code = "import weir; print(weir.Study('quick').is_sample)"
    environment = {**os.environ, locate.ROOT_VARIABLE: str(tmp_path)}
    environment.pop(locate.RESULTS_VARIABLE, None)
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, cwd=tmp_path, env=environment, text=True) == "True\n"
