"""Notebooks: the studies of each, functions that show figures and tables, and execution.

A notebook's source is a Python file in `analysis/notebooks/` (jupytext percent format) with text and calls of
this package. Execution writes `NAME.ipynb` and `NAME.html` to `results/notebooks/`.
"""

import os
from html import escape
from pathlib import Path

import polars as pl
from IPython.display import HTML, Image
from matplotlib.figure import Figure

from weir.documents import write_text
from weir.errors import InputError
from weir.load import Study, load_study
from weir.paper_registry import papers
from weir.plots import encode, save

#: Notebooks about one study: the studies that each can show, best first. Notebooks of papers are in
#: `weir.paper_registry`.
STUDY_NOTEBOOKS: dict[str, tuple[str, ...]] = {
    "partitioned_vs_integrated": ("kernel-schedulers", "quick"),
    "multi_filesystem": ("file-systems", "quick"),
}
#: The folder of results, for the process in which a notebook runs.
RESULTS_VARIABLE = "WEIR_RESULTS"
#: Width of a figure on the page; its image has about twice as many pixels.
WIDTH_PIXELS = 760
TIMEOUT_S = 1800


class NotebookFailed(Exception):
    """A notebook's cell raised: the work failed, not the input."""


def names() -> list[str]:
    """All notebooks: those about one study, then those of papers."""
    return [*STUDY_NOTEBOOKS, *papers()]


def results_folder() -> Path:
    """The folder of results that a notebook reads."""
    return Path(os.environ.get(RESULTS_VARIABLE, "results")).resolve()


def study_for(notebook: str, results: Path | None = None) -> Study:
    """The study that a notebook shows: the first of its studies that has a valid run.

    Args:
        notebook: its name, one of `STUDY_NOTEBOOKS`.
        results: the folder of results; the one that the environment names if None.

    Raises:
        InputError: none has; the remedy names the command that produces one.
        KeyError: there is no such notebook.
    """
    wanted = STUDY_NOTEBOOKS[notebook]
    folder = results_folder() if results is None else results
    for name in wanted:
        if (folder / name / "plan.json").exists():
            study = load_study(folder / name)
            if study.valid_runs:
                return study
    problem = f"has no valid run of study {' or '.join(wanted)}, which {notebook} needs"
    raise InputError(folder, problem, f"run one first: make study STUDY={wanted[0]}")


def of_study(prefix: str) -> list[str]:
    """The notebooks that read the study of this name, or the studies whose names begin with it.

    Raises:
        InputError: none does.
    """

    def is_meant(study: str) -> bool:
        return study == prefix or study.startswith(f"{prefix}-")

    found = [name for name, studies in STUDY_NOTEBOOKS.items() if any(map(is_meant, studies))]
    found += [name for name, paper in papers().items() if paper.studies == prefix]
    if not found:
        raise InputError(
            Path("studies"), f"no notebook reads {prefix}", "its page: make report STUDY=" + prefix
        )
    return found


def describe(study: Study) -> str:
    """One line that says which study a notebook shows and how much of it there is."""
    planned = len(study.runs) + len(study.missing)
    n = study.repetitions
    line = f"Study {study.name}: {len(study.valid_runs)} of {planned} planned runs are valid, {n} repetitions"
    return line + (", too few to settle a question." if n < 5 else ".")


def show(study: Study, figure: Figure, name: str) -> Image:
    """Saves a figure as PDF, PNG and SVG in the study's `figures/` folder and shows it.

    Raises:
        InputError: the folder cannot be written.
    """
    return show_in(study.path, figure, name)


def show_in(folder: Path, figure: Figure, name: str) -> Image:
    """As `show`, in a folder of results that is no study's."""
    folder = folder / "figures"
    try:
        save(figure, folder, name)
    except OSError as error:
        raise InputError(folder, f"cannot be written ({error.strerror})", "check its permissions") from error
    return Image(data=encode(figure, "png"), width=WIDTH_PIXELS, alt=name)


def grid(table: pl.DataFrame) -> HTML:
    """Shows a table whole: every row and every word."""
    cell = '<{0} style="text-align:left;white-space:nowrap">{1}</{0}>'.format
    head = "".join(cell("th", escape(name)) for name in table.columns)
    rows = ("".join(cell("td", "" if v is None else escape(str(v))) for v in row) for row in table.rows())
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return HTML(f'<table style="margin-left:0"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>')


def execute(source: Path, out: Path, results: Path) -> list[Path]:
    """Runs one notebook's source and writes it with its outputs as `.ipynb` and `.html`.

    Args:
        source: the percent-format Python file.
        out: the folder to write to.
        results: the folder of results to read.

    Raises:
        InputError: the source is absent.
        NotebookFailed: a cell raised.
    """
    # Slow to import and only needed here.
    import jupytext
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from nbconvert import HTMLExporter

    try:
        notebook = jupytext.read(source)
    except FileNotFoundError:
        raise InputError(
            source, "there is no such notebook", "call this in the repository's folder"
        ) from None
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    environment = os.environ | {RESULTS_VARIABLE: str(results.resolve())}
    client = NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name="python3", resources={})
    # Over a socket file that only this user can open, not over a port.
    client.create_kernel_manager().transport = "ipc"
    try:
        client.execute(env=environment)
    except CellExecutionError as error:
        raise NotebookFailed(f"{source}: {error.ename}: {error.evalue}") from error
    # The page is read offline: no script of another site.
    elsewhere = [name for name in HTMLExporter.class_trait_names() if name.endswith("_url")]
    exporter = HTMLExporter(**dict.fromkeys(elsewhere, ""))
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    notebook.metadata["title"] = source.stem.replace("_", " ")
    page, _ = exporter.from_notebook_node(notebook)
    paths = [out / f"{source.stem}.ipynb", out / f"{source.stem}.html"]
    for path, text in zip(paths, (nbformat.writes(notebook) + "\n", page), strict=True):
        write_text(path, text)
    return paths
