"""The studies of the isolation benchmark as tables: a row per valid run.

A variant is called `mechanism/setting`; what comes behind the slash is the load of the study (overhead:
`latency`, `throughput`; fairness: `weights`, `greedy`) or how far the mechanism is turned (priority).
"""

import polars as pl

from papers.isolation import desiderata
from weir.load import Run, Study
from weir.metrics import quantile
from weir.tables import scan_requests

#: The mechanism that all others are compared with: nobody decides anything.
BASELINE = "none"
#: Classes of the study of priority.
URGENT, BATCH = "urgent", "batch"
#: Its cell in which the urgent class has the disk to itself.
ALONE = "alone"
#: What the batch class has by itself is counted in so many ms before the urgent one begins.
LONE_MS = 1000
#: What each class of the study of fairness is promised, by the load.
PROMISED = {"weights": {"a": 4, "b": 2, "c": 1}, "greedy": {"a": 1, "b": 1, "c": 1}}


def parts(variant: str) -> tuple[str, str]:
    """Mechanism and setting of a variant."""
    mechanism, _, setting = variant.partition("/")
    return mechanism, setting


def _identity(run: Run) -> dict[str, object]:
    mechanism, setting = parts(str(run.levels["variant"]))
    return {"mechanism": mechanism, "setting": setting, "block": run.block, "run": run.id}


def _answered(run: Run) -> pl.DataFrame:
    """Requests that were answered: `class`, `completed_ns`, `response_ms`; the warm-up is among them."""
    return (
        scan_requests(run)
        .filter(pl.col("completed_ns").is_not_null() & (pl.col("status") == 0))
        .select(
            "class",
            "intended_ns",
            "completed_ns",
            ((pl.col("completed_ns") - pl.col("intended_ns")) / 1e6).alias("response_ms"),
        )
        .collect()
    )


def _within(rows: pl.DataFrame, window_ns: tuple[int, int]) -> pl.DataFrame:
    return rows.filter(pl.col("completed_ns").is_between(*window_ns, closed="left"))


def overhead(study: Study) -> pl.DataFrame:
    """`p50_us`, `p99_us`, `requests_per_s`, and `cpu_us` of the program that asks, per request."""
    rows = []
    for run in study.valid_runs:
        answered = _answered(run)
        measured = _within(answered, run.window_ns)
        cpu = (run.observed.get("cpu") or {}).get("driver") or {}
        spent_ns = cpu.get("user_ns", 0) + cpu.get("system_ns", 0)
        times = measured["response_ms"].to_numpy() * 1e3
        rows.append(
            _identity(run)
            | {
                "p50_us": quantile(times, 0.5),
                "p99_us": quantile(times, 0.99),
                "requests_per_s": measured.height / run.duration_s,
                "cpu_us": spent_ns / 1e3 / answered.height if answered.height and spent_ns else None,
            }
        )
    return pl.DataFrame(rows)


def fairness(study: Study) -> pl.DataFrame:
    """`jain` by the promised weights, `share_error`, `requests_per_s` of all, and `share_NAME` of each."""
    rows = []
    for run in study.valid_runs:
        promised = PROMISED[parts(str(run.levels["variant"]))[1]]
        counted = dict(_within(_answered(run), run.window_ns)["class"].value_counts().iter_rows())
        rates = [counted.get(name, 0) / run.duration_s for name in promised]
        shares = (
            {f"share_{name}": rate / sum(rates) for name, rate in zip(promised, rates, strict=True)}
            if sum(rates)
            else {}
        )
        rows.append(
            _identity(run)
            | {
                "jain": desiderata.weighted_fairness(rates, list(promised.values())),
                "share_error": desiderata.largest_share_error(rates, list(promised.values())),
                "requests_per_s": sum(rates),
            }
            | shares
        )
    return pl.DataFrame(rows)


def priority(study: Study) -> pl.DataFrame:
    """Response times and cost of the urgent class: a row per run.

    The urgent class begins with its first request: a program takes its time to start. `lone_per_s`: rate of
    the batch class in the `LONE_MS` before; `p99_ms` of all requests of the urgent class; `urgent_per_s` and
    `all_per_s` (of both), in the second half of the time that it asks; `burst_ms`. Runs in which it asked
    nothing are left out.
    """
    rows = []
    for run in study.valid_runs:
        _, end = run.window_ns
        answered = _answered(run)
        urgent = answered.filter(pl.col("class") == URGENT)
        batch = answered.filter(pl.col("class") == BATCH)
        if urgent.is_empty():
            continue
        begins = int(urgent["intended_ns"].min())  # type: ignore[arg-type]
        settled = (begins + (end - begins) // 2, end)
        lone = (begins - LONE_MS * 1_000_000, begins)
        late, both = _within(urgent, settled), _within(answered, settled)
        seconds = (settled[1] - settled[0]) / 1e9
        rates = desiderata.rates_per_s(urgent["completed_ns"].to_numpy(), begins, end)
        rows.append(
            _identity(run)
            | {
                "lone_per_s": _within(batch, lone).height * 1000 / LONE_MS,
                "p99_ms": quantile(urgent["response_ms"].to_numpy(), 0.99),
                "urgent_per_s": late.height / seconds,
                "all_per_s": both.height / seconds,
                "burst_ms": desiderata.burst_response_ms(rates),
            }
        )
    return pl.DataFrame(rows)


def compared(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of `priority` beside the baselines: the medians over their repetitions.

    `slowdown`: p99 of the urgent class / its p99 alone; `utilisation`: rate of both / that without a
    mechanism; `conserved`: the batch class's lone rate / that without a mechanism. Not paired by block: the
    device is a model, which is as fast in each, and what a host's pause does to one repetition of a baseline
    would be in all that are compared with it. Empty without both baselines.
    """
    alone, free = (rows.filter(pl.col("mechanism") == name) for name in (ALONE, BASELINE))
    if alone.is_empty() or free.is_empty():
        return rows.clear().with_columns(
            pl.lit(None, pl.Float64).alias(name) for name in ("slowdown", "utilisation", "conserved")
        )
    alone_ms, free_per_s, lone_per_s = (
        float(part[column].median())  # type: ignore[arg-type]
        for part, column in ((alone, "p99_ms"), (free, "all_per_s"), (free, "lone_per_s"))
    )
    found = [
        row
        | {
            "slowdown": row["p99_ms"] / alone_ms if row["p99_ms"] else None,
            "utilisation": row["all_per_s"] / free_per_s,
            "conserved": desiderata.conserved(row["lone_per_s"], lone_per_s),
        }
        for row in rows.filter(pl.col("mechanism") != ALONE).iter_rows(named=True)
    ]
    return pl.DataFrame(found)


def skipped(studies: dict[str, Study]) -> pl.DataFrame:
    """Mechanisms that the host does not have, with the reason."""
    found = {
        (name, str(run.levels.get("variant", "")), run.validity.reasons)
        for name, study in studies.items()
        for run in study.runs_with("skipped")
    }
    return pl.DataFrame(sorted(found), schema=["study", "mechanism", "why"], orient="row")
