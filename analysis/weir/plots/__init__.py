"""Plots: the parts that all figures share.

A figure is a function with the decorator `style()`. It makes its panels with `panels`, draws series with
`line`, `estimates`, `band` and `distribution`, and ends with `legend` and `note`. Colours, markers and line
widths are set here. `study_figures` draws any study by its factors, `trace_figures` a trace.
"""

from weir.plots.panels import (
    decades,
    hide,
    legend,
    legend_above,
    letters,
    log_x,
    log_y,
    name_rows,
    note,
    panels,
    plain,
    powers_of_two,
    two_and_five,
)
from weir.plots.series import (
    PRINTED,
    band,
    colour,
    distribution,
    estimates,
    interval_bar,
    line,
    line_style,
    look,
    marker,
    reference,
    steps_above,
)
from weir.plots.style import WIDTH_INCH, encode, save, style

__all__ = [
    "PRINTED",
    "WIDTH_INCH",
    "band",
    "colour",
    "decades",
    "distribution",
    "encode",
    "estimates",
    "hide",
    "interval_bar",
    "legend",
    "legend_above",
    "letters",
    "line",
    "line_style",
    "log_x",
    "log_y",
    "look",
    "marker",
    "name_rows",
    "note",
    "panels",
    "plain",
    "powers_of_two",
    "reference",
    "save",
    "steps_above",
    "style",
    "two_and_five",
]
