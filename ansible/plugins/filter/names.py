"""Filter on the variables of an inventory: problems of devices, mounts and servers."""

import difflib
import re
from pathlib import Path

import yaml

#: The folder of playbooks, roles and group_vars.
ANSIBLE = Path(__file__).resolve().parent.parent.parent
#: Fields of a disk in `weir_devices`, and whether one must be there.
DISK = {"path": True, "overwrite": False}
#: Fields that say where a kernel comes from in `weir_kernels`, each with the fields that may go with it.
SOURCES = {"package": ("release",), "deb": (), "image": ("modules", "initrd")}
#: Values of `weir_kernel_boot`.
BOOTS = ("", "qemu", "grub", "kexec")
#: The rule of `kernel` in studies (crates/specs/src/name.rs).
KERNEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,39}")
#: A package or a release of Debian, and a path, as they stand on a command line.
PACKAGE, PATH = re.compile(r"[a-z0-9][a-z0-9.+-]{1,127}"), re.compile(r"/[A-Za-z0-9/._+@:=~-]{0,4095}")
OLD_PERMISSION = (
    "overwrite_signature does not name the disk that may be lost: use `overwrite: SERIAL`, or the disk's "
    "name below /dev/disk/by-id (`weir device show PATH` prints both)"
)


def inventory_problems(hosts, plan, file_systems, groups):
    """All problems of the inventory's variables for the hosts of a study.

    Args:
        hosts: variables by host.
        plan: the plan of the study.
        file_systems: output of `weir list filesystems --json`.
        groups: the inventory's hosts by group.

    Returns:
        A line for each problem: host, variable, field, what was found, what was expected.
    """
    servers = set(groups.get("weir_servers", [])) - set(groups.get("weir_clients", []))
    on_devices = any(run["testbed"] == "device" for run in plan["runs"])
    lines = {}
    for host, variables in hosts.items():
        found = variable_problems(variables, file_systems, groups.get("all", []))
        # Servers that are only observed, and studies in virtual time, need no devices.
        if not found and on_devices and host not in servers:
            found = device_name_problems(variables, plan, file_systems)
        for line in found:
            # One line for all hosts with the same problem.
            lines.setdefault(line, []).append(host)
    return [f"{', '.join(named)}: {line}" for line, named in lines.items()]


def variable_problems(variables, file_systems, hosts):
    """Problems of one host's variables on their own."""
    kinds = [entry["name"] for entry in file_systems]
    return [
        *device_problems(variables.get("weir_devices")),
        *kind_problem("weir_devices_unused", variables.get("weir_devices_unused"), list),
        *mount_problems(variables.get("weir_mounts"), kinds),
        *server_problems(variables.get("weir_filesystem_servers"), kinds, hosts),
        *observed_problems(variables.get("weir_observed")),
        *kernel_device_problems(variables.get("weir_kernel_devices")),
        *kernel_problems(variables.get("weir_kernels"), variables.get("weir_kernel_boot")),
    ]


def device_problems(devices):
    """Problems of `weir_devices`."""
    if wrong := kind_problem("weir_devices", devices, dict):
        return wrong
    found = []
    for name, entry in devices.items():
        where = f"weir_devices: {name}"
        if wrong := kind_problem(where, entry, dict):
            found += wrong
        elif "members" in entry:
            found += field_problems(where, entry, {"members": True})
            if wrong := kind_problem(f"{where}: members", entry["members"], list):
                found += wrong
                continue
            for number, member in enumerate(entry["members"]):
                found += disk_problems(f"{where}: members[{number}]", member)
        else:
            found += disk_problems(where, entry, ["members"])
    return found


def disk_problems(where, entry, others=()):
    """Problems of one disk; `others` are fields that can replace its own."""
    if wrong := kind_problem(where, entry, dict):
        return wrong
    known = {name: value for name, value in entry.items() if name != "overwrite_signature"}
    found = field_problems(where, known, DISK, others)
    if entry.get("overwrite_signature"):
        found.append(f"{where}: {OLD_PERMISSION}")
    if "path" in entry and not _is_path(entry["path"]):
        found.append(f"{where}: path is {entry['path']!r}, expected a path below /dev/disk/by-id")
    if "overwrite" in entry and not (isinstance(entry["overwrite"], str) and entry["overwrite"].strip()):
        found.append(
            f"{where}: overwrite is {entry['overwrite']!r}, expected the disk's serial or its name below "
            "/dev/disk/by-id, in quotes"
        )
    return found


def device_name_problems(variables, plan, file_systems):
    """Names in `weir_devices` that are no device of the study: the study would measure a model instead."""
    devices, unused = variables["weir_devices"], variables["weir_devices_unused"]
    known = sorted({device["name"] for device in plan["devices"]})
    # Devices for servers of file systems: of targets, and of clusters.
    targets = [target for target in variables.get("fs_lustre_targets") or [] if isinstance(target, dict)]
    served = [target.get("device") for target in targets]
    served += [(entry.get("network") or {}).get("cluster") for entry in file_systems]
    found = [
        f"weir_devices: `{name}` is no device of study {plan['study']}{meant(name, known)} (its devices: "
        f"{', '.join(known) or 'none'}). If it is for another study, set weir_devices_unused: [{name}]"
        for name in devices
        if name not in [*known, *unused, *served]
    ]
    return found + [
        f"weir_devices_unused: `{name}` is not in weir_devices{meant(name, devices)}"
        for name in unused
        if name not in devices
    ]


def mount_problems(mounts, kinds):
    """Problems of `weir_mounts`."""
    if wrong := kind_problem("weir_mounts", mounts, dict):
        return wrong
    found = [
        f"weir_mounts: `{name}` is no file system of studies{meant(name, kinds)} (known: {', '.join(kinds)})"
        for name in mounts
        if name not in kinds
    ]
    return found + [
        f"weir_mounts: {name} is {point!r}, expected its mount point, an absolute path"
        for name, point in mounts.items()
        if not _is_path(point)
    ]


def server_problems(servers, kinds, hosts):
    """Problems of `weir_filesystem_servers`."""
    if wrong := kind_problem("weir_filesystem_servers", servers, dict):
        return wrong
    found = []
    for name, named in servers.items():
        where = f"weir_filesystem_servers: {name}"
        if name not in kinds:
            found.append(
                f"weir_filesystem_servers: `{name}` is no file system of studies{meant(name, kinds)}"
            )
        elif wrong := kind_problem(where, named, list):
            found += wrong
        else:
            found += [
                f"{where}: `{host}` is no host of the inventory{meant(host, hosts)}"
                for host in named
                if host not in hosts
            ]
    return found


def observed_problems(observed):
    """Problems of `weir_observed`."""
    return kind_problem("weir_observed", observed, list) or [
        f"weir_observed: {path!r}, expected a disk's path below /dev"
        for path in observed
        if not (_is_path(path) and path.startswith("/dev/"))
    ]


def kernel_device_problems(devices):
    """Problems of `weir_kernel_devices`, checked against the options of the role block_devices."""
    if wrong := kind_problem("weir_kernel_devices", devices, list):
        return wrong
    text = (ANSIBLE / "roles/block_devices/meta/argument_specs.yml").read_text(encoding="utf-8")
    fields = yaml.safe_load(text)["argument_specs"]["main"]["options"]["block_devices_wanted"]["options"]
    found = []
    for number, entry in enumerate(devices):
        where = f"weir_kernel_devices[{number}]"
        if wrong := kind_problem(where, entry, dict):
            found += wrong
            continue
        found += field_problems(
            where, entry, {name: of.get("required", False) for name, of in fields.items()}
        )
        for name, value in entry.items():
            of = fields.get(name, {})
            if "choices" in of and value not in of["choices"]:
                found.append(f"{where}: {name} is {value!r}, expected {' or '.join(of['choices'])}")
            elif of.get("type") == "int" and not str(value).isdigit():
                found.append(f"{where}: {name} is {value!r}, expected a whole number")
    return found


def kernel_problems(kernels, boot):
    """Problems of `weir_kernels` and `weir_kernel_boot`."""
    if wrong := kind_problem("weir_kernels", kernels, dict):
        return wrong
    found = []
    boot = boot or ""
    if boot not in BOOTS:
        known = ", ".join(filter(None, BOOTS))
        found.append(f"weir_kernel_boot is {boot!r}{meant(boot, BOOTS)}, expected {known}, or empty")
    for name, entry in kernels.items():
        where = f"weir_kernels: {name}"
        if not isinstance(name, str):
            kind = "a number" if type(name) in (int, float) else "no text"
            found.append(f"{where}: is {kind}: write it in quotes")
        elif not KERNEL.fullmatch(name):
            found.append(f"{where}: a name has 1 to 40 letters, digits, -, _, . and +, no -, . or + first")
        elif wrong := kind_problem(where, entry, dict):
            found += wrong
        else:
            found += kernel_entry_problems(where, entry, boot)
    return found


def kernel_entry_problems(where, entry, boot):
    """Problems of one entry of `weir_kernels`."""
    sources = [source for source in SOURCES if source in entry]
    if len(sources) != 1:
        return [f"{where}: has {' and '.join(sources) or 'no source'}, expected one of {', '.join(SOURCES)}"]
    (source,) = sources
    fields = {source: True, **dict.fromkeys(SOURCES[source], False)}
    found = field_problems(where, entry, fields)
    if source != "image" and boot not in ("qemu", ""):
        found.append(
            f"{where}: has {source}, but weir installs no kernel on a host that it boots by {boot}: "
            "install it, and give image and initrd as they are below /boot of the host"
        )
    for field, value in entry.items():
        if field not in fields:
            continue
        if field in ("package", "release"):
            if not PACKAGE.fullmatch(str(value)):
                found.append(f"{where}: {field} is {value!r}, expected a name such as linux-image-amd64")
        elif not _is_path(value) or not PATH.fullmatch(value):
            found.append(
                f"{where}: {field} is {value!r}, expected an absolute path without blanks and quotes"
            )
    return found


def field_problems(where, entry, fields, others=()):
    """Unknown and missing fields of an entry. `others` can replace the fields."""
    known = [*fields, *others]
    unknown = [name for name in entry if name not in known]
    found = [
        f"{where}: unknown field `{name}`{meant(name, known)} (known: {', '.join(known)})" for name in unknown
    ]
    lacking = [name for name, needed in fields.items() if needed and name not in entry]
    # A misspelt field is reported once, as unknown.
    return found + [f"{where}: has no {' or '.join([name, *others])}" for name in lacking if not unknown]


def kind_problem(where, value, kind):
    """One line if a value is of another type, else none."""
    if isinstance(value, kind):
        return []
    return [f"{where} is {value!r}, expected {'a mapping' if kind is dict else 'a list'}"]


def meant(name, known):
    """The nearest of the known names as a question; empty if none is near."""
    near = difflib.get_close_matches(str(name), sorted(map(str, known)), 1, 0.6)
    return f", did you mean `{near[0]}`?" if near else ""


def _is_path(value):
    return isinstance(value, str) and value.startswith("/")


class FilterModule:
    """Filters of this plugin, for Ansible."""

    def filters(self):
        """The filters by name."""
        return {
            "weir_inventory_problems": inventory_problems,
            "weir_kernel_problems": kernel_problems,
        }
