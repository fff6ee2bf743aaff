"""Copies of studies that do not name the host they ran on, for double-blind review.

Of `host.json` the host's name becomes `host-1`, what follows the version in a kernel's release `local-1`, and
the kernel's command line and the folders of its package and of files behind loop devices are withheld. Equal
values stay equal, so that rule R-HOST holds as before. Each manifest is written again, since it states the
file's checksum. Everything else is copied to the byte.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from weir import documents, manifest
from weir.errors import InputError
from weir.load import Study

HOST = "host.json"
#: What stands for a fact that is withheld (`Fact` in collectors/src/host).
WITHHELD = {"value": None, "reason": "withheld for anonymity"}
#: Derived by the analysis, and made again.
_DERIVED = (".*", "report.html", "figures", "claims.json", manifest.METRICS)
_RELEASE = re.compile(r"(\d+(?:\.\d+)*)(?:[-+~_].*)?")
_TABLES = {".parquet", ".arrow"}
_REPAIR = "run the study again, or pack without --anonymous"


@dataclass
class _Names:
    """The names that were replaced, each with that in its place."""

    hosts: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)

    def host(self, name: str) -> str:
        return self.hosts.setdefault(name, f"host-{len(self.hosts) + 1}")

    def release(self, release: str) -> str:
        known = _RELEASE.fullmatch(release)
        if known is None or known[1] == release:
            return release
        local = self.kernels.setdefault(release.removeprefix(known[1]), f"local-{len(self.kernels) + 1}")
        return f"{known[1]}-{local}"


def copy(study: Study, target: Path) -> list[str]:
    """Copies a study without what names its hosts; its results are not changed.

    Args:
        study: a study of which each run ran on one host.
        target: the folder of the copy, which does not exist.

    Returns:
        Files of the copy that still have the name of a host as a word, for a person to look at.

    Raises:
        InputError: a run ran on several hosts, whose names are in its files; or a file cannot be written.
    """
    names = _Names()
    records = {run.id: run.host for run in study.runs if run.host}
    # Joint runs have a folder of each host.
    joint = [run for run, record in records.items() if "system" not in record]
    if joint:
        problem = f"run {joint[0]} ran on several hosts, whose names are in many files"
        raise InputError(study.path, problem, "pack it without --anonymous")
    left_out = shutil.ignore_patterns(*_DERIVED, *study.stray)
    # Hard links where the file system allows them. Files that change are replaced, not written to.
    shutil.copytree(study.path, target, ignore=left_out, copy_function=_link)
    for run, record in sorted(records.items()):
        text = json.dumps(_anonymous(record, names), indent=2, ensure_ascii=False) + "\n"
        _replace(target / run / HOST, text)
        _seal(target / run)
    for path in target.glob("blocks*.json"):
        blocks = documents.read_document(path, _REPAIR)
        _replace(path, json.dumps({block: names.host(host) for block, host in blocks.items()}) + "\n")
    # A copy of an anonymous copy has the names `host-1` and so on before and after.
    return _named(target, names.hosts.keys() - names.hosts.values())


def _anonymous(record: dict[str, Any], names: _Names) -> dict[str, Any]:
    system = record["system"]
    replaced = system | {"command_line": WITHHELD}
    for fact, replace in (("host_name", names.host), ("kernel_release", names.release)):
        if isinstance(system.get(fact), str):
            replaced[fact] = replace(system[fact])
    found = record | {"system": replaced}
    if isinstance(kernel := record.get("kernel"), dict):
        source = kernel.get("source", "")
        found["kernel"] = kernel | {
            "release": names.release(kernel["release"]),
            "source": PurePosixPath(source).name if source.startswith("/") else source,
        }
    found["devices"] = {name: _device(device) for name, device in record.get("devices", {}).items()}
    return found


def _device(device: dict[str, Any]) -> dict[str, Any]:
    """A loop device's file may lie in somebody's home; those below /run are weir's own."""
    behind = device.get("loop_backing")
    file = behind.get("file") if isinstance(behind, dict) else None
    if not isinstance(file, str) or file.startswith("/run/weir/"):
        return device
    return device | {"loop_backing": behind | {"file": PurePosixPath(file).name}}


def _seal(run: Path) -> None:
    """Writes a run's manifest again, with the checksum of the record as it is now."""
    path = run / manifest.NAME
    if not path.exists():
        return
    sealed = manifest.unseal(path.read_text(encoding="utf-8"))
    if sealed is None:
        raise InputError(path, "is damaged: its checksum does not match its content", manifest.RUN_AGAIN)
    document = json.loads(sealed[0])
    host = run / HOST
    for entry in document["files"]:
        if entry["path"] == HOST:
            entry |= {"size_bytes": host.stat().st_size, "sha256": manifest.sha256_of(host)}
    _replace(path, manifest.seal(json.dumps(document, indent=2, ensure_ascii=False)))


def _replace(path: Path, text: str) -> None:
    """Writes a file of the copy anew: what is there may be a link to the study's own."""
    path.unlink()
    documents.write_text(path, text)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _named(folder: Path, hosts: Iterable[str]) -> list[str]:
    words = [re.compile(rf"(?<![\w.-]){re.escape(host)}(?![\w.-])") for host in hosts if host != "localhost"]
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in _TABLES)
    return [
        path.relative_to(folder).as_posix()
        for path in files
        if any(word.search(path.read_text(encoding="utf-8", errors="replace")) for word in words)
    ]
