"""Every metric of `metrics.json`, recomputed by DuckDB from the documented columns (`sql_metrics`)."""

import copy
import json
import math
import subprocess
from pathlib import Path

import polars as pl
import pytest
import synthetic
from sql_metrics import recomputed

from weir import derive, locate
from weir.load import load_study
from weir.metrics import quantile

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "target/release/weir"
#: Metrics that SQL cannot compute from the columns, with the reason.
NOT_RECOMPUTED: dict[str, str] = {}
TOLERANCE = 1e-9
MS = 1_000_000

# Open and closed loops, every kind of objective, and at load 8 an overload that is given up.
FRESH = """\
name: fresh
question: Does SQL give the same metrics?
testbed: simulator
seed: 11
repetitions: 1
warmup_s: 1
duration_s: 4
storage: {profile: hdd-7200, heads: 1, size_mib: 1024}
classes:
  text:
    workload: poisson-text
    clients: 60
    objective: {response_ms: {quantile: 0.9, at_most: 80}}
  video:
    workload: mpeg-vbr
    clients: 20
    objective: {deadline_miss_share: 0.05}
  reader:
    workload: random-4k
    clients: 2
    objective: {rate_mb_s: 0.2}
  copy:
    workload: sequential
    clients: 1
    objective: {share: 0.3}
factors:
  scheduler: [fcfs, sfq]
  load: [1, 8]
"""


def differences(metrics: object, expected: object, place: str = "") -> list[str]:
    """Places where two metrics differ: by more than the tolerance, or in what they have."""
    if isinstance(metrics, dict) and isinstance(expected, dict):
        found = [f"{place}.{name}: in one of both" for name in metrics.keys() ^ expected.keys()]
        for name in metrics.keys() & expected.keys():
            found += differences(metrics[name], expected[name], f"{place}.{name}")
        return found
    values = [math.inf if value == derive.UNBOUNDED else value for value in (metrics, expected)]
    same = values[0] == values[1] and isinstance(values[0], bool) == isinstance(values[1], bool)
    if not same and None not in values:
        same = math.isclose(*values, rel_tol=TOLERANCE)
    return [] if same else [f"{place}: {metrics} in metrics.json, {expected} by SQL"]


def kept(folder: Path) -> dict[str, dict]:
    """`metrics.json` of every run, computed now."""
    found = {}
    for run in load_study(folder).valid_runs:
        derive.metrics_of(run, fresh=True)
        document = json.loads((run.path / "metrics.json").read_text())
        parts = {part: document[part] for part in ("classes", "devices", "run")}
        for values in (*parts["classes"].values(), *parts["devices"].values(), parts["run"]):
            for name in NOT_RECOMPUTED:
                values.pop(name, None)
        found[run.id] = parts
    return found


def values_of(metrics: dict[str, dict]) -> list[tuple[str, object]]:
    """Every metric with its name."""
    return [
        pair
        for run in metrics.values()
        for values in (*run["classes"].values(), *run["devices"].values(), run["run"])
        for pair in values.items()
    ]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    if not BINARY.exists():
        pytest.skip("needs target/release/weir")
    folder = tmp_path_factory.mktemp("fresh")
    (folder / "fresh.yml").write_text(FRESH)
    command = [BINARY, "simulate", folder / "fresh.yml", "--out", folder / "results"]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    return folder / "results" / "fresh"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in locate.SAMPLE.glob("*/plan.json")))
def test_the_sample_has_the_metrics_that_sql_computes(name):
    folder = locate.SAMPLE / name
    metrics = {
        path.parent.name: {part: json.loads(path.read_text())[part] for part in ("classes", "devices", "run")}
        for path in folder.glob("*/metrics.json")
    }
    assert differences(metrics, recomputed(folder)) == []
    assert len(values_of(metrics)) > 500


def test_a_fresh_study_has_the_metrics_that_sql_computes(fresh):
    metrics = kept(fresh)
    assert differences(metrics, recomputed(fresh)) == []
    # The study has what it is here for.
    given = [name for name, value in values_of(metrics) if value not in (None, 0)]
    assert {"unfinished", "within_objective_share", "share_error", "throughput_share"} <= set(given)
    assert any(run.observed["simulator"]["saturation"] for run in load_study(fresh).runs)
    assert any(value == derive.UNBOUNDED for _, value in values_of(metrics))


def damaged_study(tmp_path: Path) -> Path:
    """Device runs with lost, failed and unseen requests, one of two hosts, and one given up half-way."""
    folder = synthetic.write_study(tmp_path / "s", loads=(0.5, 1.5), repetitions=1, duration_s=3.0)
    of_third = pl.int_range(pl.len()) % 3
    for path in sorted(folder.glob("*/requests.parquet"))[::2]:
        rows = pl.read_parquet(path)
        done = pl.when(pl.int_range(pl.len()) % 17 == 0).then(None).otherwise(pl.col("completed_ns"))
        status = pl.when(pl.int_range(pl.len()) % 13 == 0).then(5).otherwise(0).cast(pl.Int32)
        started = pl.when(of_third == 1).then(pl.col("intended_ns") + MS).otherwise(None)
        rows.with_columns(
            completed_ns=done, status=status, served_ns=pl.min_horizontal(started, "completed_ns")
        ).write_parquet(path)
    for path in sorted(folder.glob("*/block.parquet"))[1::2]:
        rows = pl.read_parquet(path)
        rows.with_columns(
            queued_ns=pl.when(of_third == 0).then(None).otherwise(pl.col("queued_ns")),
            inserted_ns=pl.when(pl.int_range(pl.len()) % 6 == 0).then(None).otherwise(pl.col("inserted_ns")),
            completed_ns=pl.when(pl.int_range(pl.len()) % 19 == 0)
            .then(None)
            .otherwise(pl.col("completed_ns")),
            status=pl.when(pl.int_range(pl.len()) % 23 == 0).then(5).otherwise(0).cast(pl.Int32),
            op=pl.when(pl.int_range(pl.len()) % 11 == 0).then(pl.lit("flush")).otherwise(pl.lit("write")),
            host=pl.when(of_third == 2).then(pl.lit("a")).otherwise(pl.lit("b")),
        ).write_parquet(path)
    given_up = sorted(folder.glob("*/observed.json"))[0]
    observed = json.loads(given_up.read_text()) | {"simulator": {"saturation": {"at_s": 2.53}}}
    given_up.write_text(json.dumps(observed))
    for path in (folder / "plan.json", *folder.glob("*/run.json")):
        document = json.loads(path.read_text())
        for run in document.get("runs", [document]):
            for app_class, share in zip(run["classes"], (0.6, 0.4), strict=True):
                app_class["objective"] = {"share": share}
        path.write_text(json.dumps(document))
    return folder


def test_losses_failures_hosts_and_devices_give_the_metrics_that_sql_computes(tmp_path):
    folder = damaged_study(tmp_path)
    metrics = kept(folder)
    assert differences(metrics, recomputed(folder)) == []
    given = {name for name, value in values_of(metrics) if value not in (None, 0)}
    assert {
        "lost",
        "failed",
        "queueing_p95_ms",
        "utilisation",
        "work_conservation",
        "jain_classes_weighted",
    } <= given
    assert any(name.startswith("a:") for run in metrics.values() for name in run["devices"])


def test_all_metrics_have_a_value_in_some_of_these_studies(fresh, tmp_path):
    metrics = [*values_of(kept(fresh)), *values_of(kept(damaged_study(tmp_path)))]
    for path in locate.SAMPLE.glob("*/*/metrics.json"):
        metrics += values_of({"": json.loads(path.read_text())})
    without = {name for name, _ in metrics} - {name for name, value in metrics if value is not None}
    assert without == set()


def test_a_metric_that_is_changed_is_found(study_folder):
    """Each metric in turn, by one part in a million."""
    expected = recomputed(study_folder)
    run, parts = next(iter(kept(study_folder).items()))
    assert differences(parts, expected[run]) == []
    changed = 0
    for part, groups in (("classes", parts["classes"]), ("devices", parts["devices"]), ("run", {"": 0})):
        for group in groups:
            for name in parts[part][group] if group else parts[part]:
                broken = copy.deepcopy(parts)
                values = broken[part][group] if group else broken[part]
                value = values[name]
                values[name] = (
                    1.0 if value in (None, 0) else not value if value is True else value * (1 + 1e-6)
                )
                assert len(differences(broken, expected[run])) == 1, name
                changed += 1
    assert changed > 90


def test_a_definition_that_is_changed_is_found(study_folder, monkeypatch):
    """A quantile of one rank less, as an interpolating library might give."""
    expected = recomputed(study_folder)

    def lower(values, q):
        return quantile(values, q - 1e-2 if 0.1 < q < 1 else q)

    monkeypatch.setattr("weir.metrics.quantile", lower)
    found = differences(kept(study_folder), expected)
    assert found and all("_p" in line or "objective" in line for line in found)
