"""Registry of papers: each folder of `analysis/papers/` with a `paper.toml`, and its studies.

`paper.toml` has these fields: `notebook`, the name of its source in `analysis/notebooks/`; `studies`, the
prefix of its studies (`PREFIX.yml` and `PREFIX-*.yml` below `studies/`), absent where the notebook makes its
own data; `needs_devices`, true where those studies run on block devices; `has_models`, true where the
notebook computes models too, which need the binary and no study.
"""

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from weir import locate
from weir.binary_cache import BinaryCache
from weir.errors import InputError, Skipped
from weir.load import Study, load_study
from weir.register import FILE, Register

#: The package whose folders are searched. No paper is imported by name.
PACKAGE = "papers"
STUDIES = Path("studies")


@dataclass(frozen=True)
class Paper:
    """One `paper.toml`.

    Attributes:
        notebook: the notebook's name.
        studies: the prefix of its studies; None if the notebook makes its own data.
        needs_devices: its studies run on block devices. Its notebook uses studies with any valid run; other
            notebooks use studies of which no run is missing.
        has_models: its notebook shows something without studies.
    """

    notebook: str
    studies: str | None = None
    needs_devices: bool = False
    has_models: bool = False


@cache
def papers() -> dict[str, Paper]:
    """The papers by the names of their notebooks, in the order of their folders."""
    found = [path for folder in _folders() if (path := folder / "paper.toml").is_file()]
    read = [Paper(**tomllib.loads(path.read_text(encoding="utf-8"))) for path in found]
    return {paper.notebook: paper for paper in read}


def registers() -> list[Register]:
    """The registers of claims, in the order of their folders."""
    return [Register(path) for folder in _folders() if (path := folder / FILE).is_file()]


def _folders() -> list[Path]:
    return sorted(Path(str(folder)) for folder in files(PACKAGE).iterdir())


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


def study_file(root: Path, name: str) -> Path | None:
    """The file of a study; None where there is none of this name."""
    return next((root / STUDIES).rglob(f"{name}.yml"), None)


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
    """The studies of a paper that a notebook can use, by their names without the prefix.

    They are the user's results or, where there are none, those of the sample.

    Raises:
        Skipped: there is none.
        InputError: a folder is damaged.
    """
    partial = needs_devices(prefix)
    loaded = {name: load_study(path) for name, path in locate.studies(prefix, results).items()}
    found = Studies(prefix)
    for name, study in loaded.items():
        if study.valid_runs and (partial or not study.missing):
            found[name.removeprefix(f"{prefix}-")] = study
    return found if found else found[""]


class Studies(dict[str, Study]):
    """The studies of a paper. One that is absent is `Skipped`, and names the command that runs it."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self.prefix = prefix

    def __missing__(self, name: str) -> Study:
        """Raises Skipped."""
        wanted = f"{self.prefix}-{name}" if name and name != self.prefix else self.prefix
        if needs_devices(self.prefix):
            raise Skipped.no_results(wanted)
        raise Skipped(f"no results of {wanted}", f"make figures STUDY={self.prefix}")


def _weir(binary: BinaryCache, *arguments: str | Path, shown: bool = False) -> str:
    # Exit code 3: a run is invalid. The notebook shows invalid runs itself.
    return binary.output(*arguments, accepted=(0, 3), shown=shown)
