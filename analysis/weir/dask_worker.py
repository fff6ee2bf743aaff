"""The part of `weir simulate --dask` that a worker executes: a group of runs, returned as a tar archive."""

import functools
import hashlib
import io
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from weir import locate
from weir.errors import InputError


@dataclass(frozen=True)
class Group:
    """Runs that were simulated.

    Attributes:
        archive: a tar file of the folders of the runs.
        elapsed_s: time of the task on the worker, in s.
    """

    archive: bytes
    elapsed_s: float


def identity(binary: Path) -> str:
    """SHA-256 of a binary, computed again when its size or modification time changes."""
    state = binary.stat()
    return _digest(binary, state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=4)
def _digest(binary: Path, size_bytes: int, modified_ns: int) -> str:
    with binary.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def simulate_group(plan: bytes, expected: str) -> Group:
    """Simulates the runs of a plan with the `weir` of this worker.

    Args:
        plan: text of a plan that has only these runs.
        expected: SHA-256 of the submitter's binary.

    Raises:
        InputError: the worker has no binary or another one, or `weir simulate` refuses the plan.
        OSError: the worker's disk is full, for example: another attempt may succeed.
    """
    began = time.monotonic()
    binary = locate.binary()
    if (found := identity(binary)) != expected:
        raise InputError(
            binary,
            f"is another build of weir than the submitter's (host {socket.gethostname()}: SHA-256 "
            f"{found[:12]}, expected {expected[:12]})",
            "copy the submitter's binary to every worker",
        )
    with tempfile.TemporaryDirectory(prefix="weir-", dir=_scratch()) as folder:
        file = Path(folder) / "plan.json"
        file.write_bytes(plan)
        out = Path(folder) / "results"
        # A worker that is killed takes its simulation with it.
        tied = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        done = subprocess.run(
            [*tied, binary, "simulate", file, "--out", out, "--jobs", "1", "--no-sync"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        reason = (done.stderr.strip().splitlines() or ["no reason"])[-1].removeprefix("error: ")
        if done.returncode == 2:
            raise InputError(
                binary, f"refuses runs on host {socket.gethostname()}: {reason}", "mend what it names"
            )
        # Exit code 3: a run is invalid.
        if done.returncode not in (0, 3):
            raise OSError(
                f"weir simulate on host {socket.gethostname()} ended with {done.returncode}: {reason}"
            )
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for run in sorted(out.glob("*/[!.]*/")):
                for path in sorted(run.rglob("*")):
                    if path.is_file():
                        member = tarfile.TarInfo(str(path.relative_to(run.parent)))
                        member.size = path.stat().st_size
                        with path.open("rb") as content:
                            tar.addfile(member, content)
    return Group(archive.getvalue(), time.monotonic() - began)


def _scratch() -> str | None:
    """The worker's own folder, which Dask removes, also after a worker was killed; None outside a worker."""
    from distributed import get_worker

    try:
        return get_worker().local_directory
    except ValueError:
        return None
