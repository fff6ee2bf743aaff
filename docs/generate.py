"""Writes the generated pages of the reference, and the schedulers' labels, for `make reference`."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import yaml

from weir import metrics_schema
from weir.labels import LABELS

ROOT = Path(__file__).resolve().parent.parent
WEIR = ROOT / "target/release/weir"
#: A subcommand in a help text.
COMMAND = re.compile(r"^  (?P<name>[a-z][a-z0-9-]*)  +\S", re.MULTILINE)
#: Cells of a table with the kinds of names that `weir list` prints, by heading.
NAMES = {
    "Workloads": "workloads",
    "File systems": "filesystems",
    "Clusters of network file systems": "clusters",
    "Daemons": "services",
    "Disk models": "profiles",
}


@cache
def _printed(*arguments: str) -> str:
    done = subprocess.run([WEIR, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"weir {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def _page(title: str, source: str, text: str) -> str:
    return (
        f"# {title}\n\n<!-- Written by `make reference` from {source}: do not edit. -->\n\n{text.strip()}\n"
    )


def _table(columns: list[str], rows: list[list[object]]) -> str:
    def line(cells: list[object]) -> str:
        texts = (str(cell).strip().replace("|", "\\|").replace("\n", " ") for cell in cells)
        return f"| {' | '.join(texts)} |".replace("|  |", "| |")

    return "\n".join([line(columns), "|" + " --- |" * len(columns), *map(line, rows)]) + "\n"


def _code(text: object) -> str:
    return f"`{text}`" if text not in (None, "") else ""


# ---- the command line


def _help(*names: str) -> str:
    done = _printed(*names, "--help")
    return "\n".join(line.rstrip() for line in done.splitlines())


def _commands(text: str) -> list[str]:
    return [match["name"] for match in COMMAND.finditer(text) if match["name"] != "help"]


def _command(names: tuple[str, ...]) -> str:
    text = _help(*names)
    of_playbook = " (called by the playbook)" if names[0] in _commands(_help("internal")) else ""
    parts = [f"{'#' * min(len(names) + 1, 4)} weir {' '.join(names)}{of_playbook}\n\n```text\n{text}\n```\n"]
    if "\nCommands:\n" in text:
        parts += [_command((*names, name)) for name in _commands(text.partition("\nCommands:\n")[2])]
    return "\n".join(parts)


def _analysis() -> tuple[str, dict[str, str]]:
    """The help of `python -m weir`, and of each of its commands by name."""

    def help_of(*names: str) -> str:
        command = [sys.executable, "-m", "weir", *names, "--help"]
        # Wide: versions of Python break long lines at other places.
        environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())

    whole = help_of()
    names = re.findall(r"^    ([a-z][a-z-]*)(?=\s)", whole, re.MULTILINE)
    return whole, {name: help_of(name) for name in names}


def _cli() -> str:
    whole, of_analysis = _analysis()
    names = dict.fromkeys([*_commands(_help()), *_commands(_help("internal"))])
    commands = "\n".join(_command((name,)) for name in names if name not in of_analysis)
    analysis = "\n".join(f"```text\n{text}\n```\n" for text in [whole, *of_analysis.values()])
    return _page(
        "Commands",
        "the help of `weir`",
        "`make setup` builds `target/release/weir`. Each command prints its own help. "
        "With `--json` it prints its result [as JSON](json.md).\n\n"
        f"## weir\n\n```text\n{_help()}\n```\n\n{commands}\n"
        "## The analysis\n\n`weir report` and the other commands below *Results* are those of the Python "
        "package: `weir report ...` is `python -m weir report ...`. weir takes the Python that `WEIR_PYTHON` "
        "names, that of the project (`.venv`), one beside the program, or `python3`, whichever has the "
        f"package.\n\n{analysis}",
    )


# ---- the fields of a workload, from the schema


class _Workload:
    """Tables of the schema's types, with an example of each field from a workload of this repository."""

    def __init__(self) -> None:
        self.types = json.loads(_printed("schema", "workload"))["$defs"]
        files = sorted((ROOT / "workloads").glob("*.yml")) + sorted(
            (ROOT / "workloads").glob("sessions/*.yml")
        )
        self.shipped = [yaml.safe_load(file.read_text()) for file in files]
        #: Types, and the path of the first field of each: its section is named by it.
        self.places: dict[str, list[str]] = {}
        self.waiting: list[str] = []

    def page(self) -> str:
        """The page, from the two kinds of workload down."""
        parts = [self._from("Workload", "Requests"), self._from("SessionWorkload", "Sessions of a web site")]
        return _page(
            "Fields of a workload",
            "`weir schema workload`",
            "A workload is a YAML file in `workloads/`. Examples are taken from the workloads there. "
            "[Workloads](../how-to/workloads.md) shows how to write and calibrate one.\n\n"
            + "\n".join(parts),
        )

    def _from(self, name: str, title: str) -> str:
        parts = [self._section(title, self.types[name], [])]
        while self.waiting:
            of = self.waiting.pop(0)
            path = self.places[of]
            parts.append(self._section(_code(".".join(path)), self.types[of], path))
        return "\n".join(parts)

    def _section(self, heading: str, node: dict, path: list[str]) -> str:
        rows: list[list[object]] = []
        for choice in node.get("oneOf", [node]):
            for value in [choice["const"]] if "const" in choice else choice.get("enum", []):
                rows.append([_code(value), "this word", "", choice.get("description", ""), ""])
            self._fields(choice, path, "", rows, "oneOf" in node)
        columns = ["field", "type", "default", "meaning", "example"]
        return f"## {heading}\n\n{node.get('description', '')}\n\n{_table(columns, rows)}"

    def _fields(
        self, node: dict, path: list[str], prefix: str, rows: list[list[object]], is_choice: bool
    ) -> None:
        for name, field in node.get("properties", {}).items():
            meaning = field.get("description") or (node.get("description", "") if is_choice else "")
            for word, about in _words(self._resolved(field)).items():
                meaning += f"<br>`{word}`: {about}" if about else ""
            required = name in node.get("required", []) and not is_choice
            default = (
                "required"
                if required
                else _code(json.dumps(field["default"]))
                if field.get("default")
                else ""
            )
            whole = [*path, *filter(None, prefix.split(".")), name]
            example = "" if field.get("properties") else self._example(whole[-2:])
            rows.append([_code(prefix + name), self._kind(field, whole), default, meaning, example])
            self._fields(field, path, f"{prefix}{name}.", rows, False)

    def _resolved(self, field: dict) -> dict:
        return self.types[field["$ref"].removeprefix("#/$defs/")] if "$ref" in field else field

    def _kind(self, field: dict, path: list[str]) -> str:
        if reference := field.get("$ref"):
            name = reference.removeprefix("#/$defs/")
            target = self._resolved(field)
            if words := _words(target):
                return ", ".join(map(_code, words))
            if name not in self.places:
                self.places[name] = path
                self.waiting.append(name)
            return f"[{'one of' if 'oneOf' in target else 'object'}](#{''.join(self.places[name]).lower()})"
        choices = [self._kind(one, path) for one in field.get("anyOf", []) if one.get("type") != "null"]
        if choices:
            return ", or ".join(choices)
        kinds = field.get("type", "any value")
        kind = next(one for one in kinds if one != "null") if isinstance(kinds, list) else kinds
        if kind == "array" and isinstance(field.get("items"), dict):
            return f"list of {self._kind(field['items'], path)}"
        return kind

    def _example(self, path: list[str]) -> str:
        for document in self.shipped:
            found = _value_at(document, path)
            if found is not None and len(text := json.dumps(found, ensure_ascii=False)) < 60:
                return _code(f"{path[-1]}: {found if isinstance(found, str) else text.replace(chr(34), '')}")
        return ""


def _words(node: dict) -> dict[str, str]:
    """The words of a type that is a choice of words only, with what each means."""
    choices = node.get("oneOf", [node])
    if any("const" not in one and "enum" not in one for one in choices):
        return {}
    return {
        word: one.get("description", "") if "const" in one else ""
        for one in choices
        for word in one.get("enum", [one.get("const")])
    }


def _value_at(node: object, path: list[str]) -> object:
    """The first value in a document whose keys end with a path."""
    if isinstance(node, list):
        return next((found for one in node if (found := _value_at(one, path)) is not None), None)
    if not isinstance(node, dict):
        return None
    inner: object = node
    for key in path:
        inner = inner.get(key) if isinstance(inner, dict) else None
    if inner is not None:
        return inner
    return next((found for one in node.values() if (found := _value_at(one, path)) is not None), None)


# ---- names that a study can use


def _studies() -> str:
    folder = ROOT / "studies"
    found = {entry["name"]: entry for entry in json.loads(_printed("list", "studies", "--json"))}
    groups: dict[str, list[list[object]]] = {}
    for file in sorted(folder.rglob("*.yml")):
        if entry := found.get(file.stem):
            link = f"[{file.stem}](../../{file.relative_to(ROOT)})"
            groups.setdefault(str(file.parent.relative_to(ROOT)), []).append(
                [link, entry["question"], entry["runs"]]
            )
    parts = [
        f"## {_code(name + '/')}\n\n{_table(['study', 'question', 'runs'], rows)}"
        for name, rows in groups.items()
    ]
    text = "`make study STUDY=NAME` runs a study, `weir plan NAME` shows its runs.\n\n"
    return _page("Studies that come with weir", "`weir list studies`", text + "\n".join(parts))


def _names() -> str:
    parts = []
    for heading, kind in NAMES.items():
        lines = [line.partition("  ") for line in _printed("list", kind).splitlines()]
        rows = [[_code(name), about.strip()] for name, _, about in lines]
        parts.append(f"## {heading}\n\n`weir list {kind}`\n\n{_table(['name', 'meaning'], rows)}")
    return _page("Names that a study can use", "`weir list`", "\n".join(parts))


def _scheduler_table() -> str:
    entries = json.loads(_printed("list", "schedulers", "--json"))
    columns = ["name", "label in figures", "kernel module", "counterpart in virtual time"]
    kernel = [
        [_code(entry["name"]), entry["label"], _code(entry.get("module")), _code(entry["counterpart"])]
        for entry in entries
        if entry["kind"] == "kernel"
    ]
    settings = [
        [_code(entry["name"]), entry["label"] if not number else "", _code(name), about]
        for entry in entries
        for number, (name, about) in enumerate((entry["settings"] or {"": "none"}).items())
        if entry["kind"] != "kernel"
    ]
    return _page(
        "Names and settings of schedulers",
        "`weir list schedulers --json`",
        'A level of the factor `scheduler` is a name with its settings: `"sfq depth=4"`. '
        "[Schedulers](schedulers.md) explains the algorithms.\n\n"
        f"## Schedulers of the kernel\n\n{_table(columns, kernel)}\n"
        f"## Schedulers of weir\n\n{_table(['name', 'label', 'setting', 'meaning'], settings)}",
    )


def _trace_formats() -> str:
    formats, _, options = _printed("trace", "formats").partition("\n\n")
    rows = [
        [_code(name), about.strip()]
        for name, _, about in (line.partition("  ") for line in formats.splitlines())
    ]
    lines = [line.partition("  ") for line in options.splitlines()[1:]]
    of_format = [[_code(name), *about.strip().split(": ", 1)] for name, _, about in lines]
    traces = [
        [
            f"[{trace['name']}]({trace['home']})",
            trace["about"],
            _code(trace.get("format")),
            next(iter(trace["get"])),
            trace.get("licence", ""),
        ]
        for trace in json.loads(_printed("list", "traces", "--json"))
    ]
    return _page(
        "Trace formats and public traces",
        "`weir trace formats` and `weir list traces`",
        "[Traces](../how-to/traces.md) shows how to describe, filter and convert a trace.\n\n"
        "## Formats\n\nA format is detected from the content, unless the table says `has to be named`.\n\n"
        f"{_table(['format', 'content, and what its times count from'], rows)}\n"
        "## Options of formats\n\nGiven as `--option KEY=VALUE`.\n\n"
        f"{_table(['option', 'format', 'meaning'], of_format)}\n"
        f"## Public traces\n\n`weir trace fetch NAME` downloads a trace, or prints how to get it.\n\n"
        f"{_table(['trace', 'content', 'format', 'how', 'licence'], traces)}",
    )


def _metrics() -> str:
    def bounds(low: float, high: float) -> str:
        return "" if math.isinf(low) else f"at least {low:g}" if math.isinf(high) else f"{low:g} to {high:g}"

    rows = [[_code(name), one.text, one.unit or "", bounds(*one.bounds)] for name, one in LABELS.items()]
    others = [[_code(name), about] for name, about in metrics_schema.WITHOUT_LABEL.items()]
    return _page(
        "Metrics",
        "`analysis/weir/labels.py` and `analysis/weir/metrics_schema.py`",
        "`metrics.json` of a run has these metrics for each class, for each device, and for the run "
        "([schema](schemas/metrics.json)). "
        "A metric without a value is `null`. `unbounded` is infinity, such as the response time of a request "
        "that never completed. "
        "The formulas and their sources are in [`weir.metrics`](python.md).\n\n"
        'Tables and figures show estimates over repetitions. Metrics with the range "at least 0" '
        "have the geometric mean of runs, with the t interval of the logarithms (`log-t`). Shares "
        "have the mean of runs with the t interval. The variance is pooled over the cells of a "
        "class where Bartlett's test allows. One repetition has no interval. A star or a triangle "
        "marks an end that is cut at a limit of the quantity.\n\n"
        "A dash replaces the 95th, 99th and 99.9th percentile of a cell that has fewer than 10 "
        "independent responses beyond it in all runs together, or fewer than 3 in the average "
        "run. With fewer than 3 in each run the geometric mean is more than a tenth too low, "
        "whatever the number of repetitions (`pytest -s analysis/tests/test_support.py`, "
        "autocorrelation 0.8 to 0.99). The footnote has the numbers and a duration that is long "
        "enough. `Study.frame()` keeps the value and has columns such as `response_p99_shown`.\n\n"
        + _table(["metric", "name in figures", "unit", "range"], rows)
        + f"\n## Not shown in figures\n\n{_table(['metric', 'meaning'], others)}",
    )


def _schedulers() -> str:
    """The registry of schedulers, without what depends on this host."""
    listed = json.loads(_printed("list", "schedulers", "--json"))
    kept = ("name", "kind", "label", "counterpart")
    rows = [json.dumps({key: entry[key] for key in kept}, ensure_ascii=False) for entry in listed]
    return "[\n  " + ",\n  ".join(rows) + "\n]\n"


# ---- JSON Schemas of files

#: Kinds of `weir schema`, and the files of each kind.
OF_BINARY = {
    "study": "`studies/**/NAME.yml`",
    "workload": "`workloads/NAME.yml`, `workloads/sessions/NAME.yml`",
    "table": "`workloads/tables/NAME.yml`",
    "profile": "`testbeds/disks/NAME.yml`",
    "filesystem": "`testbeds/filesystems/NAME.yml`",
    "cluster": "`testbeds/clusters/NAME.yml`",
    "daemon": "`testbeds/daemons/NAME.yml`",
    "traces": "`traces/catalog.yml`",
    "tasks": "tasks of `weir admit`",
    "plan": "`results/STUDY/plan.json`",
    "run": "`results/STUDY/RUN/run.json`",
    "host": "`host.json` of a run, or of each host of a run of several hosts",
    "verdict": "`results/STUDY/RUN/verdict.json`",
    "manifest": "`results/STUDY/RUN/manifest.json`",
    "part": "`results/STUDY/RUN/hosts/HOST/part.json`",
}
SCHEMAS = "docs/reference/schemas"


def _schema_page() -> str:
    rows = [
        [f"[{name}.json](schemas/{name}.json)", files, _code(f"weir schema {name}")]
        for name, files in OF_BINARY.items()
    ]
    rows.append(["[metrics.json](schemas/metrics.json)", "`results/STUDY/RUN/metrics.json`", ""])
    return _page(
        "JSON Schemas of files",
        "`weir schema` and `weir.metrics_schema`",
        "An editor completes and checks a YAML file whose first line names a schema "
        "(`# yaml-language-server: $schema=...`). The YAML files of `studies/`, `workloads/`, `testbeds/` "
        "and `traces/` have this line. For a file elsewhere, `weir schema study > study.json` writes the "
        "schema, and the line is `# yaml-language-server: $schema=study.json`.\n\n"
        "Results are checked the same way, with any JSON Schema library (draft 2020-12):\n\n"
        "```python\n"
        "import json\n"
        "import jsonschema\n\n"
        'schema = json.load(open("docs/reference/schemas/run.json"))\n'
        'run = json.load(open("analysis/weir/sample/quick/071029e5412f/run.json"))\n'
        "jsonschema.validate(run, schema)\n"
        "```\n\n"
        "Schemas of results, but for `metrics.json`, accept fields that they do not name: an older schema "
        "accepts newer results. [Columns](columns.md) describes the Parquet tables.\n\n"
        + _table(["schema", "files", "printed by"], rows),
    )


def _from_binary(kind: str) -> Callable[[], str]:
    return lambda: _printed("schema", kind)


#: Files, by path, and who writes their content.
GENERATED = {
    "docs/reference/cli.md": _cli,
    "docs/reference/columns.md": lambda: _printed("schema", "columns", "--markdown"),
    "docs/reference/metrics.md": _metrics,
    "docs/reference/names.md": _names,
    "docs/reference/scheduler-settings.md": _scheduler_table,
    "docs/reference/schemas.md": _schema_page,
    **{f"{SCHEMAS}/{kind}.json": _from_binary(kind) for kind in OF_BINARY},
    f"{SCHEMAS}/metrics.json": lambda: json.dumps(metrics_schema.schema(), indent=2) + "\n",
    "docs/reference/studies.md": _studies,
    "docs/reference/study.md": lambda: _printed("schema", "study", "--markdown"),
    "docs/reference/trace-formats.md": _trace_formats,
    "docs/reference/workload.md": lambda: _Workload().page(),
    "analysis/weir/schedulers.json": _schedulers,
}

if __name__ == "__main__":
    for path, content in GENERATED.items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(content())
