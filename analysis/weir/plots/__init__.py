"""Plots: charts of tables, and the parts that all figures share.

`charts` draws estimates by the columns of a table: `intervals`, `ratios`, `heat_map`, `timeline`, `split`.
`points` draws estimates that a table already has. `distributions` draws its values: `tail`, `spread`.
`curves` draws numbers that were computed over numbers. `study_figures` draws any study by its factors,
`trace_figures` a trace. A figure of another shape is a function with the decorator `style()`: it makes its
panels with `panels`, and ends with `legend` and `note`. `with style("usenix-column")` draws at a printed
width.
"""

from weir.plots.axes import legend, log_x, log_y, name_rows, note, panels, plain, powers_of_two, reference
from weir.plots.charts import heat_map, intervals, ratios, split, timeline
from weir.plots.curves import Curve, curves
from weir.plots.distributions import spread, tail
from weir.plots.facets import Place
from weir.plots.palette import PALETTE, PRINTED
from weir.plots.points import points, tabled
from weir.plots.style import SIZES, adaptive_svg, encode, save, style

__all__ = [
    "PALETTE",
    "PRINTED",
    "SIZES",
    "Curve",
    "Place",
    "adaptive_svg",
    "curves",
    "encode",
    "heat_map",
    "intervals",
    "legend",
    "log_x",
    "log_y",
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
    "style",
    "tabled",
    "tail",
    "timeline",
]
