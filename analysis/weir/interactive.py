"""Charts of a report that a reader can zoom: Vega-Lite specifications and the script that draws them.

The script is Vega's, from the package `vl-convert-python`, inside the page: nothing is fetched. The static
figure stays in the page for print and for readers without scripts.
"""

import functools
import json
import math
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import polars as pl

from weir.load import Study
from weir.plots.facets import is_wide, level_texts
from weir.plots.palette import looks
from weir.plots.responses import (
    BODY,
    PANEL,
    SHARES,
    coloured,
    course_text,
    nines,
    shares_text,
    with_panel,
)
from weir.responses import Responses

#: Digits of the numbers in a chart: more than a screen shows.
_DIGITS = 4
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
#: Vega's licence asks for it.
_LICENCE = (
    "// Vega, Vega-Lite and Vega-Embed: BSD-3-Clause, (c) University of Washington Interactive Data Lab."
)
_TEXT, _QUIET, _LINE = "var(--text)", "var(--quiet)", "var(--line)"
#: Colours are those of the page, which are others where the reader prefers a dark one.
_CONFIG = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": _QUIET, "titleColor": _TEXT, "gridColor": _LINE, "domainColor": _QUIET,
        "tickColor": _QUIET, "titleFontWeight": "normal", "labelFontSize": 12, "titleFontSize": 12,
    },
    "legend": {
        "labelColor": _TEXT, "titleColor": _QUIET, "orient": "top", "titleFontWeight": "normal",
        "labelFontSize": 12, "titleFontSize": 12, "symbolStrokeWidth": 3, "symbolOpacity": 1,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Chart:
    """A chart of a page.

    Attributes:
        spec: the Vega-Lite specification without data, with the parameters `panel` (a number), `low` and
            `high` (the range of the horizontal axis).
        rows: the data.
        panels: names of the panels, of which one is drawn at a time.
        domain: the whole range of the horizontal axis.
        is_log: whether that axis is logarithmic.
        note: what its lines and marks are, and which runs are drawn if not all.
    """

    spec: dict[str, Any]
    rows: pl.DataFrame
    panels: list[str]
    domain: tuple[float, float]
    is_log: bool
    note: str

    @property
    def source(self) -> str:
        """What the page's script reads: JSON that cannot end the element that it stands in."""
        # By columns, half as long as by rows.
        columns = self.rows.to_dict(as_series=False)
        document = {"spec": self.spec, "columns": columns, "domain": self.domain, "log": self.is_log}
        return json.dumps(document, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")


@functools.cache
def script() -> str:
    """The script of a page with charts: Vega, and what draws the charts and lets the reader zoom."""
    # It starts a JavaScript engine, which a page without charts does not need.
    import vl_convert

    own = files("weir").joinpath("templates", "interactive.js").read_text(encoding="utf-8")
    return "\n".join([_LICENCE, vl_convert.javascript_bundle(), own]).replace("</script", "<\\/script")


def distributions(study: Study, found: Responses, objective: tuple[float, float] | None) -> Chart:
    """The chart of `plots.responses.distributions`."""
    table, hue, panels, levels = _numbered(study, found.shares)
    top = table.filter(pl.col("share") < 1).select(nines(pl.col("share")).max()).item() or 1.0
    top = round(1.06 * max(top, 1.0), 3)
    body = table.filter(pl.col("share") >= BODY)["response_ms"]
    limit = objective[1] if objective else 0
    domain = _rounded(0.8 * body.min()), _rounded(1.25 * max(body.max(), limit))
    rows = table.select(
        "p", "c",
        pl.col("response_ms").round_sig_figs(_DIGITS).alias("t"),
        *(nines(pl.col(name)).clip(0, 2 * top).round(4).alias(name) for name in ("share", "low", "high")),
        pl.col("share").round(6).alias("s"),
    )  # fmt: skip
    x = _x("t", "Response time (ms)", "log")
    # A line for each of nine ticks in a decade would be more than the data.
    x["axis"]["grid"] = False
    ticks = [_rounded(-math.log10(1 - share)) for share in SHARES if -math.log10(1 - share) <= top]
    y = {
        "type": "quantitative",
        "title": "Share of requests that took at most",
        "scale": {"domain": [0, top], "nice": False},
        "axis": {"values": ticks, "labelExpr": "format(100 * (1 - pow(10, -datum.value)), '.5~g') + ' %'"},
    }
    color = _color(hue, levels, study)
    tooltip = [
        *_level_tooltip(hue),
        {"field": "t", "type": "quantitative", "title": "response time (ms)"},
        {"field": "s", "type": "quantitative", "title": "share", "format": ".3%"},
    ]
    step = {"interpolate": "step-after", "clip": True}
    layers = [
        {
            "mark": {"type": "area", "opacity": 0.2, **step},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": color},
        },
        {
            "mark": {"type": "line", "strokeWidth": 2, **step},
            "encoding": {"x": x, "y": y | {"field": "share"}, "color": color, "opacity": _picked()},
        },
        _nearest(x, y | {"field": "share"}, color, tooltip),
    ]
    if objective is not None:
        at = {"t": objective[1], "share": _rounded(-math.log10(max(1 - objective[0], 1e-6)))}
        layers.append(
            {
                "data": {"values": [at]},
                "mark": {
                    "type": "point", "shape": "cross", "filled": True, "size": 110, "color": _TEXT,
                    "clip": True,
                    "tooltip": f"objective: {100 * objective[0]:g} % within {objective[1]:g} ms",
                },
                "encoding": {"x": x, "y": y | {"field": "share"}},
            }
        )  # fmt: skip
    note = shares_text(found) + (" Cross: objective." if objective else "")
    return Chart(_spec(levels, layers, domain), rows, panels, domain, True, note)


def over_time(study: Study, found: Responses, limit: float | None) -> Chart:
    """The chart of `plots.responses.over_time`."""
    table, hue, panels, levels = _numbered(study, found.course)
    bounded = table.filter(pl.col("response_ms").is_finite())["response_ms"].to_list()
    wide = is_wide(bounded)
    largest = max([*bounded, limit or 0], default=1) or 1
    extent = (
        [_rounded(min(bounded) / 1.2), _rounded(1.2 * largest)] if wide else [0, _rounded(1.08 * largest)]
    )
    rows = table.select(
        "p", "c", "repetition",
        pl.col("time_s").round(6).alias("t"),
        # A gap in the line: an unbounded response has no place on the axis.
        pl.when(pl.col("response_ms").is_finite()).then(pl.col("response_ms").round_sig_figs(_DIGITS)).alias("v"),
        pl.col("requests").alias("n"),
    )  # fmt: skip
    domain = (0.0, _rounded(table["time_s"].max() + found.step_s / 2))
    x = _x("t", "Time since the start of the run (s)", "linear")
    y = {
        "type": "quantitative",
        "title": "Response time (ms)",
        "scale": {"type": "log" if wide else "linear", "domain": extent, "nice": False},
    }
    color = _color(hue, levels, study)
    tooltip = [
        *_level_tooltip(hue),
        {"field": "repetition", "type": "ordinal"},
        {"field": "t", "type": "quantitative", "title": "time (s)"},
        {"field": "v", "type": "quantitative", "title": "response time (ms)"},
        {"field": "n", "type": "quantitative", "title": "requests"},
    ]
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [{"a": 0, "b": found.warmup_s}]},
            "mark": {"type": "rect", "color": _TEXT, "opacity": 0.09, "clip": True, "tooltip": "warm-up"},
            "encoding": {"x": x | {"field": "a"}, "x2": {"field": "b"}},
        },
        {
            "mark": {"type": "line", "strokeWidth": 1.5, "clip": True},
            "encoding": {
                "x": x, "y": y | {"field": "v"}, "color": color, "opacity": _picked(),
                "detail": {"field": "repetition", "type": "nominal"},
            },
        },
        _nearest(x, y | {"field": "v"}, color, tooltip),
    ]  # fmt: skip
    if rows["v"].null_count():
        layers.append(
            {
                "mark": {
                    "type": "point", "shape": "triangle-up", "filled": True, "clip": True,
                    "tooltip": "unbounded",
                },
                "encoding": {
                    "x": x, "y": {"value": 5}, "color": color,
                    "size": {"condition": {"test": "isValid(datum.v)", "value": 0}, "value": 50},
                },
            }
        )  # fmt: skip
    if limit is not None:
        layers.append(
            {
                "data": {"values": [{"v": limit}]},
                "mark": {
                    "type": "rule", "color": _TEXT, "strokeDash": [6, 4],
                    "tooltip": f"objective: {limit:g} ms",
                },
                "encoding": {"y": y | {"field": "v"}},
            }
        )  # fmt: skip
    return Chart(_spec(levels, layers, domain), rows, panels, domain, False, course_text(found, limit))


def _numbered(study: Study, table: pl.DataFrame) -> tuple[pl.DataFrame, str | None, list[str], list[Any]]:
    """The table with panel `p` and colour `c` as numbers, the column in colours, panels, and levels."""
    table, hue, others = coloured(study, table)
    table = with_panel(table, others) if others else table.with_columns(pl.lit("all runs").alias(PANEL))
    panels = table[PANEL].unique(maintain_order=True).to_list()
    levels = [None] if hue is None else table[hue].unique(maintain_order=True).to_list()
    number = pl.lit(0) if hue is None else _number(hue, levels)
    return table.with_columns(_number(PANEL, panels).alias("p"), number.alias("c")), hue, panels, levels


def _number(name: str, values: list[Any]) -> pl.Expr:
    return pl.col(name).replace_strict(values, list(range(len(values))), return_dtype=pl.Int64)


def _x(field: str, title: str, kind: str) -> dict[str, Any]:
    # The parameters that the buttons, the keys and the pointer set.
    scale = {"type": kind, "domainMin": {"expr": "low"}, "domainMax": {"expr": "high"}, "nice": False}
    axis = {"labelOverlap": "greedy", "tickCount": 6, "format": "~g"}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def _color(hue: str | None, levels: list[Any], study: Study) -> dict[str, Any]:
    order = study.factors.get(hue or "", levels)
    of_level = {str(level): look.color for level, look in looks(order).items()}
    scale = {
        "domain": list(range(len(levels))),
        "range": [of_level.get(str(level)) or looks(levels)[level].color for level in levels],
    }
    names = json.dumps(["all runs"] if hue is None else level_texts(levels))
    # Two columns fit beside each other on a telephone.
    legend = {"title": hue, "labelExpr": f"{names}[datum.value]", "columns": 2, "labelLimit": 150}
    return {"field": "c", "type": "nominal", "scale": scale, "legend": legend if hue else None}


def _level_tooltip(hue: str | None) -> list[dict[str, Any]]:
    return [{"field": "level", "type": "nominal", "title": hue}] if hue else []


def _picked() -> dict[str, Any]:
    """Opacity of a line: those that are not picked in the legend fade."""
    return {"condition": {"param": "picked", "value": 1}, "value": 0.15}


def _nearest(
    x: dict[str, Any], y: dict[str, Any], color: dict[str, Any], tooltip: list[dict[str, Any]]
) -> dict[str, Any]:
    """Points that are seen only under the pointer, with their numbers."""
    select = {"type": "point", "on": "pointerover", "nearest": True, "clear": "pointerout"}
    shown = {"condition": {"param": "near", "empty": False, "value": 1}, "value": 0}
    picked = {"name": "picked", "select": {"type": "point", "fields": ["c"]}, "bind": "legend"}
    return {
        "params": [{"name": "near", "select": select}, picked],
        "mark": {"type": "point", "filled": True, "size": 60, "clip": True},
        "encoding": {"x": x, "y": y, "color": color, "opacity": shown, "tooltip": tooltip},
    }


def _spec(levels: list[Any], layers: list[dict[str, Any]], domain: tuple[float, float]) -> dict[str, Any]:
    names = json.dumps(level_texts(levels))
    return {
        "$schema": _SCHEMA,
        "width": "container",
        "height": 320,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": _CONFIG,
        "params": [
            {"name": "panel", "value": 0},
            {"name": "low", "value": domain[0]},
            {"name": "high", "value": domain[1]},
        ],
        "transform": [{"filter": "datum.p == panel"}, {"calculate": f"{names}[datum.c]", "as": "level"}],
        "layer": layers,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS + 2}g}")
