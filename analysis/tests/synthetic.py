"""A small study with known properties, written as the data plane writes one.

Each class is served by one server per device in order of arrival, so queueing, deadlines and block times
follow from the arrivals; a scheduler's speed is a factor on the service time. It stands for nothing real.
"""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl

from weir import locate, manifest
from weir.plan import read_plan

SPEED = {"none": 1.0, "mq-deadline": 0.7, "bfq": 0.8}
CLASSES = [
    {
        "name": "text", "workload": "poisson-text", "clients": 4, "engine": "replay", "priority": "be/4",
        "objective": {"response_ms": {"quantile": 0.95, "at_most": 40}},
    },
    {
        "name": "video", "workload": "mpeg-vbr", "clients": 2, "engine": "replay", "priority": None,
        "objective": {"deadline_miss_share": 0.01},
    },
]  # fmt: skip


def write_study(
    path: Path,
    *,
    schedulers=("none", "mq-deadline"),
    architectures=("partitioned", "integrated"),
    loads=(0.5, 0.9),
    repetitions=3,
    duration_s=4.0,
    block_table=True,
    seed=1,
    factor="scheduler",
    both_testbeds=False,
    sealed=False,
    label=None,
    slower=1.0,
) -> Path:
    """Writes a study of every combination and returns its folder; `factor` names the first factor.

    With `both_testbeds` each cell is there twice, and the testbed is the last factor. With `sealed` runs have
    manifests. With a `label` the runs are added to those of other labels, and take `slower` times as long.
    """
    runs = []
    for testbed, repetition in (
        (testbed, repetition)
        for testbed in (("device", "simulator") if both_testbeds else (None,))
        for repetition in range(repetitions)
    ):
        for scheduler in schedulers:
            for architecture in architectures:
                for load in loads:
                    levels = {factor: scheduler, "architecture": architecture, "load": load}
                    cell = f"{scheduler}-{architecture}-{load}"
                    if testbed:
                        levels["testbed"] = testbed
                        cell += f"-{testbed}"
                    if label is not None:
                        levels["label"] = label
                        cell = f"{label}-{cell}"
                    runs.append(
                        {
                            "format": 1, "id": f"{cell}-{repetition}", "study": path.name,
                            "question": "Does a shared array serve text and video better than a disk each?",
                            "testbed": testbed or ("device" if block_table else "simulator"), "cell": cell,
                            "levels": levels, "repetition": repetition, "block": repetition,
                            "order": len(runs), "seed": seed + repetition, "warmup_s": 1.0,
                            "duration_s": duration_s, "classes": CLASSES, "settings": {},
                        }
                    )  # fmt: skip
    plan = {
        "format": 1, "study": path.name, "question": runs[0]["question"],
        "description": "Text and video on two disks, or on both as one array.",
        "seed": seed, "repetitions": repetitions,
        "factors": {factor: list(schedulers), "architecture": list(architectures), "load": list(loads)},
        "devices": [], "runs": runs, "estimate_s": len(runs) * (duration_s + 1),
    }  # fmt: skip
    if both_testbeds:
        plan["factors"]["testbed"] = ["device", "simulator"]
    path.mkdir(parents=True, exist_ok=label is not None)
    if label is not None:
        plan |= {"label": label, "factors": plan["factors"] | {"label": [label]}}
    (path / ("plan.json" if label is None else f"plan@{label}.json")).write_text(json.dumps(plan))
    for run in runs:
        on_device = block_table and run["testbed"] == "device"
        write_run(path / run["id"], run, block_table=on_device, slower=slower)
        if sealed:
            seal(path / run["id"])
    return path


def virtual_sample(folder: Path) -> Path:
    """The sample of study `quick`, of its runs those in virtual time alone: 12, with their metrics.json."""
    sample = locate.SAMPLE / "quick"
    plan = read_plan(sample / "plan.json")
    plan["runs"] = [run for run in plan["runs"] if run["testbed"] == "simulator"]
    plan["factors"] |= {"filesystem": ["raw"], "testbed": ["simulator"]}
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(plan | {"testbeds": ["simulator"]}, indent=2))
    for run in plan["runs"]:
        shutil.copytree(sample / run["id"], folder / run["id"])
    return folder


def write_run(folder: Path, run: dict, *, block_table: bool, slower: float = 1.0) -> None:
    rng = np.random.default_rng([run["seed"], run["order"]])
    levels, duration_s = run["levels"], run["duration_s"]
    end_s = run["warmup_s"] + duration_s
    n = rng.poisson(100 * levels["load"] * end_s)
    text_ns = np.sort(rng.uniform(0, end_s, n)) * 1e9
    frames_ns = np.arange(0, end_s, 0.04) * 1e9
    intended = np.concatenate([text_ns, np.repeat(frames_ns, 2)])
    is_video = np.arange(intended.size) >= n
    client = np.where(is_video, np.arange(intended.size) % 2, np.arange(intended.size) % 4)
    size = np.where(is_video, 65536, 4096 * rng.integers(1, 9, intended.size))
    order = np.argsort(intended, kind="stable")
    intended, is_video, client, size = intended[order], is_video[order], client[order], size[order]
    mean_service_ms = 5.0 * slower * SPEED[next(iter(levels.values()))]
    service = rng.gamma(4, mean_service_ms / 4, intended.size) * 1e6
    alone = levels["architecture"] == "partitioned"
    device = is_video.astype(int) if alone else np.arange(intended.size) % 2
    started, completed = np.empty_like(service), np.empty_like(service)
    free = [0.0, 0.0]
    for i, (arrival, need, d) in enumerate(zip(intended, service, device, strict=True)):
        started[i] = max(arrival, free[d])
        completed[i] = free[d] = started[i] + need
    as_ns = lambda x: pl.Series(np.round(x).astype(np.int64))  # noqa: E731
    warmup = intended < run["warmup_s"] * 1e9
    names = pl.Series(np.where(is_video, "video", "text"))
    requests = pl.DataFrame(
        {
            "request": pl.Series(np.arange(intended.size), dtype=pl.UInt64),
            "class": names.cast(pl.Categorical),
            "client": pl.Series(client, dtype=pl.UInt32),
            "device": pl.Series([f"loop{d}" for d in device]).cast(pl.Categorical),
            "file": pl.Series([0] * intended.size, dtype=pl.UInt32),
            "op": pl.Series(["read"] * intended.size).cast(pl.Categorical),
            "offset": pl.Series(np.arange(intended.size) * 4096, dtype=pl.UInt64),
            "size_bytes": pl.Series(size, dtype=pl.UInt64),
            "intended_ns": as_ns(intended),
            "submitted_ns": as_ns(intended + 30_000),
            "completed_ns": as_ns(completed),
            "deadline_ns": pl.select(
                pl.when(pl.Series(is_video)).then(as_ns(intended + 40e6)).otherwise(None)
            ).to_series(),
            "served_ns": as_ns(started)
            if not block_table
            else pl.Series([None] * intended.size, dtype=pl.Int64),
            "status": pl.Series([0] * intended.size, dtype=pl.Int32),
            "warmup": pl.Series(warmup),
        }
    )
    folder.mkdir()
    requests.write_parquet(folder / "requests.parquet")
    if block_table:
        pl.DataFrame(
            {
                "device": requests["device"],
                "sector": requests["offset"] // 512,
                "size_bytes": requests["size_bytes"].cast(pl.UInt32),
                "op": requests["op"],
                "flags": pl.Series([""] * intended.size).cast(pl.Categorical),
                "priority": pl.Series([None] * intended.size, dtype=pl.UInt16),
                "pid": pl.Series([1] * intended.size, dtype=pl.UInt32),
                "comm": pl.Series(["weir"] * intended.size).cast(pl.Categorical),
                "cgroup": pl.Series([None] * intended.size, dtype=pl.UInt64),
                "queued_ns": as_ns(intended + 40_000),
                "inserted_ns": as_ns(intended + 41_000),
                "issued_ns": as_ns(np.maximum(started, intended + 42_000)),
                "completed_ns": as_ns(completed),
                "status": requests["status"],
                "source": pl.Series(["bpf"] * intended.size).cast(pl.Categorical),
            }
        ).write_parquet(folder / "block.parquet")
    (folder / "run.json").write_text(json.dumps(run))
    rules = [{"rule": "R-LOST", "status": "valid", "reason": "", "value": 0, "limit": 0.0001}]
    (folder / "verdict.json").write_text(json.dumps({"status": "valid", "rules": rules}))
    fidelity = {
        "lateness_median_ns": 21_000, "lateness_p99_ns": 90_000,
        "lateness_max_ns": 400_000, "span_error": 1e-5,
    }  # fmt: skip
    timing = {"setup_s": 0.4, "measured_s": end_s, "teardown_s": 0.1}
    (folder / "observed.json").write_text(json.dumps({"replay": fidelity, "timing": timing}))
    system = {"kernel_release": "6.18.0"}
    host = {"system": system, "cpu": {"model": "a processor", "count": 2}, "weir": {"version": "0.1.0"}}
    (folder / "host.json").write_text(json.dumps(host))


def seal(folder: Path) -> None:
    """Gives a run's folder the manifest of the files that it holds, as the data plane does."""
    files = [
        {
            "path": str(path.relative_to(folder)),
            "size_bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (manifest.NAME, manifest.METRICS)
    ]
    document = {"results_format": 1, "weir": "0.1.0", "run": folder.name, "files": files}
    (folder / manifest.NAME).write_text(manifest.seal(json.dumps(document, indent=2)))


def set_validity(folder: Path, status: str, rule: str, reason: str) -> None:
    entry = {"rule": rule, "status": status, "reason": reason, "value": 0.01, "limit": 0.0001}
    (folder / "verdict.json").write_text(json.dumps({"status": status, "rules": [entry]}))
