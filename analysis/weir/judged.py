"""The judged claims that come with the package, with the studies that they were judged from.

The notebook of a paper is committed as executed on results that are too large for the repository. Beside it,
`weir.locate.JUDGED` has its `claims.json`, and `studies.json`: of each study the number of its runs and a
checksum of their ids. Ids cover everything that decides a run's outcome but the program, so a study that was
changed since is found without its results.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from weir import __version__, claims, locate
from weir.documents import field, read_document, write_text
from weir.load import Study

FILE = "studies.json"
_AGAIN = "make sample writes it again"


def digest(ids: Iterable[str]) -> str:
    """A checksum of the ids of a study's runs, whatever their order."""
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


def keep(folder: Path, studies: Iterable[Study]) -> Path:
    """Copies the claims of a folder of results, if it has any, and records what its notebook was executed on.

    Args:
        folder: the folder of the paper's results, named as its studies begin.
        studies: those that its notebook read.

    Returns:
        The folder of the package.
    """
    target = locate.JUDGED / folder.name
    target.mkdir(parents=True, exist_ok=True)
    if (folder / claims.FILE).exists():
        shutil.copyfile(folder / claims.FILE, target / claims.FILE)
    found = {
        study.name: {
            "runs": study.planned,
            "valid": len(study.valid_runs),
            "ids": digest([*(run.id for run in study.runs), *study.missing]),
        }
        for study in sorted(studies, key=lambda study: study.name)
    }
    write_text(target / FILE, json.dumps({"weir": __version__, "studies": found}, indent=2) + "\n")
    return target


def studies(prefix: str) -> Mapping[str, Mapping[str, Any]]:
    """The studies that a paper's notebook was executed on, by name; empty where none are kept.

    Raises:
        InputError: the file is damaged.
    """
    path = locate.JUDGED / prefix / FILE
    if not path.exists():
        return {}
    return field(read_document(path, _AGAIN), path, "studies", dict)
