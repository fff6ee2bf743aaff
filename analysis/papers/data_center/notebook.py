"""The notebook of the shared data center: studies with valid runs, and which studies are missing."""

from collections.abc import Iterable

import polars as pl
from IPython.display import HTML

from papers.data_center import names
from papers.data_center.judge import CLAIMS
from weir import notebooks
from weir.load import Study
from weir.paper_notebook import PaperNotebook


class DataCenterNotebook(PaperNotebook):
    """A notebook with the studies that have a valid run."""

    def study(self, name: str) -> Study | None:
        """A study; None if it has no valid run."""
        return self.studies.get(name)

    def first(self, *wanted: str) -> Study | None:
        """The first of several studies that has a valid run; None if none has."""
        return next((study for study in map(self.study, wanted) if study is not None), None)

    def describe(self) -> HTML:
        """The studies, measured or not."""
        rows = []
        for name, about in names.STUDIES.items():
            study = self.study(name)
            planned = 0 if study is None else len(study.runs) + len(study.missing)
            rows.append(
                {
                    "study": f"{names.PREFIX}-{name}",
                    "about": about,
                    "valid runs": "none" if study is None else f"{len(study.valid_runs)} of {planned}",
                    "repetitions": "" if study is None else str(study.repetitions),
                    "question": f"make study STUDY={names.PREFIX}-{name}"
                    if study is None
                    else study.question,
                }
            )
        return notebooks.grid(pl.DataFrame(rows))

    def unless_measured(self, *wanted: str) -> HTML | None:
        """The text in place of a figure or table whose studies have no results; None if they have."""
        lacking = [name for name in wanted if self.study(name) is None]
        return _not_measured(lacking, " and ") if lacking else None

    def unless_any(self, *wanted: str) -> HTML | None:
        """The text in place of a figure or table none of whose studies has results; None if one has."""
        return _not_measured(wanted, " or ") if self.first(*wanted) is None else None

    def close(self) -> HTML:
        """Writes claims.json, with those that were not measured, and shows it."""
        self.made = CLAIMS.completed(self.made)
        return super().close()


def _not_measured(studies: Iterable[str], joint: str) -> HTML:
    words = joint.join(f"<code>make study STUDY={names.PREFIX}-{name}</code>" for name in studies)
    return HTML(f"<p>Not measured: {words}</p>")
