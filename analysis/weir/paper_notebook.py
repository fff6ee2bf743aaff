"""A paper's notebook: its studies, its figures and its claims."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

import polars as pl
from IPython.display import HTML, Image
from matplotlib.figure import Figure

from weir import claims, locate, notebooks, present
from weir.binary_cache import BinaryCache
from weir.claims import Claim
from weir.errors import InputError, Skipped
from weir.load import Study
from weir.paper_registry import load_paper
from weir.statistics import Interval


@dataclass(frozen=True)
class Bands:
    """Reported numbers of a paper, by claim, with the band for a reproduction.

    Attributes:
        path: a `bands.toml`, or a folder of such files.
    """

    path: Path

    def read(self) -> dict[str, dict[str, Any]]:
        """All of them."""
        return _read(self.path)

    def judged(
        self,
        name: str,
        ours: Interval | float | None,
        note: str,
        *,
        shape: bool | None = None,
        missed: str = "",
    ) -> Claim:
        """A claim, judged by its bands.

        Args:
            name: its id.
            ours: the number that these runs have, with its interval over seeds if it has one.
            note: what was looked at.
            shape: whether what the paper shows besides holds; None if it shows nothing besides.
            missed: why it is missed, if it is.
        """
        band = self.read()[name]
        limits = band.get("limits")
        return claims.claim(
            name,
            band.get("paper"),
            ours,
            band["unit"],
            f"{band['figure']}: {band['says']}. Ours: {note}",
            limits=None if limits is None else (float(limits[0]), float(limits[1])),
            shape_holds=shape,
            missed=missed,
        )


@cache
def _read(path: Path) -> dict[str, dict[str, Any]]:
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        found |= tomllib.loads(file.read_text(encoding="utf-8"))
    return found


@dataclass
class PaperNotebook:
    """A paper's studies and its claims.

    Attributes:
        name: the prefix of its studies, and its folder in the results.
        folder: the folder.
        studies: by their names without the prefix.
        made: the claims with their status.
    """

    name: str
    folder: Path
    studies: dict[str, Study]
    made: list[Claim] = field(default_factory=list)

    @classmethod
    def open(cls, name: str, results: Path | None = None, *, has_studies: bool = True) -> Self:
        """The notebook of a folder of results.

        Args:
            name: the prefix of its studies.
            results: the folder; the one that the environment names if None.
            has_studies: whether there are studies to load; else the notebook makes its own data.

        Raises:
            Skipped: no study of the paper has results (`weir.paper_registry.load_paper`).
        """
        results = locate.results() if results is None else results
        studies = load_paper(name, results) if has_studies else {}
        paths = [study.path.with_name(name) for study in studies.values()]
        return cls(name, locate.output(paths[0], results) if paths else results / name, studies)

    @cached_property
    def binary(self) -> BinaryCache:
        """The `weir` binary.

        Raises:
            Skipped: there is no binary, or no repository.
        """
        try:
            return BinaryCache.find(self.folder.parent)
        except InputError as error:
            raise Skipped(f"no binary weir ({error.problem})", error.remedy) from error

    def describe(self) -> HTML:
        """The studies with the number of their runs."""
        rows = [
            {
                "study": study.name,
                "runs": len(study.valid_runs),
                "repetitions": study.repetitions,
                "question": study.question,
            }
            for study in self.studies.values()
        ]
        return notebooks.grid(pl.DataFrame(rows))

    def show(self, figure: Figure, name: str) -> Image:
        """Saves and shows a figure."""
        return notebooks.show_in(self.folder, figure, name)

    def claim(self, found: Iterable[Claim]) -> None:
        """Adds claims."""
        self.made += found

    def close(self) -> HTML:
        """Writes claims.json and shows it.

        Raises:
            InputError: the folder cannot be written.
        """
        claims.write(self.folder, self.made)
        table = present.claims(self.folder.parent)
        return notebooks.grid(table.filter(table["study"] == self.name).drop("study"))
