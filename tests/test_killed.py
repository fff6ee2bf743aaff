"""What is killed in the middle: the same command again goes on, and nothing is left behind."""

import json
import os
import signal
from pathlib import Path

from support import PATIENCE_S, hidden, wait_for

THREE = "[none, mq-deadline, kyber]"


def _started(bench, study):
    """Starts a playbook and waits until its second run is being carried out."""
    process = bench.start(study, "--skip-tags", "report,verdicts")
    wait_for(lambda: bench.run_folders(study.stem) or process.poll() is not None, "the first run")
    assert process.poll() is None, bench.log.read_text()
    first = dict(bench.run_folders(study.stem))
    pid = wait_for(bench.living_run, "the second run")
    return process, pid, {name: _mtimes(folder) for name, folder in first.items()}


def _mtimes(folder):
    return {file: file.stat().st_mtime_ns for file in sorted(folder.rglob("*"))}


def _goes_on(bench, study, first, total=3):
    """Carries the study out again: all is there, what was there is untouched, nothing is left."""
    bench.start(study, "--skip-tags", "report,verdicts")
    return _went_on(bench, study, first, total)


def _went_on(bench, study, first, total):
    code, log = bench.processes[-1].wait(PATIENCE_S), bench.log.read_text()
    assert code == 0, log
    folders = bench.run_folders(study.stem)
    assert len(folders) == total
    for name, mtimes in first.items():
        assert _mtimes(folders[name]) == mtimes
        assert f"] {name} " not in log
    assert hidden(bench.results / study.stem) == []
    assert bench.leftovers() == []
    return log


def test_the_playbook_is_killed(bench):
    """This test will kill -9 ansible-playbook early in a run: the next waits for the run and keeps it."""
    study = bench.study()
    process, pid, first = _started(bench, study)
    # Stopped until it is waited for: a run may be over sooner than a playbook has begun.
    os.kill(pid, signal.SIGSTOP)
    try:
        process.send_signal(signal.SIGKILL)
        process.wait()
        bench.start(study, "--skip-tags", "report,verdicts")
        wait_for(lambda: "its result counts" in bench.log.read_text(), "the next playbook to see the run")
    finally:
        os.kill(pid, signal.SIGCONT)
    log = _went_on(bench, study, first, total=2)
    assert "done before" in log


def test_the_playbook_and_its_run_are_killed(bench):
    """This test will kill -9 ansible-playbook and weir run together, mounts and devices being in use."""
    study = bench.study(schedulers=THREE, duration_s=2)
    process, pid, first = _started(bench, study)
    process.send_signal(signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    process.wait()
    _goes_on(bench, study, first)


def test_a_run_is_killed(bench):
    """This test will kill -9 one weir run: the others have their turn, and the study says which failed."""
    study = bench.study(schedulers=THREE, duration_s=2)
    process, pid, first = _started(bench, study)
    os.kill(pid, signal.SIGKILL)
    assert process.wait(120) != 0
    log = bench.log.read_text()
    assert "FAILED" in log and "signal 9" in log
    assert "1 of 3 runs failed" in log
    done = bench.run_folders(study.stem)
    assert len(done) == 2, log
    assert bench.leftovers() == []
    _goes_on(bench, study, {name: _mtimes(folder) for name, folder in done.items()} | first)


def test_the_server_of_a_device_is_killed(bench):
    """This test will kill -9 a modelled disk under a run: nothing hangs, and the study cleans up."""
    study = bench.study(schedulers=THREE, duration_s=2)
    process, _, first = _started(bench, study)
    marks = (str(bench.state / "specs/shared.yml"), "serve")
    servers = [
        int(entry.name)
        for entry in Path("/proc").glob("[0-9]*")
        if all(mark in _words(entry) for mark in marks)
    ]
    assert len(servers) == 1
    os.kill(servers[0], signal.SIGKILL)
    assert process.wait(120) != 0
    assert bench.leftovers() == []
    log = bench.log.read_text()
    assert "runs failed" in log or "1 of 3" in log
    # The run under which it died is absent, or there with its errors, which make it invalid.
    for name in set(bench.run_folders(study.stem)) - set(first):
        verdict = json.loads((bench.run_folders(study.stem)[name] / "verdict.json").read_text())
        assert verdict["status"] == "invalid"


def _words(process):
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
