"""An exported study, read back by polars, pandas, pyarrow, DuckDB and R: same rows, same means."""

import json
import math
import shutil
import subprocess

import pandas as pd
import polars as pl
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import synthetic

from weir.cli import main
from weir.errors import InputError
from weir.export import FORMATS, export
from weir.load import load_study
from weir.study import class_table
from weir.tables import scan_requests


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = synthetic.write_study(tmp_path_factory.mktemp("export") / "s", repetitions=2)
    _lose_a_completion(min(folder.glob("*/requests.parquet")))
    return load_study(folder)


def _lose_a_completion(file):
    """One request of class video never completes."""
    table = pq.read_table(file)
    rows = pl.from_arrow(table)
    last = rows.filter(pl.col("class") == "video")["request"].max()
    place = table.schema.get_field_index("completed_ns")
    kept = rows.select(pl.when(pl.col("request") != last).then("completed_ns"))["completed_ns"]
    field = table.schema.field(place).with_nullable(True)
    pq.write_table(table.set_column(place, field, kept.to_arrow()), file)


@pytest.fixture(scope="module")
def exported(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    for form in FORMATS:
        export(study, folder / form, form)
    return folder


def expected_means(study):
    """Mean size and number of requests by run and class, from the tables of the runs themselves."""
    found = {}
    for run in study.valid_runs:
        by = scan_requests(run).group_by("class").agg(pl.len(), pl.col("size_bytes").mean()).collect()
        found |= {(run.id, name): (n, mean) for name, n, mean in by.rows()}
    return found


def test_parquet_read_by_polars_has_every_request_and_level(study, exported):
    rows = pl.read_parquet(exported / "parquet/requests", hive_partitioning=True)
    by = rows.group_by("run", "class").agg(pl.len(), pl.col("size_bytes").mean())
    assert {(r, c): (n, pytest.approx(m)) for r, c, n, m in by.rows()} == expected_means(study)
    for name in study.factors:
        levels = {str(level) for level in study.factors[name]}
        assert {str(level) for level in rows[name].unique()} <= levels


@pytest.mark.parametrize("form", ["csv", "arrow"])
def test_other_formats_hold_what_parquet_holds(study, exported, form):
    for run in study.valid_runs:
        part = exported / form / "requests" / f"run={run.id}" / f"part.{form}"
        parquet = pq.read_table(exported / "parquet/requests" / f"run={run.id}" / "part.parquet").to_pandas()
        if form == "csv":
            found = pd.read_csv(part, keep_default_na=False, na_values=[""])
            parquet = pd.read_csv(_as_csv(parquet), keep_default_na=False, na_values=[""])
        else:
            found = pyarrow.ipc.open_file(part).read_all().to_pandas()
        pd.testing.assert_frame_equal(found, parquet, check_dtype=form == "arrow")


def _as_csv(frame):
    import io

    text = io.StringIO()
    frame.to_csv(text, index=False)
    text.seek(0)
    return text


def test_runs_hold_every_planned_run_and_the_metrics_of_valid_ones(study, exported):
    runs = pl.read_parquet(exported / "parquet/runs.parquet")
    planned = len(study.runs) + len(study.missing)
    assert runs["run"].n_unique() == planned
    valid = runs.filter(pl.col("status") == "valid")
    table = class_table(study)
    joined = valid.join(table, on=["run", "class"], suffix="_own")
    assert joined.height == table.height
    assert (joined["response_p95_ms"] == joined["response_p95_ms_own"]).all()


def test_columns_are_described_in_the_file_and_beside_it(study, exported):
    document = json.loads((exported / "parquet/columns.json").read_text())
    part = next((exported / "parquet/requests").glob("*/part.parquet"))
    schema = pq.read_schema(part)
    described = {column["name"]: column for column in document["tables"]["requests"]}
    assert described.keys() >= {"response_ms", "repetition", *study.factors}
    assert schema.field("response_ms").metadata[b"unit"] == b"ms"
    assert schema.metadata[b"weir.run"].decode() == part.parent.name.removeprefix("run=")
    assert schema.metadata[b"weir.study"].decode() == study.name
    assert {column["name"] for column in document["tables"]["runs"]} == set(
        pl.read_parquet_schema(exported / "parquet/runs.parquet")
    )


@pytest.fixture(scope="module")
def means(exported):
    """Mean size and response time of each class under each scheduler, by polars; one is infinite."""
    rows = pl.read_parquet(exported / "parquet/requests", hive_partitioning=True)
    by = rows.group_by("class", "scheduler").agg(pl.col("size_bytes", "response_ms").mean())
    found = {(name, scheduler): (size, time) for name, scheduler, size, time in by.rows()}
    assert len(found) == 4
    assert sum(math.isinf(time) for _, time in found.values()) == 1
    return {group: pytest.approx(values, rel=1e-12) for group, values in found.items()}


def test_pandas_agrees_with_polars(exported, means):
    rows = pd.read_parquet(exported / "parquet/requests")
    by = rows.groupby(["class", "scheduler"], observed=True)[["size_bytes", "response_ms"]].mean()
    assert {group: tuple(values) for group, values in zip(by.index, by.to_numpy(), strict=True)} == means


def test_duckdb_agrees_with_polars(exported, means):
    duckdb = pytest.importorskip("duckdb")
    table = f"read_parquet('{exported}/parquet/requests/*/*.parquet')"
    query = f"select class, scheduler, avg(size_bytes), avg(response_ms) from {table} group by all"
    assert {(c, s): (size, time) for c, s, size, time in duckdb.sql(query).fetchall()} == means


def test_r_agrees_with_polars(exported, means):
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not installed: apt-get install --no-install-recommends r-base-core")
    program = f"""
        files <- list.files("{exported}/csv/requests", "[.]csv$", recursive = TRUE, full.names = TRUE)
        rows <- do.call(rbind, lapply(files, read.csv))
        by <- aggregate(cbind(size_bytes, response_ms) ~ class + scheduler, rows, mean)
        cat(sprintf("%s %s %.15g %.15g\\n", by$class, by$scheduler, by$size_bytes, by$response_ms), sep = "")
    """
    done = subprocess.run(["Rscript", "-e", program], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {(c, s): (float(size), float(time)) for c, s, size, time in lines} == means


def test_nothing_is_overwritten_and_nothing_is_half_written(study, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/own").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        export(study, tmp_path / "full")
    with pytest.raises(InputError, match="unknown format 'xls'"):
        export(study, tmp_path / "new", "xls")
    damaged = tmp_path / "s"
    shutil.copytree(study.path, damaged)
    broken = load_study(damaged)
    for path in damaged.glob("*/requests.parquet"):
        path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError):
        export(broken, tmp_path / "out")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["full", "s"]
    assert (tmp_path / "full/own").read_text() == "mine"


def test_the_command_says_what_it_wrote(study, tmp_path, capsys):
    assert main(["export", str(study.path), str(tmp_path / "out"), "--csv"]) == 0
    assert "rows of requests in" in capsys.readouterr().out
    assert (tmp_path / "out/runs.csv").exists()
    assert main(["export", str(study.path), str(tmp_path / "out")]) == 2
    assert "is not an empty folder" in capsys.readouterr().err
