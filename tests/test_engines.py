"""`weir plan --tasks` under the engines that it is made for: GNU parallel, HyperQueue, and Slurm on one node.

`make test-engines` installs them; a test whose engine is absent fails there, and is skipped elsewhere.
"""

import contextlib
import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, WEIR, hidden, wait_for, weir
from test_simulate import STUDY, contents

#: Programs of a Slurm cluster on one node.
SLURM = ("slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scancel", "munged")
PATH = f"{os.environ['PATH']}:/usr/sbin"
#: `make test-engines` sets it: no engine may be absent.
ALL = os.environ.get("WEIR_ENGINES") == "all"


def require(programs):
    """Skips a test whose programs are absent."""
    absent = [name for name in programs if shutil.which(name, path=PATH) is None]
    if absent and not ALL:
        pytest.skip(f"no {', '.join(absent)}: make test-engines installs them")
    assert not absent


def package(name):
    """A Python package; the test is skipped where it is absent."""
    return importlib.import_module(name) if ALL else pytest.importorskip(name, reason="make test-engines")


@pytest.fixture
def study(tmp_path):
    """A study, and the commands that simulate it one run at a time, into `results`."""
    file, out = tmp_path / "trial.yml", tmp_path / "results"
    file.write_text(STUDY)
    assert weir("simulate", file, "--out", tmp_path / "plain").returncode == 0
    printed = weir("plan", file, "--tasks", 1, "--missing", out).stdout
    tasks = tmp_path / "tasks.txt"
    tasks.write_text(printed.replace("weir simulate", f"{WEIR} simulate"))
    return tmp_path


def check_whole(folder):
    assert contents(folder / "results/trial") == contents(folder / "plain/trial")
    assert hidden(folder / "results/trial") == []


def test_gnu_parallel(study):
    require(["parallel"])
    with (study / "tasks.txt").open() as tasks:
        done = subprocess.run(
            ["parallel", "--jobs", "2"], stdin=tasks, cwd=ROOT, capture_output=True, text=True, check=False,
            env=os.environ | {"HOME": str(study)},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_whole(study)


def test_hyperqueue(study):
    """Server and worker of HyperQueue on this host, by its Python API: PyPI has no `hq` program."""
    hyperqueue = package("hyperqueue")
    # In a process of its own: server and worker are threads of it, and it sets no end to them.
    script = """
import sys, hyperqueue
from hyperqueue.cluster import WorkerConfig
folder, root, tasks = sys.argv[1:]
with hyperqueue.LocalCluster(server_dir=folder) as cluster:
    cluster.start_worker(WorkerConfig(cores=2))
    job = hyperqueue.Job(default_workdir=root, max_fails=None)
    for line in open(tasks):
        job.program(["sh", "-c", line], stdout=None, stderr=None)
    cluster.client().wait_for_jobs([cluster.client().submit(job)])
"""
    (study / "hq").mkdir()
    path = os.pathsep.join([str(Path(hyperqueue.__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", script, study / "hq", ROOT, study / "tasks.txt"],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_whole(study)


def has_jobs(environment):
    told = subprocess.run(["squeue", "-h"], env=environment, capture_output=True, text=True, check=True)
    return bool(told.stdout.strip())


def steps(conf):
    """PIDs of the slurmstepd processes of this cluster: one for each job; slurmd does not wait for them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        # A process may end between the two readings.
        with contextlib.suppress(OSError):
            is_step = (process / "comm").read_text().startswith("slurmstepd")
            if is_step and f"SLURM_CONF={conf}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def slurm(tmp_path):
    """A Slurm cluster of this host on loopback; returns the environment of its commands."""
    require(SLURM)
    if os.geteuid() != 0:
        pytest.skip("slurmd needs root")
    place = tmp_path / "slurm"
    for name in ("state", "spool", "munge"):
        (place / name).mkdir(parents=True)
    key = place / "munge/key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    host = socket.gethostname().split(".")[0]
    conf = place / "slurm.conf"
    conf.write_text(f"""\
ClusterName=weir
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge/socket
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
    munge = [f"--{name}={place}/munge/{name.split('-')[0]}" for name in ("socket", "pid-file", "log-file")]
    munge += [f"--seed-file={place}/munge/seed", f"--key-file={key}"]
    commands = [
        ["munged", "--force", "--foreground", *munge],
        ["slurmctld", "-D", "-f", str(conf)],
        ["slurmd", "-D", "-f", str(conf)],
    ]
    environment = os.environ | {"SLURM_CONF": str(conf), "PATH": PATH}
    started = []
    try:
        for command in commands:
            with (place / f"{command[0]}.out").open("w") as log:
                started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            if command[0] == "munged":
                wait_for((place / "munge/socket").exists, "munged", 20)

        def is_idle():
            told = subprocess.run(
                ["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True
            )
            return told.stdout.strip() == "idle"

        wait_for(is_idle, f"Slurm; see {place}", 60)
        yield environment
        # Jobs end before the daemons, which would leave their slurmstepd behind.
        subprocess.run(["scancel", "--partition=all"], env=environment, check=True)
        wait_for(lambda: not has_jobs(environment), "the jobs to end", 60)
        wait_for(lambda: not steps(conf), "slurmstepd to end", 30)
    finally:
        for pid in steps(conf):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in reversed(started):
            process.terminate()
        for process in reversed(started):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def test_slurm_array_whose_workers_are_killed(study, slurm):
    """An array is killed after its first run; a second array simulates the missing runs."""

    def submit():
        count = len((study / "tasks.txt").read_text().splitlines())
        script = f'sed -n "${{SLURM_ARRAY_TASK_ID}}p" {study}/tasks.txt | sh'
        done = subprocess.run(
            [
                "sbatch",
                "--parsable",
                f"--array=1-{count}",
                f"--chdir={ROOT}",
                f"--output={study}/log-%a",
                "--wrap",
                script,
            ],
            env=slurm,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def is_over():
        return not has_jobs(slurm)

    job = submit()
    wait_for(lambda: steps(slurm["SLURM_CONF"]), "slurmstepd to start", 60)
    wait_for(lambda: list((study / "results").glob("trial/*/run.json")), "the first run", 60)
    # The first command kills running tasks, the second cancels waiting ones.
    subprocess.run(["scancel", "--signal=KILL", job], env=slurm, check=True)
    subprocess.run(["scancel", job], env=slurm, check=True)
    wait_for(is_over, "the array to end", 60)
    left = weir("plan", study / "trial.yml", "--tasks", 1, "--missing", study / "results").stdout
    if left:
        (study / "tasks.txt").write_text(left.replace("weir simulate", f"{WEIR} simulate"))
        submit()
        wait_for(is_over, "the second array", 120)
    check_whole(study)


@pytest.mark.filterwarnings("ignore")
def test_dask_jobqueue_starts_workers_by_slurm(study, slurm, monkeypatch):
    jobqueue = package("dask_jobqueue")
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm[name])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "analysis"), *sys.path]))
    with jobqueue.SLURMCluster(
        cores=1,
        memory="1GiB",
        processes=1,
        python=str(ROOT / ".venv/bin/python"),
        job_extra_directives=[f"--chdir={ROOT}", "--mem=0"],
        scheduler_options={"host": "127.0.0.1", "dashboard_address": None},
        local_directory=str(study / "scratch"),
        log_directory=str(study / "logs"),
    ) as cluster:
        cluster.scale(jobs=2)
        done = weir(
            "simulate", study / "trial.yml", "--dask", cluster.scheduler_address, "--out", study / "results"
        )
    assert done.returncode == 0 and "8 runs stored" in done.stdout, done.stderr
    check_whole(study)
