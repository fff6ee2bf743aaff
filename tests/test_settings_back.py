"""Whenever a run is killed, `weir clean` puts back every setting of the host: snapshots are equal.

Alone on the machine: what other tests do to block devices, control groups and namespaces would show, too.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import host_snapshot
import pytest
from support import PATIENCE_S, ROOT, WEIR, wait_for, weir

STUDY = """\
name: settings
question: Is everything put back?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.1
duration_s: 0.5
# A kernel without BPF can still run these tests.
capture: optional
fill_losses: true
storage: {{profile: hdd-7200, heads: 1, size_mib: 320}}
classes:
  one:
    workload: random-4k
    with: {{files.size: {{fixed: {{bytes: 8388608}}}}, arrivals.closed.depth: 2}}
    clients: 1
  two:
    workload: poisson-text
    with: {{files.size: {{fixed: {{bytes: 1048576}}}}, files.count: 8, arrivals.poisson.rate_per_s: 20}}
    clients: 1
factors:
  scheduler: {scheduler}
hold: {{{hold}}}
"""

#: Runs that change different things: a scheduler with tunables, groups and mounts; a policy; memory.
VARIANTS = {
    "groups": {
        "scheduler": '["bfq low_latency=0"]',
        "hold": 'filesystem: ext4, cgroup: {one: "io.max.riops=300", two: "io.max.riops=300"}',
    },
    "raw": {"scheduler": '["mq-deadline fifo_batch=4"]', "hold": "filesystem: raw"},
    "policy": {"scheduler": "[sfq]", "hold": "filesystem: xfs", "live": "live: {policy: fcfs}\n"},
    # Without the class that fio carries out.
    "open": {"scheduler": '["mq-deadline"]', "hold": "filesystem: raw", "without": "one"},
    "memory": {"scheduler": "[kyber]", "hold": "filesystem: ext4, buffered: true, memory_mib: 96"},
}

#: Calls at which a run is killed: those that write a record down, and those that change something.
CALLS = ("rename", "renameat", "renameat2", "mkdir", "mount", "umount2", "rmdir", "unlink", "write", "openat")

pytestmark = pytest.mark.alone


class Variant:
    """One run of one small study, served and planned by the binary itself, so that a kill costs seconds."""

    def __init__(self, bench, name):
        self.bench, self.name = bench, name
        self.folder = bench.folder / name
        self.folder.mkdir()
        fields = VARIANTS[name]
        self.spec = self.folder / "shared.yml"
        self.spec.write_text(
            f"name: shared\nprofile: hdd-7200\nheads: 1\nsize_mib: 320\n{fields.get('live', '')}"
        )
        study = self.folder / "settings.yml"
        text = STUDY.format(scheduler=fields["scheduler"], hold=fields["hold"])
        if "without" in fields:
            text = re.sub(rf"^  {fields['without']}:\n(    .*\n)+", "", text, flags=re.MULTILINE)
        study.write_text(text)
        planned = weir("plan", study, "--json")
        assert planned.returncode == 0, planned.stderr
        (self.folder / "plan.json").write_text(planned.stdout)
        (self.run,) = (run["id"] for run in json.loads(planned.stdout)["runs"])
        device = {"modelled": {"state": str(bench.state / "devices/shared.json")}}
        (self.folder / "testbed.json").write_text(json.dumps({"devices": {"shared": device}}))

    def serve(self):
        """Has the modelled disk of the study."""
        served = weir("serve", self.spec, "--state", self.bench.state / "devices", "--background")
        assert served.returncode == 0, served.stderr

    def start(self, *tracer):
        """Begins the run, whose results are new each time."""
        shutil.rmtree(self.bench.results, ignore_errors=True)
        folder = self.folder
        command = [
            *("run", folder / "plan.json", "--id", self.run, "--testbed", folder / "testbed.json"),
            *("--results", self.bench.results, "--state", self.bench.state, "--json"),
        ]
        return subprocess.Popen(
            [*tracer, WEIR, *map(str, command)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def whole(self, *tracer):
        """Carries the run out to its end; returns the seconds that it took."""
        began = time.monotonic()
        process = self.start(*tracer)
        said = process.communicate(timeout=PATIENCE_S)[0]
        # 3: it was late on a busy machine, which is not what these tests are about.
        assert process.returncode in (0, 3), said
        return time.monotonic() - began

    def calls(self):
        """How often the main thread of a whole run makes each call; empty where there is no strace(1)."""
        if not shutil.which("strace"):
            return {}
        log = self.folder / "calls"
        self.whole("strace", "-qq", "-o", log, "-e", f"trace={','.join(CALLS)}")
        return Counter(re.findall(r"^(\w+)\(", log.read_text(), re.M))


class Killer:
    """Kills runs of all variants in turn, each time somewhere else."""

    def __init__(self, bench, kills):
        self.draw = random.Random(kills)
        # Each is carried out whole before it is killed: a few kills are not worth that of all.
        names = [name for name in VARIANTS if name != "open"] if kills > 8 else ["groups", "policy"]
        self.variants = [Variant(bench, name) for name in names]
        self.seconds, self.calls = {}, {}

    def learn(self, variant):
        """How long a whole run takes, and what it calls."""
        variant.serve()
        self.seconds[variant.name] = variant.whole()
        self.calls[variant.name] = variant.calls()

    def kill(self, number):
        """Begins a run and kills it; returns when that was."""
        variant = self.variants[number % len(self.variants)]
        if variant.name not in self.seconds:
            self.learn(variant)
        else:
            variant.serve()
        calls = self.calls[variant.name]
        # Every second time at a call: records are few among them, and as interesting as all others together.
        if calls and number // len(self.variants) % 2 == 0:
            records = [call for call in calls if call.startswith("rename")]
            call = self.draw.choice([self.draw.choice(records), self.draw.choice(sorted(calls))])
            when = self.draw.randint(1, calls[call])
            process = variant.start(
                *("strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}"),
                *("-e", f"inject={call}:signal=SIGKILL:when={when}"),
            )
            process.communicate(timeout=PATIENCE_S)
            return f"{variant.name}: at {call} number {when} of {calls[call]}"
        process = variant.start()
        after_s = self.draw.uniform(0, 1.05 * self.seconds[variant.name])
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        return f"{variant.name}: after {after_s:.3f} of {self.seconds[variant.name]:.3f} s"


def served_once(variant):
    """Has the loop device served and given back: another program may have left it with few tags."""
    variant.serve()
    cleaned = weir("clean", "--state", variant.bench.state)
    assert cleaned.returncode == 0, cleaned.stderr


def settled(state, before):
    """What differs from a snapshot; what the kernel takes away by itself is waited for."""
    deadline = time.monotonic() + 5
    while True:
        after = host_snapshot.take(state)
        found = host_snapshot.differences(before, after)
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


def others(snapshot, bench):
    """What another weir on this machine has at the moment; its settings are not this test's."""
    found = []
    for name, value in snapshot.items():
        is_mount = name.startswith("proc/1/mountinfo ") and " fuse weir-" in value
        is_group = name.startswith("cgroup ") and "/weir/" in name
        is_loop = name.endswith("/loop/backing_file")
        # A name of a group has no letters but these.
        ours = (str(bench.folder), re.sub("[^A-Za-z0-9]", "-", bench.folder.name))
        if (is_mount or is_group or is_loop) and not any(part in name + value for part in ours):
            found.append(f"{name} {value}")
    return found


def test_a_killed_run_leaves_no_setting_changed(bench):
    """This test will kill -9 runs, as often as WEIR_KILLS says, and compare snapshots of the host."""
    kills = int(os.environ.get("WEIR_KILLS", "5"))
    killer = Killer(bench, kills)
    served_once(killer.variants[0])
    before = host_snapshot.take(bench.state)
    number = disturbed = compared = 0
    failures = []
    while number < kills:
        moment = killer.kill(number)
        cleaned = weir("clean", "--state", bench.state)
        found = settled(bench.state, before)
        if found and not any(str(bench.folder) in line for line in found):
            # Of a kill while others were at work nothing is known: it is done again.
            after = host_snapshot.take(bench.state)
            if others(before, bench) or others(after, bench):
                disturbed, before = disturbed + 1, after
                assert disturbed < 4 * kills + 20, "other programs use devices all the time: run this alone"
                continue
        number += 1
        if cleaned.returncode != 0 or found:
            failures.append(
                f"killed {number}, {moment}: {cleaned.stderr}" + "".join(f"\n  {line}" for line in found)
            )
            print(failures[-1], flush=True)
            # What is left now is counted once.
            before = host_snapshot.take(bench.state)
        compared += len(before)
    print(
        f"{kills} kills ({disturbed} done again, for others were at work), {compared} settings compared "
        f"({len(before)} each), {len(failures)} kills with differences"
    )
    assert not failures, "\n".join(failures)


#: Calls of a server while it makes its devices, and how many of each it makes at least.
SERVING = {"rename": 3, "ioctl": 4, "mkdir": 1, "openat": 30, "write": 12, "link": 1}
#: Calls at which it is killed first. What it has then: a record of the loop device that it will add; the
#: device; a file in it; that recorded; some settings of its queue; all.
FIRST = [("rename", 1), ("ioctl", 3), ("ioctl", 4), ("rename", 2), ("write", 7), ("rename", 3)]


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_killed_server_leaves_no_setting_changed(bench):
    """This test will kill -9 servers of a modelled disk while they make it."""
    kills = max(int(os.environ.get("WEIR_KILLS", "5")) // 5, len(FIRST))
    draw, variant = random.Random(kills), Variant(bench, "raw")
    served_once(variant)
    before = host_snapshot.take(bench.state)
    failures = []
    for number in range(kills):
        if number < len(FIRST):
            call, when = FIRST[number]
        else:
            call = draw.choice(sorted(SERVING))
            when = draw.randint(1, SERVING[call])
        process = subprocess.Popen(
            [
                *("strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}"),
                *("-e", f"inject={call}:signal=SIGKILL:when={when}"),
                *(WEIR, "serve", variant.spec, "--state", bench.state / "devices"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        state = bench.state / "devices/shared.json"
        deadline = time.monotonic() + 5
        while process.poll() is None and time.monotonic() < deadline:
            if state.exists() and (content := json.loads(state.read_text()))["ready"]:
                # It came so far: it is killed while it serves.
                os.kill(content["pid"], signal.SIGKILL)
                break
            time.sleep(0.02)
        # A server that was killed while the kernel asks it about its own device ends only with that.
        cleaned = weir("clean", "--state", bench.state)
        process.wait(PATIENCE_S)
        found = settled(bench.state, before)
        if cleaned.returncode != 0 or found:
            lines = "".join(f"\n  {line}" for line in found)
            failures.append(f"server killed at {call} number {when}: {cleaned.stderr}{lines}")
            before = host_snapshot.take(bench.state)
    print(f"{kills} servers killed, {len(before)} settings compared each, {len(failures)} with differences")
    assert not failures, "\n".join(failures)


def test_a_recording_that_is_killed_leaves_no_setting_changed(bench):
    """This test will kill -9 `weir collect` while it records with a trace instance."""
    variant = Variant(bench, "raw")
    before = host_snapshot.take(bench.state)
    variant.serve()
    device = json.loads((bench.state / "devices/shared.json").read_text())["device"]["path"]
    process = subprocess.Popen(
        [
            *(WEIR, "collect", "--device", device, "--backend", "ftrace"),
            *("--out", bench.folder / "block.parquet", "--state", bench.state),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    tracing = bench.state / "tracing"
    wait_for(lambda: process.poll() is not None or list(tracing.glob("*.json")), "the record of the instance")
    time.sleep(0.3)
    process.kill()
    said = process.communicate(timeout=PATIENCE_S)[0]
    if "trace event" in said:
        pytest.skip(said)
    (record,) = tracing.glob("weir-*.json")
    taken = host_snapshot.take(bench.state)
    assert record.stem in taken["tracing instances"]
    changed = [
        line for line in host_snapshot.differences(before, taken) if line.startswith("sys/kernel/tracing")
    ]
    assert changed == [], "the instance is all that was touched"
    cleaned = weir("clean", "--state", bench.state)
    assert cleaned.returncode == 0, cleaned.stderr
    assert f"undone: trace instance {record.stem}" in cleaned.stdout
    assert settled(bench.state, before) == []


def test_a_snapshot_sees_what_is_changed(bench, tmp_path):
    before = tmp_path / "before.json"
    program = [str(ROOT / ".venv/bin/python"), str(ROOT / "tests/host_snapshot.py")]
    took = subprocess.run([*program, "take", before, "--state", bench.state], check=True, capture_output=True)
    assert int(took.stdout.split()[0]) > 500
    served = weir("serve", Variant(bench, "raw").spec, "--state", bench.state / "devices", "--background")
    assert served.returncode == 0, served.stderr
    after = tmp_path / "after.json"
    subprocess.run([*program, "take", after, "--state", bench.state], check=True)
    compared = subprocess.run(
        [*program, "compare", before, after], capture_output=True, text=True, check=False
    )
    assert compared.returncode == 1
    for part in (
        "backing_file: was None",
        "proc/self/mountinfo",
        "fuse connections",
        "state devices/shared.json",
        "process",
    ):
        assert part in compared.stdout, part
    assert weir("clean", "--state", bench.state).returncode == 0
    assert settled(bench.state, json.loads(before.read_text())) == []
    assert Path(before).stat().st_size > 0
