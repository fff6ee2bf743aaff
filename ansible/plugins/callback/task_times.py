"""Callback `task_times`: where the time of a playbook goes, for whoever wants to make it shorter."""

import json
import os
import time
from pathlib import Path

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: task_times
type: aggregate
author: The weir developers
short_description: Times of tasks and of a study's runs, as JSON
description:
  - Writes the file that the environment variable E(WEIR_TASK_TIMES) names at the end of the playbook; without
    it, nothing.
  - C(tasks) has the name of each task, with its C(hosts), and seconds of wall-clock time (C(wall_s)) from its
    beginning to that of the next task. C(runs) has of each run on devices the C(host), when it was heard of
    (C(at_s), from the beginning of the task), its exit code (C(rc)), and the seconds that its command took
    there (C(command_s)).
  - Enabled by C(ANSIBLE_CALLBACKS_ENABLED=task_times).
"""


class CallbackModule(CallbackBase):
    """See DOCUMENTATION."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "task_times"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self._tasks, self._runs = [], []
        self._began_s = time.monotonic()

    def v2_playbook_on_task_start(self, task, is_conditional):
        """Another task begins, and the one before has ended."""
        now_s = time.monotonic()
        self._end(now_s)
        self._tasks.append({"name": task.get_name(), "began_s": now_s - self._began_s, "hosts": 0})

    def v2_runner_on_start(self, host, task):
        """It begins on a host."""
        if self._tasks:
            self._tasks[-1]["hosts"] += 1

    def v2_runner_item_on_ok(self, result):
        """A run, if the task is the one that carries out runs, has been carried out."""
        said = result.result
        if self._tasks[-1]["name"] != "runs : Make each missing run" or "delta" not in said:
            return
        at_s = time.monotonic() - self._began_s - self._tasks[-1]["began_s"]
        run = {"host": result.host.get_name(), "rc": said["rc"], "at_s": at_s}
        self._runs.append(run | {"command_s": _seconds(said["delta"])})

    v2_runner_item_on_failed = v2_runner_item_on_ok

    def v2_playbook_on_stats(self, stats):
        """The playbook has ended."""
        self._end(time.monotonic())
        if path := os.environ.get("WEIR_TASK_TIMES"):
            text = json.dumps({"tasks": self._tasks, "runs": self._runs}, indent=1)
            Path(path).write_text(text + "\n", encoding="utf-8")

    def _end(self, now_s):
        if self._tasks:
            self._tasks[-1]["wall_s"] = now_s - self._began_s - self._tasks[-1]["began_s"]


def _seconds(delta):
    """Seconds of `H:MM:SS.ffffff`, as ansible.builtin.command says it."""
    hours, minutes, seconds = delta.rpartition(" ")[2].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
