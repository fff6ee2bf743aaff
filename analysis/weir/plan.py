"""`plan.json`: the plan of a study, with all its runs whole.

In the file a run has only what differs from an earlier run: `like` is the place of that run in the list, from
0. The fields of a run with `like` replace those of that run: objects field by field, lists of objects with a
`name` by name, other values as a whole. A run without `like` is whole, as every run is in version 1.
"""

from pathlib import Path
from typing import Any

from weir.documents import check_format, field, read_document
from weir.errors import InputError

#: Versions of the layout that this package reads.
FORMATS = (1, 2)
PLAN_AGAIN = "plan the study again: make study"
_LIKE = "like"


def read_plan(path: Path, remedy: str = PLAN_AGAIN) -> dict[str, Any]:
    """Reads a plan. Runs share parts of their documents: do not change them.

    Args:
        path: the file.
        remedy: what the error advises if the file is absent or damaged.

    Raises:
        InputError: the file is absent or no plan, or a run names no earlier run.
    """
    plan = read_document(path, remedy)
    check_format(plan, path, FORMATS)
    runs: list[dict[str, Any]] = []
    for entry in field(plan, path, "runs", list):
        runs.append(_whole(entry, runs, path))
    return plan | {"runs": runs}


def _whole(entry: Any, earlier: list[dict[str, Any]], path: Path) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise InputError(path, f"field `runs` holds {entry!r}, not an object", PLAN_AGAIN)
    if _LIKE not in entry:
        return entry
    place = field(entry, path, _LIKE, int)
    if not 0 <= place < len(earlier):
        problem = f"run {len(earlier)}: field `like` is {place}, not the place of an earlier run"
        raise InputError(path, problem, PLAN_AGAIN)
    return _merged(earlier[place], {name: value for name, value in entry.items() if name != _LIKE})


def _merged(base: Any, fields: Any) -> Any:
    if isinstance(base, dict) and isinstance(fields, dict):
        return base | {name: _merged(base.get(name), value) for name, value in fields.items()}
    if isinstance(base, list) and isinstance(fields, dict):
        return [_merged(item, fields.get(_name_of(item), item)) for item in base]
    return fields


def _name_of(item: Any) -> Any:
    return item.get("name") if isinstance(item, dict) else None
