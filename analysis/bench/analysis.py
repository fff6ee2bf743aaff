"""Time and memory of the analysis, from 10^5 requests in one run on, and of studies of many runs.

    python analysis/bench/analysis.py [--rows 1e7] [--runs 1000] [--folder DIR]

Writes a study of one run for every power of ten up to ROWS (`synthetic_study.py`). `python
-m weir metrics`, `summary` and `report` of each are timed, and beside them DuckDB's quantiles of the same
file: five of each class and nothing else. Then a study of RUNS runs with 5,000 requests each. The tables are
deleted at the end; 10^8 requests take 1.8 GB.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".weir"
SMALLEST = 10**5
RUN_ROWS = 5000
DUCKDB = """\
import duckdb, sys
duckdb.connect().sql(f'''select class,
    quantile_disc((completed_ns - intended_ns) / 1e6, [.5, .9, .95, .99, .999])
    from read_parquet('{sys.argv[1]}') where not warmup group by class''').fetchall()
"""


@dataclass(frozen=True)
class Used:
    """Time, CPU time and peak resident memory of a command."""

    s: float
    cpu_s: float
    mb: float

    def __str__(self) -> str:
        return f"{self.s:8.1f}{self.cpu_s:8.1f}{self.mb:8.0f}"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e7, help="requests of the largest run (default: 1e7)")
    parser.add_argument("--runs", type=int, default=1000, help="runs of the study of many (default: 1000)")
    parser.add_argument("--folder", help="where temporary tables are written (default: .weir)")
    options = parser.parse_args()
    if not options.rows >= SMALLEST:
        parser.error(f"--rows: found {options.rows:g}, expected at least {SMALLEST:,}")
    if options.runs < 1:
        parser.error(f"--runs: found {options.runs}, expected at least 1")
    print(f"{os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f}\n")
    print("One run. ns/request: CPU time of metrics without the start of Python.\n")
    print(f"{'':>11}{'metrics':^35}{'summary':^8}{'report':^24}{'all':^24}{'DuckDB':^24}")
    columns = ("requests", "ns/request", *("s", "CPU s", "MB"), "s", *("s", "CPU s", "MB") * 3)
    print("".join(f"{name:>{11 if at < 2 else 8}}" for at, name in enumerate(columns)), flush=True)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder or FOLDER) as folder:
        rows = SMALLEST
        while rows <= options.rows:
            study = written(Path(folder) / "bench-analysis", rows, 1)
            table = next(study.glob("*/requests.parquet"))
            report_line(f"{rows:11,}", study, rows, [sys.executable, "-c", DUCKDB, str(table)])
            shutil.rmtree(study)
            rows *= 10
        print(f"\n{options.runs:,} runs of {RUN_ROWS:,} requests.\n", flush=True)
        study = written(Path(folder) / "bench-runs", RUN_ROWS, options.runs)
        tables = str(study / "*" / "requests.parquet")
        rows = RUN_ROWS * options.runs
        report_line(f"{rows:11,}", study, rows, [sys.executable, "-c", DUCKDB, tables])
    print(f"\nload average {os.getloadavg()[0]:.1f}")


def written(folder: Path, rows: int, runs: int) -> Path:
    """Writes a study in a process of its own: peak memory of a command counts that of its parent."""
    writer = Path(__file__).with_name("synthetic_study.py")
    measured([sys.executable, str(writer), str(folder), str(rows), str(runs)])
    return folder


def report_line(begin: str, study: Path, rows: int, duckdb: list[str]) -> None:
    """Times the commands on a study and prints one line."""
    idle = measured([sys.executable, "-c", "import weir.cli, weir.derive, weir.load"])
    metrics, summary, report = (
        measured([sys.executable, "-m", "weir", name, str(study)])
        for name in ("metrics", "summary", "report")
    )
    parts = (metrics, summary, report)
    every = Used(sum(p.s for p in parts), sum(p.cpu_s for p in parts), max(p.mb for p in parts))
    each = (metrics.cpu_s - idle.cpu_s) / rows * 1e9
    found = f"{each:11.0f}{metrics}{summary.s:8.1f}{report}{every}{measured(duckdb)}"
    print(begin + found, flush=True)


def measured(command: list[str]) -> Used:
    """What a command used."""
    start = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT / "analysis")}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}")
    cpu_s = used.ru_utime + used.ru_stime
    return Used(time.perf_counter() - start, cpu_s, used.ru_maxrss * 1024 / 1e6)


if __name__ == "__main__":
    main()
