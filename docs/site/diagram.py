"""Diagrams of boxes and arrows, drawn as SVG from lines of text.

    plan = plan.json | runs in randomised blocks
    studies/NAME.yml -> plan: weir plan
    plan -> requests.parquet

A line `name = text` says what stands in a box, `|` begins a line of it; else the name stands there. A line
`from -> to: text` is an arrow. Boxes stand in rows, each below all boxes that lead to it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape

ARROW = re.compile(r"(?P<start>.+?) -> (?P<end>[^:]+)(?:: (?P<text>.+))?")
BOX = re.compile(r"(?P<name>[\w./*-]+) = (?P<text>.+)")
CRATE = re.compile(r"^\| `(?P<name>[a-z-]+)` \| (?P<purpose>.+) \| (?P<uses>[^|]+) \|$", re.MULTILINE)

#: Of text of 14 px, in px. No font is asked: a box has room to spare.
CHARACTER, LINE = 8.2, 19.0
PADDING, GAP = 12.0, 22.0
#: Between rows, with and without texts beside the arrows.
ROW_GAP, TEXT_GAP = 46.0, 62.0
#: Sweeps that move boxes towards those that they are joined to.
SWEEPS = 12


@dataclass
class Box:
    """A box, or the place where a long arrow passes a row (without lines)."""

    lines: list[str]
    about: str = ""
    row: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """Of the box, in px."""
        return max(map(len, self.lines)) * CHARACTER + 2 * PADDING if self.lines else 8.0

    @property
    def height(self) -> float:
        """Of the box, in px."""
        return len(self.lines) * LINE + PADDING


@dataclass
class Diagram:
    """Boxes by name, and arrows as start, end and text."""

    boxes: dict[str, Box] = field(default_factory=dict)
    arrows: list[tuple[str, str, str]] = field(default_factory=list)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "Diagram":
        """Reads the lines of a diagram.

        Raises:
            ValueError: a line is neither a box nor an arrow, or arrows form a circle.
        """
        found = cls()
        for line in filter(None, map(str.strip, lines)):
            if box := BOX.fullmatch(line):
                found.boxes[box["name"]] = Box([part.strip() for part in box["text"].split("|")])
            elif arrow := ARROW.fullmatch(line):
                ends = arrow["start"].strip(), arrow["end"].strip()
                for name in ends:
                    found.boxes.setdefault(name, Box([name]))
                found.arrows.append((*ends, arrow["text"] or ""))
            else:
                raise ValueError(f"{line!r} is neither `name = text` nor `from -> to: text`")
        return found

    def place(self) -> tuple[float, float]:
        """Gives each box its place; returns width and height of the whole."""
        self._assign_rows()
        self._split_long_arrows()
        rows: list[list[str]] = [[] for _ in range(1 + max(box.row for box in self.boxes.values()))]
        for name, box in self.boxes.items():
            rows[box.row].append(name)
        for sweep in range(SWEEPS):
            for row in rows if sweep % 2 == 0 else reversed(rows):
                self._order(row, sweep % 2 == 0)
        gap = TEXT_GAP if any(text for *_, text in self.arrows) else ROW_GAP
        y = 0.0
        for row in rows:
            height = max(self.boxes[name].height for name in row)
            for name in row:
                self.boxes[name].y = y + height / 2
            y += height + gap
        left = min(box.x - box.width / 2 for box in self.boxes.values())
        for box in self.boxes.values():
            box.x -= left
        return max(box.x + box.width / 2 for box in self.boxes.values()), y - gap

    def _assign_rows(self) -> None:
        for _ in self.boxes:
            moved = False
            for start, end, _text in self.arrows:
                if self.boxes[end].row <= self.boxes[start].row:
                    self.boxes[end].row, moved = self.boxes[start].row + 1, True
            if not moved:
                return
        raise ValueError("the arrows form a circle")

    def _split_long_arrows(self) -> None:
        """An arrow over several rows passes each between boxes."""
        arrows, self.arrows = self.arrows, []
        for start, end, text in arrows:
            before = start
            for row in range(self.boxes[start].row + 1, self.boxes[end].row):
                name = f"{start} -> {end} {row}"
                self.boxes[name] = Box([], row=row)
                self.arrows.append((before, name, text))
                before, text = name, ""
            self.arrows.append((before, end, text))

    def _order(self, row: list[str], down: bool) -> None:
        """Orders a row by the boxes that it is joined to, and spreads it so that none overlap."""
        wanted = {name: self._wanted(name, down) for name in row}
        row.sort(key=lambda name: wanted[name])
        edge = float("-inf")
        for name in row:
            box = self.boxes[name]
            box.x = max(wanted[name], edge + box.width / 2)
            edge = box.x + box.width / 2 + GAP
        shift = sum(wanted[name] - self.boxes[name].x for name in row) / len(row)
        for name in row:
            self.boxes[name].x += shift

    def _wanted(self, name: str, down: bool) -> float:
        pairs = [(end, start) if down else (start, end) for start, end, _ in self.arrows]
        joined = [self.boxes[other].x for this, other in pairs if this == name]
        return sum(joined) / len(joined) if joined else self.boxes[name].x

    def svg(self, title: str) -> str:
        """The diagram as SVG. Colours are those of the page."""
        width, height = self.place()
        parts = [self._arrow(*arrow) for arrow in self.arrows]
        parts += [self._box(box) for box in self.boxes.values() if box.lines]
        view = f"-4 -4 {width + 8:.0f} {height + 8:.0f}"
        return (
            f'<svg class="diagram" role="img" viewBox="{view}" width="{width + 8:.0f}" '
            f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
            f"{''.join(parts)}</svg>"
        )

    def _arrow(self, start: str, end: str, text: str) -> str:
        a, b = self.boxes[start], self.boxes[end]
        top, bottom = a.y + a.height / 2, b.y - b.height / 2
        if not a.lines:
            top = a.y
        if not b.lines:
            bottom = b.y
        middle = (top + bottom) / 2
        tip = ' marker-end="url(#tip)"' if b.lines else ""
        path = f'<path class="arrow" d="M{a.x:.1f} {top:.1f}C{a.x:.1f} {middle:.1f} {b.x:.1f} {middle:.1f} '
        path += f'{b.x:.1f} {bottom:.1f}"{tip}/>'
        if not text:
            return path
        x, y = (a.x + b.x) / 2, middle + 4
        return path + f'<text class="beside" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'

    def _box(self, box: Box) -> str:
        x, y = box.x - box.width / 2, box.y - box.height / 2
        about = f"<title>{escape(box.about)}</title>" if box.about else ""
        first = y + PADDING / 2 + 14
        texts = "".join(
            f'<text x="{box.x:.1f}" y="{first + place * LINE:.1f}">{escape(line)}</text>'
            for place, line in enumerate(box.lines)
        )
        return (
            f'<g>{about}<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
            f'rx="4"/>{texts}</g>'
        )


def crates(page: str) -> Diagram:
    """The diagram of a table of crates: name, purpose, and the crates that it uses."""
    rows = {row["name"]: row for row in CRATE.finditer(page)}
    uses = {name: {one.strip() for one in row["uses"].split(",")} & rows.keys() for name, row in rows.items()}
    # `all but ...`, of the crate that wires the others together.
    for name, row in rows.items():
        if excepted := re.fullmatch("all but (.+)", row["uses"]):
            uses[name] = rows.keys() - {name, excepted[1]}
    diagram = Diagram({name: Box([name], row["purpose"]) for name, row in rows.items() if name != "fuzz"})
    for name in diagram.boxes:
        implied = set().union(*(_reached(one, uses) for one in uses[name]))
        diagram.arrows += [(one, name, "") for one in sorted(uses[name] - implied)]
    return diagram


def _reached(name: str, uses: Mapping[str, set[str]]) -> set[str]:
    return uses[name].union(*(_reached(one, uses) for one in uses[name]))
