"""Set-up: what it says where something is missing, and that it is quick where nothing is."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from support import ROOT


def _script(folder, name, *, as_nobody=False, **environment):
    command = [folder / "setup" / name]
    if as_nobody:
        command = ["setpriv", "--reuid=65534", "--clear-groups", *command]
    return subprocess.run(
        command,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _refused(done, *parts):
    """It ended with exit code 2 and one line on stderr, which holds these parts."""
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    for part in parts:
        assert part in line


@pytest.fixture
def copy(tmp_path):
    """The set-up scripts in a folder of their own, which anybody may read."""
    folder = tmp_path / "weir"
    shutil.copytree(ROOT / "setup", folder / "setup")
    for name in ("Cargo.toml", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def _open_to_all(folder):
    """Lets anybody into a folder of a test, through all those above it that are tests', too."""
    below_tmp = [above for above in folder.parents if Path(tempfile.gettempdir()) in above.parents]
    for one in (folder, *below_tmp):
        one.chmod(0o755)


def _path_with(folder, *programs):
    """A search path that holds only these programs."""
    places = folder / "bin"
    places.mkdir()
    for program in programs:
        (places / program).symlink_to(shutil.which(program))
    return str(places)


def test_no_rust(copy):
    path = _path_with(copy, "bash", "sed", "sort", "head", "dirname")
    _refused(_script(copy, "rust.sh", PATH=path), "cargo is not in the PATH", "https://rustup.rs")


def test_a_rust_that_is_too_old(copy):
    path = _path_with(copy, "bash", "sed", "sort", "head", "dirname")
    cargo = copy / "bin/cargo"
    cargo.write_text("#!/bin/sh\necho 'cargo 1.63.0 (fd9c4297c 2022-07-01)'\n")
    cargo.chmod(0o755)
    _refused(_script(copy, "rust.sh", PATH=path), "cargo is 1.63.0, too old", "https://rustup.rs")


def test_no_root(copy):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become nobody")
    (copy / "setup/debian-packages.txt").write_text("bash   is there\nno-such-package-as-this   is not\n")
    _open_to_all(copy)
    done = _script(copy, "packages.sh", as_nobody=True)
    _refused(done, "sudo apt-get install --no-install-recommends no-such-package-as-this")


def test_what_only_devices_need_is_left_without_root(copy):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become nobody")
    (copy / "setup/debian-packages.txt").write_text(
        "# To build\nbash   is there\n\n# To run studies\nno-such-package-as-this   is not\n"
    )
    _open_to_all(copy)
    done = _script(copy, "packages.sh", as_nobody=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no-such-package-as-this (studies in virtual time do without)" in done.stdout


def test_packages_that_are_there_need_no_root_and_no_network(copy):
    (copy / "setup/debian-packages.txt").write_text("# a comment\n\nbash   is there\ncoreutils   too\n")
    done = _script(copy, "packages.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_network_for_python(copy):
    # A proxy that nobody listens at stands for a network that is not there.
    nowhere = {
        name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    }
    nowhere |= {
        "PIP_INDEX_URL": "http://127.0.0.1:9",
        "PIP_RETRIES": "0",
        "PIP_NO_CACHE_DIR": "1",
        "NO_PROXY": "",
    }
    done = _script(copy, "python.sh", **nowhere)
    _refused(done, "check the network", ".weir/logs/python.log")
    assert (copy / ".weir/logs/python.log").stat().st_size > 0


def test_what_is_set_up_is_passed_over_in_silence():
    names = ("packages.sh", "rust.sh", "python.sh", "crates.sh")
    for name in names:
        assert _script(ROOT, name).returncode == 0
    began = time.monotonic()
    for name in names:
        done = _script(ROOT, name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # Coarse: a set-up that does its work again takes minutes.
    assert time.monotonic() - began < 20


def test_make_help_lists_the_targets():
    shown = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("setup", "study", "figures", "report", "test", "lint", "bench", "clean"):
        assert f"make {target} " in shown
