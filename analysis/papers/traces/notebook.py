"""What the notebook calls: loading, showing, and keeping the claims."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from IPython.display import HTML, Image
from matplotlib.figure import Figure

from weir import notebooks, present
from weir.traces import claims
from weir.traces.claims import Claim
from weir.traces.plane import TRACES_VARIABLE, Plane

#: Its folder in the results.
NAME = "traces"


@dataclass
class Book:
    """The notebook's folder and the claims that it has made so far."""

    folder: Path
    plane: Plane
    made: list[Claim] = field(default_factory=list)

    @classmethod
    def open(cls, results: Path | None = None) -> "Book":
        """The book of a folder of results; of the one that the environment names if None.

        Raises:
            InputError: there is no binary, or no repository.
        """
        results = notebooks.results_folder() if results is None else results
        return cls(results / NAME, Plane.find(results))

    def describe(self) -> str:
        """One line that says which real recordings there are."""
        where = self.plane.recordings
        if where is None:
            return f"{TRACES_VARIABLE} is not set: every figure is of synthetic streams alone."
        return "Real recordings are looked for in the folder that " + TRACES_VARIABLE + " names."

    def show(self, figure: Figure, name: str) -> Image:
        """Saves and shows a figure."""
        return notebooks.show_in(self.folder, figure, name)

    def claim(self, found: Iterable[Claim]) -> None:
        """Takes in claims."""
        self.made += found

    def close(self) -> HTML:
        """Writes claims.json and shows it.

        Raises:
            InputError: the folder cannot be written.
        """
        claims.write(self.folder, self.made)
        table = present.claims(self.folder.parent)
        return notebooks.grid(table.filter(table["study"] == NAME).drop("study"))
