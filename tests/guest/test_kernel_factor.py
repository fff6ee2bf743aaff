"""The factor `kernel` in a guest: kernels of packages and of files, booted in turn and compared.

    make test-guest

The guest is one of `make hosts`. Emulation shows which kernel ran, not how fast it is.
"""

import json
import os
import re
import subprocess

import pytest
from support import ROOT

pytestmark = pytest.mark.guest

STUDY = """\
name: {name}
question: Which kernel serves small random reads faster?
testbed: device
seed: 7
repetitions: {repetitions}
warmup_s: 1
duration_s: 4
storage: {{profile: ssd-sata, heads: 1, size_mib: 64}}
capture: optional
classes:
  text:
    # One request at a time: an emulated processor sends scheduled requests late (R-LATE).
    workload: random-4k
    with: {{files.size: {{fixed: {{bytes: 33554432}}}}, arrivals.closed.depth: 1}}
    clients: 1
factors:
  kernel: [{kernels}]
  scheduler: [{schedulers}]
hold: {{filesystem: raw, architecture: partitioned}}
duplicate: false
"""
PACKAGES = {
    "stable": {"package": "linux-image-amd64"},
    "next": {"package": "linux-image-amd64", "release": "bookworm-backports"},
}
INVENTORY = ".weir/hosts/inventory.yml"
#: A boot under software emulation takes minutes.
LIMIT_S = 3600


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Debian's package, and image and modules out of it; the cloud kernel lacks null_blk."""
    folder = tmp_path_factory.mktemp("files")
    script = """
        package=$(apt-cache depends --important linux-image-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
        apt-get -o APT::Sandbox::User=root download --quiet --quiet "$package" && dpkg-deb --extract ./*.deb .
    """
    done = subprocess.run(["bash", "-ec", script], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"Debian's kernel cannot be fetched: {done.stderr.strip()}")
    (package,), (image,) = folder.glob("*.deb"), folder.glob("boot/vmlinuz-*")
    return {
        "built": {"deb": str(package)},
        "patched": {"image": str(image), "modules": str(folder / "lib/modules")},
    }


@pytest.fixture(scope="module")
def play(tmp_path_factory, files):
    """Calls a playbook for a guest of its own; takes the guest down at the end."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if (ROOT / INVENTORY).exists():
        pytest.skip("test hosts are up: make hosts-down")
    folder = tmp_path_factory.mktemp("kernels")
    state = f"/run/weir-hosts-{os.getpid()}"
    variables = {
        "weir_kernels": PACKAGES | files,
        "weir_results": str(folder / "results"),
        "hosts_qemu_count": 1,
        "hosts_qemu_first_port": 22781,
        "hosts_qemu_state": state,
        "test_hosts_state": state,
    }

    def play(playbook, inventory, **extra):
        done = subprocess.run(
            [
                ROOT / ".venv/bin/ansible-playbook",
                *("-i", ROOT / inventory, ROOT / f"ansible/playbooks/{playbook}.yml"),
                *("-e", json.dumps(variables | extra)),
            ],
            cwd=ROOT,
            env=os.environ | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-8000:]
        return done.stdout

    play.folder = folder
    try:
        play("hosts", "ansible/inventories/localhost.yml", kind="qemu")
        play("prepare_hosts", INVENTORY)
        yield play
    finally:
        play("hosts_down", "ansible/inventories/localhost.yml")


def carry_out(play, name, **of):
    """Runs a study in the guest; returns its output, and run.json, host.json and verdict.json of each run."""
    study = play.folder / f"{name}.yml"
    study.write_text(STUDY.format(name=name, **of))
    output = play("study", INVENTORY, study=str(study))
    results = play.folder / "results" / name
    read = [
        tuple(
            json.loads((results / run["id"] / file).read_text())
            for file in ("run.json", "host.json", "verdict.json")
        )
        for run in json.loads((results / "plan.json").read_text())["runs"]
    ]
    for resolved, host, verdict in read:
        # No rule for scheduled requests applies, so emulation breaks none.
        assert verdict["status"] == "valid", verdict
        booted = host["kernel"]
        assert booted["name"] == resolved["settings"]["kernel"]
        assert booted["release"] == host["system"]["kernel_release"]
    # The guest has its own kernel again, and no record is left.
    assert "booting its own kernel" in output
    again = play("study", INVENTORY, study=str(study))
    assert f"{len(read)} runs, 0 of them to do" in again and "booting" not in again
    assert "R-HOST" not in output + again
    return output, read


def test_each_run_has_the_kernel_of_its_level(play, files):
    """This test will boot a guest six times."""
    output, runs = carry_out(
        play, "kernels", kernels="patched, next", schedulers="none, mq-deadline", repetitions=2
    )
    assert len(runs) == 8
    boots, images = [], {}
    for resolved, host, _ in runs:
        booted = host["kernel"]
        images.setdefault(booted["name"], set()).add((booted["release"], booted["image_sha256"]))
        boot = (resolved["block"], booted["name"], booted["boot_id"])
        if boot not in boots:
            boots.append(boot)
    # A block boots each kernel once, in the reverse order of the block before.
    assert [boot[:2] for boot in boots] == [(0, "patched"), (0, "next"), (1, "next"), (1, "patched")]
    assert len({boot[2] for boot in boots}) == 4
    assert {name: len(found) for name, found in images.items()} == {"patched": 1, "next": 1}
    assert images["patched"] != images["next"]
    sources = {host["kernel"]["name"]: host["kernel"]["source"] for _, host, _ in runs}
    assert sources["patched"] == files["patched"]["image"]
    assert re.fullmatch(r"linux-image-\S+ \S+", sources["next"])
    # The factor that is compared first.
    answer = r"95th percentile of response time: next takes \S+ times that of patched \([^)]*n = 2"
    assert re.search(answer, " ".join(output.split())), output[-4000:]


def test_a_package_and_its_file_are_the_same_kernel(play):
    """This test will boot a guest three times."""
    _, runs = carry_out(play, "files", kernels="stable, built", schedulers="none", repetitions=1)
    booted = {host["kernel"]["name"]: host["kernel"] for _, host, _ in runs}
    assert re.fullmatch(r"linux-image-\S+ \S+", booted["built"]["source"])
    assert booted["built"]["source"] == booted["stable"]["source"]
    assert booted["built"]["image_sha256"] == booted["stable"]["image_sha256"]
    assert booted["built"]["boot_id"] != booted["stable"]["boot_id"]
