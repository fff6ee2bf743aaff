"""One line per mechanism: all five desiderata beside each other."""

import polars as pl

from papers.isolation.figures import mechanisms, over_blocks
from papers.isolation.results import BASELINE
from weir.labels import number


def summary(overhead: pl.DataFrame, fairness: pl.DataFrame, priority: pl.DataFrame) -> pl.DataFrame:
    """The table of the page; a cell that was not measured is empty.

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
                "overhead: median (us)": _text(over_blocks(_of(cost, "latency"), "p50_us")),
                "of the rate (%)": _text(_percent(_of(cost, "throughput"), _of(free, "throughput"))),
                "fairness: Jain, weights": _text(over_blocks(_of(shared, "weights"), "jain")),
                "Jain, greedy": _text(over_blocks(_of(shared, "greedy"), "jain")),
                "setting": best["setting"].first() if best.height else "",
                "priority: slowdown p99": _text(over_blocks(best, "slowdown")),
                "utilisation": _text(over_blocks(best, "utilisation")),
                "burst (ms)": _text(over_blocks(best, "burst_ms")),
                "conserved": _text(over_blocks(best, "conserved")),
            }
        )
    return pl.DataFrame(lines)


def _of(rows: pl.DataFrame, setting: str) -> pl.DataFrame:
    return rows.filter(pl.col("setting") == setting)


def _best(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the setting with the least median slowdown."""
    if rows.is_empty() or rows["slowdown"].null_count():
        return rows.clear()
    medians = (
        rows.group_by("setting", maintain_order=True)
        .agg(pl.col("slowdown").median())
        .sort("slowdown", "setting")
    )
    return _of(rows, medians["setting"].first())


def _percent(rows: pl.DataFrame, free: pl.DataFrame) -> float | None:
    """100 * rate / rate without a mechanism."""
    with_it, without = (over_blocks(part, "requests_per_s") for part in (rows, free))
    return 100 * with_it / without if with_it is not None and without else None


def _text(found: float | None) -> str:
    return "" if found is None else number(found)
