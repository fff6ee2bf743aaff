"""Requests and disk accesses a second of one core in whole simulated studies, beside the bare simulator.

A study's time has everything: clients, caches, the calendar, schedulers, disk models, summaries, and writing
each run's folder. The bare simulator (`examples/bench_simulator.rs`) is one disk with one stream of requests.

Usage: studies.py [STUDY ...]
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: The largest study of each paper that has a server, and one of several schedulers.
STUDIES = ("shenoy-grid", "clockwise-rotation", "hds-sensitivity", "common")
BARE = ROOT / "target/release/examples/bench_simulator"


def simulate(study: str, out: Path) -> dict[str, float | int | str]:
    """Simulates a study; time is processor time of all threads."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [ROOT / "target/release/weir", "simulate", study, "--out", out]
    subprocess.run(command, cwd=ROOT, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wall_s, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    runs = [json.loads(path.read_text())["simulator"] for path in out.glob("*/*/observed.json")]
    requests = sum(run["answered"] for run in runs)
    accesses = sum(head["requests"] for run in runs for head in run["heads"])
    return {
        "study": study,
        "runs": len(runs),
        "requests": requests,
        "accesses": accesses,
        "wall_s": round(wall_s, 1),
        "cpu_s": round(cpu_s, 1),
        "requests_per_core_s": round(requests / cpu_s),
        "accesses_per_core_s": round(accesses / cpu_s),
    }


def main(studies: list[str]) -> None:
    """Prints one line of JSON for the bare simulator and one for each study."""
    bare = json.loads(subprocess.check_output([BARE, "seagate-elite3", "scan"], text=True))
    print(json.dumps(bare), flush=True)
    for study in studies or STUDIES:
        with tempfile.TemporaryDirectory() as folder:
            found = simulate(study, Path(folder))
        ratio = found["accesses_per_core_s"] / bare["requests_per_s"]
        print(json.dumps(found | {"accesses_of_bare": round(ratio, 3)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
