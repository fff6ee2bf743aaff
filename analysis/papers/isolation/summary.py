"""One line per mechanism: all desiderata beside each other; and one per mechanism and number of tenants."""

import polars as pl

from papers.isolation.figures import mechanisms
from papers.isolation.results import (
    BASELINE,
    OF_TENANTS,
    of_tenants,
    over_repetitions,
    rate_percent,
    slowdowns,
)
from weir.labels import label, with_interval
from weir.load import Study
from weir.precision import decide_now
from weir.statistics import Interval


def summary(overhead: pl.DataFrame, fairness: pl.DataFrame, priority: pl.DataFrame) -> pl.DataFrame:
    """The table of the page: means over repetitions, with 95 % intervals; empty where nothing was measured.

    Of priority the setting of a mechanism is shown with which the urgent class is slowed down least.

    Args:
        overhead: as `results.overhead` gives it.
        fairness: as `results.fairness` gives it.
        priority: as `results.compared` gives it.
    """
    names = mechanisms(pl.concat([part.select("mechanism") for part in (overhead, fairness, priority)]))
    free = overhead.filter(pl.col("mechanism") == BASELINE)
    lines = []
    for name in names:
        cost, shared = (part.filter(pl.col("mechanism") == name) for part in (overhead, fairness))
        best = _best(priority.filter(pl.col("mechanism") == name))
        lines.append(
            {
                "mechanism": name,
                "overhead: median (us)": _with_interval(over_repetitions(_of(cost, "latency"), "p50_us")),
                "of the rate (%)": _with_interval(
                    rate_percent(_of(cost, "throughput"), _of(free, "throughput"))
                ),
                "fairness: Jain, weights": _with_interval(over_repetitions(_of(shared, "weights"), "jain")),
                "Jain, greedy": _with_interval(over_repetitions(_of(shared, "greedy"), "jain")),
                "setting": best["setting"].first() if best.height else "",
                "priority: slowdown p99": _with_interval(over_repetitions(best, "slowdown")),
                "utilisation": _with_interval(over_repetitions(best, "utilisation")),
                "burst (ms)": _with_interval(over_repetitions(best, "burst_ms")),
                "conserved": _with_interval(over_repetitions(best, "conserved")),
            }
        )
    return pl.DataFrame(lines)


def tenants(rows: pl.DataFrame) -> pl.DataFrame:
    """The table of tenants: each column of `results.tenants` with its interval, and the repetitions."""
    lines = []
    for name in mechanisms(rows):
        for many in sorted(rows["tenants"].unique()):
            cells = {column: of_tenants(rows, column, name, many) for column in OF_TENANTS}
            found = {OF_TENANTS[column]: _with_interval(cell) for column, cell in cells.items()}
            n = rows.filter((pl.col("mechanism") == name) & (pl.col("tenants") == many)).height
            lines.append({"mechanism": name, "tenants": many, "n": n} | found)
    return pl.DataFrame(lines)


def writeback(rows: pl.DataFrame) -> pl.DataFrame:
    """The table of writeback: ratios of the reader beside a writer to the reader alone, by scheduler."""
    columns = {"p50_ms": "median", "p99_ms": "99th percentile", "requests_per_s": "requests/s"}
    ratios = {title: slowdowns(rows, column) for column, title in columns.items()}
    names = rows["scheduler"].unique(maintain_order=True)
    written = rows.filter(pl.col("writers") > 0)
    return pl.DataFrame(
        [
            {"scheduler": name, "n": next((x[name].n for x in ratios.values() if name in x), 0)}
            | {f"{title}, beside / alone": _with_interval(x.get(name)) for title, x in ratios.items()}
            | {
                "written to the cache (MB/s)": _with_interval(
                    over_repetitions(written.filter(pl.col("scheduler") == name), "written_mb_s")
                )
            }
            for name in names
        ]
    )


def precision(studies: dict[str, Study]) -> pl.DataFrame:
    """How well the means are known that decide when each cell stops: a row per study with `precision`.

    The intervals hold at all decisions, so they are wider than those of the other tables.
    """
    lines = []
    for name, study in studies.items():
        if study.precision is None:
            continue
        means = decide_now(study).intervals
        repetitions = sorted(one.n for one in means)
        wide = [
            f"{one.name.rpartition(': ')[2]} {one.note or with_interval(one.estimate, one.low, one.high)}"
            for one in means
            if not one.reached
        ]
        column = label(str(study.precision.get("metric"))).text
        lines.append(
            {
                "study": name,
                "mean of": f"{column} ({study.precision.get('class', 'each class')})",
                "repetitions": f"{repetitions[0]} to {repetitions[-1]}" if repetitions else "",
                "known to": f"{study.precision['width']:.0%}",
                "means": len(means),
                "precise enough": len(means) - len(wide),
                "not precise enough": "; ".join(wide),
            }
        )
    return pl.DataFrame(lines)


def _with_interval(found: Interval | None) -> str:
    return "" if found is None else with_interval(found.estimate, found.low, found.high, found.note)


def _of(rows: pl.DataFrame, setting: str) -> pl.DataFrame:
    return rows.filter(pl.col("setting") == setting)


def _best(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the setting with the least slowdown."""
    found = {name: over_repetitions(_of(rows, name), "slowdown") for name in sorted(set(rows["setting"]))}
    estimates = {name: one.estimate for name, one in found.items() if one is not None}
    if rows.is_empty() or len(estimates) < len(found):
        return rows.clear()
    return _of(rows, min(estimates, key=lambda name: estimates[name]))
