"""Filters that assign a study's runs to hosts, and again when a host is lost."""

import json
from pathlib import Path


def assign_blocks(runs, planned, hosts, folder, move=False, label=""):
    """The host of each block of the runs on devices.

    A block is never split: runs are compared within a block, so no comparison is between hosts. A block
    that has finished runs stays with the host that ran them.

    Args:
        runs: the missing runs.
        planned: all runs of the plan.
        hosts: names of the reachable hosts, in the order of the inventory.
        folder: the study's results; its `blocks.json` holds the host of each block that was assigned before.
        move: whether another host may complete a block whose host is unreachable.
        label: label of the runs; empty if they have none. Each label has a file of its own.

    Returns:
        hosts: host by block number (a string, since it is kept as JSON).
        waiting: the same for blocks whose host is unreachable.
    """
    missing, planned = _blocks(runs), _blocks(planned)
    before = begun(folder, label)
    assigned, waiting = {}, {}
    for place, block in enumerate(sorted(missing)):
        name = str(block)
        host = before.get(name) if missing[block] < planned.get(block, set()) else None
        if host and host not in hosts and not move:
            waiting[name] = host
        else:
            assigned[name] = host if host in hosts else hosts[place % len(hosts)]
    return {"hosts": assigned, "waiting": waiting}


def begun(folder, label=""):
    """The host that each block of a label was assigned to last, by its number as a text."""
    name = f"blocks@{label}.json" if label else "blocks.json"
    try:
        return json.loads((Path(folder) / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def lost_blocks(assigned, hosts, planned, folder):
    """Blocks that are incomplete because their host was lost, as sentences, one for each host.

    Args:
        assigned: result of `assign_blocks`.
        hosts: the remaining hosts.
        planned: all runs of the plan.
        folder: the study's results.
    """
    done = {path.name for path in Path(folder).iterdir()} if Path(folder).is_dir() else set()
    part = {str(block) for block, runs in _blocks(planned).items() if not runs <= done}
    lost = {block: host for block, host in assigned["hosts"].items() if host not in hosts and block in part}
    return [
        f"{host} was lost: {_named(blocks)} not carried out. Repeat the command: other hosts carry them out"
        for host, blocks in _by_host(lost)
    ] + [
        f"{host} cannot be reached, where {_named(blocks)} begun. Make it reachable, or let other hosts "
        "complete the blocks with -e weir_move_blocks=true (their comparisons are then between hosts)"
        for host, blocks in _by_host(assigned["waiting"])
    ]


def reassign_runs(assigned, hosts):
    """Assigns the runs of lost hosts to the remaining ones: ids of runs in virtual time, by host.

    Args:
        assigned: ids of runs, by host.
        hosts: the hosts that remain.

    Returns:
        An empty mapping if no lost host had runs.
    """
    left = [run for host, runs in assigned.items() if host not in hosts for run in runs]
    if not left or not hosts:
        return {}
    return {host: left[place :: len(hosts)] for place, host in enumerate(hosts) if left[place :: len(hosts)]}


def _blocks(runs):
    """Ids of the runs on devices, by block."""
    blocks = {}
    for run in runs:
        if run["testbed"] == "device":
            blocks.setdefault(run["block"], set()).add(run["id"])
    return blocks


def _by_host(blocks):
    hosts = {}
    for block, host in blocks.items():
        hosts.setdefault(host, []).append(int(block))
    return sorted(hosts.items())


def _named(blocks):
    """Blocks with numbers from 1: `block 3 was`, `blocks 1 and 3 were`."""
    *others, last = [str(block + 1) for block in sorted(blocks)]
    return f"blocks {', '.join(others)} and {last} were" if others else f"block {last} was"


class FilterModule:
    """Filters of this plugin, for Ansible."""

    def filters(self):
        """The filters by name."""
        return {
            "weir_assign_blocks": assign_blocks,
            "weir_begun": begun,
            "weir_lost_blocks": lost_blocks,
            "weir_reassign_runs": reassign_runs,
        }
