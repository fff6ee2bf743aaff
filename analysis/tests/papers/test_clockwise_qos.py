"""Clockwise: contracts of best effort and over-allocation, on results made by hand."""

import json

import numpy as np
import polars as pl
import pytest

from papers.clockwise import qos, qos_figures, results
from weir.claims import FITTED


def judged(claims):
    return {claim.id: claim for claim in claims}


class Folder:
    """What is read of a run here: where it is."""

    def __init__(self, path):
        self.path = path


def minutes(busy, calm, seed):
    rng = np.random.default_rng(seed)
    requests = rng.integers(0, 200, 1439)
    # A few of them of high load.
    requests[930:980] = np.where(np.arange(50) % 4 == 0, 1800, 1200) + rng.integers(0, 300, 50)
    mean = np.where(requests > 1700, busy, calm) * np.ones(1439)
    return qos.Minutes(requests, 2 * requests, mean, 3 * mean, 1.0)


def test_contracts_are_judged_and_drawn():
    scales = {"qos-0": (8000.0, 100.0), "qos-10": (1000.0, 130.0), "qos-20": (900.0, 150.0)}
    found = qos.Contracts({k: [minutes(*v, seed) for seed in range(3)] for k, v in scales.items()})
    other = qos.Contracts({k: [] for k in scales})
    claims = judged(qos.contracts(found, other))
    assert {c.id: c.status for c in claims.values() if c.status != "reproduced"} == {"B-F6.12": FITTED}
    assert [one.setting for one in claims["B-F6.13 mean"].settings] == ["containers"]
    assert claims["B-F6.13 more"].ours == pytest.approx(0.9, rel=0.01)
    first = found.minutes["qos-0"][0]
    assert (first.period().start, first.period().stop) == (930, 980)
    assert len(qos_figures.contracts(found).axes) == 3


def test_minutes_are_put_together_from_a_series(tmp_path):
    own = {
        "requests": [2, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 7], "unfinished": [0] * 6 + [1] + [0] * 6,
        "response_mean_ms": [10.0, None, None, None, None, 40.0, None, None, None, None, None, None, 1.0],
        "response_max_ms": [20.0, None, None, None, None, 90.0, None, None, None, None, None, None, 1.0],
    }  # fmt: skip
    series = {"bin_s": 10, "from_s": 60, "classes": {"cello5": own, "cello0": own, "ro_video": own}}
    (tmp_path / "series.json").write_text(json.dumps(series))
    found = qos.Minutes.of(Folder(tmp_path))
    assert found.requests.tolist() == [6, 1]
    assert found.all_requests.tolist() == [12, 2]
    assert found.mean_ms[0] == pytest.approx(30)
    assert np.isnan(found.mean_ms[1])
    assert (found.max_ms[0], found.from_min) == (90, 1)


def test_both_ways_of_slots_are_judged_and_containers_decide():
    good = {"qos-0": (8000.0, 100.0), "qos-10": (1000.0, 130.0), "qos-20": (900.0, 150.0)}
    bad = {"qos-0": (800.0, 100.0), "qos-10": (3000.0, 90.0), "qos-20": (2990.0, 80.0)}
    found, other = (
        qos.Contracts({k: [minutes(*v, seed) for seed in range(3)] for k, v in of.items()})
        for of in (good, bad)
    )
    claims = judged(qos.contracts(found, other))
    for name in ("mean", "more", "anomaly"):
        assert claims[f"B-F6.13 {name}"].status == "reproduced"
        assert claims[f"B-F6.13 {name}"].holds() == "holds for containers; fails for replenishment"
    claims = judged(qos.contracts(other, found))
    assert {claims[f"B-F6.13 {name}"].status for name in ("mean", "more", "anomaly")} == {"not reproduced"}


def allocation(loose):
    rows = []
    for kind in ("rt", "bef"):
        for factor in (1, 5, 12, 25):
            for repetition in range(3):
                ms = (40.0 if factor > 1 else 10.0) if kind == "rt" else 40.0 * loose ** (factor / 25)
                line = {"kind": kind, "factor": factor, "repetition": repetition}
                rows.append(line | {results.disk(at): ms * (1 + 0.01 * repetition) for at in results.DISKS})
    return pl.DataFrame(rows)


@pytest.mark.parametrize(
    ("loose", "status"), [(50, "reproduced"), (1.5, "shape only"), (0.5, "not reproduced")]
)
def test_over_allocation_is_judged(loose, status):
    rows = allocation(loose)
    found = judged(qos.crosstalk(rows, rows.clear()))
    assert found["B-F6.14 plateau"].status == "reproduced"
    assert found["B-F6.14 unscheduled"].status == status
    assert found["B-F6.14 little"].status == "reproduced"
    assert len(qos_figures.crosstalk(rows).axes) == 8


def test_latencies_that_still_grow_are_no_plateau():
    rows = allocation(50)
    grown = pl.when((pl.col("kind") == "rt") & (pl.col("factor") == 25)).then(1.2).otherwise(1.0)
    rows = rows.with_columns(pl.col(results.disk(at)) * grown for at in results.DISKS)
    assert judged(qos.crosstalk(rows, rows.clear()))["B-F6.14 plateau"].status == "not reproduced"


def test_one_disk_far_from_the_range_is_no_plateau_of_all():
    rows = allocation(50)
    for factor, status in ((1.4, "reproduced"), (1.6, "not reproduced"), (0.4, "not reproduced")):
        scaled = rows.with_columns(pl.col(results.disk(3)) * factor)
        assert judged(qos.crosstalk(scaled, rows.clear()))["B-F6.14 plateau"].status == status


def test_slots_that_are_used_up_decide():
    rows, kept = allocation(50), allocation(0.5)
    found = judged(qos.crosstalk(rows, kept))["B-F6.14 unscheduled"]
    assert found.status == "reproduced"
    assert found.holds() == "holds for slots used up (6.3.2); fails for slots left to the next"


def test_requests_that_are_never_answered_have_no_ratio():
    rows = allocation(50)
    never = pl.when(pl.col("kind") == "bef").then(np.inf).otherwise(pl.col("cello0")).alias("cello0")
    found = judged(qos.crosstalk(rows.with_columns(never), rows.clear()))
    for name in ("unscheduled", "little"):
        assert (found[f"B-F6.14 {name}"].status, found[f"B-F6.14 {name}"].ours) == ("not reproduced", None)
