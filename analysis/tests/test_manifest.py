"""Manifests: what is verified when, and what a damaged file is."""

import json
import os

import polars as pl
import pytest

from weir import manifest
from weir.cli import main
from weir.derive import metrics_of
from weir.errors import DamagedError
from weir.load import load_study
from weir.study import class_table


def first_run(folder):
    return folder / json.loads((folder / "plan.json").read_text())["runs"][0]["id"]


def test_an_object_keeps_its_checksum():
    text = json.dumps({"a": 1, "b": {"c": []}}, indent=2) + "\n"
    body, checksum = manifest.unseal(manifest.seal(text))
    assert body == text and len(checksum) == 64
    sealed = manifest.seal(text)
    for at in range(len(sealed)):
        for bit in range(7):
            changed = sealed[:at] + chr(ord(sealed[at]) ^ 1 << bit) + sealed[at + 1 :]
            assert manifest.unseal(changed) is None, (at, bit)
        assert manifest.unseal(sealed[:at]) is None


def test_the_data_planes_checksum_is_the_same():
    # As `weir_records::sealed::seal` has it.
    assert manifest.seal('{\n  "a": 1\n}\n').startswith('{\n  "a": 1,\n  "checksum": "')


def test_a_sealed_study_is_loaded(sealed_folder):
    study = load_study(sealed_folder)
    assert study.unsealed == () and all(len(run.manifest) == 64 for run in study.runs)
    assert class_table(study).height == 8


def test_metrics_of_other_files_are_computed_again(sealed_folder):
    study = load_study(sealed_folder)
    run = study.runs[0]
    computed = metrics_of(run)
    path = run.path / "metrics.json"
    kept = path.read_text()
    body, _ = manifest.unseal(kept)
    path.write_text(manifest.seal(body.replace(run.manifest, "0" * 64)))
    assert metrics_of(run) == computed
    assert path.read_text() == kept


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"classes"', '"classes "'),
        lambda text: text.replace('"requests"', '"bequests"'),
        lambda text: text.replace('"definitions": 5', '"definitions": 6'),
        lambda text: "[]",
        lambda text: text[:200],
        lambda text: "",
    ],
)
def test_metrics_that_were_changed_are_not_believed(sealed_folder, capsys, change):
    assert main(["summary", str(sealed_folder)]) == 0
    path = first_run(sealed_folder) / "metrics.json"
    path.write_text(change(path.read_text()))
    capsys.readouterr()
    assert main(["summary", str(sealed_folder)]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"error: {path}: is damaged") and "remove the file" in line
    # Computed anew they are sound.
    assert main(["metrics", str(sealed_folder)]) == 0
    assert main(["summary", str(sealed_folder)]) == 0


def test_metrics_of_before_there_were_checksums_are_computed_again(sealed_folder):
    run = load_study(sealed_folder).runs[0]
    computed = metrics_of(run)
    old = {"format": 1, "definitions": 3, "id": run.id, "classes": {}, "devices": {}, "run": {}}
    (run.path / "metrics.json").write_text(json.dumps(old))
    assert metrics_of(run) == computed


@pytest.mark.parametrize("name", ["run.json", "verdict.json", "observed.json", "host.json"])
@pytest.mark.parametrize("content", ["[]", "{}", '{"id": 5, "rules": [7], "cpu": "x"}', "null", "{"])
def test_documents_of_another_shape_are_errors_and_no_tracebacks(sealed_folder, capsys, name, content):
    path = first_run(sealed_folder) / name
    path.write_text(content)
    assert main(["summary", str(sealed_folder)]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"error: {path}: is damaged")


def test_an_answer_before_its_question_is_an_error(study_folder):
    path = first_run(study_folder) / "requests.parquet"
    rows = pl.read_parquet(path)
    wrong = pl.when(pl.int_range(pl.len()) == 3).then(pl.col("intended_ns") - 1).otherwise("completed_ns")
    rows.with_columns(completed_ns=wrong).write_parquet(path)
    with pytest.raises(
        DamagedError, match=r"row 3: column `completed_ns` is .* before `intended_ns`"
    ) as caught:
        class_table(load_study(study_folder))
    assert caught.value.path == path


def test_a_file_that_was_just_written_is_not_remembered(sealed_folder):
    load_study(sealed_folder)
    # The files' times of change are now, whatever those of modification say.
    assert not (sealed_folder / ".weir/verified.json").exists()


def test_a_damaged_memory_of_what_was_verified_does_no_harm(sealed_folder, monkeypatch):
    monkeypatch.setattr(manifest, "_SETTLED_S", -60)
    load_study(sealed_folder)
    memory = sealed_folder / ".weir/verified.json"
    assert len(json.loads(memory.read_text())) == 4
    for text in ("", "[]", '{"a": 1}', memory.read_text().replace("a", "b")):
        memory.write_text(text)
        read = []
        with monkeypatch.context() as patch:
            patch.setattr(manifest, "_check_content", lambda path, _, read=read: read.append(path))
            load_study(sealed_folder)
        assert read, text


def test_results_of_another_user_are_loaded(sealed_folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(manifest, "_SETTLED_S", -60)
    monkeypatch.setattr(manifest, "write_text", refuse)
    assert len(load_study(sealed_folder).runs) == 4


def test_a_link_is_no_file_of_a_run(sealed_folder):
    path = first_run(sealed_folder) / "observed.json"
    path.rename(sealed_folder / "elsewhere.json")
    os.symlink(sealed_folder / "elsewhere.json", path)
    with pytest.raises(DamagedError, match="neither a file nor a folder"):
        load_study(sealed_folder)
