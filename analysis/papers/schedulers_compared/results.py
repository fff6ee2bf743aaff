"""The runs of the common study as tables: by scheduler, load and repetition, and what they come to."""

from typing import Any

import polars as pl

from weir.documents import field, read_document
from weir.errors import InputError
from weir.labels import scheduler_label
from weir.load import RUN_AGAIN, Run, Study
from weir.statistics import Interval, mean_interval

#: The classes.
VIDEO, TEXT, BULK = "video", "text", "bulk"
#: Columns of loads: streams that ask, and text requests in a second.
ASKED, TEXT_PER_S = "asked", "text_per_s"
#: Requests that a text client sends in a second (`workloads/zipf-web.yml`).
PER_CLIENT = 2
#: A load is borne while no larger share of the requests of all streams that ask is late, in % (Shenoy, Goyal
#: and Vin's objective for video).
LATE_PCT = 1.0

#: What each promises video, and how.
MEANS = {
    "fcfs": "nothing",
    "scan-edf": "order by deadline",
    "sfq": "65 % of the time",
    "cello": "65 % of the time",
    "wr-round": "65 % of each round",
    "hds": "65 % of the tokens",
    "edf-background": "contracts",
    "lst": "contracts",
    "deltal": "contracts",
    "linux-mq-deadline": "priority",
    "linux-bfq": "65 % of the sectors",
    "linux-kyber": "nothing",
}
#: Labels of schedulers by the first word of their level.
NAMES = {name: scheduler_label(name) for name in MEANS}
#: What a scheduler with contracts is called if it serves those, too, to whom it has promised nothing.
ALL = "+"
NAMES |= {f"{name}{ALL}": f"{NAMES[name]}, all" for name in ("edf-background", "lst", "deltal")}
MEANS |= {name: "contracts for some" for name in NAMES if name.endswith(ALL)}


def table(study: Study) -> pl.DataFrame:
    """One row per valid run.

    Returns:
        `scheduler` (its first word), `variant` (empty if the study has none), `asked`, `text_per_s`,
        `repetition`; `promised` (streams with a contract, null without admission), `late_pct` (of the
        requests of all streams that ask), `promised_late` (requests of promised streams), `text_p95_ms`,
        `text_mean_ms`, `bulk_mb_s`, `busy` (share of the time).

    Raises:
        InputError: a run's files are absent or damaged.
    """
    return pl.DataFrame([_row(run) for run in study.valid_runs], infer_schema_length=None).sort(
        "scheduler", TEXT_PER_S, ASKED, "repetition"
    )


def _row(run: Run) -> dict[str, Any]:
    path = run.path / "summary.json"
    document = read_document(path, RUN_AGAIN)
    classes = field(document, path, "classes", dict)
    clients = field(document, path, "clients", dict)
    scheduler = str(run.levels["scheduler"])
    counts = {one.name: one.clients for one in run.classes}
    try:
        missed = clients[VIDEO]["missed"]
        promised = admitted(run, scheduler, counts[VIDEO])
        simulator = run.observed["simulator"]
        busy = sum(head["busy_s"] for head in simulator["heads"]) / simulator["simulated_s"]
        return {
            "scheduler": scheduler.split()[0],
            "variant": str(run.levels.get("variant", "")),
            ASKED: counts[VIDEO],
            TEXT_PER_S: counts[TEXT] * PER_CLIENT,
            "repetition": run.repetition,
            "promised": promised,
            "late_pct": 100 * sum(missed) / sum(clients[VIDEO]["deadlines"]),
            "promised_late": None if promised is None else sum(missed[:promised]),
            "text_p95_ms": _ms(classes[TEXT]["response_p95_ms"]),
            "text_mean_ms": _ms(classes[TEXT]["response_mean_ms"]),
            "bulk_mb_s": float(classes[BULK]["throughput_mb_s"]),
            "busy": float(busy),
        }
    except (KeyError, TypeError) as error:
        raise InputError(path, f"lacks {error}", RUN_AGAIN) from error


def _ms(value: float | str | None) -> float:
    """A response time; infinite where it is not bounded by what was observed."""
    return float("inf") if value is None or value == "unbounded" else float(value)


def admitted(run: Run, scheduler: str, asked: int) -> int | None:
    """Number of requested streams with a contract; None without admission control.

    Equal contracts of a cost C in a period T leave T - nC of slack, and are let in while that is no less
    than what is to be spared.
    """
    words = dict(word.split("=", 1) for word in scheduler.split()[1:])
    if "rejected" not in words:
        return None
    path = run.path / "run.json"
    document = read_document(path, RUN_AGAIN)
    (video,) = (one for one in field(document, path, "classes", list) if one["name"] == VIDEO)
    contract = video["simulated"]["contract"]
    ns = {name: round(float(value) * 1e6) for name, value in contract.items()}
    spare_ns = round(float(words.get("least_slack_ms", 0)) * 1e6)
    return min(asked, (ns["period_ms"] - spare_ns) // ns["cost_ms"])


def with_all(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with those of schedulers with contracts once more, as of servers that turn nobody away."""
    kept = rows.filter(pl.col("promised").is_not_null())
    everyone = kept.with_columns(
        (pl.col("scheduler") + ALL).alias("scheduler"), pl.lit(None, pl.Int64).alias("promised")
    )
    return pl.concat([rows, everyone], how="vertical_relaxed")


def refused_leave(rows: pl.DataFrame) -> pl.DataFrame:
    """Results of a server that rejects streams without a contract: a row per requested load.

    A scheduler without admission serves all. One with admission does, whatever more is asked, what it does
    with the streams that it lets in; the requests of the others count as late.
    """
    without = rows.filter(pl.col("promised").is_null())
    most = int(rows["promised"].max() or 0)  # type: ignore[arg-type]
    full = rows.filter(pl.col("promised").is_not_null() & (pl.col(ASKED) <= most))
    kept = rows.filter(pl.col("promised").is_not_null() & (pl.col(ASKED) > most))
    keys = ["scheduler", TEXT_PER_S, "repetition"]
    at_most = full.filter(pl.col(ASKED) == most).drop(ASKED)
    beyond = kept.select(*keys, ASKED).join(at_most, on=keys, how="inner")
    share = most / pl.col(ASKED)
    beyond = beyond.with_columns((share * pl.col("late_pct") + 100 * (1 - share)).alias("late_pct"))
    return pl.concat([without, full, beyond.select(rows.columns)]).sort(
        "scheduler", TEXT_PER_S, ASKED, "repetition"
    )


def breaks_at(rows: pl.DataFrame, scheduler: str, text_per_s: int) -> Interval | None:
    """Number of streams at which more than `LATE_PCT` of all requests are late, over repetitions.

    In each repetition that lies between two loads that were run. The estimate is in the middle; the
    interval reaches from the low end of the t interval of the lower ones to the high end of that of the
    upper ones, so that it is never narrower than the steps between loads. Who turns streams away breaks at
    the last one that is let in.

    Returns:
        None if no load was too much in some repetition.
    """
    rows = refused_leave(rows.filter((pl.col("scheduler") == scheduler) & (pl.col(TEXT_PER_S) == text_per_s)))
    found = []
    for _, part in rows.group_by("repetition", maintain_order=True):
        bracket = _bracket(part.sort(ASKED))
        if bracket is None:
            return None
        found.append(bracket)
    lower, upper = (mean_interval(list(ends)) for ends in zip(*found, strict=True))
    middle = (lower.estimate + upper.estimate) / 2
    if lower.estimate == upper.estimate:
        return Interval(middle, None, None, len(found), "none", note="the last one that is let in")
    low = lower.estimate if lower.low is None else lower.low
    high = upper.estimate if upper.high is None else upper.high
    return Interval(middle, max(low, 0.0), high, len(found), "t of both ends")


def _bracket(part: pl.DataFrame) -> tuple[float, float] | None:
    """The last load that is borne, and the next one, of one repetition sorted by load."""
    late = (part["late_pct"] > LATE_PCT).to_list()
    loads = [float(load) for load in part[ASKED]]
    if True not in late:
        return None
    at = late.index(True)
    before = loads[at - 1] if at else 0.0
    most = part["promised"].max()
    return (before, before) if before == most else (before, loads[at])


def at_load(rows: pl.DataFrame, scheduler: str, text_per_s: int, asked: int, metric: str) -> Interval:
    """A metric at a load that is asked, over repetitions; those who are refused leave."""
    rows = refused_leave(rows.filter((pl.col("scheduler") == scheduler) & (pl.col(TEXT_PER_S) == text_per_s)))
    most = {"late_pct": 100.0, "busy": 1.0}.get(metric, float("inf"))
    return mean_interval(rows.filter(pl.col(ASKED) == asked)[metric].to_list(), bounds=(0.0, most))


def by_capacity(rows: pl.DataFrame, text_per_s: int) -> list[str]:
    """The schedulers, the one that bears most first."""
    most = float(rows[ASKED].max()) + 1  # type: ignore[arg-type]

    def streams(name: str) -> float:
        found = breaks_at(rows, name, text_per_s)
        return most if found is None else found.estimate

    return sorted(rows["scheduler"].unique(), key=lambda name: (-streams(name), list(NAMES).index(name)))
