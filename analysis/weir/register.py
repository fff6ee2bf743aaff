"""The register of a paper's claims: `claims.toml` in the paper's folder.

A claim has one entry, in one register. The table `[register]` names the paper; every other table is a claim:

| field | meaning |
| --- | --- |
| `place` | section, figure or table of the paper |
| `passage` | the paper's own words that the claim rests on; in brackets what a figure without words draws |
| `says` | what must hold, in the words of this project |
| `unit` | of `paper` and `limits` |
| `paper` | the number that the paper gives; absent if it gives none |
| `limits` | `[low, high]` that our number must be within, `inf` for no bound; if absent 15 % of `paper` |
| `why` | why the limits are these; with `limits` only |
| `study` | the study or studies that it is judged on, or `model` where no run is needed |
| `setting` | of a claim that is judged at several settings of an open parameter: the one that decides |
| `code` | where it is judged: `MODULE.FUNCTION` within the paper's package |
| `figure` | the name of the figure that shows it, in `results/PAPER/figures/` |
| `fitted` | why agreement is no evidence: the model was fitted to this number, or has it as input |
| `unobtainable` | why nobody can reproduce it with what is public |
| `struck` | why it is no well-formed claim |
| `lacks` | what this project still lacks to judge it, such as a study; it counts as not measured |
| `changed` | what the limits were before, and why they were changed after results were known |
"""

import math
import tomllib
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from weir.errors import InputError

#: The file's name, and the table that is no claim.
FILE = "claims.toml"
HEADER = "register"
#: The place of a claim that needs no run.
MODEL = "model"
#: The band of a plain number, as a share of it: what published plots and rounded tables can be read to.
BAND = 0.15


@dataclass(frozen=True)
class Entry:
    """A claim of a register: see the fields above."""

    id: str
    place: str
    passage: str
    says: str
    unit: str
    study: tuple[str, ...]
    paper: float | None = None
    limits: tuple[float, float] | None = None
    why: str = ""
    setting: str = ""
    code: str = ""
    figure: str = ""
    fitted: str = ""
    unobtainable: str = ""
    struck: str = ""
    lacks: str = ""
    changed: str = ""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Within which our number meets the paper's; None where there is no number."""
        if self.limits is not None or self.paper is None:
            return self.limits
        low, high = sorted((self.paper * (1 - BAND), self.paper * (1 + BAND)))
        return low, high


@dataclass(frozen=True)
class Header:
    """The table `[register]`.

    Attributes:
        prefix: with which the ids of its claims begin, such as `S`.
        paper: author, title, place and year.
        notebook: the notebook that judges the claims.
        whole_interval: whether our whole interval must lie within the limits; else the estimate.
    """

    prefix: str
    paper: str
    notebook: str
    whole_interval: bool = False


_TEXTS = {field.name for field in fields(Entry)} - {"id", "study", "paper", "limits"}
_KNOWN = _TEXTS | {"study", "paper", "limits"}
_NEEDED = ("place", "passage", "says", "unit", "study")
#: A claim has at most one of these.
_APART = ("fitted", "unobtainable", "struck", "lacks")


@dataclass(frozen=True)
class Register:
    """The claims of one paper.

    Attributes:
        path: the file.
    """

    path: Path

    @classmethod
    def beside(cls, module: str) -> "Register":
        """The register of the folder that holds a module.

        Args:
            module: its `__file__`.
        """
        return cls(Path(module).with_name(FILE))

    @cached_property
    def header(self) -> Header:
        """Which paper it is.

        Raises:
            InputError: the file cannot be used.
        """
        return _read(self.path)[0]

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """The claims by id, in the order of the file.

        Raises:
            InputError: the file cannot be used.
        """
        return _read(self.path)[1]

    def __getitem__(self, id: str) -> Entry:
        """The claim with an id."""
        if id not in self.entries:
            raise InputError(self.path, f"has no claim `{id}`", "add an entry, or use the id of one")
        return self.entries[id]


@cache
def _read(path: Path) -> tuple[Header, dict[str, Entry]]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(path, f"is no TOML: {error}", "correct it") from error
    try:
        header = Header(**document.pop(HEADER))
    except (KeyError, TypeError) as error:
        wanted = ", ".join(field.name for field in fields(Header))
        raise InputError(path, f"table `{HEADER}`: {error}", f"it has {wanted}") from error
    return header, {id: _entry(path, header, id, table) for id, table in document.items()}


def _entry(path: Path, header: Header, id: str, table: dict[str, Any]) -> Entry:
    def refuse(problem: str, remedy: str) -> InputError:
        return InputError(path, f"claim `{id}`: {problem}", remedy)

    if id != header.prefix and not id.startswith(f"{header.prefix}-"):
        raise refuse("the id is of another paper", f"begin it with {header.prefix}-")
    if unknown := table.keys() - _KNOWN:
        raise refuse(f"unknown field `{min(unknown)}`", f"known fields: {', '.join(sorted(_KNOWN))}")
    if missing := [name for name in _NEEDED if not table.get(name)]:
        raise refuse(f"field `{missing[0]}` is missing", "every claim has " + ", ".join(_NEEDED))
    for name in _TEXTS & table.keys():
        if not isinstance(table[name], str):
            raise refuse(f"field `{name}` is {table[name]!r}", "write a text")
    study = table["study"]
    study = tuple(study) if isinstance(study, list) else (study,)
    limits = table.get("limits")
    if limits is not None:
        if not (isinstance(limits, list) and len(limits) == 2 and limits[0] <= limits[1]):
            raise refuse(f"field `limits` is {limits!r}", "write [low, high], with inf for no bound")
        if not table.get("why"):
            raise refuse("has limits without a reason", "say in `why` what in the passage allows them")
        limits = (float(limits[0]), float(limits[1]))
    elif table.get("why"):
        raise refuse("has `why` without `limits`", "give the limits, or leave `why` out")
    if len(apart := [name for name in _APART if table.get(name)]) > 1:
        raise refuse(f"is {' and '.join(apart)}", "a claim has one of these at most")
    paper = table.get("paper")
    number = None if paper is None else float(paper)
    if number is not None and not math.isfinite(number):
        raise refuse("field `paper` is no number", "leave it out where the paper gives none")
    texts = {name: " ".join(table[name].split()) for name in _TEXTS & table.keys()}
    return Entry(id=id, study=study, paper=number, limits=limits, **texts)
