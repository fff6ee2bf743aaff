"""Module `weir_daemon`: a server process on hosts without a service manager."""

import json
import os
import signal
import socket
import time
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: weir_daemon
author: The weir developers
short_description: Start a server without a service manager
description:
  - Starts a program in its own session and records its pid and start time. Its output goes to a file. Hosts
    that are network namespaces have no systemd.
  - Stops only the recorded process, identified by pid and start time.
options:
  argv:
    description: The program and its arguments. It must stay in the foreground. Required to start it.
    type: list
    elements: str
    default: []
  note:
    description: File that records the process.
    type: path
    required: true
  log:
    description: Log file of its output.
    type: path
    default: /dev/null
  address:
    description: Address at which it must answer, if O(port) is set.
    type: str
    default: 127.0.0.1
  port:
    description: TCP port at which it must answer before the task ends. 0 is none.
    type: int
    default: 0
  patience_s:
    description: Maximum time to answer, and to end.
    type: int
    default: 60
  state:
    description: Whether the server runs. C(restarted) stops a running server first.
    type: str
    choices: [started, restarted, stopped]
    default: started
"""

RETURN = """
pid: {description: "Pid of the running server.", type: int, returned: when it runs}
"""

#: Interval between checks while waiting, in seconds.
LOOK_EVERY_S = 0.05
#: A daemon without a port counts as ready after this run time, in seconds.
SETTLED_AFTER_S = 0.3
#: Length of the log's end in the message about a daemon that ended.
TAIL_CHARACTERS = 2000


def main():
    """Starts, keeps or ends the server."""
    module = AnsibleModule(
        argument_spec={
            "argv": {"type": "list", "elements": "str", "default": []},
            "note": {"type": "path", "required": True},
            "log": {"type": "path", "default": "/dev/null"},
            "address": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "default": 0},
            "patience_s": {"type": "int", "default": 60},
            "state": {"choices": ["started", "restarted", "stopped"], "default": "started"},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    note = Path(wanted["note"])
    pid = living(note)
    end = pid and wanted["state"] != "started"
    start = wanted["state"] == "restarted" or (wanted["state"] == "started" and not pid)
    # A server must not keep the folder that this module happens to be in.
    os.chdir("/")
    if not module.check_mode:
        try:
            if end:
                stop(pid, note, wanted["patience_s"])
            if wanted["state"] == "stopped":
                note.unlink(missing_ok=True)
            if start:
                pid = begin(wanted, note)
        except (OSError, RuntimeError) as error:
            module.fail_json(msg=f"{note.stem}: {error}")
    running = {} if wanted["state"] == "stopped" or not pid else {"pid": pid}
    module.exit_json(changed=bool(end or start), **running)


def begin(wanted, note):
    """Starts it, waits until it answers, returns its pid."""
    if not wanted["argv"]:
        raise RuntimeError("argv says which program to start")
    # The answer of another server must not count as this one's.
    if wanted["port"] and answers(wanted["address"], wanted["port"]):
        raise RuntimeError(f"another server answers at {wanted['address']}:{wanted['port']} already")
    note.parent.mkdir(parents=True, exist_ok=True)
    # Not as a child of this module, which it outlives, but as the first of a session.
    where = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawnp(
        wanted["argv"][0],
        wanted["argv"],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, wanted["log"], where, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        # Python ignores it, and programs are not used to that.
        setsigdef=[signal.SIGPIPE],
    )
    note.write_text(json.dumps({"pid": pid, "started_ticks": started_ticks(pid)}))
    deadline = time.monotonic() + wanted["patience_s"]
    if not wanted["port"]:
        time.sleep(SETTLED_AFTER_S)
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            note.unlink()
            said = Path(wanted["log"]).read_text(errors="replace")[-TAIL_CHARACTERS:].strip()
            code = os.waitstatus_to_exitcode(status)
            raise RuntimeError(f"{wanted['argv'][0]} ended with code {code}: {said}")
        if answers(wanted["address"], wanted["port"]):
            return pid
        if time.monotonic() > deadline:
            stop(pid, note, wanted["patience_s"])
            place = f"{wanted['address']}:{wanted['port']}"
            raise RuntimeError(
                f"did not answer at {place} within {wanted['patience_s']} s; see {wanted['log']}"
            )
        time.sleep(LOOK_EVERY_S)


def answers(address, port):
    """Whether somebody accepts connections there; true if there is no port to ask."""
    if not port:
        return True
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def stop(pid, note, patience_s):
    """Stops the process group: SIGTERM, then SIGKILL after the time limit."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            # Its session is its own, and so is its process group.
            os.killpg(pid, number)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + patience_s
        while started_ticks(pid) is not None and time.monotonic() < deadline:
            reap(pid)
            time.sleep(LOOK_EVERY_S)
        if started_ticks(pid) is None:
            break
    else:
        raise RuntimeError(f"process {pid} does not end")
    note.unlink(missing_ok=True)


def reap(pid):
    """Reaps a child that has ended."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def living(note):
    """The pid of the noted process if it lives, else 0."""
    try:
        noted = json.loads(note.read_text())
    except (OSError, ValueError):
        return 0
    ticks = started_ticks(noted["pid"])
    return noted["pid"] if ticks is not None and ticks == noted["started_ticks"] else 0


def started_ticks(pid):
    """Start time of a process in clock ticks since boot; None if there is none, or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Fields 3 and 22 of proc(5); the name in field 2 may hold blanks, but ends with the last parenthesis.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


if __name__ == "__main__":
    main()
