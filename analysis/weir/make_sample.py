"""The sample results that come with the package, and the committed notebooks.

The sample has whole studies only: `quick` as it ran on devices and in virtual time, and two of the paper
`hds` (its reservations and its Fig. 5). A study that is complete in a folder of results is copied, without
the name of its host; another is simulated. Notebooks are executed on the sample, those of papers on the
results of all of their studies.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from weir import claims, judged, locate, paper_registry
from weir import notebooks as source_notebooks
from weir.binary_cache import BinaryCache
from weir.derive import metrics_of
from weir.errors import InputError, Skipped
from weir.load import Study, load_study
from weir.pack import anonymous

STUDIES = ("quick", "hds-reservation", "hds-borrowing")


def results(folder: Path) -> Iterator[str]:
    """Writes the sample results; yields a line for each study.

    Args:
        folder: the folder of results to copy from.

    Raises:
        InputError: a study cannot be simulated, has a run that is not valid, or names its host in another
            file than its record.
    """
    for name in STUDIES:
        with tempfile.TemporaryDirectory() as made:
            path, how = folder / name, f"copied from {folder}"
            if not _is_complete(path):
                path, how = _simulate(name, Path(made)), "simulated"
            study = load_study(path)
            if len(study.runs_with("valid")) != len(study.runs) or study.missing:
                raise InputError(path, "has a run that is not valid", "run the study again")
            target = locate.SAMPLE / name
            shutil.rmtree(target, ignore_errors=True)
            if named := anonymous.copy(study, target):
                raise InputError(target / named[0], "has the name of the host", "give the host another name")
        for run in load_study(target).runs:
            metrics_of(run, fresh=True)
        yield f"{name}: {how}, {len(study.runs)} runs"


def notebooks(results: Path) -> Iterator[str]:
    """Executes every notebook, beside its source; yields a line for each.

    The notebook of a paper is executed on results of all studies that it was executed on before, and its
    claims are kept (`weir.judged`); one about a study on devices on the results of that. Without these
    results it is left as it is.

    Args:
        results: the folder of results of papers.

    Raises:
        InputError: there is no project.
        NotebookFailed: a cell raised.
    """
    root = locate.project()
    if root is None:
        raise InputError(Path.cwd(), "lies in no project", "call this in the repository")
    sources = root / source_notebooks.SOURCES
    # No results but those of the sample.
    with tempfile.TemporaryDirectory() as empty:
        for name in source_notebooks.names():
            paper = paper_registry.papers().get(name)
            if name in source_notebooks.ON_DEVICES:
                yield _on_devices(name, sources, results)
                continue
            prefix = paper.studies if paper else None
            studies = {} if prefix is None else _of_paper(root, prefix, results)
            if prefix is None or (not studies and not judged.studies(prefix)):
                source_notebooks.execute(sources / f"{name}.py", sources, Path(empty), page=False)
                # Of a paper without studies the notebook makes its own data.
                for path in Path(empty).glob(f"*/{claims.FILE}"):
                    judged.keep(path.parent, ())
                yield f"{name}: executed on the sample"
            elif not studies:
                yield f"{name}: left as it is, for lack of results of {prefix}"
            else:
                source_notebooks.execute(sources / f"{name}.py", sources, results, page=False)
                judged.keep(results / prefix, studies.values())
                yield f"{name}: executed on {len(studies)} studies"


def _on_devices(name: str, sources: Path, results: Path) -> str:
    """Executes a notebook on results of its study on devices, if there are any; a line about it."""
    study = source_notebooks.ON_DEVICES[name]
    if not (results / study).is_dir() or not load_study(results / study).valid_runs:
        return f"{name}: left as it is, for lack of results of {study}"
    source_notebooks.execute(sources / f"{name}.py", sources, results, page=False)
    return f"{name}: executed on {study}"


def _of_paper(root: Path, prefix: str, results: Path) -> dict[str, Study]:
    """The results of a paper's studies; empty where one is missing that its notebook was executed on."""
    try:
        found = paper_registry.load_paper(prefix, results)
    except Skipped:
        return {}
    if any(locate.is_sample(study.path) for study in found.values()):
        return {}
    wanted = set(judged.studies(prefix))
    if not paper_registry.needs_devices(prefix):
        wanted |= set(paper_registry.study_names(root, prefix))
    return found if wanted <= {study.name for study in found.values()} else {}


def _simulate(name: str, folder: Path) -> Path:
    """The results of a study of which all runs are in virtual time."""
    binary = BinaryCache.find(folder)
    runs = json.loads(binary.output("plan", name, "--json"))["runs"]
    if any(run["testbed"] != "simulator" for run in runs):
        raise InputError(Path(name), "has runs on devices, and no results", f"make study STUDY={name}")
    binary.output("simulate", name, "--out", folder)
    return folder / name


def _is_complete(path: Path) -> bool:
    if not (path / "plan.json").is_file():
        return False
    study = load_study(path)
    return not study.missing and len(study.runs_with("valid")) == len(study.runs)
