"""iocost's quality-of-service parameters for a disk, from the study `isolation-qos`.

Each cell fixes the rate of iocost's virtual time (vrate), as `iocost-qos` of resctl-bench 2.2.5 does, but by
scaling the cost model: the kernel moves the rate by 4 % a period, and only under contention. The solutions
are named as those of resctl-bench's `iocost-tune`. Its load is memory offloading, that of the study is an
urgent client beside a greedy one.
"""

from dataclasses import dataclass

import polars as pl

from papers.isolation.results import BASELINE
from weir.labels import number
from weir.load import Study

#: A rate wastes nothing if requests of both are at least this share of the largest number at any rate.
WHOLE_SHARE = 0.95
#: A rate protects if the slowdown is at most this many times the least one.
PROTECTED = 1.1
#: The kernel's order of the model's parameters (Documentation/admin-guide/cgroup-v2.rst, io.cost.model).
MODEL = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
#: Line of io.cost.qos under which the kernel does not move the rate.
FIXED_RATE = "enable=1 ctrl=user rpct=0 wpct=0 min=100.00 max=100.00"


@dataclass(frozen=True)
class Solution:
    """A rate of the virtual time, and why it was chosen.

    Attributes:
        name: `isolation` or `bandwidth`.
        vrate: in per cent of the cost model.
        slowdown: 99th percentile of the urgent class / its 99th percentile alone.
        utilisation: rate of both / that without a mechanism.
    """

    name: str
    vrate: float
    slowdown: float
    utilisation: float


def by_rate(rows: pl.DataFrame) -> pl.DataFrame:
    """Medians of `results.compared` by `vrate`, sorted; cells without iocost are left out."""
    settings = rows.filter((pl.col("mechanism") != BASELINE) & (pl.col("setting") != ""))
    return (
        settings.with_columns(vrate=pl.col("setting").cast(pl.Float64))
        .group_by("vrate", maintain_order=True)
        .agg(pl.col("slowdown", "utilisation").median(), n=pl.len())
        .drop_nulls()
        .sort("vrate")
    )


def solutions(rows: pl.DataFrame) -> list[Solution]:
    """The highest rate that protects, and the lowest that wastes nothing.

    Args:
        rows: as `results.compared` gives them.
    """
    table = by_rate(rows)
    if table.is_empty():
        return []
    protects = table.filter(pl.col("slowdown") <= PROTECTED * table["slowdown"].min())
    whole = table.filter(pl.col("utilisation") >= WHOLE_SHARE * table["utilisation"].max())
    return [
        Solution(name, *part.select("vrate", "slowdown", "utilisation").row(place))
        for name, part, place in (("isolation", protects, -1), ("bandwidth", whole, 0))
    ]


def models(study: Study) -> dict[str, float]:
    """The median over runs of each parameter of the measured cost model; empty if none was measured."""
    found = [
        {name: cost["model"][name] * 100 / cost.get("scale_percent", 100) for name in MODEL}
        for run in study.valid_runs
        for cost in ((run.observed.get("controllers") or {}).get("cost") or {}).values()
        if cost["calibrated"]
    ]
    if not found:
        return {}
    return {name: float(pl.Series([one[name] for one in found]).median()) for name in MODEL}  # type: ignore[arg-type]


def parameters(model: dict[str, float], chosen: list[Solution]) -> str:
    """Text with the lines for io.cost.model and io.cost.qos, and the field of a study, of each solution.

    `MAJ:MIN` stands for the disk's device number. Without a model or a solution the text says so.
    """
    if not (model and chosen):
        return "# No cell under io.weight was measured: there are no parameters.\n"
    lines = ["# iocost's parameters of a disk, from the study isolation-qos: medians over repetitions."]
    for one in chosen:
        words = " ".join(f"{name}={max(model[name] * one.vrate / 100, 1):.0f}" for name in MODEL)
        lines += [
            f"# {one.name}: {number(one.vrate)} % of the measured model, slowdown {number(one.slowdown)}, "
            f"utilisation {number(one.utilisation)}",
            f"echo 'MAJ:MIN ctrl=user model=linear {words}' >/sys/fs/cgroup/io.cost.model",
            f"echo 'MAJ:MIN {FIXED_RATE}' >/sys/fs/cgroup/io.cost.qos",
            f"# in a study: hold.io_cost: {words}",
        ]
    return "\n".join(lines) + "\n"
