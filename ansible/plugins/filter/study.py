"""Filters on a study's plan: what this host has to do."""

import json
from pathlib import Path


def studies(name, root):
    """The studies that a name means.

    Args:
        name: a study's name or file, or how the names of several begin.
        root: the repository.

    Returns:
        The studies `NAME-*`, sorted, if there is no study of that name itself; else the name as it is, for
        whoever plans it to say what is wrong with it.
    """
    folder = Path(root) / "studies"
    known = {path.stem for path in folder.rglob("*.yml")}
    if not name or "/" in name or name in known or Path(name).is_file():
        return [name]
    return sorted(stem for stem in known if stem.startswith(f"{name}-")) or [name]


def _line(run):
    """What a run's progress line says."""
    return {
        "id": run["id"],
        "repetition": run["repetition"] + 1,
        "levels": run["levels"],
        "seconds": run["warmup_s"] + run["duration_s"],
    }


def runs_of_host(runs, blocks, host):
    """The runs on devices that fall to a host.

    Args:
        runs: the runs of a plan.
        blocks: the host of each block, by its number as a text (`weir_assign_blocks`).
        host: name of this host.

    Returns:
        Of each run what its progress line says: id, repetition, levels, seconds (its planned length).
    """
    return [
        _line(run)
        for run in runs
        if run["testbed"] == "device" and not run.get("hosts")
        if blocks.get(str(run["block"])) == host
    ]


def joint_runs(runs, groups, host):
    """The runs that several hosts carry out together, on each host that may take part in them.

    Args:
        runs: the runs of a plan.
        groups: the inventory's hosts by group.
        host: name of this host.

    Returns:
        As `runs_of_host`; none on a host that is neither among `weir_clients` nor `weir_servers`.
    """
    if host not in [*groups.get("weir_clients", []), *groups.get("weir_servers", [])]:
        return []
    return [_line(run) for run in runs if run.get("hosts")]


def company(groups, there, lost, clients):
    """Who carries out a run of several hosts.

    Args:
        groups: the inventory's hosts by group.
        there: the hosts that can be reached.
        lost: those that were lost in a run before.
        clients: how many clients the study takes.

    Returns:
        `clients`, the first so many of those that are left, `servers`, and `all` of them; `left`, all
        clients that are left; `ended`, why they cannot carry it out, or an empty text.
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


def after_joint_run(joined, run, company, hosts, keep_going):
    """What follows from a run of several hosts for the study.

    Args:
        joined: what became of `weir join --json`.
        run: the run's id.
        company: who carried it out, as `company` says.
        hosts: what the study says of hosts (`clients`, `lost`).
        keep_going: whether a run that failed leaves the others their turn.

    Returns:
        `lost`, the hosts that were lost in it; `failed`, whether there is no such run now; `ended`, why the
        study ends here, or an empty text.
    """
    try:
        lost = json.loads(joined.get("stdout") or "{}").get("lost", [])
    except ValueError:
        lost = []
    failed = joined.get("rc") not in (0, 3)
    names = ", ".join(lost)
    left = [name for name in company["left"] if name not in lost]
    ended = ""
    if lost and hosts["lost"] == "stop":
        ended = f"{names} was lost in run {run}, and the study says `lost: stop`"
    elif servers := [name for name in lost if name in company["servers"]]:
        ended = f"server {', '.join(servers)} was lost in run {run}: nobody knows what its disks would do"
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
        ids: those of the host, one shard of `weir plan --shards`.

    Returns:
        Of each run its id, and `all`: whether each of its requests is kept.
    """
    mine = set(ids)
    return [
        {"id": run["id"], "all": run.get("records", "requests") == "requests"}
        for run in runs
        if run["id"] in mine
    ]


def lacking(hosts):
    """What hosts lack for runs on devices, as a phrase; empty if nothing.

    Args:
        hosts: what `weir_host` said, by host.
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


def device_files(modelled, disks, state, mounts=None, options=None):
    """What is written down for the binary: a specification for each modelled device, and `testbed.json`.

    Args:
        modelled: the modelled devices.
        disks: the disks of the inventory, by the name of the device that they stand for.
        state: the state folder on the host.
        mounts: where file systems are mounted that are there before a run, by name.
        options: what roles have set of file systems, by name of these and of the option.

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
    return files | {f"{state}/testbed.json": json.dumps(testbed, indent=2) + "\n"}


def testbeds(hosts):
    """What the inventory lists for hosts, once for all hosts of which it says the same.

    Args:
        hosts: variables by host.

    Returns:
        `hosts`, and the text of their `testbed`, as far as it is known before devices are modelled.
    """
    made = {}
    for name, variables in hosts.items():
        paths = {"devices": _listed(variables["weir_devices"], _path), "mounts": variables["weir_mounts"]}
        made.setdefault(json.dumps(paths), []).append(name)
    return [{"hosts": names, "testbed": text} for text, names in made.items()]


def media(asked):
    """What each class is carried out on, for people.

    Args:
        asked: results of a loop of `weir plan --devices --json` over what `testbeds` returned.

    Returns:
        A line for each; all hosts are named where not all say the same.
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
    """The devices that the servers of a cluster have their data on, the first server's first.

    Args:
        served: what `weir serve --status --json` says.
        cluster: its name; its devices are `NAME-0`, `NAME-1` and so on.
        disks: the disks of the inventory, by the name of the device that they stand for.
        folders: folders that are to be used instead; then there are none.
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
    """What Ansible asks a filter plugin for."""

    def filters(self):
        """The filters by name."""
        return {
            "weir_studies": studies,
            "weir_runs_of_host": runs_of_host,
            "weir_simulated_runs": simulated_runs,
            "weir_joint_runs": joint_runs,
            "weir_company": company,
            "weir_after_joint_run": after_joint_run,
            "weir_lacking": lacking,
            "weir_device_files": device_files,
            "weir_testbeds": testbeds,
            "weir_media": media,
            "weir_with_media": with_media,
            "weir_bricks": bricks,
        }
