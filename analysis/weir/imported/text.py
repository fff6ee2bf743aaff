"""Text of files of other programs, within limits, and numbers in it."""

import json
import math
from pathlib import Path
from typing import Any

import yaml

from weir.errors import InputError

#: Largest file that is read whole. JSON+ of fio has about 60 KiB for each job.
LARGEST_BYTES = 256 << 20
#: Deepest nesting of YAML. Loaders recurse, and PyYAML's scanner takes time by the square of the depth.
DEEPEST_YAML = 64
# The loader in C where PyYAML has libyaml, as its wheels have.
_YAML_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: Path, largest_bytes: int = LARGEST_BYTES) -> str:
    """The text of a file; bytes that are not UTF-8 are replaced.

    Raises:
        InputError: it cannot be read, is no regular file, or is too large.
    """
    try:
        # A pipe would block, and a device has no end.
        if path.exists() and not path.is_file():
            raise InputError(path, "is no regular file", "name a file")
        with path.open("rb") as file:
            content = file.read(largest_bytes + 1)
    except FileNotFoundError:
        raise InputError(path, "there is no such file", "check the name") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(path, f"cannot be read ({reason})", "check name and permissions") from error
    if len(content) > largest_bytes:
        raise InputError(
            path, f"has more than {largest_bytes} bytes", "is it the right file? keep a part of it"
        )
    return content.decode("utf-8", errors="replace")


def json_object(text: str) -> tuple[Any, int]:
    """The JSON value that a text begins with, and where it ends.

    Raises:
        ValueError: there is none, or it is nested too deeply.
    """
    try:
        return json.JSONDecoder().raw_decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def yaml_document(text: str) -> Any:
    """The value of a YAML document.

    Raises:
        ValueError: it is none, or it is nested too deeply.
    """
    try:
        # Events come one by one, so that the depth is known before anything recurses.
        depth = 0
        for event in yaml.parse(text, _YAML_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST_YAML:
                raise RecursionError
        return yaml.load(text, _YAML_LOADER)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    # Tags, such as those of dates, raise errors of their own.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise ValueError(f"is not YAML ({' '.join(str(error).split())})") from error


def whole(value: Any) -> int:
    """A finite number without its fraction; 0 of anything else."""
    is_number = isinstance(value, int | float) and math.isfinite(_float(value))
    return int(value) if is_number else 0


def number(value: Any, absent: float = math.nan) -> float:
    """A number as a float; `absent` of anything else."""
    return _float(value) if isinstance(value, int | float) else absent


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
