"""Figures of a study's report, each with a title and a caption."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from matplotlib.figure import Figure

from weir import interactive
from weir.alt_texts import course, estimates, ratios
from weir.derive import QUANTILES
from weir.interactive import Chart
from weir.labels import label
from weir.load import AppClass, Study
from weir.plots import charts, study_figures
from weir.plots import responses as response_figures
from weir.plots.layout import is_numeric
from weir.plots.responses import PANEL, with_panel
from weir.responses import Responses, responses
from weir.statistics import compare
from weir.study import comparable, device_table, objective_metric, per_run
from weir.support import SHOWN, footnote, with_support

#: Factors that are drawn as a heat map where a study varies both.
CROSSED = ("scheduler", "filesystem")


@dataclass(frozen=True)
class Exhibit:
    """A figure of a report: `name` is its file's stem, `alt` says what it shows in numbers.

    `chart` is the same figure to zoom, where there is one.
    """

    name: str
    title: str
    text: str
    figure: Figure
    alt: str = ""
    chart: Chart | None = None


def exhibits(study: Study, table: pl.DataFrame) -> Iterator[Exhibit]:
    """The figures of a study for which it has data.

    Args:
        study: the study.
        table: one row per valid run and class.
    """
    by_class = responses(study, table)
    for app_class in study.classes:
        rows = table.filter(pl.col("class") == app_class.name)
        if rows["requests"].sum() > 0:
            yield from _of_class(study, app_class, rows)
            if app_class.name in by_class:
                yield from _responses(study, app_class, rows, by_class[app_class.name])
    yield from _split(study, table)
    for factor, levels in study.varied.items():
        if not is_numeric(levels):
            yield from _comparison(study, table, factor)


def _of_class(study: Study, app_class: AppClass, rows: pl.DataFrame) -> Iterator[Exhibit]:
    name = app_class.name
    metric, limit = objective_metric(app_class)
    objective = app_class.objective or {}
    miss, rate = objective.get("deadline_miss_share"), objective.get("rate_mb_s")
    late = "Share of requests that completed after their deadline, failed or did not complete."
    done = "Bytes completed in the measured interval. MB is 10^6 bytes."
    is_imported = any(run.imported for run in study.runs)
    since = (
        "Response time as the program measured it."
        if is_imported
        else "Response time is completion minus intended time."
    )
    for ending, column, most, title, text in (
        ("response", metric, limit, label(metric).text.lower(), since),
        ("deadlines", "deadline_miss_share", miss, "deadline misses", late),
        ("throughput", "throughput_mb_s", rate, "throughput", done),
    ):
        if rows[column].drop_nulls().len():
            figure = study_figures.intervals(study, rows, column, limit=most)
            alt = estimates(rows, [column], list(study.varied))
            yield Exhibit(f"{name}-{ending}", f"{name}: {title}", text, figure, alt)
    yield from _heat_map(study, rows, name, metric)


def _heat_map(study: Study, rows: pl.DataFrame, name: str, metric: str) -> Iterator[Exhibit]:
    """Scheduler by file system, where a study varies both."""
    y, x = CROSSED
    if not {x, y} <= study.varied.keys():
        return
    # A simulated server has no file system.
    rows = rows.drop_nulls([x, y, metric])
    if rows[x].n_unique() < 2 or rows[y].n_unique() < 2:
        return
    others = [factor for factor in study.varied if factor not in CROSSED and rows[factor].n_unique() > 1]
    rows, col = (with_panel(rows, others), PANEL) if others else (rows, None)
    order = {factor: study.factors[factor] for factor in CROSSED}
    by = [*CROSSED, *others]
    own = {"fit": True, "shown": SHOWN, "note": footnote(study, rows, metric, by) or ""}
    rows = with_support(rows, metric, by)
    figure = charts.heat_map(rows, metric, x=x, y=y, col=col, order=order, words={PANEL: ""}, **own)
    title = f"{name}: {label(metric).text.lower()} by scheduler and file system"
    text = "Darker is longer. Grey: no run, or no number."
    yield Exhibit(f"{name}-map", title, text, figure, estimates(rows, [metric], by))


def _responses(study: Study, app_class: AppClass, rows: pl.DataFrame, found: Responses) -> Iterator[Exhibit]:
    name, factors = app_class.name, list(study.varied)
    metric, limit = objective_metric(app_class)
    q = QUANTILES[metric.split("_")[1]]
    objective, level = None if limit is None else (q, limit), limit if q == found.q else None
    yield Exhibit(
        f"{name}-tail",
        f"{name}: distribution of response time",
        "Higher and further left is better. 90, 99 and 99.9 % are at equal distances: the tail has room.",
        response_figures.distributions(study, found, objective),
        estimates(rows, ["response_p50_ms", "response_p95_ms"], factors),
        interactive.distributions(study, found, objective),
    )
    yield Exhibit(
        f"{name}-time",
        f"{name}: response time over time",
        "A level that rises or falls after the warm-up is drift: see Steady state.",
        response_figures.over_time(study, found, level),
        course(found, factors),
        interactive.over_time(study, found, level),
    )


def _split(study: Study, table: pl.DataFrame) -> Iterator[Exhibit]:
    devices = device_table(study)
    # A simulator records when service began. Means over classes are weighted by requests.
    simulated = table.filter(pl.col("testbed") == "simulator") if devices.height else table
    seen = (
        (devices, "the block layer: queued to issued, issued to completed"),
        (simulated, "the simulator: intended to service, service to completed"),
    )
    parts = [(per_run(rows, study), where) for rows, where in seen if rows.height]
    if not parts:
        return
    rows = pl.concat([rows for rows, _ in parts], how="vertical_relaxed")
    where = "; and by ".join(where for _, where in parts)
    if rows.height and rows["queueing_mean_ms"].drop_nulls().len():
        text = f"Source: {where}. Means over all requests of all devices."
        figure, parts = study_figures.split(study, rows), ["queueing_mean_ms", "service_mean_ms"]
        alt = estimates(rows, parts, list(study.varied))
        yield Exhibit("split", "Queueing delay and service time", text, figure, alt)


def _comparison(study: Study, table: pl.DataFrame, factor: str) -> Iterator[Exhibit]:
    try:
        figure = study_figures.ratios(study, table, "response_p95_ms", factor)
    except ValueError:
        # No block has both levels.
        return
    baseline = study.factors[factor][0]
    kept = comparable(study, table, factor, baseline)
    by = ["class", *(name for name in study.varied if name != factor)]
    found = compare(kept, "response_p95_ms", factor, baseline, by)
    yield Exhibit(
        f"ratio-{factor}",
        f"95th percentile of response time: ratio to {factor} {baseline} (1 = equal)",
        "Left of the line is faster than the baseline. An interval across the line shows no difference.",
        figure,
        ratios(found, [factor, *by]),
    )
