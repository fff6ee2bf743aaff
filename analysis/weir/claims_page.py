"""One page of all claims of all papers: passage, limits, ours, status, and where each can be looked up."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir import claims, locate, pages, paper_registry
from weir.claims import Claim, Claims, Headline
from weir.errors import InputError
from weir.labels import number
from weir.register import BAND, MODEL, Entry, Register

_JUDGED_AGAIN = "delete one of the two files, or run its notebook again (make figures)"


@dataclass(frozen=True)
class OfPaper:
    """The claims of one paper.

    Attributes:
        register: its register.
        claims: all of its claims, in the register's order.
        folders: the folder of results in which a claim was judged, by id.
    """

    register: Register
    claims: Sequence[Claim]
    folders: dict[str, Path]

    @property
    def headline(self) -> Headline:
        """How many of them are reproduced."""
        return Headline.of(self.claims)


def of_papers(results: Path) -> list[OfPaper]:
    """The claims of all papers: those that the notebooks judged, and the others with the reason.

    Of a paper without results they are those that come with the package (`weir.judged`).

    Args:
        results: the folder of results, in which notebooks leave `claims.json`.

    Raises:
        InputError: a file is damaged, a claim has two homes, or no register has it.
    """
    judged: dict[str, tuple[Path, Claim]] = {}
    for path in _files(results):
        for claim in claims.read(path.parent):
            if claim.id in judged:
                problem = f"claim `{claim.id}` is also in {judged[claim.id][0] / claims.FILE}"
                raise InputError(path, problem, _JUDGED_AGAIN)
            judged[claim.id] = (path.parent, claim)
    found = []
    for register in paper_registry.registers():
        of_paper = {id: judged.pop(id) for id in register.entries.keys() & judged.keys()}
        completed = Claims(register).completed(claim for _, claim in of_paper.values())
        found.append(OfPaper(register, completed, {id: folder for id, (folder, _) in of_paper.items()}))
    if judged:
        id, (folder, _) = next(iter(judged.items()))
        raise InputError(folder / claims.FILE, f"claim `{id}` is in no register", _JUDGED_AGAIN)
    return found


def _files(results: Path) -> list[Path]:
    """Every `claims.json` of the results, and those of the package that the results have none of."""
    places = (locate.JUDGED, results)
    found = {path.parent.name: path for place in places for path in place.glob(f"*/{claims.FILE}")}
    return [found[name] for name in sorted(found)]


def unique(papers: Sequence[OfPaper]) -> Headline:
    """The headline of all papers.

    Raises:
        InputError: two registers have one id.
    """
    count = Counter(id for paper in papers for id in paper.register.entries)
    for paper in papers:
        for id in paper.register.entries:
            if count[id] > 1:
                raise InputError(paper.register.path, f"claim `{id}` is in two registers", "keep one of them")
    return Headline.of(claim for paper in papers for claim in paper.claims)


def write_claims_page(papers: Sequence[OfPaper], out: Path) -> Path:
    """Writes the page and returns its path.

    Raises:
        InputError: the page cannot be written.
    """
    shown = [
        {
            "paper": paper.register.header.paper,
            "prefix": paper.register.header.prefix,
            "headline": paper.headline.sentence(),
            "rule": (
                "Our whole 95 % interval must lie within the limits."
                if paper.register.header.whole_interval
                else "Our mean over seeds must lie within the limits."
            ),
            "claims": [_row(paper, claim, out) for claim in paper.claims],
        }
        for paper in papers
    ]
    page = pages.render(
        "claims.html.j2", headline=unique(papers).sentence(), papers=shown, band=f"{BAND:.0%}"
    )
    return pages.write_page(out, page)


def _row(paper: OfPaper, claim: Claim, out: Path) -> dict[str, Any]:
    entry = paper.register[claim.id]
    ends = [number(end) for end in claim.interval or ()]
    return {
        "claim": claim,
        "entry": entry,
        "paper": _text(claim.paper),
        "ours": _text(claim.ours),
        "interval": " to ".join(ends),
        "limits": _limits(entry),
        "holds": claim.holds(),
        "status": claim.status.replace(" ", "-"),
        "links": list(_links(paper, claim, out.parent)),
    }


def _text(value: float | None) -> str:
    return "" if value is None else number(value)


def _limits(entry: Entry) -> str:
    """The limits in words."""
    if entry.bounds is None:
        return ""
    low, high = entry.bounds
    if high == float("inf"):
        return f"at least {number(low)}"
    if low == float("-inf"):
        return f"at most {number(high)}"
    return f"{number(low)} to {number(high)}"


def _code(register: Register, entry: Entry) -> tuple[Path, str]:
    """The file and the function that judges a claim."""
    package = register.path.parent
    place = package.parent if entry.code.startswith("papers.") else package
    parts = entry.code.removeprefix("papers.").split(".")
    # The longest beginning that is a file: what follows may be a method of a class.
    for count in range(len(parts) - 1, 0, -1):
        file = place.joinpath(*parts[:count]).with_suffix(".py")
        if file.is_file():
            return file, ".".join(parts[count:])
    return place.joinpath(*parts[:-1]).with_suffix(".py"), parts[-1]


def _links(paper: OfPaper, claim: Claim, beside: Path) -> list[dict[str, str]]:
    """What a reader who doubts the status opens: study, code, notebook, figure."""
    entry, root = paper.register[claim.id], locate.project()
    found: list[tuple[str, Path | None]] = []
    for name in entry.study:
        if name != MODEL:
            file = None if root is None else paper_registry.study_file(root, name)
            found.append((f"study {name}", file))
    if entry.code:
        file, function = _code(paper.register, entry)
        found.append((f"code {file.name}, {function}", file))
    if root is not None:
        notebook = paper.register.header.notebook
        found.append((f"notebook {notebook}", root / "analysis/notebooks" / f"{notebook}.ipynb"))
    if entry.figure and claim.id in paper.folders:
        found.append((f"figure {entry.figure}", paper.folders[claim.id] / "figures" / f"{entry.figure}.svg"))
    links = []
    for text, path in found:
        exists = path is not None and path.is_file()
        links.append({"text": text, "to": os.path.relpath(path, beside) if exists and path else ""})
    return links
