"""`weir disks protocol` and `weir disks fit`: a flash profile from fio's measurements."""

import configparser
import json
import subprocess

import pytest
from support import weir


def test_the_protocol_is_a_job_file_that_fio_accepts(tmp_path):
    path = tmp_path / "drive.fio"
    path.write_text(weir("disks", "protocol", "--filename", tmp_path / "disk", "--gib", 1).stdout)
    done = subprocess.run(["fio", "--parse-only", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = configparser.ConfigParser(allow_no_value=True)
    jobs.read(path)
    cells = [name for name in jobs.sections() if name not in ("global", "fill")]
    assert len(cells) == 20
    seconds = len(cells) * (jobs.getint("global", "runtime") + jobs.getint("global", "ramp_time"))
    assert seconds <= 600
    # Reads come before anything that changes the state that they find.
    changes = ["write" in name or "rw" in name for name in cells]
    assert changes == sorted(changes)
    assert weir("disks", "protocol", "--filename", "/dev/a:/dev/b").returncode == 2


def job(name, mean_ns=100_000.0, **more):
    """A job of fio's JSON output, of the operation, size and depth that its name says."""
    operation, size, depth = name.split("-")
    none = {"total_ios": 0, "lat_ns": {"mean": 0.0}}
    some = {"total_ios": 1000, "lat_ns": {"mean": mean_ns, "percentile": {"99.000000": 2 * mean_ns}}}
    reads, writes = (none, some) if operation.endswith("write") else (some, none)
    if operation.endswith("rw"):
        reads = writes = some
    options = {"rw": operation, "bs": size, "iodepth": depth[1:], "ioengine": "libaio", "direct": "1"}
    return {"jobname": name, "error": 0, "job options": options, "read": reads, "write": writes} | more


READS = [f"randread-4k-d{depth}" for depth in (1, 4, 16, 64)]
SIX = [*READS, "randread-64k-d1", "randread-16k-d1"]


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (None, (), "cannot be read"),
        ("no json", (), "is not fio's JSON output"),
        ({"jobs": [job(name) for name in READS]}, (), "4 different closed loops (expected at least 6)"),
        ({"jobs": [job(name, error=5) for name in SIX]}, (), "failed with errno 5"),
        (
            {"jobs": [job(name, read={"total_ios": 9, "lat_ns": {"mean": 5.0}}) for name in SIX]},
            (),
            "no 99th percentile",
        ),
        ({"jobs": [job(name, mean_ns=0.0) for name in SIX]}, (), "not above 0"),
        ({"jobs": [job(name) for name in SIX]}, ("--from", "hdd-7200"), "has no `flash`"),
        ({"jobs": [job(name) for name in SIX]}, ("--from", "ssd-nvm"), "did you mean `ssd-nvme`"),
    ],
)
def test_what_cannot_be_fitted_is_refused(tmp_path, text, options, says):
    log, out = tmp_path / "drive.json", tmp_path / "p.yml"
    if text is not None:
        log.write_text(text if isinstance(text, str) else json.dumps(text))
    done = weir("disks", "fit", log, "--out", out, *options)
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert not out.exists()


def test_a_fitted_profile_is_a_profile(tmp_path):
    """Fewer cells than the protocol's, of a drive twice as slow as the profile that the fit begins with."""
    log, out = tmp_path / "drive.json", tmp_path / "p.yml"
    slow = {"randread-64k-d1": 260_000.0, "randread-16k-d1": 130_000.0, "randread-4k-d64": 240_000.0}
    means = {name: slow.get(name, 105_000.0) for name in SIX} | {"randread-4k-d16": 130_000.0}
    log.write_text("note of fio\n" + json.dumps({"jobs": [job(n, mean) for n, mean in means.items()]}))
    done = weir("disks", "fit", log, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {cell["part"] for cell in found["cells"]} == {"fitted", "held out"}
    assert found["fitted"]["mean"] < 0.5
    assert "kind: ssd" in out.read_text() and "held out" in out.read_text()
    # weir takes it as any other profile.
    assert weir("disks", "times", out).stderr.count("it is not a disk") == 1
    again = weir("disks", "fit", log, "--out", out)
    assert again.returncode == 2 and "exists already" in again.stderr


def test_logs_of_any_closed_loops_are_read(tmp_path):
    """Options of a whole file, fio's default percentiles, repetitions in other files; other jobs are out."""

    def old(name, mean_ns, **options):
        made = job(name, mean_ns)
        latency = made["read"]["lat_ns"]
        made["read"]["clat_ns"] = {"mean": 0.9 * mean_ns, "percentile": latency.pop("percentile")}
        made["read"]["slat_ns"] = {"mean": 5_000.0}
        shared = ("direct", "ioengine")
        made["job options"] = {k: v for k, v in made["job options"].items() if k not in shared} | options
        return made

    shared = {"global options": {"direct": "1", "ioengine": "libaio"}}
    loops = {name: 100_000.0 for name in SIX}
    one = [old(name, mean) for name, mean in loops.items()]
    one += [old("randread-4k-d2", 1.0, rate_iops="100"), old("randread-4k-d2", 1.0, direct="0")]
    # Two processes of depth 2 are depth 4.
    two = [old("randread-4k-d2", 200_000.0, numjobs="2"), old("randread-8k-d1", 1.0, bssplit="4k/50")]
    logs = [tmp_path / "one.json", tmp_path / "two.json"]
    for log, jobs in zip(logs, (one, two), strict=True):
        log.write_text(json.dumps(shared | {"jobs": jobs}))
    done = weir("disks", "fit", *logs, "--json", "--state", "written")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("left out: ") == 3
    assert "`rate_iops`" in done.stderr and "without `direct=1`" in done.stderr and "`bssplit`" in done.stderr
    cells = {cell["job"]: cell for cell in json.loads(done.stdout)["cells"]}
    assert set(cells) == set(SIX)
    assert cells["randread-4k-d4"]["drive"] == {"mean_us": 150.0, "p99_us": 305.0}
    assert cells["randread-4k-d1"]["drive"] == {"mean_us": 100.0, "p99_us": 205.0}
    # Fields of the chessboard.
    assert {name for name, cell in cells.items() if cell["part"] == "fitted"} == {
        "randread-4k-d1",
        "randread-4k-d16",
        "randread-64k-d1",
    }
