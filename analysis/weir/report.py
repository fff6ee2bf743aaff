"""Report of a study, one HTML page: question, design, results, figures, validity, host."""

import json
import multiprocessing
import os
import statistics
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from weir import claims, interactive, pages, present
from weir.answers import answers, drifting
from weir.change_points import change_points
from weir.derive import keep_metrics
from weir.duplicates import floors
from weir.labels import label, number, objective_text
from weir.load import IMPORTED, AppClass, Run, Study, load_study
from weir.mixed_hosts import mixed_hosts
from weir.pages import write_page
from weir.power import SHOWN_CHANGE, power_of
from weir.precision import OF_CELLS, decide
from weir.report_figures import Exhibit, exhibits
from weir.study import class_table, objective_metric, run_table
from weir.tiers import tiers
from weir.variation import Variation, variations

_ENGINES = {"replay": "open loop (replay)", "recorded": "unknown (recorded)"}
#: Fields of the replayer's own statistics: name, unit, and divisor.
_FIDELITY = {
    "lateness_median_ns": ("Lateness, median", "ms", 1e6),
    "lateness_p99_ns": ("Lateness, 99th percentile", "ms", 1e6),
    "lateness_max_ns": ("Lateness, largest", "ms", 1e6),
    "span_error": ("Span error", "%", 1e-2),
}

#: Counts of the capture's reconciliation with the kernel's counters.
_CAPTURE = {
    "rows": "Block requests recorded",
    "lost": "Lost: the completion was missed",
    "filled": "Lost, and filled from a second trace",
    "unexplained": "Differences from the kernel's counters that losses do not explain",
}


def write_report(folder: Path | str, out: Path | None = None, *, workers: int = 1) -> Path:
    """Writes a study's report and returns its path.

    Args:
        folder: `results/<study>`.
        out: the page; `report.html` in the study's folder if None, or `report@LABEL.html`.
        workers: processes that compute the metrics of many runs that have none.

    Raises:
        InputError: the study cannot be loaded, or the page cannot be written.
    """
    study = load_study(folder)
    # Metrics that cannot be kept would be computed twice.
    if study.valid_runs and os.access(study.valid_runs[0].path, os.W_OK):
        deque(keep_metrics(study.valid_runs, workers=workers), maxlen=0)
    page = "report.html" if study.label is None else f"report@{study.label}.html"
    return write_page(out or study.path / page, render(study))


def write_reports(folders: Sequence[Path]) -> list[Path]:
    """Writes the reports of several studies in parallel and returns their paths.

    Args:
        folders: one `results/<study>` each.

    Raises:
        InputError: a study cannot be loaded, or its page cannot be written.
    """
    if len(folders) == 1:
        return [write_report(folders[0], workers=os.cpu_count() or 1)]
    workers = min(len(folders), os.cpu_count() or 1)
    # Not by fork: the threads of polars do not survive it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        return list(pool.map(write_report, folders))


def render(study: Study) -> str:
    """The report of a study as HTML.

    Raises:
        InputError: a table of a run is damaged.
    """
    table = class_table(study)
    drawn = [_inline(exhibit) for exhibit in exhibits(study, table)] if study.valid_runs else []
    return pages.render(
        "report.html.j2",
        study=study,
        answers=[answer.sentence() for answer in answers(study, table)],
        decision=[*decide(study, table).lines(), OF_CELLS] if study.precision is not None else [],
        power=power_of(study, table, changes=(SHOWN_CHANGE,)).sentence(),
        drift=_drift(study, table),
        floors=[floor.sentence() for floor in floors(study)],
        mixed=[found.sentence() for found in mixed_hosts(study)],
        changes=[change.sentence() for change in change_points(study, table)],
        variation=[_variation(found) for found in variations(study, table)],
        counts=_counts(study, table),
        design=design(study),
        provenance=present.provenance(study),
        sources=_rows(present.sources(study)),
        virtual=_virtual(study),
        side_by_side=_side_by_side(study, table),
        attainment=_rows(present.attainment(study, table)) if study.valid_runs else None,
        results=[
            {"name": c.name} | _captioned(*present.captioned(study, table, c.name))
            for c in study.classes
            if study.valid_runs and c.name in set(table["class"])
        ],
        fairness=_fairness(study),
        tiers=_tiers(study),
        exhibits=drawn,
        # Vega is larger than all else: only where it has something to draw.
        script=Markup(interactive.script()) if any(one["chart"] for one in drawn) else None,
        excluded=_rows(present.excluded(study)),
        rules=_rows(present.rules(study)),
        fidelity=_fidelity(study),
        capture=_capture(study),
        claims=claims.read(study.path),
        host=_host(study),
        text=_text,
    )


def _counts(study: Study, table: pl.DataFrame) -> dict[str, Any]:
    # Runs in virtual time take no time of a device.
    measured = [run for run in study.runs if run.testbed != "simulator"]
    measured_s = sum(run.duration_s + run.warmup_s for run in measured)
    timings = [run.observed.get("timing") or {} for run in measured]
    spent_s = sum(sum(v for v in t.values() if isinstance(v, int | float)) for t in timings)
    return {
        "planned": study.planned - len(study.not_needed),
        "valid": len(study.runs_with("valid")),
        "imported": len(study.runs_with(IMPORTED)),
        "invalid": len(study.runs_with("invalid")),
        "skipped": len(study.runs_with("skipped")),
        "missing": len(study.missing),
        "repeated": sum(run.validity.attempt > 1 for run in study.runs),
        "requests": int(table["requests"].sum()) if table.height else 0,
        "measured_share": f"{min(measured_s / spent_s, 1):.0%}" if spent_s > 0 else "n/a",
    }


def _drift(study: Study, table: pl.DataFrame) -> dict[str, Any] | None:
    """By class: runs in which responses drift, and runs that are too short to tell."""
    rows = [
        [name, str(drifts), str(short), str(runs)] for name, drifts, short, runs in drifting(study, table)
    ]
    columns = ["class", "runs that drift", "too short to tell", "runs"]
    return {"columns": columns, "rows": rows} if rows else None


def _variation(found: Variation) -> dict[str, Any]:
    effects = _rows(found.effects_table()) if found.effects else None
    return {
        "name": found.class_name,
        "sentence": found.sentence(),
        "terms": _rows(found.table()),
        "effects": effects,
        "notes": found.notes(),
    }


def _virtual(study: Study) -> str:
    """A sentence about the runs in virtual time; empty if there are none."""
    runs = [run for run in study.runs if run.testbed == "simulator"]
    if not runs:
        return ""
    simulated_s = sum(run.duration_s + run.warmup_s for run in runs)
    timings = [run.observed.get("timing") or {} for run in runs]
    spent_s = sum(sum(v for v in t.values() if isinstance(v, int | float)) for t in timings)
    which = "All runs" if len(runs) == len(study.runs) else f"{len(runs)} runs (testbed simulator)"
    return (
        f"{which} were carried out in virtual time, on models of disks and schedulers: "
        f"{number(simulated_s)} s simulated in {number(spent_s)} s of processor time."
    )


def _side_by_side(study: Study, table: pl.DataFrame) -> list[dict[str, Any]]:
    """The metric of each class's objective on both testbeds, side by side."""
    found = []
    for app_class in study.classes if study.valid_runs else ():
        metric, _ = objective_metric(app_class)
        shown = [metric]
        if "deadline_miss_share" in (app_class.objective or {}):
            shown.append("deadline_miss_share")
        for name in shown:
            grid = present.side_by_side(study, table, app_class.name, name)
            if grid is not None:
                found.append({"title": f"{app_class.name}: {label(name).axis}", "table": _rows(grid)})
    return found


def design(study: Study) -> dict[str, Any]:
    """The design of a study in words: factors, classes, lengths of runs, kernels."""
    clients: dict[str, set[int]] = {c.name: {c.clients} for c in study.classes}
    workloads: dict[str, set[str]] = {c.name: {c.workload} for c in study.classes}
    engines: dict[str, set[str]] = {c.name: {_engine(c)} for c in study.classes}
    media: dict[str, set[str]] = {c.name: set() for c in study.classes}
    for run in study.runs:
        for app_class in run.classes:
            clients.setdefault(app_class.name, set()).add(app_class.clients)
            workloads.setdefault(app_class.name, set()).add(app_class.workload)
            engines.setdefault(app_class.name, set()).add(_engine(app_class))
        for name, text in run.media.items():
            media.setdefault(name, set()).add(text)
    lengths = {
        f"{number(run.duration_s)} s after a warm-up of {number(run.warmup_s)} s" for run in study.runs
    }
    kernels = {(run.host.get("system") or {}).get("kernel_release") for run in study.runs}
    return {
        "factors": {name: ", ".join(map(_text, levels)) for name, levels in study.factors.items()},
        "lengths": " or ".join(sorted(lengths)),
        "kernels": ", ".join(sorted(str(name) for name in kernels if name)),
        "duplicated": any(run.duplicate for run in study.runs),
        "classes": [
            {
                "name": c.name,
                "workload": ", ".join(sorted(workloads[c.name])),
                "engine": " or ".join(sorted(engines[c.name])),
                "clients": _span(clients[c.name]) if clients[c.name] != {0} else "unknown",
                "media": " or ".join(sorted(media[c.name])) or "not recorded",
                "priority": c.priority or "default",
                "objective": objective_text(c.objective),
            }
            for c in study.classes
        ],
    }


def _engine(app_class: AppClass) -> str:
    """How requests come: at given times, or after responses, possibly not faster than a rate."""
    limit = app_class.rate_per_s
    paced = "" if limit is None else f", at most {number(limit)}/s by each client"
    return _ENGINES.get(app_class.engine, f"closed loop ({app_class.engine}){paced}")


def _span(values: set[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _captioned(table: pl.DataFrame, notes: list[str]) -> dict[str, Any]:
    return {"table": _rows(table), "notes": notes}


def _rows(table: pl.DataFrame) -> dict[str, Any]:
    return {"columns": table.columns, "rows": [[_text(value) for value in row] for row in table.rows()]}


def _fairness(study: Study) -> dict[str, Any] | None:
    if not study.valid_runs:
        return None
    runs = run_table(study).with_columns(pl.lit("all").alias("class"))
    names = [n for n in ("jain_classes", "jain_classes_weighted", "throughput_mb_s") if n in runs.columns]
    return _captioned(*present.captioned(study, runs, "all", names))


def _tiers(study: Study) -> dict[str, Any] | None:
    table = tiers(study)
    return None if table is None else _rows(table)


def _inline(exhibit: Exhibit) -> dict[str, Any]:
    return {
        "name": exhibit.name,
        "title": exhibit.title,
        "text": exhibit.text,
        "alt": f"{exhibit.title}. {exhibit.alt}",
        "source": pages.inline(exhibit.figure),
        "chart": exhibit.chart
        and {
            "panels": exhibit.chart.panels,
            "source": Markup(exhibit.chart.source),
            "note": exhibit.chart.note,
        },
    }


def _fidelity(study: Study) -> list[dict[str, str]]:
    lines = []
    replays = [run.observed.get("replay") or _browsers(run) for run in study.valid_runs]
    for field, (words, unit, scale) in _FIDELITY.items():
        values = [abs(r[field]) / scale for r in replays if isinstance(r.get(field), int | float)]
        if values:
            lines.append(
                {
                    "name": f"{words} ({unit})",
                    "median": number(statistics.median(values)),
                    "worst": number(max(values)),
                    "runs": str(len(values)),
                }
            )
    certificates = [found for replay in replays if (found := replay.get("certificate"))]
    trusted = [found["trusted_per_s"] for found in certificates if found.get("trusted_per_s") is not None]
    if certificates:
        limit_us = certificates[0]["limit_p99_ns"] / 1e3
        lines.append(
            {
                "name": f"Certified rate, p99 of lateness at most {limit_us:g} us (requests/s)",
                "median": number(statistics.median(trusted)) if trusted else "none",
                "worst": number(min(trusted)) if len(trusted) == len(certificates) else "none",
                "runs": f"{len(trusted)} of {len(certificates)}",
            }
        )
    return lines


def _capture(study: Study) -> list[dict[str, str]]:
    captures = [run.observed.get("capture") or {} for run in study.valid_runs]
    lines = []
    for field, words in _CAPTURE.items():
        counts = [found[field] for found in captures if isinstance(found.get(field), int)]
        if counts:
            most = f"{max(counts):,}"
            lines.append({"name": words, "all": f"{sum(counts):,}", "most": most, "runs": str(len(counts))})
    return lines


def _browsers(run: Run) -> dict[str, Any]:
    """The lateness of browsers, with the replayer's field names; empty without browsers."""
    lateness = (run.observed.get("web") or {}).get("lateness") or {}
    words = {"p50_ns": "lateness_median_ns", "p99_ns": "lateness_p99_ns", "max_ns": "lateness_max_ns"}
    return {name: lateness[own] for own, name in words.items() if own in lateness}


def _host(study: Study) -> list[tuple[str, str]]:
    """The host's facts, one line each, with the number of values where a fact differs between runs."""
    seen: dict[str, list[str]] = {}
    hosts = [run.host for run in study.runs]
    for host in hosts:
        for name, value in _flat(host):
            values = seen.setdefault(name, [])
            if value not in values:
                values.append(value)
    return [
        (name, values[0] if len(values) == 1 else f"{values[0]} (first of {len(values)} values between runs)")
        for name, values in seen.items()
    ]


def _flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict) and value:
        return [
            pair
            for name, part in value.items()
            for pair in _flat(part, f"{prefix}.{name}" if prefix else name)
        ]
    if isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        return [pair for i, part in enumerate(value) for pair in _flat(part, f"{prefix}[{i}]")]
    if isinstance(value, list):
        return [(prefix, ", ".join(map(str, value)))]
    return [(prefix, value if isinstance(value, str) else json.dumps(value))]


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
