"""Every setting of this host that weir could leave changed, as a table; only reads.

    python tests/host_snapshot.py take before.json --state /run/weir
    python tests/host_snapshot.py compare before.json after.json

A snapshot maps a name, such as `sys/block/loop0/queue/scheduler`, to what is there. Counters and
whatever changes by itself are left out. Tracing and the kernel's list of FUSE connections are read in a mount
namespace of this program's own, so that nothing has to be mounted for them.
"""

import argparse
import contextlib
import glob
import json
import os
import re
import subprocess
import sys
from pathlib import Path

#: What the host says of itself, not what it was told: counters, and what a read changes.
NOT_SETTINGS = (
    "fs/aio-nr",
    "fs/binfmt_misc/",
    "fs/dentry-state",
    "fs/file-nr",
    "fs/inode-nr",
    "fs/inode-state",
    "fs/quota/",
    "kernel/cap_last_cap",
    "kernel/hung_task_detect_count",
    "kernel/keys/",
    "kernel/ns_last_pid",
    # The kernel lowers it by itself when a sample took long.
    "kernel/perf_event_max_sample_rate",
    "kernel/pty/nr",
    "kernel/random/",
    # A secret.
    "net/ipv4/tcp_fastopen_key",
    "net/ipv6/conf/all/stable_secret",
    "net/netfilter/nf_conntrack_count",
    # A read does what a write does.
    "vm/stat_refresh",
)

#: Of tracing. The others are streams, or files that do something when they are closed, as `free_buffer`.
TRACING = (
    "buffer_percent",
    "buffer_size_kb",
    "buffer_subbuf_size_kb",
    "current_tracer",
    "dynamic_events",
    "options/*",
    "saved_cmdlines_size",
    "set_event",
    "set_event_pid",
    "trace_clock",
    "trace_options",
    "tracing_cpumask",
    "tracing_on",
    "tracing_thresh",
    "uprobe_events",
    "events/*/*/enable",
    "events/*/*/filter",
)

#: Of a block device.
BLOCK = (
    "bdi/*_ratio*",
    "bdi/strict_limit",
    "loop/*",
    "mq/*/cpu_list",
    "mq/*/nr_tags",
    "queue/*",
    "queue/iosched/*",
    "ro",
    "size",
    "trace/act_mask",
    "trace/enable",
    "trace/pid",
)

#: Of a control group: what it was told.
CGROUP = (
    "blkio.bfq.weight*",
    "blkio.prio.class",
    "blkio.throttle.*_device",
    "cgroup.freeze",
    "cgroup.max.*",
    "cgroup.subtree_control",
    "cgroup.type",
    "cpu.cfs_*",
    "cpu.max*",
    "cpu.shares",
    "cpu.weight*",
    "cpuset.cpus",
    "cpuset.mems",
    "io.bfq.weight",
    "io.cost.*",
    "io.latency",
    "io.max",
    "io.prio.class",
    "io.weight",
    "memory.high",
    "memory.limit_in_bytes",
    "memory.low",
    "memory.max",
    "memory.min",
    "memory.soft_limit_in_bytes",
    "memory.swap.max",
    "memory.swappiness",
    "pids.max",
)


def text(path):
    """What a file says; None if it is not there, or has nothing to say to a read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def files(folder, patterns):
    """Names below a folder and what the files say."""
    found = {}
    for pattern in patterns:
        for name in glob.glob(f"{folder}/{pattern}"):
            if os.path.isfile(name) and (value := text(name)) is not None:
                found[name.lstrip("/")] = value
    return found


def block():
    """Queues, schedulers, tracing and backing files of all block devices."""
    found = {"sys/block": " ".join(sorted(os.listdir("/sys/block")))}
    for disk in os.listdir("/sys/block"):
        found |= files(f"/sys/block/{disk}", BLOCK)
        if disk.startswith("loop") and not os.path.isdir(f"/sys/block/{disk}/loop"):
            # The kernel says it anew of each file that is attached.
            found.pop(f"sys/block/{disk}/queue/rotational", None)
    # A node that is a link, by what it points to.
    for link in glob.glob("/dev/disk/*/*"):
        found[link.lstrip("/")] = os.readlink(link)
    return found


def sysctl():
    """All that can be read below /proc/sys, but for what is no setting."""
    found = {}
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            path = os.path.join(folder, name)
            if path.removeprefix("/proc/sys/").startswith(NOT_SETTINGS):
                continue
            if (value := text(path)) is not None:
                found[path.lstrip("/")] = value
    return found


def mounts(table):
    """Mounts by place and order, without the kernel's numbers."""
    found = {}
    for line in (text(table) or "").splitlines():
        # mountinfo, proc_pid_mountinfo(5): root, place, options, optional fields, then type, source, options.
        before, _, after = line.partition(" - ")
        _, _, _, root, place, options, *_ = before.split(" ")
        found.setdefault(place, []).append(f"{root} {options} {after}")
    return {f"{table.lstrip('/')} {place}": "; ".join(values) for place, values in found.items()}


def cgroups():
    """Trees with their controllers, all groups, and what each was told."""
    found = {}
    for line in (text("/proc/cgroups") or "").splitlines()[1:]:
        name, hierarchy, _, enabled = line.split()
        # The number itself is given anew with each mount.
        found[f"controller {name}"] = f"mounted={hierarchy != '0'} enabled={enabled}"
    for line in (text("/proc/self/mounts") or "").splitlines():
        _, place, kind, options, *_ = line.split(" ")
        if kind in ("cgroup", "cgroup2"):
            found[f"cgroup tree {place}"] = f"{kind} {options}"
            for folder, _, _ in os.walk(place):
                found[f"cgroup {folder}"] = "there"
                found |= files(glob.escape(folder), CGROUP)
    return found


def network():
    """Links, addresses, namespaces, rules."""
    found = {
        "network namespaces": " ".join(
            sorted(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else []
        )
    }
    commands = {
        "links": ["ip", "-brief", "link"],
        "addresses": ["ip", "-brief", "address"],
        "routes": ["ip", "route", "show", "table", "all"],
        "nft": ["nft", "list", "ruleset"],
    }
    for name, command in commands.items():
        with contextlib.suppress(OSError):
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
            )
            found[name] = done.stdout if done.returncode == 0 else "unavailable"
    return found


def processes(state):
    """Programs that were called with the state folder, or work in it."""
    found = {}
    mark, own = str(state), {os.getpid(), os.getppid()}
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) in own:
            continue
        words = (text(entry / "cmdline") or "").replace("\0", " ")
        place = ""
        with contextlib.suppress(OSError):
            place = os.readlink(entry / "cwd")
        if (mark in words or place.startswith(mark)) and "host_snapshot" not in words:
            found[f"process {entry.name}"] = words
    return found


#: What stays in the state folder on purpose: logs to be read, the id of the folder, its locks.
STAYS = (".log", "/id", "/.weir-lock", "/.weir-children")


def state_files(state):
    """Everything in the state folder but folders that are empty: those do nothing."""
    found = {}
    for folder, _, names in os.walk(state):
        for path in (os.path.join(folder, name) for name in names):
            if not path.endswith(STAYS):
                found[f"state {os.path.relpath(path, state)}"] = "there"
    return found


def private():
    """What is read in a mount namespace of its own; called by :func:`take` as a program of its own."""
    found = {}
    root = "/sys/kernel/tracing"
    if Path(root, "current_tracer").exists():
        found = {key: value for key, value in files(root, TRACING).items() if value != "none"}
        found["tracing instances"] = " ".join(sorted(os.listdir(f"{root}/instances")))
    for file in glob.glob("/sys/kernel/debug/block/*/hctx*/tags"):
        # Tags that the driver has: `nr_requests` does not show them while there is a scheduler.
        depth = [line for line in (text(file) or "").splitlines() if line.startswith("depth=")]
        found[file.lstrip("/")] = " ".join(depth)
    connections = "/sys/fs/fuse/connections"
    if os.path.isdir(connections):
        found["fuse connections"] = " ".join(sorted(os.listdir(connections)))
    return found


#: Mounts what is not mounted, in a namespace whose mounts do not reach the host's.
PRIVATE = """
mount --make-rprivate /
[ -e /sys/kernel/tracing/current_tracer ] || mount -t tracefs none /sys/kernel/tracing
[ -d /sys/kernel/debug/block ] || mount -t debugfs none /sys/kernel/debug 2> /dev/null || true
[ -n "$(ls -A /sys/fs/fuse/connections 2> /dev/null)" ] || mount -t fusectl none /sys/fs/fuse/connections
exec "$0" "$1" private
"""


def take(state):
    """A snapshot of this host."""
    found = block() | sysctl() | cgroups() | network() | processes(state) | state_files(state)
    found |= mounts("/proc/1/mountinfo") | mounts("/proc/self/mountinfo")
    found["modules"] = " ".join(
        sorted(line.split(" ")[0] for line in (text("/proc/modules") or "").splitlines())
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", PRIVATE, sys.executable, __file__],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise RuntimeError(f"tracing cannot be read: {done.stderr}")
    return found | json.loads(done.stdout)


def differences(before, after):
    """What differs between two snapshots, a line each.

    On a machine that others use meanwhile, WEIR_SNAPSHOT_IGNORES is a regular expression for lines that are
    theirs.
    """
    ignored = re.compile(os.environ.get("WEIR_SNAPSHOT_IGNORES") or "(?!)")
    lines = []
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was != now:
            lines.append(f"{name}: was {was!r}, is {now!r}")
    return [line for line in lines if not ignored.search(line)]


def main():
    """Runs the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser("take", help="write a snapshot")
    taking.add_argument("file", type=Path)
    taking.add_argument("--state", type=Path, default=Path("/run/weir"), help="weir's state folder")
    comparing = commands.add_parser("compare", help="list what differs; exit code 1 if anything does")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    commands.add_parser("private")
    arguments = parser.parse_args()
    if arguments.command == "private":
        json.dump(private(), sys.stdout)
    elif arguments.command == "take":
        found = take(arguments.state)
        arguments.file.write_text(json.dumps(found, indent=1))
        print(f"{len(found)} settings")
    else:
        found = differences(json.loads(arguments.before.read_text()), json.loads(arguments.after.read_text()))
        print("\n".join(found) or "equal")
        return 1 if found else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
