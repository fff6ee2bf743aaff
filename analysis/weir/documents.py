"""JSON documents of a study, read with errors that name the file and the field, written atomically."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from weir.errors import InputError

#: The version of the results folder's documents that this package reads.
FORMAT = 1


def read_document(path: Path, remedy: str) -> dict[str, Any]:
    """Reads a JSON object.

    Args:
        path: the file.
        remedy: what the error advises if the file is absent or damaged.

    Raises:
        InputError: the file is absent, unreadable, not JSON, or not an object.
    """
    document = _read(path, remedy)
    if not isinstance(document, dict):
        raise InputError(path, f"holds a {type(document).__name__}, not an object", remedy)
    return document


def read_list(path: Path, remedy: str) -> list[dict[str, Any]]:
    """Reads a JSON list of objects; arguments and errors as `read_document`."""
    document = _read(path, remedy)
    if not isinstance(document, list) or not all(isinstance(entry, dict) for entry in document):
        raise InputError(path, "is not a list of objects", remedy)
    return document


def _read(path: Path, remedy: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(path, "there is no such file", remedy) from None
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", "check its permissions") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(path, f"is not JSON ({error})", remedy) from error


def field(document: dict[str, Any], path: Path, name: str, kind: type | tuple[type, ...]) -> Any:
    """Returns a required field of a document.

    Raises:
        InputError: the field is absent or of another type, or the document is no object.
    """
    remedy = "was it written by another version of weir? plan or run the study again"
    if not isinstance(document, dict):
        raise InputError(path, f"holds {document!r} where an object with `{name}` is expected", remedy)
    if name not in document:
        raise InputError(path, f"field `{name}` is missing", remedy)
    value = document[name]
    # bool is a subclass of int in Python.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(k.__name__ for k in kinds)
        raise InputError(path, f"field `{name}` is {value!r}, not of type {wanted}", remedy)
    return value


def check_format(document: dict[str, Any], path: Path, known: tuple[int, ...] = (FORMAT,)) -> None:
    """Raises InputError unless the document's `format` is one of those that are understood here."""
    found = field(document, path, "format", int)
    if found not in known:
        raise InputError(
            path,
            f"field `format` is {found}, this version reads {' and '.join(map(str, known))}",
            "install the version of weir that wrote it, or run the study again",
        )


@contextmanager
def replaced(path: Path, *, sync: bool = False) -> Iterator[IO[bytes]]:
    """A stream to a temporary file that is renamed at the end: readers see the old or the new, never a part.

    Args:
        path: the file; its folder is made.
        sync: whether the content is on the disk before the file has its name.

    Raises:
        OSError: the folder or the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        # mkstemp makes the file private; results are as readable as any other file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(partial, 0o666 & ~umask)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def write_text(path: Path, text: str) -> None:
    """Writes a text in UTF-8 by `replaced`.

    Raises:
        OSError: the folder or the file cannot be written.
    """
    with replaced(path) as file:
        file.write(text.encode())


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Writes a JSON document atomically. Numbers that JSON has no name for are an error."""
    write_text(path, json.dumps(document, indent=2, allow_nan=False) + "\n")
