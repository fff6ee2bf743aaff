"""Recording of a command in a terminal, as an animated SVG that loops.

    python docs/site/cast.py docs/study.svg make study

The command runs in a pseudo-terminal that cuts long lines. A frame is what its screen shows. For readers,
pauses are cut to `LONGEST_S`, and what is printed at once appears `LINES_AT_ONCE` lines every `STEP_S`.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from html import escape
from pathlib import Path

COLUMNS, ROWS = 118, 27
LINES_AT_ONCE = 4
STEP_S, LONGEST_S, LAST_S = 0.5, 1.5, 6.0
#: Of a character and of a line, in px.
CHARACTER, LINE = 8.0, 17.0
MARGIN = 14.0
#: Colours of a dark terminal, by SGR parameter.
INK, PAGE = "#d6dbe1", "#12161c"
COLOURS = {
    30: "#8b949e", 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea",
    37: INK, 90: "#8b949e", 91: "#ffa198", 92: "#7ee787", 93: "#e3b341", 94: "#79c0ff", 95: "#d2a8ff",
    96: "#76e3ea", 97: "#ffffff",
}  # fmt: skip
#: 256 colours that progress bars of rich use.
EXTENDED = {197: "#f92672", 237: "#3a3f47", 106: "#7ee787", 70: "#7ee787"}
TOKEN = re.compile(r"\x1b\[(?P<numbers>[0-9;?]*)(?P<kind>[A-Za-z])|\x1b[()].|\x1b.|(?P<plain>.)", re.DOTALL)


def record(command: list[str]) -> list[tuple[float, str]]:
    """Runs a command in a pseudo-terminal; returns its output with the seconds since its start.

    Raises:
        SystemExit: the command failed.
    """
    began = time.monotonic()
    terminal, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    child = subprocess.Popen(
        command, stdin=its_end, stdout=its_end, stderr=its_end, env=environment, start_new_session=True
    )
    os.close(its_end)
    parts = []
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # The terminal is closed.
            break
        if not data:
            break
        parts.append((time.monotonic() - began, data))
    os.close(terminal)
    if (code := child.wait()) != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {code}")
    whole = b"".join(data for _, data in parts).decode(errors="replace")
    texts, place = [], 0
    for seconds, data in parts:
        length = len(data.decode(errors="replace"))
        texts.append((seconds, whole[place : place + length]))
        place += length
    return texts


class Screen:
    """A terminal's screen: lines of characters with a colour and weight each."""

    def __init__(self) -> None:
        self.lines: list[list[tuple[str, str]]] = [[]]
        self.row = self.column = 0
        self.style = ""

    def feed(self, text: str) -> None:
        """Writes a text with its control sequences."""
        for token in TOKEN.finditer(text):
            if token["plain"]:
                self._put(token["plain"])
            elif token["kind"]:
                numbers = [int(one) for one in re.findall(r"\d+", token["numbers"])]
                self._control(token["kind"], numbers)

    def _put(self, character: str) -> None:
        if character == "\n":
            self.row += 1
            while len(self.lines) <= self.row:
                self.lines.append([])
        elif character == "\r":
            self.column = 0
        elif character >= " ":
            if self.column == COLUMNS:
                return
            line = self.lines[self.row]
            line += [(" ", "")] * (self.column + 1 - len(line))
            line[self.column] = (character, self.style)
            self.column += 1

    def _control(self, kind: str, numbers: list[int]) -> None:
        count = numbers[0] if numbers else 1
        if kind == "A":
            self.row = max(0, self.row - count)
        elif kind == "K":
            keep = self.column if not numbers or numbers[0] == 0 else 0
            del self.lines[self.row][keep:]
        elif kind == "m":
            self._set(numbers or [0])

    def _set(self, numbers: list[int]) -> None:
        if numbers[:2] == [38, 5]:
            self.style = f"fill:{EXTENDED.get(numbers[2], INK)}"
            return
        for number in numbers:
            if number in (0, 39):
                self.style = ""
            elif number == 1:
                self.style = f"{self.style};font-weight:bold".lstrip(";")
            elif number in COLOURS:
                self.style = f"fill:{COLOURS[number]}"

    def shown(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """The last lines, each as runs of text with one style."""
        found = []
        for line in self.lines[-ROWS:]:
            runs: list[tuple[str, str]] = []
            for character, style in line:
                if runs and runs[-1][1] == style:
                    runs[-1] = (runs[-1][0] + character, style)
                else:
                    runs.append((character, style))
            found.append(tuple(runs))
        return tuple(found)


def frames(prompt: str, parts: list[tuple[float, str]]) -> list[tuple[float, tuple]]:
    """Screens with the seconds at which each appears, on a clock without long pauses."""
    screen = Screen()
    screen.feed(prompt)
    found = [(0.0, screen.shown())]
    now, before = STEP_S, 0.0
    screen.feed("\r\n")
    for seconds, text in parts:
        now += min(seconds - before, LONGEST_S)
        before = seconds
        lines = text.splitlines(keepends=True)
        for first in range(0, len(lines), LINES_AT_ONCE):
            screen.feed("".join(lines[first : first + LINES_AT_ONCE]))
            now = max(now, found[-1][0] + STEP_S)
            found.append((now, screen.shown()))
    return found


def svg(title: str, shown: list[tuple[float, tuple]]) -> str:
    """The frames as one animated SVG; without animations, the last frame."""
    total = shown[-1][0] + LAST_S
    width, height = COLUMNS * CHARACTER + 2 * MARGIN, ROWS * LINE + 2 * MARGIN
    rules, groups = [], []
    for place, (begin, screen) in enumerate(shown):
        end = shown[place + 1][0] if place + 1 < len(shown) else total
        a, b = 100 * begin / total, 100 * end / total
        visible = f"{a:.2f}%{{visibility:visible}}{b:.2f}%,to{{visibility:hidden}}"
        if place + 1 == len(shown):
            visible = f"{a:.2f}%,to{{visibility:visible}}"
        start = "" if place == 0 else "from{visibility:hidden}"
        rules.append(f"@keyframes k{place}{{{start}{visible}}}#f{place}{{animation-name:k{place}}}")
        groups.append(f'<g class="f" id="f{place}">{_lines(screen)}</g>')
    last = len(shown) - 1
    style = (
        "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        f"fill:{INK};white-space:pre}}"
        f".f{{visibility:hidden;animation:{total:.1f}s step-end infinite}}{''.join(rules)}"
        f"@media (prefers-reduced-motion:reduce){{.f{{animation:none}}#f{last}{{visibility:visible}}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'role="img"><title>{escape(title)}</title><style>{style}</style>'
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="{PAGE}" stroke="#444c56"/>'
        f"{''.join(groups)}</svg>\n"
    )


def _lines(screen: tuple) -> str:
    texts = []
    for row, runs in enumerate(screen):
        spans, column = [], 0
        for text, style in runs:
            if text.strip():
                # Each run at its place, whatever the widths of the reader's font.
                place = f' x="{MARGIN + column * CHARACTER:.0f}" textLength="{len(text) * CHARACTER:.0f}"'
                look = f' style="{style}"' if style else ""
                spans.append(f"<tspan{place}{look}>{escape(text)}</tspan>")
            column += len(text)
        if spans:
            texts.append(f'<text y="{MARGIN + (row + 1) * LINE - 4:.0f}">{"".join(spans)}</text>')
    return "".join(texts)


if __name__ == "__main__":
    out, *words = sys.argv[1:]
    spoken = " ".join(words)
    Path(out).write_text(svg(f"Recording of {spoken}", frames(f"$ {spoken}", record(words))))
