"""Job files of fio: sections and options with their lines, as fio 3.33 reads them (`init.c`, `parse.c`).

* `[global]`, and any section whose name begins with `global`, sets defaults of the jobs after it. Several add
  up.
* Of an option that is given twice the last one holds, and a job's own replaces that of `[global]`.
* `;` and `#` begin a comment anywhere in a line.
* `include FILE` adds the options of another file to the section.
* `${NAME}` is a variable of the environment.

A job file may be hostile: sizes are bounded, a file is included from the job file's folder only, and the
environment is not read unless the caller gives it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from weir.errors import InputError

#: Largest file, in bytes; all files together.
LARGEST_BYTES = 1 << 20
#: Longest line, in bytes (`OPT_LEN_MAX` of fio), also after variables are replaced.
LONGEST_LINE = 4096
#: Most sections, and most processes of `numjobs` (`REAL_MAX_JOBS` of fio).
MOST_JOBS = 4096
#: Files within files.
DEEPEST_INCLUDE = 16
#: Facts of the host that fio puts in for these words.
_KEYWORDS = ("$pagesize", "$mb_memory", "$ncpus")
#: Names that fio knows beside the main one.
ALIASES = {
    "readwrite": "rw", "blocksize": "bs", "blockalign": "ba", "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned", "io_limit": "io_size", "fileoffset": "offset",
    "nr_files": "nrfiles",
    "timeout": "runtime", "allrandrepeat": "randrepeat", "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min", "ratemin": "rate_min", "ratecycle": "rate_cycle",
    "wait_for_previous": "stonewall", "iomem": "mem", "mem_align": "iomem_align", "fill_fs": "fill_device",
    "disable_bw": "disable_bw_measurement", "log_max_value": "log_window_value", "ss": "steadystate",
    "log_unix_epoch": "log_alternate_epoch", "ss_dur": "steadystate_duration",
    "ss_ramp": "steadystate_ramp_time", "ss_interval": "steadystate_check_interval",
}  # fmt: skip
_SECTION = re.compile(r"\[([^\n]{1,255})")
#: Switches that are on where there is no value; all others need one.
SWITCHES = frozenset([
    "bs_unaligned", "norandommap", "time_based", "verify_only", "exitall", "exitall_on_error", "stonewall",
    "new_group", "thread", "group_reporting", "zero_buffers", "refill_buffers",
])  # fmt: skip
_INCLUDE = re.compile(r"include[\s=]\s*(.+)")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
#: Digits and a unit. fio reads no decimals: `1.5g` would be 1.
_NUMBER = re.compile(r"(?P<digits>0[xX][0-9a-fA-F]+|[0-9]+)(?P<unit>[A-Za-z]*)")
_POWERS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIMES_US = {"us": 1, "usec": 1, "ms": 1000, "msec": 1000, "s": 10**6, "m": 60 * 10**6, "h": 3600 * 10**6,
             "d": 86400 * 10**6}  # fmt: skip


@dataclass(frozen=True)
class Option:
    """One option of a job file.

    Attributes:
        name: its main name.
        value: its text; None where there is no `=`.
        file: the file that it is in.
        line: number of its line.
        is_global: whether it is of a `[global]` section.
    """

    name: str
    value: str | None
    file: Path
    line: int
    is_global: bool

    def error(self, problem: str, remedy: str) -> InputError:
        """An error about it that names its line."""
        shown = self.name if self.value is None else f"{self.name}={self.value}"
        return InputError(f"{self.file}:{self.line}", f"`{shown}` {problem}", remedy)


@dataclass(frozen=True)
class Job:
    """One job: a section that is not global.

    Attributes:
        name: its name (`name=`, else that of the section).
        line: the line of its section.
        options: what holds for it, by name, in the order of their lines.
        replaced: options that a later line replaced, with that line's option.
    """

    name: str
    line: int
    options: dict[str, Option] = field(default_factory=dict)
    replaced: tuple[tuple[Option, Option], ...] = ()


def read(path: Path, variables: Mapping[str, str]) -> list[Job]:
    """Reads a job file.

    Args:
        path: the file.
        variables: values of `${NAME}`.

    Raises:
        InputError: it is not a job file, is too large, or includes a file of another folder.
    """
    jobs = list(_jobs(_Reader(path, variables)))
    if not jobs:
        raise InputError(path, "has no job, only [global]", "add a section [NAME]")
    return jobs


class _Reader:
    """The lines of a job file and of those that it includes."""

    def __init__(self, path: Path, variables: Mapping[str, str]) -> None:
        self.path = path
        self.variables = variables
        self.left = LARGEST_BYTES
        self.folder = Path(os.path.realpath(path)).parent

    def lines(self, path: Path, depth: int = 0) -> Iterator[tuple[Path, int, str]]:
        """Lines that are not empty, without comments; included ones in their place."""
        for number, raw in enumerate(self._text(path).split("\n"), 1):
            line = re.split("[;#]", raw, maxsplit=1)[0].strip()
            if len(raw.encode()) >= LONGEST_LINE:
                raise InputError(
                    f"{path}:{number}", f"is longer than {LONGEST_LINE - 1} bytes", "is it a job file?"
                )
            if not line:
                continue
            if include := _INCLUDE.fullmatch(line):
                yield from self._included(path, number, include[1], depth)
            elif depth and line.startswith("["):
                raise InputError(
                    f"{path}:{number}", f"`{line}` begins a section", "an included file has none"
                )
            else:
                yield path, number, self._expanded(path, number, line)

    def _included(self, path: Path, number: int, name: str, depth: int) -> Iterator[tuple[Path, int, str]]:
        where = f"{path}:{number}"
        if depth >= DEEPEST_INCLUDE:
            raise InputError(where, f"includes more than {DEEPEST_INCLUDE} files in each other", "shorten it")
        target = Path(os.path.realpath(path.parent / name))
        if not target.is_relative_to(self.folder):
            problem = f"includes `{name}`, which is outside of the folder of the job file"
            raise InputError(where, problem, f"put it into {self.folder}, or its lines into the job file")
        yield from self.lines(target, depth + 1)

    def _text(self, path: Path) -> str:
        try:
            # A pipe would block, and a device has no end.
            if path.exists() and not path.is_file():
                raise InputError(path, "is no regular file", "name the job file")
            with path.open("rb") as file:
                content = file.read(self.left + 1)
        except FileNotFoundError:
            raise InputError(path, "there is no such file", "check the name") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(path, f"cannot be read ({reason})", "check name and permissions") from error
        if len(content) > self.left:
            problem = f"has more than {LARGEST_BYTES} bytes, with the files that it includes"
            raise InputError(path, problem, "is it a job file?")
        self.left -= len(content)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            raise InputError(f"{path}:{line}", "is not text in UTF-8", "is it a job file?") from None
        if "\0" in text:
            raise InputError(path, "contains a zero byte", "is it a job file?")
        return text

    def _expanded(self, path: Path, number: int, line: str) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] not in self.variables:
                problem = f"uses `{match[0]}`, and the environment is not read unless you ask for it"
                remedy = f"give --define {match[1]}=VALUE, or --environment for all variables"
                raise InputError(f"{path}:{number}", problem, remedy)
            return self.variables[match[1]]

        line = _VARIABLE.sub(value, line)
        if len(line.encode(errors="surrogateescape")) >= LONGEST_LINE or "\n" in line:
            raise InputError(f"{path}:{number}", "is too long with its variables", "give shorter values")
        for word in _KEYWORDS:
            if word in line:
                problem = f"uses `{word}`, a fact of the host that fio runs on"
                raise InputError(f"{path}:{number}", problem, "write the number")
        return line


def _jobs(reader: _Reader) -> Iterator[Job]:
    default: list[Option] = []
    own: list[Option] = []
    section: tuple[str, int] | None = None
    jobs = 0
    for path, number, line in reader.lines(reader.path):
        if path == reader.path and line.startswith("["):
            title = _SECTION.match(line)
            name = title[1][:-1].strip() if title and line.endswith("]") else ""
            if not name:
                raise InputError(f"{path}:{number}", f"`{line}` is no section", "write [NAME]")
            if section is not None and not section[0].startswith("global"):
                yield _job(section, default, own)
            jobs += 1
            if jobs > MOST_JOBS:
                raise InputError(path, f"has more than {MOST_JOBS} sections", "fio has at most as many jobs")
            section, own = (name, number), []
            continue
        if section is None:
            remedy = "begin with [global] or [NAME]; is it a job file of fio?"
            raise InputError(f"{path}:{number}", f"`{line[:60]}` is outside of a section", remedy)
        is_global = section[0].startswith("global")
        (default if is_global else own).append(_option(path, number, line, is_global))
    if section is not None and not section[0].startswith("global"):
        yield _job(section, default, own)
    elif jobs == 0:
        raise InputError(reader.path, "has no section", "is it a job file of fio?")


def _option(path: Path, number: int, line: str, is_global: bool) -> Option:
    name, equals, value = line.partition("=")
    name = name.strip()
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        remedy = "write NAME=VALUE; is it a job file of fio?"
        raise InputError(f"{path}:{number}", f"`{line[:60]}` is no option", remedy)
    return Option(ALIASES.get(name, name), value.strip() if equals else None, path, number, is_global)


def _job(section: tuple[str, int], default: list[Option], own: list[Option]) -> Job:
    options: dict[str, Option] = {}
    replaced = []
    for option in (*default, *own):
        # A new line of an option keeps what it leaves empty in fio; such values are rare, and refused below.
        if (before := options.pop(option.name, None)) is not None:
            replaced.append((before, option))
        options[option.name] = option
    # The `name` of [global] does not name the jobs.
    named = options.get("name")
    name = named.value if named and not named.is_global and named.value else section[0]
    return Job(name, section[1], options, tuple(replaced))


def size_bytes(option: Option, text: str, kb_base: int = 1024) -> int:
    """A size in bytes as fio reads it: `4k` is 4096, and `4KiB` 4000 unless `kb_base` is 1000.

    Raises:
        InputError: it is no size that fio reads.
    """
    match = _NUMBER.fullmatch(text.strip())
    unit = match["unit"].lower() if match else ""
    prefix, rest = unit[:1], unit[1:]
    if match is None or prefix not in _POWERS or rest not in ("", "b", "i", "ib") or (prefix == "b" and rest):
        remedy = "write digits and k, m, g, t or p, such as 4k (fio reads no decimals)"
        raise option.error(f"has `{text}`, no size", _remedy(text, remedy))
    if len(match["digits"]) > 20:
        raise option.error("has too many digits", "write a shorter number")
    base = kb_base if rest != "ib" else 1000 if kb_base == 1024 else 1024
    found: int = _digits(match) * base ** _POWERS[prefix]
    if found >= 1 << 63:
        raise option.error("is too large", "fio has numbers below 2^63")
    return found


def _remedy(text: str, remedy: str) -> str:
    """The remedy, or that for an expression, which fio evaluates and weir does not."""
    return "write the number of the expression" if text.strip().startswith("(") else remedy


def _digits(match: re.Match[str]) -> int:
    return int(match["digits"], 16 if match["digits"][:2].lower() == "0x" else 10)


def whole(option: Option, low: int = 0, high: int = (1 << 31) - 1) -> int:
    """A whole number.

    Raises:
        InputError: it is none, or not between the limits.
    """
    found = size_bytes(option, option.value or "")
    if not low <= found <= high:
        raise option.error(f"is no whole number from {low} to {high}", "correct it")
    return found


def time_us(option: Option, text: str, unit_us: int) -> int:
    """A time in microseconds.

    Args:
        option: the option that it is of.
        text: digits and a unit.
        unit_us: the unit of a number alone, in microseconds.

    Raises:
        InputError: it is no time. fio would read a number with an unknown unit in microseconds.
    """
    match = _NUMBER.fullmatch(text.strip())
    factor = unit_us if match and not match["unit"] else _TIMES_US.get(match["unit"].lower() if match else "")
    if match is None or factor is None or len(match["digits"]) > 15:
        remedy = "write digits and us, ms, s, m, h or d, such as 10s"
        raise option.error(f"has `{text}`, no time", _remedy(text, remedy))
    return _digits(match) * factor


def flag(option: Option) -> bool:
    """A switch; some are on where there is no value.

    Raises:
        InputError: its value is neither 0 nor 1.
    """
    text = "1" if option.value is None and option.name in SWITCHES else option.value
    if text not in ("0", "1"):
        raise option.error("is a switch", "write 0 or 1")
    return text == "1"
