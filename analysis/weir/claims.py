"""Claims: a paper's figure held against ours, by fixed rules.

The rules:

- A number is met if ours, the mean over seeds, is within the band: 15 %, unless the claim's own band is given
  with its reason.
- `reproduced`: all numbers are met, and the shape holds.
- `shape only`: the shape holds, but a number is missed, or the paper prints none to meet (its figures were
  images; a curve that is judged by eye is no number).
- `not reproduced`: neither; the note says why.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from weir.documents import write_text
from weir.labels import number
from weir.statistics import Interval, mean_interval

#: The band of a plain number, as a share of it: what published plots and rounded tables can be read to.
BAND = 0.15
#: A limit beyond all that is measured.
UNBOUNDED = 1e9


@dataclass(frozen=True)
class Claim:
    """A row of claims.json.

    Attributes:
        id: of the figure or table, and which part.
        status: reproduced, shape only, or not reproduced.
        paper: the paper's number; None if it prints none.
        ours: ours; None if there is none.
        interval: of ours, 95 %; None without one.
        unit: of all of them.
        note: what was looked at, and why it was missed.
    """

    id: str
    status: str
    paper: float | None
    ours: float | None
    interval: list[float] | None
    unit: str
    note: str


def is_met(ours: float, paper: float, band: float = BAND) -> bool:
    """Whether ours is within a share of the paper's number."""
    return abs(ours - paper) <= band * abs(paper)


def status(*, number_met: bool | None, shape_holds: bool | None) -> str:
    """The status of a claim.

    Args:
        number_met: None if the paper prints no number.
        shape_holds: None if there is no shape beside the number.
    """
    # Truths may be numpy's, and its false is not `False` itself.
    if number_met and (shape_holds is None or shape_holds):
        return "reproduced"
    return "shape only" if shape_holds else "not reproduced"


def over_seeds(values: Iterable[float]) -> Interval:
    """Mean and 95 % t interval over seeds; each seed is a repetition."""
    return mean_interval([float(value) for value in values])


def claim(
    name: str,
    paper: float | None,
    ours: Interval | float | None,
    unit: str,
    note: str,
    *,
    band: float = BAND,
    limits: tuple[float, float] | None = None,
    shape_holds: bool | None = None,
    is_comparable: bool = True,
    missed: str = "",
) -> Claim:
    """A claim about one number, judged.

    Args:
        name: the id.
        paper: the paper's number; None if it prints none.
        ours: ours, with its interval over seeds if it has one; None if there is nothing to look at.
        unit: of both.
        note: what was looked at.
        band: how far ours may be, as a share of the paper's.
        limits: what ours must lie between instead, where the paper gives a range or a bound.
        shape_holds: whether what the paper says in words holds; None if it says nothing beside the number.
        is_comparable: whether the two are of the same thing; if not, they may be near by chance only, and the
            number is not met.
        missed: why, for the note of a claim that is not reproduced.
    """
    if isinstance(ours, Interval):
        interval = None if ours.low is None else [ours.low, ours.high]
        value: float | None = ours.estimate
    else:
        interval, value = None, ours
    if value is None or (paper is None and limits is None):
        met = None
    elif limits is not None:
        met = is_comparable and limits[0] <= value <= limits[1]
    else:
        met = is_comparable and is_met(value, paper, band)
    found = status(number_met=met, shape_holds=shape_holds)
    if found == "not reproduced" and missed:
        note = f"{note}; not reproduced, because {missed}"
    elif found == "shape only" and met is False:
        off = f"{(value / paper - 1) * 100:+.0f} % off" if limits is None else _outside(limits)
        note = f"{note}; the number is {off}" + (f": {missed}" if missed else "")
    return Claim(name, found, paper, value, interval, unit, note)


def _outside(limits: tuple[float, float]) -> str:
    low, high = limits
    return f"not at least {number(low)}" if high >= UNBOUNDED else f"not from {number(low)} to {number(high)}"


def write(folder: Path, claims: Iterable[Claim]) -> Path:
    """Writes claims.json into a folder and returns its path."""
    path = folder / "claims.json"
    write_text(path, json.dumps([asdict(c) for c in claims], indent=2) + "\n")
    return path


def text(interval: Interval) -> str:
    """A mean and its interval, for tables."""
    if interval.low is None:
        return number(interval.estimate)
    return f"{number(interval.estimate)} [{number(interval.low)}, {number(interval.high)}]"
