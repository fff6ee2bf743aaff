"""`--json`: every command prints its result as JSON, and nothing else on standard output."""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from support import PATIENCE_S, ROOT, WEIR, weir
from test_disks_fit import SIX, job

#: Commands without `--json`, or without an example here, with the reason.
EXCEPTIONS = {
    "observe": "needs the other hosts of a run, on a test network: tests/test_joint.py reads its JSON",
    "cluster up": "needs the servers of a network file system: the role `cluster` reads its JSON",
    "cluster serve": "needs hosts of a cluster: the role `cluster` reads its JSON",
    "cluster join": "needs hosts of a cluster: the role `cluster` reads its JSON",
    "cluster mount": "needs the servers of a network file system",
}
#: A subcommand in a help text.
COMMAND = re.compile(r"^  ([a-z][a-z0-9-]*)  +\S", re.MULTILINE)
STUDY = """\
name: mine
question: Is text in time?
testbed: simulator
seed: 1
repetitions: 2
warmup_s: 0.2
duration_s: 1
storage: {profile: hdd-7200, heads: 1, size_mib: 128}
classes:
  text: {workload: poisson-text, clients: 20, objective: {response_ms: {quantile: 0.95, at_most: 100}}}
factors: {scheduler: [fcfs, look]}
"""
ON_DEVICE = """\
name: real
question: Does it work?
testbed: device
seed: 1
repetitions: 1
warmup_s: 0.2
duration_s: 0.5
capture: optional
storage: {profile: hdd-7200, heads: 1, size_mib: 128}
classes: {text: {workload: poisson-text, clients: 20}}
factors: {scheduler: [none]}
hold: {filesystem: ext4}
"""
PRECISE = STUDY.replace("mine", "precise") + "precision: {effect: 0.5, at_most: 4}\n"
LARGE = STUDY.replace("mine", "grown").replace("0.95", "0.5")
TASKS = "tasks:\n  - {name: film, cost_ms: 10, period_ms: 100}\n"
HOSTED = """\
name: hosted
question: Do two clients fare as one?
testbed: device
seed: 1
repetitions: 1
warmup_s: 0.2
duration_s: 1
capture: optional
hosts: {clients: 2}
storage: {profile: hdd-7200, heads: 1, size_mib: 128}
classes: {text: {workload: poisson-text, with: {files.count: 30}, clients: 20}}
factors: {load: [1]}
hold: {filesystem: mounted}
"""


def commands():
    """All commands, with their subcommands, as the help of the binary lists them."""
    names = [*_listed(), *_listed("internal")]
    return [command for name in names for command in _leaves(name)]


def _help(*names):
    done = weir(*names, "--help")
    assert done.returncode == 0, done.stderr
    return done.stdout


def _listed(*names):
    return COMMAND.findall(_help(*names))


def _leaves(*names):
    text = _help(*names)
    if "\nCommands:\n" not in text:
        return [" ".join(names)]
    of = COMMAND.findall(text.partition("\nCommands:\n")[2])
    return [leaf for name in of if name != "help" for leaf in _leaves(*names, name)]


def is_root():
    """Why a command that needs root cannot be called."""
    return None if os.geteuid() == 0 else "needs root"


def has_disks():
    """Why no modelled disk can be served."""
    nodes = [node for node in ("/dev/fuse", "/dev/loop-control") if not Path(node).exists()]
    return is_root() or (f"needs {nodes[0]}" if nodes else None)


def has_database():
    """Why no PostgreSQL can be started."""
    here = any(Path("/usr/lib/postgresql").glob("*/bin/postgres")) and shutil.which("createdb")
    return is_root() or (None if here else "needs postgresql")


def has_nginx():
    """Why no nginx can be started."""
    here = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    return is_root() or (None if here else "needs nginx")


class Place:
    """What the examples need, made when it is first asked for."""

    def __init__(self, folder):
        self.folder = folder
        self.ends = contextlib.ExitStack()

    def __getitem__(self, name):
        """A path in the folder."""
        return self.folder / name

    def written(self, name, text):
        """A file with this text."""
        self[name].write_text(text)
        return self[name]

    def called(self, *arguments, codes=(0,), **options):
        """What a command that must work printed."""
        done = weir(*arguments, **options)
        assert done.returncode in codes, done.stderr
        return done.stdout

    @cached_property
    def study(self):
        """A study in virtual time."""
        return self.written("mine.yml", STUDY)

    @cached_property
    def simulated(self):
        """The folder of results with that study."""
        self.called("simulate", self.study, "--out", self["results"], codes=(0, 3))
        return self["results"]

    @cached_property
    def precise(self):
        """The folder of a simulated study with `precision`."""
        self.called("simulate", self.written("precise.yml", PRECISE), "--out", self["precise"], codes=(0, 3))
        return self["precise/precise"]

    @cached_property
    def stream(self):
        """A stream of requests."""
        self.called(
            "generate", "poisson-text", "--clients", 20, "--duration-s", 1, "--out", self["in.parquet"]
        )
        return self["in.parquet"]

    @cached_property
    def target(self):
        """A folder with the files that the requests name."""
        self["target"].mkdir()
        for number in range(64):
            with (self["target"] / f"{number:06}.dat").open("wb") as file:
                file.truncate(8 << 20)
        return self["target"]

    @cached_property
    def loop(self):
        """A loop device of 8 MiB."""
        self["backing"].write_bytes(b"\xaa" * (8 << 20))
        made = subprocess.run(
            ["losetup", "--find", "--show", self["backing"]], capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            pytest.skip(f"no loop device: {made.stderr}")
        device = made.stdout.strip()
        self.ends.callback(subprocess.run, ["losetup", "--detach", device], check=True)
        return device

    @cached_property
    def spec(self):
        """Spec of a block device without service times."""
        return self.written("disk.yml", 'name: disk\nprofile: "null"\nsize_mib: 16\n')

    @cached_property
    def served(self):
        """State folder of a running block server with a class."""
        classes = self.written("classes.yml", "classes:\n  - {name: video, range_mib: [0, 8]}\n")
        options = ("--policy", "sfq", "--classes", classes, "--export", "nbd", "--background")
        self.called("serve", self.spec, *options, "--state", self["live"])
        self.ends.callback(self.called, "serve", "--down-all", self["live"])
        return self["live"]

    @cached_property
    def documents(self):
        """A tree of documents."""
        self.called("documents", *TREE, "--out", self["tree"])
        self["tree"].chmod(0o755)
        return self["tree"]

    @cached_property
    def ports(self):
        """Free ports, by name."""
        with contextlib.ExitStack() as held:
            names = ("nginx", "started", "database")
            sockets = {name: held.enter_context(socket.socket()) for name in names}
            for one in sockets.values():
                one.bind(("127.0.0.1", 0))
            return {name: one.getsockname()[1] for name, one in sockets.items()}

    def _start(self, service, name, *options):
        """Starts a daemon that is stopped at the end."""
        port = self.ports[name]
        where = ("--name", name, "--port", port, "--state", self["daemons"])
        self.called("service", "start", service, *where, *options)
        self.ends.callback(self.called, "clean", "--state", self["daemons"])

    @cached_property
    def nginx(self):
        """Address of a web server with the documents."""
        self._start("nginx", "nginx", "--root", self.documents)
        return f"http://127.0.0.1:{self.ports['nginx']}/"

    @cached_property
    def database(self):
        """Address of an empty database."""
        self._start("postgresql", "database", "--data", self["data"])
        host = self["daemons/services/database"]
        words = ("--host", host, "--port", str(self.ports["database"]), "--username", "postgres", "shop")
        subprocess.run(["createdb", *words], check=True, timeout=PATIENCE_S)
        socket = f"{host}/.s.PGSQL.{self.ports['database']}"
        return f"postgresql:///shop?user=postgres&socket={socket}"

    @cached_property
    def shop(self):
        """Address of a database with a small shop."""
        of = ("--benchmark", "tpcw", "--database", self.database)
        self.called("site", "load", *of, "--items", 100, "--browsers", 1)
        return self.database

    @cached_property
    def site(self):
        """Address of a served shop."""
        process = subprocess.Popen(
            [WEIR, "site", "serve", *_shop(self), "--listen", "127.0.0.1:0", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.ends.callback(_ended, process)
        return json.loads(process.stdout.readline())["url"].removesuffix("tpcw/")

    @cached_property
    def real(self):
        """The plan of a study on a device, and its testbed."""
        plan = self.called("plan", self.written("real.yml", ON_DEVICE), "--json")
        spec = self.written("shared.yml", "name: shared\nprofile: hdd-7200\nheads: 1\nsize_mib: 128\n")
        self.called("serve", spec, "--state", self["runs/devices"], "--background")
        self.ends.callback(self.called, "clean", "--state", self["runs"])
        device = {"modelled": {"state": str(self["runs/devices/shared.json"])}}
        testbed = self.written("testbed.json", json.dumps({"devices": {"shared": device}}))
        (run,) = json.loads(plan)["runs"]
        return (self.written("real.json", plan), "--id", run["id"]), testbed

    @cached_property
    def hosted(self):
        """The plan of a study of two hosts."""
        plan = self.called("plan", self.written("hosted.yml", HOSTED), "--json")
        (run,) = json.loads(plan)["runs"]
        return self.written("hosted.json", plan), "--id", run["id"]


@pytest.fixture(scope="module")
def place():
    """A folder for all examples, in which daemons can read."""
    # Short: the path of a control socket must fit 108 bytes.
    place = Place(Path(tempfile.mkdtemp(prefix="weir-", dir="/tmp")))
    place.folder.chmod(0o755)
    with place.ends:
        yield place
    shutil.rmtree(place.folder)


@dataclass
class Example:
    """One call of a command.

    Attributes:
        arguments: what follows the command's name, from the place.
        keys: fields of the document, or of each of a list of documents.
        codes: exit codes; of a command in the foreground, after SIGINT.
        form: `document`, `lines` of documents, or `foreground`: a line, after which it goes on.
        needs: why it cannot be called here, if it cannot.
        stdin: its standard input, from the place.
    """

    arguments: object
    keys: str
    codes: tuple = (0,)
    form: str = "document"
    needs: object = lambda: None
    stdin: object = lambda _: ""


def _shop(place):
    return ["--benchmark", "tpcw", "--database", place.shop]


def _run(place):
    plan, testbed = place.real
    return [*plan, "--testbed", testbed, "--results", place["measured"], "--state", place["runs"]]


def _device(place):
    disk = Path(place.loop).name
    settings = {"disk": disk, "scheduler": None, "tunables": {}, "queue": {"read_ahead_kb": 64}}
    return json.dumps({name: value for name, value in settings.items() if value is not None})


def _archive(place):
    """A tar of the runs of the study, as another machine sends it."""
    study = place.simulated / "mine"
    names = [path.name for path in study.iterdir() if path.is_dir() and not path.name.startswith(".")]
    subprocess.run(["tar", "-cf", place["runs.tar"], "-C", study, *names], check=True)
    return [place.study, place["runs.tar"], "--out", place["gathered"]]


def _drive(place):
    """Output of fio for the fewest cells of the protocol that can be fitted."""
    log = place.written("drive.json", json.dumps({"jobs": [job(name, 105_000.0) for name in SIX]}))
    return [log, "--out", place["drive.yml"]]


def _results(place):
    return ["mine", "--results", place.simulated]


def _fio(place):
    times = {"mean": 1e6, "min": 1e5, "max": 2e6, "stddev": 1e5, "N": 100, "percentile": {"99.000000": 2e6}}
    of = {"total_ios": 100, "io_bytes": 409600, "runtime": 1000, "lat_ns": times, "clat_ns": times}
    none = {"total_ios": 0, "io_bytes": 0, "runtime": 0, "lat_ns": {}, "clat_ns": {}}
    job = {"jobname": "a", "error": 0, "job options": {"bs": "4k"}, "job_runtime": 1000}
    fio = {"fio version": "fio-3.33", "timestamp": 1, "jobs": [{**job, "read": of, "write": none}]}
    return ["fio", place.written("fio.json", json.dumps(fio)), "--results", place["imported"]]


def _snapshot(place):
    assert place.database
    place.called("service", "stop", "database", "--state", place["daemons"])
    del place.database
    return [place["data"], place["copy"], "--state", place["daemons"]]


def _stat(place):
    return [place.written("stat.json", place.called("trace", "stat", place.stream, "--json"))]


TREE = ("zipf-class0", "--with", "files.count=3")
DATABASE = {"needs": has_database}
EXAMPLES = {
    "init": Example(lambda p: [p["project"]], "study folder files"),
    "list": Example(lambda p: ["schedulers"], "name kind label available settings"),
    "schema": Example(lambda p: ["verdict"], "title properties"),
    "check": Example(lambda p: [p.study], "file kind problems"),
    "plan": Example(lambda p: [p.study], "study question runs factors"),
    "run": Example(_run, "id status requests timing broken", codes=(0, 3), needs=has_disks),
    "simulate": Example(
        lambda p: [p.study, "--out", p["simulated"]],
        "study folder stored present invalid broken requests elapsed_s",
        codes=(0, 3),
    ),
    "gather": Example(_archive, "study folder stored present invalid problems", codes=(0, 3)),
    "verify": Example(lambda p: [p.simulated], "runs damaged unsealed problems"),
    "clean": Example(lambda p: ["--state", p["state"]], "folder undone removed left"),
    "summary": Example(_results, "study question runs answers power warnings classes excluded"),
    "report": Example(_results, "files"),
    "watch": Example(_results, "study planned finished runs is_complete left_s effects", form="lines"),
    "exporter": Example(lambda p: [*_results(p), "--out", p["weir.prom"]], "pid url path", form="foreground"),
    "compare": Example(
        lambda p: [p.simulated / "mine", p.simulated / "mine"], "before after changes", codes=(0, 3)
    ),
    "power": Example(_results, "study power comparisons"),
    "variation": Example(_results, "study variation"),
    "capacity": Example(
        lambda p: [
            *(p.written("grown.yml", LARGE), "--class", "text", "--results", p["grown"]),
            *("--least", 20, "--most", 80, "--resolution", 0.5),
        ],
        "study class estimates repetitions files",
    ),
    "precision": Example(lambda p: [p.precise], "status repetitions intervals sentence", codes=(0, 4)),
    "export": Example(lambda p: [*_results(p), p["exported"]], "study folder rows files"),
    "pack": Example(lambda p: [*_results(p), "--out", p["mine.tar"]], "studies files checklist"),
    "import": Example(lambda p: ["results", *_fio(p)], "study folder runs"),
    "metrics": Example(_results, "study folder runs valid"),
    "figures": Example(
        lambda p: ["your-study", "--study", "mine", "--results", p.simulated], "notebooks failed claims"
    ),
    "claims": Example(lambda p: ["--results", p.simulated, "--out", p["claims.html"]], "papers claims files"),
    "lab": Example(lambda p: ["--", "--no-browser"], "pid url folder", form="foreground"),
    "trace-page": Example(_stat, "files"),
    "generate": Example(
        lambda p: ["poisson-text", "--out", p["out.parquet"]], "workload files requests notes"
    ),
    "workload calibrate": Example(
        lambda p: ["mjpeg-wallace", "--seeds", 2], "workload seeds figures", codes=(0, 1)
    ),
    "workload frames": Example(
        lambda p: ["mpeg-vbr", "--out", p["frames.txt"]], "workload files frames rate_hz"
    ),
    "workload statistics": Example(lambda p: [], "name unit needs meaning"),
    "replay": Example(
        lambda p: [p.stream, "--target", p.target, "--out", p["sent.parquet"]],
        "planned lateness_median_ns lateness_p99_ns",
    ),
    "trace stat": Example(lambda p: [p.stream], "format file trace_format requests"),
    "trace convert": Example(lambda p: [p.stream, "--to", "iolog", "--out", p["a.iolog"]], "files source"),
    "trace filter": Example(
        lambda p: [p.stream, "--to", 0.5, "--out", p["half.parquet"]], "requests steps files source"
    ),
    "trace formats": Example(lambda p: [], "formats options"),
    "trace list": Example(lambda p: [], "name about citation"),
    # Without a network: a file of this machine cannot be fetched, but is found there already.
    "trace fetch": Example(lambda p: _fetched(p), "changed checksum files trace"),
    "admit": Example(
        lambda p: [p.written("tasks.yml", TASKS)], "file mode verdict streams utilisation slack"
    ),
    "device show": Example(lambda p: [p.loop], "devices same_disk", needs=is_root),
    "device check": Example(lambda p: [_blank(p)], "usable device", needs=is_root),
    "disks times": Example(
        lambda p: ["hdd-7200", "--requests", 10, "--kib", 64], "profile longest_seek_ms times"
    ),
    "disks protocol": Example(lambda p: ["--filename", "/dev/none"], "filename job_file"),
    "disks fit": Example(_drive, "cells fitted held_out files profile"),
    "serve": Example(
        lambda p: [p.spec, "--policy", "sfq", "--export", "nbd", "--state", p["shown"]],
        "pid spec nbd",
        form="foreground",
        needs=is_root,
    ),
    "class list": Example(lambda p: ["--state", p.served], "name", needs=is_root),
    "class set": Example(
        lambda p: ["{name: text, weight: 2}", "--state", p.served], "policy classes", needs=is_root
    ),
    "class remove": Example(lambda p: ["text", "--state", p.served], "policy classes", needs=is_root),
    "class policy": Example(lambda p: ["sfq depth=2", "--state", p.served], "policy classes", needs=is_root),
    "top": Example(
        lambda p: ["--state", p.served], "policy classes heads uptime_s", form="foreground", needs=is_root
    ),
    "collect": Example(
        lambda p: [
            *("--device", p.loop, "--out", p["block.parquet"], "--"),
            *("dd", f"if={p.loop}", "of=/dev/null", "bs=4k", "count=10", "iflag=direct", "status=none"),
        ],
        "epoch_monotonic_ns block command",
        needs=is_root,
    ),
    "controllers": Example(lambda p: ["--state", p["state"]], "version moved changed"),
    "fsbench": Example(
        lambda p: [p.folder, "--sizes", "4KiB", "--repeat", 1, "--files", 1], "folder sizes repetitions"
    ),
    "browse": Example(
        lambda p: [
            *(p.nginx, "--workload", "zipf-class0", "--with", "files.count=3"),
            *("--duration-s", 0.5, "--out", p["asked.parquet"]),
        ],
        "classes lateness measured_s",
        needs=has_nginx,
    ),
    "documents": Example(
        lambda p: ["zipf-class0", "--with", "files.count=3", "--out", p["documents"]],
        "documents bytes written",
    ),
    "site load": Example(lambda p: [*_shop(p), "--items", 100, "--browsers", 1], "rows already", **DATABASE),
    "site serve": Example(
        lambda p: [*_shop(p), "--listen", "127.0.0.1:0"], "benchmark url pid", form="foreground", **DATABASE
    ),
    "site browse": Example(
        lambda p: [
            *("--site", p.site, "--mix", "shopping", "--clients", 2, "--duration-s", 1, "--think-scale", 0.01)
        ],
        "wips acknowledged repeated pages report",
        **DATABASE,
    ),
    "site check": Example(_shop, "rules", **DATABASE),
    "service list": Example(lambda p: [], "name description packages version settings"),
    "service start": Example(
        lambda p: [
            *("nginx", "--name", "started", "--root", p.documents, "--port", p.ports["started"]),
            *("--state", p["daemons"]),
        ],
        "name version address process",
        needs=has_nginx,
    ),
    "service status": Example(
        lambda p: ["--state", p["daemons"]], "name pid running log memory cpu", needs=has_nginx
    ),
    "service stop": Example(
        lambda p: ["started", "--state", p["daemons"]], "name changed killed", needs=has_nginx
    ),
    "service snapshot": Example(_snapshot, "path size_bytes", **DATABASE),
    "service restore": Example(
        lambda p: [p["copy"], p["data"], "--state", p["daemons"]], "path copy", **DATABASE
    ),
    "cluster down": Example(lambda p: ["moosefs", "--state", p["clusters"]], "removed", needs=is_root),
    "cluster unmount": Example(
        lambda p: [p["nowhere"], "--state", p["clusters"]], "path mounted", needs=is_root
    ),
    "network up": Example(
        lambda p: ["a,b", "--name", "json", "--state", p["net"]], "name subnet hosts", needs=is_root
    ),
    "network status": Example(lambda p: ["--state", p["net"]], "name subnet hosts", needs=is_root),
    "network down": Example(lambda p: ["--state", p["net"]], "removed", needs=is_root),
    "doctor": Example(lambda p: [], "purpose needs missing remedy", codes=(0, 3)),
    "completions": Example(lambda p: ["bash"], "shell script"),
    "man": Example(lambda p: [p["man"]], "files"),
    "cgroup set": Example(
        lambda p: ["--record", p["group.json"], "--check"],
        "changed folders before after",
        needs=is_root,
        stdin=lambda p: json.dumps({"name": "json", "memory_mib": 64, "weight": 0, "disks": []}),
    ),
    "cgroup remove": Example(
        lambda p: ["--record", p["group.json"]], "changed folders before after", needs=is_root
    ),
    "queue set": Example(
        lambda p: ["--record", p["queue.json"]], "changed before after", needs=is_root, stdin=_device
    ),
    "queue restore": Example(lambda p: ["--record", p["queue.json"]], "changed before after", needs=is_root),
    "join": Example(
        lambda p: [*p.hosted, "--hosts", "a,b", "--results", p["joined"]], "id status why lost", codes=(1,)
    ),
}


def _blank(place):
    """A blank loop device: the other one is not, and cannot be used."""
    with Path(place.loop).open("r+b") as disk:
        disk.write(bytes(8 << 20))
    return place.loop


def _fetched(place):
    """A trace of a catalog of our own, which was fetched before."""
    text = "a,b\n"
    entry = {
        "name": "ours",
        "about": "two cells",
        "citation": "none",
        "licence": "none",
        "home": "http://127.0.0.1:1/",
        "size_bytes": len(text),
        "get": {"fetch": {"url": "http://127.0.0.1:1/ours.csv"}},
    }
    place["fetched"].mkdir()
    (place["fetched"] / "ours.csv").write_text(text)
    catalog = place.written("catalog.yml", json.dumps([entry]))
    return ["ours", "--to", place["fetched"], "--catalog", catalog]


def test_every_command_has_an_example_or_a_reason():
    known = set(EXAMPLES) | set(EXCEPTIONS)
    assert set(commands()) == known
    assert not set(EXAMPLES) & set(EXCEPTIONS)


@pytest.mark.parametrize("command", EXAMPLES)
def test_standard_output_is_json(place, command):
    example = EXAMPLES[command]
    if reason := example.needs():
        pytest.skip(reason)
    words = [*command.split(), *map(str, example.arguments(place))]
    # Before what is passed on to another program.
    at = words.index("--") if "--" in words else len(words)
    words.insert(at, "--json")
    environment = {"WEIR_RESULTS": str(place["results"])}
    if example.form == "foreground":
        documents = [_first_line(words, environment)]
    else:
        done = weir(*words, stdin=example.stdin(place), **environment)
        assert done.returncode in example.codes, done.stderr + done.stdout
        texts = done.stdout.splitlines() if example.form == "lines" else [done.stdout]
        documents = [json.loads(text, parse_constant=_refuse) for text in texts]
    assert documents
    for document in documents:
        found = document if isinstance(document, list) else [document]
        assert found, document
        for one in found:
            assert set(example.keys.split()) <= set(one), one
            # A JSON Schema has names of its own.
            if command != "schema":
                _check_names(one)


def _first_line(words, environment):
    """What a command prints when it is ready; then it is interrupted."""
    process = subprocess.Popen(
        [WEIR, *words],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert select.select([process.stdout], [], [], PATIENCE_S)[0], f"nothing in {PATIENCE_S} s"
        line = process.stdout.readline()
        assert line, process.stderr.read()
        document = json.loads(line, parse_constant=_refuse)
        assert document.get("pid", process.pid) == process.pid
        return document
    finally:
        _ended(process)


def _ended(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _refuse(word):
    raise AssertionError(f"{word} is no JSON")


#: Objects whose keys are names of users, of the kernel, of a paper, or of a format that is not weir's.
NAMED = {
    "slack", "factors", "levels", "tunables", "settings", "options", "rows", "header", "ops",
    "left_out_runs", "needed", "hours", "broken", "errors", "first_failures", "accounts", "labels",
    "fields", "with", "weights", "media", "archive", "mount_options", "before", "after", "noted", "env",
}  # fmt: skip


def _check_names(value, of=""):
    """Names of fields are words in lower case; those of times and sizes end with their unit."""
    if isinstance(value, list):
        for part in value:
            _check_names(part, of)
    elif isinstance(value, dict) and of not in NAMED:
        for name, part in value.items():
            assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name), f"{of}: {name}"
            _check_names(part, name)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_live_recording_is_a_line_for_each_request(place):
    read = ("dd", f"if={place.loop}", "of=/dev/null", "bs=4k", "count=5", "iflag=direct", "status=none")
    done = weir("collect", "--device", place.loop, "--live", "--json", "--", *read)
    if done.returncode != 0 and "BPF" in done.stderr:
        pytest.skip(done.stderr)
    requests = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum((one["op"], one["comm"]) == ("read", "dd") for one in requests) >= 5
    assert all(one["queued_ns"] <= one["completed_ns"] for one in requests if one["queued_ns"])
    tables = json.loads(weir("schema", "columns").stdout)
    (table,) = (table for table in tables if table["file"] == "block.parquet")
    assert set(requests[0]) == {column["name"] for column in table["columns"]}


def test_messages_and_errors_stay_on_standard_error(place):
    project = place["another"]
    made = weir("init", project, "--json")
    assert json.loads(made.stdout)["study"] == "another" and "next: " in made.stderr
    refused = weir("init", project, "--json")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: ") and "is not empty" in refused.stderr


@pytest.mark.parametrize("form", ["csv", "junit"])
def test_another_format_beside_json_is_refused(place, form):
    study = place.simulated / "mine"
    refused = weir("compare", study, study, "--json", "--format", form)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"--format {form}" in refused.stderr
    same = weir("compare", study, study, "--json").stdout
    assert same == weir("compare", study, study, "--format", "json").stdout


def test_markdown_is_not_json():
    assert weir("schema", "study", "--markdown", "--json").returncode == 2


def test_numbers_that_are_not_finite_are_null():
    from weir import json_output

    text = json_output.document({"a": float("inf"), "b": [float("nan"), 1.5], "class_name": "text"})
    assert json.loads(text, parse_constant=_refuse) == {"a": None, "b": [None, 1.5], "class": "text"}
