"""`croissant.json`: the tables of an archive, with the unit and meaning of each column.

The format is Croissant 1.0 (http://mlcommons.org/croissant/1.0). Each kind of raw table is one record set
over the files of all runs, with the study and the run of each row; `runs.csv` of each study is one more.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from weir import export
from weir.load import Study
from weir.pack.archive import Sum
from weir.pack.citation import licence_url
from weir.pack.crate import Described
from weir.pack.numbers import NUMBERS, RESULTS

NAME = "croissant.json"
CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
#: Raw tables of a run, and what a row is.
TABLES = {
    "requests": "One row per request, as the application saw it.",
    "block": "One row per request, as the block layer saw it.",
    "pages": "One row per page request of a browser, each attempt.",
    "series": "Responses over time: for each class and interval a histogram of response times.",
}
_PLACES = {"study": ("Study that the run belongs to.", 1), "run": ("Identifier of the run.", 2)}


def as_text(about: Described, sums: Mapping[str, Sum]) -> str:
    """The description of the tables of an archive with these files.

    Args:
        about: title, licence and authors are those of the crate.
        sums: size and SHA-256 of each file, by name.
    """
    citation = about.citation
    document: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": about.title,
        "description": about.description,
        "datePublished": about.published,
        "version": "1.0.0",
        "url": citation.doi_url if citation.doi else citation.url or "./",
        "license": licence_url(citation.licence) if citation.licence else "No licence is stated.",
    }
    if citation.authors:
        document["creator"] = [
            {"@type": "sc:Person" if one.is_person else "sc:Organization", "name": one.name}
            for one in citation.authors
        ]
    if citation.doi:
        names = " and ".join(author.name for author in citation.authors)
        document["citeAs"] = f"{names}: {citation.title}. {citation.doi_url}"
    distribution: list[dict[str, Any]] = []
    record_sets: list[dict[str, Any]] = []
    for part, sets in (_raw(about.studies, sums), _runs(about.studies, sums)):
        distribution += part
        record_sets += sets
    document |= {"distribution": distribution, "recordSet": record_sets}
    return json.dumps(document, indent=1) + "\n"


def _raw(studies: Iterable[Study], sums: Mapping[str, Sum]) -> tuple[list[Any], list[Any]]:
    files, sets = [], []
    for table, meaning in TABLES.items():
        paths = [
            run.path / f"{table}.parquet"
            for study in studies
            for run in study.runs
            if f"{RESULTS}/{study.name}/{run.id}/{table}.parquet" in sums
        ]
        if not paths:
            continue
        of = f"{table}-files"
        files.append(
            {
                "@type": "cr:FileSet",
                "@id": of,
                "name": of,
                "description": f"{table}.parquet of each run.",
                "encodingFormat": "application/x-parquet",
                "includes": f"{RESULTS}/*/*/{table}.parquet",
            }
        )
        schema = pq.read_schema(paths[0])
        own = json.loads((schema.metadata or {}).get(export.COLUMNS_KEY, b"[]"))
        words = {one["name"]: _words(one) for one in own}
        fields = [
            _field(table, column.name, _type(column.type), words.get(column.name, column.name), {
                "fileSet": {"@id": of}, "extract": {"column": column.name}
            })
            for column in schema
        ]  # fmt: skip
        for name, (text, place) in _PLACES.items():
            pattern = "/".join(["([^/]+)" if at == place else "[^/]+" for at in (1, 2)])
            source = {
                "fileSet": {"@id": of},
                "extract": {"fileProperty": "fullpath"},
                "transform": {"regex": f"{RESULTS}/{pattern}/{table}.parquet$"},
            }
            fields.append(_field(table, name, "sc:Text", text, source))
        sets.append(_record_set(table, meaning, fields))
    return files, sets


def _runs(studies: Iterable[Study], sums: Mapping[str, Sum]) -> tuple[list[Any], list[Any]]:
    files, sets = [], []
    for study in studies:
        name, of = f"{NUMBERS}/{study.name}/runs.csv", f"runs-{study.name}.csv"
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": of,
                "name": of,
                "description": f"Runs of study {study.name}.",
                "contentUrl": name,
                "contentSize": f"{sums[name].size_bytes} B",
                "encodingFormat": "text/csv",
                "sha256": sums[name].sha256,
            }
        )
        table = export.runs_table(study)
        words = {one["name"]: _words(one) for one in export.about_runs(study, table)}
        fields = [
            _field(f"runs-{study.name}", column, _type_of(kind), words[column], {
                "fileObject": {"@id": of}, "extract": {"column": column}
            })
            for column, kind in table.schema.items()
        ]  # fmt: skip
        text = f"One row per planned run of study {study.name} and class; metrics are of valid runs only."
        sets.append(_record_set(f"runs-{study.name}", text, fields))
    return files, sets


def _record_set(name: str, text: str, fields: list[Any]) -> dict[str, Any]:
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": text, "field": fields}


def _field(of: str, name: str, kind: str, text: str, source: dict[str, Any]) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{of}/{name}",
        "name": name,
        "description": text,
        "dataType": kind,
        "source": source,
    }


def _words(column: Mapping[str, Any]) -> str:
    unit = f" Unit: {column['unit']}." if column.get("unit") else ""
    null = f" Null: {column['null']}." if column.get("null") else ""
    return f"{column['meaning']}{unit}{null}"


def _type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(kind) else "sc:Text"


def _type_of(kind: pl.DataType) -> str:
    # CSV has no type; a column of integers with gaps is read as numbers with a fraction by many programs.
    if kind == pl.Boolean:
        return "sc:Boolean"
    return "sc:Float" if kind.is_numeric() else "sc:Text"
