"""What the safety tests watch meanwhile: command lines, listeners, and who opens a device."""

import base64
import contextlib
import ctypes
import os
import re
import struct
import subprocess
import threading
from pathlib import Path

#: Nothing that is watched for is as short-lived as this, in seconds.
TICK_S = 0.1
#: The machine's own, which is nobody's business here.
FIRST_PIDS = {"1", "2"}
IN_CLOSE_WRITE, IN_CLOSE_NOWRITE = 0x8, 0x10


class Watch:
    """Calls a function again and again in a thread of its own, until the block that it is used in ends."""

    def __init__(self, look, every_s=TICK_S):
        self._look, self._every_s = look, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._look()

    def _go(self):
        while not self._stop.wait(self._every_s):
            self._look()


class CommandLines(Watch):
    """Every command line of every process that was seen."""

    def __init__(self):
        self.seen = set()
        super().__init__(self._read)

    def _read(self):
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and entry.name not in FIRST_PIDS:
                with contextlib.suppress(OSError):
                    self.seen.add(Path(entry.path, "cmdline").read_bytes())

    @property
    def all(self):
        """All of them as one text, arguments apart by blanks."""
        return b"\n".join(self.seen).replace(b"\0", b" ")


class Listeners(Watch):
    """Every address and port that somebody listened at (TCP), by network namespace; "" is this one."""

    def __init__(self, prefix):
        self._prefix = prefix
        self.seen = {}
        self._before = set(listeners(""))
        super().__init__(self._read, every_s=0.2)

    def _read(self):
        names = [path.name for path in Path("/run/netns").glob(f"{self._prefix}*")]
        for name in ["", *names]:
            found = set(listeners(name)) - (self._before if not name else set())
            self.seen.setdefault(name, set()).update(found)


def listeners(namespace):
    """Address and port of each TCP socket that listens in a network namespace."""
    inside = ["nsenter", f"--net=/run/netns/{namespace}"] if namespace else []
    said = subprocess.run([*inside, "ss", "-Hltn"], capture_output=True, text=True, check=False).stdout
    for line in said.splitlines():
        address, _, port = line.split()[3].rpartition(":")
        yield re.sub(r"%.*", "", address).strip("[]"), int(port)


class Opened(Watch):
    """How often a file was closed after it was open for writing, and for reading alone (inotify(7))."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK)
        mask = IN_CLOSE_WRITE | IN_CLOSE_NOWRITE
        assert self._fd >= 0 and libc.inotify_add_watch(self._fd, os.fsencode(path), mask) >= 0, path
        self.for_writing = self.for_reading = 0
        super().__init__(self._read)

    def _read(self):
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._fd, 4096):
                at = 0
                while at < len(data):
                    _, mask, _, length = struct.unpack_from("iIII", data, at)
                    self.for_writing += bool(mask & IN_CLOSE_WRITE)
                    self.for_reading += bool(mask & IN_CLOSE_NOWRITE)
                    at += 16 + length

    def __exit__(self, *_):
        super().__exit__()
        os.close(self._fd)


def forms(secret):
    """A secret as it may be found: as it is, in hexadecimal digits, in base 64, as Python shows it."""
    part = secret[:24]
    return [part, part.hex().encode(), base64.b64encode(secret)[:24], repr(secret[:16])[2:-1].encode()]


def found_in(secret, *texts):
    """The forms of a secret that are in a text."""
    return [form for form in forms(secret) if any(form in text for text in texts)]


def files_below(folder):
    """All that lies in the files of a folder."""
    return b"\n".join(path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file())
