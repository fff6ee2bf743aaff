"""JSON Schemas: they accept every shipped YAML file and files of real runs, and refuse damaged ones."""

import copy
import json
import re

import jsonschema
import pytest
import yaml
from support import ROOT, problems_by_schema, weir

SCHEMAS = ROOT / "docs/reference/schemas"
SAMPLE = ROOT / "analysis/weir/sample"
FOLDERS = ("studies", "workloads", "testbeds", "traces", "docs/reference/examples")
SHIPPED = sorted(file for folder in FOLDERS for file in (ROOT / folder).glob("**/*.yml"))
MODELINE = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")
#: Files of a run in virtual time.
OF_RUN = ("run", "verdict", "manifest", "metrics")


class Yaml12(yaml.SafeLoader):
    """As weir and editors read YAML: `on` is a word, only `true` and `false` are truth values."""


Yaml12.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Yaml12.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), ["t", "f"])


def _schema(file):
    """The schema that the first line of a YAML file names."""
    named = MODELINE.match(file.read_text())
    assert named, f"{file}: the first line must be `# yaml-language-server: $schema=...`"
    return (file.parent / named[1]).resolve()


@pytest.mark.parametrize("schema", sorted(SCHEMAS.glob("*.json")), ids=lambda file: file.stem)
def test_a_schema_is_a_schema(schema):
    jsonschema.validators.Draft202012Validator.check_schema(json.loads(schema.read_text()))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_shipped_file_agrees_with_the_schema_that_it_names(file):
    schema = _schema(file)
    assert schema.parent == SCHEMAS
    document = yaml.load(file.read_text(), Yaml12)
    assert problems_by_schema(schema.stem, document) == []
    if isinstance(document, list):
        misspelt = [document[0] | {"misspelt": 1}, *document[1:]]
    else:
        misspelt = document | {"misspelt": 1}
    assert problems_by_schema(schema.stem, misspelt)


def test_files_of_each_kind_name_its_schema():
    """A study that named the schema of a workload would be refused above; a file of a wrong folder is not."""
    kinds = {}
    for file in SHIPPED:
        kinds.setdefault(file.relative_to(ROOT).parts[0], set()).add(_schema(file).stem)
    assert kinds == {
        "studies": {"study"},
        "workloads": {"workload", "table"},
        "testbeds": {"profile", "filesystem", "cluster", "daemon"},
        "traces": {"traces"},
        "docs": {"study"},
    }


@pytest.mark.parametrize("kind", OF_RUN)
def test_files_of_real_runs_agree_with_their_schema(kind):
    files = sorted(SAMPLE.glob(f"*/*/{kind}.json"))
    assert len(files) > 50
    for file in files:
        assert problems_by_schema(kind, json.loads(file.read_text())) == [], file


@pytest.mark.parametrize("kind", OF_RUN)
def test_a_damaged_file_of_a_run_is_refused(kind):
    """This test will take away each required field in turn, and give each a value of another type."""
    sound = json.loads(min(SAMPLE.glob(f"quick/*/{kind}.json")).read_text())
    required = json.loads((SCHEMAS / f"{kind}.json").read_text())["required"]
    assert required
    for field in required:
        without = copy.copy(sound)
        del without[field]
        assert problems_by_schema(kind, without), f"without {field}"
        assert problems_by_schema(kind, sound | {field: ["of another type", {}]}), field


def test_metrics_have_no_unknown_names():
    """The schema has every metric that `weir.derive` computes, with its values."""
    sound = json.loads(min(SAMPLE.glob("quick/*/metrics.json")).read_text())
    assert problems_by_schema("metrics", sound) == []
    of_class = next(iter(sound["classes"].values()))
    of_class["response_mean_ms"] = "fast"
    assert "response_mean_ms" in str(problems_by_schema("metrics", sound))
    of_class["response_mean_ms"] = "unbounded"
    assert problems_by_schema("metrics", sound) == []
    of_class["new_metric"] = 1
    assert "new_metric" in str(problems_by_schema("metrics", sound))


@pytest.mark.parametrize("study", ["quick", "hds-borrowing", "file-systems", "data-center-static"])
def test_a_plan_agrees_with_its_schema(study):
    planned = weir("plan", study, "--json")
    assert planned.returncode == 0, planned.stderr
    plan = json.loads(planned.stdout)
    assert problems_by_schema("plan", plan) == []
    for run in plan["runs"]:
        assert problems_by_schema("run", run) == []
    del plan["runs"][0]["seed"]
    assert problems_by_schema("plan", plan)


def test_an_unknown_kind_is_refused_with_the_known_ones():
    refused = weir("schema", "verdicts")
    assert refused.returncode == 2
    assert "verdict" in refused.stderr and "manifest" in refused.stderr


@pytest.mark.parametrize(
    ("value", "is_right"),
    [
        (4096, True),
        ("4k", True),
        ("64KiB", True),
        ("1.5 MiB", True),
        ("4kB", False),
        ("10s", False),
        ("k", False),
    ],
)
def test_editors_and_the_binary_agree_on_sizes_with_a_unit(tmp_path, value, is_right):
    """The schema accepts what the binary reads, and refuses what is ambiguous or wrong."""
    document = yaml.safe_load((ROOT / "workloads/random-4k.yml").read_text())
    document["sizes"]["drawn"]["fixed"]["bytes"] = value
    assert (problems_by_schema("workload", document) == []) is is_right
    file = tmp_path / "random-4k.yml"
    file.write_text(yaml.safe_dump(document))
    done = weir("check", file)
    assert done.returncode == (0 if is_right else 2), done.stderr
    assert is_right or f"sizes.drawn.fixed.bytes: found `{value}`" in done.stderr or value == "k"


@pytest.mark.parametrize(
    ("value", "is_right"),
    [(1, True), ("500ms", True), ("2m", True), ("1 h", True), ("4k", False), ("5 sec.", False)],
)
def test_editors_and_the_binary_agree_on_times_with_a_unit(tmp_path, value, is_right):
    """As for sizes."""
    document = yaml.safe_load((ROOT / "studies/quick.yml").read_text()) | {"warmup_s": value, "name": "timed"}
    assert (problems_by_schema("study", document) == []) is is_right
    file = tmp_path / "timed.yml"
    file.write_text(yaml.safe_dump(document))
    done = weir("check", file)
    assert done.returncode == (0 if is_right else 2), done.stderr
