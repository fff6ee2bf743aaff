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
    changes = ["write" in name or "mixed" in name for name in cells]
    assert changes == sorted(changes)
    assert weir("disks", "protocol", "--filename", "/dev/a:/dev/b").returncode == 2


def job(name, mean_ns=100_000.0, **more):
    """A job of fio's JSON output; reads or writes by its name."""
    none = {"total_ios": 0, "lat_ns": {"mean": 0.0}}
    some = {"total_ios": 1000, "lat_ns": {"mean": mean_ns, "percentile": {"99.000000": 2 * mean_ns}}}
    reads, writes = (none, some) if name.startswith(("write", "randwrite")) else (some, none)
    if name.startswith("mixed"):
        reads = writes = some
    return {"jobname": name, "error": 0, "read": reads, "write": writes} | more


READS = [f"randread-4k-d{depth}" for depth in (1, 4, 16, 64)]
SIX = [*READS, "randread-64k-d1", "randread-16k-d1"]


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (None, (), "cannot be read"),
        ("no json", (), "is not fio's JSON output"),
        ({"jobs": [job(name) for name in READS]}, (), "has 4 jobs of the protocol"),
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
