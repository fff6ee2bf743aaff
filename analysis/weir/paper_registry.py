"""Registry of papers: each folder of `analysis/papers/` with a `paper.toml`, and its studies.

`paper.toml` has three fields: `notebook`, the name of its source in `analysis/notebooks/`; `studies`, the
prefix of its studies (`PREFIX.yml` and `PREFIX-*.yml` below `studies/`), absent where the notebook makes its
own data; `needs_devices`, true where those studies run on block devices.
"""

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from weir.binary_cache import BinaryCache
from weir.errors import InputError
from weir.load import Study, load_study

#: The package whose folders are searched. No paper is imported by name.
PACKAGE = "papers"
STUDIES = Path("studies")


@dataclass(frozen=True)
class Paper:
    """One `paper.toml`.

    Attributes:
        notebook: the notebook's name.
        studies: the prefix of its studies; None if the notebook makes its own data.
        needs_devices: its studies run on block devices. Its notebook shows the studies that have valid runs;
            other notebooks need all studies of their paper.
    """

    notebook: str
    studies: str | None = None
    needs_devices: bool = False


@cache
def papers() -> dict[str, Paper]:
    """The papers by the names of their notebooks, in the order of their folders."""
    folders = sorted(files(PACKAGE).iterdir(), key=lambda folder: folder.name)
    found = [folder / "paper.toml" for folder in folders if (folder / "paper.toml").is_file()]
    read = [Paper(**tomllib.loads(path.read_text(encoding="utf-8"))) for path in found]
    return {paper.notebook: paper for paper in read}


def needs_devices(prefix: str) -> bool:
    """Whether the studies with this prefix run on block devices."""
    return any(paper.needs_devices for paper in papers().values() if paper.studies == prefix)


def study_names(root: Path, prefix: str) -> list[str]:
    """The studies of a paper, sorted by name.

    Args:
        root: the folder that holds `studies/`.
        prefix: the prefix of their names.

    Raises:
        InputError: there is none.
    """
    found = [path.stem for path in (root / STUDIES).rglob("*.yml")]
    names = sorted(name for name in found if name == prefix or name.startswith(f"{prefix}-"))
    if not names:
        known = ", ".join(sorted({name.split("-")[0] for name in found}))
        raise InputError(root / STUDIES, f"has no study `{prefix}` or `{prefix}-*`", f"name one of {known}")
    return names


def run_missing(prefix: str, results: Path) -> list[str]:
    """Simulates the missing runs of the studies of a paper. Studies that need devices are left out.

    Returns:
        The names of the studies of which runs were missing.

    Raises:
        InputError: there is no study with this prefix, no binary, or a study has problems.
    """
    binary = BinaryCache.find(results)
    if needs_devices(prefix):
        return []
    ran = []
    for name in study_names(binary.root, prefix):
        missing = json.loads(_weir(binary, "plan", name, "--json", "--missing", results.resolve()))["runs"]
        # Studies on devices are run by `make study`; the notebook names the missing ones.
        if missing and not any(run["testbed"] == "device" for run in missing):
            _weir(binary, "simulate", name, "--out", results.resolve(), shown=True)
            ran.append(name)
    return ran


def load_paper(prefix: str, results: Path) -> dict[str, Study]:
    """The studies of a paper, by their names without the prefix.

    Raises:
        InputError: a run of a study is missing; of studies that need devices, none has a valid run.
    """
    if needs_devices(prefix):
        return _load_measured(prefix, results)
    remedy = f"make figures STUDY={prefix}"
    studies = {}
    for name in study_names(BinaryCache.find(results).root, prefix):
        if not (results / name / "plan.json").exists():
            raise InputError(results / name, "there are no results of this study", f"run it: {remedy}")
        study = load_study(results / name)
        if study.missing or not study.valid_runs:
            raise InputError(results / name, f"{len(study.missing)} runs are missing", f"run them: {remedy}")
        studies[name.removeprefix(f"{prefix}-")] = study
    return studies


def _load_measured(prefix: str, results: Path) -> dict[str, Study]:
    """The studies of a paper that have a valid run."""
    folders = sorted(path.parent for path in results.glob(f"{prefix}-*/plan.json"))
    studies = {folder.name.removeprefix(f"{prefix}-"): load_study(folder) for folder in folders}
    found = {name: study for name, study in studies.items() if study.valid_runs}
    if not found:
        names = study_names(BinaryCache.find(results).root, prefix)
        remedy = f"run one of {', '.join(names)}: make study STUDY={names[0]}"
        raise InputError(results, f"has no valid run of a study {prefix}-*", remedy)
    return found


def _weir(binary: BinaryCache, *arguments: str | Path, shown: bool = False) -> str:
    # Exit code 3: a run is invalid. The notebook shows invalid runs itself.
    return binary.output(*arguments, accepted=(0, 3), shown=shown)
