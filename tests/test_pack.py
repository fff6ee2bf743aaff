"""`weir pack` and `weir verify` of the binary, on the sample results of study `quick`."""

import json
import shutil
import tarfile

import pytest
from support import ROOT, weir

SAMPLE = ROOT / "analysis/weir/sample/quick"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The archive of the sample."""
    folder = tmp_path_factory.mktemp("packed")
    results = shutil.copytree(SAMPLE, folder / "results/quick", ignore=shutil.ignore_patterns(".weir"))
    out = folder / "quick.tar"
    done = weir("pack", results, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "checklist: Available 0 of 6" in done.stdout
    return out


def test_the_binary_hands_an_archive_to_the_analysis(archive, tmp_path):
    done = weir("verify", archive)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("\nverified\n")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    folder = tmp_path / "quick"
    # Raw runs in it are verified by the binary alone.
    done = weir("verify", folder / "results/quick")
    assert done.returncode == 0 and "12 runs: 12 as they were written" in done.stdout
    next(folder.glob("results/quick/*/requests.parquet")).unlink()
    done = weir("verify", folder, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert not found["verified"]
    assert found["problems"][0]["problem"] == "is missing: SHA256SUMS lists it"


def test_an_archive_is_verified_alone(archive, tmp_path):
    for more in ((tmp_path,), ("--strict",)):
        done = weir("verify", archive, *more)
        assert done.returncode == 2 and "an archive is verified alone" in done.stderr
    text = tmp_path / "text.tar"
    text.write_text("no archive")
    done = weir("verify", text)
    assert done.returncode == 2 and "is no archive of `weir pack`" in done.stderr
