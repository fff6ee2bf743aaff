"""Callback `weir`: a study's progress for people; everything else stays quiet unless -v is given."""

# ruff: noqa: D102 -- the hooks are explained by CallbackBase.

import atexit
import json
import os
import sys
import threading
import time

from ansible.plugins.callback.default import CallbackModule as DefaultCallback

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
except ImportError:  # Another environment's Ansible: then there are lines and no bar.
    Progress = None

DOCUMENTATION = """
name: weir
type: stdout
author: The weir developers
short_description: Progress of a study
description:
  - On a terminal a bar with the time left, elsewhere a line for each run.
  - Failures in full, and what debug tasks say.
  - Where the time went at the end.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""

#: Time that a run takes besides its own length, in seconds, until runs have shown what it is.
FIRST_GUESS_S = 2.0
TICK_S = 0.5
#: In place of a host: runs that several carry out at once.
TOGETHER = "together"
#: What may become of a run, and the word for it.
STATUSES = {
    "valid": "valid",
    "invalid": "INVALID",
    "failed": "FAILED",
    "present": "done before",
    "skipped": "skipped",
}


class CallbackModule(DefaultCallback):
    """See DOCUMENTATION."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "weir"

    def __init__(self):
        super().__init__()
        self._runs = Runs()
        self._simulated = Simulated()
        self._bar = None
        self._folder = ""
        # Nothing has begun that could be interrupted.
        self._ended = True
        self._pid = os.getpid()

    def _say(self, text, error=False):
        if self._bar:
            self._bar.say(text)
        else:
            self._display.display(text, color="red" if error else None, stderr=error)

    # -- what is quiet --------------------------------------------------------------------------------

    def v2_playbook_on_play_start(self, play):
        if self._display.verbosity:
            super().v2_playbook_on_play_start(play)

    def v2_runner_on_skipped(self, result):
        if self._display.verbosity:
            super().v2_runner_on_skipped(result)

    def v2_runner_item_on_skipped(self, result):
        if self._display.verbosity:
            super().v2_runner_item_on_skipped(result)

    def v2_playbook_on_include(self, included_file):
        if self._display.verbosity:
            super().v2_playbook_on_include(included_file)

    def v2_runner_retry(self, result):
        if self._display.verbosity:
            super().v2_runner_retry(result)

    # -- what is told ---------------------------------------------------------------------------------

    def v2_playbook_on_start(self, playbook):
        atexit.register(self._interrupted)
        if self._display.verbosity:
            super().v2_playbook_on_start(playbook)

    def v2_playbook_on_task_start(self, task, is_conditional):
        if self._display.verbosity:
            super().v2_playbook_on_task_start(task, is_conditional)
        self._ended = False
        self._end_runs()
        if _carries_out_runs(task) and self._runs.planned:
            self._runs.begin()
            self._show(self._runs)
        elif _is_of_joint_runs(task) and self._runs.planned:
            # A run is several tasks; the time between them is that of the runs, too.
            self._runs.go_on()
        elif _simulates_runs(task) and self._simulated.total:
            self._simulated.begin()
            self._show(self._simulated)

    def v2_runner_on_ok(self, result):
        facts = result.result.get("ansible_facts", {})
        if "preflight_runs" in facts:
            self._turn_to(facts["preflight_folder"])
            self._runs.plan(result.host.get_name(), facts["preflight_runs"])
            self._simulated.plan(facts)
            if facts.get("preflight_joint"):
                self._runs.plan(TOGETHER, facts["preflight_joint"])
        if self._display.verbosity:
            super().v2_runner_on_ok(result)
        elif result.task.action.rpartition(".")[2] == "debug":
            message = result.result.get("msg", "")
            self._say("\n".join(message) if isinstance(message, list) else str(message))
        elif _is_of_joint_runs(result.task):
            self._tell_joint(result)

    def v2_runner_item_on_ok(self, result):
        if self._display.verbosity:
            super().v2_runner_item_on_ok(result)
        if _carries_out_runs(result.task):
            self._tell_run(result)

    def v2_runner_item_on_failed(self, result):
        if self._display.verbosity:
            super().v2_runner_item_on_failed(result)
        elif _carries_out_runs(result.task):
            self._tell_run(result)
        else:
            self._tell_failure(result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if self._display.verbosity:
            super().v2_runner_on_failed(result, ignore_errors)
        # Of a loop, each item has been told already.
        elif not ignore_errors and not (result.task.loop and "results" in result.result):
            self._tell_failure(result)

    def v2_runner_on_unreachable(self, result):
        if self._display.verbosity:
            super().v2_runner_on_unreachable(result)
        else:
            self._tell_failure(result)

    def v2_playbook_on_stats(self, stats):
        self._end_runs()
        self._ended = True
        if self._display.verbosity:
            super().v2_playbook_on_stats(stats)
        self._turn_to("")

    # -- how it is told -------------------------------------------------------------------------------

    def _show(self, runs):
        if Progress and sys.stdout.isatty() and not self._display.verbosity:
            self._bar = Bar(runs)

    def _turn_to(self, folder):
        """Another study begins, or none: where the time of the last one went."""
        if folder == self._folder:
            return
        if self._runs.done:
            self._say(self._runs.summary())
        self._folder, self._runs, self._simulated = folder, Runs(), Simulated()

    def _tell_run(self, result):
        outcome = Outcome(result.result)
        line = self._runs.add(result.host.get_name(), result.result["item"], outcome)
        if outcome.error or not self._bar:
            self._say(line, error=bool(outcome.error))
        elif outcome.status in ("invalid", "skipped"):
            self._bar.say(line)
        if self._bar:
            self._bar.update()

    def _tell_joint(self, result):
        """Reports a failed part at once, and the outcome of the run when its parts are joined."""
        if result.task.register == "joint_runs_part" and result.result.get("rc", 0) not in (0, 3):
            self._tell_failure(result)
        elif result.task.register == "joint_runs_joined":
            command = str(result.result.get("cmd", ""))
            item = next((run for run in self._runs.planned[TOGETHER] if run["id"] in command), None)
            if item:
                outcome = Outcome(result.result)
                self._say(self._runs.add(TOGETHER, item, outcome), error=bool(outcome.error))

    def _tell_failure(self, result):
        where = "" if result.host.get_name() == "localhost" else f"{result.host.get_name()}: "
        role, _, name = result.task.get_name().rpartition(" : ")
        title = f"{where}{role or 'playbook'} failed: {name}"
        text = "\n".join(_failure(result.result))
        self._say(f"{title}\n{_indented(text)}", error=True)

    def _end_runs(self):
        if self._runs.running:
            self._runs.end()
        if self._bar:
            self._bar.stop()
            self._bar = None

    def _interrupted(self):
        if self._ended or os.getpid() != self._pid:
            return
        if self._bar:
            self._bar.stop()
        print("interrupted: the same command continues with the missing runs; make clean removes the devices")


class Outcome:
    """What `weir run --json` said about a run, or why it said nothing."""

    def __init__(self, result):
        self.status, self.requests, self.timing, self.broken, self.error = "failed", 0, {}, [], ""
        self.reason = ""
        try:
            said = json.loads(result.get("stdout") or "null")
        except ValueError:
            said = None
        if result.get("rc") in (0, 3) and isinstance(said, dict):
            self.status = said["status"]
            self.requests = said.get("requests", 0)
            self.timing = said.get("timing", {})
            self.broken = said.get("broken", [])
            self.reason = said.get("reason", "")
        else:
            self.error = "\n".join(_failure(result)) or "it ended without saying why"

    def seconds(self, part):
        """Seconds of a part of the run: setup, measured or teardown."""
        return self.timing.get(f"{part}_s", 0.0)

    @property
    def whole_s(self):
        """Seconds of the whole run."""
        return sum(self.seconds(part) for part in ("setup", "measured", "teardown"))

    def __str__(self):
        if self.error:
            return f"FAILED\n{_indented(self.error)}"
        if self.status == "present":
            return "done before"
        if self.status == "skipped":
            return f"skipped: {self.reason}"
        status = f"INVALID ({'; '.join(self.broken)})" if self.broken else self.status
        return f"{status}, {self.requests} requests, {self.seconds('measured'):.1f} s of {self.whole_s:.1f} s"


class Runs:
    """The runs that are planned, and what became of those that are done."""

    def __init__(self):
        self.planned = {}
        self.done = []
        self.running = False
        self._left = {}
        self._began_s = self._item_began_s = self._wall_s = 0.0

    @property
    def total(self):
        """Number of planned runs."""
        return sum(len(runs) for runs in self.planned.values())

    def plan(self, host, runs):
        """Notes what a host has to do. A study that adds repetitions does so several times."""
        known = self.planned.get(host, [])
        self.planned[host] = known[: len(known) - len(self._left.get(host, []))] + runs
        self._left[host] = [run["seconds"] for run in runs]

    def begin(self):
        """The first run begins."""
        self.running = True
        self._began_s = self._item_began_s = time.monotonic()

    def go_on(self):
        """Runs are carried out in several steps: begins with the first."""
        if not self._began_s:
            self.begin()
        self.running = True

    def end(self):
        """The last run has ended."""
        self.running = False
        self._wall_s += time.monotonic() - self._began_s

    def add(self, host, item, outcome):
        """Notes a run; returns its line."""
        self.done.append((item, outcome))
        self._left[host] = self._left[host][1:]
        self._item_began_s = time.monotonic()
        width = len(str(self.total))
        levels = " ".join(f"{name}={level}" for name, level in item["levels"].items())
        where = f" on {host}" if len(self.planned) > 1 and host != TOGETHER else ""
        where += medium(item.get("media", {}))
        head = f"[{len(self.done):{width}}/{self.total}] {item['id']} repetition {item['repetition']}"
        left = "" if len(self.done) == self.total else f", {duration(self.left_s())} left"
        return f"{head} {levels}{where}: {outcome}{left}"

    def left_s(self):
        """Time left, in seconds: planned lengths, and what runs took besides so far."""
        known = [outcome.whole_s - item["seconds"] for item, outcome in self.done if outcome.timing]
        besides_s = max(0.0, sum(known) / len(known)) if known else FIRST_GUESS_S
        each = [sum(seconds) + besides_s * len(seconds) for seconds in self._left.values()]
        return max(0.0, max(each, default=0.0) - (time.monotonic() - self._item_began_s))

    def summary(self):
        """How many runs of which status, and where their time went."""
        statuses = [outcome.status for _, outcome in self.done]
        counts = ", ".join(
            f"{statuses.count(status)} {text}" for status, text in STATUSES.items() if status in statuses
        )
        host_s = self._wall_s * len([runs for runs in self.planned.values() if runs])
        measured_s = sum(outcome.seconds("measured") for _, outcome in self.done)
        around_s = sum(outcome.whole_s for _, outcome in self.done) - measured_s
        parts = [
            f"{100 * seconds / host_s:.1f} % {what} ({seconds:.1f} s)"
            for what, seconds in (
                ("measuring", measured_s),
                ("preparing and undoing", around_s),
                ("orchestrating", host_s - measured_s - around_s),
            )
        ]
        return f"{len(self.done)} runs in {duration(self._wall_s)}: {counts}; {', '.join(parts)}"


class Simulated:
    """The runs in virtual time, which one process carries out: those are done whose folders are there."""

    def __init__(self):
        self._ids = set()
        self._folder = ""
        self._began_s = 0.0
        self._before = 0

    @property
    def total(self):
        """Number of planned runs."""
        return len(self._ids)

    @property
    def done(self):
        """Those that are whole. On other hosts nothing is seen of them before they are fetched."""
        there = os.listdir(self._folder) if os.path.isdir(self._folder) else ()
        return [name for name in there if name in self._ids]

    def plan(self, facts):
        """Notes what a host has to do."""
        self._ids |= {run["id"] for run in facts.get("preflight_simulated", [])}
        self._folder = facts.get("preflight_folder", "")

    def begin(self):
        """The first run begins. Runs that are done by then took no time."""
        self._began_s = time.monotonic()
        self._before = len(self.done)

    def left_s(self):
        """Time left, in seconds, if the rest is as the runs since the beginning; None before the first."""
        done = len(self.done)
        since = done - self._before
        return (time.monotonic() - self._began_s) * (self.total - done) / since if since > 0 else None


class Bar:
    """A bar on the terminal that moves while runs are being carried out."""

    def __init__(self, runs):
        self._runs = runs
        left = TextColumn("{task.fields[left]}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), left)
        # Refreshed by our own thread, which sleeps while Ansible forks its workers.
        self._progress = Progress(*columns, console=Console(), auto_refresh=False)
        self._task = self._progress.add_task("runs", total=runs.total, left="")
        self._progress.start()
        self.update()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._thread.start()

    def _tick(self):
        while not self._stop.wait(TICK_S):
            self.update()

    def update(self):
        """Shows what is done and the time left."""
        done, seconds = len(self._runs.done), self._runs.left_s()
        left = "" if seconds is None or done == self._runs.total else f"{duration(seconds)} left"
        self._progress.update(self._task, completed=done, left=left, refresh=True)

    def say(self, text):
        """Prints a line above the bar."""
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stop(self):
        """Leaves the bar with the runs that are done now."""
        self._stop.set()
        self._thread.join()
        self.update()
        self._progress.stop()


def medium(media):
    """What a run is carried out on, from texts by class; all of them only where they differ."""
    if len(set(media.values())) > 1:
        return f" ({', '.join(f'{name}: {text}' for name, text in media.items())})"
    return f" ({next(iter(media.values()))})" if media else ""


def duration(seconds):
    """Seconds as people say them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _simulates_runs(task):
    role = getattr(task, "_role", None)
    return role is not None and role.get_name() == "simulate" and task.action.endswith("command")


def _is_of_joint_runs(task):
    role = getattr(task, "_role", None)
    return role is not None and role.get_name() == "joint_runs" and task.action.endswith(("command", "shell"))


def _carries_out_runs(task):
    role = getattr(task, "_role", None)
    return role is not None and role.get_name() == "runs" and task.action.endswith(".raw")


def _failure(result):
    """Why a task failed, in lines: its message, or what its command wrote."""
    lines = []
    for error in result.get("argument_errors", []):
        lines.append(str(error))
    message = result.get("msg", "")
    texts = [message] if isinstance(message, str) else [str(text) for text in message]
    if not lines and message and message != "non-zero return code":
        lines += [text.rstrip() for text in texts]
    said = result.get("stderr") or (result.get("stdout") if result.get("rc") else "") or ""
    if said.strip() and said.strip() not in lines:
        lines.append(said.rstrip())
    if not lines and result.get("rc"):
        rc = result["rc"]
        lines.append(f"it was ended by signal {-rc}" if rc < 0 else f"exit code {rc}")
    return lines


def _indented(text):
    return "\n".join(f"    {line}" for line in text.splitlines())
