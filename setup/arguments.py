"""Checks the arguments of make: prints the first problem, or nothing.

Usage: python3 setup/arguments.py GOALS GIVEN NAME=VALUE ...
       python3 setup/arguments.py --scenarios    prints the names of the molecule scenarios

The Makefile calls it before anything else. GOALS are the targets and GIVEN the names of the variables of
make's command line, each separated by blanks; NAME=VALUE are the variables that targets read.
"""

import difflib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Hosts of this machine, which a study may ask for.
MADE = ("netns", "qemu")
KINDS = (*MADE, "ssh")
#: Of test-fresh; test-packages knows Ubuntu 24.04 too.
DISTRIBUTIONS = ("bookworm", "trixie")
FORMS = ("parquet", "csv", "arrow")
#: Targets that read STUDY.
OF_ONE_STUDY = {
    "study", "watch", "report", "figures", "export", "power", "precision", "variation", "capacity",
}  # fmt: skip
#: The rule of `label` in studies (crates/specs/src/name.rs), which make cannot quote otherwise.
LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,39}")
#: Variables without which a target has nothing to do.
NEEDED = {
    "capacity": {"CLASS": "the class whose clients are counted (CLASS=video)"},
    "compare": {"A": "a study's results (A=quick@6.12, or a folder)", "B": "its other results"},
    "export": {"TO": "a new folder, such as TO=quick-tables"},
}
WORDS = {"KIND": "kind", "DIST": "distribution"}
#: Variables of programs that make starts: make exports those of its command line.
OTHERS = ("ANSIBLE_", "CARGO_", "MAKE", "PATH", "PIP_", "PYTEST_", "PYTHON", "RUST", "SHELL", "UV_", "WEIR_")


def main(goals, given, *pairs):
    """Prints the first problem."""
    values = dict(pair.split("=", 1) for pair in pairs)
    for problem in problems(goals.split(), given.split(), values):
        print(problem)
        break


def problems(goals, given, values):
    """All problems, one line each."""
    for name in given:
        if name not in values and not name.startswith(OTHERS) and not name.lower().endswith("_proxy"):
            yield f"{name}: unknown variable{meant(name, values)} (known: {', '.join(values)})"
    if "LABEL" in given and not LABEL.fullmatch(values["LABEL"]):
        remedy = "1 to 40 letters, digits, -, _, . and + only, no -, . or + at the beginning"
        yield f"LABEL={values['LABEL']}: use {remedy}"
    for name in ("STUDY", "HOSTS", "KIND", "N", "ROLE", "A", "B", "TO", "FORM", "CLASS", "PAGE"):
        if any(mark in values[name] for mark in "'\"\\"):
            yield f"{name}: has a quote or a backslash"
    if OF_ONE_STUDY & set(goals):
        yield from study_problems(goals, values["STUDY"])
    if "study" in goals:
        if values["RETRY"] not in ("", "invalid"):
            yield f"RETRY={values['RETRY']}: say RETRY=invalid, or leave it out"
        yield from count_problems("ATTEMPTS", values["ATTEMPTS"] or "1")
        yield from choice_problems("HOSTS", values["HOSTS"], ("", *MADE))
    if "hosts" in goals:
        yield from choice_problems("KIND", values["KIND"], KINDS)
        yield from count_problems("N", values["N"])
    if "molecule" in goals and values["ROLE"] and values["ROLE"] not in scenarios():
        yield f"ROLE={values['ROLE']}: unknown role{meant(values['ROLE'], scenarios())}"
    for goal, needed in NEEDED.items():
        for name in needed if goal in goals else ():
            if not values[name]:
                yield f"{name}: {goal} needs it: {NEEDED[goal][name]}"
    if "export" in goals:
        yield from choice_problems("FORM", values["FORM"] or FORMS[0], FORMS)
    if {"test-fresh", "test-packages"} & set(goals):
        known = DISTRIBUTIONS if "test-fresh" in goals else (*DISTRIBUTIONS, "noble")
        yield from choice_problems("DIST", values["DIST"], known)
        yield from choice_problems("TESTS", values["TESTS"], ("yes", "no"))


def scenarios():
    """The names of the molecule scenarios."""
    return sorted(file.parent.name for file in (ROOT / "ansible").glob("**/molecule/*/molecule.yml"))


def study_problems(goals, name):
    """An unknown study. A file is checked by the program that reads it."""
    if not {"study", "capacity"} & set(goals):
        # STUDY@LABEL has the runs of one label.
        name = name.split("@")[0]
    if not name or "/" in name or Path(name).suffix:
        return
    known = {path.stem for path in (ROOT / "studies").rglob("*.yml")}
    known |= {stem[:place] for stem in known for place, letter in enumerate(stem) if letter == "-"}
    if not {"study", "capacity"} & set(goals):
        # The file of a study that has results may lie anywhere.
        known |= {folder.name for folder in (ROOT / "results").glob("*") if folder.is_dir()}
    if name not in known:
        yield f"STUDY={name}: unknown study{meant(name, known)} (weir list studies lists them)"


def choice_problems(name, value, known):
    """An unknown value of a variable that has few."""
    if value not in known:
        word = WORDS.get(name, "value")
        yield f"{name}={value}: unknown {word}{meant(value, known)} (known: {', '.join(known)})"


def count_problems(name, value):
    """A value that is no whole number of 1 or more."""
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        yield f"{name}={value}: give a whole number of 1 or more"


def meant(name, known):
    """The nearest of the known names as a question; empty if none is near."""
    near = difflib.get_close_matches(name, sorted(known), 1, 0.6)
    return f", did you mean `{near[0]}`?" if near else ""


if __name__ == "__main__":
    if sys.argv[1:] == ["--scenarios"]:
        print(*scenarios(), sep="\n")
    else:
        main(*sys.argv[1:])
