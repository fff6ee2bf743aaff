"""`weir import fio`: a job file of fio as workloads and studies, with a report of what is lost."""

import argparse
import contextlib
import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from weir import locate
from weir.errors import InputError
from weir.imported import fio_jobs, fio_limits
from weir.imported.fio_workload import LONGEST_US, LOST, Fate, Imported, workload
from weir.json_output import Outcome

#: Exit code where a part of the job file is lost.
INCOMPLETE = 3
#: What no job file says; the studies that come out of it begin with these.
PROFILE, REPETITIONS, DURATION_S, SEED = "ssd-sata", 3, 10.0, 1
#: Shortest measured interval of a study.
_SHORTEST_US = 100_000
#: Share of a file system that files fill.
_FILLED = 0.7
#: Names that no class may have: that of the device that all share.
_RESERVED = ("shared",)
#: Longest name of a class and of a workload.
_LONGEST_NAME = 40


def command(options: argparse.Namespace, console: Console) -> Outcome:
    """Imports the job file that the options name; returns the exit code, and the fate of each option."""
    path: Path = options.job
    variables = dict(os.environ) if options.environment else {}
    for text in options.define:
        name, equals, value = text.partition("=")
        if not (equals and name):
            raise InputError("--define", f"is `{text}`, not NAME=VALUE", "for example --define SIZE=1g")
        variables[name] = value
    target_bytes = None
    if options.target_size is not None:
        asked = fio_jobs.Option("--target-size", options.target_size, path, 0, False)
        try:
            target_bytes = fio_jobs.size_bytes(asked, options.target_size)
        except InputError:
            problem = f"is `{options.target_size}`, no size"
            raise InputError("--target-size", problem, "write digits and k, m, g or t, such as 10g") from None
    imported = [workload(job, target_bytes) for job in fio_jobs.read(path, variables)]
    stem = _name(options.name or path.name.removesuffix(".fio"), [], "job")
    files = _files(_printable(path.name), stem, imported, options)
    is_checked = fio_limits.check(path, files)
    folder = options.to or locate.project() or Path.cwd()
    if not options.dry_run:
        _write(folder, files)
    written = [str(folder / name) for name in files]
    _report(path, imported, written, options, console)
    if not is_checked:
        console.print("not checked: there is no weir binary (call weir check with one before a run)")
    jobs = [
        {
            "job": one.job.name,
            "line": one.job.line,
            "problem": one.problem or None,
            "options": [asdict(fate) for fate in one.fates],
        }
        for one in imported
    ]
    found = {"file": str(path), "jobs": jobs, "would_write" if options.dry_run else "written": written}
    return INCOMPLETE if any(one.problem or one.lost for one in imported) else 0, found


# ---- workloads and studies


def _files(source: str, stem: str, imported: list[Imported], options: argparse.Namespace) -> dict[str, str]:
    """The text of each file, by its path within the project."""
    groups: list[list[Imported]] = []
    for one in imported:
        if not groups or one.begins_group:
            groups.append([])
        groups[-1].append(one)
    groups = [kept for group in groups if (kept := [one for one in group if not one.problem])]
    files: dict[str, str] = {}
    names: list[str] = []
    studies: list[str] = []
    for number, group in enumerate(groups, 1):
        study = stem if len(groups) == 1 else _name(f"{stem}-{number}", studies)
        studies.append(study)
        classes = {}
        recipes: dict[str, Imported] = {}
        class_names = [*_RESERVED]
        for one in group:
            name = _name(one.job.name, class_names)
            class_names.append(name)
            recipe_name = _name(f"{stem}-{name}", names)
            names.append(recipe_name)
            recipes[recipe_name] = one
            classes[name] = {"workload": recipe_name, "clients": one.clients} | (
                {"priority": one.priority} if one.priority and options.testbed == "device" else {}
            )
        # Before the workloads, which count what is lost: the jobs of a group lose more together.
        text = _study(source, study, group, classes, options)
        files |= {f"workloads/{name}.yml": _workload(source, name, one) for name, one in recipes.items()}
        files[f"studies/{study}.yml"] = text
    return files


def _name(text: str, taken: Iterable[str], empty: str = "job") -> str:
    """A name that weir accepts and that is not taken."""
    name = re.sub("[^a-z0-9_-]+", "-", text.lower()).strip("-")[:_LONGEST_NAME] or empty
    taken = set(taken)
    number, free = 2, name
    while free in taken:
        ending = f"-{number}"
        free, number = name[: _LONGEST_NAME - len(ending)] + ending, number + 1
    return free


def _printable(text: str) -> str:
    """The text without line ends and control characters, which a terminal or a comment would obey."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _workload(source: str, name: str, one: Imported) -> str:
    described = one.job.options.get("description")
    lost = sum(fate.fate == LOST for fate in one.fates)
    text = (described.value if described else None) or f"Job {one.job.name} of {source}."
    fields = {
        "name": name,
        "description": text,
        "source": f"job {one.job.name} of {source}, line {one.job.line}; {lost} of its options are lost",
        **{key: one.recipe[key] for key in ("arrivals", "files", "sizes", "access", "read_share")},
        **{key: one.recipe[key] for key in ("alignment_bytes",) if key in one.recipe},
    }
    return _yaml(f"# From a job file of fio: weir import fio {source}", fields)


def _study(
    source: str, name: str, group: list[Imported], classes: dict[str, Any], options: argparse.Namespace
) -> str:
    warmup_us, duration_us = _course(options.job, group, options.testbed)
    shared = [one for one in group if one.filename and sum(o.filename == one.filename for o in group) > 1]
    for one in shared:
        _lose(one, "filename", "several jobs are on it; each class has files of its own")
    buffered = not group[0].direct
    for one in group:
        if one.direct == buffered:
            _lose(one, "direct", f"all classes of a run have hold.buffered: {str(buffered).lower()}")
        if one.is_device != group[0].is_device:
            _lose(one, "filename", "all classes of a run are on one file system, or on none")
    on_device = options.testbed == "device"
    is_device = group[0].is_device
    file_bytes = sum(one.recipe["files"]["size"]["fixed"]["bytes"] for one in group)
    size_mib = -(-file_bytes // (1 << 20))
    if on_device:
        size_mib = int(size_mib / _FILLED) + 64
    schedulers = list(dict.fromkeys(one.scheduler for one in group if one.scheduler))
    for one in group:
        for option in ("prio", "prioclass"):
            if option in one.job.options and not on_device:
                _lose(one, option, f"testbed {options.testbed} has no I/O priorities")
        if one.scheduler and not on_device:
            _lose(one, "ioscheduler", f"testbed {options.testbed} has factors.scheduler: [fcfs]")
        elif one.scheduler and one.scheduler != schedulers[0]:
            _lose(one, "ioscheduler", f"all classes of a run share a disk, here with {schedulers[0]}")
    chosen = (schedulers[:1] or ["none"]) if on_device else ["fcfs"]
    hold: dict[str, Any] = {}
    if on_device:
        hold["filesystem"] = "raw" if is_device else "ext4"
        if buffered and not is_device:
            hold["buffered"] = True
    if buffered and "buffered" not in hold:
        where = "a raw device" if on_device else "testbed simulator"
        for one in group:
            _lose(one, "direct", f"requests to {where} do not pass the page cache")
    fields = {
        "name": name,
        "question": f"How do the jobs of {source} fare?",
        "description": "Storage, scheduler, file system, repetitions and seed are not of the job file.",
        "testbed": options.testbed,
        "seed": SEED,
        "repetitions": REPETITIONS,
        "warmup_s": warmup_us / 1e6,
        "duration_s": duration_us / 1e6,
        "storage": {"profile": options.profile, "heads": 1, "size_mib": max(256, size_mib)},
        "classes": classes,
        "factors": {"scheduler": chosen},
    }
    if on_device:
        fields["capture"] = "optional"
    if hold:
        fields["hold"] = hold
    return _yaml(f"# From a job file of fio: weir import fio {source}", fields)


def _course(job_file: Path, group: list[Imported], testbed: str) -> tuple[int, int]:
    """Warm-up and measured interval of a run, in microseconds.

    Raises:
        InputError: a run cannot hold the requests, or ends before a job begins.
    """
    warmup_us = max(one.warmup_us for one in group)
    ends_us = max((one.ends_us for one in group if one.ends_us), default=0)
    # A job without a runtime ends with its data in fio; here it ends with the others, if it begins before.
    default_us = int(DURATION_S * 1e6) + warmup_us
    ends_us = max([ends_us, *(one.starts_us + default_us for one in group if one.starts_us >= ends_us)])
    for one in group:
        if one.ends_us and one.ends_us != ends_us:
            _lose(one, "runtime", "all classes of a run end together, with the last of them")
        if one.warmup_us != warmup_us:
            _lose(one, "ramp_time", f"all classes of a run have a warm-up of {warmup_us / 1e6:g} s")
    duration_us = min(max(ends_us - warmup_us, _SHORTEST_US), LONGEST_US)
    limits = f"it must be from {_SHORTEST_US / 1e6:g} to {LONGEST_US / 1e6:g} s"
    longest_s = fio_limits.demand(group, on_device=testbed == "device").longest_s()
    longest_us = int(longest_s * 10) * 100_000
    asked_us = warmup_us
    if warmup_us + duration_us > longest_us:
        if longest_us < _SHORTEST_US:
            problem = f"{_names(group)}: their outstanding requests are more than a run can hold"
            raise InputError(job_file, problem, "lower iodepth, numjobs or bs")
        limits = f"warm-up and duration of a run with these requests are {longest_us / 1e6:g} s at most"
        warmup_us = min(warmup_us, max(longest_us - duration_us, longest_us // 2))
        duration_us = min(duration_us, longest_us - warmup_us)
    for one in group:
        if one.ends_us and duration_us != ends_us - asked_us:
            _lose(one, "runtime", f"duration_s: {duration_us / 1e6:g}; {limits}")
        if one.warmup_us and warmup_us != asked_us:
            _lose(one, "ramp_time", f"warmup_s: {warmup_us / 1e6:g}; {limits}")
        if one.starts_us >= warmup_us + duration_us:
            problem = f"{_names([one])}: begins after {one.starts_us / 1e6:g} s; {limits}"
            raise InputError(job_file, problem, "lower startdelay, iodepth or numjobs")
    return warmup_us, duration_us


def _names(group: list[Imported]) -> str:
    shown = ", ".join(f"[{one.job.name}] in line {one.job.line}" for one in group[:3])
    return _printable(f"{shown} and {len(group) - 3} more" if len(group) > 3 else shown)


def _lose(one: Imported, name: str, text: str) -> None:
    """Marks an option as lost for a reason that the other jobs of its group give."""
    option = one.job.options.get(name)
    kept = [fate for fate in one.fates if option is None or (fate.option, fate.line) != (name, option.line)]
    line, value, file = (option.line, option.value, str(option.file)) if option else (one.job.line, None, "")
    one.fates[:] = sorted(
        [*kept, Fate(name, value, line, file, LOST, text)], key=lambda f: (f.line, f.option)
    )


def _yaml(comment: str, fields: dict[str, Any]) -> str:
    return f"{comment}\n{yaml.safe_dump(fields, sort_keys=False, width=110, allow_unicode=True)}"


def _write(folder: Path, files: dict[str, str]) -> None:
    """Writes all files or none; never over a file of another content."""
    contents = {folder / name: text.encode() for name, text in files.items()}
    made: list[Path] = []
    path = folder
    try:
        missing = []
        for path, content in contents.items():
            if path.is_symlink() or (path.exists() and not (path.is_file() and path.read_bytes() == content)):
                remedy = "remove it, or choose another name with --name"
                raise InputError(path, "exists and is different", remedy)
            if not path.exists():
                missing.append(path)
        for parent in dict.fromkeys(path.parent for path in missing):
            for path in (*reversed(parent.parents), parent):
                if not path.is_dir():
                    path.mkdir()
                    made.append(path)
        for path in missing:
            with path.open("xb") as file:
                made.append(path)
                file.write(contents[path])
    except OSError as error:
        for done in reversed(made):
            # What another program put into a new folder meanwhile stays.
            with contextlib.suppress(OSError):
                done.rmdir() if done.is_dir() else done.unlink()
        problem = f"cannot be written ({error.strerror or error})"
        raise InputError(path, problem, "make room or mend it, or choose another folder with --to") from error


# ---- the report


def _report(
    path: Path, imported: list[Imported], written: list[str], options: argparse.Namespace, console: Console
) -> None:
    def say(text: str) -> None:
        console.print(_printable(text), soft_wrap=True, markup=False, highlight=False)

    seen: set[Fate] = set()
    for one in imported:
        if one.problem:
            say(f"{path}:{one.job.line}: [{one.job.name}] is not imported: {one.problem}")
        for fate in one.fates:
            # A line of [global] is shown once, as far as it has one fate.
            if fate in seen:
                continue
            seen.add(fate)
            value = "" if fate.value is None else f"={fate.value}"
            what = f"{fate.option}{value}" if fate.file else fate.option
            say(f"{fate.file or path}:{fate.line}: {what}: {fate.fate.replace('_', ' ')}: {fate.text}")
    for name in written:
        say(f"{'would write' if options.dry_run else 'wrote'} {name}")
    lost = sum(len(one.lost) for one in imported)
    if lost or any(one.problem for one in imported):
        say(f"incomplete: {lost} options are lost (exit code {INCOMPLETE})")
    studies = [Path(name) for name in written if Path(name).parent.name == "studies"]
    if studies and not options.dry_run:
        # weir looks for the workloads of a study in the project.
        if options.to and options.to.resolve() != locate.project():
            project = shlex.quote(str(options.to.resolve()))
            say(f"next: {locate.ROOT_VARIABLE}={project} weir check {shlex.quote(str(studies[0].resolve()))}")
        else:
            say(f"next: weir check {studies[0]}; make study STUDY={studies[0].stem}")
