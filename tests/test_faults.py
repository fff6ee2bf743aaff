"""Whatever fails during a run, `weir clean` leaves the host as it was, and no half a run counts as one.

Each system call of the runner that changes something fails in turn (strace's fault injection), and each
program that it calls, before and after its work. Alone on the machine, as test_settings_back.py is.
"""

import json
import os
import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import host_snapshot
import pytest
from support import PATIENCE_S, weir
from test_settings_back import Variant, served_once, settled

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not shutil.which("strace"), reason="needs strace: its fault injection"),
]

#: What each call that changes something answers when it fails.
ERRORS = {
    "openat": "ENOSPC",
    "write": "ENOSPC",
    "pwrite64": "EIO",
    "fsync": "EIO",
    "fdatasync": "EIO",
    "ftruncate": "ENOSPC",
    "mkdir": "ENOSPC",
    "rename": "ENOSPC",
    "link": "EEXIST",
    "linkat": "EEXIST",
    "unlink": "EIO",
    "rmdir": "EBUSY",
    "mount": "EPERM",
    "umount2": "EBUSY",
    "ioctl": "EIO",
    "flock": "EWOULDBLOCK",
    "fchown": "EPERM",
    "chmod": "EPERM",
    "setxattr": "ENOTSUP",
}
#: openat(2) with one of these makes or changes a file.
CHANGES = re.compile("O_WRONLY|O_RDWR|O_CREAT")
#: ioctl(2) with one of these changes a descriptor only; Rust's library panics if one fails.
OF_DESCRIPTOR = re.compile("FIONBIO|FIOCLEX|TCGETS")


def changing_calls(variant):
    """The calls of a whole run that change something: name and which of its kind, counted from 1."""
    log = variant.folder / "changes"
    variant.whole("strace", "-qq", "-o", log, "-e", f"trace={','.join(ERRORS)}")
    seen, found = {}, []
    for line in log.read_text(errors="replace").splitlines():
        call = line.partition("(")[0]
        if call not in ERRORS:
            continue
        seen[call] = seen.get(call, 0) + 1
        if call == "openat" and not CHANGES.search(line):
            continue
        if call != "ioctl" or not OF_DESCRIPTOR.search(line):
            found.append((call, seen[call], line[:160]))
    return found


def problems(bench, variant, before, process, said):
    """What is wrong after a run in which something failed."""
    found = []
    if process.returncode not in (0, 1, 2, 3):
        found.append(f"exit code {process.returncode}")
    if "panicked" in said:
        found.append("panicked")
    if process.returncode == 1 and "error" not in said.lower():
        found.append("failed without a word")
    if any(path.name == variant.run for path in bench.results.iterdir()) if bench.results.is_dir() else False:
        verified = weir("verify", bench.results / variant.run)
        if verified.returncode != 0:
            found.append(f"a run that is not whole: {verified.stdout}{verified.stderr}")
    cleaned = weir("clean", "--state", bench.state)
    if cleaned.returncode != 0:
        found.append(f"weir clean: {cleaned.stdout}{cleaned.stderr}")
    found.extend(settled(bench.state, before))
    return found


def test_each_call_that_changes_something_fails_in_turn(bench):
    """This test will let system calls of a run fail, WEIR_FAULTS of them or all, one in each run."""
    draw = random.Random(26)
    variants = [Variant(bench, name) for name in ("groups", "policy")]
    served_once(variants[0])
    before = host_snapshot.take(bench.state)
    faults = []
    for variant in variants:
        variant.serve()
        faults.extend((variant, *fault) for fault in changing_calls(variant))
        weir("clean", "--state", bench.state)
    total, wanted = len(faults), os.environ.get("WEIR_FAULTS", "8")
    if wanted != "all":
        faults = draw.sample(faults, min(int(wanted), total))
    failures = []
    for variant, call, when, line in faults:
        variant.serve()
        process = variant.start(
            *("strace", "-qq", "-o", "/dev/null", "-e", f"trace={call}"),
            *("-e", f"inject={call}:error={ERRORS[call]}:when={when}"),
        )
        said = process.communicate(timeout=PATIENCE_S)[0]
        if found := problems(bench, variant, before, process, said):
            failures.append(
                f"{variant.name}: {call} number {when} fails: {line}\n  " + "\n  ".join([*found, said])
            )
            print(failures[-1], flush=True)
            before = host_snapshot.take(bench.state)
    print(f"{len(faults)} of {total} calls failed in turn, {len(failures)} with something left")
    assert not failures, "\n".join(failures)


#: A program that fails: before it has done anything, or after it has done all.
PROGRAM = """\
#!/bin/sh
# Fails once it is called for the {number}th time.
count=$(cat '{counter}' 2>/dev/null || echo 0)
count=$((count + 1))
echo "$count" >'{counter}'
[ "$count" -eq {number} ] || exec {real} "$@"
{work}
echo 'this program was made to fail' >&2
exit 1
"""


def with_disk(bench, folder):
    """A disk of the inventory for a run: a loop device of this test with a stable name."""
    image = folder / "disk.img"
    with image.open("wb") as file:
        file.truncate(400 << 20)
    attached = ["losetup", "--find", "--show", image]
    node = subprocess.run(attached, capture_output=True, text=True, check=True).stdout.strip()
    name = Path("/dev/disk/by-id") / f"weir-test-{bench.folder.name}"
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(node)
    return name, node


@pytest.mark.parametrize("kind", ["before", "after"])
def test_each_program_that_is_called_fails_in_turn(bench, kind):
    """This test will let programs that a run calls on a listed disk fail, each time that they are called."""
    variant = Variant(bench, "groups")
    name, node = with_disk(bench, bench.folder)
    (variant.folder / "testbed.json").write_text(
        json.dumps({"devices": {"shared": {"disk": {"path": str(name)}}}})
    )
    failures, tried = [], 0
    try:
        before = host_snapshot.take(bench.state)
        for program in ("mkfs.ext4", "mount", "umount", "wipefs"):
            real = shutil.which(program, path=f"/usr/sbin:/sbin:{os.environ['PATH']}")
            for number in range(1, 20):
                shims = variant.folder / f"shims-{kind}-{program}-{number}"
                shims.mkdir()
                counter = shims / "count"
                work = f'{real} "$@"' if kind == "after" else ":"
                text = PROGRAM.format(number=number, counter=counter, real=real, work=work)
                (shims / program).write_text(text)
                (shims / program).chmod(0o755)
                path = f"{shims}:{os.environ['PATH']}"
                process = variant.start("env", f"PATH={path}")
                said = process.communicate(timeout=PATIENCE_S)[0]
                if not counter.exists() or int(counter.read_text()) < number:
                    break
                tried += 1
                found = problems(bench, variant, before, process, said)
                # The disk is blank again, or what is on it was named.
                checked = weir("device", "check", name)
                if checked.returncode != 0:
                    found.append(checked.stderr)
                if found:
                    failures.append(f"{program}, time {number}, {kind}: " + "\n  ".join([*found, said]))
                    print(failures[-1], flush=True)
                    subprocess.run(["wipefs", "--all", "--quiet", node], check=False)
                    before = host_snapshot.take(bench.state)
    finally:
        name.unlink()
        subprocess.run(["losetup", "--detach", node], check=True)
    print(f"{tried} calls of programs failed {kind} their work, {len(failures)} with something left")
    assert tried >= 4 and not failures, "\n".join(failures)


def limited(variant, bench, options):
    """Carries the run out with its results on a small tmpfs; returns exit code and words."""
    shutil.rmtree(bench.results, ignore_errors=True)
    bench.results.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "weir-test-full", bench.results], check=True)
    folder = variant.folder
    try:
        return weir(
            *("run", folder / "plan.json", "--id", variant.run, "--testbed", folder / "testbed.json"),
            *("--results", bench.results, "--state", bench.state),
        ), [path.name for path in bench.results.iterdir() if not path.name.startswith(".")]
    finally:
        subprocess.run(["umount", bench.results], check=True)


def test_a_wall_clock_that_is_set_makes_the_run_invalid(bench):
    """This test will set the wall clock of a run ahead by 2 s again and again, by libfaketime."""
    libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not libraries:
        pytest.skip("not installed: faketime")
    # fio does not end under this library.
    variant = Variant(bench, "open")
    served_once(variant)
    before = host_snapshot.take(bench.state)
    variant.serve()
    ahead = variant.folder / "ahead"
    ahead.write_text("+0\n")
    process = variant.start(
        *("env", f"LD_PRELOAD={libraries[0]}", f"FAKETIME_TIMESTAMP_FILE={ahead}"),
        *("FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"),
    )
    for step in range(1, 1000):
        if process.poll() is not None:
            break
        ahead.with_suffix(".new").write_text(f"+{2 * step}\n")
        ahead.with_suffix(".new").rename(ahead)
        time.sleep(0.1)
    said = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 3, said
    verdict = json.loads((bench.results / variant.run / "verdict.json").read_text())
    clock = next(rule for rule in verdict["rules"] if rule["rule"] == "R-CLOCK")
    assert clock["status"] == "invalid" and clock["value"] > 1e9, clock
    assert weir("clean", "--state", bench.state).returncode == 0
    assert settled(bench.state, before) == []


@pytest.mark.parametrize("options", ["size=32k", "size=1m,ro", "size=1m,nr_inodes=6"])
def test_results_on_a_full_or_read_only_disk(bench, options):
    """This test will give a run a place for its results that is full, read-only or without inodes."""
    variant = Variant(bench, "raw")
    served_once(variant)
    before = host_snapshot.take(bench.state)
    variant.serve()
    done, left = limited(variant, bench, options)
    assert done.returncode in (1, 2) and "panicked" not in done.stderr, done
    assert str(bench.results) in done.stderr, done.stderr
    assert left == []
    assert weir("clean", "--state", bench.state).returncode == 0
    assert settled(bench.state, before) == []


def test_a_call_fails_that_is_told_to(tmp_path):
    """The instrument first: strace lets exactly the call fail that it is told to."""
    inject = ("-e", "trace=mkdir", "-e", "inject=mkdir:error=ENOSPC:when=1")
    done = subprocess.run(
        ["strace", "-qq", "-o", "/dev/null", *inject, "mkdir", tmp_path / "one", tmp_path / "two"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "No space left on device" in done.stderr, done
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
