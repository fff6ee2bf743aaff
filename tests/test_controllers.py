"""The kernel's controllers of disks as factors: obeyed, read back, skipped where absent, and taken back."""

import json
import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import host_snapshot
import polars as pl
import pytest
from support import ROOT, WEIR, wait_for, weir

STUDY = """\
name: groups
question: Does the kernel do what its control groups are told?
testbed: device
seed: 7
repetitions: 1
warmup_s: {warmup_s}
duration_s: {duration_s}
capture: none
storage: {{profile: {profile}, heads: 1, size_mib: {size_mib}}}
classes:
  one: {{workload: random-4k, with: {with_}, clients: 1}}
  two: {{workload: random-4k, with: {with_}, clients: 1{two}}}
factors:
  {factors}
hold: {{filesystem: raw{hold}}}
"""


def files_of(depth=8, file_mib=32):
    """What a class's workload is given."""
    return f"{{files.size: {{fixed: {{bytes: {file_mib << 20}}}}}, arrivals.closed.depth: {depth}}}"


def version():
    """The version of control groups that the disks are with; None if neither."""
    return json.loads(weir("controllers", "--json").stdout)["version"]


class Groups:
    """Runs of one small study on one modelled disk, without a playbook."""

    def __init__(self, bench):
        self.bench = bench

    def plan(self, factors, profile='"null"', depth=8, hold="", two="", live="", file_mib=32, **times):
        """Plans and serves, by a policy if `live` has one; the runs by the level of their one factor."""
        times = {"warmup_s": 0.2, "duration_s": 1.5} | times
        files = files_of(depth, file_mib)
        size_mib = 4 * file_mib
        study = self.bench.folder / "groups.yml"
        study.write_text(
            STUDY.format(
                factors=factors, profile=profile, with_=files, hold=hold, two=two, size_mib=size_mib, **times
            )
        )
        planned = weir("plan", study, "--json")
        assert planned.returncode == 0, planned.stderr
        (self.bench.folder / "plan.json").write_text(planned.stdout)
        plan = json.loads(planned.stdout)
        spec = self.bench.folder / "shared.yml"
        spec.write_text(f"name: shared\nprofile: {profile}\nheads: 1\nsize_mib: {size_mib}\n{live}")
        served = weir("serve", spec, "--state", self.bench.state / "devices", "--background")
        assert served.returncode == 0, served.stderr
        device = {"modelled": {"state": str(self.bench.state / "devices/shared.json")}}
        (self.bench.folder / "testbed.json").write_text(json.dumps({"devices": {"shared": device}}))
        return {next(iter(run["levels"].values())): run["id"] for run in plan["runs"]}

    def command(self, run, *arguments):
        """The command line of one run."""
        folder = self.bench.folder
        return [
            *("run", folder / "plan.json", "--id", run, "--testbed", folder / "testbed.json"),
            *("--results", self.bench.results / "groups", "--state", self.bench.state, "--json", *arguments),
        ]

    def run(self, run, *arguments):
        """Carries out one run; returns what it said, its verdict and what it observed."""
        done = weir(*self.command(run, *arguments))
        # 3: it was late on a busy machine, which is not what these tests are about.
        assert done.returncode in (0, 3), done.stderr + done.stdout
        folder = self.bench.results / "groups" / run
        verdict = json.loads((folder / "verdict.json").read_text())
        observed = folder / "observed.json"
        return (
            json.loads(done.stdout),
            {rule["rule"]: rule for rule in verdict["rules"]} | {"": verdict["status"]},
            json.loads(observed.read_text()) if observed.exists() else None,
        )

    def start(self, run, *arguments):
        """Begins one run."""
        return subprocess.Popen(
            [WEIR, *map(str, self.command(run, *arguments))],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@pytest.fixture
def groups(bench):
    if version() is None:
        pytest.skip("needs control groups with the controller of disks (blkio or io)")
    yield Groups(bench)
    down = weir("clean", "--state", bench.state)
    assert down.returncode == 0, down.stderr
    assert groups_left(bench.folder) == []


def rates(observed, seconds):
    """Requests a second of each class, as fio counted them in the whole run."""
    return {report["class"]: report["requests"] / seconds for report in observed["fio"]}


def test_limits_are_obeyed_and_what_is_absent_is_skipped(groups):
    runs = groups.plan(
        "cgroup: [{one: io.max.riops=200, two: io.max.rbps=4096000}, {one: io.latency=10000},"
        " {two: io.prio.class=idle}]"
    )
    limited = next(run for level, run in runs.items() if "riops" in level)
    said, rules, observed = groups.run(limited)
    assert rules["R-CONTROL"]["status"] == "valid", rules
    found = rates(observed, 1.7)
    # 200 requests a second, and 4096000 bytes in requests of 4096.
    limits = {"one": 200, "two": 1000}
    assert all(rate < 1.1 * limits[name] for name, rate in found.items()), found
    # Who gets no processor does not come to a limit.
    if observed["stolen"]["of_wanted"] < 0.02:
        assert all(rate > 0.9 * limits[name] for name, rate in found.items()), found
    classes = observed["controllers"]["classes"]
    assert classes["one"]["set"] == classes["one"]["read_back"] == "io.max.riops=200"
    assert classes["two"]["read_bytes"] >= 0.9 * 4096 * found["two"] * 1.7
    # Not configured in every kernel, nor there in version 1.
    for level, run in runs.items():
        if run == limited:
            continue
        said, rules, observed = groups.run(run)
        if said["status"] == "skipped":
            assert observed is None and rules[""] == "skipped"
            word = "io.latency" if "latency" in level else "io.prio.class"
            assert word in said["reason"] and word in rules["R-CONTROL"]["reason"], said
        else:
            assert rules["R-CONTROL"]["status"] == "valid"
    # What was skipped is tried again, and what was done is not.
    missing = weir("plan", groups.bench.folder / "groups.yml", "--json", "--missing", groups.bench.results)
    again = {run["id"] for run in json.loads(missing.stdout)["runs"]}
    skipped = {
        run for run in runs.values() if not (groups.bench.results / "groups" / run / "observed.json").exists()
    }
    assert again == skipped


def test_an_open_loop_class_has_a_process_of_its_own(groups):
    text = ", with: {files.size: {fixed: {bytes: 1048576}}, files.count: 8, arrivals.poisson.rate_per_s: 300}"
    study = "cgroup: [{one: io.max.riops=150}]"
    file = groups.plan(study, two="")
    plan = groups.bench.folder / "groups.yml"
    # The second class becomes an open loop, limited as well.
    plan.write_text(
        plan.read_text()
        .replace(
            "  two: {workload: random-4k, with: " + files_of(),
            "  two: {workload: poisson-text" + text,
        )
        .replace("{one: io.max.riops=150}", "{two: io.max.riops=5000}")
    )
    planned = weir("plan", plan, "--json")
    assert planned.returncode == 0, planned.stderr
    (groups.bench.folder / "plan.json").write_text(planned.stdout)
    (run,) = json.loads(planned.stdout)["runs"]
    assert run["id"] not in file.values()
    _, rules, observed = groups.run(run["id"])
    assert rules["R-CONTROL"]["status"] == "valid", rules
    assert rules["R-PLANNED"]["status"] == "valid", rules
    assert observed["replay"]["planned"] == observed["replay"]["completed"] > 300
    assert observed["controllers"]["classes"]["two"]["set"] == "io.max.riops=5000"


def test_tenants_have_a_group_each_and_begin_together(groups):
    """Three clients of one class will be in groups of their own, and begin when the study lets them."""
    two = ", cgroup_per_client: true"
    runs = groups.plan("load: [1]", two=two, hold=", clients: {two: 3}", warmup_s=1)
    _, rules, observed = groups.run(*runs.values())
    assert rules["R-CONTROL"]["status"] == "valid", rules
    assert rules["R-START"]["status"] == "valid", rules
    found = observed["controllers"]["classes"]
    assert set(found) == {"one", "two"} | {f"two client {client}" for client in range(3)}
    assert len({one["group"] for one in found.values()}) == 5
    folder = groups.bench.results / "groups" / next(iter(runs.values()))
    rows = pl.read_parquet(folder / "requests.parquet").filter(pl.col("completed_ns").is_not_null())
    begun = rows.group_by("class", "client").agg(pl.col("submitted_ns").min() / 1e9)
    assert begun.height == 4
    # fio tells its first issue in whole milliseconds.
    assert begun["submitted_ns"].min() > -0.001 and begun["submitted_ns"].max() < 0.5, begun
    assert not list(folder.rglob("go")) and not list(folder.rglob("*.prerun.txt"))


def test_tenants_of_a_killed_run_are_ended(groups):
    """A run will be killed while its tenants send; cleaning ends them and takes everything back."""
    two = ", cgroup_per_client: true"
    runs = groups.plan("load: [1]", two=two, hold=", clients: {two: 3}", warmup_s=1, duration_s=30)
    begun = groups.start(*runs.values())
    log = f"{groups.bench.results}/groups"

    def clients():
        return [
            pid
            for pid in map(int, filter(str.isdecimal, os.listdir("/proc")))
            if _reads(pid, "comm") == "fio\n" and str(_folder(pid)).startswith(log)
        ]

    try:
        # fio of two classes, and the processes of three tenants.
        wait_for(lambda: len(clients()) == 5, "fio of two classes and three tenants", 30)
        time.sleep(1)
    finally:
        begun.kill()
        begun.communicate()
    cleaned = weir("clean", "--state", groups.bench.state)
    assert cleaned.returncode == 0, cleaned.stderr
    assert clients() == []
    assert groups_left(groups.bench.folder) == []


def _reads(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return None


def _folder(pid):
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None


def test_what_cannot_be_is_said_before_anything_is_touched(dry_bench):
    study = dry_bench.folder / "groups.yml"

    def refused(factors, hold=""):
        study.write_text(
            STUDY.format(
                factors=factors,
                profile="hdd-7200",
                with_="{}",
                hold=hold,
                two="",
                size_mib=128,
                warmup_s=0,
                duration_s=1,
            )
        )
        done = weir("plan", study)
        assert done.returncode == 2
        return done.stderr

    assert "from 1 to 10000" in refused("cgroup: [{one: io.weight=0}]")
    assert "only the scheduler bfq reads" in refused("cgroup: [{one: io.bfq.weight=5}]", ", scheduler: none")
    assert "did you mean `one`" in refused("cgroup: [{oen: io.weight=5}]")
    assert "leave out `buffered`" in refused("cgroup: [{one: io.weight=5}]", ", buffered: true")
    assert "no class has an io.weight" in refused("io_cost: [calibrated, calibrated min=50]")


@pytest.mark.controllers
def test_bfq_divides_a_disk_as_weights_say(groups):
    runs = groups.plan(
        "cgroup: [{one: io.bfq.weight=400, two: io.bfq.weight=100},"
        " {one: io.bfq.weight=100, two: io.bfq.weight=400}]",
        profile="hdd-7200",
        hold=", scheduler: bfq low_latency=0",
        warmup_s=1,
        duration_s=10,
    )
    for level, run in runs.items():
        _, rules, observed = groups.run(run)
        assert rules["R-CONTROL"]["status"] == "valid", rules
        found = rates(observed, 11)
        more, less = ("one", "two") if "one=io.bfq.weight=400" in level else ("two", "one")
        # bfq divides service in sectors; 4 to 1, of which seeks and the queue of the disk take a part.
        assert 2.5 < found[more] / found[less] < 5.5, (level, found)


@pytest.mark.controllers
def test_the_cost_model_divides_a_disk_as_weights_say(groups):
    """Moves the controller of disks to version 2 where it has to, which needs nobody else with groups."""
    before = version()
    runs = groups.plan(
        "cgroup: [{one: io.weight=400, two: io.weight=100}]",
        profile="hdd-7200",
        hold=", scheduler: none",
        # The kernel takes a request for random if it is more than 16 MiB from the group's last one.
        file_mib=256,
        warmup_s=1,
        duration_s=10,
    )
    (run,) = runs.values()
    if before == 1:
        said, rules, _ = groups.run(run)
        assert said["status"] == "skipped" and "--move-io-controller" in rules["R-CONTROL"]["reason"]
    said, rules, observed = groups.run(run, "--move-io-controller")
    if said["status"] == "skipped":
        pytest.skip(said["reason"])
    assert rules["R-CONTROL"]["status"] == "valid", rules
    found = rates(observed, 11)
    assert 2.5 < found["one"] / found["two"] < 5.5, (found, json.dumps(observed["controllers"]["cost"]))
    (cost,) = observed["controllers"]["cost"].values()
    # A disk of 7200 rpm: about 100 random requests a second, and 175 MB/s one behind the other.
    assert cost["calibrated"] and 60 < cost["model"]["rrandiops"] < 250, cost
    assert 50e6 < cost["model"]["rbps"] < 200e6, cost
    assert observed["controllers"]["moved"] == (before == 1)
    assert version() == before


def clients(pid):
    """Processes that a run has begun, and those that they have begun."""
    found = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found  # It has ended.
    for thread in threads:
        for child in text_of(Path(f"/proc/{pid}/task/{thread}/children")).split():
            found += [int(child), *clients(child)]
    return found


def text_of(file):
    """What is in a file of /proc, whose process may have ended."""
    try:
        return file.read_text()
    except OSError:
        return ""


def groups_left(folder):
    """Control groups of runs whose state is in a folder; one may go while they are looked at."""
    walked = (Path(path) for path, _, _ in os.walk("/sys/fs/cgroup"))
    # Named after it, as far as letters and digits go.
    name = re.sub("[^A-Za-z0-9]", "-", folder.name)
    return [path for path in walked if path.parent.name == "weir" and name in path.name]


@pytest.mark.controllers
def test_nothing_is_left_whatever_is_killed(groups):
    """This test will kill the server of a device, a client or the run itself, as often as WEIR_KILLS says."""
    kills, bench = int(os.environ.get("WEIR_KILLS", "6")), groups.bench
    draw = random.Random(kills)
    killed = dict.fromkeys(("server", "client", "run"), 0)
    for number in range(kills):
        (run,) = groups.plan(
            "cgroup: [{one: io.max.riops=300}]",
            hold=", scheduler: sfq",
            live="live: {policy: fcfs}\n",
            duration_s=2 + number / 1e6,
        ).values()
        process = groups.start(run)
        wait_for(
            lambda it=process: it.poll() is not None or (groups_left(bench.folder) and clients(it.pid)),
            "clients in their groups",
        )
        time.sleep(draw.uniform(0, 2))
        whom = draw.choice([*killed])
        server = json.loads((bench.state / "devices/shared.json").read_text())["pid"]
        begun = clients(process.pid)
        victims = {"server": [server], "client": begun, "run": [process.pid]}[whom]
        if victims and process.poll() is None:
            os.kill(draw.choice(victims), signal.SIGKILL)
            killed[whom] += 1
        said = process.communicate(timeout=60)[0]
        # Where it was killed last it was done before; else the run is invalid, or has no result and says why.
        wanted = (0, 3, -9) if whom == "run" else (0, 1, 3)
        assert process.returncode in wanted, (whom, said)
        assert process.returncode != 1 or "error" in said, (whom, said)
        cleaned = weir("clean", "--state", bench.state)
        assert cleaned.returncode == 0, (whom, cleaned.stderr)
        assert bench.leftovers() == [] and groups_left(bench.folder) == [], whom
        left = [str(file) for file in (bench.state / "journal").iterdir()]
        assert not [file for file in left if not file.endswith(host_snapshot.STAYS)], (whom, left)
    assert sum(killed.values()) > kills / 2, (killed, said)


@pytest.mark.controllers
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_the_controller_is_moved_back_whatever_ends_a_run(groups, ending):
    before = version()
    if before != 1 or os.geteuid() != 0:
        pytest.skip("the disks of this host are with version 2 already")
    runs = groups.plan("cgroup: [{one: io.max.riops=100}]", duration_s=60)
    (run,) = runs.values()
    process = groups.start(run, "--move-io-controller")
    record = groups.bench.state / "io-controller.json"
    wait_for(lambda: process.poll() is not None or version() == 2, "the controller to move", 200)
    if process.poll() is not None:
        said = process.communicate()[0]
        assert "skipped" in said, said
        pytest.skip(said)
    assert record.stat().st_mode & 0o777 == 0o600
    time.sleep(1.0)
    process.send_signal(ending)
    process.communicate(timeout=400)
    if ending == signal.SIGKILL:
        assert version() == 2 and record.exists()
        cleaned = weir("clean", "--state", groups.bench.state)
        assert cleaned.returncode == 0, cleaned.stderr
        assert "IoController" in cleaned.stdout
    assert version() == 1 and not record.exists()
    assert "blkio" in Path("/proc/self/mounts").read_text()


@pytest.mark.controllers
def test_a_play_moves_the_controller_once(bench):
    """This test will play a study with three decisions, with one move for all of them."""
    if version() != 1 or os.geteuid() != 0:
        pytest.skip("the disks of this host are with version 2 already")
    fields = {
        "factors": "cgroup: [{one: io.weight=400}, {one: io.weight=100}]",
        "profile": '"null"',
        "two": "",
    }
    text = STUDY.format(**fields, with_=files_of(), hold="", size_mib=128, warmup_s=0.2, duration_s=1)
    precision = "precision: {width: 0.001, cell: {}, at_most: 4}\nrepetitions: 2"
    study = bench.folder / "groups.yml"
    study.write_text(text.replace("repetitions: 1", precision))
    record, seen = bench.state / "io-controller.json", [False]
    playbook = bench.start(study, "--skip-tags", "report", "-e", "weir_move_io_controller=true")
    while playbook.poll() is None:
        if record.exists() != seen[-1]:
            seen.append(not seen[-1])
        time.sleep(0.05)
    log = bench.log.read_text()
    assert playbook.wait() == 0, log
    assert (seen, version()) == ([False, True, False], 1), log
    assert log.count("more repetitions are needed") == 2
    for folder in bench.run_folders("groups").values():
        controllers = json.loads((folder / "observed.json").read_text())["controllers"]
        assert (controllers["version"], controllers["moved"]) == (2, True)
    assert bench.leftovers() == []


@pytest.mark.controllers
def test_the_controller_is_moved_back_whenever_a_run_is_killed(groups):
    """Kills runs while they move the controller and soon after, as often as WEIR_KILLS says.

    Before they ask for anything: the kernel knows a group that has asked for two minutes more."""
    if version() != 1 or os.geteuid() != 0:
        pytest.skip("the disks of this host are with version 2 already")
    kills, bench = int(os.environ.get("WEIR_KILLS", "3")), groups.bench
    record = bench.state / "io-controller.json"
    draw = random.Random(kills)
    found = {1: 0, 2: 0}
    for number in range(kills):
        (run,) = groups.plan("cgroup: [{one: io.max.riops=100}]", duration_s=60).values()
        process = groups.start(run, "--move-io-controller")
        # Looks closely: the move takes some milliseconds.
        while not record.exists():
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.0005)
        # Half of them while it is moved.
        time.sleep(draw.choice((0, draw.uniform(0, 0.03))))
        process.kill()
        process.communicate(timeout=60)
        found[version()] += 1
        cleaned = weir("clean", "--state", bench.state)
        assert cleaned.returncode == 0, (number, cleaned.stderr)
        assert version() == 1 and not record.exists(), (number, cleaned.stdout)
        assert "blkio" in Path("/proc/self/mounts").read_text(), number
        assert groups_left(bench.folder) == [], number
    print(f"killed before the controller had moved: {found[1]}, after it: {found[2]}")
