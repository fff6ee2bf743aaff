"""Plans of a study's folder: `plan.json`, and `plan@LABEL.json` for the runs of each label.

A label keeps runs of two kernels or commits apart in one folder. Together the plans are one: labels are
levels of the factor `label`. `STUDY@LABEL` names the runs of one label alone.
"""

from pathlib import Path
from typing import Any

from weir.documents import field
from weir.errors import InputError
from weir.plan import PLAN_AGAIN, read_plan

#: The factor whose levels are the labels.
LABEL = "label"
#: Level of runs without a label beside runs with one.
UNLABELLED = "unlabelled"
_MARK = "@"


def split(path: Path) -> tuple[Path, str | None]:
    """A study's folder, and the label of `results/STUDY@LABEL`; None where the folder itself is named."""
    name, mark, label = path.name.partition(_MARK)
    return (path.with_name(name), label) if mark and name and not path.is_dir() else (path, None)


def files(folder: Path) -> dict[str | None, Path]:
    """The plans of a folder by label, sorted; that of the runs without a label comes first."""
    plain = folder / "plan.json"
    found: dict[str | None, Path] = {None: plain} if plain.is_file() else {}
    labelled = sorted(folder.glob(f"plan{_MARK}*.json"))
    return found | {path.name.removeprefix(f"plan{_MARK}").removesuffix(".json"): path for path in labelled}


def exists(path: Path) -> bool:
    """Whether a folder, or `STUDY@LABEL`, has a plan."""
    folder, label = split(path)
    found = files(folder)
    return bool(found) if label is None else label in found


def folders(results: Path) -> list[Path]:
    """The folders of results that have a plan, sorted."""
    return sorted(path for path in results.glob("*") if path.is_dir() and files(path))


def read(folder: Path, label: str | None = None) -> tuple[dict[str, Any], Path]:
    """The plan of a folder, or that of one label, and a file that it was read from.

    Of several labels the runs follow each other, and their places in the order continue.

    Raises:
        InputError: there is no plan, none of this label, or a plan is damaged.
    """
    found = files(folder)
    if label is not None:
        if label not in found:
            known = ", ".join(str(name or UNLABELLED) for name in found) or "none"
            problem = f"has no runs with label `{label}` (labels: {known})"
            raise InputError(folder, problem, f"run them: make study STUDY={folder.name} LABEL={label}")
        return _without_label(_plan(found[label])), found[label]
    if len(found) < 2 and (not found or None in found):
        plain = folder / "plan.json"
        return _plan(plain, f"is this a study's folder? run the study: make study STUDY={folder.name}"), plain
    return _joined({name or UNLABELLED: _plan(path) for name, path in found.items()}), next(
        iter(found.values())
    )


def _plan(path: Path, remedy: str = PLAN_AGAIN) -> dict[str, Any]:
    plan = read_plan(path, remedy)
    field(plan, path, "factors", dict)
    return plan


def _without_label(plan: dict[str, Any]) -> dict[str, Any]:
    factors = {name: levels for name, levels in plan["factors"].items() if name != LABEL}
    runs = [
        run | {"levels": {name: level for name, level in (run.get("levels") or {}).items() if name != LABEL}}
        for run in plan["runs"]
    ]
    return plan | {"factors": factors, "runs": runs}


def _joined(plans: dict[str, dict[str, Any]]) -> dict[str, Any]:
    factors: dict[str, Any] = {}
    runs: list[dict[str, Any]] = []
    for label, plan in plans.items():
        for name, levels in plan["factors"].items():
            known = factors.setdefault(name, levels)
            if isinstance(known, list) and isinstance(levels, list):
                factors[name] = known + [level for level in levels if level not in known]
        begin = len(runs)
        runs += [
            run
            | {"levels": (run.get("levels") or {}) | {LABEL: label}}
            | ({"order": begin + run["order"]} if isinstance(run.get("order"), int) else {})
            for run in plan["runs"]
        ]
    first, *_ = plans.values()
    others = {name: levels for name, levels in factors.items() if name != LABEL}
    notes = dict.fromkeys(filter(None, (plan.get("note") for plan in plans.values())))
    comparisons = [plan["comparison"] for plan in plans.values() if plan.get("comparison")]
    repetitions = [plan["repetitions"] for plan in plans.values() if isinstance(plan.get("repetitions"), int)]
    return first | {
        "factors": others | {LABEL: list(plans)},
        "runs": runs,
        "note": "; ".join(notes),
        "comparison": comparisons[0] if comparisons else None,
        # A study with labels has none.
        "precision": None,
        "repetitions": max(repetitions, default=first.get("repetitions")),
    }
