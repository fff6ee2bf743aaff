"""Module `weir_unpack`: folders of runs from the archive of a host, which is not trusted."""

import gzip
import json
import os
import re
import shutil
import tarfile
import zlib
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_unpack
author: The weir developers
short_description: Unpack folders of runs from the archive of a host
description:
  - Unpacks regular files and folders of expected names from a tar archive (GNU format, gzip) into a new
    folder beside their final place, and then renames the folders. An archive with any other entry is
    refused as a whole.
  - An existing folder is replaced only if its run was skipped, or is invalid and O(retry_invalid) is set.
    Otherwise it is kept.
  - The archive is removed at the end.
options:
  pack:
    description: The archive. A missing archive is an error.
    type: path
    required: true
  folder:
    description: Folder for the folders of runs.
    type: path
    required: true
  names:
    description: Names of folders that the archive may contain.
    type: list
    elements: str
    required: true
  partial:
    description:
      - Name of the temporary folder. A folder that a failed attempt left is removed.
    type: str
    required: true
  retry_invalid:
    description: Whether folders of invalid runs are replaced.
    type: bool
    default: false
  limit_mib:
    description: Maximum size of the unpacked archive.
    type: int
    required: true
"""

RETURN = """
placed: {description: Folders that were put in place., type: list, returned: always}
kept: {description: "Existing folders that were kept.", type: list, returned: always}
"""

BLOCK = tarfile.BLOCKSIZE
#: Files of a run's folder. Files below `logs` may have any plain name.
FILES = {
    *(f"{name}.json" for name in ("run", "host", "observed", "verdict", "part", "manifest", "metrics")),
    *(f"{name}.json" for name in ("admission", "load", "summary", "series")),
    *(f"{name}.parquet" for name in ("requests", "block", "pages", "series")),
}
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}", re.ASCII)
#: Folders below `logs` that may lie in one another, and entries of an archive for each folder.
DEPTH = 3
ENTRIES = 10_000


class Refused(Exception):
    """The archive is not as weir packs one."""


def main():
    """Runs the module."""
    text = {"type": "str", "required": True}
    path = {"type": "path", "required": True}
    module = AnsibleModule(
        argument_spec={
            "pack": path,
            "folder": path,
            "names": {"type": "list", "elements": "str", "required": True},
            "partial": text,
            "retry_invalid": {"type": "bool", "default": False},
            "limit_mib": {"type": "int", "required": True},
        }
    )
    wanted = module.params
    folder, pack = Path(wanted["folder"]), Path(wanted["pack"])
    try:
        partial = new_folder(folder, wanted["partial"])
        try:
            with pack.open("rb") as file:
                unpack(file, partial, wanted["names"], wanted["limit_mib"] << 20)
            placed, kept = put_in_place(partial, folder, wanted["retry_invalid"])
        finally:
            shutil.rmtree(partial)
            pack.unlink(missing_ok=True)
    except Refused as refused:
        module.fail_json(msg=f"{pack}: {refused}: nothing of it was kept; is the host what it should be?")
    except OSError as error:
        module.fail_json(msg=f"{error.filename or folder}: {error.strerror}: make room, or check its rights")
    if kept:
        module.warn(f"{folder}: {', '.join(kept)} existed and were kept")
    module.exit_json(changed=bool(placed), placed=placed, kept=kept)


def new_folder(above, name):
    """An empty folder of this name, in place of what an attempt that died left.

    Raises:
        Refused: the name is no plain name of a hidden folder, or something else has it.
    """
    if not name.startswith(".") or not PLAIN.fullmatch(name[1:]):
        raise Refused(f"{name!r} is no name for a partial folder")
    above.mkdir(parents=True, exist_ok=True)
    partial = above / name
    if partial.is_symlink() or (partial.exists() and not partial.is_dir()):
        raise Refused(f"{partial} is no folder")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(mode=0o755)
    return partial


def unpack(file, partial, names, limit_bytes):
    """Writes the files of an archive below a folder that is new.

    Args:
        file: the archive, open for reading.
        partial: the folder.
        names: the folders that it may have.
        limit_bytes: how much it may hold.

    Raises:
        Refused: it has something else, or more; what it had so far lies in the folder.
    """
    left, count, seen = limit_bytes, 0, set()
    with gzip.open(file) as stream:
        while (entry := header(stream)) is not None:
            count += 1
            if count > ENTRIES * max(len(names), 1):
                raise Refused(f"it has more than {count - 1} entries")
            parts, is_folder = parts_of(entry, names)
            if entry.size > left:
                raise Refused(f"{entry.name!r} has {entry.size} bytes, {left} of {limit_bytes} are left")
            left -= entry.size
            if not parts or (is_folder and parts in seen):
                continue
            if parts in seen:
                raise Refused(f"{entry.name!r} is in it twice")
            seen.add(parts)
            target = partial.joinpath(*parts)
            if is_folder:
                target.mkdir(mode=0o755, parents=True, exist_ok=True)
            else:
                target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                copy(stream, target, entry.size)


def header(stream):
    """The next entry of an archive; None at its end.

    Raises:
        Refused: it is cut short or damaged.
    """
    block = read(stream, BLOCK)
    if not any(block):
        return None
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError, ValueError) as error:
        raise Refused(f"it is no tar archive, or damaged ({error})") from error


def parts_of(entry, names):
    """The parts of an entry's name, and whether it is a folder.

    Raises:
        Refused: it is no regular file or folder, or has a name that was not asked for.
    """
    kinds = {tarfile.REGTYPE: False, tarfile.AREGTYPE: False, tarfile.DIRTYPE: True}
    # The type itself: to tarfile a sparse or contiguous file is a regular one.
    if entry.type not in kinds:
        raise Refused(
            f"{entry.name!r} is no regular file or folder (type {entry.type.decode(errors='replace')!r})"
        )
    is_folder = kinds[entry.type]
    if entry.size < 0 or (is_folder and entry.size):
        raise Refused(f"{entry.name!r} has {entry.size} bytes")
    name = entry.name.rstrip("/") if is_folder else entry.name
    parts = tuple(name.removeprefix("./").split("/")) if name not in (".", "") else ()
    if not (is_expected(parts, is_folder, names) or (is_folder and not parts)):
        raise Refused(f"{entry.name!r} was not asked for")
    return parts, is_folder


def is_expected(parts, is_folder, names):
    """Whether a name is one of a folder that was asked for, or of a file that such a folder has."""
    if not parts or parts[0] not in names or not all(PLAIN.fullmatch(part) for part in parts):
        return False
    rest = parts[1:]
    if is_folder:
        return not rest or (rest[0] == "logs" and len(rest) <= DEPTH)
    return (len(rest) == 1 and rest[0] in FILES) or (rest[:1] == ("logs",) and 2 <= len(rest) <= DEPTH + 1)


def copy(stream, target, size):
    """Writes the content of an entry to a file that is new."""
    with target.open("xb") as file:
        left = size
        while left:
            block = read(stream, min(left, 1 << 20))
            file.write(block)
            left -= len(block)
        file.flush()
        os.fsync(file.fileno())
    # The archive has whole blocks.
    read(stream, -size % BLOCK)


def read(stream, size):
    """So many bytes.

    Raises:
        Refused: there are fewer, or they are damaged.
    """
    try:
        found = stream.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise Refused(f"it is no gzip archive, or damaged ({error})") from error
    if len(found) != size:
        raise Refused("it is cut short")
    return found


def put_in_place(partial, folder, retry_invalid):
    """Renames the folders of runs. Returns those that are in place now, and those that were there."""
    placed, kept = [], []
    for new in sorted(partial.iterdir()):
        place, replaced = folder / new.name, folder / f".{new.name}.replaced"
        if os.path.lexists(place) and not may_go(place, retry_invalid):
            kept.append(new.name)
            continue
        if os.path.lexists(place):
            if replaced.is_dir() and not replaced.is_symlink():
                shutil.rmtree(replaced)
            place.rename(replaced)
        new.rename(place)
        if replaced.is_dir():
            shutil.rmtree(replaced)
        placed.append(new.name)
    return placed, kept


def may_go(place, retry_invalid):
    """Whether a folder may be replaced: its run was skipped, or is invalid and asked for again."""
    if place.is_symlink() or not place.is_dir():
        return False
    try:
        verdict = json.loads((place / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    status = verdict.get("status") if isinstance(verdict, dict) else None
    return status == "skipped" or (retry_invalid and status == "invalid")


if __name__ == "__main__":
    main()
