"""Studies with `precision`: repetitions are added until it is reached, in virtual time and on devices."""

import json
import shutil

from test_virtual import files_of

STUDY = """\
name: tiny
question: Is shortest seek time first faster than the order of arrival?
testbed: {testbed}
seed: 3
repetitions: 3
precision: {{class: text, effect: {effect}, at_most: {at_most}}}
warmup_s: 0.5
duration_s: {duration_s}
capture: optional
storage: {{profile: hdd-7200, heads: 1, size_mib: 256}}
classes:
  text: {{workload: poisson-text, clients: 60}}
factors:
  scheduler: {schedulers}
"""


def study_of(bench, **fields):
    usual = {"testbed": "simulator", "effect": 0.2, "at_most": 12, "duration_s": 5}
    file = bench.folder / "tiny.yml"
    file.write_text(STUDY.format(**{"schedulers": "[fcfs, sstf]"} | usual | fields))
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
    assert "tiny: 24 runs, 6 of them to do" in log
    assert log.count("tiny: more repetitions are needed") == found["after"] - 3
    page = (dry_bench.results / "tiny/report.html").read_text()
    assert f"precision reached after {found['after']} of at most 12 repetitions" in page
    before = files_of(dry_bench)
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0 and "tiny: 24 runs, 0 of them to do" in log, log
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


def test_repetitions_on_devices_are_added_one_after_the_other(bench):
    """This test will measure on a modelled disk, up to the most repetitions that the study allows."""
    study = study_of(
        bench, testbed="device", schedulers="[none, mq-deadline]", effect=0.001, at_most=4, duration_s=1
    )
    code, log = bench.play(study, "--skip-tags", "report")
    assert code == 0, log
    found = decision(bench)
    # On a busy machine too few runs may be valid to judge.
    assert found["status"] in ("at most", "reached", "cannot be judged"), log
    assert blocks(bench) == list(range(found["after"]))
    runs = len(bench.run_folders())
    assert f"[{runs}/{runs}]" in log
    assert bench.leftovers() == []
