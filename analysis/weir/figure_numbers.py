"""Numbers of a figure: what its lines, marks, bars and images are drawn at, in the units of its axes.

Two figures of equal numbers show the same, whatever the fonts, versions and sizes that they are drawn with.
"""

import json
import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from numpy.typing import ArrayLike


def as_text(figure: Figure) -> str:
    """A JSON list of the panels: titles, scales, and every mark with its numbers, in the order of drawing.

    Each mark has its own line. Infinity and NaN, which JSON lacks, are the texts `inf`, `-inf` and `nan`.
    """
    panels = []
    for panel in map(_panel, figure.axes):
        parts = []
        for name, value in panel.items():
            if isinstance(value, list):
                rows = ",\n".join(f"   {json.dumps(row, allow_nan=False)}" for row in value)
                parts.append(f"  {json.dumps(name)}: [\n{rows}\n  ]" if rows else f"  {json.dumps(name)}: []")
            else:
                parts.append(f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}")
        panels.append(" {\n" + ",\n".join(parts) + "\n }")
    return "[\n" + ",\n".join(panels) + "\n]\n"


def count(document: Any) -> int:
    """The number of numbers in a JSON document."""
    if isinstance(document, dict):
        return sum(map(count, document.values()))
    if isinstance(document, list):
        return sum(map(count, document))
    return int(isinstance(document, int | float) and not isinstance(document, bool))


def _panel(axes: Axes) -> dict[str, Any]:
    return {
        "title": axes.get_title(),
        "x": axes.get_xlabel(),
        "y": axes.get_ylabel(),
        "x_scale": axes.get_xscale(),
        "y_scale": axes.get_yscale(),
        "lines": [
            {
                "label": _label(line),
                "x": _plain(line.get_xdata(orig=False)),
                "y": _plain(line.get_ydata(orig=False)),
            }
            for line in axes.get_lines()
        ],
        "marks": [_marks(one) for one in axes.collections],
        "bars": [_bar(one) for one in axes.patches],
        "images": [{"values": _plain(one.get_array())} for one in axes.images],
        "texts": [one.get_text() for one in axes.texts],
    }


def _label(artist: Any) -> str:
    label = str(artist.get_label())
    # Names that matplotlib gives begin with an underscore and count what was drawn before.
    return "" if label.startswith("_") else label


def _marks(marks: Collection) -> dict[str, Any]:
    found: dict[str, Any] = {"label": _label(marks)}
    if isinstance(marks, LineCollection):
        found["segments"] = [_plain(segment) for segment in marks.get_segments()]
    elif hasattr(marks, "get_coordinates"):
        found["corners"] = _plain(marks.get_coordinates())
    elif len(marks.get_offsets()) and marks.get_offset_transform() != marks.get_transform():
        found["at"] = _plain(marks.get_offsets())
    else:
        found["areas"] = [_plain(path.vertices) for path in marks.get_paths()]
    if marks.get_array() is not None:
        found["values"] = _plain(marks.get_array())
    return found


def _bar(bar: Patch) -> dict[str, Any]:
    if isinstance(bar, Rectangle):
        corner = [*bar.get_xy(), bar.get_width(), bar.get_height()]
        return {"label": _label(bar), "x_y_width_height": _plain(corner)}
    return {"label": _label(bar), "outline": _plain(bar.get_path().vertices)}


def _plain(values: ArrayLike) -> Any:
    """Numbers as JSON lists; masked numbers are `nan`."""
    array = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    return _listed(array.tolist())


def _listed(value: Any) -> Any:
    if isinstance(value, list):
        return [_listed(one) for one in value]
    return value if math.isfinite(value) else str(value)
