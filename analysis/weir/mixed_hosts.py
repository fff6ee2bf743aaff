"""Rule R-HOST: runs of a study are from one kernel, one commit of weir, one CPU model and the same devices.

A rule of a set of runs: no run of it is invalid alone, but what differs between its runs may be the hosts.
The factors `label` and `kernel` declare such a difference: runs are compared with those of their label, and
their kernels with those of their level. Runs in virtual time have no host.

Facts of the host are compared over all runs. Devices are compared within a cell, since other levels may be on
other devices by design: over all hosts by model and size, because hosts that share a study have disks of
their own, and on one host by the names of its disks.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from weir.load import Run, Study
from weir.plans import LABEL
from weir.study import cell_label

RULE = "R-HOST"
#: Facts that every run of a study shares, by their place in `host.json`.
FACTS = {
    "kernel release": ("system", "kernel_release"),
    "kernel build": ("system", "kernel_version"),
    "commit of weir": ("weir", "commit"),
    "CPU model": ("cpu", "model"),
}
#: Facts that only the runs under one level of the factor `kernel` share.
OF_KERNEL = {
    "kernel release": FACTS["kernel release"],
    "kernel build": FACTS["kernel build"],
    "kernel image": ("kernel", "image_sha256"),
}
#: The kernel that was booted for a run, by its name in the study.
_KERNEL = ("kernel", "name")
_HOST_NAME = ("system", "host_name")
#: Cells that a finding names.
_MOST_CELLS = 3

Host = dict[str, Any]
#: A run, and the records of its hosts.
_Measured = tuple[Run, list[Host]]


@dataclass(frozen=True)
class Mixed:
    """A fact that differs between runs that should share it.

    Attributes:
        fact: the fact, such as `kernel release`.
        values: its values, each with the number of runs that have it.
        label: the label of these runs; None where the study has no labels.
        kernel: the kernel of these runs; None where the study names none.
        cells: the cells in which devices differ; empty for other facts.
        within_blocks: whether runs of one block differ, so that comparisons within blocks are between hosts.
    """

    fact: str
    values: tuple[tuple[str, int], ...]
    label: str | None
    cells: tuple[str, ...]
    within_blocks: bool
    kernel: str | None = None

    def sentence(self) -> str:
        """The finding with its consequence and remedy."""
        values = ", ".join(f"{value} in {count} run{'s' * (count != 1)}" for value, count in self.values)
        where = f" of label {self.label}" if self.label is not None else ""
        if self.kernel is not None:
            where += f" of kernel {self.kernel}"
        if self.cells:
            more = len(self.cells) - _MOST_CELLS
            where += f" of the cell {'; '.join(self.cells[:_MOST_CELLS])}" + f" and {more} more" * (more > 0)
        effect = (
            "runs of one block differ, so comparisons are between hosts"
            if self.within_blocks
            else "each block has one value: comparisons within blocks hold, estimates of a cell mix hosts"
        )
        return (
            f"{RULE}: runs{where} differ in {self.fact}: {values}; {effect}. Repeat the runs on one host, or "
            "run each kernel, commit or machine under a label of its own (make study LABEL=NAME)."
        )


def mixed_hosts(study: Study) -> list[Mixed]:
    """The findings of R-HOST; none where all valid runs with a host share its facts.

    Raises:
        InputError: a host.json is damaged.
    """
    by_label: dict[str | None, list[_Measured]] = {}
    for run in study.valid_runs:
        if run.testbed == "simulator":
            continue
        label = str(run.levels[LABEL]) if LABEL in run.levels and LABEL in study.factors else None
        by_label.setdefault(label, []).append((run, _hosts(run.host)))
    found: list[Mixed] = []
    for label, runs in by_label.items():
        by_kernel: dict[str, list[_Measured]] = {}
        for run, of in runs:
            by_kernel.setdefault(_once(_at(host, _KERNEL) for host in of), []).append((run, of))
        for fact, place in FACTS.items():
            if by_kernel.keys() == {""} or fact not in OF_KERNEL:
                found += _mixed(fact, label, _values(place, runs))
        for kernel, under in by_kernel.items():
            for fact, place in OF_KERNEL.items() if by_kernel.keys() != {""} else ():
                found += (replace(one, kernel=kernel) for one in _mixed(fact, label, _values(place, under)))
        found += _devices(study, label or study.label, label, runs)
    return found


def _values(place: tuple[str, ...], runs: list[_Measured]) -> list[tuple[Run, str]]:
    """A fact of each run."""
    return [(run, _once(_at(host, place) for host in of)) for run, of in runs]


def _mixed(fact: str, label: str | None, values: list[tuple[Run, str]], cell: str = "") -> Iterator[Mixed]:
    counts: dict[str, int] = {}
    by_block: dict[int, set[str]] = {}
    for run, value in values:
        if value:
            counts[value] = counts.get(value, 0) + 1
            by_block.setdefault(run.block, set()).add(value)
    if len(counts) > 1:
        within = any(len(of_block) > 1 for of_block in by_block.values())
        yield Mixed(fact, tuple(counts.items()), label, (cell,) if cell else (), within)


def _devices(study: Study, of_label: str | None, label: str | None, runs: list[_Measured]) -> list[Mixed]:
    """Devices that differ within a cell; cells that differ alike are one finding."""
    assigned = _assigned(study, of_label)
    by_cell: dict[str, list[_Measured]] = {}
    for run, hosts in runs:
        levels = {name: level for name, level in run.levels.items() if name != LABEL}
        by_cell.setdefault(cell_label(levels, levels), []).append((run, hosts))
    merged: dict[tuple[str, frozenset[str]], Mixed] = {}
    for cell, of_cell in by_cell.items():
        kinds = [(run, _once(_kinds(host) for host in hosts)) for run, hosts in of_cell]
        found = list(_mixed("devices", label, kinds, cell))
        by_host: dict[str, list[tuple[Run, str]]] = {}
        for run, hosts in of_cell:
            # Of a run of several hosts each has disks of its own.
            if len(hosts) == 1:
                name = assigned.get(str(run.block)) or _at(hosts[0], _HOST_NAME)
                by_host.setdefault(name, []).append((run, _media(run)))
        for name, media in () if found else by_host.items():
            found += _mixed(f"disks of host {name}" if name else "disks", label, media, cell)
        for one in found:
            key = (one.fact, frozenset(value for value, _ in one.values))
            merged[key] = _both(merged[key], one) if key in merged else one
    return list(merged.values())


def _both(one: Mixed, other: Mixed) -> Mixed:
    counts = dict(one.values)
    for value, count in other.values:
        counts[value] += count
    within = one.within_blocks or other.within_blocks
    return Mixed(one.fact, tuple(counts.items()), one.label, one.cells + other.cells, within)


def _assigned(study: Study, label: str | None) -> dict[str, str]:
    """The host of the inventory that each block was assigned to, by its number."""
    path = study.path / ("blocks.json" if label is None else f"blocks@{label}.json")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(block): str(host) for block, host in found.items()} if isinstance(found, dict) else {}


def _hosts(document: dict[str, Any]) -> list[Host]:
    """The records of a run's hosts: `Run.host` has one, or several by name."""
    several = [part for part in document.values() if isinstance(part, dict) and "system" in part]
    if several and "system" not in document:
        return several
    return [document] if document else []


def _at(host: Host, place: tuple[str, ...]) -> str:
    """A fact as text; empty where it is not known."""
    value: Any = host
    for name in place:
        value = value.get(name) if isinstance(value, dict) else None
    return "" if value is None or isinstance(value, dict) else str(value)


def _once(values: Iterable[str]) -> str:
    """What the hosts of a run have, each value once: their number and order is no difference."""
    return " and ".join(sorted({value for value in values if value}))


def _kinds(host: Host) -> str:
    """The disks of a host by model and size: names, numbers and serials differ between hosts and boots."""
    devices = host.get("devices")
    if not isinstance(devices, dict):
        return ""
    return " + ".join(sorted(_kind(device) for device in devices.values()))


def _kind(device: Any) -> str:
    size = _at(device, ("size_bytes",))
    return f"{_at(device, ('model',)) or 'disk'} of {int(size):,} bytes" if size.isdigit() else "disk"


def _media(run: Run) -> str:
    """The medium of each class, which names real disks by their ids."""
    return ", ".join(f"{name} on {medium}" for name, medium in sorted(run.media.items()))
