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
    assert done.returncode == 0 and "39 runs: 39 as they were written" in done.stdout
    next(folder.glob("results/quick/*/requests.parquet")).unlink()
    done = weir("verify", folder, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert not found["verified"]
    assert found["problems"][0]["problem"] == "is missing: SHA256SUMS lists it"


def test_runs_of_an_archive_are_repeated_from_its_plan(archive, tmp_path):
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    theirs, ours = tmp_path / "quick/results/quick", tmp_path / "again"
    done = weir("simulate", theirs / "plan.json", "--out", ours)
    assert done.returncode == 0, done.stderr
    assert (ours / "quick/plan.json").read_bytes() == (theirs / "plan.json").read_bytes()
    done = weir("compare", theirs, ours / "quick")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n16 comparisons: 16 same.\n")
    # A plan that is there is left as it is.
    (ours / "quick/plan.json").write_text("{}")
    assert weir("simulate", theirs / "plan.json", "--out", ours).returncode == 0
    assert (ours / "quick/plan.json").read_text() == "{}"


def test_an_archive_is_verified_alone(archive, tmp_path):
    for more in ((tmp_path,), ("--strict",)):
        done = weir("verify", archive, *more)
        assert done.returncode == 2 and "an archive is verified alone" in done.stderr
    text = tmp_path / "text.tar"
    text.write_text("no archive")
    done = weir("verify", text)
    assert done.returncode == 2 and "is no archive of `weir pack`" in done.stderr
