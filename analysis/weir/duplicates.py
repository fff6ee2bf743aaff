"""A/A: how far apart two runs of the same cell are, in studies with `duplicate: true`.

Each block has one cell twice, so the two have the same requests. An effect that is not larger than their
difference also occurs between equal cells.
"""

import math
from dataclasses import dataclass

from weir.derive import metrics_of
from weir.labels import label, number
from weir.load import Study
from weir.statistics import ratio_interval
from weir.study import cell_label, objective_metric


@dataclass(frozen=True)
class Floor:
    """The ratio of a cell's second run in a block to the first.

    Attributes:
        class_name: the class.
        metric: the metric of its objective.
        cell: the cell, by its levels.
        ratio: geometric mean over blocks.
        low: lower end of the 95 % interval; None of one block.
        high: upper end.
        largest: the ratio of the block in which the two differ most, at least 1.
        n: blocks.
    """

    class_name: str
    metric: str
    cell: str
    ratio: float
    low: float | None
    high: float | None
    largest: float
    n: int

    def sentence(self) -> str:
        """The difference between equal cells."""
        ends = ""
        if self.low is not None and self.high is not None:
            ends = f"95 % CI {number(self.low)} to {number(self.high)}, "
        return (
            f"A/A, {self.class_name}, {label(self.metric).text.lower()}: {self.cell}, repeated within a "
            f"block, takes {number(self.ratio)} times as long ({ends}n = {self.n}, up to "
            f"{number(self.largest)} times in a block). Smaller effects are no evidence."
        )


def floors(study: Study) -> list[Floor]:
    """The difference between equal cells, by class; empty without duplicates.

    Blocks in which one of the two is not valid, or a metric is not above 0 or not bounded, are left out.
    """
    firsts = {(run.cell, run.block): run for run in study.valid_runs}
    pairs = [(firsts[key], run) for run in study.duplicates if (key := (run.cell, run.block)) in firsts]
    found = []
    for app_class in study.classes if pairs else ():
        metric, _ = objective_metric(app_class)
        values = [
            tuple(metrics_of(run)["classes"].get(app_class.name, {}).get(metric) for run in pair)
            for pair in pairs
        ]
        kept = [(a, b) for a, b in values if a and b and math.isfinite(a) and math.isfinite(b)]
        if not kept:
            continue
        interval = ratio_interval([b for _, b in kept], [a for a, _ in kept])
        largest = math.exp(max(abs(math.log(b / a)) for a, b in kept))
        cell = cell_label(pairs[0][0].levels, study.varied)
        found.append(
            Floor(
                app_class.name, metric, cell, interval.estimate, interval.low, interval.high, largest,
                len(kept),
            )
        )  # fmt: skip
    return found
