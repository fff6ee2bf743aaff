#!/usr/bin/env python3
"""Times weir's reader against pandas' (and libCacheSim's, if installed) on the same file of a million lines.

python crates/trace/benches/peers.py path/to/count_requests

The file is like those of Microsoft Research Cambridge. Every reader sums up the sizes, so that all have to
parse them. They take turns, and ratios are of one turn; medians count. libCacheSim's reader parses three of
the seven columns, and is read through its Python package, request by request.
"""

import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

try:
    import libcachesim
except ImportError:
    libcachesim = None

LINES = 1_000_000
TURNS = 9
COLUMNS = ["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"]


def write(path):
    """Writes the file; returns the sum of its sizes."""
    rng = random.Random(1)
    ticks, total = 128166372003061629, 0
    with path.open("w") as file:
        for _ in range(LINES):
            ticks += rng.randrange(1, 100_000)
            size = 512 * rng.randrange(1, 257)
            total += size
            op = "Read" if rng.random() < 0.7 else "Write"
            offset, response = 512 * rng.randrange(1 << 31), rng.randrange(100, 1_000_000)
            file.write(f"{ticks},srv,{rng.randrange(4)},{op},{offset},{size},{response}\n")
    return total


def weir(binary, path):
    """Seconds, and the sum of sizes."""
    done = subprocess.run([binary, path, "msr"], check=True, capture_output=True, text=True)
    _, total, elapsed_ns = done.stdout.split()
    return int(elapsed_ns) / 1e9, int(total)


def pandas(path):
    """As weir()."""
    start = time.perf_counter()
    total = int(pd.read_csv(path, header=None, names=COLUMNS)["Size"].sum())
    return time.perf_counter() - start, total


def lcs(path):
    """As weir()."""
    params = libcachesim.ReaderInitParam(has_header=False, has_header_set=True, delimiter=",")
    params.time_field, params.obj_id_field, params.obj_size_field = 1, 5, 6
    start = time.perf_counter()
    reader = libcachesim.TraceReader(str(path), libcachesim.TraceType.CSV_TRACE, params)
    total = sum(request.obj_size for request in reader)
    return time.perf_counter() - start, total


def main():
    """Writes the file, lets all read it, and prints their speeds."""
    binary = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "msr.csv"
        expected = write(path)
        readers = {"weir": lambda: weir(binary, path), "pandas.read_csv": lambda: pandas(path)}
        if libcachesim is None:
            print("libcachesim is not installed (pip install libcachesim): not compared")
        else:
            readers["libcachesim.TraceReader"] = lambda: lcs(path)
        seconds = {name: [] for name in readers}
        for turn in range(TURNS):
            for name in list(readers)[:: 1 if turn % 2 else -1]:
                taken_s, total = readers[name]()
                assert total == expected, f"{name} reads other sizes than were written"
                seconds[name].append(taken_s)
    for name, taken_s in seconds.items():
        middle_s = statistics.median(taken_s)
        ratios = sorted(one / ours for one, ours in zip(taken_s, seconds["weir"], strict=True))
        print(
            f"{name:24} {middle_s:7.3f} s  {LINES / middle_s / 1e6:6.2f} million lines/s  "
            f"{statistics.median(ratios):5.2f} x weir's time ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
