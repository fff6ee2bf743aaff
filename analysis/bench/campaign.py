"""Overhead of `weir simulate --dask` for each run, in interleaved pairs with `weir simulate --jobs`.

    python analysis/bench/campaign.py [--runs 2000] [--pairs 5] [--workers 2] [--out /dev/shm]

Both sides simulate the same study of short runs: almost all of the time is cost of a run, not of
simulation. Neither waits for a disk: results are on tmpfs. CPU time is that of all processes: submitter,
`weir gather`, Dask's scheduler, its workers and their `weir simulate`. Dask is running before the first pair.
Results are deleted.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from weir import locate

ROOT = Path(__file__).resolve().parents[2]
#: The target, in ms for each run.
TARGET_MS = 5.0
CELLS = 4
STUDY = """\
name: short
question: What does one short run cost?
testbed: simulator
seed: 1
repetitions: {repetitions}
warmup_s: 0.05
duration_s: 0.15
records: summary
storage: {{profile: hdd-7200, heads: 2, size_mib: 1024, placement: spread}}
classes:
  text: {{workload: poisson-text, clients: 60}}
factors:
  architecture: [partitioned, integrated]
  scheduler: [look, fcfs]
"""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000, help="runs of the study (default: 2000)")
    parser.add_argument("--pairs", type=int, default=5, help="interleaved pairs (default: 5)")
    parser.add_argument("--workers", type=int, default=2, help="workers and threads (default: 2)")
    parser.add_argument("--out", default="/dev/shm", help="a folder on tmpfs (default: /dev/shm)")
    options = parser.parse_args()
    for name, least in (("runs", CELLS), ("pairs", 1), ("workers", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name}: found {getattr(options, name)}, expected at least {least}")
    # Processes of Dask and results are removed after SIGTERM too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    repetitions = options.runs // CELLS
    runs = repetitions * CELLS
    print(f"{os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f}; {runs} runs\n")
    print("            elapsed, ms/run       CPU time, ms/run")
    print("pair   --jobs   Dask   more   --jobs   Dask   more", flush=True)
    found: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(prefix="weir-bench-campaign-", dir=options.out) as name:
        folder = Path(name)
        study = folder / "short.yml"
        study.write_text(STUDY.format(repetitions=repetitions), encoding="utf-8")
        with Cluster(folder, options.workers) as cluster:
            for pair in range(options.pairs):
                sides = {
                    "jobs": ["--jobs", str(options.workers), "--no-sync"],
                    "dask": ["--dask", cluster.address],
                }
                # The first of a pair changes, in case one side leaves something to the other.
                order = sorted(sides, reverse=pair % 2 == 0)
                used = {
                    side: measured(cluster, study, folder / "results", sides[side], runs) for side in order
                }
                (one_s, one_cpu_s), (dask_s, dask_cpu_s) = used["jobs"], used["dask"]
                each = [second / runs * 1000 for second in (one_s, dask_s, one_cpu_s, dask_cpu_s)]
                found.append((each[1] - each[0], each[3] - each[2]))
                row = (each[0], each[1], found[-1][0], each[2], each[3], found[-1][1])
                print(
                    f"{pair + 1:4}"
                    + "".join(f"{value:{w}.2f}" for value, w in zip(row, (9, 7, 7) * 2, strict=True)),
                    flush=True,
                )
            parts = cluster.cpu_s()
    print()
    for at, what in enumerate(("elapsed", "CPU time")):
        values = sorted(one[at] for one in found)
        median = statistics.median(values)
        print(
            f"Dask adds {median:.2f} ms {what} a run, median of {len(values)} pairs "
            f"({values[0]:.2f} to {values[-1]:.2f}); target at most {TARGET_MS:g}: "
            + ("attained" if median <= TARGET_MS else "MISSED")
        )
    print(
        f"CPU time of Dask's processes in all pairs, start included: scheduler {parts[0]:.1f} s, "
        f"workers {parts[1]:.1f} s"
    )
    print(f"load average {os.getloadavg()[0]:.1f}")


class Cluster:
    """Processes of Dask: a scheduler and workers of one thread on loopback."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder, self._count = folder, workers
        self._processes: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def __enter__(self) -> "Cluster":
        file = self._folder / "scheduler.json"
        self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)
        )
        for _ in range(self._count):
            options = (
                "--no-nanny",
                "--nthreads",
                "1",
                "--no-dashboard",
                "--local-directory",
                str(self._folder),
            )
            self._start("worker", "--scheduler-file", str(file), *options)
        try:
            from distributed import Client

            with Client(scheduler_file=str(file), timeout=60, set_as_default=False) as client:
                client.wait_for_workers(self._count, timeout=60)
                self.address = client.scheduler.address
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self, role: str, *options: str) -> None:
        with (self._folder / "dask.log").open("ab") as log:
            command = [sys.executable, "-m", f"distributed.cli.dask_{role}", *options]
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment()))

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def cpu_s(self) -> tuple[float, float]:
        """CPU time of the scheduler, and of the workers with their children that have ended."""
        scheduler, *workers = map(cpu_of, self._processes)
        return scheduler, sum(workers)


def cpu_of(process: "subprocess.Popen[bytes]") -> float:
    """User and system time of a process and of its children that have ended, in s."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS_PER_S


def environment() -> dict[str, str]:
    """That of all commands: this checkout's package and one binary for both sides."""
    return os.environ | {
        "PYTHONPATH": str(ROOT / "analysis"),
        "WEIR_BINARY": str(locate.binary()),
        "WEIR_PYTHON": sys.executable,
    }


def measured(cluster: Cluster, study: Path, out: Path, options: list[str], runs: int) -> tuple[float, float]:
    """Elapsed and CPU time of a study, in s. Deletes its results."""
    before = sum(cluster.cpu_s())
    command = [str(locate.binary()), "simulate", str(study), "--out", str(out), *options]
    began_s = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
    assert process.stdout
    said = process.stdout.read().decode()
    # Includes `weir gather` and all other children: the submitter waits for them.
    _, status, used = os.wait4(process.pid, 0)
    elapsed_s = time.perf_counter() - began_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or f" {runs} runs" not in said:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}\n{said}")
    shutil.rmtree(out)
    return elapsed_s, used.ru_utime + used.ru_stime + sum(cluster.cpu_s()) - before


if __name__ == "__main__":
    main()
