"""Filters on the plan of a study: the runs of each host, and what is shown of them."""

import json
from pathlib import Path


def studies(name, root):
    """Studies of a name.

    Args:
        name: name or file of a study, or the common prefix of several names.
        root: the repository.

    Returns:
        The studies `NAME-*`, sorted, if no study has that name itself. Otherwise the name:
        `weir plan` reports an unknown one.
    """
    folder = Path(root) / "studies"
    known = {path.stem for path in folder.rglob("*.yml")}
    if not name or "/" in name or name in known or Path(name).is_file():
        return [name]
    return sorted(stem for stem in known if stem.startswith(f"{name}-")) or [name]


def _line(run):
    """Fields of the progress line of a run."""
    return {
        "id": run["id"],
        "repetition": run["repetition"] + 1,
        "levels": run["levels"],
        "seconds": run["warmup_s"] + run["duration_s"],
    }


def runs_of_host(runs, blocks, host):
    """Runs on devices that are assigned to a host.

    Args:
        runs: the runs of a plan.
        blocks: the host of each block, by its number as a text (`weir_assign_blocks`).
        host: name of this host.

    Returns:
        For each run the fields of its progress line: id, repetition, levels, seconds (planned length).
    """
    return [
        _line(run)
        for run in runs
        if run["testbed"] == "device" and not run.get("hosts")
        if blocks.get(str(run["block"])) == host
    ]


def kernel_groups(runs, plan, left=False):
    """Groups of consecutive runs of one block and kernel; each gets a boot of its own.

    Args:
        runs: the runs to carry out, in order, as `runs_of_host` returns them.
        plan: the plan.
        left: whether the kernel of a killed study may still run.

    Returns:
        For each group `kernel` (empty for the host's own), `block` and `runs`. An empty list if no boot is
        needed.
    """
    planned = {run["id"]: run for run in plan["runs"]}
    groups = []
    for run in runs:
        of = planned[run["id"]]
        group = {"kernel": of["settings"].get("kernel", ""), "block": of["block"]}
        if not groups or {part: groups[-1][part] for part in group} != group:
            groups.append(group | {"runs": []})
        groups[-1]["runs"].append(run)
    if any(group["kernel"] for group in groups):
        return groups
    return [{"kernel": "", "runs": list(runs)}] if left and runs else []


def joint_runs(runs, groups, host):
    """Runs of several hosts, on each host that may take part.

    Args:
        runs: the runs of a plan.
        groups: the inventory's hosts by group.
        host: name of this host.

    Returns:
        As `runs_of_host`; none on a host outside of `weir_clients` and `weir_servers`.
    """
    if host not in [*groups.get("weir_clients", []), *groups.get("weir_servers", [])]:
        return []
    return [_line(run) for run in runs if run.get("hosts")]


def run_hosts(groups, there, lost, clients):
    """Hosts of a run of several hosts.

    Args:
        groups: the inventory's hosts by group.
        there: reachable hosts.
        lost: hosts that were lost in an earlier run.
        clients: number of clients of the study.

    Returns:
        `clients`, the first of the remaining ones; `servers`; `all` of both; `left`, all remaining clients;
        `ended`, why the run is not possible, or an empty text.
    """
    left = [name for name in groups.get("weir_clients", []) if name in there and name not in lost]
    servers = [name for name in groups.get("weir_servers", []) if name not in left]
    chosen = left[:clients]
    absent = [name for name in servers if name not in there]
    ended = ""
    if len(left) < clients:
        ended = f"of the {clients} clients of a run {len(left)} are left ({', '.join(left) or 'none'})"
    elif absent:
        ended = f"server {', '.join(absent)} cannot be reached or used"
    return {"clients": chosen, "servers": servers, "all": chosen + servers, "left": left, "ended": ended}


def after_joint_run(joined, run, chosen, hosts, keep_going):
    """Effect of a run of several hosts on the study.

    Args:
        joined: result of `weir join --json`.
        run: the run's id.
        chosen: the hosts of the run, as `run_hosts` returns them.
        hosts: the field `hosts` of the study (`clients`, `lost`).
        keep_going: whether the other runs continue after a failed run.

    Returns:
        `lost`, the hosts that were lost in the run; `failed`, whether the run has no result; `ended`, why the
        study ends here, or an empty text.
    """
    try:
        lost = json.loads(joined.get("stdout") or "{}").get("lost", [])
    except ValueError:
        lost = []
    failed = joined.get("rc") not in (0, 3)
    names = ", ".join(lost)
    left = [name for name in chosen["left"] if name not in lost]
    ended = ""
    if lost and hosts["lost"] == "stop":
        ended = f"{names} was lost in run {run}, and the study has `lost: stop`"
    elif servers := [name for name in lost if name in chosen["servers"]]:
        ended = f"server {', '.join(servers)} was lost in run {run}: its disks cannot be observed"
    elif lost and len(left) < hosts["clients"]:
        ended = (
            f"{names} was lost in run {run}; of the {hosts['clients']} clients of a run {len(left)} are left"
        )
    elif failed and not keep_going:
        ended = f"run {run} failed"
    return {"lost": lost, "failed": failed, "ended": ended}


def simulated_runs(runs, ids):
    """The simulated runs of a host.

    Args:
        runs: the runs of a plan.
        ids: ids of the host's runs, one shard of `weir plan --shards`.

    Returns:
        For each run its id, and `all`: whether all its requests are kept.
    """
    mine = set(ids)
    return [
        {"id": run["id"], "all": run.get("records", "requests") == "requests"}
        for run in runs
        if run["id"] in mine
    ]


def lacking(hosts):
    """Missing requirements for runs on devices, as a phrase; empty if none.

    Args:
        hosts: results of `weir_host` by host.
    """
    by_part = {}
    for name, found in hosts.items():
        for part in found.get("lacking", []):
            by_part.setdefault(part, []).append(name)
    everywhere = len(hosts)
    return ", ".join(
        f"no {part}" + ("" if len(names) == everywhere else f" on {', '.join(names)}")
        for part, names in by_part.items()
    )


def _spec(device):
    return device | ({"live": {"policy": "fcfs"}} if device.get("live") else {})


def device_files(modelled, disks, state, mounts=None, options=None, kernel=None):
    """Files for the binary: a specification for each modelled device, and `testbed.json`.

    Args:
        modelled: the modelled devices.
        disks: disks of the inventory by the name of the device.
        state: the state folder on the host.
        mounts: mount points of file systems that exist before a run, by name.
        options: options that roles have set, by file system and name.
        kernel: the kernel that was booted for the runs.

    Returns:
        The text of each file, by path.
    """
    specs = {device["name"]: device for device in modelled}
    devices = {name: {"modelled": {"state": f"{state}/devices/{name}.json"}} for name in specs}
    devices |= _listed(disks)
    # JSON is YAML.
    files = {
        f"{state}/specs/{name}.yml": json.dumps(_spec(spec), indent=2) + "\n" for name, spec in specs.items()
    }
    testbed = {"devices": devices, "mounts": mounts or {}} | ({"options": options} if options else {})
    testbed |= {"kernel": kernel} if kernel else {}
    return files | {f"{state}/testbed.json": json.dumps(testbed, indent=2) + "\n"}


def testbeds(hosts):
    """Disks and mounts of the inventory, once for hosts with the same entries.

    Args:
        hosts: variables by host.

    Returns:
        `hosts`, and the text of their `testbed` without modelled devices.
    """
    made = {}
    for name, variables in hosts.items():
        paths = {"devices": _listed(variables["weir_devices"], _path), "mounts": variables["weir_mounts"]}
        made.setdefault(json.dumps(paths), []).append(name)
    return [{"hosts": names, "testbed": text} for text, names in made.items()]


def media(asked):
    """Medium of each class, as lines for people.

    Args:
        asked: results of a loop of `weir plan --devices --json` over the result of `testbeds`.

    Returns:
        A line for each class. Hosts are named where their lines differ.
    """
    lines = []
    for result in asked:
        where = f" on {', '.join(result['item']['hosts'])}" if len(asked) > 1 else ""
        plan = json.loads(result["stdout"])
        lines += [
            f"{plan['study']}: class {name}{where}: {' or '.join(texts)}"
            for name, texts in plan["media_by_class"].items()
        ]
    return lines


def with_media(runs, asked, host):
    """Runs as `runs_of_host` returns them, each with its `media` by class. Arguments as for `media`."""
    found = next((result for result in asked if host in result["item"]["hosts"]), None)
    by_run = json.loads(found["stdout"])["media"] if found else {}
    return [run | {"media": by_run.get(run["id"], {})} for run in runs]


def _listed(disks, disk=None):
    """Disks of the inventory as `testbed.json` has them."""
    disk = disk or _disk
    return {
        name: {"array": {"members": [disk(member) for member in entry["members"]]}}
        if "members" in entry
        else {"disk": disk(entry)}
        for name, entry in disks.items()
    }


def _path(listed):
    return {"path": listed["path"]}


def _disk(listed):
    permission = {"overwrite": listed["overwrite"]} if "overwrite" in listed else {}
    return {"path": listed["path"]} | permission


def bricks(served, cluster, disks, folders):
    """Devices for the data of a cluster's servers, in the order of the servers.

    Args:
        served: output of `weir serve --status --json`.
        cluster: name of the cluster; its devices are `NAME-0`, `NAME-1` and so on.
        disks: disks of the inventory by the name of the device.
        folders: folders to use in place of devices; then the result is empty.
    """
    if folders:
        return []
    nodes = {entry["state"]["spec"]["name"]: entry["state"]["device"]["path"] for entry in served}
    nodes |= {name: disk["path"] for name, disk in disks.items() if "path" in disk}
    numbered = {
        int(name.removeprefix(f"{cluster}-")): node
        for name, node in nodes.items()
        if name.startswith(f"{cluster}-") and name.removeprefix(f"{cluster}-").isdigit()
    }
    return [numbered[number] for number in sorted(numbered)]


class FilterModule:
    """Filters of this plugin, for Ansible."""

    def filters(self):
        """The filters by name."""
        return {
            "weir_studies": studies,
            "weir_runs_of_host": runs_of_host,
            "weir_simulated_runs": simulated_runs,
            "weir_joint_runs": joint_runs,
            "weir_kernel_groups": kernel_groups,
            "weir_run_hosts": run_hosts,
            "weir_after_joint_run": after_joint_run,
            "weir_lacking": lacking,
            "weir_device_files": device_files,
            "weir_testbeds": testbeds,
            "weir_media": media,
            "weir_with_media": with_media,
            "weir_bricks": bricks,
        }
