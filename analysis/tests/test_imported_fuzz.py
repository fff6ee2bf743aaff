"""Damaged files of other programs: each reader gives a result or a clear error, in bounded time and memory.

Readers that call `weir trace convert` (latency logs, blkparse, biosnoop) are fuzzed in `crates/fuzz`.
"""

import functools
import math
import random
import resource
import string
import time
from pathlib import Path

import pytest

from weir.errors import InputError
from weir.imported import elbencho, fio, fio_jobs, mapping, recorded
from weir.imported.fio_workload import workload

FOREIGN = Path(__file__).parent / "foreign"
#: Inputs of each reader; five readers.
INPUTS = 4000
#: CPU time of one input, in seconds. Each takes about a millisecond.
LONGEST_S = 2.0
#: Growth of this process over all inputs, in bytes.
MOST_MEMORY_BYTES = 512 << 20

_JOB = """\
; a job file
[global]
ioengine=libaio
direct=1
size=64m
rate_iops=500,1k
bssplit=4k/60:8k/:64k/10
include part.fio
[a]
rw=randrw:8
rwmixread=70
numjobs=4
iodepth=0x10
random_distribution=zipf:1.2
thinktime=100us
startdelay=1-5
offset_increment=10%
[b]
stonewall
readwrite=write
bsrange=1k-4k,8k-16k
runtime=${TIME}
time_based
filename=/dev/sda:f
"""
_MAPPING = """\
question: Does bfq slow random reads down?
comparison: {factor: scheduler, baseline: none}
runs:
  - levels: {scheduler: none, depth: 4}
    files: [a.json, "b*.json"]
  - levels: &l {scheduler: bfq}
    files: [map.yml]
  - levels: *l
    files: [map.yml]
"""
#: What parsers get wrong.
_PIECES = [
    b"", b"\0", b"\xff\xfe", b"\n", b"\r\n", b" ", b"\t", b'"', b"'", b",", b":", b";", b"#", b"{", b"}",
    b"[", b"]", b"-", b"-1", b"0", b"1e400", b"-1e400", b"1e99", b"NaN", b"Infinity", b"null", b"true",
    b"9" * 25, b"9" * 5000, b"1.5", b"0x", "²".encode(), "٣".encode(), b"[" * 3000,
    b'{"a":' * 3000, b"&a [*a]",
    b"!!python/object:os.system", b"!!float x", b"!!timestamp 9999-99-99", b"!!timestamp x",
    b"? [a]\n: b",
    b"${TIME}", b"${", b"$ncpus", b"include part.fio", b"include /etc/passwd", b"include ../x",
    b"[global]",
    b"%", b"100%", b"/", b"k", b"g", b"=", b"bins", b"N",
]  # fmt: skip


def _mutated(seed, base, others):
    """The bytes with one to eight changes."""
    chance = random.Random(seed)
    content = bytearray(base)
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(content) + 1)
        upto = min(len(content), at + chance.choice([0, 1, 1, 2, 8, 64, 512]))
        kind = chance.randrange(7)
        if kind == 0:
            content[at:upto] = b""
        elif kind == 1:
            content[at:upto] = chance.choice(_PIECES)
        elif kind == 2:
            content[at:at] = content[at:upto] * chance.randint(1, 4)
        elif kind == 3 and at < len(content):
            content[at] ^= 1 << chance.randrange(8)
        elif kind == 4:
            other = chance.choice(others)
            start = chance.randrange(len(other) + 1)
            content[at:upto] = other[start : start + 64]
        elif kind == 5:
            content[at:upto] = "".join(chance.choices(string.printable, k=3)).encode()
        elif chance.random() < 0.05:
            del content[at:]
        else:
            # Another number in place of one.
            digits = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
            if digits:
                place = chance.choice(digits)
                content[place : place + 1] = chance.choice(_PIECES)
    return bytes(content)


def _result_of_fio(path):
    outcome = fio.read(path)
    assert outcome.classes and outcome.duration_s > 0
    for one in outcome.classes:
        assert one.figures["requests"] >= 0


def _result_of_elbencho(path):
    outcome = elbencho.read(path)
    assert all(math.isfinite(one.figures["response_mean_ms"]) for one in outcome.classes)


def _result_of_job(path):
    for job in fio_jobs.read(path, {"TIME": "10s"}):
        made = workload(job, 1 << 30)
        assert made.problem or made.recipe["files"]["size"]["fixed"]["bytes"] > 0
        assert len(made.fates) >= len(job.options)


def _lines(name):
    return (FOREIGN / name).read_bytes()


@pytest.fixture(params=["fio", "elbencho", "bpftrace", "mapping", "job"])
def reader(request):
    """What reads, the sound inputs, and the name of the file."""
    return {
        "fio": (_result_of_fio, [_short_json()], "few.json"),
        "elbencho": (
            _result_of_elbencho,
            [_lines("elbencho.csv"), _lines("elbencho-3.1-10-two.json"), _lines("elbencho-3.1-10-mix.json")],
            "elbencho.csv",
        ),
        "bpftrace": (recorded.bpftrace, [_lines("biosnoop-bt.txt")], "biosnoop-bt.txt"),
        "mapping": (mapping.read, [_MAPPING.encode()], "map.yml"),
        "job": (_result_of_job, [_JOB.encode()], "job.fio"),
    }[request.param]


@functools.cache
def _short_json():
    """fio's JSON+ with few bins, so that a change falls on a field more often than on a bin."""
    import json

    document = json.loads(_lines("few.json"))
    for job in document["jobs"]:
        for direction in ("read", "write", "trim"):
            for name, latency in job[direction].items():
                if not name.endswith("lat_ns"):
                    continue
                bins = dict(list(latency.get("bins", {}).items())[:8])
                if bins:
                    latency |= {"bins": bins, "N": sum(bins.values())}
    return json.dumps(document, indent=1).encode()


def test_sound_inputs_are_read(reader, tmp_path):
    read, bases, name = reader
    (tmp_path / "part.fio").write_text("iodepth=3\n")
    (tmp_path / "b1.json").write_text("{}")
    for base in bases:
        (tmp_path / name).write_bytes(base)
        read(tmp_path / name)


def test_damage_gives_a_result_or_a_clear_error(reader, tmp_path):
    read, bases, name = reader
    (tmp_path / "part.fio").write_text("iodepth=3\n")
    (tmp_path / "b1.json").write_text("{}")
    path = tmp_path / name
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results = errors = 0
    for seed in range(INPUTS):
        content = _mutated(seed, bases[seed % len(bases)], bases)
        path.write_bytes(content)
        began = time.process_time()
        try:
            read(path)
            results += 1
        except InputError as error:
            assert error.problem and error.remedy and "\n" not in error.problem[:200], error
            assert len(str(error)) < 20_000
            errors += 1
        except BaseException as error:
            kept = tmp_path.parent / f"{name}.{seed}"
            kept.write_bytes(content)
            raise AssertionError(f"seed {seed}: {error!r}; the input is {kept}") from error
        assert time.process_time() - began < LONGEST_S, f"seed {seed}"
    # Neither all sound nor all broken.
    assert results > INPUTS // 100 and errors > INPUTS // 100, (results, errors)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert grown < MOST_MEMORY_BYTES
