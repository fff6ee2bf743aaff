"""The factor `kernel` in a guest: Debian's kernel and that of backports, booted in turn and compared.

    make test-guest

The guest is one of `make hosts`. Emulation shows which kernel ran, not how fast it is.
"""

import json
import os
import subprocess

import pytest
from support import ROOT

pytestmark = pytest.mark.guest

STUDY = """\
name: kernels
question: Which kernel serves text faster?
testbed: device
seed: 7
repetitions: 2
warmup_s: 1
duration_s: 4
storage: {profile: ssd-sata, heads: 1, size_mib: 64}
capture: optional
classes:
  text:
    workload: poisson-text
    with: {files.count: 8}
    clients: 2
    objective: {response_ms: {quantile: 0.95, at_most: 500}}
factors:
  kernel: [stable, next]
  scheduler: [none, mq-deadline]
hold: {filesystem: raw, architecture: partitioned}
duplicate: false
"""
KERNELS = {
    "stable": {"package": "linux-image-amd64"},
    "next": {"package": "linux-image-amd64", "release": "bookworm-backports"},
}
#: A boot under software emulation takes minutes.
LIMIT_S = 3600


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """Calls a playbook for a guest of its own; takes the guest down at the end."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if (ROOT / ".weir/hosts/inventory.yml").exists():
        pytest.skip("test hosts are up: make hosts-down")
    folder = tmp_path_factory.mktemp("kernels")
    state = f"/run/weir-hosts-{os.getpid()}"
    variables = {
        "weir_kernels": KERNELS,
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
    yield play
    play("hosts_down", "ansible/inventories/localhost.yml")


def test_each_run_has_the_kernel_of_its_level(play):
    """This test will build an image, pack two kernels and boot a guest six times."""
    study = play.folder / "kernels.yml"
    study.write_text(STUDY)
    guests = ".weir/hosts/inventory.yml"
    play("hosts", "ansible/inventories/localhost.yml", kind="qemu")
    play("prepare_hosts", guests)
    output = play("study", guests, study=str(study))
    results = play.folder / "results/kernels"
    plan = json.loads((results / "plan.json").read_text())
    assert len(plan["runs"]) == 8
    boots, images = [], {}
    for run in plan["runs"]:
        resolved = json.loads((results / run["id"] / "run.json").read_text())
        host = json.loads((results / run["id"] / "host.json").read_text())
        booted = host["kernel"]
        assert booted["name"] == resolved["settings"]["kernel"]
        assert booted["release"] == host["system"]["kernel_release"]
        images.setdefault(booted["name"], set()).add((booted["release"], booted["image_sha256"]))
        boot = (resolved["block"], booted["name"], booted["boot_id"])
        if boot not in boots:
            boots.append(boot)
    # A block boots each kernel once, in the reverse order of the block before.
    assert [boot[:2] for boot in boots] == [(0, "stable"), (0, "next"), (1, "next"), (1, "stable")]
    assert len({boot[2] for boot in boots}) == 4
    assert {name: len(found) for name, found in images.items()} == {"stable": 1, "next": 1}
    assert images["stable"] != images["next"]
    # The guest has its own kernel again, and no record is left.
    assert "booting its own kernel" in output
    again = play("study", guests, study=str(study))
    assert "8 runs, 0 of them to do" in again and "booting" not in again
    assert "R-HOST" not in output + again
