"""The README's study and commands, to the letter."""

import re

from support import ROOT, weir

README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_study_of_the_readme_can_be_planned(tmp_path):
    text = blocks("yaml")[0]
    file = tmp_path / text.splitlines()[0].removeprefix("# studies/")
    file.write_text(text)
    done = weir("plan", file)
    assert done.returncode == 0, done.stderr
    assert "27 runs" in done.stdout and "3 of them are duplicates" in done.stdout, done.stdout
    variant = blocks("yaml")[1].removeprefix("factors:\n")
    file.write_text(text + variant)
    done = weir("plan", file)
    assert done.returncode == 0 and "51 runs" in done.stdout, done.stdout + done.stderr


def test_the_commands_of_the_readme_exist():
    """This test will ask each command of weir in the README for its help, and look for its options there."""
    lines = "".join(blocks("sh")).splitlines()
    commands = [line.partition("#")[0].split() for line in lines if line.startswith("weir ")]
    assert len(commands) >= 9
    for command in commands:
        words = command[1:3] if command[1] == "trace" else command[1:2]
        done = weir(*words, "--help")
        assert done.returncode == 0, command
        for option in (word for word in command if word.startswith("--")):
            assert option in done.stdout, (command, option)


def test_the_studies_of_the_readme_are_shipped():
    known = weir("list", "studies").stdout.split()
    rows = re.findall(r"^\| (`[a-z*`, -]+) \|", README.split("## Studies that come")[1], re.MULTILINE)
    names = re.findall(r"`([a-z*-]+)`", " ".join(rows))
    assert len(names) >= 12
    for name in names:
        assert any(one == name or (name.endswith("*") and one.startswith(name[:-1])) for one in known), name
