"""The format of an archive: a plain tar of files below one folder, with their SHA-256 in its last file.

Equal files make equal bytes: members are in a fixed order, with one time, mode and owner. A tar without
compression can be opened by every Debian, does not depend on the version of a library, and keeps damage to
the file where it is; raw rows are compressed inside their tables. Archives that somebody compressed with
gzip, bzip2 or xz are read too.

Files are read and written in pieces; memory does not grow with them.
"""

import hashlib
import io
import json
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from weir.errors import DamagedError, InputError
from weir.manifest import sha256_of

#: The first file: format, version of weir, title and studies.
HEADER = "pack.json"
README = "README.md"
#: The last file: checksums of all others, as `sha256sum -c` reads them.
SUMS = "SHA256SUMS"
FORMAT = 1
_PIECE = 1 << 20
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_DAMAGE = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError)
_REMEDY = "name a file that `weir pack` wrote, or the folder that one was unpacked to"


@dataclass(frozen=True)
class Sum:
    """A file's SHA-256 and size."""

    sha256: str
    size_bytes: int


class Writer:
    """Writes files into an archive, and remembers their checksums."""

    def __init__(self, stream: IO[bytes], root: str, time_s: int) -> None:
        """Begins an archive.

        Args:
            stream: where it is written to.
            root: the folder that all files are in.
            time_s: the time of all files, since 1970.
        """
        self._tar = tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        self._root, self._time_s = root, time_s
        self.sums: dict[str, Sum] = {}

    def add(self, name: str, content: Path | str | bytes) -> None:
        """Adds a file.

        Args:
            name: its path below the root.
            content: its content, or the file that has it.

        Raises:
            DamagedError: the file changed while it was read.
            OSError: it cannot be read, or the archive cannot be written.
        """
        if name in self.sums:
            raise ValueError(f"{name} is in the archive already")
        if isinstance(content, Path):
            with content.open("rb") as file:
                self._write(name, file, os.fstat(file.fileno()).st_size, content)
        else:
            data = content.encode() if isinstance(content, str) else content
            self._write(name, io.BytesIO(data), len(data), None)

    def _write(self, name: str, file: IO[bytes], size: int, path: Path | None) -> None:
        member = tarfile.TarInfo(f"{self._root}/{name}")
        member.size, member.mtime, member.mode = size, self._time_s, 0o644
        hashed = _Hashed(file)
        try:
            self._tar.addfile(member, hashed)
        except OSError as error:
            if path is not None and hashed.size < size:
                raise DamagedError(path, "became shorter while it was read", "pack again") from error
            raise
        if path is not None and file.read(1):
            raise DamagedError(path, "became longer while it was read", "pack again")
        self.sums[name] = Sum(hashed.sha256, size)

    def close(self) -> None:
        """Adds the checksums, and ends the archive."""
        self.add(SUMS, sums_text(self.sums))
        self._tar.close()


class _Hashed:
    """A file that is hashed as it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest, self.size = file, hashlib.sha256(), 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._digest.update(data)
        self.size += len(data)
        return data

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def sums_text(sums: dict[str, Sum]) -> str:
    """Lines that `sha256sum -c` reads, sorted by name."""
    return "".join(f"{one.sha256}  {name}\n" for name, one in sorted(sums.items()))


@dataclass
class Opened:
    """An archive that was unpacked, or a folder that one was unpacked to.

    Attributes:
        folder: the folder with its files.
        header: the content of `pack.json`.
        sums: SHA-256 of each file as `SHA256SUMS` lists them, by name; empty if `SHA256SUMS` is missing.
        found: SHA-256 and size of each file as read, by name.
        problems: file and problem of every difference.
        sha256: SHA-256 of the archive; empty for a folder.
    """

    folder: Path
    header: dict[str, Any]
    sums: dict[str, str]
    found: dict[str, Sum]
    problems: list[tuple[str, str]] = field(default_factory=list)
    sha256: str = ""

    def compare(self) -> None:
        """Adds a problem for each file that is missing, differs, or is not listed."""
        for name, sha256 in self.sums.items():
            if name not in self.found:
                self.problems.append((name, f"is missing: {SUMS} lists it"))
            elif self.found[name].sha256 != sha256:
                self.problems.append((name, f"is damaged: its SHA-256 is not that in {SUMS}"))
        if self.sums:
            extra = sorted(self.found.keys() - self.sums.keys() - {SUMS})
            self.problems += [(name, f"is not listed in {SUMS}: it was added") for name in extra]


def is_one(path: Path) -> bool:
    """Whether a path is that of an archive, or of a folder that one was unpacked to."""
    return path.is_file() or (path / HEADER).is_file()


def open_folder(path: Path) -> Opened:
    """Reads a folder that an archive was unpacked to.

    Raises:
        InputError: it is none.
    """
    found = {}
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        # The analysis keeps notes in `.weir`, and no archive has names that begin with a dot.
        if any(part.startswith(".") or part == "__pycache__" for part in PurePosixPath(name).parts):
            continue
        if file.is_symlink() or (not file.is_dir() and not file.is_file()):
            raise InputError(file, "is neither a file nor a folder", _REMEDY)
        if file.is_file():
            found[name] = Sum(sha256_of(file), file.stat().st_size)
    return _opened(path, path, found, [])


def unpack(path: Path, into: Path) -> Opened:
    """Unpacks an archive into an empty folder. Damage is a problem of what it returns, and not an error.

    Only files below one folder are unpacked, never links, and nothing outside of `into`.

    Raises:
        InputError: the file is no archive of `weir pack`, or cannot be read.
    """
    found: dict[str, Sum] = {}
    problems: list[tuple[str, str]] = []
    root = last = None
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", _REMEDY) from error
    with file:
        whole = _Hashed(file)
        headers: list[int] = []
        ends: list[int] = []
        try:
            with tarfile.open(fileobj=whole, mode="r|*") as tar:
                for member in tar:
                    name = _name(member, root)
                    if name is None or name in found:
                        problems.append((member.name, "is no file that `weir pack` writes: it was added"))
                        continue
                    root = root or member.name.partition("/")[0]
                    last = name
                    found[name] = _unpack(tar, member, into / name)
                    headers += [member.offset, member.offset_data - tarfile.BLOCKSIZE]
                    ends.append(member.offset_data + member.size)
                ends.append(tar.offset)
            problems += [(path.name, problem) for problem in _between(path, headers, ends)]
        except _DAMAGE as error:
            if last is None:
                raise InputError(path, f"is no archive of `weir pack` ({error})", _REMEDY) from error
            found.pop(last, None)
            problems.append(
                (last, f"cannot be read whole: the archive is cut off or damaged there ({error})")
            )
        else:
            if last is not None and SUMS not in found:
                what = "is the last file that can be read: the archive is cut off or damaged behind it"
                problems.append((last, what))
        while whole.read(_PIECE):
            pass
    opened = _opened(path, into, found, problems)
    opened.sha256 = whole.sha256
    return opened


def _name(member: tarfile.TarInfo, root: str | None) -> str | None:
    """The name of a member below the root; None of one that `weir pack` does not write."""
    top, _, name = member.name.partition("/")
    parts = PurePosixPath(name).parts
    is_plain = bool(parts) and "/".join(parts) == name and not any(part.startswith(".") for part in parts)
    if member.isreg() and is_plain and top not in ("", ".", "..") and root in (None, top):
        return name
    return None


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, to: Path) -> Sum:
    source = tar.extractfile(member)
    assert source is not None
    hashed = _Hashed(source)
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("xb") as file:
        while piece := hashed.read(_PIECE):
            file.write(piece)
    if hashed.size < member.size:
        raise tarfile.ReadError("unexpected end of data")
    return Sum(hashed.sha256, hashed.size)


def _between(path: Path, headers: list[int], ends: list[int]) -> Iterator[str]:
    """Damage of a plain tar that neither checksums of files nor the reader of the tar find.

    Args:
        path: the archive. A compressed archive has no such damage: its format has checksums of its own.
        headers: offsets of the headers in bytes.
        ends: offsets of the ends of the files in bytes; the last is the end of the tar.
    """
    with path.open("rb") as file:
        if file.read(262)[257:262] != b"ustar":
            return
        if path.stat().st_size % tarfile.RECORDSIZE:
            yield "is cut off or damaged behind its last file"
        changed = False
        for header in headers:
            # The reader ignores how the checksum of a header ends.
            file.seek(header + 154)
            changed |= file.read(2) != b"\0 "
        for end in ends[:-1]:
            file.seek(end)
            changed |= any(file.read(-end % tarfile.BLOCKSIZE))
        file.seek(ends[-1])
        changed |= any(any(piece) for piece in iter(lambda: file.read(_PIECE), b""))
        if changed:
            yield "has bytes between or after its files: they were changed or added"


def _opened(path: Path, folder: Path, found: dict[str, Sum], problems: list[tuple[str, str]]) -> Opened:
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        version = header["weir_pack"]
        if not all(isinstance(header[name], list) for name in ("studies", "papers")):
            raise TypeError("`studies` and `papers` are lists")
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"is no archive of `weir pack`: {HEADER} is missing or damaged"
        raise InputError(path, problem, _REMEDY) from error
    if version != FORMAT:
        problem = f"field `weir_pack` is {version}, this version reads {FORMAT}"
        raise InputError(path, problem, f"install weir {header.get('weir')}, which wrote it")
    sums: dict[str, str] = {}
    try:
        for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
            if match := _LINE.fullmatch(line):
                sums[match[2]] = match[1]
            else:
                problems.append((SUMS, f"is damaged: {line[:100]!r} is no checksum and name"))
    except (OSError, UnicodeDecodeError):
        problems.append((SUMS, "is missing or damaged: no other file can be compared with its checksum"))
    opened = Opened(folder, header, sums, found, problems)
    opened.compare()
    return opened
