"""What a study must not do: tell a secret, listen to strangers, write to a disk that it was not given."""

import base64
import ipaddress
import json
import os
import shutil
import socket
import struct
import subprocess
from pathlib import Path

import pytest
from beds import bed, free_ports
from support import ROOT, Bench
from watch import CommandLines, Listeners, Opened, files_below, forms, found_in

pytestmark = pytest.mark.cluster

SERVED = """\
name: served
question: Who listens where?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 1
capture: none
storage: {{profile: hdd-7200, heads: 2, size_mib: 256}}
classes:
  documents: {{workload: zipf-web, with: {{files.count: 40}}, clients: 4, through: web}}
services:
  web: {{service: nginx, port: {web}}}
factors: {{filesystem: [glusterfs, moosefs]}}
hold: {{buffered: true}}
"""
SHOP = """\
name: shopped
question: Who comes into the databases?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.3
duration_s: 6
capture: none
storage: {{profile: ssd-sata, heads: 1, size_mib: 512}}
classes:
  shoppers:
    workload: tpcw-ordering
    clients: 4
    through: shop
services:
  shop:
    site: {{benchmark: tpcw, database: postgresql, items: 100, browsers: 1}}
    port: {port}
factors: {{load: [1]}}
hold: {{filesystem: ext4, scheduler: none}}
"""


def missing(*programs):
    return [name for name in programs if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]


def ansible(folder, tasks, *arguments):
    """Plays tasks on this machine; returns exit code and output."""
    book = [{"name": "A play", "hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    (folder / "play.json").write_text(json.dumps(book))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    settings = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(
        [ROOT / ".venv/bin/ansible-playbook", folder / "play.json", *arguments],
        cwd=folder,
        env=clean | settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_secret_is_found_in_any_of_its_forms():
    """The instrument first: each form that is looked for is found where it is."""
    secret = bytes(range(100, 228))
    for text in (secret, secret.hex().encode(), base64.b64encode(secret), repr(secret).encode()):
        assert found_in(secret, b"before " + text + b" after"), text
    assert not found_in(secret, b"nothing of it") and len(forms(secret)) == 4
    with CommandLines() as lines:
        # A positive control: this is how it would be told.
        subprocess.run(["sh", "-c", "sleep 0.3", "0123456789abcdefghijklmnop"], check=True)
    assert found_in(b"0123456789abcdefghijklmnop", lines.all)


def test_the_key_of_guests_is_told_nowhere(tmp_path):
    """This test has the role make the key of a test bed, at its most talkative, and looks for the key."""
    if absent := missing("ssh-keygen", "mmdebstrap", "qemu-img"):
        pytest.skip(f"not installed: {', '.join(absent)}")
    folder = tmp_path / "hosts"
    folder.mkdir()
    # As if the image were built already: what is of interest here is the key alone.
    (folder / "image.sha256").write_text("same")
    role = {"name": "Make the key", "ansible.builtin.include_role": {"name": "guest_image"}}
    variables = {"guest_image_folder": str(folder), "guest_image_wanted": "same", "weir_kernels": {}}
    variables |= {"weir_root": str(tmp_path)}
    with CommandLines() as lines:
        code, said = ansible(tmp_path, [role], "-vvv", "--diff", "-e", json.dumps(variables))
    assert code == 0, said.decode()
    key = folder / "id_ed25519"
    body = b"".join(key.read_bytes().splitlines()[1:-1])
    whole = base64.b64decode(body)
    # The secret half of an ed25519 key stands before the last occurrence of its public half.
    public = base64.b64decode((folder / "id_ed25519.pub").read_bytes().split()[1])[-32:]
    secret = whole[: whole.rindex(public)][-32:]
    assert key.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "hosts/id_ed25519").rename(tmp_path / "key")
    assert b"guest_image : Create the ssh key" in said and str(tmp_path).encode() in lines.all
    assert not found_in(secret, said, lines.all, files_below(folder))
    # Nor a line of the file as it stands there.
    assert not any(body[at : at + 40] in said + lines.all for at in range(0, len(body) - 40, 20))


def test_the_secret_of_beegfs_is_told_nowhere(tmp_path):
    """This test plays the role for three hosts (programs are stubs, the secret is real) and looks for it."""
    names = ("mgmtd", "meta", "storage", "client", "helperd", "grpc")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    hosts = {
        "client": {"fs_beegfs_roles": ["client"]},
        "store": {
            "fs_beegfs_roles": ["storage"],
            "fs_beegfs_targets": [{"id": 101, "folder": "{{ bed }}/data/101"}],
        },
        "mgmt": {"fs_beegfs_roles": ["mgmtd", "meta"]},
    }
    paths = {f"fs_beegfs_{name}": "{{ bed }}/" + name for name in ("etc", "run", "log")}
    paths |= {f"fs_beegfs_{name}_folder": "{{ bed }}/data/" + name for name in ("mgmtd", "meta")}
    with bed(tmp_path, "fs_beegfs", hosts, fs_beegfs_ports=ports, **paths) as made:
        with CommandLines() as lines:
            up = made.play("-vvv", "--diff")
            made.play(fs_beegfs_cache="native", tasks_from="set_cache", hosts="client,mgmt")
        assert up.code == 0, up.output
        kept = [tmp_path / ".weir/beegfs/conn.auth", *tmp_path.glob("*/etc/conn.auth")]
        (secret,) = {file.read_bytes() for file in kept}
        assert len(kept) == 4 and {file.stat().st_mode & 0o777 for file in kept} == {0o400}
        for file in kept:
            file.unlink()
        assert b"beegfs-mgmtd" in lines.all
        assert not found_in(secret, up.raw, lines.all, files_below(tmp_path))


def test_nobody_comes_into_the_database_without_a_password_that_nobody_has(bench):
    """This test asks the database of a shop to be let in over TCP, as its own user, meanwhile."""
    if not any(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        pytest.skip("needs postgresql")
    bench.folder.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = bench.folder / "shopped.yml"
    file.write_text(SHOP.format(port=port))
    answers = {}

    def ask():
        for address, at in set(listeners_of("postgres")):
            # "E" is an error: it may be starting still.
            if answers.get(at, b"E") == b"E":
                answers[at] = let_in(address, at)

    with CommandLines() as lines, Listeners("weir-none-") as heard:
        playbook = bench.start(file, "--skip-tags", "report", "-vv")
        while playbook.poll() is None:
            ask()
    log = bench.log.read_bytes()
    assert playbook.returncode == 0, log.decode()
    # "R" and 10: prove that you know the password. 0 would be: come in.
    assert answers and set(answers.values()) == {10}, answers
    assert all(ipaddress.ip_address(address).is_loopback for address, _ in heard.seen[""]), heard.seen
    told = log + lines.all + files_below(bench.results)
    assert not any(word in told.lower() for word in (b"pgpassword", b"password=", b"--password"))


def listeners_of(program):
    """Address and port of the sockets at which a program of this name listens."""
    said = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=False).stdout
    for line in said.splitlines():
        if f'"{program}"' in line:
            address, _, port = line.split()[3].rpartition(":")
            yield address.strip("[]"), int(port)


def let_in(address, port):
    """What PostgreSQL asks of its own user for being let in: the number of a way; 0 is nothing."""
    words = b"user\0postgres\0database\0postgres\0\0"
    with socket.create_connection((address, port), timeout=5) as server:
        server.sendall(struct.pack("!ii", 8 + len(words), 196608) + words)
        kind, _, number = struct.unpack("!cii", server.recv(9))
    return number if kind == b"R" else kind


def test_services_listen_on_loopback_or_the_test_network_only(bench):
    """This test notes who listens where, in every namespace, while a web server serves files."""
    if absent := missing("mfsmaster", "mfschunkserver", "mfsmount", "glusterfsd", "glusterfs", "nginx", "ss"):
        pytest.skip(f"not installed: {', '.join(absent)}")
    bench.folder.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = bench.folder / "served.yml"
    file.write_text(SERVED.format(web=port))
    name = f"s{os.getpid()}"
    with Listeners(f"weir-{name}-") as heard:
        code, log = bench.play(file, "--skip-tags", "report", "-e", f"test_network_name={name}")
    assert code == 0, log
    for namespace, found in heard.seen.items():
        for address, at in found:
            where = ipaddress.ip_address(address if address != "*" else "0.0.0.0")
            inside = where.is_loopback or (namespace and where.is_private and not where.is_unspecified)
            assert inside, f"{namespace or 'this host'}: {address}:{at}"
    # All that was to listen was heard: the web server here, data servers of both in their namespaces.
    assert port in {at for _, at in heard.seen[""]}
    for server in ("server-0", "server-1"):
        assert {24010, 9422} <= {at for _, at in heard.seen[f"weir-{name}-{server}"]}, heard.seen


class LoopDisk:
    """A disk of known content that this test makes and takes away, with a stable name."""

    def __init__(self, folder, name, content):
        self.image = folder / f"{name}.img"
        with self.image.open("wb") as file:
            file.write(content)
            file.truncate(256 << 20)
        made = subprocess.run(
            ["losetup", "--find", "--show", "--direct-io=on", self.image],
            capture_output=True,
            text=True,
            check=True,
        )
        self.node = Path(made.stdout.strip())
        self.name = Path("/dev/disk/by-id") / f"weir-safe-{name}-{os.getpid()}"
        self.name.parent.mkdir(parents=True, exist_ok=True)
        self.name.symlink_to(self.node)

    def writes(self):
        """Writes, discards and flushes that were completed, and sectors that were written and discarded."""
        fields = Path("/sys/block", self.node.name, "stat").read_text().split()
        return [int(fields[place]) for place in (4, 6, 11, 13, 15) if place < len(fields)]

    def close(self):
        self.name.unlink()
        subprocess.run(["losetup", "--detach", self.node], check=True)
        self.image.unlink()


def test_a_disk_that_the_inventory_does_not_name_is_never_opened_for_writing(bench: Bench):
    """This test gives a study one disk of two alike, and watches both."""
    content = os.urandom(1 << 20)
    given, other = (LoopDisk(bench.folder, name, data) for name, data in (("given", b""), ("other", content)))
    try:
        before = other.writes()
        disks = {"weir_devices": {"shared": {"path": str(given.name)}}}
        study = bench.study(schedulers="[none, mq-deadline]")
        with Opened(given.node) as of_given, Opened(other.node) as of_other:
            code, log = bench.play(study, "--skip-tags", "report", "-e", json.dumps(disks))
        assert code == 0, log
        assert len(bench.run_folders()) == 2
        # The instrument sees what it is to see.
        assert of_given.for_writing > 0 and given.writes()[1] > 0
        assert of_other.for_writing == 0 and other.writes() == before
        with other.node.open("rb") as file:
            assert file.read(len(content)) == content
    finally:
        given.close()
        other.close()
