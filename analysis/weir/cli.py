"""Command line of the analysis: `python -m weir summary|report|compare|power|pack|verify|...`.

Exit codes: 0 done, 1 the work failed, 2 bad input; 3 something is worse (`compare`); 4 undecided or mixed
hosts (`--strict`), more repetitions are needed (`precision`).
"""

import argparse
import contextlib
import functools
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import polars as pl
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from weir import json_output
from weir.arguments import parser
from weir.errors import DamagedError, InputError
from weir.json_output import Outcome

if TYPE_CHECKING:
    from weir.claims import Headline

#: Width of tables in a log, where no text may be cut off.
LOG_WIDTH = 240
#: Answers that a summary begins with.
MOST_ANSWERS = 6
#: Cells with more characters may be wrapped.
PROSE = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    options = parser().parse_args(arguments)
    width = None if sys.stdout.isatty() else LOG_WIDTH
    try:
        with json_output.reserved() if options.json else contextlib.nullcontext(sys.stdout) as stream:
            # Text for people that is the result: the document has it.
            console = Console(width=width, highlight=False, quiet=options.json)
            options.say = functools.partial(_say, stream) if options.json else None
            code, result = _COMMANDS[options.command](options, console)
            if options.json and result is not None:
                print(json_output.document(result), file=stream)
            stream.flush()
        return code
    except DamagedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`): discard the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE


def _say(stream: TextIO, value: object) -> None:
    """Prints one document of several, at once."""
    print(json_output.line(value), file=stream, flush=True)


def _simulate(options: argparse.Namespace, _: Console) -> Outcome:
    from weir.dask_engine import command

    return command(options.study, options.dask, options.out, options.label, options.retry_invalid)


def _metrics(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.derive import keep_metrics
    from weir.load import load_study

    study = load_study(_folder(options.study, options.results))
    valid = study.valid_runs + study.duplicates
    kept = keep_metrics(valid, fresh=True, workers=os.cpu_count() or 1)
    show = {"console": console, "disable": not console.is_terminal, "total": len(valid)}
    for _ in track(kept, "metrics", **show):
        pass
    console.print(f"{len(valid)} of {len(study.runs)} runs are valid and have a metrics.json")
    counts = {"runs": len(study.runs), "valid": len(valid)}
    return 0, {"study": study.name, "folder": study.path, **counts}


def _report(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.report import write_report, write_reports

    if options.out and len(options.studies) > 1:
        raise InputError(options.out, "is one page for several studies", "name one study with --out")
    folders = [_folder(name, options.results) for name in options.studies]
    one = [write_report(folders[0], options.out, workers=os.cpu_count() or 1)] if options.out else None
    pages = one or write_reports(folders)
    for page in pages:
        console.print(f"report: {page}", soft_wrap=True)
    return 0, {"files": [json_output.written(page) for page in pages]}


def _trace_page(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.trace_page import write_trace_page

    page = write_trace_page(options.stat, options.out)
    console.print(f"page: {page}", soft_wrap=True)
    return 0, {"files": [json_output.written(page)]}


def _summary(options: argparse.Namespace, console: Console) -> Outcome:
    from weir import present, summary
    from weir.answers import answers
    from weir.change_points import change_points
    from weir.duplicates import floors
    from weir.load import load_study
    from weir.mixed_hosts import mixed_hosts
    from weir.power import SHOWN_CHANGE, power_of
    from weir.precision import OF_CELLS, decide
    from weir.study import class_table

    if options.fresh:
        _metrics(options, console)
    study = load_study(_folder(options.study, options.results))
    table = class_table(study)
    if options.json:
        code = 4 if options.strict and mixed_hosts(study) else 0
        return code, summary.document(study, table)
    console.print(f"{study.name}: {study.question}", soft_wrap=True)
    for answer in answers(study, table)[:MOST_ANSWERS]:
        console.print(f"  {answer.sentence()}", soft_wrap=True)
    if sentence := power_of(study, table, changes=(SHOWN_CHANGE,)).sentence():
        console.print(f"  {sentence}", soft_wrap=True)
    if study.precision is not None:
        for sentence in [*decide(study, table).lines(), OF_CELLS]:
            console.print(f"  {sentence}", soft_wrap=True)
    if study.note:
        console.print(f"{study.name}: {study.note}", soft_wrap=True)
    for floor in floors(study):
        console.print(f"  {floor.sentence()}", soft_wrap=True)
    mixed = mixed_hosts(study)
    for finding in mixed:
        console.print(f"warning: {finding.sentence()}", soft_wrap=True)
    for change in change_points(study, table):
        console.print(f"warning: {change.sentence()}", soft_wrap=True)
    counts = ", ".join(f"{len(runs)} {status}" for status, runs in study.by_status.items())
    console.print(f"runs: {counts}, {len(study.missing)} missing")
    for sentence in present.provenance(study):
        console.print(f"  {sentence}", soft_wrap=True)
    if study.unsealed:
        console.print(
            f"runs without a manifest (of an older version of weir): {len(study.unsealed)}; "
            "their files cannot be verified",
            soft_wrap=True,
        )
    if not study.valid_runs:
        console.print("no run is valid: there are no results")
    for app_class in study.classes if study.valid_runs else ():
        results, notes = present.captioned(study, table, app_class.name)
        _print(console, results, f"class {app_class.name}")
        for note in notes:
            console.print(f"  {note}", soft_wrap=True)
    if any(c.objective for c in study.classes) and study.valid_runs:
        _print(console, present.attainment(study, table), "objectives attained")
    excluded = present.excluded(study)
    if excluded.height:
        _print(console, excluded, "runs without data")
    return (4 if options.strict and mixed else 0), None


def _watch(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.watch import watch

    folder = _started(options.study, options.results)
    return watch(folder, console, once=options.once, page=options.page, say=options.say), None


def _started(name: str, results: Path | None) -> Path:
    """The folder of a study that was started, by name or folder."""
    from weir import locate, plans

    # The sample is complete: it is watched by its folder only.
    given = Path(name)
    is_path = given.is_dir() or plans.exists(given)
    return given if is_path else (results or locate.results()) / name


def _exporter(options: argparse.Namespace, _: Console) -> Outcome:
    from weir import exporter, locate
    from weir.binary_cache import BinaryCache

    if not (options.studies or options.state):
        raise InputError("exporter", "nothing to show", "name studies, or state folders with --state")
    if not options.interval > 0:
        raise InputError("--interval", f"is {options.interval}", "give seconds above 0")
    results = (options.results or locate.results()).resolve()
    studies = [_started(name, options.results) for name in options.studies]
    binary = BinaryCache.find(results) if options.state else None
    figures = exporter.Figures(studies, [state.resolve() for state in options.state], binary)
    return exporter.export(figures, options.out, options.listen, options.interval, options.say), None


def _compare(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.comparison import compare_studies, render
    from weir.load import load_study

    if options.json and options.format not in ("text", "json"):
        raise InputError("--json", f"is given beside --format {options.format}", "give one of them")
    before, after = (load_study(_folder(name, options.results)) for name in (options.before, options.after))
    found = compare_studies(before, after, tuple(options.metric), options.equivalence)
    text = render(found, "json" if options.json else options.format)
    document = json.loads(text) if options.json else None
    if not options.json:
        sys.stdout.write(text)
    if found.count("worse"):
        return 3, document
    unsure = found.count("undecided") + found.count("not comparable") + len(found.mixed)
    return (4 if options.strict and unsure else 0), document


def _power(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.load import load_study
    from weir.power import power_of
    from weir.study import class_table

    if not 0 < options.power < 1:
        raise InputError("--power", f"is {options.power:g}, not between 0 and 1", "give 0.8")
    study = load_study(_folder(options.study, options.results))
    found = power_of(study, class_table(study), options.power)
    if options.json:
        return 0, found.document()
    console.print(f"{study.name}: {study.question}", soft_wrap=True)
    if not found.comparisons:
        raise InputError(study.path, "has no valid run with a response time", "run the study first")
    _print(console, found.table(), f"repetitions for a change, with power {options.power:g}")
    console.print(found.sentence() or "no comparison has a variation: run at least two repetitions")
    return 0, None


def _variation(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.load import load_study
    from weir.study import class_table
    from weir.variation import variation

    study = load_study(_folder(options.study, options.results))
    table = class_table(study)
    known = [one.name for one in study.classes]
    if options.class_name is not None and options.class_name not in known:
        raise InputError(
            "--class", f"there is no class `{options.class_name}`", f"classes: {', '.join(known)}"
        )
    if options.metric is not None and not (
        options.metric in table.columns and table[options.metric].dtype.is_numeric()
    ):
        raise InputError(
            "--metric", f"`{options.metric}` is no metric of a class", "see docs/reference/metrics.md"
        )
    names = [options.class_name] if options.class_name else known
    found = [one for name in names if (one := variation(study, table, name, options.metric)) is not None]
    if options.json:
        return 0, {"study": study.name, "variation": [one.document() for one in found]}
    console.print(f"{study.name}: {study.question}", soft_wrap=True)
    if not found:
        raise InputError(
            study.path,
            "has no factor with two levels and different values",
            "run the study first, or name a metric",
        )
    for one in found:
        console.print(one.sentence(), soft_wrap=True)
        _print(console, one.table(), "terms")
        _print(console, one.effects_table(), "levels, relative to the mean of the factor's levels")
        for note in one.notes():
            console.print(f"  {note}", soft_wrap=True)
    return 0, None


def _capacity(options: argparse.Namespace, console: Console) -> Outcome:
    from weir import capacity, capacity_report, locate
    from weir.answers import baseline_of, main_factor
    from weir.binary_cache import BinaryCache
    from weir.plots import save

    results = (options.results or locate.results()).resolve()
    binary = BinaryCache.find(results)
    document = capacity.read_study(binary.root, options.study)
    if options.repetitions is not None:
        document["repetitions"] = options.repetitions
    search = capacity.Search(
        options.class_name,
        capacity_report.parse_others(options.others),
        capacity_report.parse_limits(options.limits),
        options.least,
        options.most,
        options.resolution,
    )
    is_virtual = capacity.make_virtual(document)
    carry_out = capacity.in_virtual_time(binary) if is_virtual else capacity.on_devices(binary.root)
    found = capacity.search_capacities(
        document,
        search,
        results,
        lambda file: json.loads(binary.output("plan", file, "--json", remedy="see the message")),
        carry_out,
        lambda line: print(line, file=sys.stderr, flush=True),
    )
    factor = main_factor(found.study)
    factor = None if factor == capacity.CLIENTS else factor
    baseline = None if factor is None else str(baseline_of(found.study, factor))
    curve = capacity_report.figure(found, factor)
    drawn = [] if curve is None else save(curve, found.study.path / "figures", "capacity")
    if options.json:
        document = capacity_report.as_document(found, factor, baseline)
        return 0, document | {"files": [json_output.written(path) for path in drawn]}
    console.print(f"{found.study.name}: {found.study.question}", soft_wrap=True)
    _print(console, capacity_report.shown(found), f"largest number of {search.class_name} clients")
    for note in capacity_report.notes(found):
        console.print(f"  {note}", soft_wrap=True)
    if factor is not None:
        table = capacity_report.shown_comparisons(found, factor, baseline)
        _print(console, table, f"{factor}, relative to {baseline}")
    for path in drawn:
        console.print(f"figure: {path}", soft_wrap=True)
    return 0, None


def _precision(options: argparse.Namespace, console: Console) -> Outcome:
    from weir import precision
    from weir.load import load_study

    folder = _folder(options.study, options.results)
    if options.simulate:
        found = precision.simulate(folder, shown=not options.json)
    else:
        found = precision.decide_now(load_study(folder))
    if options.decide:
        precision.write(found, folder)
    for line in found.lines():
        console.print(line, soft_wrap=True)
    return (0 if found.stops else 4), found.document()


def _folder(given: str, results: Path | None = None) -> Path:
    """The folder of a study's results, which is named by its path or its name, or one label of it."""
    from weir import locate, plans

    if plans.exists(Path(given)) or Path(given).is_dir():
        return Path(given)
    folder = results or locate.results()
    return locate.study(given, folder) or (Path(given) if "/" in given else folder / given)


def _export(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.export import export
    from weir.load import load_study

    study = load_study(_folder(options.study, options.results))
    written = export(study, options.out, options.form)
    rows = ", ".join(f"{count} rows of {name}" for name, count in written.items())
    console.print(f"{study.name}: {rows} in {options.out}", soft_wrap=True)
    files = [json_output.written(path) for path in sorted(options.out.rglob("*")) if path.is_file()]
    return 0, {"study": study.name, "folder": options.out, "rows": written, "files": files}


def _pack(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.pack import build, citation
    from weir.pack.checklist import summary

    if options.anonymous and options.citation:
        raise InputError("--anonymous", "is given beside --citation, which names authors", "give one of them")
    cited = citation.read(options.citation) if options.citation else citation.Citation()
    studies = build.find(options.studies, options.results)
    if options.check:
        items = build.check(studies, cited)
        for item in items:
            console.print(item.line(), soft_wrap=True, markup=False)
        console.print(summary(items), soft_wrap=True)
        code = int(any(item.outcome == "no" for item in items))
        return code, {"studies": [study.name for study in studies], "checklist": items}
    name = Path(options.studies[0]).resolve().name
    out = options.out or Path(f"{name}.tar")
    packed = build.pack(studies, out, cited, withhold_hosts=options.anonymous)
    for study, runs in packed.left_out.items():
        console.print(f"{study}: left out {len(runs)} runs of an earlier plan", soft_wrap=True)
    for file in packed.with_host_name:
        console.print(f"{file}: still has the name of a host: look at it", soft_wrap=True, markup=False)
    console.print(f"{packed.path}: {packed.files} files, {packed.size_bytes:,} bytes", soft_wrap=True)
    console.print(f"SHA-256: {packed.sha256}", soft_wrap=True)
    console.print(
        f"{summary(packed.checklist)}: weir pack {' '.join(options.studies)} --check", soft_wrap=True
    )
    archive = json_output.written(packed.path) | {"sha256": packed.sha256, "entries": packed.files}
    names = [study.name for study in studies]
    left_out = {study: len(runs) for study, runs in packed.left_out.items()}
    return 0, {
        "studies": names, "files": [archive], "left_out_runs": left_out, "checklist": packed.checklist,
        "with_host_name": packed.with_host_name,
    }  # fmt: skip


def _verify(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.pack import archive, verify

    if not archive.is_one(options.archive):
        remedy = "name an archive of `weir pack`; `weir verify` of the binary checks results too"
        raise InputError(options.archive, "is no archive of `weir pack`", remedy)
    found = verify.verify(options.archive)
    for line in found.lines():
        console.print(line, soft_wrap=True, markup=False)
    return (1 if found.problems else 0), found.document()


def _import(options: argparse.Namespace, console: Console) -> Outcome:
    from weir.imported import command, fio_study

    return {"results": command.results, "fio": fio_study.command}[options.kind](options, console)


def _figures(options: argparse.Namespace, console: Console) -> Outcome:
    from weir import locate, notebooks, paper_registry, present

    results = options.results or locate.results()
    sources = options.sources or (locate.project() or Path()) / notebooks.SOURCES
    unknown = sorted(set(options.names) - set(notebooks.names()))
    if unknown:
        known = ", ".join(notebooks.names())
        raise InputError(sources / unknown[0], "is not a notebook", f"name one of {known}")
    if options.study:
        results.mkdir(parents=True, exist_ok=True)
        try:
            paper_registry.run_missing(options.study, results)
        except InputError as error:
            # The file of a study that has results may lie anywhere.
            if locate.study(options.study, results) is None:
                raise
            print(f"{options.study}: missing runs are not simulated: {error}", file=sys.stderr)
    drawn: list[dict[str, object]] = []
    failed: list[dict[str, object]] = []
    for name, study in _wanted(options, results):
        title = study or name
        try:
            # Missing input is reported here, and not by a cell.
            of = notebooks.check(name, results, study or "")
            paths = notebooks.execute(sources / f"{name}.py", results / "notebooks", results, study)
        except InputError as error:
            if isinstance(error, DamagedError):
                failed.append({"notebook": name, "study": study, "problem": str(error)})
            print(f"{title}: {error}", file=sys.stderr)
        except notebooks.NotebookFailed as error:
            failed.append({"notebook": name, "study": study, "problem": str(error)})
            print(f"{title}: failed: {error}", file=sys.stderr)
        else:
            files = [json_output.written(path) for path in paths]
            drawn.append({"notebook": name, "study": study, "results": of, "files": files})
            console.print(f"{title} ({of}): {', '.join(map(str, paths))}", soft_wrap=True)
    claims = present.claims(results)
    # A study of one's own has none: those of papers that were executed before are not its.
    if claims.height and any(one["notebook"] in paper_registry.papers() for one in drawn):
        _print(console, claims, "claims")
    enough = len(options.names) or bool(options.study)
    code = 1 if failed else 2 if len(drawn) < enough else 0
    judged = present.judged(results) if options.json else []
    return code, {"notebooks": drawn, "failed": failed, "claims": judged}


def _wanted(options: argparse.Namespace, results: Path) -> list[tuple[str, str | None]]:
    """The notebooks to run, and of the template the study."""
    from weir import notebooks

    template = notebooks.TEMPLATE
    if options.names:
        return [(name, (options.study or "quick") if name == template else None) for name in options.names]
    if options.study:
        found = notebooks.of_study(options.study, results)
        return [(name, options.study if name == template else None) for name in found]
    others = [name for name in notebooks.names() if name != template]
    return [(name, None) for name in others] + [(template, name) for name in notebooks.unread(results)]


def _claims(options: argparse.Namespace, console: Console) -> Outcome:
    from weir import locate
    from weir.claims_page import of_papers, unique, write_claims_page

    results = options.results or locate.results()
    papers = of_papers(results)
    for paper in papers:
        console.print(f"{paper.register.header.prefix}: {paper.headline.sentence()}", soft_wrap=True)
    console.print(f"all: {unique(papers).sentence()}", soft_wrap=True)
    page = write_claims_page(papers, options.out or results / "claims.html")
    console.print(f"claims: {page}", soft_wrap=True)
    return 0, {
        "papers": [
            {"paper": paper.register.header.paper, "claims": _by_status(paper.headline)} for paper in papers
        ],
        "claims": _by_status(unique(papers)),
        "files": [json_output.written(page)],
    }


def _by_status(headline: "Headline") -> dict[str, int]:
    return {status.replace(" ", "_"): count for status, count in headline.counts.items()}


def _lab(options: argparse.Namespace, console: Console) -> Outcome:
    from weir import lab

    lab.start(options.options, options.say)


def _sample(options: argparse.Namespace, console: Console) -> Outcome:
    from weir import locate, make_sample

    results = options.results or locate.results()
    lines = []
    if not options.notebooks_only:
        for line in make_sample.results(results):
            console.print(line, soft_wrap=True)
            lines.append(line)
    for line in make_sample.notebooks(results):
        console.print(line, soft_wrap=True)
        lines.append(line)
    return 0, {"done": lines}


def _print(console: Console, table: pl.DataFrame, title: str) -> None:
    if console.quiet:
        return
    grid = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold")
    for name in table.columns:
        # Sentences are wrapped, numbers are not.
        is_prose = any(len(str(value)) > PROSE for value in table[name])
        grid.add_column(name, no_wrap=not (console.is_terminal or is_prose), overflow="fold")
    for row in table.rows():
        grid.add_row(*("" if value is None else str(value) for value in row))
    if console.is_terminal:
        console.print(grid)
        return
    with console.capture() as captured:
        console.print(grid)
    # Without the padding of a terminal's line.
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


_COMMANDS: dict[str, Callable[[argparse.Namespace, Console], Outcome]] = {
    "simulate": _simulate,
    "metrics": _metrics,
    "report": _report,
    "summary": _summary,
    "watch": _watch,
    "exporter": _exporter,
    "compare": _compare,
    "power": _power,
    "variation": _variation,
    "capacity": _capacity,
    "precision": _precision,
    "export": _export,
    "pack": _pack,
    "verify": _verify,
    "import": _import,
    "trace-page": _trace_page,
    "claims": _claims,
    "figures": _figures,
    "lab": _lab,
    "sample": _sample,
}
