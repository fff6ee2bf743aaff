"""Papers: the studies that a notebook needs all of, and running what is missing of them.

The studies of a paper are `PREFIX.yml` and `PREFIX-*.yml` in `studies/` or a folder below it.
"""

import json
import subprocess
from pathlib import Path

from weir.errors import InputError
from weir.load import Study, load_study
from weir.traces.plane import Plane

#: Notebooks that need all studies of a paper, or of a question, by the prefix of these studies' names.
PAPERS: dict[str, str] = {
    "partitioned_vs_integrated_shenoy": "shenoy",
    "qos_guarantees_wijayaratne": "wijayaratne",
    "hierarchical_disk_sharing": "hds",
    "schedulers_compared": "common",
    "clockwise": "clockwise",
    "shared_data_center": "data-center",
    "isolation": "isolation",
    "virtual_vs_real": "live",
}
#: Those whose studies need devices: their notebooks are written from those that have been carried out.
MEASURED = ("data-center", "isolation", "live")
STUDIES = Path("studies")


def study_names(root: Path, prefix: str) -> list[str]:
    """The studies of a paper, sorted by name.

    Args:
        root: the folder that holds `studies/`.
        prefix: how their names begin.

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
    """Carries out what is missing of the studies of a paper, as far as it needs no device.

    Returns:
        The names of the studies of which runs were missing.

    Raises:
        InputError: there is no such study, no binary, or a study has problems.
    """
    plane = Plane.find(results)
    if prefix in MEASURED:
        return []
    ran = []
    for name in study_names(plane.root, prefix):
        missing = json.loads(_weir(plane, "plan", name, "--json", "--missing", results.resolve()))["runs"]
        if not missing or any(run["testbed"] == "device" for run in missing):
            # What needs a device is for `make study`; the notebook says what it lacks.
            continue
        _weir(plane, "simulate", name, "--out", results.resolve(), shown=True)
        ran.append(name)
    return ran


def load_paper(prefix: str, results: Path) -> dict[str, Study]:
    """The studies of a paper, by their names without the prefix.

    Raises:
        InputError: one of them has not been carried out whole; of those that need devices (`MEASURED`), none
            has a valid run.
    """
    if prefix in MEASURED:
        return _measured(prefix, results)
    remedy = f"make figures STUDY={prefix}"
    studies = {}
    for name in study_names(Plane.find(results).root, prefix):
        if not (results / name / "plan.json").exists():
            raise InputError(results / name, "there are no results of this study", f"run it: {remedy}")
        study = load_study(results / name)
        if study.missing or not study.valid_runs:
            raise InputError(results / name, f"{len(study.missing)} runs are missing", f"run them: {remedy}")
        studies[name.removeprefix(f"{prefix}-")] = study
    return studies


def _measured(prefix: str, results: Path) -> dict[str, Study]:
    """Those studies of a paper that have a valid run."""
    folders = sorted(path.parent for path in results.glob(f"{prefix}-*/plan.json"))
    studies = {folder.name.removeprefix(f"{prefix}-"): load_study(folder) for folder in folders}
    found = {name: study for name, study in studies.items() if study.valid_runs}
    if not found:
        names = study_names(Plane.find(results).root, prefix)
        remedy = f"run one of {', '.join(names)}: make study STUDY={names[0]}"
        raise InputError(results, f"has no valid run of a study {prefix}-*", remedy)
    return found


def _weir(plane: Plane, *arguments: str | Path, shown: bool = False) -> str:
    done = subprocess.run(
        [plane.binary, *arguments],
        cwd=plane.root,
        stdout=None if shown else subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    # 3: some run is invalid, which the analysis says by itself.
    if done.returncode not in (0, 3):
        reason = done.stderr.strip().removeprefix("error: ").splitlines()
        problem = f"`weir {' '.join(map(str, arguments))}` failed: {reason[0] if reason else 'no reason'}"
        raise InputError(plane.binary, problem, "is the binary as new as the repository? make setup")
    return done.stdout or ""
