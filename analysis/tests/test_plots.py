"""Charts draw weir's numbers, lose no infinity, give a level one look, and have a column's width."""

import math
import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex
from test_figures import ends_of_bars, marks_of, text_of

from weir import plots
from weir.labels import SCHEDULERS
from weir.plots.palette import PALETTE, look_of, looks
from weir.statistics import Interval, compare, fitted, summarise

LEVELS = ("none", "mq-deadline", "bfq")


def rows(value=lambda level, load, r: 10 * (1 + LEVELS.index(level)) + load + r**2):
    cells = [(s, load, r) for s in LEVELS for load in (1.0, 4.0) for r in range(4)]
    schema = ["scheduler", "load", "repetition", "x"]
    return pl.DataFrame(
        [(*cell, float(value(*cell))) for cell in cells], schema=schema, orient="row"
    ).with_columns(block=pl.col("repetition"))


def same(found, expected):
    """Whether two sets of numbers are equal to 1e-9."""
    assert sorted(found) == pytest.approx(sorted(expected), rel=1e-9, abs=1e-12)


def intervals_of(summary):
    return [
        end for low, high in summary.select("low", "high").rows() if low is not None for end in (low, high)
    ]


@pytest.mark.parametrize("as_pandas", [False, True])
@pytest.mark.parametrize(
    "places",
    [
        {"x": "scheduler", "hue": "load"},
        {"x": "load", "hue": "scheduler"},
        {"x": "scheduler", "col": "load"},
        {"x": "load", "hue": "scheduler", "scaled": False, "joined": True},
        {"hue": ["scheduler", "load"]},
    ],
)
def test_estimates_and_intervals_are_those_of_summarise(places, as_pandas):
    table = rows()
    summary = summarise(table, "x", ["scheduler", "load"])
    figure = plots.intervals(table.to_pandas() if as_pandas else table, "x", runs=False, **places)
    same([v for v in marks(figure) if math.isfinite(v)], summary["estimate"])
    same([end for bar in ends_of_bars(figure) for end in bar], intervals_of(summary))


def marks(figure):
    lines = [line for axis in figure.axes for line in axis.lines if line.get_marker() not in ("None", "")]
    return [v for line in lines for v in line.get_ydata()]


def test_ratios_are_those_of_compare():
    found = compare(rows(), "x", "scheduler", "none", ["load"])
    figure = plots.ratios(rows(), "x", "scheduler", "none", by=["load"], col=None)
    same(marks_of(figure, across=True), found["estimate"])
    same([end for bar in ends_of_bars(figure, across=True) for end in bar], intervals_of(found))


def test_a_timeline_is_that_of_summarise():
    table = rows().rename({"load": "time_s"})
    summary = summarise(table, "x", ["time_s", "scheduler"])
    (axis,) = plots.timeline(table, "x", hue="scheduler").axes
    same([y for line in axis.lines for y in line.get_ydata()], summary["estimate"])
    edges = {v for shade in axis.collections for path in shade.get_paths() for v in path.vertices[:, 1]}
    for end in intervals_of(summary):
        assert any(end == pytest.approx(edge, rel=1e-9) for edge in edges)


def test_parts_and_cells_are_those_of_summarise():
    table = rows().with_columns(queueing_mean_ms=pl.col("x"), service_mean_ms=pl.col("x") * 2)
    figure = plots.split(table, by=["scheduler", "load"])
    parts = [summarise(table, f"{part}_mean_ms", ["scheduler", "load"]) for part in ("queueing", "service")]
    same([bar.get_width() for bar in figure.axes[0].patches], [v for part in parts for v in part["estimate"]])
    heat = plots.heat_map(table, "x", x="scheduler", y="load").axes[0].collections[0]
    same(heat.get_array().compressed(), summarise(table, "x", ["scheduler", "load"])["estimate"])


def estimates(found):
    return plots.tabled(found, "level", "panel")


@pytest.mark.parametrize("across", [False, True])
def test_points_are_the_estimates_of_the_table(across):
    found = {
        ("a", "one"): Interval(2.0, 1.0, 3.0, 3, "t"),
        ("b", "one"): Interval(5.0, None, None, 1, "none"),
    }
    table = estimates(found | {("b", "two"): Interval(math.inf, None, None, 3, "none"), ("a", "two"): None})
    figure = plots.points(table, x="level", col="panel", across=across, title="x")
    assert [v for v in marks_of(figure, across=across) if v > 1] == [2.0, 5.0]
    drawn = [
        path.vertices.ravel() for axis in figure.axes for c in axis.collections for path in c.get_paths()
    ]
    assert any({1.0, 3.0} <= set(ends) for ends in drawn)
    assert "unbounded" in text_of(figure)


def test_points_that_were_not_measured_are_named():
    absent = {
        ("a", "one"): Interval(2.0, None, None, 1, "none"),
        (None, "two"): Interval(None, None, None, 0, ""),
    }
    figure = plots.points(estimates(absent), x="level", col="panel", title="x")
    assert text_of(figure).count("not measured") == 1
    with pytest.raises(ValueError, match="no estimate"):
        plots.points(estimates(absent).filter(pl.col("estimate").is_null()), x="level", col="panel")


def test_curves_are_the_numbers_that_they_are_given():
    found = {
        ("one", "ext4"): plots.Curve([1, 2, 4], [3.0, 5.0, 8.0], [2, 4, 7], [4, 6, 9]),
        ("one", "mine"): plots.Curve(
            [1, 2], [Interval(2.0, 1.0, 3.0, 3, "t"), Interval(math.inf, None, None, 3, "")]
        ),
        ("two", "shares"): plots.Curve.shares(np.array([3.0, 1.0, 2.0, 2.0])),
        ("three", "none"): [],
    }
    figure = plots.curves(found, "x", "y", level={"one": [6]}, absent="not at hand")
    lines = {line.get_label(): line for axis in figure.axes for line in axis.lines}
    assert (
        lines["ext4"].get_ydata().tolist() == [3, 5, 8] and lines["ext4"].get_color() == look_of("ext4").color
    )
    assert dict(zip(*lines["shares"].get_data(), strict=True)) == {1: 0.25, 2: 0.75, 3: 1}
    assert [
        line.get_ydata()[0] for axis in figure.axes for line in axis.lines if line.get_linestyle() == ":"
    ] == [6]
    text = text_of(figure)
    assert "unbounded" in text and "not at hand" in text and "mine" in text


def test_the_band_of_a_tail_is_that_of_its_runs():
    times = [(run, float(t * (1 + run))) for run in range(3) for t in range(1, 101)]
    table = pl.DataFrame(times, schema=["run", "response_ms"], orient="row")
    line, *_ = plots.tail(table, band=True).axes[0].lines
    at = int(abs(line.get_ydata() - 0.5).argmin())
    # The median of a run is 50 or 51 times its factor; the geometric mean of the factors is the root of 6.
    assert 50 * 6 ** (1 / 3) - 1e-9 <= line.get_xdata()[at] <= 51 * 6 ** (1 / 3) + 1e-9


@pytest.mark.parametrize("places", [{"x": "scheduler"}, {"x": "load"}, {"hue": "scheduler"}, {}])
def test_an_infinite_repetition_makes_the_estimate_unbounded(places):
    table = pl.DataFrame({"x": [10.0, 11.0, 12.0, 13.0, math.inf], "repetition": range(5), "load": [1.0] * 5})
    table = table.with_columns(scheduler=pl.lit("none"))
    figure = plots.intervals(table, "x", **places)
    (axis,) = figure.axes
    assert "unbounded" in text_of(figure)
    assert [line.get_ydata()[0] for line in axis.lines if line.get_marker() == "^"] == [0.985]
    # Four runs are points; the mean of the finite ones, which would be 11.5, is nowhere.
    assert sum(len(points.get_offsets()) for points in axis.collections) == 4
    assert not marks_of(figure) and not ends_of_bars(figure)


def test_no_chart_loses_an_infinity():
    table = rows(lambda s, load, r: math.inf if s == "bfq" and r == 1 else 1 + r + load)
    table = table.with_columns(queueing_mean_ms="x", service_mean_ms="x", run=pl.col("scheduler"))
    found = {
        "spread": plots.spread(table, "x", x="scheduler"),
        "violin": plots.spread(table, "x", x="scheduler", kind="violin"),
        "heat_map": plots.heat_map(table, "x", x="scheduler", y="load"),
        "timeline": plots.timeline(table.rename({"load": "time_s"}), "x", hue="scheduler"),
        "split": plots.split(table, by=["scheduler", "load"]),
        "ratios": plots.ratios(table, "x", "scheduler", "none", by=["load"], col=None),
        "tail": plots.tail(table, "x", x="scheduler"),
    }
    for name, figure in found.items():
        assert "unbounded" in text_of(figure), name
    assert "25.0% unbounded" in text_of(found["spread"])
    against = plots.ratios(table, "x", "scheduler", "bfq", by=["load"], col=None)
    assert "baseline unbounded" in text_of(against)


def test_a_level_has_one_look_in_all_figures():
    for levels in (("none", "bfq"), ("bfq", "kyber", "none", "mq-deadline"), ("another", "bfq", "none")):
        found = looks(levels)
        assert found["none"] == look_of("none") and found["bfq"] == look_of("bfq")
        assert len({look.color for look in found.values()}) == len(levels)
    figures = [plots.intervals(rows().filter(pl.col("scheduler").is_in(kept)), "x", x="load", hue="scheduler")
               for kept in (LEVELS, LEVELS[1:])]  # fmt: skip
    drawn = [
        {
            to_hex(line.get_color())
            for line in figure.axes[0].lines
            if line.get_marker() == look_of("bfq").marker
        }
        for figure in figures
    ]
    assert drawn == [{look_of("bfq").color}] * 2
    assert look_of("linux-bfq").color == look_of("bfq").color
    assert look_of("mq-deadline read_expire=100").color == look_of("mq-deadline").color


def test_schedulers_and_filesystems_that_are_compared_have_own_colours():
    assert len({look_of(name).color for name in ("none", "mq-deadline", "kyber", "bfq")}) == 4
    assert len({look_of(name).color for name in ("ext4", "xfs", "btrfs", "tmpfs", "nfs", "cephfs")}) == 6
    # All schedulers of the registry: colour, marker and dash together tell them apart, but for counterparts.
    own = [name for name in SCHEDULERS if not name.startswith("linux-")]
    assert len({look_of(name) for name in own}) == len(own)


def test_named_levels_that_would_have_one_colour_do_not_when_they_are_drawn_together():
    pairs = [("ext4", "beegfs"), ("raw", "xfs"), ("glusterfs", "orangefs", "ext4", "raw", "beegfs")]
    for levels in pairs:
        for order in (levels, levels[::-1]):
            found = looks(order)
            assert len({look.color for look in found.values()}) == len(levels)
            assert found == {level: found[level] for level in order} == looks(sorted(levels))
    assert len({look_of(name).color for name in ("ext4", "xfs", "btrfs", "tmpfs", "nfs", "raw")}) == 6


def test_a_wide_interval_does_not_shorten_the_bars():
    """One cell whose repetitions differ by far more than others are long."""
    table = rows().with_columns(service_mean_ms=pl.lit(5.0))
    wide = (pl.col("scheduler") == "bfq") & (pl.col("load") == 4)
    table = table.with_columns(
        queueing_mean_ms=pl.when(wide & (pl.col("repetition") == 3)).then(300.0).otherwise(2.0)
    )
    figure = plots.split(table, by=["scheduler", "load"])
    axis = figure.axes[0]
    longest = max(bar.get_x() + bar.get_width() for bar in axis.patches)
    assert axis.get_xlim() == pytest.approx((0, 2 * longest))
    arrows = [line for line in axis.lines if "rightarrow" in str(line.get_marker())]
    assert [line.get_xdata()[0] for line in arrows] == [pytest.approx(2 * longest)]
    assert "Arrows: intervals that end outside the figure." in " ".join(text_of(figure).split())
    narrow = plots.split(table.filter(~wide), by=["scheduler", "load"])
    assert "Arrows" not in text_of(narrow)


def test_unknown_levels_do_not_share_a_colour():
    found = looks([f"setting-{i}" for i in range(len(PALETTE))])
    assert len({look.color for look in found.values()}) == len(PALETTE)


@pytest.mark.parametrize(
    ("size", "inches"),
    [("usenix-column", 3.335), ("acm-column", 3.3368), ("acm-page", 7.0056), ("usenix-page", 7)],
)
def test_files_are_as_wide_as_the_printed_column(size, inches, tmp_path):
    with plots.style(size), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plots.intervals(rows(), "x", x="scheduler", hue="load", limit=20)
        pdf, png, svg = plots.save(figure, tmp_path, "x")
    assert figure.get_figwidth() == pytest.approx(inches, abs=1e-4)
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", pdf.read_bytes())
    assert float(box[1]) == pytest.approx(72 * inches, abs=0.02)
    assert float(re.search(r'width="([\d.]+)pt"', svg.read_text())[1]) == pytest.approx(72 * inches, abs=0.02)
    assert png.stat().st_size > 1000
    # Type 42: text is text, in an embedded TrueType font.
    assert b"/CIDFontType2" in pdf.read_bytes() and b"/Type3" not in pdf.read_bytes()
    with pytest.raises(ValueError, match="usenix-column"), plots.style("a5"):
        pass


def test_no_legend_covers_a_panel_and_no_text_leaves_the_figure():
    for size in ("text", "usenix-column"):
        with plots.style(size):
            figure = plots.intervals(rows(), "x", x="scheduler", hue="load", limit=20)
            figure.draw_without_rendering()
        page = figure.bbox
        for axis in figure.axes:
            (legend,) = figure.legends
            assert not legend.get_window_extent().overlaps(axis.get_window_extent())
            texts = [
                axis.title,
                axis.xaxis.label,
                axis.yaxis.label,
                *axis.get_xticklabels(),
                figure._supxlabel,
            ]
            for text in texts:
                box = text.get_window_extent()
                assert box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1 and box.y0 >= page.y0 - 1


def test_pyplot_keeps_no_figure():
    before = plt.get_fignums()
    plots.intervals(rows(), "x", x="scheduler", col="load")
    assert plt.get_fignums() == before


def test_a_page_figure_follows_a_dark_page():
    svg = plots.adaptive_svg(plots.intervals(rows(), "x", x="scheduler", hue="load")).decode()
    assert svg.count("prefers-color-scheme:dark") == 1
    for light in re.findall(r'\[style\*="fill: (#[0-9a-f]+)"\]', svg)[:1]:
        assert f"fill: {light}" in svg.partition("</style>")[2]


def test_an_end_that_is_cut_has_a_mark():
    table = pl.DataFrame({"x": [0.0, 0.01, 0.05], "repetition": range(3), "scheduler": ["none"] * 3})
    for bounds, ends in (((0.0, 1.0), [0.0]), ((-1.0, 1.0), [])):
        figure = plots.intervals(table, "x", x="scheduler", bounds=bounds)
        drawn = [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_marker() == "v"]
        assert drawn == ends
        assert ("Triangles: cut" in text_of(figure)) == bool(ends)


def test_a_fitted_interval_of_a_positive_quantity_stays_above_0():
    values = [20.0, 90.0, 1300.0, 22.0, 70.0, 800.0]
    table = pl.DataFrame(
        {"response_mean_ms": values, "repetition": [0, 1, 2] * 2, "s": ["a"] * 3 + ["b"] * 3}
    )
    plain = summarise(table, "response_mean_ms", ["s"], bounds=(0, math.inf))
    assert plain["low"].to_list() == [0, 0] and set(plain["note"]) == {"cut at 0"}
    found = fitted(table, "response_mean_ms", ["s"])
    assert (found["low"] > 0).all() and set(found["note"]) == {"pooled variance"}
    figure = plots.intervals(table, "response_mean_ms", x="s", fit=True, runs=False)
    same([end for bar in ends_of_bars(figure) for end in bar], intervals_of(found))
    assert "geometric mean of runs (log-t, pooled variance)" in text_of(figure)
    alone = fitted(
        table.filter((pl.col("s") == "b") | (pl.col("repetition") == 0)), "response_mean_ms", ["s"]
    )
    assert alone["low"].is_null().to_list() == [True, False]
