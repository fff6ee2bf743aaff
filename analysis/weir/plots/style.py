"""Style of figures: a printed page's size, a palette for colour-blind readers, file formats."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

#: The width of a printed text block.
WIDTH_INCH = 7.2
#: After Wong, "Points of view: Color blindness" (Nature Methods 8, 2011), as seaborn has it under the name of
#: colorblind; shapes tell them apart too.
PALETTE = [
    "#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc",
    "#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9",
]  # fmt: skip
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
LINES = ["-", "--", "-.", ":"]
FORMATS = ("pdf", "png", "svg")

_INK = "#262626"
_RC = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "figure.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    # "best" looks at all data, and warns where that takes a busy machine a second.
    "legend.loc": "upper right",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.edgecolor": "#555555",
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "font.sans-serif": ["Arial", "DejaVu Sans", "Liberation Sans", "sans-serif"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    # Text stays text in PDF, and an SVG is the same bytes every time.
    "pdf.fonttype": 42,
    "svg.hashsalt": "weir",
}


@contextmanager
def style() -> Iterator[None]:
    """Draws with weir's style, leaving the caller's settings as they were."""
    with mpl.rc_context(_RC):
        yield


def save(figure: Figure, folder: Path | str, stem: str) -> list[Path]:
    """Writes a figure as PDF, PNG and SVG into a folder, which is made if absent; returns the paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem}.{kind}" for kind in FORMATS]
    for path in paths:
        path.write_bytes(encode(figure, path.suffix[1:]))
    return paths


def encode(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of a file of this kind, without a date, so that equal figures are equal files."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    buffer = io.BytesIO()
    with mpl.rc_context(_RC):
        figure.savefig(buffer, format=kind, metadata=metadata, bbox_inches="tight")
    return buffer.getvalue()
