"""A paper's notebook: its studies, its figures and its claims."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import polars as pl
from IPython.display import HTML, Image
from matplotlib.figure import Figure

from weir import claims, locate, notebooks, present
from weir.binary_cache import BinaryCache
from weir.claims import Claim
from weir.documents import write_text
from weir.errors import InputError, Skipped
from weir.load import Study
from weir.paper_registry import Studies, load_paper, papers


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
    def open(cls, name: str, results: Path | None = None) -> Self:
        """The notebook of a folder of results.

        Args:
            name: the prefix of its studies; that of a notebook that makes its own data has none.
            results: the folder; the one that the environment names if None.

        Raises:
            Skipped: no study of the paper has results, and its notebook shows nothing without one.
        """
        results = locate.results() if results is None else results
        paper = next((paper for paper in papers().values() if paper.studies == name), None)
        try:
            studies = load_paper(name, results) if paper else {}
        except Skipped:
            if paper is None or not paper.has_models:
                raise
            # Claims of models alone, beside those of the sample: they are not those of the paper's studies.
            return cls(name, locate.output(locate.SAMPLE / name, results), Studies(name))
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
        if not self.studies and isinstance(self.studies, Studies):
            raise Skipped(f"no results of {self.name}", f"make figures STUDY={self.name}")
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

    def keep(self, text: str, name: str) -> str:
        """Writes a file beside the figures, and returns its text.

        Raises:
            InputError: the folder cannot be written.
        """
        file = self.folder / "figures" / name
        try:
            write_text(file, text)
        except OSError as error:
            raise InputError(
                file, f"cannot be written ({error.strerror})", "check its permissions"
            ) from error
        return text

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
