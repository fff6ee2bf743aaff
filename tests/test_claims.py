"""Claims: of several playbooks on one folder of results one goes on, and the others touch nothing."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from support import PATIENCE_S, load_plugin

claim, controller, owner = (
    load_plugin("modules/weir_claim"),
    load_plugin("lookup/controller"),
    load_plugin("test/owner"),
)
#: Whether a claim of this machine may be replaced.
DEAD = {"free": lambda found: not claim.alive(found)}
ROUNDS = 50

SIMULATED = """\
name: {name}
question: Does the machinery work?
testbed: simulator
seed: 7
repetitions: 2
warmup_s: 0.2
duration_s: 1
storage: {{profile: hdd-7200, heads: 2, size_mib: 128}}
classes:
  text: {{workload: poisson-text, clients: 40}}
factors:
  scheduler: [fcfs, sstf]
"""


def _me(**fields):
    return controller.LookupModule().run([])[0] | {"study": "mine"} | fields


def _contend(file, start, queue):
    """A process that claims at the same moment as others, and waits until all have tried."""
    start.wait()
    try:
        queue.put(
            claim.take(
                file, _me(pid=os.getpid(), started_ticks=controller.started_ticks(os.getpid())), **DEAD
            )
        )
    except claim.Refused:
        queue.put(False)
    start.wait()


@pytest.mark.parametrize("stale", [False, True])
def test_of_several_at_the_same_moment_one_has_it(tmp_path, stale):
    """This test will have four processes claim one folder 50 times, which nobody or a dead process has."""
    context = multiprocessing.get_context("fork")
    for number in range(ROUNDS):
        file = tmp_path / f"{number}/owner.json"
        if stale:
            file.parent.mkdir()
            file.write_text(json.dumps(_me(started_ticks=1)))
        start, queue = context.Barrier(4), context.Queue()
        rivals = [context.Process(target=_contend, args=(file, start, queue)) for _ in range(4)]
        for rival in rivals:
            rival.start()
        took = [queue.get(timeout=60) for _ in rivals]
        for rival in rivals:
            rival.join()
        assert sum(took) == 1, number
        assert json.loads(file.read_text())["pid"] in [rival.pid for rival in rivals]
        assert os.listdir(file.parent) == ["owner.json"]


def test_a_claim_is_given_up_by_its_owner_alone(tmp_path):
    file, mine = tmp_path / "owner.json", _me()
    assert claim.take(file, mine, **DEAD) and not claim.take(file, mine, **DEAD)
    other = mine | {"pid": os.getppid(), "started_ticks": controller.started_ticks(os.getppid())}
    with pytest.raises(claim.Refused, match=f"study mine \\(process {os.getpid()}\\)"):
        claim.take(file, other, **DEAD)
    assert not claim.give_up(file, other) and file.exists()
    assert claim.give_up(file, mine) and not file.exists() and not claim.give_up(file, mine)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', "{}"])
def test_a_claim_that_cannot_be_read_is_of_nobody_that_lives(tmp_path, text):
    file = tmp_path / "owner.json"
    file.write_text(text)
    assert claim.take(file, _me(), **DEAD)


def test_a_zombie_is_dead():
    """This test will end a process and not wait for it."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    ticks = controller.started_ticks(child.pid)
    found = _me(pid=child.pid, started_ticks=ticks)
    end = time.monotonic() + 30
    while claim.alive(found) and time.monotonic() < end:
        time.sleep(0.02)
    assert os.path.exists(f"/proc/{child.pid}")
    assert not claim.alive(found) and not owner.living(found, _me())
    child.wait()


def test_of_two_playbooks_the_second_touches_nothing(dry_bench):
    """This test will start two playbooks on one folder of results at the same moment."""
    study = dry_bench.folder / "both.yml"
    study.write_text(SIMULATED.format(name="both"))
    first = dry_bench.start(study, "--skip-tags", "report")
    log = dry_bench.log.rename(dry_bench.folder / "log-of-first")
    second = dry_bench.start(study, "--skip-tags", "report")
    codes = [first.wait(PATIENCE_S), second.wait(PATIENCE_S)]
    texts = [" ".join(file.read_text().split()) for file in (log, dry_bench.log)]
    # On a busy machine the first may have ended before the second began: it has nothing to do then.
    refused = [text for code, text in zip(codes, texts, strict=True) if code != 0]
    assert codes.count(0) >= 1, texts
    assert all("study both (process" in text and "wait for it" in text for text in refused), texts
    assert len(dry_bench.run_folders("both")) == 4
    assert [name for name in os.listdir(dry_bench.results / "both") if name.startswith(".")] in (
        [],
        [".weir"],
    )


def test_results_that_a_living_playbook_claimed_are_left_alone(dry_bench):
    """This test will claim a folder of results for its own process; a claim of a dead one is replaced."""
    study = dry_bench.folder / "claimed.yml"
    study.write_text(SIMULATED.format(name="claimed"))
    file = dry_bench.results / "claimed/.claim.json"
    file.parent.mkdir(parents=True)
    mine = _me(study="another")
    file.write_text(json.dumps(mine))
    code, log = dry_bench.play(study)
    assert code != 0 and f"study another (process {os.getpid()})" in " ".join(log.split()), log
    assert os.listdir(file.parent) == [".claim.json"] and json.loads(file.read_text()) == mine
    file.write_text(json.dumps(mine | {"started_ticks": 1}))
    code, log = dry_bench.play(study, "--skip-tags", "report")
    assert code == 0 and not file.exists() and len(dry_bench.run_folders("claimed")) == 4, log


def test_a_playbook_that_was_killed_leaves_no_claim_that_counts(dry_bench):
    """This test will kill -9 a playbook that has claimed results, and carry the study out again."""
    study = dry_bench.folder / "killed.yml"
    study.write_text(SIMULATED.format(name="killed"))
    process = dry_bench.start(study, "--skip-tags", "report")
    file = dry_bench.results / "killed/.claim.json"
    while not file.exists() and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    # Not waited for yet: it is a zombie.
    code, log = dry_bench.play(study, "--skip-tags", "report")
    process.wait()
    assert code == 0 and len(dry_bench.run_folders("killed")) == 4 and not file.exists(), log
