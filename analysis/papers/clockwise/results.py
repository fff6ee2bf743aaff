"""The studies of chapter 6 as tables: best-effort latency by CELLO disk, load, switches and bursts."""

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from papers.clockwise.streams import RATE_KB_S
from weir.documents import read_document
from weir.load import RUN_AGAIN, Run, Study
from weir.statistics import Interval, ratio_interval

DISKS = tuple(range(8))
#: As figures call the schedulers, by the policy's name.
NAMES = {"edf-background": "EDF", "lst": "LST", "deltal": "deltaL"}
SCHEDULERS = tuple(NAMES.values())
#: The setting of deltaL with the thesis's rules, errata included (docs/reference/schedulers-clockwise.md).
THESIS = "rules=thesis"
#: What is left of a class's name when its disk and its part are taken away: the kind of pair.
KINDS = ("wg", "ro")


def disk(number: int) -> str:
    """The column of a CELLO disk: mean latency in ms."""
    return f"cello{number}"


class Tables(dict[str, pl.DataFrame]):
    """The table of each study of CELLO's day, by name; that of an absent one is `Skipped`."""

    def __init__(self, studies: Mapping[str, Study]) -> None:
        super().__init__((n, table(study)) for n, study in studies.items() if n not in ("crosstalk", "qos"))
        self._studies = studies

    def __missing__(self, name: str) -> pl.DataFrame:
        """Raises Skipped."""
        return table(self._studies[name])


def table(study: Study) -> pl.DataFrame:
    """One row per valid run.

    Columns: `repetition`, `scheduler` (EDF, LST, deltaL), `setting` (the rest of its level, but for
    `THESIS`), `variant`; `wg` and `ro` pairs, their `mb_s` (2^20) and `tasks`; `cello0` to `cello7`, mean
    latencies in ms (null where a disk is not in the study, infinite where a request was never answered);
    `deadlines` and `missed` of the streams; `switches`, `burst_mean`, `burst_sd`; `slack_ms`, the least
    deltaL of the disks (null of others).

    Raises:
        InputError: the summary of a run is absent or damaged.
    """
    return pl.DataFrame([_row(run) for run in study.valid_runs], infer_schema_length=None)


def _row(run: Run) -> dict[str, object]:
    summary = read_document(run.path / "summary.json", RUN_AGAIN)
    classes = summary["classes"]
    policy, *settings = str(run.levels.get("scheduler", "deltal")).split()
    clients = {one.name: one.clients for one in run.classes}
    pairs = {kind: sum(n for name, n in clients.items() if _is_video(name, kind)) for kind in KINDS}
    rate = sum(count * (RATE_KB_S[kind.upper()] + RATE_KB_S["CD"]) for kind, count in pairs.items()) / 1024
    streams = {name: fields for name, fields in classes.items() if fields.get("deadlines")}
    slacks = [head["slack_ms"] for head in summary["heads"] if head.get("slack_ms") is not None]
    row: dict[str, object] = {
        "repetition": run.repetition,
        "scheduler": NAMES.get(policy, policy),
        "setting": " ".join(word for word in settings if word != THESIS),
        "variant": str(run.levels.get("variant", "")),
        **pairs,
        "mb_s": rate,
        "tasks": 2 * sum(pairs.values()),
        "deadlines": sum(int(fields["deadlines"]) for fields in streams.values()),
        "missed": sum(
            round(fields["deadlines"] * fields["deadline_miss_share"]) for fields in streams.values()
        ),
        "switches": summary["server"]["context_switches"],
        "burst_mean": summary["server"]["burst_mean_requests"],
        "burst_sd": summary["server"]["burst_sd_requests"],
        "slack_ms": min(slacks) if slacks else None,
    }
    for at in DISKS:
        row[disk(at)] = _ms(classes[disk(at)]["response_mean_ms"]) if disk(at) in classes else None
    return row


def _is_video(name: str, kind: str) -> bool:
    return name.startswith(kind) and name.endswith("_video")


def _ms(value: object) -> float | None:
    if value is None:
        return None
    return math.inf if isinstance(value, str) else float(value)


def shown_disks(rows: pl.DataFrame) -> list[int]:
    """The CELLO disks that a study has."""
    return [at for at in DISKS if rows[disk(at)].null_count() < rows.height]


def of(rows: pl.DataFrame, scheduler: str, setting: str = "") -> pl.DataFrame:
    """The rows of a scheduler at one setting."""
    return rows.filter((pl.col("scheduler") == scheduler) & (pl.col("setting") == setting))


def between(rows: pl.DataFrame, low_mb_s: float, high_mb_s: float = math.inf) -> pl.DataFrame:
    """The rows of a range of loads, ends included."""
    return rows.filter(pl.col("mb_s").is_between(low_mb_s - 1e-6, high_mb_s + 1e-6))


def log_latency(rows: pl.DataFrame, disks: list[int]) -> dict[tuple[int, float], float]:
    """Mean of the logarithms of the disks' latencies, by repetition and load; nan where one is unbounded."""
    found = {}
    for row in rows.iter_rows(named=True):
        values = np.array([row[disk(at)] for at in disks], dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[row["repetition"], round(row["mb_s"], 6)] = float(np.mean(np.log(values)))
    return {key: value for key, value in found.items() if math.isfinite(value)}


def ratio(above: pl.DataFrame, below: pl.DataFrame, disks: list[int]) -> Interval | None:
    """Geometric mean of latencies by those of others, over disks and common loads, by repetition.

    Returns:
        The ratio with its interval; None where the two have no load in common.
    """
    top, bottom = log_latency(above, disks), log_latency(below, disks)
    common = sorted(top.keys() & bottom.keys())
    repetitions = sorted({repetition for repetition, _ in common})
    if not repetitions:
        return None
    means = [
        np.exp(np.mean([[top[key], bottom[key]] for key in common if key[0] == repetition], axis=0))
        for repetition in repetitions
    ]
    return ratio_interval([m[0] for m in means], [m[1] for m in means])


def means(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Means of a column over repetitions, by load: `mb_s`, `tasks`, the mean, `low` and `high`."""
    return (
        rows.drop_nulls(column)
        .group_by("mb_s", "tasks", maintain_order=True)
        .agg(pl.col(column).mean(), pl.col(column).min().alias("low"), pl.col(column).max().alias("high"))
        .sort("mb_s")
    )
