"""Filters that assign a study's runs to hosts, and again when a host is lost."""

import json
from pathlib import Path


def assign_blocks(runs, planned, hosts, folder, move=False):
    """The host of each block of the runs on devices.

    A block is never split: runs are compared within a block, so no comparison is between hosts. A block
    that has finished runs stays with the host that ran them.

    Args:
        runs: the missing runs.
        planned: all runs of the plan.
        hosts: names of the reachable hosts, in the order of the inventory.
        folder: the study's results; its `blocks.json` holds the host of each block that was assigned before.
        move: whether another host may complete a block whose host is unreachable.

    Returns:
        hosts: host by block number (a string, since it is kept as JSON).
        waiting: the same for blocks whose host is unreachable.
    """
    missing, whole = _blocks(runs), _blocks(planned)
    before = begun(folder)
    dealt, waiting = {}, {}
    for place, block in enumerate(sorted(missing)):
        name = str(block)
        host = before.get(name) if missing[block] < whole.get(block, set()) else None
        if host and host not in hosts and not move:
            waiting[name] = host
        else:
            dealt[name] = host if host in hosts else hosts[place % len(hosts)]
    return {"hosts": dealt, "waiting": waiting}


def begun(folder):
    """The host that each block was assigned to last, by its number as a text."""
    try:
        return json.loads((Path(folder) / "blocks.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def lost_blocks(deal, hosts, planned, folder):
    """The blocks that are not whole since their host was lost, as sentences, one for each host.

    Args:
        deal: what `assign_blocks` returned.
        hosts: the hosts that are still there.
        planned: all runs of the plan.
        folder: the study's results.
    """
    done = {path.name for path in Path(folder).iterdir()} if Path(folder).is_dir() else set()
    part = {str(block) for block, runs in _blocks(planned).items() if not runs <= done}
    lost = {block: host for block, host in deal["hosts"].items() if host not in hosts and block in part}
    return [
        f"{host} was lost: {_named(blocks)} not carried out; the same command has other hosts do it"
        for host, blocks in _by_host(lost)
    ] + [
        f"{host} cannot be reached, where {_named(blocks)} begun: have it back, or have the rest carried out "
        "elsewhere, where comparisons within a block are between hosts (-e weir_move_blocks=true)"
        for host, blocks in _by_host(deal["waiting"])
    ]


def reassign_runs(deal, hosts):
    """What fell to hosts that were lost, for those that remain: ids of runs in virtual time, by host.

    Args:
        deal: ids of runs, by host.
        hosts: the hosts that remain.

    Returns:
        Nothing if no host with anything to do was lost.
    """
    left = [run for host, runs in deal.items() if host not in hosts for run in runs]
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
    """Repetitions as people count them, from 1: `block 3 was`, `blocks 1 and 3 were`."""
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
