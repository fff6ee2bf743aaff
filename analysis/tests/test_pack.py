"""Archives of `weir pack`: equal bytes, the RO-Crate, the tables, and every kind of damage."""

import ast
import gzip
import hashlib
import io
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import polars as pl
import pytest
import ro_crate
import synthetic
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from weir import derive, locate
from weir.cli import main
from weir.documents import replaced
from weir.errors import DamagedError, InputError
from weir.load import load_study
from weir.manifest import seal, sha256_of, unseal
from weir.pack import archive, build, citation, crate, croissant, environment, verify
from weir.study import class_table

PAPERS = Path(__file__).parents[1] / "papers"
CITATION = """\
cff-version: 1.2.0
message: Cite the data set and the paper.
type: dataset
title: "Text and video on two disks: results of study quick"
authors:
  - {family-names: Doe, given-names: Jane, orcid: "https://orcid.org/0000-0002-1825-0097"}
  - {name: The weir developers}
license: CC-BY-4.0
date-released: 2026-05-31
doi: 10.5281/zenodo.1234567
"""
#: Bytes that are flipped.
FLIPS = 60


@pytest.fixture(scope="module")
def cited(tmp_path_factory):
    file = tmp_path_factory.mktemp("cited") / "CITATION.cff"
    file.write_text(CITATION)
    return citation.read(file)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Runs of study `quick` in virtual time in a folder of results, with a `metrics.json` that is wrong."""
    folder = synthetic.virtual_sample(tmp_path_factory.mktemp("results") / "quick")
    run = load_study(folder).valid_runs[0]
    wrong = derive.run_metrics(run)
    wrong["classes"]["text"]["response_p95_ms"] += 1
    (run.path / "metrics.json").write_text(derive.as_text(run, wrong))
    return folder


@pytest.fixture(scope="module")
def packed(sample, cited, tmp_path_factory):
    """The archive of study `quick`."""
    out = tmp_path_factory.mktemp("packed") / "quick.tar"
    return build.pack(build.find([str(sample)], None), out, cited)


@pytest.fixture(scope="module")
def unpacked(packed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(packed.path) as tar:
        tar.extractall(folder, filter="data")
    return folder / "quick"


@pytest.fixture
def folder(unpacked, tmp_path):
    """A copy of the unpacked archive."""
    return shutil.copytree(unpacked, tmp_path / "quick", ignore=shutil.ignore_patterns(".weir"))


def reseal(folder):
    """Makes the checksums of an unpacked archive right, as somebody would who hides a change."""
    found = {name: one for name, one in archive.open_folder(folder).found.items() if name != archive.SUMS}
    metadata = folder / crate.NAME
    document = json.loads(metadata.read_text())
    for entity in document["@graph"]:
        if "sha256" in entity:
            entity["sha256"] = found[entity["@id"]].sha256
    metadata.write_text(json.dumps(document))
    found[crate.NAME] = archive.Sum(sha256_of(metadata), 0)
    (folder / archive.SUMS).write_text(archive.sums_text(found))


def test_equal_results_make_equal_bytes(packed, sample, cited, tmp_path):
    again = build.pack(build.find([str(sample)], None), tmp_path / "again.tar", cited)
    assert again.path.read_bytes() == packed.path.read_bytes()
    assert again.sha256 == hashlib.sha256(packed.path.read_bytes()).hexdigest()


def test_an_archive_is_verified(packed, capsys):
    assert main(["verify", str(packed.path)]) == 0
    said = capsys.readouterr().out
    assert said.endswith("\nverified\n")
    assert packed.sha256 in said
    for what in ("metrics of runs", "tables and answers", "numbers of figures"):
        assert f"study quick: {what}, computed again from raw rows" in said
    # Checksums do not make a statement true.
    for what in ("that the raw rows are what was measured", "validity (verdict.json)", "were not"):
        assert any(line.startswith("not checked:") and what in line for line in said.splitlines()), what


def test_numbers_come_from_raw_rows_and_results_are_not_changed(unpacked, sample):
    run = load_study(sample).valid_runs[0]
    computed = derive.run_metrics(run)["classes"]["text"]["response_p95_ms"]
    for folder, wanted in ((unpacked / "results/quick" / run.id, computed), (run.path, computed + 1)):
        document = json.loads((folder / "metrics.json").read_text())
        assert document["classes"]["text"]["response_p95_ms"] == wanted, folder


def test_a_bare_debian_opens_and_checks_it(packed, tmp_path):
    """This test will use tar and sha256sum, which every Debian has."""
    subprocess.run(["tar", "-xf", packed.path, "-C", tmp_path], check=True)
    check = ["sha256sum", "--quiet", "--strict", "-c", archive.SUMS]
    assert subprocess.run(check, cwd=tmp_path / "quick", capture_output=True, check=True).stdout == b""
    (tmp_path / "quick/methods.md").write_text("other")
    assert b"methods.md: FAILED" in subprocess.run(check, cwd=tmp_path / "quick", capture_output=True).stdout


def test_the_copy_of_the_analysis_verifies(unpacked, tmp_path):
    """This test will verify with the code in the archive alone."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")} | {
        "PYTHONPATH": str(unpacked / "software"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    where = [sys.executable, "-c", "import weir; print(weir.__file__, weir.__version__)"]
    said = subprocess.run(where, cwd=tmp_path, env=clean, capture_output=True, text=True, check=True).stdout
    assert said.startswith(str(unpacked / "software"))
    command = [sys.executable, "-m", "weir", "verify", str(unpacked)]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the analysis that verifies equals that in the archive" in done.stdout


def test_another_analysis_is_noted(folder):
    """A file that only one of the two analyses has makes them differ."""
    (folder / "software/weir/load.py").unlink()
    (folder / "software/weir/other.py").write_text("")
    assert (
        "the analysis that verifies differs from that in the archive in 2 files"
        in verify.verify(folder).notes
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_crate_is_valid_by_roc_validator(unpacked, folder, monkeypatch):
    document = json.loads((unpacked / crate.NAME).read_text())
    assert ro_crate.unknown_terms(document) == set()
    assert ro_crate.problems(unpacked, monkeypatch, "provenance-run-crate-0.5") == []
    # The validator can refuse.
    run = next(entity for entity in document["@graph"] if entity["@id"].startswith("#run/"))
    del run["instrument"]
    (folder / crate.NAME).write_text(json.dumps(document))
    found = ro_crate.problems(folder, monkeypatch, "provenance-run-crate-0.5")
    assert any("instrument" in message for _, message, _ in found)


def test_the_crate_read_by_rocrate_says_how_each_run_came_about(unpacked):
    rocrate = pytest.importorskip("rocrate.rocrate", reason="rocrate is not installed: make setup")
    read = rocrate.ROCrate(str(unpacked))
    study = load_study(unpacked / "results/quick")
    assert read.mainEntity.id == "results/quick/plan.json"
    assert read.root_dataset["license"].id == "https://spdx.org/licenses/CC-BY-4.0"
    assert read.root_dataset["identifier"] == "https://doi.org/10.5281/zenodo.1234567"
    for run in study.runs:
        action = read.dereference(f"#run/quick/{run.id}")
        assert action["instrument"]["softwareVersion"] == "0.1.0"
        objects = {one.id for one in action["object"]}
        assert {"results/quick/plan.json", "specs/workloads/poisson-text.yml"} <= objects
        assert {f"#level/{name}={level}" for name, level in run.levels.items()} <= objects
        files = {one.id for one in action["result"]}
        assert f"results/quick/{run.id}/requests.parquet" in files
    on_disk = {p.relative_to(unpacked).as_posix() for p in unpacked.rglob("*") if p.is_file()}
    stated = {one.id for one in read.data_entities if one.type != "Dataset"}
    own = {name for name in on_disk if not name.startswith(("software/", "results/quick/.weir"))}
    assert stated == own - {crate.NAME, archive.SUMS}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_tables_read_by_mlcroissant_are_those_of_polars(unpacked):
    mlc = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed: make setup")
    read = mlc.Dataset(str(unpacked / croissant.NAME))
    assert not read.metadata.ctx.issues.errors and not read.metadata.ctx.issues.warnings
    assert [one.id for one in read.metadata.record_sets] == ["requests", "series", "runs-quick"]
    rows = pl.DataFrame(list(read.records("requests")), strict=False)
    rows = rows.rename({name: name.removeprefix("requests/") for name in rows.columns})
    rows = rows.with_columns(pl.col(pl.Binary).cast(pl.String))
    for run in load_study(unpacked / "results/quick").runs:
        own = pl.read_parquet(run.path / "requests.parquet")
        found = rows.filter(pl.col("run") == run.id)
        assert found["study"].unique().to_list() == ["quick"]
        for name in ("request", "intended_ns", "completed_ns", "size_bytes", "offset"):
            assert found[name].to_list() == own[name].to_list(), name
    runs = list(read.records("runs-quick"))
    table = class_table(load_study(unpacked / "results/quick"))
    wanted = {(r["run"], r["class"]): r["response_p95_ms"] for r in table.to_dicts()}
    assert wanted == {
        (r["runs-quick/run"].decode(), r["runs-quick/class"].decode()): r["runs-quick/response_p95_ms"]
        for r in runs
    }


def test_methods_have_the_numbers_of_the_study(unpacked):
    text = (unpacked / "methods.md").read_text()
    for words in (
        "12 valid, 0 invalid",
        "4 cells",
        "3 repetitions",
        "seed 1998",
        "poisson-text",
        "weir 0.1.0",
    ):
        assert words in text, words


LOCK = """\
# made by a program
bird==2.0 ; python_full_version < '3.11.5' \\
    --hash=sha256:aa
    # via weir-bench (pyproject.toml)
bird==3.0 ; python_full_version >= '3.11.5' \\
    --hash=sha256:bb \\
    --hash=sha256:cc
    # via weir-bench (pyproject.toml)
egg==1.0 \\
    --hash=sha256:dd
    # via
    #   bird
    #   other
other==5 \\
    --hash=sha256:ee
    # via weir-bench (pyproject.toml)
"""


def test_requirements_are_those_of_the_lock_for_every_python():
    """Debian 12 has Python 3.11.2, for which some versions of this Python are too new."""
    found = environment.requirements({"bird": "3.0"}, LOCK)
    assert [line.split(" ")[0] for line in found.splitlines() if line[0] != " "] == [
        "bird==2.0",
        "bird==3.0",
        "egg==1.0",
    ]
    assert found.count("--hash") == 4 and "via" not in found
    assert environment.requirements({"bird": "3.1"}, LOCK) == "bird==3.1\n"
    assert environment.requirements({"bird": "3.0"}, "") == "bird==3.0\n"


NAMES = st.from_regex(r"[a-z][a-z0-9_@=-]{0,80}(/[a-z][a-z0-9_@=-]{0,80}){0,3}", fullmatch=True)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(NAMES, st.binary(max_size=3000), max_size=8))
def test_what_is_written_is_read_back(files):
    """Names of any length, content of any size; a name is no folder of another."""
    files = {name: data for name, data in files.items() if not any(n.startswith(f"{name}/") for n in files)}
    files.pop(archive.SUMS, None)
    header = {"weir_pack": archive.FORMAT, "weir": "0", "studies": [], "papers": []}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        out = folder / "some.tar"
        with replaced(out, sync=True) as stream:
            writer = archive.Writer(stream, "root", 0)
            writer.add(archive.HEADER, json.dumps(header))
            for name, data in files.items():
                writer.add(name, data)
            writer.close()
        opened = archive.unpack(out, folder / "into")
        assert opened.problems == []
        assert {name: (folder / "into" / name).read_bytes() for name in files} == files
        assert opened.found.keys() == files.keys() | {archive.HEADER, archive.SUMS}


# Damage.


def named(path):
    """The files that verification names, with all that it says of them."""
    found = {}
    for name, what in verify.verify(path).problems:
        found[name] = f"{found.get(name, '')} {what}".strip()
    return found


def changed(folder, name):
    file = folder / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    return name


def test_a_flipped_byte_anywhere_is_found(packed, tmp_path):
    data = packed.path.read_bytes()
    with tarfile.open(packed.path) as tar:
        first = tar.getmembers()[1].offset
    chosen = random.Random(32)
    copy = tmp_path / "flipped.tar"
    for place in [first, len(data) - 1, *(chosen.randrange(first, len(data)) for _ in range(FLIPS))]:
        flipped = bytearray(data)
        flipped[place] ^= 1 << chosen.randrange(8)
        copy.write_bytes(flipped)
        into = tmp_path / f"at-{place}"
        opened = archive.unpack(copy, into)
        assert opened.problems, place
        # In a file, that file alone is named.
        with tarfile.open(packed.path) as tar:
            of = next((m for m in tar if m.offset_data <= place < m.offset_data + m.size), None)
        if of is not None and of.name != f"quick/{archive.SUMS}":
            assert [name for name, _ in opened.problems] == [of.name.removeprefix("quick/")], place
        shutil.rmtree(into)


def test_a_flipped_byte_of_raw_rows_is_named_and_ends_with_1(folder, capsys):
    run = load_study(folder / "results/quick").valid_runs[3]
    name = changed(folder, f"results/quick/{run.id}/requests.parquet")
    assert main(["verify", str(folder)]) == 1
    said = capsys.readouterr().out
    assert f"differs: {name}: is damaged: its SHA-256 is not that in SHA256SUMS" in said
    assert "not checked: numbers of study quick: its results cannot be loaded" in said
    assert "NOT VERIFIED: 1 files differ" in said


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_an_archive_that_is_cut_off_is_found(packed, tmp_path, share):
    cut = tmp_path / "cut.tar"
    data = packed.path.read_bytes()
    cut.write_bytes(data[: int(len(data) * share)])
    opened = archive.unpack(cut, tmp_path / "into")
    said = " ".join(what for _, what in opened.problems)
    assert "cut off or damaged" in said or "SHA256SUMS" in said
    assert main(["verify", str(cut)]) == 1


def test_a_compressed_archive_is_read_and_its_damage_found(packed, tmp_path):
    data = bytearray(gzip.compress(packed.path.read_bytes(), mtime=0))
    whole = tmp_path / "quick.tar.gz"
    whole.write_bytes(data)
    assert archive.unpack(whole, tmp_path / "whole").problems == []
    data[len(data) // 2] ^= 1
    whole.write_bytes(data)
    assert archive.unpack(whole, tmp_path / "damaged").problems


@pytest.mark.parametrize(
    "name", ["results/quick/plan.json", "numbers/quick/answers.txt", "software/weir/load.py"]
)
def test_a_file_that_was_removed_is_named(folder, name):
    (folder / name).unlink()
    assert named(folder)[name] == "is missing: SHA256SUMS lists it"


def test_missing_checksums_are_named(folder):
    (folder / archive.SUMS).unlink()
    assert "is missing" in named(folder)[archive.SUMS]


def test_a_run_that_was_removed_with_its_checksums_is_found(folder):
    """The metrics, tables and figures of fewer runs are others."""
    run = load_study(folder / "results/quick").valid_runs[0]
    shutil.rmtree(folder / "results/quick" / run.id)
    document = json.loads((folder / crate.NAME).read_text())
    document["@graph"] = [one for one in document["@graph"] if run.id not in str(one.get("@id"))]
    (folder / crate.NAME).write_text(json.dumps(document))
    reseal(folder)
    assert "numbers/quick/runs.csv" in named(folder)


def test_a_file_that_was_added_is_named(folder, packed, tmp_path):
    (folder / "extra.txt").write_text("more")
    assert "it was added" in named(folder)["extra.txt"]
    copy = shutil.copy(packed.path, tmp_path / "copy.tar")
    with tarfile.open(copy, "a") as tar:
        tar.add(folder / "extra.txt", "quick/extra.txt")
    assert "it was added" in dict(archive.unpack(copy, tmp_path / "into").problems)["extra.txt"]


def test_a_changed_metric_is_found_even_if_every_checksum_was_made_right(folder):
    run = load_study(folder / "results/quick").valid_runs[0]
    name = f"results/quick/{run.id}/metrics.json"
    file = folder / name
    document = json.loads(unseal(file.read_text())[0])
    before = document["classes"]["text"]["response_p95_ms"]
    # The next number that can be written.
    after = math.nextafter(before, math.inf)
    document["classes"]["text"]["response_p95_ms"] = after
    file.write_text(json.dumps(document, indent=2))
    assert "SHA-256" in named(folder)[name]
    file.write_text(seal(json.dumps(document, indent=2)))
    reseal(folder)
    outcome = verify.verify(folder)
    wanted = f"classes.text.response_p95_ms: {after!r} in the archive, {before!r} computed"
    assert outcome.problems == [(name, f"computed again from raw rows: {wanted}")]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("numbers/quick/figures/text-tail.json", '"x": [', '"x": [0.5, '),
        ("numbers/quick/answers.txt", "settled", "proven"),
        ("numbers/quick/runs.csv", "valid", "invalid"),
    ],
)
def test_a_changed_number_is_found_even_if_every_checksum_was_made_right(folder, name, old, new):
    file = folder / name
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    reseal(folder)
    found = verify.verify(folder).problems
    assert {file for file, _ in found} == {name}
    assert all(what.startswith("computed again from raw rows: ") for _, what in found)


def test_claims_are_judged_again(cited, tmp_path):
    """This test will execute the notebook of a paper on one of its studies, three times."""
    studies = build.find([str(locate.SAMPLE / "hds-reservation")], None)
    out = tmp_path / "hds.tar"
    build.pack(studies, out, cited)
    outcome = verify.verify(out)
    assert outcome.problems == []
    assert any("paper hds: claims of papers, computed again" in text for text in outcome.checked)
    with tarfile.open(out) as tar:
        tar.extractall(tmp_path / "x", filter="data")
    folder = tmp_path / "x/hds-reservation"
    file = folder / "claims/hds/claims.json"
    rows = json.loads(file.read_text())
    assert {row["id"] for row in rows} >= {"H-R a", "H-R b", "H-R c"}
    rows[0]["ours"] += 1e-9
    file.write_text(json.dumps(rows, indent=2) + "\n")
    reseal(folder)
    found = named(folder)
    assert [*found] == ["claims/hds/claims.json"] and "[0].ours" in found["claims/hds/claims.json"]


def test_claims_of_a_paper_that_is_not_installed_are_not_checked(folder):
    file = folder / archive.HEADER
    file.write_text(json.dumps(json.loads(file.read_text()) | {"papers": ["other"]}))
    reseal(folder)
    outcome = verify.verify(folder)
    assert outcome.problems == []
    assert "claims of other: the archive has none" in outcome.unchecked
    (folder / "claims/other").mkdir(parents=True)
    (folder / "claims/other/claims.json").write_text("[]")
    reseal(folder)
    outcome = verify.verify(folder)
    assert any("has no paper 'other'" in text for text in outcome.unchecked)


# Bad input.


def member(name, **fields):
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def test_nothing_is_unpacked_outside_and_no_link(packed, tmp_path):
    evil, absolute = tmp_path / "evil.tar", f"{tmp_path}/absolute"
    shutil.copy(packed.path, evil)
    with tarfile.open(evil, "a") as tar:
        for name in ("quick/../../escaped", absolute, "other/file"):
            tar.addfile(member(name, size=1), io.BytesIO(b"x"))
        tar.addfile(member("quick/link", type=tarfile.SYMTYPE, linkname="/etc"))
        tar.addfile(member("quick/link/passwd", size=1), io.BytesIO(b"x"))
        tar.addfile(member("quick/pack.json", size=2), io.BytesIO(b"{}"))
    into = tmp_path / "deep/into"
    opened = archive.unpack(evil, into)
    names = {name for name, _ in opened.problems}
    assert {
        "quick/../../escaped",
        absolute,
        "other/file",
        "quick/link",
        "quick/pack.json",
    } <= names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "evil.tar"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["into"]
    assert not (into / "link").is_symlink() and not (into / "file").exists()
    assert json.loads((into / "pack.json").read_text())["studies"] == ["quick"]


@pytest.mark.parametrize("content", [b"", b"text", b"\0" * 20480])
def test_what_is_no_archive_is_bad_input(tmp_path, capsys, content):
    file = tmp_path / "no.tar"
    file.write_bytes(content)
    assert main(["verify", str(file)]) == 2
    assert "no.tar: is no archive of `weir pack`" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "nothing.tar")]) == 2


def test_an_archive_of_another_version_is_bad_input(folder, capsys):
    header = json.loads((folder / archive.HEADER).read_text()) | {"weir_pack": 99}
    (folder / archive.HEADER).write_text(json.dumps(header))
    assert main(["verify", str(folder)]) == 2
    assert "field `weir_pack` is 99, this version reads 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"title": None}, "field `title` is missing"),
        ({"authors": None}, "field `authors` is missing"),
        ({"authors": [{"affiliation": "x"}]}, "`family-names` and `given-names`"),
        ({"doi": "doi:10.1/x"}, "field `doi` is 'doi:10.1/x'"),
        ({"license": "my own words"}, "field `license` is 'my own words'"),
        ({"date-released": "May"}, "field `date-released` is 'May'"),
        ({"keywords": "one"}, "field `keywords` is 'one'"),
        (
            {"authors": [{"name": "x", "orcid": "0000-0002-1825-0097"}]},
            "field `orcid` is '0000-0002-1825-0097'",
        ),
        ({"preferred-citation": "10.1/x"}, "field `preferred-citation` is '10.1/x'"),
    ],
)
def test_a_citation_that_cannot_be_used_is_refused(tmp_path, change, said):
    document = yaml.safe_load(CITATION) | change
    file = tmp_path / "mine.cff"
    file.write_text(yaml.safe_dump({name: value for name, value in document.items() if value is not None}))
    with pytest.raises(InputError, match=r"mine\.cff") as caught:
        citation.read(file)
    assert said in str(caught.value)


def test_nothing_is_overwritten_and_nothing_is_half_written(sample, cited, tmp_path):
    out = tmp_path / "quick.tar"
    out.write_text("mine")
    with pytest.raises(InputError, match="exists"):
        build.pack(build.find([str(sample)], None), out, cited)
    assert out.read_text() == "mine"
    copy = shutil.copytree(sample, tmp_path / "results/quick", ignore=shutil.ignore_patterns(".weir"))
    studies = build.find([str(copy)], None)
    table = studies[0].valid_runs[5].path / "requests.parquet"
    data = bytearray(table.read_bytes())
    data[-20] ^= 1
    # Changed after the study was loaded.
    table.write_bytes(data)
    with pytest.raises(DamagedError, match=r"requests\.parquet"):
        build.pack(studies, tmp_path / "other.tar", cited)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["quick.tar", "results"]


RECORD = {
    "system": {
        "host_name": "storage7.example.org",
        "command_line": "root=UUID=8 owner=doe",
        "kernel_release": "6.12.3-doe+",
    },
    "kernel": {"name": "new", "release": "6.12.3-doe+", "source": "/home/doe/linux-image.deb"},
    "devices": {"loop0": {"number": "7:0", "loop_backing": {"file": "/home/doe/disk", "direct_io": True}}},
}


def put_on_hosts(folder, *names):
    """Lets the runs of a study have been on the host of `RECORD`, or jointly on hosts with these names."""
    for path in sorted(folder.glob("*/run.json")):
        run = path.parent
        document = json.loads(unseal((run / "manifest.json").read_text())[0])
        document["files"] = [entry for entry in document["files"] if entry["path"] != "host.json"]
        (run / "host.json").unlink(missing_ok=True)
        for place in [f"hosts/{name}/host.json" for name in names] or ["host.json"]:
            file = run / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(RECORD))
            entry = {"path": place, "size_bytes": file.stat().st_size, "sha256": sha256_of(file)}
            document["files"].append(entry)
        (run / "manifest.json").write_text(seal(json.dumps(document, indent=2)))


@pytest.fixture
def identified(tmp_path):
    """Results of study `quick`, on devices and in virtual time, with the name of a host."""
    folder = shutil.copytree(
        locate.SAMPLE / "quick", tmp_path / "results/quick", ignore=shutil.ignore_patterns(".weir")
    )
    put_on_hosts(folder)
    return folder


def test_an_anonymous_archive_does_not_name_the_host(identified, tmp_path, capsys):
    before = {path: path.read_bytes() for path in identified.rglob("*") if path.is_file()}
    out = tmp_path / "blind.tar"
    assert main(["pack", str(identified), "--anonymous", "--out", str(out)]) == 0
    assert "still has the name" not in capsys.readouterr().out
    with tarfile.open(out) as tar:
        own = [m for m in tar.getmembers() if m.isfile() and not m.name.startswith("quick/software")]
        content = {member.name: tar.extractfile(member).read() for member in own}
    hidden = (b"storage7", b"owner=doe", b"-doe", b"/home/doe")
    assert [name for name, text in content.items() if any(word in text for word in hidden)] == []
    hosts = [json.loads(text) for name, text in content.items() if name.endswith("/host.json")]
    assert len(hosts) == 39 and {one["system"]["host_name"] for one in hosts} == {"host-1"}
    assert {one["system"]["kernel_release"] for one in hosts} == {"6.12.3-local-1"}
    kernel = {"name": "new", "release": "6.12.3-local-1", "source": "linux-image.deb"}
    assert all(one["kernel"] == kernel for one in hosts)
    assert hosts[0]["devices"]["loop0"]["loop_backing"]["file"] == "disk"
    assert main(["verify", str(out)]) == 0
    assert not list(tmp_path.glob(".weir-*"))
    known = {path: text for path, text in before.items() if path.name != "metrics.json"}
    assert {path: path.read_bytes() for path in known} == known


def test_what_still_names_the_host_is_told(identified, tmp_path, capsys):
    (identified / "blocks.json").write_text('{"0": "storage7.example.org", "1": "localhost"}')
    plan = json.loads((identified / "plan.json").read_text())
    (identified / "plan.json").write_text(json.dumps(plan | {"note": "on storage7.example.org"}))
    out = tmp_path / "blind.tar"
    assert main(["pack", str(identified), "--anonymous", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["with_host_name"] == ["quick/plan.json"]
    with tarfile.open(out) as tar:
        blocks = json.load(tar.extractfile("quick/results/quick/blocks.json"))
    assert blocks == {"0": "host-1", "1": "host-2"}


def test_authors_and_several_hosts_cannot_be_anonymous(identified, tmp_path, capsys):
    cited = tmp_path / "CITATION.cff"
    cited.write_text(CITATION)
    out = ["--out", str(tmp_path / "blind.tar")]
    assert main(["pack", str(identified), "--anonymous", "--citation", str(cited), *out]) == 2
    assert "--anonymous: is given beside --citation, which names authors" in capsys.readouterr().err
    put_on_hosts(identified, "one", "two")
    assert main(["pack", str(identified), "--anonymous", *out]) == 2
    assert "ran on several hosts" in capsys.readouterr().err
    assert not (tmp_path / "blind.tar").exists() and not list(tmp_path.glob(".weir-*"))


def test_an_unknown_study_is_refused(tmp_path, capsys):
    (tmp_path / "results").mkdir()
    assert main(["pack", "nothing", "--results", str(tmp_path / "results")]) == 2
    # Names are no patterns: an absolute path and a wildcard are just names without results.
    for name in ("nothing", "/nowhere/nothing", "*", "["):
        assert main(["pack", name, "--results", str(tmp_path / "results")]) == 2
        assert f"{name}: has no results" in capsys.readouterr().err
    assert main(["pack", "quick@6.12"]) == 2


def test_the_checklist_says_what_is_missing(sample, tmp_path, capsys):
    assert main(["pack", str(sample), "--check"]) == 1
    said = capsys.readouterr().out
    assert "[  no] Available: a licence is stated. Add it to the file of --citation: `license`" in said
    assert "[ yes] Functional: quick: every planned run is there (12 of 12 planned)" in said
    file = tmp_path / "c.cff"
    file.write_text(CITATION)
    main(["pack", str(sample), "--check", "--citation", str(file)])
    said = capsys.readouterr().out
    assert "[ yes] Available: a licence is stated (CC-BY-4.0)" in said
    assert "[ yes] Available: a DOI is given (10.5281/zenodo.1234567)" in said
    assert "[  no] Reproduced: quick: 5 repetitions or more (3)" in said
    assert not list(tmp_path.glob("*.tar"))


def test_groups_of_papers_are_in_order():
    """Sums over groups in another order differ in the last bit, and claims are compared to the bit."""
    unordered = []
    for file in sorted(PAPERS.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "group_by":
                told = {word.arg: word.value for word in node.keywords}.get("maintain_order")
                if not (isinstance(told, ast.Constant) and told.value is True):
                    unordered.append(f"{file.name}:{node.lineno}")
    assert unordered == []
