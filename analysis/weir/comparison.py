"""Comparison of two sets of results of one design: two kernels, two commits, two settings.

Cells are matched by their levels. Where the runs of a cell have equal seeds on both sides, they are paired by
repetition; otherwise the two samples are compared by Welch's test. Logarithms are compared, and all changes
are one family: if nothing changed, a "better" or "worse" appears in at most 5 of 100 comparisons of studies.
"""

import csv
import io
import json
import math
from dataclasses import asdict, dataclass, fields, replace
from xml.etree import ElementTree

import numpy as np
import polars as pl
from scipy import special

from weir import json_output
from weir.errors import InputError
from weir.labels import label, number
from weir.load import Level, Run, Study
from weir.mixed_hosts import RULE, mixed_hosts
from weir.multiplicity import ALLOWANCE, Paired, judge
from weir.statistics import CONFIDENCE
from weir.study import cell_label, class_table, objective_metric

#: A ratio between 1 / (1 + EQUIVALENCE) and 1 + EQUIVALENCE is no change that matters.
EQUIVALENCE = 0.05
#: Metrics of which more is better; of all others, less is.
_MORE_IS_BETTER = ("throughput", "requests_per_s", "jain", "within_objective")
VERDICTS = ("worse", "better", "same", "undecided", "not comparable")
FORMATS = ("text", "json", "csv", "markdown", "junit")


@dataclass(frozen=True)
class Change:
    """How a metric of one class in one cell changed from the first results to the second.

    Attributes:
        class_name: the class.
        cell: the levels that both have.
        metric: the metric.
        before: geometric mean of runs of the first results; None without one.
        after: the same of the second.
        ratio: after / before; None without one.
        low: lower end of the simultaneous interval of all changes; None without one.
        high: upper end; None without one.
        p: adjusted for the number of changes; None without an interval.
        n: pairs of runs, or the runs of the smaller side where they are not paired.
        paired: whether runs with equal seeds were paired.
        verdict: one of `VERDICTS`.
        note: why there is no ratio or interval.
    """

    class_name: str
    cell: str
    metric: str
    before: float | None
    after: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    n: int
    paired: bool
    verdict: str
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """The changes from one study's results to another's, and what else differs between their hosts.

    Attributes:
        before: the folder of the first results, or `FOLDER@LABEL`.
        after: the same of the second.
        changes: one for each class, cell and metric.
        hosts: facts of hosts that differ: name, values before and after.
        unmatched: classes and cells that only one of the two has.
        mixed: findings of R-HOST within one of the two.
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    hosts: tuple[tuple[str, str, str], ...]
    unmatched: tuple[str, ...]
    mixed: tuple[str, ...] = ()

    def count(self, verdict: str) -> int:
        """The number of changes with a verdict."""
        return sum(change.verdict == verdict for change in self.changes)


def compare_studies(
    before: Study, after: Study, metrics: tuple[str, ...] = (), equivalence: float = EQUIVALENCE
) -> Comparison:
    """Compares every cell and class that two results have in common.

    Args:
        before: the results to compare with.
        after: the results that may be better or worse.
        metrics: columns of `class_table`; each class's response quantile and throughput if empty.
        equivalence: the relative change that does not matter, above 0.

    Raises:
        InputError: no cell is common to both, a metric is unknown, or `equivalence` is not above 0.
    """
    if not equivalence > 0:
        raise InputError(after.path, f"equivalence bound {equivalence} is not above 0", "give 0.05 for 5 %")
    tables = [class_table(study) for study in (before, after)]
    for name in metrics:
        if name not in tables[0].columns or not tables[0].schema[name].is_numeric():
            raise InputError(before.path, f"has no metric `{name}`", "see the columns of `weir summary`")
    factors = [name for name in before.factors if name in after.factors]
    alone = [name for name in {*before.factors, *after.factors} if name not in factors]
    for study in (before, after):
        for name in alone:
            if len(study.factors.get(name, [])) > 1:
                raise InputError(
                    study.path, f"varies factor `{name}`, the other does not", "compare equal designs"
                )
    sides = [_samples(study, table, factors) for study, table in zip((before, after), tables, strict=True)]
    keys = [key for key in sides[0] if key in sides[1]]
    if not keys:
        raise InputError(
            after.path, f"has no class and cell in common with {before.place}", "compare equal designs"
        )
    found = []
    for key in keys:
        app_class = next(c for c in before.classes if c.name == key[0])
        for metric in metrics or (objective_metric(app_class)[0], "throughput_mb_s"):
            found.append(_change(key, metric, factors, sides[0][key], sides[1][key]))
    unmatched = [
        _name(key, factors) for side, other in (sides, sides[::-1]) for key in side if key not in other
    ]
    mixed = [
        f"{study.place}: {found.sentence()}" for study in (before, after) for found in mixed_hosts(study)
    ]
    return Comparison(
        before.place,
        after.place,
        _judge(found, equivalence),
        _hosts(before, after),
        tuple(unmatched),
        tuple(mixed),
    )


#: A class and its levels, in the order of the factors.
Key = tuple[Level, ...]
_Sample = dict[int, tuple[int | str, dict[str, float | None]]]


def _samples(study: Study, table: pl.DataFrame, factors: list[str]) -> dict[Key, _Sample]:
    """By class and cell: the seed and metrics of each repetition."""
    # The seed of an imported run is unknown: it is paired with no other.
    seeds = {run.id: run.id if run.imported else run.seed for run in study.valid_runs}
    found: dict[Key, _Sample] = {}
    for row in table.iter_rows(named=True):
        key = (row["class"], *(row[name] for name in factors))
        found.setdefault(key, {})[row["repetition"]] = (seeds[row["run"]], row)
    return found


def _name(key: Key, factors: list[str]) -> str:
    return f"{key[0]}: {cell_label(dict(zip(factors, key[1:], strict=True)), factors)}"


@dataclass(frozen=True)
class _Found:
    """A change that is not judged yet: differences of logarithms by repetition, or two samples."""

    change: Change
    gaps: dict[int, float]
    samples: tuple[np.ndarray, np.ndarray] | None


def _change(key: Key, metric: str, factors: list[str], before: _Sample, after: _Sample) -> _Found:
    sides = [
        {r: (seed, values[metric]) for r, (seed, values) in side.items() if values.get(metric) is not None}
        for side in (before, after)
    ]
    common = [r for r in sides[0] if r in sides[1] and sides[0][r][0] == sides[1][r][0]]
    paired = len(common) == min(len(side) for side in sides) > 0
    if paired:
        sides = [{r: side[r] for r in common} for side in sides]
    values = [np.array([value for _, value in side.values()], dtype=float) for side in sides]
    n = min(x.size for x in values)
    levels = cell_label(dict(zip(factors, key[1:], strict=True)), factors)
    blank = Change(
        str(key[0]), levels, metric, None, None, None, None, None, None, n, paired, "not comparable"
    )
    if n == 0:
        return _Found(replace(blank, note="no valid run on one side has this metric"), {}, None)
    endless = [int(np.isinf(x).sum()) for x in values]
    if any(endless):
        sizes = [x.size for x in values]
        note = f"unbounded in {endless[0]} of {sizes[0]} runs before, {endless[1]} of {sizes[1]} after"
        verdict = "not comparable" if all(endless) else "worse" if endless[1] else "better"
        return _Found(replace(blank, note=note, verdict=verdict), {}, None)
    if any((x <= 0).any() for x in values):
        same = all((x == values[0][0]).all() for x in values)
        return _Found(
            replace(blank, note="not above 0 in every run", verdict="same" if same else blank.verdict),
            {},
            None,
        )
    logs = [np.log(x) for x in values]
    means = [float(x.mean()) for x in logs]
    change = replace(
        blank, before=math.exp(means[0]), after=math.exp(means[1]), ratio=math.exp(means[1] - means[0])
    )
    if paired:
        return _Found(change, dict(zip(common, (logs[1] - logs[0]).tolist(), strict=True)), None)
    return _Found(change, {}, (logs[0], logs[1]))


def _judge(found: list[_Found], equivalence: float) -> tuple[Change, ...]:
    family = sum(1 for one in found if one.change.ratio is not None)
    paired = [(i, Paired(one.gaps, i)) for i, one in enumerate(found) if one.gaps]
    level = (1 - CONFIDENCE) * ALLOWANCE / max(family, 1)
    # Welch's comparisons have no common variance: they take their part of the level, and the paired the
    # rest.
    share = len(paired) / family if family else 1.0
    judged = judge([one for _, one in paired], 1 - (1 - CONFIDENCE) * share) if paired else []
    ends = {
        i: (j.low, j.high, None if j.adjusted_p is None else min(j.adjusted_p / share, 1.0))
        for (i, _), j in zip(paired, judged, strict=True)
    }
    changes = []
    for i, one in enumerate(found):
        if one.change.ratio is None:
            changes.append(one.change)
            continue
        low, high, p = ends[i] if i in ends else _welch(one.samples, level, family)
        change = one.change
        if low is None or high is None:
            same = change.ratio is not None and abs(math.log(change.ratio)) < 1e-12
            note = "equal in every run" if same else "one run, or no variance: no interval"
            changes.append(replace(change, verdict="same" if same else "undecided", note=note))
            continue
        change = replace(change, low=math.exp(low), high=math.exp(high), p=p)
        changes.append(replace(change, verdict=_verdict(change, equivalence)))
    return tuple(changes)


def _welch(
    samples: tuple[np.ndarray, np.ndarray] | None, level: float, family: int
) -> tuple[float | None, float | None, float | None]:
    """Welch, "The generalization of Student's problem" (Biometrika 34, 1947), at a Bonferroni level."""
    if samples is None or min(x.size for x in samples) < 2:
        return None, None, None
    parts = [float(x.var(ddof=1)) / x.size for x in samples]
    total = sum(parts)
    if total == 0:
        return None, None, None
    degrees = total**2 / sum(p**2 / (x.size - 1) for p, x in zip(parts, samples, strict=True))
    mean, error = float(samples[1].mean() - samples[0].mean()), math.sqrt(total)
    reach = float(special.stdtrit(degrees, 1 - level / 2)) * error
    p = 2 * float(special.stdtr(degrees, -abs(mean) / error))
    return mean - reach, mean + reach, min(p * family / ALLOWANCE, 1.0)


def _verdict(change: Change, equivalence: float) -> str:
    if change.low is None or change.high is None:
        return "undecided"
    bound = 1 + equivalence
    if 1 / bound < change.low and change.high < bound:
        return "same"
    if change.low <= 1 <= change.high:
        return "undecided"
    more = any(name in change.metric for name in _MORE_IS_BETTER)
    return "better" if (change.low > 1) == more else "worse"


def _hosts(before: Study, after: Study) -> tuple[tuple[str, str, str], ...]:
    """Facts of hosts that differ between the two, with the values of each."""
    facts = [_facts(study.valid_runs) for study in (before, after)]
    names = sorted({*facts[0], *facts[1]})
    rows = [
        (name, *(" | ".join(sorted(side.get(name, {"not recorded"}))) for side in facts)) for name in names
    ]
    return tuple(row for row in rows if row[1] != row[2])


def _facts(runs: tuple[Run, ...]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in runs:
        for name, text in _flat(run.host):
            found.setdefault(name, set()).add(text)
    return found


def _flat(value: object, prefix: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        parts = (_flat(part, f"{prefix}.{name}" if prefix else str(name)) for name, part in value.items())
        return [pair for part in parts for pair in part]
    return [(prefix, value if isinstance(value, str) else json.dumps(value))]


def render(comparison: Comparison, form: str = "text") -> str:
    """The comparison as text of a format of `FORMATS`.

    Raises:
        ValueError: the format is unknown.
    """
    match form:
        case "text":
            return _as_text(comparison)
        case "markdown":
            return _as_markdown(comparison)
        case "json":
            return json_output.document(_finite(asdict(comparison))) + "\n"
        case "csv":
            return _as_csv(comparison)
        case "junit":
            return _as_junit(comparison)
    raise ValueError(f"unknown format {form!r}: {', '.join(FORMATS)}")


def summary(comparison: Comparison) -> str:
    """How many changes have which verdict, in one sentence."""
    counts = ", ".join(f"{n} {name}" for name in VERDICTS if (n := comparison.count(name)))
    return f"{len(comparison.changes)} comparisons: {counts}."


def _columns(change: Change) -> tuple[str, ...]:
    interval = ""
    if change.low is not None and change.high is not None:
        interval = f"{number(change.low)} to {number(change.high)}"
    return (
        change.verdict,
        change.class_name,
        change.cell,
        label(change.metric).axis,
        number(change.before),
        number(change.after),
        number(change.ratio),
        interval,
        str(change.n),
        change.note,
    )


_HEAD = ("verdict", "class", "cell", "metric", "before", "after", "ratio", "95 % CI", "n", "note")


def _in_order(comparison: Comparison) -> list[Change]:
    return sorted(comparison.changes, key=lambda change: VERDICTS.index(change.verdict))


def _after_table(comparison: Comparison) -> list[str]:
    lines = [f"host fact {name}: {before} before, {after} after" for name, before, after in comparison.hosts]
    lines += [f"warning: {finding}" for finding in comparison.mixed]
    return lines + [f"only in one of the two: {name}" for name in comparison.unmatched]


def _as_text(comparison: Comparison) -> str:
    rows = [_HEAD, *(_columns(change) for change in _in_order(comparison))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([*lines, "", *_after_table(comparison), summary(comparison)]) + "\n"


def _as_markdown(comparison: Comparison) -> str:
    rows = [_HEAD, ("---",) * len(_HEAD), *(_columns(change) for change in _in_order(comparison))]
    lines = ["| " + " | ".join(text.replace("|", "\\|") for text in row) + " |" for row in rows]
    notes = [f"* {line}" for line in _after_table(comparison)]
    return "\n".join([summary(comparison), "", *lines, "", *notes]).rstrip() + "\n"


def _as_csv(comparison: Comparison) -> str:
    text = io.StringIO()
    names = [field.name for field in fields(Change)]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(change) for change in comparison.changes)
    return text.getvalue()


def _as_junit(comparison: Comparison) -> str:
    """One test case a change: worse fails, what cannot be compared or decided is skipped."""
    suite = ElementTree.Element(
        "testsuite",
        name=f"{comparison.before} to {comparison.after}",
        tests=str(len(comparison.changes)),
        failures=str(comparison.count("worse")),
        skipped=str(comparison.count("undecided") + comparison.count("not comparable")),
    )
    # Before the test cases, as the schema has it.
    if comparison.mixed:
        properties = ElementTree.SubElement(suite, "properties")
        for finding in comparison.mixed:
            ElementTree.SubElement(properties, "property", name=RULE, value=finding)
    for change in comparison.changes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=change.class_name, name=f"{change.cell}: {change.metric}"
        )
        said = " ".join(text for text in (number(change.ratio), *_columns(change)[7:]) if text)
        if change.verdict == "worse":
            ElementTree.SubElement(case, "failure", message=said)
        elif change.verdict in ("undecided", "not comparable"):
            ElementTree.SubElement(case, "skipped", message=f"{change.verdict}: {said}")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _finite(value: object) -> object:
    """JSON has no infinity: it is written as a word."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return "unbounded" if isinstance(value, float) and math.isinf(value) else value
