"""`weir simulate --dask`: real worker processes, which are killed; the same results as `weir simulate`."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from support import PATIENCE_S, ROOT, WEIR, hidden, wait_for, weir
from test_simulate import STUDY, contents

from weir import locate
from weir.errors import InputError

distributed = pytest.importorskip(
    "distributed", reason="Dask is not installed: pip install 'weir-bench[scale]'"
)
# Dask's event loops and sockets outlive a test for a moment.
pytestmark = pytest.mark.filterwarnings("ignore")
#: Workers that are killed in turn.
KILLS = int(os.environ.get("WEIR_KILLS", "6"))


@pytest.fixture
def cluster(tmp_path):
    made = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        local_directory=str(tmp_path / "scratch"),
    )
    yield made
    made.close()


def start_worker(cluster, folder):
    """A worker without nanny, as a job scheduler starts one: nobody replaces it when it is killed."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
    options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
    return subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def on_dask(cluster, study, out, *options):
    return weir("simulate", study, "--dask", cluster.scheduler_address, "--out", out, *options)


def test_results_are_those_of_one_machine_and_are_resumed(tmp_path, cluster):
    study, out = tmp_path / "trial.yml", tmp_path / "by-dask"
    study.write_text(STUDY)
    assert weir("simulate", study, "--out", tmp_path / "plain").returncode == 0
    first = weir("plan", study, "--tasks", 3, "--missing", out).stdout.splitlines()[0].split("--id ")[1]
    assert weir("simulate", study, "--out", out, "--id", first).returncode == 0
    done = on_dask(cluster, study, out)
    assert done.returncode == 0, done.stderr
    assert "trial: 5 runs stored, all valid" in done.stdout
    assert contents(out / "trial") == contents(tmp_path / "plain/trial")
    plain, by_dask = (folder / "trial/plan.json" for folder in (tmp_path / "plain", out))
    assert plain.read_bytes() == by_dask.read_bytes()
    assert weir("verify", "--strict", out).returncode == 0 and hidden(out / "trial") == []
    again = on_dask(cluster, study, out)
    assert again.returncode == 0 and " 0 runs stored" in again.stdout
    lost = first.split(",")[0]
    shutil.rmtree(out / "trial" / lost)
    found = on_dask(cluster, study, out, "--json")
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout)
    assert (document["study"], document["folder"]) == ("trial", str(out / "trial"))
    assert (document["stored"], document["invalid"]) == ([lost], [])
    assert "trial: 1 runs stored" in found.stderr
    # A run that is there and damaged is named, and not silently kept.
    damaged = sorted((out / "trial").glob("*/summary.json"))[0]
    damaged.write_bytes(damaged.read_bytes() + b" ")
    refused = on_dask(cluster, study, out)
    assert refused.returncode == 1 and str(damaged.name) in refused.stderr


def test_workers_that_are_killed_lose_nothing(tmp_path):
    """Workers are killed in turn, by pid, while each simulates, as often as WEIR_KILLS says."""
    study, out = tmp_path / "trial.yml", tmp_path / "results"
    repetitions = KILLS * 6
    study.write_text(STUDY.replace("repetitions: 2", f"repetitions: {repetitions}"))
    assert weir("simulate", study, "--out", tmp_path / "plain", "--no-sync").returncode == 0
    runs = repetitions * 4
    with distributed.LocalCluster(
        n_workers=0, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        workers = [start_worker(cluster, tmp_path) for _ in range(2)]
        command = [WEIR, "simulate", study, "--dask", cluster.scheduler_address, "--out", out]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

        def simulates(worker):
            """Whether the worker has a child: a `weir simulate` of its own."""
            children = Path(f"/proc/{worker.pid}/task").glob("*/children")
            return process.poll() is not None or any(file.read_text().strip() for file in children)

        try:
            for number in range(KILLS):
                victim = workers[number % 2]
                wait_for(lambda worker=victim: simulates(worker), "the worker to simulate", 60)
                assert process.poll() is None, f"the study ended after {number} kills: make it longer"
                victim.kill()
                victim.wait()
                workers[number % 2] = start_worker(cluster, tmp_path)
            stdout, stderr = process.communicate(timeout=PATIENCE_S + 10 * KILLS)
        finally:
            for one in [process, *workers]:
                one.kill()
                one.wait()
    assert process.returncode == 0, stderr
    assert f"trial: {runs} runs stored, all valid" in stdout
    assert contents(out / "trial") == contents(tmp_path / "plain/trial")
    assert weir("verify", "--strict", out).returncode == 0 and hidden(out / "trial") == []


def test_an_interrupt_keeps_what_is_finished(tmp_path, cluster):
    study, out = tmp_path / "trial.yml", tmp_path / "results"
    study.write_text(STUDY.replace("repetitions: 2", "repetitions: 100"))
    command = [WEIR, "simulate", study, "--dask", cluster.scheduler_address, "--out", out]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: list(out.glob("trial/*/run.json")), "the first runs")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130 and "the same command continues" in stderr
    finished = len(list(out.glob("trial/*/run.json")))
    assert 0 < finished < 400
    assert weir("verify", "--strict", out).returncode == 0 and hidden(out / "trial") == []


def test_another_binary_and_no_scheduler_are_refused(tmp_path, monkeypatch):
    study = tmp_path / "trial.yml"
    study.write_text(STUDY)
    nobody = weir("simulate", study, "--dask", "127.0.0.1:1", "--out", tmp_path / "r")
    assert nobody.returncode == 2 and "no Dask scheduler" in nobody.stderr and not (tmp_path / "r").exists()
    other = tmp_path / "weir"
    other.write_bytes(WEIR.read_bytes() + b"\0")
    other.chmod(0o755)
    monkeypatch.setenv("WEIR_BINARY", str(tmp_path / "absent"))
    with pytest.raises(InputError, match=r"absent: is no file on host .*; set WEIR_BINARY"):
        locate.binary()
    monkeypatch.delenv("WEIR_BINARY")
    environment = {"WEIR_BINARY": str(other)}
    with distributed.LocalCluster(
        n_workers=1, processes=True, host="127.0.0.1", dashboard_address=None, env=environment
    ) as cluster:
        done = on_dask(cluster, study, tmp_path / "r")
    assert done.returncode == 2 and "another build" in done.stderr, done.stderr
    assert not list((tmp_path / "r").glob("trial/*/run.json"))


def test_archives_are_gathered_and_damage_is_left_out(tmp_path):
    """What a job without a shared file system sends back as tar."""
    study, elsewhere, out = tmp_path / "trial.yml", tmp_path / "elsewhere", tmp_path / "results"
    study.write_text(STUDY)
    assert weir("simulate", study, "--out", elsewhere, "--no-sync").returncode == 0
    runs = sorted(path.parent for path in elsewhere.glob("trial/*/run.json"))
    bad = runs[0] / "summary.json"
    good = bad.read_bytes()
    bad.write_bytes(good.replace(b"1", b"2", 1))
    archive = tmp_path / "runs.tar"
    with tarfile.open(archive, "w") as tar:
        for run in runs:
            tar.add(run, run.name)
    done = weir("gather", study, archive, "--out", out)
    assert done.returncode == 1 and f"{runs[0].name}/summary.json: is damaged" in done.stderr
    assert len(list(out.glob("trial/*/run.json"))) == 7 and hidden(out / "trial") == []
    bad.write_bytes(good)
    with tarfile.open(archive, "w") as tar:
        for run in runs:
            tar.add(run, run.name)
    done = weir("gather", study, archive, "--out", out)
    assert done.returncode == 0 and "1 runs stored" in done.stdout and "7 were there" in done.stdout
    assert contents(out / "trial") == contents(elsewhere / "trial")
    # A run of another study is none of this one's.
    other = tmp_path / "other/trial.yml"
    other.parent.mkdir()
    other.write_text(STUDY.replace("seed: 7", "seed: 8"))
    done = weir("gather", other, archive, "--out", tmp_path / "r2")
    assert done.returncode == 1 and "no run of this study" in done.stderr
    assert not list((tmp_path / "r2").glob("trial/*/run.json"))
    # An archive on standard input that ends early is no archive.
    with archive.open("rb") as file:
        head = file.read(4096)
    cut = subprocess.run(
        [WEIR, "gather", study, "--stream", "--out", tmp_path / "r3"],
        input=b"100000\n" + head, capture_output=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert cut.returncode == 0 and len(cut.stdout.splitlines()) == 1
    assert json.loads(cut.stdout) == {"ready": "trial"} and hidden(tmp_path / "r3/trial") == []
