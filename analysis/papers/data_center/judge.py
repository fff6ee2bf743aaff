"""Judging: a number or an ordering of the paper held against ours, whose interval must not cross the line.

These are the rules of `weir.traces.claims` and one more: what is met is met by the whole interval.
"""

from collections.abc import Iterable, Iterator
from weir.claims import Claims

from papers.data_center.names import PREFIX
from weir.claims import BAND, UNBOUNDED, Claim, status
from weir.labels import number, with_interval
from weir.statistics import Interval

CLAIMS = Claims.beside(__file__)
#: The status of a claim whose study has no results.
NOT_MEASURED = "not measured"


def judged(
    name: str,
    ours: Interval | None,
    note: str = "",
    *,
    paper: float | None = None,
    shape: bool | None = None,
    is_comparable: bool = True,
    missed: str = "",
) -> Iterator[Claim]:
    """A claim, judged by its band; none if there is nothing to look at.

    Args:
        name: its id.
        ours: our number.
        note: what was looked at.
        paper: the paper's number, where it follows from a table; the band's own if None.
        shape: whether what the paper says besides holds; None if it says nothing besides.
        is_comparable: whether both numbers are of the same thing; if not the number is not met.
        missed: why, if it is missed.
    """
    if ours is None:
        return
    band = CLAIMS.read()[name]
    paper = band.get("paper") if paper is None else paper
    limits = band.get("limits")
    if limits is None and paper is not None:
        limits = sorted((paper * (1 - BAND), paper * (1 + BAND)))
    ends = (ours.estimate, *(end for end in (ours.low, ours.high) if end is not None))
    met = None
    if limits is not None:
        met = is_comparable and all(limits[0] <= end <= limits[1] for end in ends)
    found = status(number_met=met, shape_holds=shape)
    says = f"{band['figure']}: {band['says']}. Ours: "
    says += "; ".join(part for part in (note, ours.note) if part) or number(ours.estimate)
    if met is False and found != "reproduced":
        reason = _why(ours, limits, is_comparable=is_comparable)
        says += f"; {found}, because {reason}" + (f": {missed}" if missed else "")
    elif found == "not reproduced":
        says += "; not reproduced, because " + (missed or "the shape is another")
    whole = None if ours.low is None or ours.high is None else [ours.low, ours.high]
    yield Claim(name, found, paper, ours.estimate, whole, band["unit"], says)


def _why(ours: Interval, limits: Iterable[float], *, is_comparable: bool) -> str:
    low, high = limits
    if not is_comparable:
        return "the two numbers are not of the same thing"
    line = f"at least {number(low)}" if high >= UNBOUNDED else f"from {number(low)} to {number(high)}"
    if low <= ours.estimate <= high:
        return f"the interval is not all {line}"
    return f"{number(ours.estimate)} is not {line}"


def unmeasured(made: Iterable[Claim], studies: Iterable[str]) -> list[Claim]:
    """The claims that nothing was said about, with the command that would.

    Args:
        made: the claims that were judged.
        studies: the studies that have a valid run.
    """
    done, known = {claim.id for claim in made}, set(studies)
    rows = []
    for name, band in CLAIMS.read().items():
        if name in done:
            continue
        study = f"{PREFIX}-{band['study']}"
        why = (
            "its study lacks valid runs to compare" if band["study"] in known else "its study has no results"
        )
        note = f"{band['figure']}: {band['says']}. {why}: make study STUDY={study}"
        rows.append(Claim(name, NOT_MEASURED, band.get("paper"), None, None, band["unit"], note))
    return rows


def shown(ours: Interval | None) -> str:
    """A number with its interval, for tables; nothing for none."""
    return "" if ours is None else with_interval(ours.estimate, ours.low, ours.high)
