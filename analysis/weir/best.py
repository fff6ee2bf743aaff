"""The best level of a factor: which one has the shortest response times, and is it settled?

The level is chosen by the results, so it is compared with the others in a family of all pairs of levels: a
false "settled" appears in at most 5 of 100 studies, whichever level is chosen.
"""

import math
from dataclasses import dataclass

import polars as pl

from weir.answers import Answer, as_judged, at_last_look, compared, main_factor
from weir.errors import InputError
from weir.labels import label
from weir.load import Level, Study
from weir.multiplicity import Paired, judge
from weir.study import objective_metric


@dataclass(frozen=True)
class Best:
    """The level with the smallest response time of a class, and how each other level compares with it.

    Attributes:
        class_name: the class.
        metric: the metric.
        factor: the factor.
        level: the level; None if no pair of levels can be compared.
        others: the other levels relative to it, the nearest first.
    """

    class_name: str
    metric: str
    factor: str
    level: str | None
    others: tuple[Answer, ...]

    @property
    def settled(self) -> bool:
        """Whether every other level is settled to take longer."""
        return bool(self.others) and all(_takes_longer(one) for one in self.others)

    def sentence(self) -> str:
        """Which level is best, and against which others that is settled."""
        what = f"{self.class_name}, {label(self.metric).text.lower()}"
        if self.level is None:
            return f"{what}: no two levels of {self.factor} can be compared."
        begin = f"{what}: shortest at {self.factor} {self.level}, of {len(self.others) + 1} levels"
        if self.settled and len(self.others) > 1:
            return f"{begin}; settled against all others."
        kinds: dict[str, list[str]] = {"settled against": [], "not settled against": [], "unbounded at": []}
        for one in self.others:
            unbounded = one.ratio is not None and math.isinf(one.ratio)
            kind = "unbounded at" if unbounded else "settled against"
            kinds[kind if unbounded or _takes_longer(one) else "not settled against"].append(str(one.level))
        return (
            "; ".join([begin, *(f"{kind} {', '.join(names)}" for kind, names in kinds.items() if names)])
            + "."
        )

    def sentences(self) -> list[str]:
        """`sentence`, then the sentence of each comparison."""
        return [self.sentence(), *(one.sentence() for one in self.others)]


def best(
    study: Study, table: pl.DataFrame, class_name: str, metric: str | None = None, factor: str | None = None
) -> Best:
    """The best level of a factor for one class.

    Args:
        study: the study.
        table: one row per valid run and class.
        class_name: the class.
        metric: a metric of response time; that of the class's objective if None.
        factor: the factor; `weir.answers.main_factor` if None.

    Raises:
        InputError: the study has no such class or factor, or the metric is no response time.
    """
    path = study.path / "plan.json"
    app_class = next((one for one in study.classes if one.name == class_name), None)
    if app_class is None:
        known = ", ".join(one.name for one in study.classes)
        raise InputError(path, f"has no class `{class_name}`", f"classes: {known}")
    metric = metric or objective_metric(app_class)[0]
    if metric not in table.columns or not (metric.startswith("response_") and metric.endswith("_ms")):
        raise InputError(path, f"`{metric}` is no metric of response time", "for example: response_p99_ms")
    factor = factor or main_factor(study)
    if factor is None or factor not in study.varied:
        known = ", ".join(study.varied) or "none"
        raise InputError(path, f"does not vary factor `{factor}`", f"varied factors: {known}")
    table = table.filter(pl.col("class") == class_name)
    levels = [str(level) for level in study.varied[factor]]
    found = {level: compared(study, table, factor, metric, level) for level in levels}
    chosen = max(levels, key=lambda level: _lead(found[level]))
    if all(answer.ratio is None for answer, _ in found[chosen]):
        return Best(class_name, metric, factor, None, ())
    others = sorted(
        _judged(study, found, chosen), key=lambda one: math.inf if one.ratio is None else one.ratio
    )
    return Best(class_name, metric, factor, chosen, tuple(others))


def _takes_longer(answer: Answer) -> bool:
    """Whether a level is settled to take longer than the best one."""
    return answer.settled and answer.ratio is not None and answer.ratio > 1


def _lead(of_level: list[tuple[Answer, dict[int, float]]]) -> float:
    """The logarithm of the smallest ratio of another level to this one: below 0 unless this one is best."""
    ratios = [answer.ratio for answer, _ in of_level if answer.ratio is not None]
    logs = [math.log(ratio) if ratio > 0 else -math.inf for ratio in ratios if not math.isnan(ratio)]
    return min(logs, default=-math.inf)


def _judged(
    study: Study, found: dict[Level, list[tuple[Answer, dict[int, float]]]], chosen: Level
) -> list[Answer]:
    """The comparisons with the chosen level, judged among all pairs of levels."""
    pairs, family = [], []
    # The chosen level is the first baseline: its pairs have all other levels.
    done = set()
    for baseline in sorted(found, key=lambda level: level != chosen):
        done.add(baseline)
        for answer, gaps in found[baseline]:
            if answer.level not in done:
                pairs.append((answer, gaps))
                family += [Paired(gaps, baseline)] if gaps else []
    of_chosen = [pair for pair in pairs if pair[0].baseline == chosen]
    if study.precision is not None:
        return [at_last_look(study, one, gaps, pairs) if gaps else one for one, gaps in of_chosen]
    judged = iter(judge(family, all_pairs=True) if family else [])
    return [as_judged(one, gaps, next(judged), len(family)) if gaps else one for one, gaps in of_chosen]
