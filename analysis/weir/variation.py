"""Allocation of variation: how much of a metric's variation each factor and interaction explains.

The model is linear in the logarithms of the metric where all values are above 0, with blocks as an additive
effect: Jain, "The Art of Computer Systems Performance Analysis" (1991), chapters 18, 21 and 22. A term's
sum of squares is that by which the residual falls when the term joins all others that do not contain it
(type II); with as many valid runs in every cell these are Jain's sums.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from weir.labels import label, number
from weir.load import Study
from weir.study import answering, objective_metric
from weir.support import caution

Array = NDArray[np.float64]
#: Factors of one interaction. More are part of the residual.
ORDER = 2
BLOCK = "block"
RESIDUAL = "residual"
#: The level at which a term is called significant.
LEVEL = 0.05


@dataclass(frozen=True)
class Term:
    """A factor, an interaction, the blocks, or the residual.

    Attributes:
        factors: names of the factors; `("block",)` or `("residual",)` for the other two.
        degrees: degrees of freedom; 0 where other terms explain all that it could.
        squares: its sum of squares.
        share: `squares` / total sum of squares; the shares of all terms are 1 in all only if every cell has
            as many valid runs.
        p: probability of a term at least this large if it had no effect (F test against the residual); None
            without residual degrees of freedom, and of the residual.
    """

    factors: tuple[str, ...]
    degrees: int
    squares: float
    share: float
    p: float | None

    @property
    def name(self) -> str:
        """The factors, joined."""
        return " x ".join(self.factors)


@dataclass(frozen=True)
class MainEffect:
    """A level of a factor relative to the mean of the factor's levels.

    Attributes:
        factor: the factor.
        level: the level, as text.
        effect: ratio to the geometric mean of the levels; on the linear scale the difference from their mean.
        low: lower end of the 95 % interval; None without residual degrees of freedom.
        high: upper end.
    """

    factor: str
    level: str
    effect: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Variation:
    """The variation of one metric of one class.

    Attributes:
        class_name: the class.
        metric: the metric.
        is_log: whether logarithms were taken.
        n: runs with a finite value.
        left_out: runs with an infinite value.
        is_balanced: whether every cell has as many runs.
        terms: factors, interactions, blocks and residual.
        effects: of each level of each factor.
        caution: what a reader must know about the metric; empty if nothing.
    """

    class_name: str
    metric: str
    is_log: bool
    n: int
    left_out: int
    is_balanced: bool
    terms: tuple[Term, ...]
    effects: tuple[MainEffect, ...]
    caution: str = ""

    def sentence(self) -> str:
        """The terms with the largest shares, and what is left to the residual."""
        named = [term for term in self.terms if term.factors not in ((BLOCK,), (RESIDUAL,))]
        largest = sorted(named, key=lambda term: -term.share)[:3]
        parts = [f"{_name(term)} {term.share:.0%}" for term in largest if term.degrees]
        rest = self.terms[-1].share
        scale = "log " if self.is_log else ""
        what = f"{self.class_name}, {scale}{label(self.metric).text.lower()}"
        return f"{what}: variation explained by {', '.join(parts)}; residual {rest:.0%}."

    def table(self) -> pl.DataFrame:
        """One row per term, as text."""
        return pl.DataFrame(
            {
                "term": [_name(term) for term in self.terms],
                "degrees of freedom": [term.degrees for term in self.terms],
                "share of variation": [
                    "n/a" if not term.degrees else f"{term.share:.1%}" for term in self.terms
                ],
                "p": ["" if term.p is None else number(term.p) for term in self.terms],
            }
        )

    def effects_table(self) -> pl.DataFrame:
        """One row per level of each factor, as text."""
        shown = "ratio to the mean of levels" if self.is_log else "difference from the mean of levels"
        texts = [
            number(one.effect)
            if one.low is None or one.high is None
            else f"{number(one.effect)} [{number(one.low)}, {number(one.high)}]"
            for one in self.effects
        ]
        return pl.DataFrame(
            {
                "factor": [one.factor for one in self.effects],
                "level": [one.level for one in self.effects],
                shown: texts,
            }
        )

    def document(self) -> dict[str, object]:
        """The same as JSON."""
        return asdict(self) | {"scale": "log" if self.is_log else "linear", "notes": self.notes()}

    def notes(self) -> list[str]:
        """What a reader must know beside the tables."""
        notes = [self.caution] if self.caution else []
        if self.left_out:
            notes.append(f"{self.left_out} runs with an unbounded value are left out.")
        if not self.is_balanced:
            notes.append("Cells differ in the number of valid runs: shares do not add up to 100 %.")
        if confounded := [_name(term) for term in self.terms if not term.degrees and term != self.terms[-1]]:
            notes.append(f"Not separable from other terms in this design: {', '.join(confounded)}.")
        if not self.terms[-1].degrees:
            notes.append("No degrees of freedom are left for the residual: no tests and no intervals.")
        return notes


def _name(term: Term) -> str:
    return "blocks" if term.factors == (BLOCK,) else term.name


def variation(
    study: Study, table: pl.DataFrame, class_name: str, metric: str | None = None, order: int = ORDER
) -> Variation | None:
    """The allocation of variation of one metric of one class, over the runs of `weir.study.answering`.

    Args:
        study: the study.
        table: one row per valid run and class.
        class_name: the class.
        metric: the column; that of the class's objective if None.
        order: factors of the largest interactions.

    Returns:
        None where fewer than two runs have a finite value, no factor has two levels among them, or all values
        are equal.
    """
    app_class = next(one for one in study.classes if one.name == class_name)
    metric = metric or objective_metric(app_class)[0]
    rows, _ = answering(study, table.filter(pl.col("class") == class_name).drop_nulls(metric))
    finite = rows.filter(pl.col(metric).is_finite())
    factors = [name for name in study.varied if finite[name].n_unique() > 1]
    if finite.height < 2 or not factors or finite[metric].n_unique() < 2:
        return None
    is_log = bool((finite[metric] > 0).all())
    values = finite[metric].to_numpy()
    y = np.log(values) if is_log else values.astype(float)
    levels = {name: _levels(study, finite, name) for name in factors}
    codes = {name: _codes(finite[name], known) for name, known in levels.items()}
    has_blocks = finite[BLOCK].n_unique() > 1
    if has_blocks:
        codes[BLOCK] = _codes(finite[BLOCK], [str(block) for block in finite[BLOCK].unique().sort()])
    terms = _terms(factors, min(order, len(factors)), has_blocks=has_blocks)
    counts = finite.group_by(factors).len()["len"]
    cells = math.prod(len(known) for known in levels.values())
    found = _allocate(y, codes, terms)
    return Variation(
        class_name,
        metric,
        is_log,
        finite.height,
        rows.height - finite.height,
        counts.n_unique() == 1 and len(counts) == cells,
        found,
        _main_effects(y, codes, terms, levels, is_log=is_log) if all(t.degrees for t in found[:-1]) else (),
        caution(rows, metric, factors),
    )


def variations(study: Study, table: pl.DataFrame) -> list[Variation]:
    """The allocation of variation of each class, by the metric of its objective."""
    found = (variation(study, table, one.name) for one in study.classes) if table.height else ()
    return [one for one in found if one is not None]


def _levels(study: Study, rows: pl.DataFrame, name: str) -> list[str]:
    """The levels that rows have, in the plan's order."""
    there = set(rows[name].cast(pl.String))
    planned = [str(level) for level in study.factors[name]]
    kept = [level for level in planned if level in there]
    # A number is written otherwise in a column of numbers.
    return kept if len(kept) == len(there) else sorted(there)


def _codes(column: pl.Series, levels: Sequence[str]) -> Array:
    """Sum contrasts: a column for each level but the last, which is -1 in all of them."""
    places = column.cast(pl.String).replace_strict({level: i for i, level in enumerate(levels)})
    contrasts = np.vstack([np.eye(len(levels) - 1), -np.ones(len(levels) - 1)])
    return contrasts[places.cast(pl.Int64).to_numpy()]


def _terms(factors: Sequence[str], order: int, *, has_blocks: bool) -> list[tuple[str, ...]]:
    found = [names for size in range(1, order + 1) for names in combinations(factors, size)]
    return [*found, (BLOCK,)] if has_blocks else found


def _columns(codes: dict[str, Array], terms: Sequence[tuple[str, ...]], n: int) -> list[Array]:
    """The columns of the constant and of each term."""
    parts = [np.ones((n, 1))]
    for term in terms:
        part = np.ones((n, 1))
        for name in term:
            part = (part[:, :, None] * codes[name][:, None, :]).reshape(n, -1)
        parts.append(part)
    return parts


def _residual(y: Array, columns: Array) -> tuple[float, int]:
    """Sum of squares that columns leave, and their rank."""
    solution, _, rank, _ = np.linalg.lstsq(columns, y, rcond=None)
    return float(np.sum((y - columns @ solution) ** 2)), int(rank)


def _allocate(y: Array, codes: dict[str, Array], terms: list[tuple[str, ...]]) -> tuple[Term, ...]:
    total = float(np.sum((y - y.mean()) ** 2))
    parts = _columns(codes, terms, y.size)
    # Projections of all columns on an orthonormal basis of them: as few rows as columns, the same residuals.
    reduced = np.linalg.qr(np.hstack([*parts, y[:, None]]), mode="r")
    ends = np.cumsum([part.shape[1] for part in parts])
    constant, *own_columns = np.split(reduced[:, :-1], ends[:-1], axis=1)
    column = dict(zip(terms, own_columns, strict=True))

    def residual(chosen: Sequence[tuple[str, ...]]) -> tuple[float, int]:
        return _residual(reduced[:, -1], np.hstack([constant, *(column[term] for term in chosen)]))

    rest, rank = residual(terms)
    # What rounding leaves of an exact fit is no variation.
    degrees = y.size - rank
    rest = 0.0 if degrees == 0 or rest < 1e-12 * total else rest
    found = []
    for term in terms:
        others = [other for other in terms if other != term and not set(term) <= set(other)]
        without, fewer = residual(others)
        with_it, more = residual([*others, term])
        squares, own = max(without - with_it, 0.0), more - fewer
        p = None
        if own and degrees:
            p = float(special.fdtrc(own, degrees, squares / own / (rest / degrees))) if rest else 0.0
        found.append(Term(term, own, squares, squares / total, p))
    return (*found, Term((RESIDUAL,), degrees, rest, rest / total, None))


def _main_effects(
    y: Array,
    codes: dict[str, Array],
    terms: list[tuple[str, ...]],
    levels: dict[str, list[str]],
    *,
    is_log: bool,
) -> tuple[MainEffect, ...]:
    columns = np.hstack(_columns(codes, terms, y.size))
    solution, _, rank, _ = np.linalg.lstsq(columns, y, rcond=None)
    degrees = y.size - int(rank)
    inverse = np.linalg.pinv(columns.T @ columns)
    variance = float(np.sum((y - columns @ solution) ** 2)) / degrees if degrees else 0.0
    width = float(special.stdtrit(degrees, 0.5 + (1 - LEVEL) / 2)) if degrees else 0.0
    found, place = [], 1
    for name, known in levels.items():
        own = slice(place, place + len(known) - 1)
        weights = np.vstack([np.eye(len(known) - 1), -np.ones(len(known) - 1)])
        deviations = np.sqrt(variance * np.einsum("ij,jk,ik->i", weights, inverse[own, own], weights))
        for level, mean, deviation in zip(known, weights @ solution[own], deviations, strict=True):
            ends = (mean, mean - width * deviation, mean + width * deviation)
            effect, low, high = (float(np.exp(end)) if is_log else float(end) for end in ends)
            found.append(MainEffect(name, level, effect, *((low, high) if degrees else (None, None))))
        place += len(known) - 1
    return tuple(found)
