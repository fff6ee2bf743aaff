"""The factor `kernel` in a guest: kernels of packages and of files, booted in turn and compared.

    make test-guest

The guest is one of `make hosts`. Emulation shows which kernel ran, not how fast it is.
"""

import os
import re
import subprocess

import pytest
from kernel_study import Controller
from support import ROOT

pytestmark = pytest.mark.guest

PACKAGES = {
    "stable": {"package": "linux-image-amd64"},
    "next": {"package": "linux-image-amd64", "release": "trixie-backports"},
}
INVENTORY = ".weir/hosts/inventory.yml"


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
def controller(tmp_path_factory, files):
    """The controller of a guest of its own, which is taken down at the end."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if (ROOT / INVENTORY).exists():
        pytest.skip("test hosts are up: make hosts-down")
    state = f"/run/weir-hosts-{os.getpid()}"
    controller = Controller(
        tmp_path_factory.mktemp("kernels"),
        ROOT / INVENTORY,
        weir_kernels=PACKAGES | files,
        hosts_qemu_count=1,
        hosts_qemu_first_port=22781,
        hosts_qemu_state=state,
        test_hosts_state=state,
    )
    here = ROOT / "ansible/inventories/localhost.yml"
    try:
        controller.play("hosts", here, kind="qemu")
        controller.play("prepare_hosts")
        yield controller
    finally:
        controller.play("hosts_down", here)


def test_each_run_has_the_kernel_of_its_level(controller, files):
    """This test will boot a guest six times."""
    output, runs = controller.carry_out(
        "kernels", kernels="patched, next", schedulers="none, mq-deadline", repetitions=2
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


def test_a_package_and_its_file_are_the_same_kernel(controller):
    """This test will boot a guest three times."""
    _, runs = controller.carry_out("files", kernels="stable, built", schedulers="none", repetitions=1)
    booted = {host["kernel"]["name"]: host["kernel"] for _, host, _ in runs}
    assert re.fullmatch(r"linux-image-\S+ \S+", booted["built"]["source"])
    assert booted["built"]["source"] == booted["stable"]["source"]
    assert booted["built"]["image_sha256"] == booted["stable"]["image_sha256"]
    assert booted["built"]["boot_id"] != booted["stable"]["boot_id"]
