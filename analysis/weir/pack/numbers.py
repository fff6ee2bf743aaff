"""Every number of a study's results, computed from its raw rows alone.

`weir pack` keeps them in an archive and `weir verify` computes them again. Numbers are compared as JSON
writes them: the shortest text that gives the same bits.
"""

import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import weir
from weir import claims, derive, export, figure_numbers, locate, notebooks, paper_registry
from weir.answers import answers
from weir.errors import InputError
from weir.load import Study
from weir.manifest import METRICS
from weir.report_figures import exhibits
from weir.study import class_table

#: The folder of derived numbers in an archive, of raw results, and of claims.
NUMBERS, RESULTS, CLAIMS = "numbers", "results", "claims"
#: The report of a study, below `NUMBERS`.
REPORT = "report.html"
#: The folder of numbers of figures, below a study of `NUMBERS` or a paper of `CLAIMS`.
FIGURES = "figures"


@dataclass(frozen=True)
class Derived:
    """A file of derived numbers.

    Attributes:
        name: its path in the archive.
        text: its content: JSON, CSV or lines.
        kind: metrics, tables, figures or claims.
    """

    name: str
    text: str
    kind: str


def of_study(study: Study) -> Iterator[Derived]:
    """The metrics of each valid run, the table of all runs, the answers, and the numbers of each figure.

    Call it within `derive.from_tables`: then no `metrics.json` has a part in it.

    Raises:
        InputError: a table of a run is damaged.
    """
    # Polars computes outside of Python's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        computed = pool.map(derive.metrics_of, study.valid_runs)
        for run, found in zip(study.valid_runs, computed, strict=True):
            text = derive.as_text(run, found)
            yield Derived(f"{RESULTS}/{study.name}/{run.id}/{METRICS}", text, "metrics")
    folder = f"{NUMBERS}/{study.name}"
    buffer = io.BytesIO()
    export.runs_table(study).write_csv(buffer)
    yield Derived(f"{folder}/runs.csv", buffer.getvalue().decode(), "tables")
    if not study.valid_runs:
        return
    table = class_table(study)
    sentences = "".join(f"{answer.sentence()}\n" for answer in answers(study, table))
    yield Derived(f"{folder}/answers.txt", sentences, "tables")
    for exhibit in exhibits(study, table):
        text = figure_numbers.as_text(exhibit.figure)
        yield Derived(f"{folder}/{FIGURES}/{exhibit.name}.json", text, "figures")


@dataclass(frozen=True)
class Judged:
    """The claims of a paper as its notebook judges them on the studies of an archive.

    Attributes:
        paper: the prefix of its studies.
        files: claims and numbers of figures; empty where it was not executed.
        why_not: why it was not executed; empty where it was.
    """

    paper: str
    files: tuple[Derived, ...] = ()
    why_not: str = ""


def papers_of(names: Iterable[str]) -> list[str]:
    """Prefixes of the papers that studies of these names belong to."""
    prefixes = [paper.studies for paper in paper_registry.papers().values() if paper.studies]
    return [prefix for prefix in prefixes if any(_belongs(name, prefix) for name in names)]


def of_paper(prefix: str, studies: Sequence[Study]) -> Judged:
    """Executes the notebook of a paper on these studies alone.

    Claims that need other studies are left out: `not measured` says nothing about these results.

    Args:
        prefix: of the paper's studies.
        studies: those of the archive.
    """
    name = next((n for n, paper in paper_registry.papers().items() if paper.studies == prefix), None)
    if name is None:
        return Judged(prefix, why_not=f"weir {weir.__version__} has no paper {prefix!r}")
    source = Path(weir.__file__).parent.parent / "notebooks" / f"{name}.py"
    with tempfile.TemporaryDirectory(prefix="weir-") as made:
        results = Path(made) / RESULTS
        results.mkdir()
        for study in studies:
            (results / study.name).symlink_to(study.path.resolve(), target_is_directory=True)
        try:
            notebooks.execute(source, Path(made) / "notebooks", results, page=False)
        except (InputError, ImportError) as error:
            return Judged(prefix, why_not=str(error))
        except notebooks.NotebookFailed as error:
            return Judged(prefix, why_not=f"the notebook failed: {error}")
        folder = locate.output(results / prefix, results)
        found = [one for one in claims.read(folder) if one.status != claims.NOT_MEASURED]
        files = []
        if found:
            files.append(Derived(f"{CLAIMS}/{prefix}/{claims.FILE}", claims.as_text(found), "claims"))
        for path in sorted((folder / "figures").glob("*.json")):
            drawn = path.read_text(encoding="utf-8")
            files.append(Derived(f"{CLAIMS}/{prefix}/{FIGURES}/{path.name}", drawn, "figures"))
    return Judged(prefix, tuple(files))


def differences(kept: str, computed: str, name: str) -> list[str]:
    """Where two texts of derived numbers differ: place, kept, and computed; at most ten."""
    if kept == computed:
        return []
    if name.endswith(".json"):
        try:
            before, after = json.loads(kept), json.loads(computed)
        except ValueError:
            return ["is no JSON"]
        found = list(_different(before, after, ""))
    else:
        before, after = kept.splitlines(), computed.splitlines()
        found = list(_different(before, after, "line "))
    return found[:10] + ([f"and {len(found) - 10} more"] if len(found) > 10 else [])


#: Fields of `metrics.json` that say who wrote it, and its checksum.
_ABOUT = {"weir", "checksum"}


def _different(kept: Any, computed: Any, place: str) -> Iterator[str]:
    if isinstance(kept, dict) and isinstance(computed, dict):
        for name in dict.fromkeys([*kept, *computed]):
            if not place and name in _ABOUT:
                continue
            inner = f"{place}.{name}" if place else name
            if name not in computed or name not in kept:
                where = "the archive" if name in kept else "what was computed"
                yield f"{inner}: only in {where}"
            else:
                yield from _different(kept[name], computed[name], inner)
    elif isinstance(kept, list) and isinstance(computed, list):
        if len(kept) != len(computed):
            yield f"{place or 'list'}: {len(kept)} entries in the archive, {len(computed)} computed"
        for index, (one, other) in enumerate(zip(kept, computed, strict=False)):
            inner = f"{place}{index + 1}" if place == "line " else f"{place}[{index}]"
            yield from _different(one, other, inner)
    elif type(kept) is not type(computed) or kept != computed:
        yield f"{place}: {kept!r} in the archive, {computed!r} computed"


def _belongs(study: str, prefix: str) -> bool:
    return study == prefix or study.startswith(f"{prefix}-")
