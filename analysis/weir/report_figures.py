"""Figures of a study's report, each with a title and a caption."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from matplotlib.figure import Figure

from weir.labels import label
from weir.load import AppClass, Study
from weir.plots import study_figures
from weir.plots.layout import is_numeric
from weir.study import device_table, objective_metric, per_run


@dataclass(frozen=True)
class Exhibit:
    """A figure of a report: `name` is its file's stem."""

    name: str
    title: str
    text: str
    figure: Figure


def exhibits(study: Study, table: pl.DataFrame) -> Iterator[Exhibit]:
    """The figures of a study for which it has data.

    Args:
        study: the study.
        table: one row per valid run and class.
    """
    for app_class in study.classes:
        rows = table.filter(pl.col("class") == app_class.name)
        if rows["requests"].sum() > 0:
            yield from _of_class(study, app_class, rows)
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
    since = "Response time is completion minus intended time."
    for ending, column, most, title, text in (
        ("response", metric, limit, label(metric).text.lower(), since),
        ("deadlines", "deadline_miss_share", miss, "deadline misses", late),
        ("throughput", "throughput_mb_s", rate, "throughput", done),
    ):
        if rows[column].drop_nulls().len():
            figure = study_figures.intervals(study, rows, column, limit=most)
            yield Exhibit(f"{name}-{ending}", f"{name}: {title}", text, figure)
    if not all((run.path / "requests.parquet").exists() for run in study.valid_runs):
        # A simulation without request tables has quantiles, but no distribution.
        return
    yield Exhibit(
        f"{name}-tail",
        f"{name}: distribution of response time",
        "Lower and further left is better. Lines of the same colour and dash are repetitions of one cell.",
        study_figures.tail(study, name),
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
        yield Exhibit("split", "Queueing delay and service time", text, study_figures.split(study, rows))


def _comparison(study: Study, table: pl.DataFrame, factor: str) -> Iterator[Exhibit]:
    try:
        figure = study_figures.ratios(study, table, "response_p95_ms", factor)
    except ValueError:
        # No block has both levels.
        return
    baseline = study.factors[factor][0]
    yield Exhibit(
        f"ratio-{factor}",
        f"95th percentile of response time by {factor}, relative to {baseline}",
        "Left of the line is faster than the baseline. An interval across the line shows no difference.",
        figure,
    )
