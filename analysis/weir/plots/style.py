"""Style of figures: widths of printed columns and pages, seaborn's theme, file formats."""

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import seaborn as sns
from matplotlib.figure import Figure

from weir.plots.palette import PALETTE, PRINTED

_POINTS_PER_INCH = 72.27


@dataclass(frozen=True)
class Size:
    """A printed width: inches, and the size of letters in points."""

    width_inch: float
    font_pt: float


#: Widths of a column and of a page's text by class file: `usenix2019_v3.sty` (7 in, 0.33 in between columns)
#: and `acmart.cls` (sigconf: 241.14749 pt and 506.295 pt). `text` is the width of the report.
SIZES = {
    "text": Size(7.2, 9),
    "usenix-column": Size(3.335, 7),
    "usenix-page": Size(7.0, 8),
    "acm-column": Size(241.14749 / _POINTS_PER_INCH, 7),
    "acm-page": Size(506.295 / _POINTS_PER_INCH, 8),
}
FORMATS = ("pdf", "png", "svg")
#: Text, grid, edges of panels, notes. Each has a colour of its own, by which `adaptive_svg` finds it.
INK, GRID, EDGE, QUIET = "#262626", "#dddddd", "#555556", "#444444"
#: The same parts on a dark page.
_DARK = {INK: "#e4e8ec", GRID: "#343c45", EDGE: "#9aa5b1", QUIET: "#b9c2cb"} | dict.fromkeys(
    # Bars, limits, and numbers that a paper prints.
    ("#222222", "#333333", PRINTED),
    "#b9c2cb",
)

_ACTIVE: ContextVar[str | None] = ContextVar("size", default=None)


def _rc(size: Size) -> dict[str, object]:
    small = size.font_pt - 1
    theme = sns.axes_style("ticks") | {
        "figure.figsize": (size.width_inch, 0.62 * size.width_inch),
        "figure.dpi": 110,
        "savefig.dpi": 200,
        "font.size": size.font_pt,
        "axes.titlesize": size.font_pt,
        "axes.labelsize": size.font_pt,
        "xtick.labelsize": small,
        "ytick.labelsize": small,
        "figure.labelsize": size.font_pt,
        "legend.fontsize": small,
        "legend.title_fontsize": small,
        "legend.frameon": False,
        # "best" looks at all data, and warns where that takes a busy machine a second.
        "legend.loc": "upper right",
        "axes.prop_cycle": mpl.cycler(color=PALETTE),
        "axes.grid": True,
        "axes.grid.axis": "y",
        # The page shows through: it may be dark.
        "axes.facecolor": "none",
        "axes.linewidth": 0.8,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "xtick.major.size": 3,
        "ytick.major.size": 3,
        "xtick.minor.size": 1.5,
        "ytick.minor.size": 1.5,
        "xtick.major.width": 0.8,
        "ytick.major.width": 0.8,
        "axes.axisbelow": True,
        "axes.edgecolor": EDGE,
        "axes.labelcolor": INK,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "lines.solid_capstyle": "round",
        "patch.edgecolor": "w",
        "patch.force_edgecolor": True,
        "font.sans-serif": ["Arial", "DejaVu Sans", "Liberation Sans", "sans-serif"],
        "axes.spines.top": False,
        "axes.spines.right": False,
        # Text stays text in PDF and PostScript, and an SVG is the same bytes every time.
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "svg.hashsalt": "weir",
    }
    return theme


@contextmanager
def style(size: str | None = None) -> Iterator[None]:
    """Draws with weir's style at a printed width, leaving the caller's settings as they were.

    Args:
        size: a name of `SIZES`. A figure function that names none draws at the width of the `with style(...)`
            around its call, or at that of the report.

    Raises:
        ValueError: the size is unknown.
    """
    name = size or _ACTIVE.get() or "text"
    if name not in SIZES:
        raise ValueError(f"unknown size {name!r}: {', '.join(SIZES)}")
    before = _ACTIVE.set(name)
    try:
        with mpl.rc_context(_rc(SIZES[name])):
            yield
    finally:
        _ACTIVE.reset(before)


def width_inch() -> float:
    """The width of figures that are drawn now, in inches."""
    return SIZES[_ACTIVE.get() or "text"].width_inch


def on_lines(text: str, font_pt: float, inches: float) -> str:
    """A text on lines that are at most this wide; a letter is half as wide as high on average."""
    chars = max(int(inches * 72 / (0.52 * font_pt)), 10)
    return "\n".join(textwrap.fill(line, chars, break_on_hyphens=False) for line in text.split("\n"))


def save(figure: Figure, folder: Path | str, stem: str) -> list[Path]:
    """Writes a figure as PDF, PNG and SVG into a folder, which is made if absent; returns the paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.{kind}" for kind in FORMATS]
    for path in paths:
        path.write_bytes(encode(figure, path.suffix[1:]))
    return paths


def encode(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of a file of this kind, as wide as it was drawn.

    The file has no date, so that equal figures are equal files.
    """
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    buffer = io.BytesIO()
    with mpl.rc_context(_rc(SIZES["text"])):
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def adaptive_svg(figure: Figure) -> bytes:
    """A figure as SVG for a web page: text, axes and grid are light where the reader prefers a dark page."""
    rules = "".join(
        f'[style*="{part}: {light}"]{{{part}:{dark}!important}}'
        for light, dark in _DARK.items()
        for part in ("fill", "stroke")
    )
    page = "#patch_1>path{fill:none!important}"
    sheet = f"<style>@media (prefers-color-scheme:dark){{{rules}{page}}}</style>".encode()
    head, defs, rest = encode(figure, "svg").partition(b"<defs>")
    return head + sheet + defs + rest
