"""Results as tables of text: one row per cell, estimates with their intervals."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import polars as pl

from weir import claims as of_claims
from weir.imported.outcome import MEASURES
from weir.labels import CUT, DASH, label, number, with_interval
from weir.load import IMPORTED, STATUSES, TESTBED, Level, Study
from weir.statistics import CONFIDENCE, POOLED, fitted
from weir.study import cell_label
from weir.support import SHOWN, footnote, with_support

#: The metrics of a class that every study's results show, where the class has them.
CLASS_METRICS = (
    "response_mean_ms",
    "response_p50_ms",
    "response_p95_ms",
    "response_p99_ms",
    "deadline_miss_share",
    "throughput_mb_s",
)
#: Metrics of a class in a closed loop, whose rate depends on the responses.
CLOSED_METRICS = (*CLASS_METRICS, "requests_per_s")
#: Files that the provenance of imported runs names.
MOST_FILES = 4
#: Units of the values of validity rules, and the factor from what `verdict.json` has: ns and shares.
_RULE_UNITS = (
    dict.fromkeys(("R-LATE", "R-START", "R-MODEL", "R-CLOCK"), ("ms", 1e-6))
    | dict.fromkeys(("R-SPAN", "R-FIO", "R-LOSS", "R-CACHED"), ("%", 100.0))
    | dict.fromkeys(("R-PLANNED", "R-ERRORS", "R-WHOLE"), ("requests", 1.0))
    | {"R-WAY": ("ms", 1.0), "R-NETWORK": ("bytes", 1.0)}
)


def results(
    study: Study, table: pl.DataFrame, class_name: str, metrics: Iterable[str] | None = None
) -> pl.DataFrame:
    """The results of one class: a row per cell, a column per metric that has a value, `n` repetitions.

    Cells read `estimate [low, high]` with the interval that fits the metric (`statistics.fitted`); one
    repetition has no interval. The default metrics depend on the class's engine.
    """
    return captioned(study, table, class_name, metrics)[0]


def captioned(
    study: Study, table: pl.DataFrame, class_name: str, metrics: Iterable[str] | None = None
) -> tuple[pl.DataFrame, list[str]]:
    """`results`, and the lines below the table: estimands, intervals, and what its marks mean."""
    names = list(study.varied)
    rows = table.filter(pl.col("class") == class_name)
    cells = _cells(rows, names)
    columns: dict[str, list[str]] = {}
    summaries: dict[str, pl.DataFrame] = {}
    dashes: list[str] = []
    for metric in _measured(study, rows, class_name, metrics):
        summary = summaries[metric] = _shown(rows, metric, names)
        texts = {tuple(found[name] for name in names): _cell(found) for found in summary.to_dicts()}
        columns[label(metric).axis] = [texts.get(key, number(None)) for key, _ in cells]
        dashes += filter(None, [footnote(study, rows, metric, names)])
    counts = [runs.height for _, runs in cells]
    shown = pl.DataFrame({**_levels(names, cells), "n": counts, **columns}, strict=False)
    return shown, [*_interval_notes(summaries), *dashes]


def _measured(study: Study, rows: pl.DataFrame, class_name: str, metrics: Iterable[str] | None) -> list[str]:
    """The metrics of a class that have a value; by default those of its engine."""
    if metrics is None:
        is_closed = any(one.name == class_name and one.engine != "replay" for one in study.classes)
        metrics = CLOSED_METRICS if is_closed else CLASS_METRICS
    return [metric for metric in metrics if rows[metric].null_count() < rows.height]


def estimates(study: Study, table: pl.DataFrame, class_name: str) -> list[dict[str, object]]:
    """The numbers of `results`: one object per metric and cell, with its levels and interval.

    `shown` is false where too few requests lie beyond a quantile for `results` to show it.
    """
    names = list(study.varied)
    rows = table.filter(pl.col("class") == class_name)
    found = []
    for metric in _measured(study, rows, class_name, None):
        for row in _shown(rows, metric, names).iter_rows(named=True):
            shown = row.pop(SHOWN)
            levels = {name: row.pop(name) for name in names}
            found.append({"metric": metric, "levels": levels, **row, "shown": shown})
    return found


def attained(study: Study, table: pl.DataFrame, class_name: str) -> list[dict[str, object]]:
    """Number of runs that attained the objective of a class, by cell; empty without an objective."""
    names = list(study.varied)
    rows = table.filter(pl.col("class") == class_name).drop_nulls("objective_attained")
    return [
        {
            "levels": dict(zip(names, key, strict=True)),
            "attained": int(of_cell["objective_attained"].sum()),
            "n": of_cell.height,
        }
        for key, of_cell in _cells(rows, names)
    ]


def _interval_notes(summaries: dict[str, pl.DataFrame]) -> list[str]:
    """What the estimates and intervals of a table are: one line for the metrics that are alike."""
    alike: dict[str, list[str]] = {}
    cut = False
    for metric, summary in summaries.items():
        summary = summary.filter(SHOWN)
        methods = [method for method in summary["method"].unique(maintain_order=True) if method != "none"]
        notes = {part for note in summary["note"] for part in note.split(", ")}
        cut = cut or any(part.startswith("cut at") for part in notes)
        if methods:
            how = ", ".join([*methods, *([POOLED] if POOLED in notes else [])])
            estimand = summary["estimand"][0].capitalize()
            kind = f"{estimand}, {CONFIDENCE * 100:.0f} % interval ({how})"
            alike.setdefault(kind, []).append(label(metric).text)
    lines = [f"{kind}: {', '.join(texts)}." for kind, texts in alike.items()]
    return [*lines, *([f"{CUT} cut at the limit of the quantity."] if cut else [])]


def _shown(rows: pl.DataFrame, metric: str, by: list[str]) -> pl.DataFrame:
    """Estimates of a metric, and whether each is shown as a number."""
    summary = fitted(rows, metric, by)
    kept = with_support(rows.drop_nulls(metric), metric, by)
    if not by:
        return summary.with_columns(pl.lit(value=bool(kept[SHOWN].all())).alias(SHOWN))
    return summary.join(kept.select(*by, SHOWN).unique(), on=by, how="left", nulls_equal=True)


def _cell(found: dict[str, object]) -> str:
    if not found[SHOWN]:
        return DASH
    return with_interval(found["estimate"], found["low"], found["high"], found["note"])


def side_by_side(study: Study, table: pl.DataFrame, class_name: str, metric: str) -> pl.DataFrame | None:
    """One metric of one class on both testbeds: a row per cell, a column per testbed and its file system.

    A simulated server has no file system, and one column.

    Returns:
        The table; None where only one testbed has a value of the metric.
    """
    rows = table.filter(pl.col("class") == class_name).drop_nulls(metric)
    if TESTBED not in study.varied or rows[TESTBED].n_unique() < 2:
        return None
    across = [name for name in ("filesystem",) if name in study.varied]
    names = [name for name in study.varied if name not in (TESTBED, *across)]
    summary = _shown(rows, metric, [*names, TESTBED, *across])
    columns = summary.select(TESTBED, *across).unique(maintain_order=True).rows()
    columns.sort(key=lambda key: study.factors[TESTBED].index(key[0]))
    cells = _cells(summary, names)
    found = {}
    for column in columns:
        texts = []
        for _, of_cell in cells:
            at = of_cell.filter(
                pl.col(TESTBED) == column[0], *(pl.col("filesystem") == f for f in column[1:])
            )
            texts.append(_estimate(at))
        found["simulator" if column[0] == "simulator" else ", ".join(column)] = texts
    return pl.DataFrame({**_levels(names, cells), **found}, strict=False)


def _estimate(summary: pl.DataFrame) -> str:
    return number(None) if summary.is_empty() else _cell(summary.row(0, named=True))


def attainment(study: Study, table: pl.DataFrame) -> pl.DataFrame:
    """Number of runs that attained each objective: a row per cell, a column per class with an objective."""
    names = list(study.varied)
    cells = _cells(table, names)
    columns: dict[str, list[str]] = {}
    for name in (c.name for c in study.classes if c.objective):
        columns[name] = []
        for _, rows in cells:
            judged = rows.filter(pl.col("class") == name)["objective_attained"].drop_nulls()
            kept = judged.cast(pl.Int64).sum()
            columns[name].append(f"{kept} of {judged.len()} runs" if judged.len() else number(None))
    return pl.DataFrame({**_levels(names, cells), **columns}, strict=False)


def rules(study: Study) -> pl.DataFrame:
    """Each validity rule: number of runs in which it held, was broken, did not apply; the worst value."""
    counted: dict[str, dict[str, int]] = {}
    worst: dict[str, tuple[float, float | None]] = {}
    for run in study.runs:
        for rule in run.validity.rules:
            line = counted.setdefault(rule.rule, dict.fromkeys(STATUSES, 0))
            line[rule.status] += 1
            if rule.value is not None and (rule.rule not in worst or rule.value > worst[rule.rule][0]):
                worst[rule.rule] = (rule.value, rule.limit)
    return pl.DataFrame(
        {
            "rule": list(counted),
            "kept": [line["valid"] for line in counted.values()],
            "broken": [line["invalid"] for line in counted.values()],
            # weir judges no imported run.
            "did not apply": [line["skipped"] + line[IMPORTED] for line in counted.values()],
            "largest value": [_of_rule(name, worst.get(name, (None, None))[0]) for name in counted],
            "limit": [_of_rule(name, worst.get(name, (None, None))[1]) for name in counted],
        }
    )


def _of_rule(name: str, value: float | None) -> str:
    """A value of a rule in its unit, such as `0.145 ms`."""
    unit, factor = _RULE_UNITS.get(name, ("", 1.0))
    return number(value) if value is None else f"{number(value * factor)} {unit}".rstrip()


def excluded(study: Study) -> pl.DataFrame:
    """Runs without data, with the reason: invalid, skipped, missing and stray runs."""
    names = list(study.varied)
    rows = [
        (run.id, cell_label(run.levels, names), run.repetition, run.validity.status, run.validity.reasons)
        for run in study.runs
        if not run.validity.is_usable
    ]
    for name, levels in study.missing.items():
        rows.append((name, cell_label(levels, names), None, "missing", "not run yet"))
    rows += [
        (name, "", None, "stray", "run of an earlier plan, not part of this design") for name in study.stray
    ]
    types = dict.fromkeys(("run", "cell", "repetition", "status", "reason"), pl.String)
    return pl.DataFrame(rows, schema=types | {"repetition": pl.Int64}, orient="row")


def provenance(study: Study) -> list[str]:
    """What imported runs are: programs, files, what their response time is. Empty without imported runs."""
    records = [run.imported for run in study.runs if run.imported]
    if not records:
        return []
    programs = ", ".join(sorted({record["program"] for record in records}))
    files = [Path(file["path"]).name for record in records for file in record["files"]]
    named = ", ".join(files[:MOST_FILES]) + (
        f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    )
    measures = ", ".join(
        f"`{name}`, {MEASURES[name]}" for name in sorted({record["measure"] for record in records})
    )
    lines = [
        f"Imported from {named} by {programs}; weir did not judge it. No validity rule was applied.",
        f"Response time is {measures}. It does not count from an intended time: what a late or blocked "
        "sender did not send is not in it (coordinated omission).",
        "Repetitions are paired in the order of the files. Whether they share seeds or a block is unknown.",
    ]
    widths = [record["bin_width"] for record in records if record.get("bin_width")]
    if widths:
        lines.append(f"Quantiles are from histograms, whose bins are at most {max(widths) * 100:.2g} % wide.")
    return [*lines, *dict.fromkeys(f"Unknown: {text}." for record in records for text in record["unknown"])]


def sources(study: Study) -> pl.DataFrame:
    """The files of each imported run, with the program that wrote them; no row without imported runs."""
    names = list(study.varied)
    rows = [
        (
            run.id,
            cell_label(run.levels, names),
            run.repetition,
            run.imported["program"],
            run.imported["form"],
            file["path"],
            file["sha256"][:12],
        )
        for run in study.runs
        for file in run.imported.get("files", ())
    ]
    columns = ("run", "cell", "repetition", "program", "format", "file", "SHA-256 (begin)")
    types = dict.fromkeys(columns, pl.String) | {"repetition": pl.Int64}
    return pl.DataFrame(rows, schema=types, orient="row")


def claims(folder: Path) -> pl.DataFrame:
    """Every claim of `results/*/claims.json`: the paper's number, ours, and the claim status.

    Raises:
        InputError: a claims file is damaged.
    """
    rows = judged(folder)
    names = ("study", "id", "status", "paper", "ours", "interval", "unit", "note")
    return pl.DataFrame({name: [_text(row[name]) for row in rows] for name in names})


def judged(folder: Path) -> list[dict[str, object]]:
    """The claims of `results/*/claims.json` with their study; errors as `claims`."""
    rows: list[dict[str, object]] = []
    for path in sorted(folder.glob(f"*/{of_claims.FILE}")):
        rows += [{"study": path.parent.name, **asdict(claim)} for claim in of_claims.read(path.parent)]
    return rows


def _cells(table: pl.DataFrame, names: list[str]) -> list[tuple[tuple[Level, ...], pl.DataFrame]]:
    """The rows of each cell, by its levels, in the table's order."""
    if not names:
        return [((), table)] if table.height else []
    return [(key, rows) for key, rows in table.group_by(names, maintain_order=True)]


def _levels(names: list[str], cells: list[tuple[tuple[Level, ...], pl.DataFrame]]) -> dict[str, list[Level]]:
    return {name: [key[position] for key, _ in cells] for position, name in enumerate(names)}


def _text(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_text(part) for part in value) + "]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(float(value))
    return "" if value is None else str(value)
