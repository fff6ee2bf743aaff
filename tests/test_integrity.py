"""Results can be trusted: damage is noticed, folders of others are left, names lead nowhere."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest
from support import ROOT, WEIR, simulate, wait_for, weir

from weir.errors import DamagedError
from weir.load import load_study
from weir.study import class_table, device_table

#: Bits that are flipped; the long form is 1000.
DAMAGES = int(os.environ.get("WEIR_DAMAGES", "60"))
#: A study of two runs or more to flip bits of a copy of, such as one on devices; else one is simulated.
GIVEN = os.environ.get("WEIR_DAMAGED_STUDY")

STUDY = """\
name: trusted
question: Do results hold?
testbed: simulator
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: {duration_s}
storage: {{profile: hdd-7200, heads: 2, size_mib: 128}}
classes:
  text: {{workload: poisson-text, clients: 40}}
factors:
  scheduler: {schedulers}
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study that was simulated, loaded and reported on, so that all of its files are there."""
    folder = tmp_path_factory.mktemp("whole")
    if GIVEN:
        study = shutil.copytree(GIVEN, folder / "trusted")
        class_table(load_study(study))
        return study
    done = simulate(folder, STUDY.format(duration_s=5, schedulers="[sstf, fcfs]"))
    assert done.returncode == 0, done.stderr
    study = folder / "results/trusted"
    # What was written just now is not yet remembered as verified.
    time.sleep(2.1)
    class_table(load_study(study))
    assert len(json.loads((study / ".weir/verified.json").read_text())) == 2
    return study


@pytest.fixture
def study(whole, tmp_path):
    """A copy of it."""
    return shutil.copytree(whole, tmp_path / "trusted")


def runs_of(study):
    """The folders of its runs."""
    return sorted(path.parent for path in study.glob("*/run.json"))


def load(study):
    """Loads all that a study's tables need."""
    loaded = load_study(study)
    return class_table(loaded), device_table(loaded)


def refused(study, file):
    """Whether both the loader and `weir verify` name this file."""
    checked = weir("verify", study)
    with pytest.raises(DamagedError) as caught:
        load(study)
    assert "Traceback" not in checked.stderr and "panicked" not in checked.stderr
    assert checked.returncode == 1, checked.stdout
    told = [line for line in checked.stdout.splitlines() if line.startswith(f"{file}: ")]
    return bool(told) and caught.value.path == file


def test_no_flipped_bit_is_accepted(study):
    """This test will flip bits of a study's files, one at a time, and load it each time."""
    chance = random.Random(26)
    files = [path for run in runs_of(study) for path in sorted(run.rglob("*")) if path.is_file()]
    files = [path for path in files if path.stat().st_size > 0]
    assert {path.name for path in files} >= {"requests.parquet", "manifest.json", "metrics.json", "run.json"}
    accepted = []
    for _ in range(DAMAGES):
        file = chance.choice(files)
        good = file.read_bytes()
        bad = bytearray(good)
        bit = chance.randrange(len(bad) * 8)
        bad[bit // 8] ^= 1 << bit % 8
        file.write_bytes(bad)
        if not refused(study, file):
            accepted.append((file.name, bit))
        file.write_bytes(good)
    assert accepted == [], f"{len(accepted)} of {DAMAGES}"
    load(study)
    assert weir("verify", study).returncode == 0


def test_files_that_are_cut_short_empty_missing_or_unknown_are_noticed(study):
    """This test will cut, empty, remove and add files of a run."""
    run, _ = runs_of(study)
    for file in sorted(run.iterdir()):
        good = file.read_bytes()
        for length in (0, 1, len(good) // 2, len(good) - 1):
            file.write_bytes(good[:length])
            assert refused(study, file), (file.name, length)
        if file.name != "metrics.json":
            file.unlink()
            assert refused(study, file), file.name
        file.write_bytes(good)
    other = run / "block.parquet"
    shutil.copy(run / "requests.parquet", other)
    assert refused(study, other)
    other.unlink()
    load(study)


def test_files_of_another_run_are_noticed(study):
    """This test will give one run the files of another, one by one and all at once."""
    one, other = runs_of(study)
    for file in sorted(one.iterdir()):
        good = file.read_bytes()
        shutil.copy(other / file.name, file)
        if file.read_bytes() == good:
            continue
        if file.name == "metrics.json":
            # It is sound, but of another run: not believed, and computed again.
            assert weir("verify", study).returncode == 1
            load(study)
            assert json.loads(file.read_text())["id"] == one.name
        else:
            assert refused(study, file), file.name
        file.write_bytes(good)
    one.rename(study / "away")
    other.rename(one)
    (study / "away").rename(other)
    checked = weir("verify", study)
    assert checked.returncode == 1 and "its folder is called" in checked.stdout
    with pytest.raises(DamagedError, match="its folder is"):
        load(study)


def test_a_damaged_run_is_told_in_one_line(study):
    """This test will damage one run and ask for tables, pages and figures."""
    run, _ = runs_of(study)
    verdict = run / "verdict.json"
    verdict.write_text(verdict.read_text().replace("valid", "vanid", 1))
    for words in (["summary", study], ["metrics", study], ["report", study]):
        done = subprocess.run(
            [sys.executable, "-m", "weir", *words], capture_output=True, text=True, check=False, cwd=ROOT
        )
        assert done.returncode == 1, done
        (line,) = done.stderr.strip().splitlines()
        assert line.startswith(f"error: {verdict}: is damaged") and "remove this run's folder" in line
    checked = weir("verify", study, "--json")
    told = json.loads(checked.stdout)
    assert (told["runs"], told["damaged"]) == (2, 1)
    assert told["problems"][0]["file"] == str(verdict)
    # Both commands take any of the three folders.
    for path in (run, study, study.parent):
        assert weir("verify", path).returncode == 1
    assert weir("verify", study.parent / "nothing").returncode == 2
    shutil.rmtree(run)
    assert weir("verify", study).returncode == 0
    load(study)


def test_a_run_of_before_there_were_manifests_is_counted(study):
    """This test will make a run look as older versions left it."""
    run, _ = runs_of(study)
    (run / "manifest.json").unlink()
    assert refused(study, run / "manifest.json")
    document = json.loads((run / "run.json").read_text())
    del document["results_format"]
    # It names the manifest.
    (run / "metrics.json").unlink()
    (run / "run.json").write_text(json.dumps(document))
    checked = weir("verify", study)
    assert checked.returncode == 0 and "1 without a manifest" in checked.stdout, checked.stdout
    assert weir("verify", study, "--strict").returncode == 1
    assert load_study(study).unsealed == (run.name,)
    table = run / "requests.parquet"
    table.write_bytes(table.read_bytes()[:-100])
    assert weir("verify", study).returncode == 1


def test_what_was_verified_is_not_read_again_until_it_changes(whole, monkeypatch):
    """This test will count what is hashed."""
    from weir import manifest

    read = []
    monkeypatch.setattr(manifest, "_check_content", lambda path, _: read.append(path))
    load_study(whole)
    assert read == []
    (run, _) = runs_of(whole)
    os.utime(run / "summary.json")
    load_study(whole)
    assert {path.parent for path in read} == {run}


def test_a_reader_that_has_seen_enough_is_no_error(study):
    """This test will close the pipe that a summary is printed to."""
    command = f"'{sys.executable}' -m weir summary '{study}' | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stderr == "" and done.stdout.startswith("trusted: "), done


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "..", ".hidden", "a/b", ""])
def test_names_that_lead_out_of_the_results_are_refused(tmp_path, name):
    """This test will name runs, studies and devices by paths."""
    study = tmp_path / "trusted.yml"
    study.write_text(STUDY.format(duration_s=1, schedulers="[fcfs]"))
    plan = json.loads(weir("plan", study, "--json").stdout)
    before = sorted(tmp_path.rglob("*"))
    results, testbed = tmp_path / "results", tmp_path / "none.json"

    def told(field, document, *words):
        file = tmp_path / "plan.json"
        file.write_text(json.dumps(document))
        done = weir(*(file if word == "PLAN" else word for word in words))
        assert done.returncode == 2, done
        assert str(file) in done.stderr and f"{field}: is `" in done.stderr, done.stderr
        file.unlink()
        assert sorted(tmp_path.rglob("*")) == before

    (run,) = plan["runs"]
    in_plan = plan | {"runs": [run | {"id": name}]}
    told("id", in_plan, "simulate", "PLAN", "--out", results)
    told("id", in_plan, "run", "PLAN", "--id", name, "--testbed", testbed, "--results", results)
    told("id", run | {"id": name}, "run", "PLAN", "--testbed", testbed, "--results", results)
    told("id", in_plan, "join", "PLAN", "--id", name, "--hosts", "a,b", "--results", results)
    told("id", in_plan, "attend", "PLAN", "--id", name, "--results", results)
    told("study", plan | {"study": name}, "simulate", "PLAN", "--out", results)
    in_class = run | {"classes": [run["classes"][0] | {"name": name}]}
    told("classes.name", in_class, "run", "PLAN", "--testbed", testbed, "--results", results)
    of_device = [run["devices"][0] | {"name": name}]
    told("devices.name", plan | {"devices": of_device}, "simulate", "PLAN", "--out", results)


LONG = {"duration_s": 3000, "schedulers": "[sstf]"}


def _start(folder, out="results"):
    command = [WEIR, "simulate", folder / "trusted.yml", "--out", folder / out]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_two_at_once_make_each_run_once(tmp_path):
    """This test will simulate one run by two processes: the second waits for the first."""
    (tmp_path / "trusted.yml").write_text(STUDY.format(**LONG))
    results = tmp_path / "results/trusted"
    both = [_start(tmp_path)]
    wait_for(lambda: list(results.glob(".*.partial/run.json")), "the run to begin")
    both.append(_start(tmp_path))
    ended = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    assert "another process carries it out" in ended[1][1]
    assert "1 runs, all valid" in ended[0][0] and "1 runs, all valid, 0 requests" in ended[1][0]
    assert [path.name for path in results.glob(".*")] == [".weir"]
    assert weir("verify", results).returncode == 0


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    """This test will kill a simulation, put folders of a user beside what it left, and simulate again."""
    (tmp_path / "trusted.yml").write_text(STUDY.format(**LONG))
    results = tmp_path / "results/trusted"
    process = _start(tmp_path)
    (left,) = wait_for(lambda: list(results.glob(".*.partial")), "the run to begin")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert (left / ".weir-owner").exists()
    replaced = left.with_suffix(".replaced")
    theirs = [results / ".photos.partial", replaced, results / ".x.parts"]
    for folder in theirs:
        (folder / "inner").mkdir(parents=True)
        (folder / "inner/a.jpg").write_text("precious")
    cleaned = weir("clean", "--results", results, "--parts")
    assert cleaned.returncode == 1
    for folder in theirs:
        assert str(folder) in cleaned.stderr and (folder / "inner/a.jpg").read_text() == "precious"
    assert not left.exists()
    # A folder that has a run's own name is in its way, and stays.
    left.mkdir()
    (left / "a.jpg").write_text("precious")
    replaced.rename(tmp_path / "away")
    done = weir("simulate", tmp_path / "trusted.yml", "--out", tmp_path / "results")
    assert done.returncode == 2 and str(left) in done.stderr and "Move it away" in done.stderr, done
    assert (left / "a.jpg").read_text() == "precious"
    shutil.rmtree(left)
    done = weir("simulate", tmp_path / "trusted.yml", "--out", tmp_path / "results")
    assert done.returncode == 0, done.stderr
