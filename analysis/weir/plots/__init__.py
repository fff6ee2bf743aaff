"""Plots: charts of tables, and the parts that all figures share.

`charts` draws estimates by the columns of a table: `intervals`, `ratios`, `heat_map`, `timeline`, `split`.
`points` draws estimates that a table already has. `distributions` draws its values: `tail`, `spread`.
`study_figures` draws any study by its factors, `trace_figures` a trace. A figure of another shape is a
function with the decorator `style()`: it makes its panels with `panels`, draws series with `line`,
`estimates`, `band` and `distribution`, and ends with `legend` and `note`. `with style("usenix-column")`
draws at a printed width.
"""

from weir.plots.axes import (
    axis_titles,
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
    unbounded,
)
from weir.plots.charts import heat_map, intervals, ratios, split, timeline
from weir.plots.curves import Curve, curves
from weir.plots.distributions import spread, tail
from weir.plots.facets import Place
from weir.plots.palette import PRINTED, look_of, looks
from weir.plots.points import points, tabled
from weir.plots.series import (
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
from weir.plots.style import SIZES, adaptive_svg, encode, save, style

__all__ = [
    "PRINTED",
    "SIZES",
    "Curve",
    "Place",
    "adaptive_svg",
    "axis_titles",
    "band",
    "colour",
    "curves",
    "decades",
    "distribution",
    "encode",
    "estimates",
    "heat_map",
    "hide",
    "interval_bar",
    "intervals",
    "legend",
    "legend_above",
    "letters",
    "line",
    "line_style",
    "log_x",
    "log_y",
    "look",
    "look_of",
    "looks",
    "marker",
    "name_rows",
    "note",
    "panels",
    "plain",
    "points",
    "powers_of_two",
    "ratios",
    "reference",
    "save",
    "split",
    "spread",
    "steps_above",
    "style",
    "tabled",
    "tail",
    "timeline",
    "two_and_five",
    "unbounded",
]
