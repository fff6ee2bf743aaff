"""Export of a study for other tools: one table of runs and one of requests, with the levels as columns.

    DIR/columns.json                    name, type, unit and meaning of every column of both tables
    DIR/runs.FORMAT                     one row per planned run and class: levels, validity, every metric
    DIR/requests/run=ID/part.FORMAT     every request of a valid run, with the run's levels and `response_ms`

DuckDB, polars, pandas and R read `DIR/requests` as one table, with the column `run` from the folders' names.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import polars as pl

from weir import __version__
from weir.documents import FORMAT
from weir.errors import InputError
from weir.labels import label
from weir.load import RUN_AGAIN, Level, Run, Study
from weir.study import IDENTITY, class_table
from weir.tables import response_ms, scan_requests

#: Formats of tables by the ends of their names.
FORMATS = {"parquet": "parquet", "csv": "csv", "arrow": "arrow"}
#: Key of the descriptions of columns in the metadata of a table.
COLUMNS_KEY = b"weir.columns"
#: Columns that describe a run, beside its levels.
_RUN_COLUMNS = {
    "run": "Identifier of the run.",
    "class": "Application class.",
    "testbed": "device (real time), simulator (virtual time) or imported (another program).",
    "repetition": "Repetition of the cell, from 0.",
    "block": "Block of the design: runs of one block are compared with each other.",
    "order": "Position of the run in the order of execution.",
    "status": "valid, imported, invalid, skipped or missing; metrics are of valid and imported runs only.",
    "reason": "Why the run is not valid.",
}
_RESPONSE = {
    "name": "response_ms",
    "type": "double",
    "unit": "ms",
    "meaning": "Completion minus intended time; infinite where the request failed or never completed.",
    "null": None,
}
ROWS_PER_BATCH = 131_072


def export(study: Study, out: Path, form: str = "parquet") -> dict[str, int]:
    """Writes the tables of a study into a new folder; nothing is left behind if it fails.

    Args:
        study: the study.
        out: the folder; it must not exist, or be empty.
        form: a name of `FORMATS`.

    Returns:
        The rows of each table that was written: `runs`, and `requests` unless the study keeps summaries only.

    Raises:
        InputError: the format is unknown, the folder holds something, or a table of a run is damaged.
    """
    if form not in FORMATS:
        raise InputError(out, f"unknown format {form!r}", f"use one of {', '.join(FORMATS)}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(out, "exists and is not an empty folder", "name a folder that does not exist")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".partial", dir=out.parent))
    except OSError as error:
        raise InputError(
            out.parent, f"cannot be written ({error.strerror})", "name another folder"
        ) from error
    try:
        written = _write_all(study, partial, form)
        partial.chmod(0o755)
        # Replaces an empty folder, and fails where something was put there meanwhile.
        os.rename(partial, out)
    except OSError as error:
        raise InputError(out, f"cannot be written ({error.strerror})", "make room on the disk") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return written


def _write_all(study: Study, folder: Path, form: str) -> dict[str, int]:
    runs = runs_table(study)
    about = {"runs": about_runs(study, runs)}
    _write(folder / f"runs.{form}", form, runs.to_arrow(), about["runs"], study, "")
    rows = {"runs": runs.height}
    for run in study.valid_runs:
        if not (run.path / "requests.parquet").exists():
            continue
        part = folder / "requests" / f"run={run.id}" / f"part.{form}"
        part.parent.mkdir(parents=True)
        count, about["requests"] = _write_requests(run, part, form, study)
        rows["requests"] = rows.get("requests", 0) + count
    document = {"format": FORMAT, "weir": __version__, "study": study.name, "question": study.question}
    text = json.dumps(document | {"tables": about}, indent=2)
    (folder / "columns.json").write_text(text + "\n", encoding="utf-8")
    return rows


def runs_table(study: Study) -> pl.DataFrame:
    """One row per planned run and class, also of those without data."""
    table = class_table(study)
    rows = []
    for run in study.runs:
        for app_class in run.classes:
            identity = {name: getattr(run, "id" if name == "run" else name) for name in IDENTITY}
            state = {"status": run.validity.status, "reason": run.validity.reasons}
            rows.append(identity | _levels(study, run.levels) | {"class": app_class.name} | state)
    for name, levels in study.missing.items():
        for app_class in study.classes:
            state = {"status": "missing", "reason": "not carried out"}
            rows.append({"run": name} | _levels(study, levels) | {"class": app_class.name} | state)
    names = [*dict.fromkeys([*IDENTITY, *study.factors, "class", "status", "reason"])]
    plan = pl.DataFrame({name: [row.get(name) for row in rows] for name in names}, strict=False)
    metrics = [name for name in table.columns if name not in names]
    if not table.height:
        return plan
    return plan.join(table.select("run", "class", *metrics), on=["run", "class"], how="left")


def _levels(study: Study, levels: dict[str, Level]) -> dict[str, Level | None]:
    """Levels of a run: numbers where a factor has only numbers, else text."""
    return {
        name: levels.get(name) if _is_numeric(known) else _text(levels.get(name))
        for name, known in study.factors.items()
    }


def _is_numeric(levels: Iterable[Level]) -> bool:
    return all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels)


def _text(level: Level | None) -> str | None:
    return None if level is None else str(level)


def about_runs(study: Study, runs: pl.DataFrame) -> list[dict[str, Any]]:
    """Name, type, unit and meaning of each column of `runs_table`."""
    about = []
    for name, kind in runs.schema.items():
        known = label(name)
        meaning = _RUN_COLUMNS.get(name) or (
            f"Level of factor `{name}`." if name in study.factors else f"{known.text}."
        )
        unit = known.unit if known.unit and name not in _RUN_COLUMNS else None
        about.append({"name": name, "type": str(kind), "unit": unit, "meaning": meaning, "null": None})
    return about


def _write_requests(run: Run, part: Path, form: str, study: Study) -> tuple[int, list[dict[str, Any]]]:
    """Copies the requests of a run in batches, so that memory does not grow with their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Checks the table's columns and gives the name of the damage.
    scan_requests(run)
    levels = {n: v for n, v in _levels(study, run.levels).items() if n not in IDENTITY} | {
        name: getattr(run, name) for name in IDENTITY if name not in ("run", "order")
    }
    source = run.path / "requests.parquet"
    try:
        with pq.ParquetFile(source) as file:
            about = _about_requests(file.schema_arrow.metadata or {}, study, levels)
            count = 0

            def batches() -> Iterator[pa.Table]:
                for batch in file.iter_batches(ROWS_PER_BATCH):
                    # A batch of polars holds no dictionaries that differ from batch to batch.
                    rows = pl.DataFrame(pl.from_arrow(batch)).with_columns(
                        pl.col(pl.Categorical).cast(pl.String)
                    )
                    added = [pl.lit(value).alias(name) for name, value in levels.items()]
                    yield rows.with_columns(response_ms(), *added).to_arrow()

            with _writer(part, form, about, study, run.id) as write:
                for table in batches():
                    write(table)
                    count += table.num_rows
            return count, about
    except (pa.ArrowException, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(source, f"is damaged ({reason})", RUN_AGAIN) from error


def _about_requests(
    metadata: dict[bytes, bytes], study: Study, levels: dict[str, Any]
) -> list[dict[str, Any]]:
    own = json.loads(metadata.get(COLUMNS_KEY, b"[]"))
    added = [
        {
            "name": name,
            "type": type(value).__name__,
            "unit": None,
            "meaning": _RUN_COLUMNS.get(name) or f"Level of factor `{name}`.",
            "null": None if name in _RUN_COLUMNS else "the run has no such factor",
        }
        for name, value in levels.items()
    ]
    return [*own, _RESPONSE, *added]


def _write(path: Path, form: str, table: Any, about: list[dict[str, Any]], study: Study, run: str) -> None:
    with _writer(path, form, about, study, run) as write:
        write(table)


class _Writer:
    """A file of one format that is opened with the first table, whose columns all others have."""

    def __init__(self, path: Path, form: str, metadata: dict[str, str], about: list[dict[str, Any]]) -> None:
        self.path, self.form, self.metadata = path, form, metadata
        self.fields = {str(column["name"]): column for column in about}
        self.open: Any = None

    def __enter__(self) -> Callable[[Any], None]:
        return self.write

    def __exit__(self, *_: object) -> None:
        if self.open is not None:
            self.open.close()

    def write(self, table: Any) -> None:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet as pq

        if self.open is None:
            schema = pa.schema([self._described(field) for field in table.schema], metadata=self.metadata)
            match self.form:
                case "parquet":
                    self.open = pq.ParquetWriter(self.path, schema, compression="zstd")
                case "arrow":
                    self.open = pa.ipc.new_file(self.path, schema)
                case _:
                    self.open = pa.csv.CSVWriter(self.path, schema)
            self.schema = schema
        self.open.write_table(table.cast(self.schema))

    def _described(self, field: Any) -> Any:
        import pyarrow as pa

        about = self.fields.get(field.name, {})
        said = {name: str(about[name]) for name in ("unit", "meaning", "null") if about.get(name)}
        kind = pa.string() if pa.types.is_large_string(field.type) else field.type
        return pa.field(field.name, kind, metadata=said or None)


def _writer(
    path: Path, form: str, about: list[dict[str, Any]], study: Study, run: str
) -> AbstractContextManager[Callable[[Any], None]]:
    metadata = {
        "weir.version": __version__,
        "weir.schema_version": str(FORMAT),
        "weir.study": study.name,
        "weir.run": run,
        "weir.columns": json.dumps(about),
    }
    return _Writer(path, form, metadata, about)
