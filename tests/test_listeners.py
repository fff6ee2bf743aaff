"""Strangers at the ports and sockets of weir: idle, of another user, too many, or of another token."""

import json
import os
import shutil
import socket
import struct
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from joint import Party, missing, mount_tmpfs, study, unmount
from support import weir

SPEC = 'name: disk\nprofile: "null"\nsize_mib: 16\n'
STRANGERS = 300
NOBODY = 65534


@pytest.fixture
def serve(dry_bench):
    """Starts a server in the background; returns the completed command and the folder of its sockets."""
    spec = dry_bench.folder / "disk.yml"
    spec.write_text(SPEC)

    def start(*arguments):
        words = ("serve", spec, "--policy", "fcfs", "--export", "nbd", *arguments)
        return weir(*words, "--state", dry_bench.state, "--background"), dry_bench.state

    yield start
    down = weir("serve", "--down-all", dry_bench.state)
    assert down.returncode == 0, down.stderr


class NbdClient:
    """A client of the NBD protocol, as far as these tests ask."""

    def __init__(self, place):
        family = socket.AF_UNIX if isinstance(place, str) else socket.AF_INET
        self.stream = socket.socket(family)
        self.stream.settimeout(20)
        self.stream.connect(place)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def take(self, count):
        data = b""
        while len(data) < count:
            some = self.stream.recv(count - len(data))
            if not some:
                raise EOFError
            data += some
        return data

    def go(self):
        """Chooses the export without a name; returns the kind and the text of the last answer."""
        assert self.take(18).startswith(b"NBDMAGICIHAVEOPT")
        self.stream.sendall(struct.pack("!I", 3) + b"IHAVEOPT" + struct.pack("!IIIH", 7, 6, 0, 0))
        while True:
            _, _, kind, length = struct.unpack("!QIII", self.take(20))
            text = self.take(length)
            # Not a piece of information (3).
            if kind != 3:
                return kind, text.decode()

    def write_and_read(self, data, offset=0):
        """Writes, and returns what is there then."""
        self.stream.sendall(struct.pack("!IHHQQI", 0x25609513, 0, 1, 1, offset, len(data)) + data)
        assert struct.unpack("!IIQ", self.take(16)) == (0x67446698, 0, 1)
        self.stream.sendall(struct.pack("!IHHQQI", 0x25609513, 0, 0, 2, offset, len(data)))
        assert struct.unpack("!IIQ", self.take(16)) == (0x67446698, 0, 2)
        return self.take(len(data))


def idle(stack, place, count=STRANGERS):
    """Connections that say nothing, each made in time."""
    for _ in range(count):
        stranger = stack.enter_context(
            socket.socket(socket.AF_UNIX if isinstance(place, str) else socket.AF_INET)
        )
        stranger.settimeout(20)
        stranger.connect(place)


def tasks(state):
    """Threads of the server."""
    pid = json.loads((state / "disk.json").read_text())["pid"]
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def at(state):
    """Where NBD listens."""
    uri = json.loads((state / "disk.json").read_text())["nbd"]
    if uri.startswith("nbd+unix"):
        return uri.partition("socket=")[2]
    host, _, port = uri.removeprefix("nbd://").rpartition(":")
    return host, int(port)


@pytest.mark.parametrize("listen", [(), ("--nbd", "tcp:127.0.0.1:0")], ids=["unix", "tcp"])
def test_idle_strangers_shut_no_client_out(serve, listen):
    begun, state = serve(*listen)
    assert begun.returncode == 0, begun.stderr
    with ExitStack() as stack:
        first = stack.enter_context(NbdClient(at(state)))
        assert first.go() == (1, "")
        before = tasks(state)
        idle(stack, at(state))
        assert tasks(state) <= before + 17
        second = stack.enter_context(NbdClient(at(state)))
        assert second.go() == (1, "")
        # Both work, the old one after it was idle.
        assert second.write_and_read(b"second" * 512) == b"second" * 512
        assert first.write_and_read(b"first" * 512, 8192) == b"first" * 512
        # Idle for longer than a handshake may take, and not cut off.
        time.sleep(6)
        assert first.write_and_read(b"again" * 512) == b"again" * 512
        assert tasks(state) <= before + 3
    assert "no handshake within 5 s" in (state / "disk.log").read_text()


def test_one_client_above_the_limit_is_told_so(serve):
    begun, state = serve("--nbd-connections", "2")
    assert begun.returncode == 0, begun.stderr
    with NbdClient(at(state)) as one, NbdClient(at(state)) as two, NbdClient(at(state)) as three:
        assert one.go()[0] == two.go()[0] == 1
        kind, text = three.go()
        assert kind == 0x80000002 and "limit of 2 clients" in text and "--nbd-connections" in text
        with pytest.raises(EOFError):
            three.take(1)
        assert one.write_and_read(bytes(512)) == bytes(512)
    assert "limit of 2 clients is reached" in (state / "disk.log").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_sockets_are_of_root_and_the_servers_user_alone(serve):
    begun, state = serve()
    assert begun.returncode == 0, begun.stderr
    assert [(state / name).stat().st_mode & 0o777 for name in ("disk.nbd", "disk.sock")] == [0o600, 0o600]
    ask = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "print(s.recv(9) or 'closed')"
    )

    def as_nobody(name, word):
        words = ["/usr/bin/python3", "-c", ask.replace("recv(9)", word), state / name]
        done = subprocess.run(words, user=NOBODY, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr

    send = 'sendall(b\'{"cmd":"stats"}\\n\') or s.recv(9)'
    for folder in (state.parent, state):
        folder.chmod(0o755)
    assert "Permission denied" in as_nobody("disk.nbd", "recv(9)")
    # If somebody opens the socket's file to all, the server still does not.
    for name in ("disk.nbd", "disk.sock"):
        (state / name).chmod(0o666)
    assert "NBDMAGIC" not in as_nobody("disk.nbd", "recv(9)")
    said = as_nobody("disk.sock", send)
    assert "stats" not in said and ("closed" in said or "Error" in said), said
    assert f"of user {NOBODY} was refused" in (state / "disk.log").read_text()
    assert weir("top", "--once", "--state", state).returncode == 0


def test_idle_strangers_do_not_hold_up_control(serve):
    begun, state = serve()
    assert begun.returncode == 0, begun.stderr
    with ExitStack() as stack:
        before = tasks(state)
        idle(stack, str(state / "disk.sock"))
        assert tasks(state) <= before + 17
        top = weir("top", "--once", "--json", "--state", state)
        assert top.returncode == 0, top.stderr
        assert json.loads(weir("serve", "--status", state, "--json").stdout)[0]["stats"] is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--nbd", "tcp:0.0.0.0:10809"), ("0.0.0.0 is not loopback", "ssh tunnel")),
        (("--nbd", "tcp:192.0.2.1:10809"), ("192.0.2.1 is not loopback", "`unix`")),
        (("--nbd", "tcp:[::]:10809"), (":: is not loopback",)),
        (("--nbd", "tcp:localhost:10809"), ("in numbers", "tcp:127.0.0.1:10809")),
        (("--nbd", "127.0.0.1:10809"), ("`unix` or `tcp:ADDRESS:PORT`",)),
        (("--nbd", "unix", "--nbd-port", "1"), ("--nbd-port",)),
        (("--nbd-connections", "0"), ("live.nbd_connections", "1 to 256")),
        (("--nbd", "unix", "--export", "loop"), ("without nbd",)),
    ],
)
def test_where_nbd_may_not_listen_is_refused(tmp_path, options, words):
    spec = tmp_path / "disk.yml"
    spec.write_text(SPEC)
    given = options if "--export" in options else (*options, "--export", "nbd")
    refused = weir("serve", spec, "--policy", "fcfs", *given, "--state", tmp_path / "state")
    assert refused.returncode == 2 and all(word in refused.stderr for word in words), refused.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("listen", [("--nbd", "tcp:127.0.0.1:0"), ("--nbd-port", "0")])
def test_tcp_is_warned_of(serve, listen):
    begun, _ = serve(*listen)
    assert begun.returncode == 0 and "nbd://127.0.0.1:" in begun.stdout, begun.stderr
    assert begun.stderr.startswith("warning: every user and program of this host can read and write `disk`")


def test_a_file_that_bears_a_sockets_name_is_kept(serve, dry_bench):
    dry_bench.state.mkdir(mode=0o700)
    # A state folder already, by its id: in any other the file alone would be refused.
    (dry_bench.state / "id").write_text("0123456789abcdef" * 2)
    file = dry_bench.state / "disk.nbd"
    file.write_text("precious")
    begun, _ = serve()
    assert begun.returncode == 1 and "no socket has this name" in begun.stderr, begun.stderr
    assert file.read_text() == "precious"
    file.unlink()


@pytest.fixture
def party(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: a run mounts")
    if lacking := missing("fio"):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    point = tmp_path / "shared"
    mount_tmpfs(point)
    party = Party(tmp_path, point)
    yield party
    party.close()
    unmount(point)


@pytest.fixture
def few_tasks():
    """A control group that allows 40 processes and threads."""
    group = Path(f"/sys/fs/cgroup/pids/weir-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no pids controller of version 1: {error}")
    (group / "pids.max").write_text("40")
    yield group
    for _ in range(50):
        if not (group / "cgroup.procs").read_text():
            break
        time.sleep(0.1)
    group.rmdir()


def test_idle_strangers_do_not_hold_up_hosts_of_a_run(party, few_tasks):
    """This test will connect 300 times to the first client, which may have 40 threads, before the other."""
    run = party.write_plan(study(party.folder))
    enter = ("sh", "-c", f'echo $$ > {few_tasks}/cgroup.procs; exec "$@"', "sh")
    party.start("a", run, before=enter)
    with ExitStack() as stack:
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", party.port), timeout=5).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < end
                time.sleep(0.05)
        idle(stack, ("127.0.0.1", party.port))
        party.start("b", run)
        done = party.finish()
    for host, (code, out, errors) in done.items():
        assert code in (0, 3) and json.loads(out)["status"] in ("valid", "invalid"), (host, code, out, errors)
        assert "panicked" not in errors, errors
    assert done["a"][2].count("was refused") <= 40


def test_hosts_of_a_run_do_not_meet_in_every_network(party):
    run = party.write_plan(study(party.folder))
    for address in ("0.0.0.0", "[::]", "224.0.0.1"):
        words = [str(word).replace("127.0.0.1", address) for word in party.command("a", run)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 2 and "is no address of one host" in done.stderr, done.stderr


@pytest.mark.skipif(not shutil.which("nbdinfo"), reason="needs nbdinfo (package libnbd-bin)")
def test_another_projects_client_understands_the_refusal(serve):
    begun, state = serve("--nbd-connections", "1")
    assert begun.returncode == 0, begun.stderr
    with NbdClient(at(state)) as one:
        assert one.go()[0] == 1
        uri = f"nbd+unix:///?socket={at(state)}"
        done = subprocess.run(["nbdinfo", uri], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode != 0 and "limit of 1 clients" in done.stderr, done.stderr
