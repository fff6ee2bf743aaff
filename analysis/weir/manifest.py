"""`manifest.json`: checks that the files of a run are unchanged.

The manifest lists every file of a run's folder with its size and SHA-256, and ends with a checksum of
itself. Names and sizes are compared each time that a run is loaded. The content is hashed the first time, and
again when a file's times, size or inode have changed since: `.weir/verified.json` of the study remembers what
was hashed. `weir verify` always hashes.
"""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from weir.documents import write_text
from weir.errors import DamagedError

NAME = "manifest.json"
#: Derived by the analysis, so not listed; it carries a checksum of its own (`weir.derive`).
METRICS = "metrics.json"
#: Version of the layout of a run's folder that is read here; also a field of `run.json`, of runs that have a
#: manifest.
RESULTS_FORMAT = 1
RUN_AGAIN = "remove this run's folder and run the study again: only what is missing is run"
_REMEDY = f"{RUN_AGAIN}; `weir verify` lists every damaged file"
_BEFORE = ',\n  "checksum": "'
_AFTER = '"\n}\n'
#: A file that changed within this time may change again without another time of change.
_SETTLED_S = 2.0


def seal(document: str) -> str:
    """Text of a JSON object in many lines, with the SHA-256 of all before it as its last field `checksum`."""
    body = document.rstrip().removesuffix("}").rstrip()
    return body + _BEFORE + hashlib.sha256(body.encode()).hexdigest() + _AFTER


def unseal(text: str) -> tuple[str, str] | None:
    """The object without its checksum, and the checksum; None if they do not go together."""
    rest = text.removesuffix(_AFTER)
    rest, checksum = rest[:-64], rest[-64:]
    body = rest.removesuffix(_BEFORE)
    if len(body) + len(_BEFORE) + 64 + len(_AFTER) != len(text):
        return None
    if hashlib.sha256(body.encode()).hexdigest() != checksum:
        return None
    return body + "\n}\n", checksum


class Verified:
    """Which runs of a study were compared with their manifests, and what their files looked like then."""

    def __init__(self, study: Path, *, content: bool = True) -> None:
        """Reads what was verified.

        Args:
            study: the study's folder.
            content: hash content that was not verified; if not, only names and sizes are compared.
        """
        self._content = content
        self._path = study / ".weir" / "verified.json"
        self._changed = False
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, Any] = known if isinstance(known, dict) else {}

    def check(self, folder: Path) -> str | None:
        """Compares a run's files with its manifest.

        Returns:
            The manifest's checksum, which stands for all files; None if the run has no manifest.

        Raises:
            DamagedError: a file differs, is missing or is not listed; or the manifest is damaged.
        """
        read = _read(folder)
        if read is None:
            return None
        manifest, checksum = read
        found = dict(_scan(folder, ""))
        for entry in manifest["files"]:
            path = folder / entry["path"]
            stat = found.get(entry["path"])
            if stat is None:
                raise DamagedError(path, "is missing", _REMEDY)
            if stat.st_size != entry["size_bytes"]:
                raise DamagedError(
                    path, f"is damaged: it has {stat.st_size} bytes, not {entry['size_bytes']}", _REMEDY
                )
        extra = sorted(found.keys() - {entry["path"] for entry in manifest["files"]})
        if extra:
            raise DamagedError(
                folder / extra[0],
                "is not listed in the run's manifest.json: weir did not write it",
                "move it out of the run's folder",
            )
        if not self._content:
            return checksum
        key = _key(checksum, found)
        if self._known.get(folder.name) != key:
            for entry in manifest["files"]:
                _check_content(folder / entry["path"], entry["sha256"])
            self._remember(folder.name, key, found)
        return checksum

    def _remember(self, run: str, key: str, found: dict[str, os.stat_result]) -> None:
        newest = max((max(stat.st_mtime, stat.st_ctime) for stat in found.values()), default=0)
        if newest < time.time() - _SETTLED_S:
            self._known[run] = key
            self._changed = True

    def save(self) -> None:
        """Keeps what was verified, where the folder can be written."""
        if self._changed:
            try:
                write_text(self._path, json.dumps(self._known, indent=0) + "\n")
            except OSError:
                return
            self._changed = False


def listed(folder: Path) -> dict[str, str | None]:
    """The files of a run's folder but `metrics.json`, with their SHA-256 where the manifest lists them.

    Raises:
        DamagedError: the manifest is damaged.
    """
    read = _read(folder)
    sums = {entry["path"]: entry["sha256"] for entry in read[0]["files"]} if read else {}
    found = [path for path, _ in _scan(folder, "")] + ([NAME] if read else [])
    return {path: sums.get(path) for path in sorted(found)}


def _read(folder: Path) -> tuple[dict[str, Any], str] | None:
    path = folder / NAME
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DamagedError(path, f"cannot be read ({error.strerror})", "check its permissions") from error
    except UnicodeDecodeError:
        text = ""
    parts = unseal(text)
    if parts is None:
        raise DamagedError(path, "is damaged: its checksum does not match its content", _REMEDY)
    manifest = json.loads(parts[0])
    if manifest.get("results_format") != RESULTS_FORMAT:
        found = manifest.get("results_format")
        raise DamagedError(
            path,
            f"field `results_format` is {found!r}, this version reads {RESULTS_FORMAT}",
            "install the version of weir that wrote it, or run the study again",
        )
    if manifest["run"] != folder.name:
        raise DamagedError(path, f"is of run {manifest['run']!r}, its folder is {folder.name!r}", _REMEDY)
    return manifest, parts[1]


def _scan(folder: Path, before: str) -> list[tuple[str, os.stat_result]]:
    """Every file below a folder that a manifest lists, with what is known of it.

    Names that begin with a dot are nobody's data.
    """
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or (not before and entry.name in (NAME, METRICS)):
                continue
            if entry.is_dir(follow_symlinks=False):
                found += _scan(Path(entry.path), f"{before}{entry.name}/")
            elif entry.is_file(follow_symlinks=False):
                found.append((before + entry.name, entry.stat(follow_symlinks=False)))
            else:
                raise DamagedError(entry.path, "is neither a file nor a folder", _REMEDY)
    return found


def _key(checksum: str, found: dict[str, os.stat_result]) -> str:
    facts = [
        (path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        for path, stat in sorted(found.items())
    ]
    return hashlib.sha256(json.dumps([checksum, facts]).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_content(path: Path, sha256: str) -> None:
    try:
        found = sha256_of(path)
    except OSError as error:
        raise DamagedError(path, f"cannot be read ({error.strerror})", _REMEDY) from error
    if found != sha256:
        raise DamagedError(path, "is damaged: its SHA-256 is not that in manifest.json", _REMEDY)
