"""Studies with `precision`: repetitions are added until it is reached, in virtual time and on devices."""

import json
import re
import shutil

from support import TINY, weir
from test_virtual import STUDY, files_of

PRECISION = "precision: {effect: 0.5, at_most: 12}\n"


def study_of(bench, **fields):
    numbers = {"testbed": "simulator", "repetitions": 3, "schedulers": "[sstf, fcfs]"} | fields
    file = bench.folder / "tiny.yml"
    file.write_text(STUDY.format(**numbers) + PRECISION)
    return file


def decision(bench):
    return json.loads((bench.results / "tiny/precision.json").read_text())


def blocks(bench):
    runs = json.loads((bench.results / "tiny/plan.json").read_text())["runs"]
    return sorted({run["block"] for run in runs if (bench.results / "tiny" / run["id"]).is_dir()})


def test_the_playbook_adds_repetitions_until_the_precision_is_reached(dry_bench):
    """This test will simulate a study, lose a decision and its last block, and continue."""
    study = study_of(dry_bench)
    code, log = dry_bench.play(study)
    assert code == 0, log
    found = decision(dry_bench)
    assert found["status"] == "reached"
    assert 3 < found["after"] < 12
    assert blocks(dry_bench) == list(range(found["after"]))
    assert f"tiny: 48 runs, 12 of them to do" in log
    assert log.count("tiny: more repetitions are needed") == found["after"] - 3
    page = (dry_bench.results / "tiny/report.html").read_text()
    assert f"precision reached after {found['after']} of at most 12 repetitions" in page
    before = files_of(dry_bench)
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0 and "tiny: 48 runs, 0 of them to do" in log, log
    assert files_of(dry_bench) == before
    # As after an interruption: in the middle of the last block, and before any decision.
    plan = json.loads((dry_bench.results / "tiny/plan.json").read_text())
    last = [run["id"] for run in plan["runs"] if run["block"] == found["after"] - 1]
    shutil.rmtree(dry_bench.results / "tiny" / last[0])
    (dry_bench.results / "tiny/precision.json").unlink()
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0, log
    assert decision(dry_bench) == found
    assert blocks(dry_bench) == list(range(found["after"]))
