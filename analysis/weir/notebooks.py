"""Notebooks: the studies of each, functions that show figures and tables, and execution.

A notebook is a pair in `analysis/notebooks/`: `NAME.py` (jupytext percent format) with text and calls of this
package, and `NAME.ipynb` with the outputs on the sample results. `make figures` executes the source on the
user's results and writes `NAME.ipynb` and `NAME.html` to `results/notebooks/`.
"""

import ast
import io
import os
import tempfile
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import PIL.Image
import polars as pl
from IPython import get_ipython
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import HTML, Image
from matplotlib.figure import Figure

from weir import locate, plans
from weir.binary_cache import BinaryCache
from weir.documents import write_text
from weir.errors import InputError, Skipped
from weir.figure_numbers import as_text
from weir.load import Study, load_study
from weir.locate import RESULTS_VARIABLE
from weir.paper_registry import load_paper, papers
from weir.plots import encode, save

#: Notebooks about one study: the studies that each can show, best first. Notebooks of papers are in
#: `weir.paper_registry`.
STUDY_NOTEBOOKS: dict[str, tuple[str, ...]] = {
    "00-quick-tour": ("quick",),
    "partitioned_vs_integrated": ("kernel-schedulers", "quick"),
    "multi_filesystem": ("file-systems", "quick"),
}
#: The factor that a notebook compares: valid runs of its study must vary it.
NEEDED_FACTOR = {"multi_filesystem": "filesystem"}
#: Notebooks about a study that runs on devices: they are committed as executed on its results, which the
#: repository has not.
ON_DEVICES = {"multi_filesystem": "file-systems"}
#: The notebook of any study. Its cell with the tag `parameters` sets `NAME`.
TEMPLATE = "your-study"
#: The tag of cells with interactive controls, which are not executed: a file has no kernel for them to ask.
CONTROLS = "controls"
#: The folder of sources, below the root of the project.
SOURCES = Path("analysis/notebooks")
KERNEL = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
#: Width of a figure on the page; its image has about twice as many pixels.
WIDTH_PIXELS = 760
TIMEOUT_S = 1800


class NotebookFailed(Exception):
    """A notebook's cell raised: the work failed, not the input."""


def names() -> list[str]:
    """All notebooks: those about one study, those of papers, and that of any study."""
    return [*STUDY_NOTEBOOKS, *papers(), TEMPLATE]


def study_for(notebook: str, results: Path | None = None) -> Study:
    """The study that a notebook shows: the first of its studies that has a valid run.

    Args:
        notebook: its name, one of `STUDY_NOTEBOOKS`.
        results: the folder of results; the one that the environment names if None.

    Raises:
        Skipped: none has; the remedy names the command that produces one.
        KeyError: there is no such notebook.
    """
    wanted = STUDY_NOTEBOOKS[notebook]
    factor = NEEDED_FACTOR.get(notebook)
    for name in wanted:
        path = locate.study(name, results)
        if path is not None:
            study = load_study(path)
            if study.valid_runs and (factor is None or _is_varied(study, factor)):
                return study
    raise Skipped.no_results(wanted[0])


def _is_varied(study: Study, factor: str) -> bool:
    """Whether valid runs have more than one level of a factor: of two testbeds, one may not have it."""
    return len({run.levels.get(factor) for run in study.valid_runs}) > 1


def of_study(prefix: str, results: Path | None = None) -> list[str]:
    """The notebooks that read the study of this name, or the studies whose names begin with it.

    Raises:
        InputError: none does, and there are no results that the template could show.
    """

    def is_meant(study: str) -> bool:
        return study == prefix or study.startswith(f"{prefix}-")

    found = [name for name, studies in STUDY_NOTEBOOKS.items() if any(map(is_meant, studies))]
    found += [name for name, paper in papers().items() if paper.studies == prefix]
    if not found and locate.study(prefix, results):
        return [TEMPLATE]
    if not found:
        raise InputError(
            Path("studies"), f"no notebook reads {prefix}", "its page: make report STUDY=" + prefix
        )
    return found


def unread(results: Path) -> list[str]:
    """The studies with results that no notebook but the template reads."""
    read_by_one = {name for studies in STUDY_NOTEBOOKS.values() for name in studies}
    prefixes = tuple(paper.studies for paper in papers().values() if paper.studies)
    found = [path.name for path in plans.folders(results)]
    return [
        name
        for name in found
        if name not in read_by_one and not any(name == p or name.startswith(f"{p}-") for p in prefixes)
    ]


def check(notebook: str, results: Path, study: str) -> str:
    """Whether a notebook has the input that it needs.

    Args:
        notebook: its name.
        results: the folder of results.
        study: the study of the template.

    Returns:
        What it shows, for a message.

    Raises:
        Skipped: it has not.
        InputError: its input is damaged.
    """
    if notebook in STUDY_NOTEBOOKS:
        path = study_for(notebook, results).path
    elif notebook == TEMPLATE:
        path = locate.study(study, results)
        if path is None:
            raise Skipped.no_results(study)
    elif paper := papers()[notebook].studies:
        try:
            path = next(iter(load_paper(paper, results).values())).path
        except Skipped:
            if not papers()[notebook].has_models:
                raise
            return _generated(results)
    else:
        return _generated(results)
    return f"sample of {path.name}" if locate.is_sample(path) else path.name


def _generated(results: Path) -> str:
    """What a notebook shows that computes its own data."""
    try:
        BinaryCache.find(results)
    except InputError as error:
        raise Skipped(f"no binary weir ({error.problem})", error.remedy) from error
    return "generated"


def describe(study: Study) -> str:
    """One line that says which study a notebook shows and how much of it there is."""
    planned = len(study.runs) + len(study.missing)
    valid = len(study.valid_runs) + len(study.duplicates)
    n = study.repetitions_text
    few = study.fewest_repetitions < 5
    of = "Sample of study" if locate.is_sample(study.path) else "Study"
    line = f"{of} {study.name}: {valid} of {planned} planned runs are valid, {n} repetitions"
    return line + (", too few to settle a question." if few else ".")


def show(study: Study, figure: Figure, name: str) -> Image:
    """Saves a figure in the study's `figures/` folder and shows it: PDF, PNG, SVG, and its numbers as JSON.

    Figures of the sample go to `results/notebooks/sample/STUDY/figures/`.

    Raises:
        InputError: the folder cannot be written.
    """
    return show_in(locate.output(study.path), figure, name)


def show_in(folder: Path, figure: Figure, name: str) -> Image:
    """As `show`, in a folder of results that is no study's."""
    folder = folder / "figures"
    try:
        save(figure, folder, name)
        write_text(folder / f"{name}.json", as_text(figure))
    except OSError as error:
        raise InputError(folder, f"cannot be written ({error.strerror})", "check its permissions") from error
    return Image(data=in_palette(encode(figure, "png")), width=WIDTH_PIXELS, alt=name)


def in_palette(png: bytes) -> bytes:
    """A PNG image in 256 colours of its own: about a third of the size, for notebooks in the repository."""
    colours = PIL.Image.open(io.BytesIO(png)).convert("RGB")
    found = io.BytesIO()
    colours.quantize(256, dither=PIL.Image.Dither.NONE).save(found, "PNG", optimize=True)
    return found.getvalue()


def grid(table: pl.DataFrame, notes: Iterable[str] = ()) -> HTML:
    """Shows a table whole, every row and every word, with lines below it."""
    cell = '<{0} style="text-align:left;white-space:nowrap">{1}</{0}>'.format
    head = "".join(cell("th", escape(name)) for name in table.columns)
    rows = ("".join(cell("td", "" if v is None else escape(str(v))) for v in row) for row in table.rows())
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    table_text = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return HTML(f'<table style="margin-left:0">{table_text}</table>{below}')


def execute(
    source: Path,
    out: Path,
    results: Path,
    study: str | None = None,
    *,
    page: bool = True,
) -> list[Path]:
    """Runs one notebook's source and writes it with its outputs as `.ipynb` and `.html`.

    Args:
        source: the percent-format Python file.
        out: the folder to write to.
        results: the folder of results to read.
        study: the study of the template, which the files are then named by; None for other notebooks.
        page: write `.html` too.

    Raises:
        InputError: the source is absent.
        NotebookFailed: a cell raised.
    """
    # Slow to import and only needed here.
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = read(source)
    if study is not None:
        for cell in notebook.cells:
            if "parameters" in cell.metadata.get("tags", ()):
                cell.source = f"NAME = {study!r}"
    environment = os.environ | {RESULTS_VARIABLE: str(results.resolve())}
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        kernel_name="python3",
        resources={},
        skip_cells_with_tag=CONTROLS,
        # One output whatever the parts that it came in.
        coalesce_streams=True,
    )
    # Over socket files that only this user can open, not over ports, and in a folder of this kernel alone:
    # two that begin together would choose the same names in a common one.
    with tempfile.TemporaryDirectory(prefix="weir-") as sockets:
        manager = client.create_kernel_manager()
        manager.transport, manager.ip = "ipc", f"{sockets}/k"
        try:
            client.execute(env=environment)
        except CellExecutionError as error:
            raise NotebookFailed(f"{source}: {error.ename}: {error.evalue}") from error
    for cell in notebook.cells:
        # Times of day would differ each time.
        cell.metadata.pop("execution", None)
    stem = source.stem if study is None else study
    texts = {".ipynb": nbformat.writes(notebook) + "\n"}
    if page:
        texts[".html"] = _page(notebook, stem)
    for ending, text in texts.items():
        write_text(out / f"{stem}{ending}", text)
    return [out / f"{stem}{ending}" for ending in texts]


def read(source: Path) -> Any:
    """A notebook's source, without outputs; ids of cells depend on their places alone.

    Raises:
        InputError: the source is absent.
    """
    import jupytext

    try:
        notebook = jupytext.read(source)
    except FileNotFoundError:
        raise InputError(
            source, "there is no such notebook", "call this in the repository's folder"
        ) from None
    notebook.metadata = type(notebook.metadata)(kernelspec=KERNEL)
    for place, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{place}"
    return notebook


def _page(notebook: Any, stem: str) -> str:
    from nbconvert import HTMLExporter

    # The page is read offline: no script of another site.
    elsewhere = [name for name in HTMLExporter.class_trait_names() if name.endswith("_url")]
    exporter = HTMLExporter(**dict.fromkeys(elsewhere, ""))
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    notebook.metadata["title"] = stem.replace("_", " ")
    page, _ = exporter.from_notebook_node(notebook)
    return page


def _skip_cells(shell: InteractiveShell) -> None:
    """Lets a notebook go on after a cell without input.

    The cell prints one line in place of a traceback. Names that it would have set are removed, and later
    cells that need them are skipped with the same line: no figure is drawn of another cell's data.
    """
    lacking: dict[str | None, str] = {}

    def line_of(error: BaseException | None) -> str | None:
        if isinstance(error, NameError):
            return lacking.get(error.name)
        return str(error) if isinstance(error, Skipped) else None

    def show(shell: InteractiveShell, kind: Any, error: Any, trace: Any, tb_offset: Any = None) -> None:
        line = line_of(error)
        if line is None:
            shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        else:
            print(line)

    def go_on(result: Any) -> None:
        line = line_of(result.error_in_exec)
        if line is None:
            return
        for node in ast.walk(ast.parse(shell.transform_cell(result.info.raw_cell))):
            name = None
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.FunctionDef):
                name = node.name
            if name:
                shell.user_ns.pop(name, None)
                lacking[name] = line
        result.error_in_exec = None

    shell.set_custom_exc((Skipped, NameError), show)
    shell.events.register("post_run_cell", go_on)


if (_shell := get_ipython()) is not None:
    _skip_cells(_shell)
