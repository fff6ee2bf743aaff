"""Generated references: they say what the binary says, and their examples are studies that can be planned."""

import importlib.util
import json

import polars as pl
import pytest
from support import ROOT, weir


def _generated():
    """What docs/generate.py writes; it is no module of a package."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.GENERATED


GENERATED = _generated()
EXAMPLES = sorted((ROOT / "docs/reference/examples").glob("*.yml"))


@pytest.mark.parametrize("path", GENERATED)
def test_a_generated_file_is_what_the_binary_says(path):
    """This test will write the file again; if it differs, `make reference` writes it."""
    assert (ROOT / path).read_text() == GENERATED[path](), f"{path} is out of date: run `make reference`"


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_of_the_study_reference_can_be_planned(file):
    """This test will plan the study; no device is needed."""
    done = weir("plan", file, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"]


def test_a_table_has_the_description_of_its_columns(tmp_path):
    """This test will write requests of a workload to a file and read its metadata."""
    file = tmp_path / "requests.parquet"
    done = weir("generate", "poisson-text", "--clients", 2, "--duration-s", 1, "--out", file)
    assert done.returncode == 0, done.stderr
    described = json.loads(pl.read_parquet_metadata(file)["weir.columns"])
    assert [column["name"] for column in described] == pl.read_parquet_schema(file).names()
    known = {table["file"]: table["columns"] for table in json.loads(weir("schema", "columns").stdout)}
    assert described == known["requests.parquet"]
