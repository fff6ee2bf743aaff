"""Palette: one colour, marker and dash for each level, the same in all figures of the project."""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import seaborn as sns

from weir.labels import SCHEDULERS
from weir.load import Level

#: After Wong, "Points of view: Color blindness" (Nature Methods 8, 2011).
PALETTE = list(sns.color_palette("colorblind").as_hex())
#: The first colours of the palette, which are read well as thin lines.
_STRONG = 5
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
LINES = ["-", "--", "-.", ":"]
#: The colour of a paper's own numbers, of limits and of reservations.
PRINTED = "#555555"
#: Levels that stand beside each other in figures. The place in a group is the colour.
_GROUPS = (
    ("partitioned", "integrated"),
    ("device", "simulator"),
    ("none", "mq-deadline", "kyber", "bfq"),
    (
        "ext4", "xfs", "btrfs", "tmpfs", "nfs", "raw", "glusterfs", "moosefs", "cephfs", "lustre",
        "orangefs", "beegfs", "moosefs-direct", "cephfs-direct", "glusterfs-direct",
        "cephfs-striped", "cephfs-striped-direct",
    ),
    ("text", "video", "bulk", "audio"),
    ("interactive", "periodic", "aperiodic", "best-effort", "real-time"),
    ("reader", "writer", "background", "site", "shoppers", "documents"),
    ("cdl", "bctl"),
    ("greedy", "minimal-load", "random-start"),
    ("trace-based", "peak-rate"),
    ("asterix", "lambs", "news", "term", "mix"),
    tuple(f"stream{n}" for n in range(1, 8)),
    tuple(f"class{n}" for n in range(5)),
    ("browsing", "shopping", "ordering", "rubis", "rubbos"),
    ("EDF", "LST", "deltaL"),
    ("queueing_mean_ms", "service_mean_ms"),
)  # fmt: skip
#: Levels that are variants of another one and have its colour; the marker and the dash tell them apart.
_VARIANTS = {
    "linux-mq-deadline": "mq-deadline",
    "linux-kyber": "kyber",
    "linux-bfq": "bfq",
}


@dataclass(frozen=True)
class Look:
    """How a series is drawn: `color`, `marker` and `linestyle` as matplotlib names them."""

    color: str
    marker: str
    linestyle: str

    @classmethod
    def at(cls, place: int) -> "Look":
        """The look of a place: places apart by the number of colours differ in marker and dash."""
        turn = place // len(PALETTE)
        return cls(
            PALETTE[place % len(PALETTE)],
            MARKERS[(place + turn) % len(MARKERS)],
            LINES[(place + turn) % len(LINES)],
        )


def _places() -> dict[str, int]:
    found = {level: place for group in _GROUPS for place, level in enumerate(group)}
    for place, name in enumerate(name for name in SCHEDULERS if name not in found and name not in _VARIANTS):
        found[name] = place + 4
    return found | {level: found[of] + len(PALETTE) for level, of in _VARIANTS.items()}


_PLACES = _places()


def look_of(level: Level | None) -> Look:
    """The look of one level by itself.

    A level that the project knows has a place of its own. A scheduler with settings has its scheduler's
    place; the place of any other level follows from its text.
    """
    return Look.at(_place(level))


def looks(levels: Sequence[Level | None], *, in_order: bool = False) -> dict[Level | None, Look]:
    """The looks of levels that are drawn beside each other.

    Numbers are shades from dark to light, in their order. Named levels look as `look_of` says. Where two of
    them have one colour, the level of the later place takes the next one that is free, unless it is a variant
    of the other. With `in_order` levels that the project does not know have the looks of their places among
    the others.
    """
    if len(levels) > 1 and all(
        isinstance(level, int | float) and not isinstance(level, bool) for level in levels
    ):
        shades = sns.color_palette("viridis", round(len(levels) * 1.2)).as_hex()
        ordered = sorted(levels)
        return {
            level: Look(
                shades[(at := ordered.index(level))], MARKERS[at % len(MARKERS)], LINES[at % len(LINES)]
            )
            for level in levels
        }
    known = sorted((level for level in levels if str(level) in _PLACES), key=_place)
    places: dict[Level | None, int] = {}
    taken: set[int] = set()
    for level in [*known, *(level for level in levels if level not in known)]:
        place = len(places) if in_order and level not in known else _place(level)
        if len(taken) < len(PALETTE) and str(level) not in _VARIANTS:
            while place % len(PALETTE) in taken:
                place += 1
        taken.add(place % len(PALETTE))
        places[level] = place
    return {level: Look.at(places[level]) for level in levels}


def _place(level: Level | None) -> int:
    text = str(level)
    place = _PLACES.get(text, _PLACES.get(text.split(" ", 1)[0]))
    return crc32(text.encode()) % _STRONG if place is None else place
