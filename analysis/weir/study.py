"""Results of a study as tables: one row per run and class or device, with the run's levels."""

from collections.abc import Iterable
from typing import Any

import polars as pl

from weir.derive import QUANTILES, metrics_of
from weir.errors import InputError
from weir.load import TESTBED, AppClass, Level, Run, Study

#: Columns that identify a row; a factor may not be named like one of them or like a metric.
IDENTITY = ("run", "testbed", "repetition", "block", "order")


def class_table(
    study: Study,
    *,
    fresh: bool = False,
    keep: bool = True,
    known: dict[str, dict[str, Any]] | None = None,
) -> pl.DataFrame:
    """One row per valid run and class: identity, levels, `class`, and every class metric.

    Args:
        study: the study.
        fresh: compute every run's metrics again.
        keep: keep what was computed in the runs' folders.
        known: metrics of runs by id, as `metrics_of` gives them, that are not read again.

    Returns:
        The table; no row if no run is valid.

    Raises:
        InputError: a table of a run is damaged, or a factor has the name of a metric.
    """
    rows = []
    for run in study.valid_runs:
        metrics = (known or {}).get(run.id) or metrics_of(run, fresh=fresh, keep=keep)
        for name, values in metrics["classes"].items():
            rows.append(_row(study, run, {"class": name}, values))
    return _frame(study, rows, ["class"])


def device_table(study: Study) -> pl.DataFrame:
    """One row per valid run and block device: identity, levels, `device`, and every device metric.

    No row where the study has no block tables (a simulator).

    Raises:
        InputError: as `class_table`.
    """
    rows = []
    for run in study.valid_runs:
        for name, values in metrics_of(run)["devices"].items():
            rows.append(_row(study, run, {"device": name}, values))
    return _frame(study, rows, ["device"])


def run_table(study: Study) -> pl.DataFrame:
    """One row per valid run: identity, levels, and the metrics of the run as a whole.

    Raises:
        InputError: as `class_table`.
    """
    rows = [_row(study, run, {}, metrics_of(run)["run"]) for run in study.valid_runs]
    return _frame(study, rows, [])


def in_plan_order(table: pl.DataFrame, study: Study) -> pl.DataFrame:
    """Sorts rows by class, then by the levels in the plan's order, then by repetition."""
    keys = []
    if "class" in table.columns:
        keys.append(_rank(pl.col("class"), [c.name for c in study.classes]))
    for name, levels in study.factors.items():
        if name in table.columns:
            keys.append(_rank(pl.col(name), levels))
    if "repetition" in table.columns:
        keys.append(pl.col("repetition"))
    return table.sort(keys) if keys else table


def cell_label(levels: dict[str, Level], factors: Iterable[str]) -> str:
    """A cell named by its levels, such as `bfq, ext4, load 0.5`: numbers carry their factor's name."""
    parts = []
    for name in factors:
        level = levels.get(name)
        parts.append(str(level) if isinstance(level, str) else f"{name} {level}")
    return ", ".join(parts) or "all runs"


def _rank(column: pl.Expr, order: list[Level]) -> pl.Expr:
    # Levels of one factor may be of several types; their text is what identifies them in a plan.
    ranks = {str(level): position for position, level in enumerate(order)}
    return column.cast(pl.String).replace_strict(ranks, default=len(ranks), return_dtype=pl.Int64)


def _row(study: Study, run: Run, of: dict[str, str], values: dict[str, object]) -> dict[str, object]:
    identity = {name: getattr(run, "id" if name == "run" else name) for name in IDENTITY}
    for name in study.factors:
        # The testbed is a factor where a study names both, and the same column.
        if name in values or (name in identity and name != "testbed") or name in of:
            raise InputError(
                study.path / "plan.json", f"factor `{name}` has the name of a column", "give it another name"
            )
    levels = {name: run.levels.get(name) for name in study.factors}
    return identity | levels | of | values


def _frame(study: Study, rows: list[dict[str, object]], of: list[str]) -> pl.DataFrame:
    if not rows:
        names = [*IDENTITY, *study.factors, *of]
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    mixed = [
        name
        for name in study.factors
        if len({type(row[name]) for row in rows if row[name] is not None} - {int, float}) > 0
    ]
    # Levels such as `none` and 4 in one factor: as text; numbers stay numbers.
    for row in rows:
        for name in mixed:
            row[name] = None if row[name] is None else str(row[name])
    columns = list(rows[0])
    table = pl.DataFrame({name: [row[name] for row in rows] for name in columns}, strict=False)
    # A metric that no run has (nothing promised, no deadline) is a column of nulls, still of numbers.
    empty = [name for name in columns if table.schema[name] == pl.Null]
    return in_plan_order(table.with_columns(pl.col(empty).cast(pl.Float64)), study)


def per_run(devices: pl.DataFrame, study: Study) -> pl.DataFrame:
    """One row per run: the devices' mean queueing delay and service time, weighted by their requests.

    Args:
        devices: as `device_table` makes it.
        study: the study.
    """
    parts = ["queueing_mean_ms", "service_mean_ms"]
    if devices.is_empty():
        return devices
    keys = list(dict.fromkeys([*IDENTITY, *study.factors]))
    weight = pl.col("requests")
    means = [
        # A part that no device has is null, and not the 0 / 0 of its weights.
        ((pl.col(part) * weight).sum() / weight.filter(pl.col(part).is_not_null()).sum())
        .fill_nan(None)
        .alias(part)
        for part in parts
    ]
    return in_plan_order(devices.group_by(keys, maintain_order=True).agg(*means), study)


def objective_metric(app_class: AppClass) -> tuple[str, float | None]:
    """The response quantile of a class's objective and its limit; the 95th percentile without objective."""
    promise = (app_class.objective or {}).get("response_ms")
    if promise:
        for name, q in QUANTILES.items():
            if abs(q - promise["quantile"]) < 1e-9:
                return f"response_{name}_ms", float(promise["at_most"])
    return "response_p95_ms", None


def comparable(study: Study, table: pl.DataFrame, factor: str, baseline: Level) -> pl.DataFrame:
    """The rows whose cell the plan has with the baseline level too, whether that run is valid or not.

    A simulated cell has no file system, for example: it cannot be compared with ext4, by design.
    """
    others = [name for name in study.varied if name != factor and name in table.columns]
    planned = [*(run.levels for run in study.runs), *study.missing.values()]
    with_baseline = {
        tuple(level_key(levels.get(name)) for name in others)
        for levels in planned
        if level_key(levels.get(factor)) == level_key(baseline)
    }
    kept = [tuple(map(level_key, cell)) in with_baseline for cell in table.select(others).rows()]
    return table.filter(pl.Series(kept, dtype=pl.Boolean)) if others else table


def level_key(level: Level | None) -> float | str:
    """A level as plan and table have it alike: 1, 1.0 and the text "1" are one."""
    try:
        return float(str(level))
    except ValueError:
        return str(level)


def answering(study: Study, table: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """The rows that answer a study's question, and their testbed; empty where the study has one testbed.

    Of a study on both, the runs on devices answer, where there are any: a run in virtual time is no further
    evidence about devices.
    """
    if TESTBED not in study.varied:
        return table, ""
    known = set(table[TESTBED])
    testbed = next((str(name) for name in study.factors[TESTBED] if name in known), "")
    return table.filter(pl.col(TESTBED) == testbed), testbed
