"""What a run can hold of imported jobs, by the rules of `weir check` for closed loops.

The numbers are those of `crates/workload/src/{limits,demand}.rs` and `crates/study/src/limits.rs`;
`analysis/tests/test_fio_jobs.py` compares the estimate with that of `weir plan`.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from weir import locate
from weir.errors import InputError
from weir.imported.fio_workload import Imported, sizes_of

#: Requests of one run.
MOST_REQUESTS = 1e9
#: Memory of one run.
MOST_MEMORY_BYTES = float(16 << 30)
#: A client, a file, and what fio keeps of a request under way besides its data.
_CLIENT_BYTES, _FILE_BYTES, _FIO_REQUEST_BYTES = 600.0, 64.0, 1024.0
#: A request of a run on devices, and all that are in memory: others are in files. Virtual time keeps none.
_ROW_BYTES, _MOST_ROWS_BYTES = 800.0, float(1 << 30)
#: What fio keeps of a request in its log until the run is over.
_FIO_LOG_BYTES = 64.0
#: Studies of one call of `weir check`.
_STUDIES_AT_ONCE = 32
#: Assumed least response time.
_LEAST_RESPONSE_S = 1e-3


@dataclass(frozen=True)
class Demand:
    """Demand of jobs that run together.

    Attributes:
        rate_per_s: requests per second, at most.
        fixed_bytes: memory that does not grow with the run.
        on_device: whether requests are kept until the run is over.
    """

    rate_per_s: float
    fixed_bytes: float
    on_device: bool

    def memory_bytes(self, duration_s: float) -> float:
        """Memory of a run, in bytes."""
        if not self.on_device:
            return self.fixed_bytes
        requests = self.rate_per_s * duration_s
        return self.fixed_bytes + requests * _FIO_LOG_BYTES + min(requests * _ROW_BYTES, _MOST_ROWS_BYTES)

    def longest_s(self) -> float:
        """The longest run with its warm-up, in seconds; 0 or less if none is possible."""
        if self.fixed_bytes > MOST_MEMORY_BYTES:
            return 0.0
        requests = MOST_REQUESTS
        if self.on_device:
            left = MOST_MEMORY_BYTES - self.fixed_bytes
            # Without and with rows in files.
            in_memory = min(left / (_FIO_LOG_BYTES + _ROW_BYTES), _MOST_ROWS_BYTES / _ROW_BYTES)
            requests = min(requests, max(in_memory, (left - _MOST_ROWS_BYTES) / _FIO_LOG_BYTES))
        return requests / self.rate_per_s


def demand(group: Iterable[Imported], *, on_device: bool) -> Demand:
    """The demand of jobs that run together."""
    rate_per_s = fixed_bytes = 0.0
    for one in group:
        closed = one.recipe["arrivals"]["closed"]
        depth = closed["depth"]
        by_answers = depth / (closed.get("think_us", 0) / 1e6 + _LEAST_RESPONSE_S)
        rate_per_s += one.clients * min(closed.get("rate_per_s", by_answers), by_answers)
        fixed_bytes += one.clients * _CLIENT_BYTES + _FILE_BYTES
        if on_device:
            largest = max(size for size, _ in sizes_of(one.recipe))
            fixed_bytes += one.clients * depth * (largest + _FIO_REQUEST_BYTES)
    return Demand(rate_per_s, fixed_bytes, on_device)


def check(job_file: Path, files: Mapping[str, str]) -> bool:
    """Lets `weir check` judge the files, in a folder of their own; False without the binary, nothing checked.

    Args:
        job_file: the job file, for the error.
        files: text of each file, by its path within a project.

    Raises:
        InputError: `weir check` refuses one, such as files larger than the modelled disk.
    """
    try:
        binary = locate.binary()
    except InputError:
        return False
    for part in _parts(files):
        try:
            found = _refused(binary, part)
        except OSError as error:
            problem = f"cannot be used to check the study ({error.strerror or error})"
            raise InputError(tempfile.gettempdir(), problem, "make room, or set TMPDIR") from error
        if found:
            raise InputError(
                job_file,
                f"makes a study that `weir check` refuses: {found}",
                "change the job file, --target-size or --profile; nothing was written",
            )
    return True


def _parts(files: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Studies, each after its workloads, in parts: `weir check` reads all workloads again for each study."""
    part: dict[str, str] = {}
    studies = 0
    for name, text in files.items():
        part[name] = text
        studies += name.startswith("studies/")
        if studies == _STUDIES_AT_ONCE:
            yield part
            part, studies = {}, 0
    if part:
        yield part


def _refused(binary: Path, files: Mapping[str, str]) -> str:
    """The first problem that `weir check` finds; empty if there is none."""
    with tempfile.TemporaryDirectory(prefix="weir-import-") as folder:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [binary, "check", *(name for name in files if name.startswith("studies/"))],
            cwd=folder,
            env=os.environ | {locate.ROOT_VARIABLE: folder},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 0:
        return ""
    return (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[0]
