"""A job file of fio, carried out by fio and, imported, by weir: the same mix of requests."""

import json
import os
import shutil
import subprocess
from collections import Counter

import polars as pl
import pytest
from support import weir

from weir.cli import main
from weir.imported import fio_workload

#: The job writes to the loop device of the test only. Its log is what fio sent.
JOB = """\
[global]
ioengine=io_uring
direct=1
norandommap
time_based
runtime=2
write_iolog={log}
log_offset=1
[mixed]
filename={device}
rw=randrw
rwmixread=70
bssplit=4k/60:16k/30:64k/10
size=32m
iodepth=8
"""
SIZE_BYTES = 32 << 20
SHARES = {4096: 0.6, 16384: 0.3, 65536: 0.1}
DEPTH = 8
#: Largest difference of a share. Of 1000 requests or more, three standard errors are below it.
TOLERANCE = 0.05


@pytest.fixture
def loop(bench):
    """A loop device of this test."""
    file = bench.folder / "disk"
    with file.open("wb") as disk:
        disk.truncate(SIZE_BYTES * 2)
    made = subprocess.run(
        ["losetup", "--find", "--show", "--direct-io=on", file], capture_output=True, text=True, check=True
    )
    device = made.stdout.strip()
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


def _assert_mix(ops, sizes, offsets):
    """The requests have the mix that the job asks for."""
    n = len(sizes)
    assert n >= 1000
    counts = Counter(sizes)
    assert set(counts) == set(SHARES)
    for size, share in SHARES.items():
        assert abs(counts[size] / n - share) < TOLERANCE, (size, counts)
    assert abs(sum(op == "read" for op in ops) / n - 0.7) < TOLERANCE
    ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
    assert all(offset % 4096 == 0 for offset in offsets)
    assert min(offsets) < SIZE_BYTES * 0.02 and SIZE_BYTES * 0.98 < max(ends) <= SIZE_BYTES


def _depth(rows):
    """Largest number of requests between submission and completion."""
    done = rows.filter(pl.col("completed_ns").is_not_null())
    # A completion makes room before the next submission at the same instant.
    steps = [(at, 1) for at in done["submitted_ns"]] + [(at, -1) for at in done["completed_ns"]]
    outstanding = most = 0
    for _, step in sorted(steps):
        outstanding += step
        most = max(most, outstanding)
    return most


def _imported(folder, job, *arguments):
    """The plan of the imported job."""
    assert main(["import", "fio", str(job), "--to", str(folder), *arguments]) == 0
    environment = {"WEIR_ROOT": str(folder)}
    planned = weir("plan", folder / f"studies/{job.stem}.yml", "--json", cwd=folder, **environment)
    assert planned.returncode == 0, planned.stderr
    return json.loads(planned.stdout)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_fio_and_weir_send_the_same_requests(bench, loop):
    folder = bench.folder
    job = folder / "mixed.fio"
    log = folder / "issued.log"
    job.write_text(JOB.format(device=loop, log=log))

    done = subprocess.run(["fio", "--output-format=json", job], capture_output=True, text=True, check=True)
    (report,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    lines = [line.split() for line in log.read_text().splitlines()[1:]]
    issued = [line for line in lines if line[2] in ("read", "write")]
    _assert_mix(
        [line[2] for line in issued], [int(line[4]) for line in issued], [int(line[3]) for line in issued]
    )
    assert report["iodepth_level"][str(DEPTH)] > 90

    plan = _imported(folder, job)
    (folder / "plan.json").write_text(json.dumps(plan))
    (device,) = plan["devices"]
    spec = folder / "disk.yml"
    spec.write_text(json.dumps(device))
    name = device["name"]
    served = weir("serve", spec, "--state", bench.state, "--background")
    assert served.returncode == 0, served.stderr
    try:
        testbed = {"devices": {name: {"modelled": {"state": str(bench.state / f"{name}.json")}}}}
        (folder / "testbed.json").write_text(json.dumps(testbed))
        run = plan["runs"][0]["id"]
        done = weir(
            *("run", folder / "plan.json", "--id", run, "--testbed", folder / "testbed.json"),
            *("--results", folder / "results", "--state", folder / "runs"),
        )
        assert done.returncode in (0, 3), done.stderr
    finally:
        assert weir("serve", "--down-all", bench.state).returncode == 0
    rows = pl.read_parquet(folder / "results" / run / "requests.parquet")
    _assert_mix(rows["op"].cast(pl.String).to_list(), rows["size_bytes"].to_list(), rows["offset"].to_list())
    # Submission is known to some us only: two requests may seem to overlap.
    assert DEPTH <= _depth(rows) <= DEPTH + 2


def test_virtual_time_sends_the_same_requests(tmp_path):
    job = tmp_path / "mixed.fio"
    job.write_text(JOB.format(device="/dev/any", log="issued.log"))
    plan = _imported(tmp_path, job, "--testbed", "simulator")
    study = tmp_path / "studies/mixed.yml"
    environment = {"WEIR_ROOT": str(tmp_path)}
    done = weir("simulate", study, "--out", tmp_path / "results", cwd=tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    for run in plan["runs"]:
        rows = pl.read_parquet(tmp_path / "results/mixed" / run["id"] / "requests.parquet")
        _assert_mix(
            rows["op"].cast(pl.String).to_list(), rows["size_bytes"].to_list(), rows["offset"].to_list()
        )
        assert _depth(rows) == DEPTH


def test_the_command_is_one_of_the_binary(tmp_path):
    job = tmp_path / "mixed.fio"
    job.write_text(JOB.format(device="/dev/any", log="issued.log") + "fsync=1\n")
    done = weir("import", "fio", job, "--dry-run", "--json")
    assert done.returncode == 3, done.stderr
    lost = [one for one in json.loads(done.stdout)["jobs"][0]["options"] if one["fate"] == "lost"]
    assert [(one["option"], one["line"]) for one in lost] == [("fsync", JOB.count("\n") + 1)]
    (tmp_path / "bad.fio").write_text("no job file\n")
    done = weir("import", "fio", tmp_path / "bad.fio", "--dry-run")
    assert done.returncode == 2 and "bad.fio:1" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["bad.fio", "mixed.fio"]


def test_the_import_knows_the_schedulers_of_the_kernel():
    """The importer has a list of its own, since it works without the binary."""
    listed = json.loads(weir("list", "schedulers", "--json").stdout)
    assert sorted(one["name"] for one in listed if one["kind"] == "kernel") == sorted(fio_workload.SCHEDULERS)
