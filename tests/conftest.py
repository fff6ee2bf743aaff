"""Fixtures of the end-to-end tests."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from support import WEIR, Bench


@pytest.fixture(scope="session", autouse=True)
def binary():
    """Every test here calls the built binary."""
    assert WEIR.exists(), f"{WEIR} is not built: run these tests by make test"


def _why_no_devices():
    if os.geteuid() != 0:
        return "needs root: a study formats and mounts block devices"
    for node in ("/dev/fuse", "/dev/loop-control"):
        if not Path(node).exists():
            return f"needs {node}: a modelled disk is a FUSE file behind a loop device"
    if not shutil.which("mkfs.ext4", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        return "needs mkfs.ext4 (package e2fsprogs)"
    return None


def _made():
    # Short: the path of a server's control socket must fit 108 bytes.
    return Bench(Path(tempfile.mkdtemp(prefix="weir-", dir="/tmp")))


@pytest.fixture
def bench():
    """A place of its own for a playbook that makes devices; whatever is left in the end fails the test."""
    if reason := _why_no_devices():
        pytest.skip(reason)
    bench = _made()
    yield bench
    _close(bench)


@pytest.fixture(scope="module")
def shared_bench():
    """A bench for all tests of a module."""
    if reason := _why_no_devices():
        pytest.skip(reason)
    bench = _made()
    yield bench
    _close(bench)


@pytest.fixture
def dry_bench():
    """A bench for playbooks that must not touch anything, and so need no devices."""
    bench = _made()
    yield bench
    shutil.rmtree(bench.folder)


def _close(bench):
    left = bench.leftovers()
    bench.close()
    # Never into a mount: what could not be taken away stays to be looked at.
    if not bench.leftovers():
        shutil.rmtree(bench.folder)
    assert left == []
