"""Arguments of the command line of the analysis."""

import argparse
from pathlib import Path
from typing import Any

from weir import __version__


class _Command(argparse.ArgumentParser):
    """The parser of a command, with the option that every command has."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Without a default, a command would reset what was given before its subcommand.
        self.add_argument(
            "--json",
            action="store_true",
            default=argparse.SUPPRESS,
            help="print the result as JSON; messages go to standard error",
        )


def parser() -> argparse.ArgumentParser:
    """The parser. `command` of what it parses is the command's name, `json` whether it prints JSON."""
    made = argparse.ArgumentParser(prog="python -m weir", description="Analyses the runs of studies.")
    made.add_argument("--version", action="version", version=__version__)
    made.set_defaults(json=False)
    commands = made.add_subparsers(required=True, dest="command", metavar="COMMAND", parser_class=_Command)

    simulate = commands.add_parser(
        "simulate",
        help="simulate a study on the workers of a Dask scheduler: weir simulate --dask",
        description="Exit codes: 0 all runs are stored, 1 some could not be had, 3 some are invalid.",
    )
    simulate.add_argument("study", metavar="STUDY", help="a study, by name or file")
    simulate.add_argument("--dask", required=True, metavar="ADDRESS", help="the scheduler")
    simulate.add_argument("--out", type=Path, default="results", metavar="DIR", help="folder of results")
    simulate.add_argument("--label", metavar="NAME", help="label of the runs")
    simulate.add_argument("--retry-invalid", action="store_true", help="replace invalid runs")

    metrics = commands.add_parser("metrics", help="compute metrics.json of every valid run")
    _add_study(metrics)

    report = commands.add_parser("report", help="write one self-contained HTML page per study")
    report.add_argument("studies", nargs="+", metavar="STUDY", help="studies with results, by name or folder")
    _add_results(report)
    report.add_argument("--out", type=Path, help="the page (default: report.html in the study's folder)")

    summary = commands.add_parser("summary", help="print the results as tables")
    _add_study(summary)
    summary.add_argument("--fresh", action="store_true", help="compute the metrics first, as `metrics` does")
    summary.add_argument(
        "--strict", action="store_true", help="exit code 4 where runs are from mixed hosts (rule R-HOST)"
    )

    watch = commands.add_parser(
        "watch",
        help="show a study while it runs: progress, time left, effects, validity, CPU steal",
        description="It ends when the study is complete, or with ctrl-c (exit code 130). It writes nothing "
        "into the study's folder and takes no locks.",
    )
    _add_study(watch, "a study that was started, by name or folder, or STUDY@LABEL")
    watch.add_argument("--once", action="store_true", help="show it once")
    watch.add_argument("--page", type=Path, metavar="FILE", help="also write a page that refreshes itself")

    exporter = commands.add_parser(
        "exporter",
        help="show progress of studies and figures of block servers to Prometheus",
        description="Prints OpenMetrics once; with --out or --listen it goes on until ctrl-c.",
    )
    exporter.add_argument(
        "studies", nargs="*", metavar="STUDY", help="studies that were started, by name or folder"
    )
    _add_results(exporter)
    exporter.add_argument(
        "--state", action="append", default=[], type=Path, metavar="DIR",
        help="state folder of `weir serve`, such as /run/weir (repeatable)",
    )  # fmt: skip
    exporter.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="keep a file up to date; FILE.prom is for node_exporter's textfile collector",
    )
    exporter.add_argument(
        "--listen", metavar="[ADDRESS:]PORT", help="answer at /metrics on the loopback interface"
    )
    exporter.add_argument(
        "--interval",
        type=float,
        default=5.0,
        metavar="S",
        help="seconds between two updates of --out (default: 5)",
    )

    compare = commands.add_parser(
        "compare",
        help="compare two results of one design, such as of two kernels or commits",
        description="Exit codes: 0 nothing worse, 2 bad input, 3 something worse, 4 (--strict) undecided.",
    )
    compare.add_argument(
        "before",
        metavar="BEFORE",
        help="a study's results: STUDY@LABEL, or a folder such as results-6.12/quick",
    )
    compare.add_argument("after", metavar="AFTER", help="other results of the same study")
    compare.add_argument(
        "--metric", action="append", default=[], metavar="NAME",
        help="metric to compare (repeatable; default: the class's response quantile and its throughput)",
    )  # fmt: skip
    compare.add_argument(
        "--equivalence",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="relative change that does not matter (default: 0.05)",
    )
    compare.add_argument(
        "--format", default="text", choices=["text", "json", "csv", "markdown", "junit"], help="output"
    )
    compare.add_argument(
        "--strict",
        action="store_true",
        help="exit code 4 where a comparison is undecided or impossible, or hosts are mixed (rule R-HOST)",
    )
    _add_results(compare)

    power = commands.add_parser(
        "power",
        help="print the repetitions that show a change of 5, 10 and 20 %%, and their cost",
        description="The runs of the study, or of an A/A study, are the pilot.",
    )
    _add_study(power)
    power.add_argument(
        "--power", type=float, default=0.8, metavar="P",
        help="probability of showing a change that is there (default: 0.8)",
    )  # fmt: skip

    variation = commands.add_parser(
        "variation",
        help="print how much each factor and interaction explains of a metric",
        description="Type II sums of squares with blocks; of the logarithm where all values are above 0.",
    )
    _add_study(variation)
    variation.add_argument(
        "--class", dest="class_name", metavar="CLASS", help="one class (default: all with a response time)"
    )
    variation.add_argument("--metric", help="the metric (default: that of the class's objective)")

    capacity = commands.add_parser(
        "capacity",
        help="search for the largest number of clients at which all objectives are attained",
        description="Doubles and bisects the number of clients of one class, for every cell of the study.",
    )
    capacity.add_argument("study", metavar="STUDY", help="a study, by name or file")
    capacity.add_argument(
        "--class",
        dest="class_name",
        required=True,
        metavar="CLASS",
        help="the class that is counted",
    )
    capacity.add_argument(
        "--with", dest="others", action="append", default=[], metavar="CLASS=N[,N...]",
        help="numbers of clients of another class: a point of the curve for each (repeatable)",
    )  # fmt: skip
    capacity.add_argument(
        "--limit", dest="limits", action="append", default=[], metavar="CLASS.METRIC=VALUE",
        help="a further objective: the metric is at most this (repeatable)",
    )  # fmt: skip
    capacity.add_argument("--least", type=int, default=1, metavar="N", help="first number tried (default: 1)")
    capacity.add_argument("--most", type=int, default=10_000, metavar="N", help="largest (default: 10000)")
    capacity.add_argument(
        "--resolution", type=float, default=0.02, metavar="SHARE",
        help="relative distance to the next number tried, which failed (default: 0.02)",
    )  # fmt: skip
    capacity.add_argument("--repetitions", type=int, metavar="N", help="repetitions (default: the study's)")
    _add_results(capacity)

    precision = commands.add_parser(
        "precision",
        help="say whether a study with `precision` needs more repetitions",
        description="Exit codes: 0 the study stops, 2 bad input, 4 more repetitions are needed.",
    )
    _add_study(precision)
    then = precision.add_mutually_exclusive_group()
    then.add_argument(
        "--decide",
        action="store_true",
        help="write the decision, which `weir simulate` and `weir plan --missing` follow",
    )
    then.add_argument(
        "--simulate", action="store_true", help="simulate repetitions and decide, until the study stops"
    )

    export = commands.add_parser(
        "export", help="write the runs and requests of a study as tables for other tools"
    )
    _add_study(export)
    export.add_argument("out", type=Path, metavar="DIR", help="a new folder")
    kinds = export.add_mutually_exclusive_group()
    for form, text in (("parquet", "Parquet (default)"), ("csv", "CSV"), ("arrow", "Arrow IPC files")):
        kinds.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=text)
    export.set_defaults(form="parquet")

    pack = commands.add_parser(
        "pack",
        help="write one archive of a study: raw rows, numbers, specifications, environment, provenance",
        description="The archive is a tar, described as RO-Crate and Croissant; `weir verify` checks it. "
        "Exit codes: 0 done, 1 (--check) an item of the checklist does not hold, 2 bad input.",
    )
    pack.add_argument(
        "studies",
        nargs="+",
        metavar="STUDY",
        help="studies with results, by name or folder; `hds` stands for all studies `hds-*`",
    )
    pack.add_argument("--out", type=Path, metavar="FILE", help="the archive (default: STUDY.tar)")
    pack.add_argument(
        "--citation", type=Path, metavar="FILE", help="authors, licence, date and DOI: a CITATION.cff"
    )
    pack.add_argument(
        "--anonymous",
        action="store_true",
        help="for double-blind review: without authors, names and command lines of hosts",
    )
    pack.add_argument(
        "--check", action="store_true", help="print the checklist of artifact evaluation, and write nothing"
    )
    _add_results(pack)

    verify = commands.add_parser(
        "verify",
        help="check an archive of `pack`: checksums, and every number computed again from raw rows",
        description="Exit codes: 0 verified, 1 something differs, 2 bad input.",
    )
    verify.add_argument(
        "archive", type=Path, metavar="ARCHIVE", help="the archive, or the folder it was unpacked to"
    )
    _add_import(commands)

    trace = commands.add_parser("trace-page", help="write one self-contained HTML page about a trace")
    trace.add_argument("stat", type=Path, help="output of `weir trace stat FILE --json`")
    trace.add_argument("--out", type=Path, help="the page (default: the same name with .html)")

    claims = commands.add_parser(
        "claims",
        help="write one page of all claims of papers: passage, limits, ours, status",
        description="Claims are judged by the notebooks of the papers (`figures`); those of a notebook that "
        "was not run are shown as not measured.",
    )
    claims.add_argument("--out", type=Path, help="the page (default: claims.html in the results)")
    _add_results(claims)

    figures = commands.add_parser("figures", help="run the notebooks and print the claims of papers")
    figures.add_argument("names", nargs="*", metavar="NOTEBOOK", help="notebooks to run (default: all)")
    figures.add_argument(
        "--study",
        metavar="STUDY",
        help="only notebooks of this study or of STUDY-*; simulates missing runs of a paper first",
    )
    _add_results(figures)
    figures.add_argument("--sources", type=Path, help="their sources (default: those of the project)")

    lab = commands.add_parser("lab", help="open the notebooks in JupyterLab, on this machine only")
    lab.add_argument("options", nargs="*", help="further options of `jupyter lab`, after --")

    sample = commands.add_parser("sample", help="make the sample results again, then the notebooks on them")
    sample.add_argument("--results", type=Path, help="take what is complete from this folder")
    sample.add_argument("--notebooks-only", action="store_true", help="leave the sample results unchanged")
    return made


def _add_import(commands: Any) -> None:
    of = commands.add_parser("import", help="read results and job files of other programs")
    kinds = of.add_subparsers(required=True, dest="kind", metavar="KIND")
    results = kinds.add_parser(
        "results",
        help="results of other programs as runs of a study",
        description="FILE is JSON, JSON+ or a latency log of fio, a folder of fio's JSON, CSV or JSON of "
        "elbencho, or text of blkparse, biosnoop or biosnoop.bt. Each file is a repetition of the cell that "
        "--level names; call it once for each cell, or describe all cells in a YAML file. Imported runs have "
        "the status `imported`: weir did not judge them.",
    )
    results.add_argument("study", metavar="STUDY", help="name of the study that the runs are added to")
    results.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files or folders of one cell")
    results.add_argument(
        "--level", action="append", default=[], metavar="FACTOR=LEVEL",
        help="level of these files, such as scheduler=bfq (repeatable)",
    )  # fmt: skip
    results.add_argument("--map", type=Path, metavar="YAML", help="levels and files of all cells")
    results.add_argument(
        "--latency",
        choices=["lat", "clat", "slat"],
        help="response time of fio to take (default: lat if it has percentiles, else clat)",
    )
    results.add_argument("--question", metavar="TEXT", help="the question that the study answers")
    _add_results(results)
    job = kinds.add_parser(
        "fio",
        help="a job file of fio as workloads and a study",
        description="Each job becomes a workload and a class; jobs from `stonewall` on are another study. "
        "The report names each option: expressed, without effect on the requests, or lost, with what weir "
        "does instead. Exit code 3: something is lost; 2: it is not a job file.",
    )
    job.add_argument("job", type=Path, metavar="JOB.fio", help="the job file")
    job.add_argument(
        "--to", type=Path, metavar="DIR", help="folder of workloads/ and studies/ (default: the project)"
    )
    job.add_argument("--name", metavar="NAME", help="name of the study (default: that of the file)")
    job.add_argument(
        "--testbed", choices=["device", "simulator"], default="device", help="default: %(default)s"
    )
    job.add_argument("--profile", default="ssd-sata", metavar="NAME", help="its disk (default: %(default)s)")
    job.add_argument(
        "--target-size", metavar="SIZE",
        help="size of the file or device of the jobs, for size=10%% and jobs without size",
    )  # fmt: skip
    job.add_argument(
        "--define", action="append", default=[], metavar="NAME=VALUE", help="value of ${NAME} (repeatable)"
    )
    job.add_argument("--environment", action="store_true", help="take ${NAME} from the environment")
    job.add_argument("--dry-run", action="store_true", help="write nothing, only report")


def _add_study(
    command: argparse.ArgumentParser, text: str = "a study with results, by name or folder, or STUDY@LABEL"
) -> None:
    command.add_argument("study", metavar="STUDY", help=text)
    _add_results(command)


def _add_results(command: argparse.ArgumentParser) -> None:
    command.add_argument("--results", type=Path, help="the folder of results (default: that of the project)")
