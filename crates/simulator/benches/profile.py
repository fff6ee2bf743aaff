"""Where the processor time of a simulated study goes, by part of the program.

Linux `perf` samples `weir simulate`; `addr2line` finds the source of each sample, inlined functions too. A
sample counts to the innermost function of the workspace at its address.

Usage: profile.py [STUDY [I/N [BINARY]]]   (default: shenoy-grid 1/40 target/release/weir)
"""

import collections
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: Parts by source file: the first expression found in a path counts.
PARTS = {
    "clients": r"crates/workload/|simulate/(clients|streams)\.rs|server/source\.rs|libm|rand_chacha|smallvec",
    "buffer cache": r"crates/cache/",
    "calendar": r"server/calendar\.rs",
    "server": r"crates/simulator/src/server/",
    "device models": r"crates/simulator/",
    "schedulers": r"crates/scheduler/|collections/(btree|vec_deque|binary_heap)",
    "summaries": r"simulate/(summary|series)\.rs|hdrhistogram",
    "records": r"crates/records/|parquet|zstd",
}
OTHER = "plan, folders of runs, kernel, unknown"


def part(path: str) -> str:
    """The part that a source file belongs to."""
    return next((name for name, pattern in PARTS.items() if re.search(pattern, path)), OTHER)


def samples(data: Path, binary: Path) -> tuple[collections.Counter[int], int]:
    """Samples by address in the binary, and the number of those elsewhere."""
    command = ["perf", "script", "--input", data, "--fields", "ip,sym,dso", "--show-mmap-events"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    headers = subprocess.check_output(["readelf", "-lW", binary], text=True)
    loads = [
        tuple(int(field, 16) for field in found)
        for found in re.findall(r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)", headers)
    ]
    inside, elsewhere, mapped = collections.Counter(), 0, None
    for line in text.splitlines():
        if event := re.search(r"MMAP2? .*\[0x(\w+)\(0x\w+\) @ (\w+) .*\]: r-xp (.*)", line):
            if Path(event[3]) == binary:
                mapped = int(event[1], 16), int(event[2], 16)
        elif sample := re.fullmatch(r" *([0-9a-f]+) .*\((.*)\)", line):
            if mapped and Path(sample[2]) == binary:
                at = int(sample[1], 16) - mapped[0] + mapped[1]
                place = next(
                    at - start + address for start, address, size in loads if start <= at < start + size
                )
                inside[place] += 1
            else:
                elsewhere += 1
    return inside, elsewhere


def main(study: str = "shenoy-grid", shard: str = "1/40", binary: str = "target/release/weir") -> None:
    """Prints the share of each part, the largest first."""
    program = (ROOT / binary).resolve()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        simulate = [program, "simulate", study, "--jobs", "1", "--shard", shard, "--out", folder]
        record = ["perf", "record", "--quiet", "--freq", "4000", "--output", data, "--", *simulate]
        subprocess.run(record, cwd=ROOT, check=True, capture_output=True)
        inside, elsewhere = samples(data, program)
    places = list(inside)
    command = ["addr2line", "--exe", program, "--inlines", "--addresses"]
    asked = "\n".join(map(hex, places))
    text = subprocess.run(command, check=True, capture_output=True, text=True, input=asked).stdout
    shares = collections.Counter({OTHER: elsewhere})
    for place, frames in zip(places, re.split(r"^0x\w+\n", text, flags=re.MULTILINE)[1:], strict=True):
        lines = frames.splitlines()
        ours = next((line for line in lines if "/crates/" in line and "/registry/" not in line), lines[-1])
        shares[part(ours)] += inside[place]
    for name, count in shares.most_common():
        print(f"{count / shares.total():6.1%}  {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
