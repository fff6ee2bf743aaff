"""Prints what is wrong with the arguments of make; nothing if they mean something.

Usage: python3 setup/arguments.py GOALS GIVEN NAME=VALUE ...

The Makefile calls it before anything else. GOALS are the targets and GIVEN the names of the variables of
make's command line, each separated by blanks; NAME=VALUE are the variables that targets read.
"""

import difflib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("netns", "qemu", "ssh")
#: Variables of programs that make starts: make hands those of its command line on.
OTHERS = ("ANSIBLE_", "CARGO_", "MAKE", "PATH", "PIP_", "PYTEST_", "PYTHON", "RUST", "SHELL", "UV_", "WEIR_")


def main(goals, given, *pairs):
    """Prints the first problem."""
    values = dict(pair.split("=", 1) for pair in pairs)
    for problem in problems(goals.split(), given.split(), values):
        print(problem)
        break


def problems(goals, given, values):
    """All that is wrong, one line each."""
    for name in given:
        if name not in values and not name.startswith(OTHERS) and not name.lower().endswith("_proxy"):
            yield f"{name}: unknown variable{meant(name, values)} (known: {', '.join(values)})"
    for name in ("STUDY", "HOSTS", "KIND", "N", "ROLE"):
        if any(mark in values[name] for mark in "'\"\\"):
            yield f"{name}: has a quote or a backslash"
    if {"study", "report", "figures"} & set(goals):
        yield from study_problems(goals, values["STUDY"])
    if "study" in goals:
        if values["RETRY"] not in ("", "invalid"):
            yield f"RETRY={values['RETRY']}: say RETRY=invalid, or leave it out"
        yield from count_problems("ATTEMPTS", values["ATTEMPTS"] or "1")
    if "hosts" in goals:
        if values["KIND"] not in KINDS:
            near = meant(values["KIND"], KINDS)
            yield f"KIND={values['KIND']}: unknown kind{near} (known: {', '.join(KINDS)})"
        yield from count_problems("N", values["N"])
    scenarios = [file.parent.name for file in (ROOT / "ansible").glob("**/molecule/*/molecule.yml")]
    if "molecule" in goals and values["ROLE"] and values["ROLE"] not in scenarios:
        yield f"ROLE={values['ROLE']}: unknown role{meant(values['ROLE'], scenarios)}"


def study_problems(goals, name):
    """Whether a study's name is none. Files are for whoever reads them."""
    if not name or "/" in name or Path(name).suffix:
        return
    known = {path.stem for path in (ROOT / "studies").rglob("*.yml")}
    known |= {stem[:place] for stem in known for place, letter in enumerate(stem) if letter == "-"}
    if "study" not in goals:
        # A study of one's own has results, and its file may lie anywhere.
        known |= {folder.name for folder in (ROOT / "results").glob("*") if folder.is_dir()}
    if name not in known:
        yield f"STUDY={name}: unknown study{meant(name, known)} (weir list studies lists them)"


def count_problems(name, value):
    """Whether a value is no whole number of 1 or more."""
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        yield f"{name}={value}: give a whole number of 1 or more"


def meant(name, known):
    """The nearest of the known names as a question; empty if none is near."""
    near = difflib.get_close_matches(name, sorted(known), 1, 0.6)
    return f", did you mean `{near[0]}`?" if near else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
