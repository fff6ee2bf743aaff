"""Job files of fio: read as fio reads them, mapped to workloads, and nothing lost in silence."""

import errno
import json
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from weir import locate
from weir.cli import main
from weir.errors import InputError
from weir.imported import fio_jobs, fio_limits
from weir.imported.fio_workload import EXPRESSED, LOST, NO_EFFECT, workload

BINARY = locate.project() / "target/release/weir"
#: Where Debian's package fio-examples puts its job files.
EXAMPLES = Path("/usr/share/doc/fio/examples")
#: Before an option in what `fio --showcmd` prints.
_NEXT = r"\s+--(?=[a-z])"
#: A job of which nothing is lost.
WHOLE = """\
; read 4 KiB at random
[global]
ioengine=io_uring
direct=1
rw=randread
bs=4k
size=64m
norandommap
time_based
runtime=2s
ramp_time=1
group_reporting
[reads]
iodepth=8
"""


def _read(tmp_path, text, variables=None):
    file = tmp_path / "job.fio"
    file.write_text(text)
    return fio_jobs.read(file, variables or {})


def _mapped(tmp_path, text, target_bytes=None):
    return [workload(job, target_bytes) for job in _read(tmp_path, text)]


def _with(tmp_path, *lines):
    """The one job with these lines more, and the fate of each option by name."""
    (one,) = _mapped(tmp_path, WHOLE + "\n".join(lines) + "\n")
    return one, {fate.option: fate for fate in one.fates if not fate.text.startswith("replaced")}


def _values(job):
    return {name: option.value for name, option in job.options.items()}


# ---- reading


def test_global_sections_add_up_and_jobs_inherit(tmp_path):
    text = "[global]\nbs=4k\nsize=1m\n[a]\nbs=8k\n[global]\nsize=2m\n[global-more]\niodepth=2\n[b]\n"
    a, b = _read(tmp_path, text)
    assert (a.name, _values(a)) == ("a", {"size": "1m", "bs": "8k"})
    assert (b.name, _values(b)) == ("b", {"bs": "4k", "size": "2m", "iodepth": "2"})
    assert a.options["bs"].line == 5 and a.options["size"].is_global


def test_comments_blanks_aliases_and_repeated_options(tmp_path):
    text = "# first\n\n ; second\n  [ a ]\n  readwrite = randread ; third\nbs=4k#fourth\nblocksize=8k\n"
    text += "name=other\n"
    (job,) = _read(tmp_path, text)
    assert job.name == "other"
    assert _values(job) == {"rw": "randread", "bs": "8k", "name": "other"}
    assert [(before.value, after.line) for before, after in job.replaced] == [("4k", 7)]


def test_files_are_included_from_the_folder_of_the_job_file_only(tmp_path):
    folder = tmp_path / "jobs"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts/depth.fio").write_text("iodepth=3\n")
    (tmp_path / "outside.fio").write_text("iodepth=4\n")
    (folder / "link.fio").symlink_to(tmp_path / "outside.fio")
    (job,) = _read(folder, "[a]\nbs=4k\ninclude parts/depth.fio\nsize=1m\n")
    assert _values(job) == {"bs": "4k", "iodepth": "3", "size": "1m"}
    assert (job.options["iodepth"].file.name, job.options["iodepth"].line) == ("depth.fio", 1)
    for name in ("../outside.fio", str(tmp_path / "outside.fio"), "link.fio", "/etc/passwd"):
        with pytest.raises(InputError, match=r"job\.fio:2: includes .* outside of the folder"):
            _read(folder, f"[a]\ninclude {name}\n")
    (folder / "self.fio").write_text("include self.fio\n")
    with pytest.raises(InputError, match="more than 16 files"):
        _read(folder, "[a]\ninclude self.fio\n")
    os.mkfifo(folder / "pipe.fio")
    with pytest.raises(InputError, match="no regular file"):
        _read(folder, "[a]\ninclude pipe.fio\n")


def test_the_environment_is_read_only_when_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_TEST_SIZE", "8m")
    text = "[a]\nsize=${WEIR_TEST_SIZE}\n"
    with pytest.raises(InputError, match=r"job\.fio:2: uses .*WEIR_TEST_SIZE.*--define WEIR_TEST_SIZE="):
        _read(tmp_path, text)
    file = tmp_path / "job.fio"
    arguments = ["import", "fio", str(file), "--dry-run"]
    assert main(arguments) == 2
    assert main([*arguments, "--environment"]) == 3
    assert main([*arguments, "--define", "WEIR_TEST_SIZE=16m"]) == 3
    (job,) = fio_jobs.read(file, {"WEIR_TEST_SIZE": "16m"})
    assert job.options["size"].value == "16m"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no section"),
        ("[global]\nbs=4k\n", "has no job"),
        ("bs=4k\n", r":1: `bs=4k` is outside of a section"),
        ("hello world\n[a]\n", r":1: `hello world` is outside"),
        ("[a\nbs=4k\n", r":1: `\[a` is no section"),
        ("[]\n", "no section"),
        ("[a]\n=4k\n", r":2: `=4k` is no option"),
        ("[a]\nsize=$ncpus\n", "fact of the host"),
        ("[a]\nbs=" + "1" * 5000 + "\n", r":2: is longer than 4095 bytes"),
        ("[a]\n" * 5000, "more than 4096 sections"),
        ("#" * 100 + "\n" + "# padding\n" * 120_000 + "[a]\n", "more than 1048576 bytes"),
    ],
)
def test_what_is_no_job_file_is_refused_by_line(tmp_path, capsys, text, problem):
    with pytest.raises(InputError, match=problem):
        _read(tmp_path, text)
    assert main(["import", "fio", str(tmp_path / "job.fio"), "--to", str(tmp_path)]) == 2
    assert not (tmp_path / "studies").exists()


def test_bytes_that_are_no_text_are_refused(tmp_path):
    for content, problem in ((b"[a]\nbs=\xff\n", r":2: is not text in UTF-8"), (b"[a]\n\0\n", "zero byte")):
        (tmp_path / "job.fio").write_bytes(content)
        with pytest.raises(InputError, match=problem):
            fio_jobs.read(tmp_path / "job.fio", {})
    with pytest.raises(InputError, match="no regular file"):
        fio_jobs.read(tmp_path, {})


# ---- numbers


def _option(value):
    return fio_jobs.Option("size", value, Path("j"), 1, False)


@pytest.mark.parametrize(
    ("text", "kb_base", "expected"),
    [
        ("4096", 1024, 4096), ("4k", 1024, 4096), ("4K", 1024, 4096), ("4kb", 1024, 4096),
        ("1m", 1024, 1 << 20), ("4KiB", 1024, 4000), ("4Ki", 1024, 4096), ("1g", 1000, 10**9),
        ("1GiB", 1000, 1 << 30), ("2t", 1024, 2 << 40), ("0x1000", 1024, 4096),
    ],
)  # fmt: skip
def test_sizes_have_fios_units(tmp_path, text, kb_base, expected):
    assert fio_jobs.size_bytes(_option(text), text, kb_base) == expected


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("base", ["1024", "1000"])
def test_sizes_are_those_of_fio_itself(tmp_path, base):
    """fio transfers nothing with the engine null, and counts the bytes that it was asked for."""
    texts = ["1m", "64k", "256KiB", "64Ki", "1MiB", "300kb", "0x40000"]
    job = ["--ioengine=null", "--bs=512", "--rw=read", "--minimal", "--output-format=json"]
    command = ["fio", *job]
    for number, text in enumerate(texts):
        command += [f"--name={number}", "--ioengine=null", "--bs=100", f"--kb_base={base}", f"--size={text}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    jobs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    counted = [job["read"]["io_bytes"] for job in jobs]
    ours = [fio_jobs.size_bytes(_option(text), text, int(base)) for text in texts]
    # fio sends whole requests of 100 bytes.
    assert counted == [size // 100 * 100 for size in ours]


@pytest.mark.parametrize("text", ["1.5g", "4kk", "k", "", "-4k", "4 apples", "9" * 30, "99999999999p"])
def test_sizes_that_fio_would_misread_are_refused(text):
    with pytest.raises(InputError):
        fio_jobs.size_bytes(_option(text), text)


def test_an_expression_is_refused_with_its_remedy(tmp_path):
    for line in ("bs=(4*1024)", "thinktime=(2*5)", "iodepth=(2*4)"):
        with pytest.raises(InputError, match=r"job\.fio:15: .*; write the number of the expression"):
            _with(tmp_path, line)


def test_times_have_fios_units():
    for text, unit_us, expected in (
        ("10", 10**6, 10**7), ("10", 1, 10), ("100ms", 1, 10**5), ("2m", 10**6, 120 * 10**6),
        ("1h", 1, 3600 * 10**6),
    ):  # fmt: skip
        assert fio_jobs.time_us(_option(text), text, unit_us) == expected
    # fio takes an unknown unit for microseconds: a run of 10sec would end at once.
    for text in ("10sec", "10 s x", "1.5s", ""):
        with pytest.raises(InputError):
            fio_jobs.time_us(_option(text), text, 10**6)


# ---- mapping


def test_a_job_whose_requests_a_workload_has_loses_nothing(tmp_path):
    one, fates = _with(tmp_path)
    assert one.lost == [] and one.problem == ""
    assert one.recipe == {
        "arrivals": {"closed": {"depth": 8}},
        "access": "random",
        "read_share": 1.0,
        "sizes": {"drawn": {"fixed": {"bytes": 4096}}},
        "files": {"count": 1, "size": {"fixed": {"bytes": 64 << 20}}},
    }
    assert (one.ends_us, one.warmup_us, one.direct, one.clients) == (3 * 10**6, 10**6, True, 1)
    assert fates["group_reporting"].fate == NO_EFFECT


@pytest.mark.parametrize(
    ("lines", "path", "expected"),
    [
        (["rw=randrw", "rwmixread=70"], "read_share", 0.7),
        (["rw=randrw", "rwmixwrite=70"], "read_share", 0.3),
        (["rw=randrw"], "read_share", 0.5),
        (["rw=write"], "access", "sequential"),
        (["rw=write"], "read_share", 0.0),
        (["percentage_random=0"], "access", "sequential"),
        (["ioengine=psync"], "arrivals.closed.depth", 1),
        (["thinktime=3ms"], "arrivals.closed.think_us", 3000),
        (["startdelay=2", "ramp_time=0"], "arrivals.closed.start_s", 2.0),
        (["rate_iops=500"], "arrivals.closed.rate_per_s", 500),
        (["rw=randrw", "rate_iops=100"], "arrivals.closed.rate_per_s", 200),
        (["rw=randrw", "rwmixread=25", "rate_iops=100,300"], "arrivals.closed.rate_per_s", 400),
        (["rate=1m"], "arrivals.closed.rate_per_s", 256),
        (["rate=,1m"], "arrivals.closed", {"depth": 8}),
        (["bs=16k"], "sizes.drawn.fixed.bytes", 16384),
        (["bs=4k,8k"], "sizes.drawn.fixed.bytes", 4096),
        (["bs=4k,8k", "rw=randwrite"], "sizes.drawn.fixed.bytes", 8192),
        (["bs=,8k", "rw=randread"], "sizes.drawn.fixed.bytes", 4096),
        (["bs=512"], "alignment_bytes", 512),
        (["bsrange=4k-16k"], "sizes.drawn.mixture.3.share", 0.25),
        (["bsrange=4k-16k"], "sizes.drawn.mixture.3.of.fixed.bytes", 16384),
        (["bssplit=4k/60:8k/:16k/"], "sizes.drawn.mixture.1.share", 0.2),
        (["numjobs=4", "rw=read"], "files.size.fixed.bytes", 256 << 20),
        (["numjobs=4", "filename=f"], "files.size.fixed.bytes", 64 << 20),
        (["numjobs=4", "rw=read", "filename=f", "offset_increment=64m"], "files.size.fixed.bytes", 1 << 28),
    ],
)  # fmt: skip
def test_options_become_fields(tmp_path, lines, path, expected):
    one, _ = _with(tmp_path, *lines)
    assert one.lost == [] and one.problem == ""
    value = one.recipe
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    assert value == expected


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("rw=randread:8", "not each 8th"),
        ("random_distribution=zipf:1.2", "uniform"),
        ("random_distribution=pareto:0.9", "uniform"),
        ("percentage_random=50", "random places"),
        ("bs=4k,8k\nrw=randrw", "sizes of reads"),
        ("thinktime_blocks=4", "followed by the pause"),
        ("rate_process=poisson", "equal gaps"),
        ("rate=1000", "no whole number"),
        ("rw=randrw\nrate_iops=100,300", "all requests of a client"),
        ("rw=randrw\nrate_iops=100,", "all requests of a client"),
        ("iodepth_batch=4", "by itself"),
        ("fsync=1", "flush"),
        ("verify=crc32c", "read back"),
        ("offset=1m", "offset 0"),
        ("nrfiles=4", "one file"),
        ("filename=a:b", "one file"),
        ("zonemode=strided", "zones"),
        ("exec_prerun=rm -r /", "no command"),
        ("buffer_compress_percentage=50", "content of its own"),
        ("numjobs=4", "not each over its own"),
        ("steadystate=iops:0.1%", "duration"),
        ("frobnicate=1", "does not know"),
        ("norandommap=0", "independent"),
        ("hipri", "polled"),
        ("hipri=1", "polled"),
        ("nowait=1", "would block"),
        ("uncached=1", "page cache"),
        ("force_async=4", "workers"),
        ("lockfile=exclusive", "lock"),
        ("file_append=1", "within the file"),
        ("invalidate=0", "cached"),
        ("ioscheduler=cfq", "one of none, mq-deadline, kyber, bfq"),
        ("thinktime=999999999d", "think_us: 86400000000"),
        ("startdelay=2d\nramp_time=0", "start_s: 86400"),
        ("ramp_time=2d", "warmup_s: 86400"),
    ],
)
def test_what_a_workload_cannot_express_is_named_with_its_line(tmp_path, line, does):
    one, _ = _with(tmp_path, line)
    (lost,) = one.lost
    assert does in lost.text and lost.line >= WHOLE.count("\n") + 1
    assert line.splitlines()[-1].startswith(lost.option) or lost.option in line


def test_values_that_change_nothing_are_not_lost(tmp_path):
    neutral = ["hipri=0", "nowait=0", "uncached=0", "force_async=0"]
    neutral += ["lockfile=none", "file_append=0", "invalidate=1"]
    one, fates = _with(tmp_path, *neutral)
    assert one.lost == []
    assert {fates[line.split("=")[0]].fate for line in neutral} == {NO_EFFECT}


def test_defaults_of_fio_without_a_counterpart_are_named(tmp_path):
    (one,) = _mapped(tmp_path, "[a]\nsize=1m\nrw=randread\ndirect=1\n")
    assert {fate.option for fate in one.lost} == {"norandommap", "runtime, time_based"}
    assert {fate.value for fate in one.lost} == {None} and {fate.line for fate in one.lost} == {1}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("ioengine=net", "ioengine=net"),
        ("rw=trim", "trims"),
        ("size=10%", "--target-size"),
        ("bs=100", "multiple of 512"),
        ("bs=32m", "up to 16 MiB"),
        ("bsrange=4k-12k", "whole per cents"),
        ("bssplit=4k/50:6k/50", "multiple of the smallest"),
        ("size=1k", "holds no request"),
        ("iodepth=8192", "4096"),
        ("read_iolog=sent.log", "weir replay"),
    ],
)
def test_a_job_of_which_no_workload_can_be_made_says_why(tmp_path, lines, problem):
    one, _ = _with(tmp_path, lines)
    assert problem in one.problem
    assert main(["import", "fio", str(tmp_path / "job.fio"), "--to", str(tmp_path)]) == 3
    assert not (tmp_path / "workloads").exists()


def test_shares_of_the_device_need_its_size(tmp_path):
    (one,) = _mapped(tmp_path, WHOLE + "size=10%\n", 100 << 20)
    assert one.recipe["files"]["size"] == {"fixed": {"bytes": 10 << 20}}
    (one,) = _mapped(tmp_path, WHOLE.replace("size=64m\n", ""), 100 << 20)
    assert one.recipe["files"]["size"] == {"fixed": {"bytes": 100 << 20}}


@pytest.mark.parametrize(
    "line",
    [
     "bs=1.5k", "rwmixread=130\nrw=randrw", "direct=2", "direct", "runtime=10sec", "rw=up", "numjobs=0",
     "bssplit=4k/50:8k/30", "iodepth=x"],
)  # fmt: skip
def test_a_value_that_fio_does_not_read_is_refused_by_line(tmp_path, line):
    with pytest.raises(InputError, match=r"job\.fio:1[5-6]"):
        _with(tmp_path, line)


def test_every_option_of_a_job_has_one_fate(tmp_path):
    text = WHOLE + "bs=8k\nfsync=3\nfrobnicate=1\ndescription=d\nstonewall\n"
    (job,) = _read(tmp_path, text)
    one = workload(job)
    given = Counter((option.name, option.line) for option in job.options.values())
    given += Counter((before.name, before.line) for before, _ in job.replaced)
    assert Counter((fate.option, fate.line) for fate in one.fates) == given
    assert {fate.fate for fate in one.fates} == {EXPRESSED, NO_EFFECT, LOST}


# ---- files


def test_jobs_behind_a_stonewall_are_a_study_of_their_own(tmp_path, capsys):
    file = tmp_path / "two.fio"
    file.write_text(WHOLE + "prioclass=1\n[writes]\nstonewall\nrw=write\nnumjobs=2\n[beside]\nsize=1m\n")
    assert main(["import", "fio", str(file), "--to", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [job["job"] for job in report["jobs"]] == ["reads", "writes", "beside"]
    first, second = (yaml.safe_load((tmp_path / f"studies/two-{n}.yml").read_text()) for n in (1, 2))
    assert first["classes"] == {"reads": {"workload": "two-reads", "clients": 1, "priority": "rt/0"}}
    assert {name: of["clients"] for name, of in second["classes"].items()} == {"writes": 2, "beside": 1}
    assert (first["warmup_s"], first["duration_s"]) == (1.0, 2.0)
    _check(tmp_path)


def _check(folder):
    """`weir check` accepts all that was imported."""
    if not BINARY.exists():
        return
    checked = sorted(str(path) for path in folder.glob("*/*.yml"))
    environment = os.environ | {"WEIR_ROOT": str(folder)}
    done = subprocess.run(
        [BINARY, "check", *checked],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_long_name_and_three_groups_are_three_studies(tmp_path, capsys):
    stem = "a-job-file-with-a-very-long-name-for-its-three-groups"
    file = tmp_path / f"{stem}.fio"
    file.write_text(WHOLE + "[second]\nstonewall\n[third]\nstonewall\n")
    assert main(["import", "fio", str(file), "--to", str(tmp_path)]) == 0
    studies = [yaml.safe_load(path.read_text()) for path in tmp_path.glob("studies/*.yml")]
    assert sorted(list(one["classes"]) for one in studies) == [["reads"], ["second"], ["third"]]
    assert {one["name"] for one in studies} == {path.stem for path in tmp_path.glob("studies/*.yml")}
    _check(tmp_path)


def test_a_job_that_is_not_imported_begins_a_group_too(tmp_path):
    file = tmp_path / "j.fio"
    file.write_text(WHOLE + "[log]\nstonewall\nread_iolog=sent.log\n[beside]\n")
    assert main(["import", "fio", str(file), "--to", str(tmp_path)]) == 3
    classes = [list(yaml.safe_load(path.read_text())["classes"]) for path in tmp_path.glob("studies/*.yml")]
    assert sorted(classes) == [["beside"], ["reads"]]


@pytest.mark.parametrize(
    ("lines", "lost", "field", "expected"),
    [
        ("runtime=50ms", "runtime", "duration_s", 0.1),
        ("runtime=2d\nrate_iops=1", "runtime", "duration_s", 86400.0),
        ("ramp_time=2d\nrate_iops=1", "ramp_time", "warmup_s", 86400.0),
        ("thinktime=999999999d", "thinktime", "duration_s", 2.0),
        ("ioscheduler=cfq", "ioscheduler", "factors", {"scheduler": ["none"]}),
    ],
)
def test_what_weir_check_would_refuse_is_lost(tmp_path, capsys, lines, lost, field, expected):
    file = tmp_path / "j.fio"
    file.write_text(WHOLE.replace("[reads]", lines + "\n[reads]"))
    assert main(["import", "fio", str(file), "--to", str(tmp_path), "--json"]) == 3
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert [one["option"] for one in job["options"] if one["fate"] == LOST] == [lost]
    assert yaml.safe_load((tmp_path / "studies/j.yml").read_text())[field] == expected
    source = yaml.safe_load((tmp_path / "workloads/j-reads.yml").read_text())["source"]
    assert source.endswith("; 1 of its options are lost")
    _check(tmp_path)


@pytest.mark.parametrize(
    ("lines", "lost", "warmup_s", "duration_s"),
    [
        # 15 GiB / 64 bytes are 251 million requests: of 1000 per second and client.
        ("numjobs=10\nrw=read\nruntime=7d\nramp_time=0", ["runtime"], 0.0, 25165.7),
        ("numjobs=10\nrw=read\nramp_time=1d", ["ramp_time"], 25163.7, 2.0),
        ("numjobs=10\nrw=read\nramp_time=1d\nruntime=1d", ["ramp_time", "runtime"], 12582.85, 12582.85),
        ("startdelay=30\nruntime=0\ntime_based=0", ["ramp_time", "runtime, time_based"], 1.0, 40.0),
        ("numjobs=4096\nrw=read\nruntime=100", ["runtime"], 1.0, 60.3),
    ],
)
def test_a_run_is_as_long_as_its_memory_allows(tmp_path, capsys, lines, lost, warmup_s, duration_s):
    file = tmp_path / "j.fio"
    file.write_text(WHOLE + "iodepth=1\n" + lines + "\n")
    assert main(["import", "fio", str(file), "--to", str(tmp_path), "--json"]) == 3
    (job,) = json.loads(capsys.readouterr().out)["jobs"]
    assert sorted(one["option"] for one in job["options"] if one["fate"] == LOST) == lost
    study = yaml.safe_load((tmp_path / "studies/j.yml").read_text())
    assert (study["warmup_s"], study["duration_s"]) == pytest.approx((warmup_s, duration_s))
    _check(tmp_path)


@pytest.mark.parametrize(
    ("lines", "arguments", "problem"),
    [
        ("size=100t", (), "storage.size_mib: is "),
        ("size=5t", (), "at most 4096.0 GiB are written"),
        (
            "size=2g",
            ("--profile", "hp-97560", "--testbed", "simulator"),
            "profile `hp-97560`: size of a disk",
        ),
        ("", ("--profile", "hp-1"), "unknown profile `hp-1`"),
        ("iodepth=4096\nnumjobs=4096", (), "[reads] in line 13: their outstanding requests"),
        ("startdelay=1d", (), "[reads] in line 13: begins after 86400 s; warm-up and duration of a run"),
    ],
)
def test_what_no_run_can_hold_is_refused(tmp_path, capsys, lines, arguments, problem):
    if not BINARY.exists() and "in line" not in problem:
        pytest.skip("target/release/weir is not built: make setup")
    file = tmp_path / "j.fio"
    file.write_text(WHOLE + lines + "\n")
    for more in ((), ("--dry-run",)):
        assert main(["import", "fio", str(file), "--to", str(tmp_path), *arguments, *more]) == 2
        found = capsys.readouterr().err
        assert problem in found and str(file) in found, found
        assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(not BINARY.exists(), reason="target/release/weir is not built: make setup")
def test_the_command_that_is_named_next_works(tmp_path, capsys):
    file = tmp_path / "j.fio"
    file.write_text(WHOLE)
    assert main(["import", "fio", str(file), "--to", str(tmp_path / "a b")]) == 0
    (command,) = re.findall(r"^next: (.*)$", capsys.readouterr().out, re.MULTILINE)
    environment = os.environ | {"PATH": f"{BINARY.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], cwd="/", env=environment, capture_output=True, check=False)
    assert done.returncode == 0, (command, done.stderr)


def test_an_import_without_the_binary_says_that_it_is_not_checked(tmp_path, capsys, monkeypatch):
    def absent():
        raise InputError("weir", "is absent", "make setup")

    monkeypatch.setattr(fio_limits.locate, "binary", absent)
    file = tmp_path / "j.fio"
    file.write_text(WHOLE)
    assert main(["import", "fio", str(file), "--to", str(tmp_path)]) == 0
    assert "not checked: there is no weir binary" in capsys.readouterr().out


@pytest.mark.skipif(not BINARY.exists(), reason="target/release/weir is not built: make setup")
def test_the_last_of_many_studies_is_checked(tmp_path, capsys):
    file = tmp_path / "j.fio"
    text = WHOLE + "".join(f"[{number}]\nstonewall\n" for number in range(70))
    file.write_text(text + "size=100t\n")
    arguments = ["import", "fio", str(file), "--to", str(tmp_path)]
    assert main(arguments) == 2
    assert "studies/j-71.yml:13: storage.size_mib" in capsys.readouterr().err
    file.write_text(text)
    assert main(arguments) == 0
    assert len(list(tmp_path.glob("studies/*.yml"))) == 71
    _check(tmp_path)


#: Values of options at and beyond the limits of fio, of a workload, and of a study.
VALUES = {
    "rw": ["read", "write", "randread", "randwrite", "rw", "randrw", "trim", "randrw:8"],
    "size": ["511", "5000", "1m", "1g", "300g", "2800g", "3t", "12t", "100t", "2p", "10%"],
    "bs": ["511", "512", "3k", "4k", "1m", "16m", "17m", "64m", "4k,64k"],
    "bssplit": ["4k/1:8k/99", "512/1:16m/99", "4k/50:6k/50", "0/50:4k/50"],
    "bsrange": ["1k-4k", "4k-12k", "512-16m"],
    "numjobs": ["1", "3", "64", "4096"],
    "iodepth": ["1", "2", "256", "4096", "65536"],
    "ioengine": ["psync", "libaio", "io_uring", "mmap"],
    "direct": ["0", "1"],
    "runtime": ["0", "1ms", "2", "1h", "1d", "100d"],
    "ramp_time": ["0", "1ms", "5", "1d", "2d"],
    "startdelay": ["1ms", "3", "1h", "1d", "2d"],
    "thinktime": ["1", "1s", "1d", "2d"],
    "rate_iops": ["1", "500", "1000000", "10000000"],
    "rate": ["1", "4k", "1g"],
    "filename": ["/dev/sdz", "a:b", "f"],
    "offset_increment": ["1m", "10%"],
    "ioscheduler": ["bfq", "none", "cfq"],
    "prio": ["0", "7"],
    "prioclass": ["0", "3"],
    "stonewall": ["1"],
    "name": ["shared", "all", "a b", "-", "true"],
}


def _job_file(seed):
    """Sections with options at random, of which most are within the limits together."""
    chance = random.Random(seed)
    lines = ["[global]", "time_based", "norandommap", "size=64m", "runtime=2", "ioengine=libaio", "direct=1"]
    for number in range(chance.choice([1, 1, 2, 3])):
        lines.append(f"[job{number}]")
        for name in chance.sample(sorted(VALUES), chance.randint(0, 6)):
            lines.append(f"{name}={chance.choice(VALUES[name])}")
    return "\n".join(lines) + "\n"


@pytest.mark.skipif(not BINARY.exists(), reason="target/release/weir is not built: make setup")
def test_what_is_written_passes_weir_check(tmp_path, capsys):
    """What `weir check` would refuse is within the limits, or there is no file of it."""
    codes = Counter()
    for seed in range(100):
        file = tmp_path / f"j{seed}.fio"
        file.write_text(_job_file(seed))
        testbed = ["device", "simulator"][seed % 4 == 3]
        to = tmp_path / "to"
        arguments = ["import", "fio", str(file), "--to", str(to), "--testbed", testbed]
        code = main([*arguments, "--target-size", "1g"])
        found = capsys.readouterr().err
        codes[code] += 1
        # The numbers of the importer are those of the check: it is left with sizes only.
        refused = "size_mib", "files.count", "outstanding requests", "begins after"
        assert code in (0, 3) or (code == 2 and any(word in found for word in refused)), (seed, found)
        assert code != 2 or not list(to.glob(f"*/j{seed}[-.]*")), seed
    assert min(codes[0], codes[2], codes[3]) >= 5, codes
    _check(tmp_path / "to")


@pytest.mark.skipif(not BINARY.exists(), reason="target/release/weir is not built: make setup")
@pytest.mark.parametrize("testbed", ["device", "simulator"])
def test_the_demand_of_jobs_is_that_of_the_plan(tmp_path, testbed):
    text = WHOLE + "numjobs=3\nthinktime=4ms\n[limited]\nrate_iops=100\nbssplit=4k/50:64k/50\nnumjobs=7\n"
    text += "[small]\nsize=8k\niodepth=16\nrw=randwrite\n"
    group = _mapped(tmp_path, text)
    arguments = ["import", "fio", str(tmp_path / "job.fio"), "--to", str(tmp_path), "--testbed", testbed]
    assert main(arguments) == 3
    environment = os.environ | {"WEIR_ROOT": str(tmp_path)}
    command = [BINARY, "plan", tmp_path / "studies/job.yml", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    largest = json.loads(done.stdout)["largest_run"]
    demand = fio_limits.demand(group, on_device=testbed == "device")
    assert int(demand.rate_per_s * 3.0) == largest["requests"]
    assert int(demand.memory_bytes(3.0)) == largest["memory_bytes"]


@pytest.mark.parametrize(
    ("first", "second", "chosen", "lost"),
    [("bfq", "bfq", "bfq", []), ("bfq", "none", "bfq", ["none"]), ("", "kyber", "kyber", [])],
)
def test_jobs_of_a_run_have_one_scheduler(tmp_path, capsys, first, second, chosen, lost):
    """Two would be a factor: each class would run under the scheduler of the other as well."""
    file = tmp_path / "j.fio"
    own = f"ioscheduler={first}\n" if first else ""
    file.write_text(WHOLE + own + f"[second]\nioscheduler={second}\n")
    code = main(["import", "fio", str(file), "--to", str(tmp_path), "--json"])
    assert code == (3 if lost else 0)
    options = [one for job in json.loads(capsys.readouterr().out)["jobs"] for one in job["options"]]
    assert [one["value"] for one in options if one["fate"] == LOST] == lost
    study = yaml.safe_load((tmp_path / "studies/j.yml").read_text())
    assert study["factors"] == {"scheduler": [chosen]}
    _check(tmp_path)


def test_virtual_time_loses_the_scheduler(tmp_path, capsys):
    file = tmp_path / "j.fio"
    file.write_text(WHOLE + "ioscheduler=bfq\n")
    arguments = ["import", "fio", str(file), "--dry-run", "--json"]
    assert main(arguments) == 0 and main([*arguments, "--testbed", "simulator"]) == 3


def test_no_other_file_is_overwritten(tmp_path, capsys):
    file = tmp_path / "reads.fio"
    file.write_text(WHOLE)
    assert main(["import", "fio", str(file), "--to", str(tmp_path), "--dry-run"]) == 0
    assert not (tmp_path / "studies").exists()
    arguments = ["import", "fio", str(file), "--to", str(tmp_path)]
    assert main(arguments) == 0 and main(arguments) == 0
    (tmp_path / "workloads/reads-reads.yml").write_text("name: mine\n")
    (tmp_path / "studies/reads.yml").unlink()
    assert main(arguments) == 2
    assert not (tmp_path / "studies/reads.yml").exists()
    assert (tmp_path / "workloads/reads-reads.yml").read_text() == "name: mine\n"
    assert main([*arguments, "--name", "again"]) == 0


def test_what_cannot_be_written_leaves_everything_as_it_was(tmp_path, capsys, monkeypatch):
    file = tmp_path / "reads.fio"
    file.write_text(WHOLE)
    target = tmp_path / "to"
    arguments = ["import", "fio", str(file), "--to", str(target)]
    (target / "studies").mkdir(parents=True)
    study = target / "studies/reads.yml"
    study.write_bytes(b"\xff\n")
    assert main(arguments) == 2
    assert "exists and is different" in capsys.readouterr().err
    assert list(target.iterdir()) == [target / "studies"] and study.read_bytes() == b"\xff\n"
    study.unlink()
    (target / "workloads").write_text("a file\n")
    assert main(arguments) == 2
    assert f"{target / 'workloads'}: cannot be written" in capsys.readouterr().err
    assert not study.exists() and (target / "workloads").read_text() == "a file\n"
    (target / "workloads").unlink()
    opened = Path.open

    def full(path, mode="r", *rest, **named):
        if path == study:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, mode, *rest, **named)

    monkeypatch.setattr(Path, "open", full)
    assert main(arguments) == 2
    assert f"{study}: cannot be written (No space left on device)" in capsys.readouterr().err
    assert list(target.rglob("*")) == [target / "studies"]
    monkeypatch.undo()
    assert main(arguments) == 0


def test_control_characters_reach_neither_terminal_nor_comment(tmp_path, capsys):
    file = tmp_path / "a\nname: other\x1b[2J.fio"
    file.write_text(WHOLE + "description=clear \x1b[2J screen\n")
    assert main(["import", "fio", str(file), "--to", str(tmp_path), "--name", "a"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    study = (tmp_path / "studies/a.yml").read_text()
    assert "\x1b" not in study and yaml.safe_load(study)["name"] == "a"


def test_what_differs_between_the_jobs_of_a_run_is_lost(tmp_path, capsys):
    file = tmp_path / "j.fio"
    file.write_text(WHOLE + "filename=f\n[second]\nfilename=f\nruntime=5\ndirect=0\n")
    arguments = ["import", "fio", str(file), "--to", str(tmp_path), "--json"]
    assert main(arguments) == 3
    study = yaml.safe_load((tmp_path / "studies/j.yml").read_text())
    assert study["duration_s"] == 5.0
    first, second = json.loads(capsys.readouterr().out)["jobs"]
    lost = [[one["option"] for one in job["options"] if one["fate"] == LOST] for job in (first, second)]
    assert lost == [["runtime", "filename"], ["filename", "direct"]]


# ---- fio itself


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """Debian's example job files: installed, or taken from the package."""
    if EXAMPLES.is_dir() and any(EXAMPLES.glob("*.fio")):
        return EXAMPLES
    folder = tmp_path_factory.mktemp("fio-examples")
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("the package fio-examples is not installed")
    done = subprocess.run(
        ["apt-get", "download", "fio-examples"], cwd=folder, capture_output=True, check=False, timeout=120
    )
    packages = list(folder.glob("fio-examples_*.deb"))
    if done.returncode or not packages:
        pytest.skip("apt-get download fio-examples: the package is not available")
    subprocess.run(["dpkg-deb", "-x", packages[0], folder], check=True)
    return folder / EXAMPLES.relative_to("/")


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_sections_and_options_are_those_that_fio_reads(examples):
    """`fio --showcmd` prints each section with its options, as fio's own parser has them."""
    compared = 0
    for file in sorted(examples.glob("*.fio")):
        try:
            jobs = fio_jobs.read(file, {})
        except InputError as error:
            # Variables of the environment are refused; fio takes an empty text.
            assert "${" in str(error) or "fact of the host" in str(error), error
            continue
        done = subprocess.run(["fio", "--showcmd", file], capture_output=True, text=True, check=False)
        # An engine or option that this fio was built without.
        if done.returncode or "--name=" not in done.stdout:
            continue
        # A value with blanks is in quotes.
        theirs = re.split(r"(?:^|\s)--name=", done.stdout.replace('"', ""))[1:]
        ours = [_as_fio_shows(job) for job in jobs]
        # A `name` in [global] looks like a job.
        theirs = [_words(text) for text in theirs]
        named = [words for words in theirs if words[0] in {job.name for job in jobs}]
        assert len(named) == len(jobs) or len(theirs) == len(jobs), file
        for words, (name, options) in zip(named if len(named) == len(jobs) else theirs, ours, strict=True):
            assert words[0] == name, file
            shown = Counter(words[1:])
            assert shown == options, (file, name)
            compared += 1
    assert compared >= 40


def _words(text):
    """The name and the options that follow it."""
    name, *options = re.split(_NEXT, text.strip())
    return [name.strip(), *(option.strip() for option in options)]


def _as_fio_shows(job):
    own = [option for option in job.options.values() if not option.is_global]
    own += [before for before, after in job.replaced if not before.is_global]
    shown = [one.name if one.value is None else f"{one.name}={one.value}" for one in own]
    # A text may look like several options.
    return job.name, Counter(word.strip() for one in shown for word in re.split(_NEXT, one.replace('"', "")))


def test_each_example_is_imported_or_refused_with_a_reason(examples, tmp_path):
    imported, refused = 0, 0
    for file in sorted(examples.glob("*.fio")):
        try:
            made = [workload(job, 1 << 30) for job in fio_jobs.read(file, {})]
        except InputError as error:
            assert error.problem and error.remedy
            refused += 1
            continue
        for one in made:
            assert one.problem or one.recipe["files"]
            assert all(fate.text for fate in one.fates)
            imported += not one.problem
    assert imported >= 60 and refused <= 10, (imported, refused)


def test_what_is_written_of_the_examples_passes_weir_check(examples, tmp_path, capsys):
    written = 0
    for file in sorted(examples.glob("*.fio")):
        code = main(["import", "fio", str(file), "--to", str(tmp_path), "--target-size", "1g"])
        assert code in (0, 2, 3), file
        written += code != 2
    assert written >= 50, written
    _check(tmp_path)
