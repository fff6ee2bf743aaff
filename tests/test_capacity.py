"""`python -m weir capacity` in virtual time: against every number of clients, again, and with wrong input."""

import json
import math

import pytest
from support import ROOT, simulate

from weir.capacity import Search, attained
from weir.cli import main
from weir.load import load_study

STUDY = """\
name: small
question: How many clients does a disk bear?
testbed: simulator
records: summary
seed: 5
repetitions: 2
warmup_s: 2
duration_s: 20
storage: {profile: hdd-7200, heads: 4, size_mib: 512}
classes:
  text:
    workload: poisson-text
    with: {files.count: 20}
    clients: 10
    objective: {response_ms: {quantile: 0.95, at_most: 150}}
factors:
  scheduler: [fcfs, scan]
  load: [0.5, 1.0]
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_ROOT", str(ROOT))
    file = tmp_path / "small.yml"
    file.write_text(STUDY)
    return file


def search(study, capsys, *more):
    options = ["--class", "text", "--resolution", "0.001", "--least", "24", "--json"]
    code = main(["capacity", str(study), *options, "--results", str(study.parent / "results"), *more])
    return code, capsys.readouterr()


def test_it_lies_between_numbers_that_attain_and_numbers_that_fail(study, capsys):
    code, said = search(study, capsys)
    assert code == 0, said.err
    document = json.loads(said.out)
    found = {(row["scheduler"], row["repetition"]): row for row in document["repetitions"]}
    assert len(found) == 4 and all(row["failed"] == row["capacity"] + 1 for row in found.values())
    numbers = range(
        min(row["capacity"] for row in found.values()) - 8, max(row["failed"] for row in found.values()) + 9
    )
    counts = "".join(f"\n    - {{text: {n}}}" for n in numbers)
    every = STUDY.replace("name: small", "name: every").replace("load: [0.5, 1.0]", f"clients: {counts}")
    done = simulate(study.parent, every)
    assert done.returncode == 0, done.stderr
    verdicts = {}
    for run in load_study(study.parent / "results/every").runs:
        clients = int(run.levels["clients"].removeprefix("text="))
        key = (run.levels["scheduler"], run.repetition)
        verdicts.setdefault(key, {})[clients] = attained(run, Search("text"))
    for key, row in found.items():
        assert verdicts[key][row["capacity"]] and not verdicts[key][row["failed"]]
        # Near a capacity a larger number may attain again: its requests are others.
        attaining = [n for n, is_kept in verdicts[key].items() if is_kept]
        failing = [n for n, is_kept in verdicts[key].items() if not is_kept]
        assert min(failing) - 1 <= row["capacity"] <= max(attaining)
        assert max(attaining) - min(failing) <= 0.1 * row["capacity"]
    scan, fcfs = (
        math.prod(row["capacity"] for (name, _), row in found.items() if name == scheduler)
        for scheduler in ("scan", "fcfs")
    )
    (comparison,) = document["comparisons"]
    assert comparison["estimate"] == pytest.approx(math.sqrt(scan / fcfs))


def test_a_search_uses_the_runs_that_are_there(study, capsys):
    code, first = search(study, capsys, "--repetitions", "1")
    folder = study.parent / "results/small-capacity-text"

    def made():
        return {run.id: (run.path / "run.json").stat().st_mtime_ns for run in load_study(folder).runs}

    before = made()
    assert code == 0 and before
    code, again = search(study, capsys, "--repetitions", "1")
    assert code == 0 and made() == before
    assert json.loads(first.out)["repetitions"] == json.loads(again.out)["repetitions"]
    # The runs are a study of their own, with nothing missing.
    assert main(["summary", str(folder)]) == 0
    assert "0 missing" in capsys.readouterr().out


def test_wrong_input_is_refused(study, capsys, tmp_path):
    code, said = search(study, capsys, "--limit", "text.speed=1")
    assert code == 2 and "there is no metric `speed`" in said.err
    code, said = search(study, capsys, "--least", "1")
    assert code == 2 and "too few requests: `objective_value` has no value; measure longer" in said.err
    assert main(["capacity", "nonesuch", "--class", "text"]) == 2
    assert "nonesuch.yml: there is no such study" in capsys.readouterr().err
    assert main(["capacity", str(study), "--class", "audio", "--results", str(tmp_path / "none")]) == 2
    assert "there is no class `audio`" in capsys.readouterr().err
    assert not list((tmp_path / "none").glob("small*"))
