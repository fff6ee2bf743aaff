"""CONTRIBUTING's worked example, executed as it stands there."""

import os
import re
import shutil
import subprocess
import textwrap

import pytest
from support import ROOT, WEIR

BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


def _section(title):
    """The fenced blocks of a section, as (language, text)."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    _, found, rest = text.partition(f"\n## {title}\n")
    assert found, f"CONTRIBUTING.md has no section {title!r}"
    section = rest.split("\n## ")[0]
    return [(match["language"], textwrap.dedent(match["text"])) for match in BLOCK.finditer(section)]


@pytest.fixture
def project(tmp_path):
    """A copy of what a study may name, with the files of the section in it, and the section's commands."""
    for folder in ("workloads", "studies"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    commands = []
    for language, text in _section("Add a workload"):
        if language == "console":
            commands += text.splitlines()
        else:
            # The first line of a file says where it goes.
            file = tmp_path / text.splitlines()[0].removeprefix("# ")
            assert not file.exists()
            file.write_text(text)
    return tmp_path, commands


def test_adding_a_workload_is_one_file(project):
    """This test will write the example's files and carry out its `weir` commands, which need no device."""
    folder, commands = project
    weir_commands = [command for command in commands if command.startswith("weir ")]
    assert len(weir_commands) == 3
    environment = os.environ | {"PATH": f"{WEIR.parent}:{os.environ['PATH']}"}
    for command in weir_commands:
        done = subprocess.run(
            command.split(), cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert (folder / "photo-albums.parquet").stat().st_size > 0


def test_and_the_study_of_it_runs(project, bench):
    """This test will carry out the example's study."""
    folder, commands = project
    assert "make study STUDY=albums" in commands
    # As make calls it, but with the copy in place of this repository's own specifications.
    code, log = bench.play("albums", "--skip-tags", "report", WEIR_ROOT=str(folder))
    assert code == 0, log
    assert len(bench.run_folders("albums")) == 1
