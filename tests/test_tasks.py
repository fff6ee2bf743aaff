"""`weir plan --tasks`: a study in virtual time as commands for a job scheduler, whose workers may die."""

import shlex
import signal
import subprocess
import time

from support import ROOT, weir
from test_simulate import STUDY, contents

WEIR = ROOT / "target/release/weir"


def commands(study, out, size=1, *options):
    """The argument lists that `weir plan --tasks` prints."""
    done = weir("plan", study, "--tasks", size, "--missing", out, *options)
    assert done.returncode == 0, done.stderr
    found = [shlex.split(line) for line in done.stdout.splitlines()]
    assert all(words[:2] == ["weir", "simulate"] for words in found)
    return [[WEIR, *words[1:]] for words in found]


def test_commands_are_the_whole_study_and_are_resumed(tmp_path):
    study, out = tmp_path / "trial.yml", tmp_path / "with space"
    study.write_text(STUDY)
    assert weir("simulate", study, "--out", tmp_path / "at-once").returncode == 0
    assert [len(commands(study, out, size)) for size in (1, 3, 100)] == [8, 3, 1]
    first = commands(study, out, 3)[0]
    assert subprocess.run(first, capture_output=True, check=False).returncode == 0
    assert len(list((out / "trial").glob("*/run.json"))) == 3
    left = commands(study, out)
    assert len(left) == 5
    for command in left:
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert contents(out / "trial") == contents(tmp_path / "at-once/trial")
    assert commands(study, out) == []
    # A command that is carried out again does nothing.
    again = subprocess.run(first, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and " 0 requests simulated" in again.stdout


def test_workers_that_are_killed_lose_nothing(tmp_path):
    """Two workers at a time on the same folder; half of them are killed at some moment of their run."""
    study, out = tmp_path / "trial.yml", tmp_path / "results"
    study.write_text(STUDY.replace("duration_s: 20", "duration_s: 60"))
    assert weir("simulate", study, "--out", tmp_path / "at-once").returncode == 0
    killed = 0
    for attempt in range(40):
        waiting = commands(study, out)
        if not waiting:
            break
        pair = [
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for command in waiting[:2]
        ]
        if attempt % 2 == 0:
            time.sleep(0.01 * (attempt % 7))
            for worker in pair:
                worker.send_signal(signal.SIGKILL)
                killed += 1
        for worker in pair:
            worker.wait()
    assert commands(study, out) == [] and killed >= 4
    assert contents(out / "trial") == contents(tmp_path / "at-once/trial")
    # What the dead left is gone.
    assert not [path.name for path in (out / "trial").iterdir() if path.name.endswith(".partial")]


def test_what_cannot_be_is_refused(tmp_path):
    study = tmp_path / "trial.yml"
    study.write_text(STUDY)
    done = weir("simulate", study, "--out", tmp_path / "r", "--id", "0123456789ab")
    assert done.returncode == 2 and "no such run in virtual time" in done.stderr
    assert not (tmp_path / "r").exists()
    on_devices = weir("plan", "data-center-limits", "--tasks", 1)
    assert on_devices.returncode == 2 and "Ansible" in on_devices.stderr
    assert weir("plan", study, "--tasks", 0).returncode == 2
