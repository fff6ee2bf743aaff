"""The binary: exit codes, messages, schemas."""

import json

import jsonschema
import pytest
import yaml
from support import ROOT, weir

from weir.plan import read_plan


def test_every_shipped_study_and_workload_is_sound():
    checked = weir("check")
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count(": ok (") >= 8


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("mq-deadline]", "mq_deadline]"), ["factors.scheduler", "did you mean `mq-deadline`?"]),
        (("poisson-text", "poison-text"), ["classes.text.workload", "did you mean `poisson-text`?"]),
        (("repetitions: 3", "repititions: 3"), ["repititions", "did you mean `repetitions`?"]),
        (("duration_s: 5", "duration_s: five"), ["duration_s"]),
        (("[ext4, xfs]", "[ext4, zfs]"), ["factors.filesystem", "zfs"]),
    ],
)
def test_a_bad_study_is_refused_by_file_line_and_field(tmp_path, change, says):
    text = (ROOT / "studies/quick.yml").read_text()
    assert change[0] in text
    bad = tmp_path / "quick.yml"
    bad.write_text(text.replace(*change, 1))
    line = 1 + text[: text.index(change[0])].count("\n")
    for command in ("check", "plan"):
        refused = weir(command, bad)
        assert refused.returncode == 2
        assert f"{bad}:{line}:" in refused.stderr
        for part in says:
            assert part in refused.stderr
        assert "panicked" not in refused.stderr


def test_an_unknown_study_is_refused_with_the_nearest():
    refused = weir("plan", "quik")
    assert refused.returncode == 2
    assert "did you mean `quick`?" in refused.stderr


def test_a_root_that_is_no_project_is_refused(tmp_path):
    refused = weir("plan", "quick", WEIR_ROOT=str(tmp_path))
    assert refused.returncode == 2
    assert f"WEIR_ROOT={tmp_path}: has no workloads" in refused.stderr


def test_a_run_that_cannot_be_read_is_refused(tmp_path):
    testbed = tmp_path / "testbed.json"
    testbed.write_text('{"devices": {}}')
    plan = tmp_path / "plan.json"
    plan.write_text(weir("plan", "quick", "--json").stdout)
    places = ("--testbed", testbed, "--results", tmp_path / "results", "--state", tmp_path / "state")
    for arguments in ([plan, "--id", "nonesuch"], [tmp_path / "absent.json"]):
        refused = weir("run", *arguments, *places)
        assert refused.returncode == 2
        assert "error: " in refused.stderr
    assert not (tmp_path / "results").exists()


def test_a_plan_is_the_same_each_time_and_leaves_out_what_is_done(tmp_path):
    first, again = (json.loads(weir("plan", "quick", "--json").stdout) for _ in range(2))
    assert first == again
    done = first["runs"][3]["id"]
    (tmp_path / "quick" / done).mkdir(parents=True)
    rest = json.loads(weir("plan", "quick", "--json", "--missing", tmp_path).stdout)
    assert [run["id"] for run in rest["runs"]] == [run["id"] for run in first["runs"] if run["id"] != done]


@pytest.mark.parametrize("study", ["quick", "kernel-schedulers", "data-center-hybrid", "data-center-access"])
def test_the_compact_plan_has_every_run_of_the_whole_plan(tmp_path, study):
    whole = json.loads(weir("plan", study, "--json").stdout)
    (tmp_path / "plan.json").write_text(weir("plan", study, "--json", "--compact").stdout)
    assert sum("like" in run for run in json.loads((tmp_path / "plan.json").read_text())["runs"]) > 0
    assert read_plan(tmp_path / "plan.json") == whole | {"format": 2}
    assert not any("like" in run for run in whole["runs"])


@pytest.mark.parametrize(
    ("kind", "files"), [("study", "studies/**/*.yml"), ("workload", "workloads/**/*.yml")]
)
def test_the_schema_accepts_what_is_shipped_and_not_what_is_misspelt(kind, files):
    schema = json.loads(weir("schema", kind).stdout)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    documents = [
        yaml.safe_load(file.read_text()) for file in sorted(ROOT.glob(files)) if file.parent.name != "tables"
    ]
    assert documents
    for document in documents:
        validator(schema).validate(document)
        with pytest.raises(jsonschema.ValidationError):
            validator(schema).validate(document | {"misspelt": 1})


@pytest.mark.parametrize("what", ["studies", "workloads", "schedulers", "filesystems", "profiles", "traces"])
def test_what_is_listed_has_names(what):
    listed = json.loads(weir("list", what, "--json").stdout)
    assert len(listed) >= 3
    assert all(entry["name"] for entry in listed)
