"""Claims of the shared data center: none where there is nothing to look at."""

from collections.abc import Iterator, Mapping

from weir.claims import Claim, Claims, Found
from weir.statistics import Interval

CLAIMS = Claims.beside(__file__)


def judged(
    id: str, ours: Interval | None, note: str = "", *, shape: bool | None = None, missed: str = ""
) -> Iterator[Claim]:
    """A claim; none without a number of ours.

    Args:
        id: the claim's.
        ours: our number.
        note: what was looked at.
        shape: whether what the paper says besides holds; None if it says nothing besides.
        missed: why it is missed, if it is.
    """
    if ours is not None:
        yield CLAIMS.judged(id, ours, note, shape=shape, missed=missed)


def over(id: str, found: Mapping[str, Found | None]) -> Iterator[Claim]:
    """A claim at several settings of an open parameter; none without a number at the one that decides.

    Args:
        id: the claim's.
        found: what our runs show, by setting; None for nothing.
    """
    there = {setting: one for setting, one in found.items() if one is not None and one.ours is not None}
    if CLAIMS.register[id].setting in there:
        yield CLAIMS.over(id, there)
