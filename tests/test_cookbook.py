"""The cookbook's recipes and the tutorial, executed in order as they stand there; outputs are compared."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support import ROOT, WEIR, simulate, weir
from test_contributing import BLOCK

from weir.cli import main

#: How two results folders are compared.
PAGE = "how-to/compare-kernels.md"


def _blocks(text):
    return [(match["language"], textwrap.dedent(match["text"])) for match in BLOCK.finditer(text)]


def _recipes(page):
    """The parts of a page with a heading, each with its blocks as (language, text)."""
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        yield part.partition("\n")[0], _blocks(part)


def execute(page, folder):
    """Executes a page in a folder; returns each recipe with the printed and the expected text."""
    shutil.copytree(ROOT / "workloads", folder / "workloads")
    (folder / "studies").mkdir()
    environment = os.environ | {"PATH": f"{WEIR.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    names, done_recipes = {}, []
    with contextlib.chdir(folder):
        for title, blocks in _recipes(page):
            printed, expected = io.StringIO(), ""
            for language, text in blocks:
                if language == "yaml":
                    file = folder / text.splitlines()[0].removeprefix("# ")
                    file.parent.mkdir(exist_ok=True)
                    file.write_text(text)
                elif language == "sh":
                    for line in text.splitlines():
                        command = shlex.split(line, comments=True)
                        if command[0] not in ("weir", "python"):
                            continue
                        done = subprocess.run(
                            command, env=environment, capture_output=True, text=True, check=False
                        )
                        assert done.returncode == 0, f"{line}: {done.stderr}"
                elif language == "r":
                    done = subprocess.run(
                        ["Rscript", "-e", text], env=environment, capture_output=True, text=True, check=False
                    )
                    assert done.returncode == 0, done.stderr
                    printed.write(done.stdout)
                elif language == "python":
                    with contextlib.redirect_stdout(printed):
                        exec(compile(text, title, "exec"), names)
                else:
                    expected += text
            done_recipes.append((title, printed.getvalue(), expected))
    return done_recipes


@pytest.mark.filterwarnings("default")
def test_every_recipe_does_what_the_cookbook_says(tmp_path):
    """This test will simulate two small studies; no device is needed."""
    page = (ROOT / "docs/how-to/cookbook.md").read_text()
    done = execute(page, tmp_path)
    assert len(done) >= 8
    assert [(title, printed) for title, printed, _ in done] == [(title, text) for title, _, text in done]
    assert (tmp_path / "figures/text-p95.png").stat().st_size > 10_000


@pytest.mark.filterwarnings("default")
def test_ten_questions_are_answered_in_three_lines_each(tmp_path, monkeypatch):
    """This test will execute the page on the sample: the folder has no results."""
    monkeypatch.delenv("WEIR_RESULTS", raising=False)
    page = (ROOT / "docs/how-to/notebook-questions.md").read_text()
    questions = [(title, blocks) for title, blocks in _recipes(page) if title[0].isdigit()]
    assert len(questions) == 10
    for title, blocks in questions:
        ((language, text), (_, expected)) = blocks
        assert language == "python" and len(text.splitlines()) <= 3 and expected, title
    done = execute(page, tmp_path)
    assert [(title, printed) for title, printed, _ in done] == [(title, text) for title, _, text in done]


@pytest.mark.filterwarnings("default")
def test_the_tutorial_makes_what_it_says(tmp_path):
    """This test will carry out the tutorial but for set-up and the part with devices."""
    execute((ROOT / "docs/tutorial/first-study.md").read_text(), tmp_path)
    plan = weir("plan", tmp_path / "studies/first.yml").stdout
    assert "21 runs" in plan, plan
    assert len([run for run in (tmp_path / "results/first").iterdir() if (run / "run.json").exists()]) == 6


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("language", "package"), [("python", None), ("r", None), ("r", "nanoparquet")])
def test_other_tools_print_the_same_means(tmp_path, language, package):
    """This test will export the sample and execute the page's blocks, those of R where R is installed."""
    if language == "r" and shutil.which("Rscript") is None:
        pytest.skip("Rscript is not installed: apt-get install --no-install-recommends r-base-core")
    if package is not None:
        found = subprocess.run(["Rscript", "-e", f"library({package})"], capture_output=True, check=False)
        if found.returncode != 0:
            pytest.skip(f"R has no package {package}: Rscript -e 'install.packages(\"{package}\")'")
    parts = (ROOT / "docs/how-to/other-tools.md").read_text().split("\n## ")
    packaged = "R with nanoparquet"
    parts = [
        part
        for part in parts
        if part.startswith("Export")
        or (f"```{language}\n" in part and part.startswith(packaged) == (package is not None))
    ]
    shutil.copytree(ROOT / "analysis/weir/sample/quick", tmp_path / "results/quick")
    done = execute("\n## ".join(["", *parts]), tmp_path)
    assert [(title, printed) for title, printed, _ in done] == [(title, text) for title, _, text in done]
    assert len({printed for _, printed, _ in done[1:]}) == 1


@pytest.mark.filterwarnings("default")
def test_two_results_folders_are_compared(tmp_path, monkeypatch, capsys):
    """This test will execute the comparison of two kernels on one study that was simulated twice."""
    tutorial, page = ((ROOT / "docs" / name).read_text() for name in ("tutorial/first-study.md", PAGE))
    study = next(text for language, text in _blocks(tutorial) if language == "yaml").partition("\n")[2]
    labels, folders = re.findall(r"make compare A=(\S+) B=(\S+)", page)
    by_label = [(tmp_path / "by-label", "results", "--label", place.partition("@")[2]) for place in labels]
    by_folder = [(tmp_path / "by-folder", Path(folder).parent) for folder in folders]
    for command, runs in ((labels, by_label), (folders, by_folder)):
        for folder, out, *options in runs:
            folder.mkdir(exist_ok=True)
            assert simulate(folder, study, *options, out=out).returncode == 0
        monkeypatch.chdir(folder)
        monkeypatch.setenv("WEIR_RESULTS", str(folder / "results"))
        assert main(["compare", *command]) == 0
        printed = capsys.readouterr().out
        assert re.search(r"\n(\d+) comparisons: \1 same\.\n$", printed), printed
        assert "host fact" not in printed
