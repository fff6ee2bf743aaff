"""Hierarchical disk sharing on a block device: short experiments, judged as the long ones and beside them."""

import json

import polars as pl

from papers.hds import claims, live, sizes
from papers.hds.live import TIMES
from weir.claims import Found
from weir.statistics import Interval

TREE = "hds root_kb_s=1000 tree=A:0.5(stream1:0.8,stream2:0.2),B:0.5(stream3:1) below=fcfs"
ROOT = 1.024e6
#: What each stream gets of the root in each phase, as the paper has it.
FAIR = [(1, 0, 0), (0.8, 0.2, 0), (0.4, 0.1, 0.5)]
#: The same if nothing is lent.
ALONE = [(0.4, 0, 0), (0.4, 0.1, 0), (0.4, 0.1, 0.5)]
STREAMS = ("stream1", "stream2", "stream3")


def write(folder, *, simulated=FAIR, measured=FAIR, repetitions=2):
    """A study live-hds-borrowing whose streams get these rates."""
    seconds = 3 * TIMES.phase_s
    runs = []
    for testbed, phases in (("device", measured), ("simulator", simulated)):
        for repetition in range(repetitions):
            levels = {"scheduler": TREE, "testbed": testbed}
            run = {
                "format": 1, "id": f"{testbed}{repetition}", "study": folder.name, "question": "Who gets it?",
                "testbed": testbed, "cell": testbed, "levels": levels, "repetition": repetition,
                "block": repetition,
                "order": len(runs), "seed": 1, "warmup_s": 0.0, "duration_s": float(seconds), "settings": {},
                "classes": [{"name": name, "workload": "hds-reader", "clients": 1} for name in STREAMS],
            }  # fmt: skip
            runs.append(run)
            made = folder / run["id"]
            made.mkdir(parents=True)
            (made / "run.json").write_text(json.dumps(run))
            (made / "verdict.json").write_text(json.dumps({"status": "valid", "rules": []}))
            requests(phases, seconds).write_parquet(made / "requests.parquet")
    plan = {
        "format": 1, "study": folder.name, "question": "Who gets it?", "description": "", "seed": 1,
        "runs": runs, "repetitions": repetitions,
        "factors": {"scheduler": [TREE], "testbed": ["device", "simulator"]},
        "devices": [], "estimate_s": 1,
    }  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(plan))


def requests(phases, seconds):
    """A request for each stream and second, of what it gets in it."""
    rows = [
        (name, second, round(ROOT * phases[second // TIMES.phase_s][at]))
        for at, name in enumerate(STREAMS)
        for second in range(seconds)
        if phases[second // TIMES.phase_s][at]
    ]
    names, at_s, sizes = zip(*rows, strict=True)
    at_ns = pl.Series([second * 10**9 for second in at_s], dtype=pl.Int64)
    count = len(rows)
    return pl.DataFrame(
        {
            "request": pl.Series(range(count), dtype=pl.UInt64),
            "class": pl.Series(names).cast(pl.Categorical),
            "client": pl.Series([0] * count, dtype=pl.UInt32),
            "device": pl.Series(["shared"] * count).cast(pl.Categorical),
            "file": pl.Series([0] * count, dtype=pl.UInt32),
            "op": pl.Series(["read"] * count).cast(pl.Categorical),
            "offset": pl.Series([0] * count, dtype=pl.UInt64),
            "size_bytes": pl.Series(sizes, dtype=pl.UInt64),
            "intended_ns": at_ns,
            "submitted_ns": at_ns,
            "completed_ns": at_ns + 500_000_000,
            "deadline_ns": pl.Series([None] * count, dtype=pl.Int64),
            "served_ns": pl.Series([None] * count, dtype=pl.Int64),
            "status": pl.Series([0] * count, dtype=pl.Int32),
            "warmup": pl.Series([False] * count),
        }
    )


def test_short_experiments_are_judged_by_the_papers_limits(tmp_path):
    write(tmp_path / "live-hds-borrowing")
    found = live.studies(tmp_path)
    assert list(found) == ["borrowing"]
    evidence = claims.Evidence()
    live.add(evidence, found)
    rows = {row["claim"]: row for row in live.compared(evidence).rows(named=True)}
    # Nothing varies here.
    assert rows.pop("H-F5 variation")["live: status"] == "not reproduced"
    for words in live.SETTINGS:
        assert {row[f"{words}: status"] for row in rows.values()} == {"reproduced"}
        assert rows["H-F5 2"][words].startswith("10.0")
    assert "from 17 to 24 s" in evidence.found["H-F5 3"]["live"].note


def test_what_the_device_does_is_told_from_what_is_short(tmp_path):
    write(tmp_path / "live-hds-borrowing", measured=ALONE)
    found = live.studies(tmp_path)
    evidence = claims.Evidence()
    evidence.add(sizes.setting(), [("H-F5 alone", Found(Interval(99.0, 98.0, 100.0, 5, "t")))])
    live.add(evidence, found)
    rows = {row["claim"]: row for row in live.compared(evidence).rows(named=True)}
    alone = rows["H-F5 alone"]
    assert alone["virtual time"] == "99.0 [98.0, 100]"
    assert (alone["virtual time, short: status"], alone["live: status"]) == ("reproduced", "not reproduced")
    assert alone["live"].startswith("40.0")
    assert rows["H-F5 3"]["live: status"] == "reproduced" and rows["H-F5 3"]["virtual time"] == "none"
    (claim,) = evidence.claims()
    assert claim.holds() == "holds for 416 KiB, virtual time, short; fails for live"
    assert len(live.figure(found["borrowing"]).axes) == 2
    assert "live-hds-borrowing" in live.described(found).data


def test_without_live_runs_nothing_is_claimed(tmp_path):
    assert live.studies(tmp_path) == {}
    assert "make study STUDY=live-hds" in live.described({}).data
    write(tmp_path / "live-hds-borrowing")
    for run in tmp_path.glob("live-hds-borrowing/device*"):
        (run / "verdict.json").write_text(json.dumps({"status": "invalid", "rules": []}))
    found = live.studies(tmp_path)
    assert live.shown(found["borrowing"], "borrowing", "device") == []
    evidence = claims.Evidence()
    live.add(evidence, found)
    rows = live.compared(evidence).rows(named=True)
    assert {row["live"] for row in rows} == {"none"}
    assert {row["virtual time, short"] for row in rows} != {"none"}


def test_the_papers_times_are_the_defaults():
    assert (claims.PAPER.phase_s, claims.PAPER.step_s, claims.PAPER.adapts_s) == (60, 20, 70)
