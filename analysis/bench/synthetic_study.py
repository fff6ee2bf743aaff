"""A study of synthetic requests for `analysis/bench/analysis.py`, of any number of requests and runs.

    python analysis/bench/synthetic_study.py FOLDER ROWS RUNS

Each run has ROWS requests of three classes from random numbers, in order of completion, as `weir simulate`
writes them.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from weir import manifest

#: Rows of a row group as the data plane writes them.
GROUP_ROWS = 2**16
CHUNK_ROWS = 2**20
#: Mean time between requests.
GAP_NS = 20_000
WARMUP_NS = 20_000_000
CLASSES = {"text": (4000, {"response_ms": {"quantile": 0.95, "at_most": 2}}), "video": (200, None)}
CLASSES |= {"copy": (8, None)}
SHARES = (0.7, 0.25, 0.05)
TIMES = ("intended_ns", "submitted_ns", "completed_ns", "deadline_ns", "served_ns")
NAMES = (
    "request",
    "class",
    "client",
    "device",
    "file",
    "op",
    "offset",
    "size_bytes",
    *TIMES,
    "status",
    "warmup",
)
TYPES = {"class": pa.string(), "device": pa.string(), "op": pa.string(), "client": pa.uint32()}
TYPES |= {"file": pa.uint32(), "status": pa.int32(), "warmup": pa.bool_()}
TYPES |= dict.fromkeys(TIMES, pa.int64()) | dict.fromkeys(("request", "offset", "size_bytes"), pa.uint64())


def write_study(folder: Path, rows: int, runs: int) -> Path:
    """Writes a study with as many requests in each of its runs, and returns its folder."""
    levels = [{"scheduler": name, "load": load} for load in range(1, 51) for name in ("fcfs", "sfq")]
    folder.mkdir()
    planned = []
    for number in range(runs):
        cell = levels[number % len(levels)] if runs > 1 else {"scheduler": "fcfs"}
        block = number // len(levels)
        run = {
            "format": 1, "id": f"run-{number}", "study": folder.name, "question": "How fast is the analysis?",
            "testbed": "simulator", "cell": "-".join(map(str, cell.values())), "levels": cell,
            "repetition": block, "block": block, "order": number, "seed": number,
            "warmup_s": WARMUP_NS / 1e9, "duration_s": rows * GAP_NS / 1e9, "settings": {},
            "classes": [
                {"name": name, "workload": "random", "clients": clients, "engine": "replay",
                 "priority": None, "objective": objective}
                for name, (clients, objective) in CLASSES.items()
            ],
        }  # fmt: skip
        planned.append(run)
        write_run(folder / run["id"], run, rows, seed=number % 10)
    factors = {name: sorted({run["levels"][name] for run in planned}) for name in planned[0]["levels"]}
    plan = {
        "format": 1, "study": folder.name, "question": planned[0]["question"], "description": "",
        "seed": 1, "repetitions": block + 1, "factors": factors, "devices": [], "runs": planned,
    }  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(plan))
    return folder


def write_run(folder: Path, run: dict, rows: int, seed: int) -> None:
    """Writes the files of a run with its manifest."""
    folder.mkdir()
    schema = pa.schema([(name, TYPES[name]) for name in NAMES])
    encoding = dict.fromkeys(TIMES, "DELTA_BINARY_PACKED")
    with parquet.ParquetWriter(
        folder / "requests.parquet", schema, compression="zstd", column_encoding=encoding,
        use_dictionary=[name for name in NAMES if name not in TIMES],
    ) as writer:  # fmt: skip
        for table in tables(rows, seed, schema):
            writer.write_table(table, row_group_size=GROUP_ROWS)
    rules = [{"rule": "R-LOST", "status": "valid", "reason": "", "value": 0, "limit": 0.0001}]
    documents = {"run": run, "verdict": {"status": "valid", "rules": rules}, "observed": {}}
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    files = []
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        files.append({"path": path.name, "size_bytes": path.stat().st_size, "sha256": digest})
    document = {"results_format": manifest.RESULTS_FORMAT, "weir": "0", "run": folder.name, "files": files}
    (folder / manifest.NAME).write_text(manifest.seal(json.dumps(document, indent=2)))


def tables(rows: int, seed: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """Requests in order of completion. Waits of neighbouring requests are correlated."""
    rng = np.random.default_rng(seed)
    n = min(rows, CHUNK_ROWS)
    intended = np.cumsum(rng.exponential(GAP_NS, n)).astype(np.int64)
    slow = np.exp(0.5 * np.repeat(rng.standard_normal(n // 64 + 1), 64)[:n])
    served = intended + (rng.exponential(400_000, n) * slow).astype(np.int64)
    completed = served + rng.gamma(4, 15_000, n).astype(np.int64)
    code = rng.choice(len(CLASSES), n, p=SHARES)
    order = np.argsort(completed, kind="stable")
    intended, served, completed, code = (part[order] for part in (intended, served, completed, code))
    clients = np.array([clients for clients, _ in CLASSES.values()])
    one = pa.array(np.zeros(n, np.int32))
    same = {
        "class": pa.array(CLASSES).take(pa.array(code)), "client": rng.integers(0, 2**31, n) % clients[code],
        "device": pa.array(["shared"]).take(one), "op": pa.array(["read"]).take(one), "status": one,
        "file": rng.integers(0, 64, n), "offset": rng.integers(0, 256, n) * 4096,
        "size_bytes": rng.integers(1, 17, n) * 4096,
    }  # fmt: skip
    for first in range(0, rows, n):
        asked = intended + first * GAP_NS
        times = {
            "request": np.arange(first, first + n), "intended_ns": asked, "submitted_ns": asked,
            "completed_ns": completed + first * GAP_NS, "served_ns": served + first * GAP_NS,
            "deadline_ns": pa.array(asked + 2_000_000, mask=code != 1), "warmup": asked < WARMUP_NS,
        }  # fmt: skip
        made = same | times
        columns = [pa.array(made[name]).cast(schema.field(name).type) for name in NAMES]
        yield pa.table(columns, schema=schema).slice(0, rows - first)


if __name__ == "__main__":
    write_study(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
