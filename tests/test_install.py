"""One program in any folder: a new project, what comes with the binary, completions, manual pages."""

import json
import os
import shutil
import subprocess

import pytest
from support import ROOT, WEIR, weir


def elsewhere(tmp_path, *arguments, **environment):
    """Runs the binary in a folder that is no project, with a cache of its own."""
    here = tmp_path / "here"
    here.mkdir(exist_ok=True)
    return weir(*arguments, cwd=here, XDG_CACHE_HOME=str(tmp_path / "cache"), **environment)


def test_what_comes_with_weir_is_known_in_any_folder(tmp_path):
    listed = elsewhere(tmp_path, "list", "workloads")
    assert listed.returncode == 0, listed.stderr
    assert "poisson-text" in listed.stdout
    planned = elsewhere(tmp_path, "plan", "quick")
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.count("repetition") > 10
    (library,) = (tmp_path / "cache/weir").iterdir()
    assert not os.access(library / "studies/quick.yml", os.W_OK) or os.geteuid() == 0
    same = {path.name for path in (ROOT / "studies").rglob("*.yml")}
    assert {path.name for path in (library / "studies").rglob("*.yml")} == same
    # The runs do not depend on where the study lies.
    here, there = weir("plan", "quick"), elsewhere(tmp_path, "plan", "quick")
    assert here.stdout == there.stdout


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    here = tmp_path / "here"
    here.mkdir()
    done = weir("list", "studies", cwd=here, XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 2
    assert "XDG_CACHE_HOME" in done.stderr and str(tmp_path / "file") in done.stderr


def test_a_new_project_is_simulated_and_overrides_by_name(tmp_path):
    done = elsewhere(tmp_path, "init", "demo")
    assert done.returncode == 0, done.stderr
    demo = tmp_path / "here/demo"
    assert sorted(path.name for path in demo.iterdir()) == [
        ".gitignore", "README.md", "results", "studies", "workloads",
    ]  # fmt: skip

    def inside(*arguments):
        return weir(*arguments, cwd=demo, XDG_CACHE_HOME=str(tmp_path / "cache"))

    assert inside("check", "studies/demo.yml").returncode == 0
    done = inside("simulate", "demo")
    assert done.returncode == 0, done.stderr
    assert len(list((demo / "results/demo").glob("[0-9a-f]*"))) == 20
    text = (ROOT / "workloads/poisson-text.yml").read_text()
    (demo / "workloads/poisson-text.yml").write_text(text.replace("description: ", "description: Mine. "))
    assert "Mine. " in inside("list", "workloads").stdout
    assert "demo" in inside("list", "studies").stdout and "quick" in inside("list", "studies").stdout
    again = inside("init", ".")
    assert again.returncode == 2 and "not empty" in again.stderr
    bad = inside("init", "Über Uns")
    assert bad.returncode == 2 and not (demo / "Über Uns").exists()


def test_results_are_shown_by_the_package(tmp_path):
    python = str(ROOT / ".venv/bin/python")
    elsewhere(tmp_path, "init", "demo")
    demo = tmp_path / "here/demo"
    cache = str(tmp_path / "cache")
    weir("simulate", "demo", cwd=demo, XDG_CACHE_HOME=cache)
    shown = weir("summary", "demo", cwd=demo, XDG_CACHE_HOME=cache, WEIR_PYTHON=python)
    assert shown.returncode == 0, shown.stderr
    assert "Which scheduler keeps video on time" in shown.stdout
    helped = weir("report", "--help", cwd=demo, XDG_CACHE_HOME=cache, WEIR_PYTHON=python)
    assert "usage: " in helped.stdout
    none = weir("summary", "demo", cwd=demo, XDG_CACHE_HOME=cache, PATH="/nonexistent")
    assert none.returncode == 2 and "pip install weir_bench-" in none.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_read_by_the_shell(tmp_path, shell):
    text = weir("completions", shell).stdout
    assert "simulate" in text and "timescale" in text
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "completions"
    script.write_text(text)
    done = subprocess.run([program, "-n", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_manual_pages_are_written(tmp_path):
    assert subprocess.run([WEIR, "man", tmp_path / "man"], check=False).returncode == 0
    pages = {page.name for page in (tmp_path / "man").iterdir()}
    assert {"weir.1", "weir-plan.1", "weir-replay.1", "weir-trace-stat.1"} <= pages
    assert ".SH NAME" in (tmp_path / "man/weir-plan.1").read_text()


def test_the_doctor_names_what_is_missing_and_the_remedy(tmp_path):
    python = str(ROOT / ".venv/bin/python")
    done = elsewhere(tmp_path, "doctor", WEIR_PYTHON=python)
    assert done.returncode in (0, 3), done.stderr
    assert "studies in virtual time\n  ok       studies and workloads" in done.stdout
    poor = elsewhere(tmp_path, "doctor", "--json", PATH="/nonexistent")
    assert poor.returncode == 3
    checks = {check["needs"]: check for check in json.loads(poor.stdout)}
    assert checks["fio (closed loops)"]["missing"] == "it is not installed"
    assert checks["fio (closed loops)"]["remedy"] == "apt-get install fio"
    assert "pip install weir_bench-" in checks["Python with the package weir"]["remedy"]
    assert all((check["missing"] is None) == (check["remedy"] is None) for check in checks.values())
