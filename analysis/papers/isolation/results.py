"""The studies of the isolation benchmark as tables: a row per valid run.

A variant is called `mechanism/setting`; what comes behind the slash is the load of the study (overhead:
`latency`, `throughput`; fairness: `weights`, `greedy`) or how far the mechanism is turned (priority).
"""

import math

import polars as pl

from papers.isolation import desiderata
from weir.load import Run, Study
from weir.metrics import quantile
from weir.statistics import Interval, Method, mean_interval, ratio_interval
from weir.tables import scan_requests

#: The mechanism that all others are compared with: nobody decides anything.
BASELINE = "none"
#: Classes of the study of priority.
URGENT, BATCH = "urgent", "batch"
#: Its cell in which the urgent class has the disk to itself.
ALONE = "alone"
#: What the batch class has by itself is counted in so many ms before the urgent one begins.
LONE_MS = 1000
#: Classes of the study of tenants.
TENANT, NEWCOMER = "tenant", "newcomer"
#: Columns of `tenants`: what they are called.
OF_TENANTS = {
    "jain": "Jain's index of the tenants",
    "p99_ms": "99th percentile of the tenants (ms)",
    "worst": "99th percentile of the worst tenant / of all",
    "delta_ms": "delay to the fair share (ms)",
    "requests_per_s": "requests of all (1/s)",
}
#: Columns whose means over repetitions are arithmetic; those of times, rates and ratios are geometric.
ARITHMETIC = {"jain", "share_error", "delta_ms", "burst_ms"}
#: Those of them that are at most 1.
SHARES = {"jain", "share_error"}
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
    """Requests that were answered: `class`, `client`, times, `response_ms`; the warm-up is among them."""
    return (
        scan_requests(run)
        .filter(pl.col("completed_ns").is_not_null() & (pl.col("status") == 0))
        .select(
            "class",
            "client",
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


def tenants(study: Study) -> pl.DataFrame:
    """Tenants with a group each, and one that begins beside them: a row per run.

    `tenants`: their number without the newcomer; `jain` of their rates in the measured time; `p99_ms` of
    their requests; `worst`: the largest 99th percentile of a tenant / `p99_ms`, None if a tenant has fewer
    than 100 requests; `delta_ms`: `share_delay_ms` of the newcomer, whose fair share is the rate of all from
    its first request on / the number of clients then; `requests_per_s` of all from then on. Runs in which it
    asked nothing are left out.
    """
    rows = []
    for run in study.valid_runs:
        _, end = run.window_ns
        answered = _answered(run)
        newcomer = answered.filter(pl.col("class") == NEWCOMER)
        number = next(one.clients for one in run.classes if one.name == TENANT)
        if newcomer.is_empty():
            continue
        begins = int(newcomer["intended_ns"].min())  # type: ignore[arg-type]
        own = _within(answered.filter(pl.col("class") == TENANT), run.window_ns)
        each = [part["response_ms"].to_numpy() for part in own.partition_by("client", maintain_order=True)]
        together = _within(answered, (begins, end)).height / ((end - begins) / 1e9)
        # A tenant of which nothing was answered has had nothing.
        rates = [*map(len, each), *[0] * (number - len(each))]
        p99_ms, worst_ms = quantile(own["response_ms"].to_numpy(), 0.99), [quantile(x, 0.99) for x in each]
        rows.append(
            _identity(run)
            | {
                "tenants": number,
                "jain": desiderata.weighted_fairness(rates, [1] * number),
                "p99_ms": p99_ms,
                "worst": max(worst_ms) / p99_ms if p99_ms and None not in worst_ms else None,
                "delta_ms": desiderata.share_delay_ms(
                    newcomer["completed_ns"].to_numpy(), begins, end, together / (number + 1)
                ),
                "requests_per_s": together,
            }
        )
    return pl.DataFrame(rows)


def over_repetitions(rows: pl.DataFrame, column: str) -> Interval | None:
    """Mean and interval of a column over the repetitions of one cell; None where one has no value."""
    values = rows[column] if column in rows.columns else pl.Series([], dtype=pl.Float64)
    if values.is_empty() or values.null_count():
        return None
    x = values.cast(pl.Float64).to_numpy()
    method: Method = "t" if column in ARITHMETIC or (x <= 0).any() else "log-t"
    return mean_interval(x, method, bounds=(0.0, 1.0 if column in SHARES else math.inf))


def of_tenants(rows: pl.DataFrame, column: str, mechanism: str, tenants: int) -> Interval | None:
    """`over_repetitions` of one cell of `tenants`."""
    cell = rows.filter((pl.col("mechanism") == mechanism) & (pl.col("tenants") == tenants))
    return over_repetitions(cell, column)


def rate_percent(rows: pl.DataFrame, free: pl.DataFrame) -> Interval | None:
    """100 * requests/s of a cell / requests/s without a mechanism, paired by block."""
    rows, free = (part.unique("block", keep="first", maintain_order=True) for part in (rows, free))
    both = rows.join(free, on="block", suffix="_free", maintain_order="left")
    if both.is_empty() or (both["requests_per_s_free"] <= 0).any():
        return None
    return ratio_interval(100 * both["requests_per_s"], both["requests_per_s_free"])


def writeback(study: Study) -> pl.DataFrame:
    """A reader through the page cache, alone or beside a writer: a row per run.

    `scheduler`, `writers` (clients of the writer), `block`, `p50_ms`, `p99_ms` and `requests_per_s` of the
    reader, and `written_mb_s`: what the writer's requests put into the page cache, not what reached the disk.
    """
    rows = []
    for run in study.valid_runs:
        measured = _within(_answered(run), run.window_ns)
        reader = measured.filter(pl.col("class") == "reader")
        times = reader["response_ms"].to_numpy()
        writes = measured.height - reader.height
        rows.append(
            {
                "scheduler": str(run.levels["scheduler"]),
                "writers": sum(one.clients for one in run.classes if one.name == "writer"),
                "block": run.block,
                "p50_ms": quantile(times, 0.5),
                "p99_ms": quantile(times, 0.99),
                "requests_per_s": reader.height / run.duration_s,
                "written_mb_s": writes * 4096 / 1e6 / run.duration_s,
            }
        )
    return pl.DataFrame(rows)


def slowdowns(rows: pl.DataFrame, column: str) -> dict[str, Interval]:
    """By scheduler, the ratio of a column of `writeback` beside the writer to that alone, paired by block."""
    found = {}
    for (name,), part in rows.drop_nulls(column).group_by("scheduler", maintain_order=True):
        alone, beside = (
            part.filter((pl.col("writers") > 0) == has).unique("block", keep="first", maintain_order=True)
            for has in (False, True)
        )
        both = beside.join(alone, on="block", suffix="_alone", maintain_order="left")
        if both.height:
            found[str(name)] = ratio_interval(both[column], both[f"{column}_alone"])
    return found


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
