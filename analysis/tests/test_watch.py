"""A study that is watched while it runs: the shipped sample, run by run."""

import fcntl
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest
import synthetic
from polars.testing import assert_frame_equal
from rich.console import Console

from weir import locate, progress, watch
from weir.cli import main
from weir.errors import InputError
from weir.progress import Follower

#: A busy machine takes long to start a process that yields to all others.
PATIENCE_S = 240
NARROW = 40


class Growing:
    """A folder to which runs of the sample are published one by one, in the plan's order."""

    def __init__(self, folder: Path) -> None:
        self.sample, self.folder = synthetic.virtual_sample(folder.with_name("sample")), folder
        folder.mkdir()
        shutil.copy(self.sample / "plan.json", folder)
        plan = json.loads((folder / "plan.json").read_text())
        self.ids = [entry["id"] for entry in sorted(plan["runs"], key=lambda entry: entry["order"])]
        self.waiting = list(self.ids)

    def begin(self) -> Path:
        """The partial folder of the next run, as it is while the run is made."""
        partial = self.folder / f".{self.waiting[0]}.partial"
        partial.mkdir()
        shutil.copy(self.sample / self.waiting[0] / "run.json", partial)
        return partial

    def publish(self) -> Path:
        """The next run is finished."""
        id = self.waiting.pop(0)
        partial = self.folder / f".{id}.partial"
        # metrics.json is derived afterwards.
        ignored = shutil.ignore_patterns("metrics.json")
        shutil.copytree(self.sample / id, partial, dirs_exist_ok=True, ignore=ignored)
        return partial.rename(self.folder / id)

    def state(self) -> dict[str, int]:
        """Every file and folder with its time of change."""
        return {str(path): path.stat().st_mtime_ns for path in [self.folder, *self.folder.rglob("*")]}


@pytest.fixture
def growing(tmp_path) -> Growing:
    return Growing(tmp_path / "results" / "quick")


@pytest.fixture(autouse=True)
def not_idle(monkeypatch):
    """The process of the tests does not yield to all others."""
    monkeypatch.setattr(watch, "be_idle", lambda: None)


def text_of(found) -> str:
    return "\n".join(f"{name}: {text}" for name, text in watch.lines(found))


def test_a_study_grows_run_by_run_and_each_run_is_read_once(growing, monkeypatch):
    read = []
    load = progress.load_run
    monkeypatch.setattr(
        progress, "load_run", lambda folder, *rest: read.append(folder) or load(folder, *rest)
    )
    follower = Follower(growing.folder)
    found = follower.progress()
    assert (found.finished, found.planned, found.is_complete, found.is_paused) == (0, 12, False, True)
    assert "0 of 12 runs (0 %)" in text_of(found)
    assert "to go on: make study STUDY=quick" in text_of(found)
    for count in range(1, 13):
        growing.begin()
        found = follower.progress()
        assert (list(found.running), found.finished) == ([growing.waiting[0]], count - 1)
        assert f"(run {growing.waiting[0]}, " in text_of(found)
        published = growing.publish()
        before = growing.state()
        found = follower.progress()
        assert growing.state() == before, "the study's folder was changed"
        assert (found.finished, found.unread, found.damaged, found.running) == (count, 0, {}, {})
        assert read[-1] == published
        assert found.is_complete == (count == 12)
    assert len(read) == 12
    assert follower.progress().table.equals(found.table)


def test_runs_with_one_label_are_a_study_of_their_own(tmp_path, capsys):
    small = {"architectures": ("integrated",), "loads": (1,), "repetitions": 2, "duration_s": 1.0}
    folder = synthetic.write_study(tmp_path / "quick", label="old", **small)
    other = synthetic.write_study(tmp_path / "other" / "quick", label="new", **small)
    shutil.copy(other / "plan@new.json", folder)
    begun = next(path.name for path in other.iterdir() if (path / "run.json").exists())
    (folder / f".{begun}.partial").mkdir()
    done = Follower(tmp_path / "quick@old").progress()
    assert (done.finished, done.planned, done.is_complete) == (4, 4, True)
    found = Follower(tmp_path / "quick@new").progress()
    assert (found.finished, found.planned, list(found.running)) == (0, 4, [begun])
    both = Follower(folder).progress()
    assert (both.finished, both.planned) == (4, 8)
    (folder / f".{begun}.partial").rmdir()
    assert main(["watch", "quick@new", "--once", "--results", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "0 of 4 runs (0 %)" in said and "to go on: make study STUDY=quick LABEL=new" in said
    assert main(["watch", str(tmp_path / "quick@new"), "--once"]) == 0
    assert "0 of 4 runs" in capsys.readouterr().out
    assert main(["watch", "quick@6.6", "--once", "--results", str(tmp_path)]) == 2
    assert "has no runs with label `6.6`" in capsys.readouterr().err


def test_first_effects_are_shown_with_intervals_and_as_interim(growing):
    follower = Follower(growing.folder)
    seen = []
    while growing.waiting:
        growing.publish()
        found = follower.progress()
        seen.append(text_of(found))
        is_interim = "% CI" in seen[-1] and not found.is_complete
        assert ("Conclude when all runs are finished" in seen[-1]) == is_interim
    assert "none yet" in seen[0]
    interim = [text for text in seen[:-1] if re.search(r"integrated takes .* \(95 % CI .*, n = 2", text)]
    assert interim
    assert not any("settled" in text for text in seen[:-1])
    assert "settled" in seen[-1]


def test_a_half_copied_run_is_read_once_it_is_whole(growing):
    follower = Follower(growing.folder)
    growing.publish()
    id = growing.waiting.pop(0)
    whole = growing.sample / id
    for name in ("run.json", "manifest.json"):
        folder = growing.folder / id
        folder.mkdir(exist_ok=True)
        shutil.copy(whole / name, folder)
        found = follower.progress()
        assert list(found.damaged) == [id]
        assert (found.finished, len(found.study.runs)) == (2, 1)
        assert "cannot be read: " in text_of(found)
    shutil.copy(whole / "verdict.json", folder)
    (folder / "requests.parquet").write_bytes((whole / "requests.parquet").read_bytes()[:1000])
    assert list(follower.progress().damaged) == [id]
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    found = follower.progress()
    assert (found.damaged, len(found.study.valid_runs)) == ({}, 2)


def test_a_study_is_complete_with_a_damaged_run_but_not_with_a_copy_in_progress(growing):
    while len(growing.waiting) > 1:
        growing.publish()
    folder = growing.folder / growing.waiting[0]
    folder.mkdir()
    shutil.copy(growing.sample / folder.name / "run.json", folder)
    follower = Follower(growing.folder)
    found = follower.progress()
    assert (list(found.damaged), found.is_complete) == ([folder.name], False)
    old = time.time() - 3600
    os.utime(folder, (old, old))
    assert follower.progress().is_complete


def test_a_run_that_is_made_again_is_read_again(growing):
    follower = Follower(growing.folder)
    folder = growing.publish()
    before = follower.progress()
    shutil.rmtree(folder)
    assert follower.progress().finished == 0
    shutil.copytree(growing.sample / folder.name, folder)
    assert_frame_equal(follower.progress().table, before.table, rel_tol=1e-9)


def test_reading_is_shared_out_over_several_looks(growing):
    while growing.waiting:
        growing.publish()
    follower = Follower(growing.folder)
    found = follower.progress(budget_s=0)
    assert found.unread + len(found.study.runs) == 12
    assert found.unread > 0
    assert not found.is_complete
    assert "not read yet" in text_of(found)
    assert follower.progress().is_complete


def test_time_left_is_that_of_the_last_session(growing, monkeypatch):
    """Ten runs: five an hour ago, 1 s each, then five at 20 s each; the last 5 s ago."""
    now = time.time()
    for i in range(10):
        folder = growing.publish()
        at = now - 3600 + i if i < 5 else now - 5 - 20 * (9 - i)
        os.utime(folder / "manifest.json", (at, at))
    monkeypatch.setattr(progress.time, "time", lambda: now)
    assert Follower(growing.folder).progress().left_s == pytest.approx(2 * 20 - 5)


def test_invalid_runs_rules_and_steal_are_told(tmp_path):
    folder = synthetic.write_study(tmp_path / "quick", loads=(0.5,), duration_s=1.0)
    runs = sorted(path.parent for path in folder.glob("*/run.json"))
    for run, share in zip(runs, (0.31, 0.02), strict=False):
        path = run / "observed.json"
        document = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(document | {"stolen": {"of_wanted": share, "of_all": 0.01}}))
    for run in runs[:2]:
        synthetic.set_validity(run, "invalid", "R-LATE", "sent 9 ms late")
    found = Follower(folder).progress()
    text = text_of(found)
    assert "10 valid, 2 invalid, 0 skipped" in text
    assert re.search(
        r"invalid by R-LATE: 2 runs, last: sent 9 ms late \(.*load|invalid by R-LATE: 2 runs", text
    )
    assert "31.0 % at most" in text
    assert "2 without usable data" in text


def test_a_study_of_numbers_shows_its_cells(tmp_path):
    folder = synthetic.write_study(
        tmp_path / "loads", schedulers=("none",), architectures=("integrated",), duration_s=1.0
    )
    text = text_of(Follower(folder).progress())
    assert re.search(
        r"text, .*response time \(ms\): [\d.]+ for load 0.5 \(95 % CI [\d.]+ to [\d.]+, n = 3\)", text
    )


def test_an_unknown_study_is_named(tmp_path, capsys):
    assert main(["watch", "quikc", "--results", str(tmp_path), "--once"]) == 2
    error = capsys.readouterr().err
    assert "quikc" in error
    assert "there is no such folder" in error
    assert main(["watch", str(locate.SAMPLE / "quick"), "--once", "--page", str(tmp_path)]) == 2
    assert "name another file with --page" in capsys.readouterr().err
    # A folder without a plan.
    (tmp_path / "empty").mkdir()
    assert main(["watch", "empty", "--results", str(tmp_path)]) == 2


def test_a_plan_that_stays_unreadable_is_an_error(growing, monkeypatch):
    monkeypatch.setattr(watch, "INTERVAL_S", 0.01)
    monkeypatch.setattr(watch, "_PATIENCE_S", 0.02)
    follower = Follower(growing.folder)
    begun = follower.progress()
    (growing.folder / "plan.json").write_text("{")
    with pytest.raises(InputError, match=r"plan\.json"):
        list(watch._follow(follower, begun, None))


def test_a_page_refreshes_itself_until_the_study_is_complete(growing, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "INTERVAL_S", 0.01)
    growing.publish()
    page = tmp_path / "watch.html"
    follower = Follower(growing.folder)
    watch._shown(follower.progress(), page)
    assert '<meta http-equiv="refresh"' in page.read_text()
    assert "1 of 12 runs (8 %)" in page.read_text()
    while growing.waiting:
        growing.publish()
    console = Console(width=NARROW, file=io.StringIO())
    assert watch.watch(growing.folder, console, page=page) == 0
    assert "refresh" not in page.read_text()
    assert "complete" in page.read_text()


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "weir", "watch", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    # A width in the environment would be that of the terminal of the tests.
    return {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")} | more


def test_a_log_gets_a_line_for_each_run_and_ends_with_the_study(growing):
    growing.publish()
    process = subprocess.Popen(
        command(growing.folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    first = process.stdout.readline()
    assert first.startswith("study: quick: ")

    def publish() -> None:
        while growing.waiting:
            growing.publish()
            time.sleep(0.2)

    thread = threading.Thread(target=publish)
    thread.start()
    out, error = process.communicate(timeout=PATIENCE_S)
    thread.join()
    assert (process.returncode, error) == (0, "")
    assert "12 of 12 runs (100 %), complete" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("colour", [True, False])
def test_a_narrow_terminal_and_ctrl_c(growing, colour):
    for _ in range(8):
        growing.publish()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, NARROW, 0, 0))
    process = subprocess.Popen(
        command(growing.folder), stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment(TERM="xterm-256color", **({} if colour else {"NO_COLOR": "1"})),
    )  # fmt: skip
    os.close(theirs)
    shown = read_until(ours, "8 of 12")
    growing.publish()
    shown += read_until(ours, "9 of 12")
    process.send_signal(signal.SIGINT)
    shown += read_until(ours, None)
    assert process.wait(PATIENCE_S) == 130
    assert "Traceback" not in shown
    # The cursor is back.
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert not re.search(r"\x1b\[[\d;]*3\dm", shown) or colour
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert max(len(line.rstrip()) for line in re.split(r"[\r\n]+", plain)) <= NARROW


def read_until(terminal: int, wanted: str | None) -> str:
    """What a terminal got until it shows a text, or until it is closed."""
    found, end = "", time.monotonic() + PATIENCE_S
    while wanted is None or wanted not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found):
        assert time.monotonic() < end, f"never shown: {wanted}; {found}"
        if select.select([terminal], [], [], 1)[0]:
            try:
                found += os.read(terminal, 65536).decode()
            except OSError:
                # Its last process ended.
                break
    return found
