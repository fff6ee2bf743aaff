"""The notebook of the shared data center: studies with valid runs, and which studies are missing."""

from collections.abc import Iterable

import polars as pl
from IPython.display import HTML

from papers.data_center import names
from papers.data_center.judge import CLAIMS, unmeasured
from weir import notebooks
from weir.load import Study
from weir.paper_notebook import PaperNotebook

#: The rows of claims, in the order of the paper; a claim's id begins with its row.
ROWS = (
    *("V-T1", "V-T2", "V-T45", "V-T6", "V-F5", "V-F6", "V-F7", "V-F8"),
    *("V-F9", "V-F10", "V-F11", "V-F12", "V-F13", "V-F14"),
)


class DataCenterNotebook(PaperNotebook):
    """A notebook with the studies that have a valid run."""

    def study(self, name: str) -> Study | None:
        """A study; None if it has no valid run."""
        return self.studies.get(name)

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
        if all(self.study(name) is not None for name in wanted):
            return None
        lacking = [name for name in wanted if self.study(name) is None]
        words = " and ".join(f"<code>make study STUDY={names.PREFIX}-{name}</code>" for name in lacking)
        return HTML(f"<p>Not measured: {words}</p>")

    def close(self) -> HTML:
        """Writes claims.json, with those that were not measured, and shows it."""
        self.claim(unmeasured(self.made, self.studies))
        order = {name: at for at, name in enumerate(_order())}
        self.made.sort(key=lambda claim: order[claim.id])
        return super().close()


def _order() -> Iterable[str]:
    """The claims' ids in the order of the paper."""
    return sorted(CLAIMS.read(), key=lambda name: ROWS.index(name.split()[0]))
