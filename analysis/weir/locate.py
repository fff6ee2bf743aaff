"""Places of the project: its root, its binary, the folder of results, and the sample results of the package.

None depends on the working directory: a notebook finds the same results from its own folder, from the
repository, and from anywhere else.
"""

import os
import shutil
import socket
import sysconfig
from pathlib import Path

from weir import plans
from weir.errors import InputError

#: The `weir` binary; searched for where it is not set.
BINARY_VARIABLE = "WEIR_BINARY"

#: The folder of results; the project's `results/` where it is not set.
RESULTS_VARIABLE = "WEIR_RESULTS"
#: The root of the project; searched for where it is not set.
ROOT_VARIABLE = "WEIR_ROOT"
#: A folder that only the root of a project has.
MARK = Path("workloads")
#: Results that come with the package. `make sample` writes them.
SAMPLE = Path(__file__).parent / "sample"
#: Claims of papers that come with the package: of each paper a folder with `claims.json` and `studies.json`.
JUDGED = Path(__file__).parent / "judged_claims"


def project(start: Path | None = None) -> Path | None:
    """The root of the project: that of the working directory, else the one that this package lies in.

    Args:
        start: the folder to search upwards from; `WEIR_ROOT` or the working directory if None.

    Returns:
        The root; None outside a project, or where `WEIR_ROOT` names another folder.
    """
    given = os.environ.get(ROOT_VARIABLE)
    begin = [start] if start else [Path(given)] if given else [Path.cwd(), Path(__file__).parent]
    for folder in (one.resolve() for one in begin):
        for root in (folder, *folder.parents):
            if (root / MARK).is_dir():
                return root
    return None


def binary() -> Path:
    """The `weir` binary: `WEIR_BINARY`, else that of the project, beside Python, or in the PATH.

    Raises:
        InputError: there is none. The error names the host, because workers of Dask call this.
    """
    host = socket.gethostname()
    if given := os.environ.get(BINARY_VARIABLE):
        if not Path(given).is_file():
            raise InputError(given, f"is no file on host {host}", f"set {BINARY_VARIABLE} to the weir binary")
        return Path(given)
    root = project()
    built = root / "target/release/weir" if root else None
    # The wheel installs the binary beside Python, which need not be in the PATH.
    beside = Path(sysconfig.get_path("scripts")) / "weir"
    found = next((file for file in (built, beside) if file and file.is_file()), None) or shutil.which("weir")
    if found is None:
        problem = f"is not built or installed on host {host}"
        raise InputError(built or "weir", problem, f"build it (make setup), or set {BINARY_VARIABLE}")
    return Path(found)


def results() -> Path:
    """The folder of results: `WEIR_RESULTS`, else that of the project, else that of the working directory."""
    given = os.environ.get(RESULTS_VARIABLE)
    return Path(given).resolve() if given else (project() or Path.cwd()) / "results"


def study(name: str, folder: Path | None = None) -> Path | None:
    """The folder of a study's results, or else its sample; None if there is neither.

    Args:
        name: the study's name; `NAME@LABEL` for the runs of one label.
        folder: the folder of results; `results()` if None.
    """
    for place in (folder or results(), SAMPLE):
        if plans.exists(place / name):
            return place / name
    return None


def studies(prefix: str, folder: Path | None = None) -> dict[str, Path]:
    """The folders of results of the studies `prefix` and `prefix-*`, by name; else those of the sample.

    Results of the user and of the sample are never mixed.
    """
    for place in (folder or results(), SAMPLE):
        found = plans.folders(place)
        named = {
            path.name: path for path in found if path.name == prefix or path.name.startswith(f"{prefix}-")
        }
        if named:
            return named
    return {}


def is_sample(path: Path) -> bool:
    """Whether a study's folder is one of the sample."""
    return path.resolve().is_relative_to(SAMPLE.resolve())


def output(path: Path, folder: Path | None = None) -> Path:
    """Where figures and claims of a study's folder are written: itself, and never the sample."""
    if not is_sample(path):
        return path
    return (folder or results()) / "notebooks" / "sample" / path.name
