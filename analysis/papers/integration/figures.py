"""Figures: the map of each device and scheduler, and the part of it in which integration is better."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from papers.integration.results import (
    BOTH,
    HOLDS_PCT,
    OF_TEXT,
    OF_VIDEO,
    UNDECIDED,
    WORSE,
    Region,
)
from weir import plots

#: Bounds of the classes of the ratio of text responses: classes can be read off a small map.
RATIOS = (1 / 16, 1 / 4, 1 / 2, 1 / 1.1, 1.1, 2, 4, 16)
#: Colours of mixes without text and of marks.
NO_TEXT, MARK = "#e0e0e0", "#111111"
#: Marks of a map: video is later, text is undecided.
LATER = {"marker": "x", "markersize": 2.6, "markeredgewidth": 0.7, "color": MARK, "linestyle": "none"}
OPEN = {"marker": "o", "markersize": 1.5, "markeredgewidth": 0, "color": MARK, "linestyle": "none"}
_PANEL_INCH = 1.25


@plots.style()
def maps(found: dict[tuple[str, str], Region]) -> Figure:
    """The map of each device (rows) and scheduler (columns): ratio of text responses, marks of video.

    Args:
        found: regions by device and scheduler.
    """
    devices, schedulers = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))
    rows, columns = len(devices), len(schedulers)
    figure, axes = plots.panels(rows, columns, 0.9 + _PANEL_INCH * rows, sharex=True, sharey=True)
    norm = BoundaryNorm(np.log2(RATIOS), 256, extend="both")
    for axis, (row, column) in zip(axes, np.ndindex(rows, columns), strict=True):
        region = found.get((devices[row], schedulers[column]))
        if region is None:
            axis.set_axis_off()
            continue
        _map(axis, region, norm)
        if row == 0:
            axis.set_title(schedulers[column])
        if row == rows - 1:
            axis.set_xlabel("Text (% of T)")
        if column == 0:
            axis.set_ylabel(f"{devices[row]}\nVideo (% of V)")
    bar = figure.colorbar(
        ScalarMappable(norm, "RdBu"), ax=axes, location="bottom", aspect=50, shrink=0.8, pad=0.02,
        label="Mean response time of text, partitioned / integrated: above 1 integration is faster",
    )  # fmt: skip
    bar.set_ticks(np.log2(RATIOS), labels=[_fraction(ratio) for ratio in RATIOS])
    bar.outline.set_visible(False)
    keys = {
        "video later than the criterion": Line2D([], [], **LATER),
        "text or video undecided": Line2D([], [], **OPEN | {"markersize": 2.5}),
        "no text clients": Line2D([], [], marker="s", color=NO_TEXT, linestyle="none"),
    }
    figure.legend(keys.values(), keys, loc="outside upper center", ncols=3)
    return figure


def _map(axis: Axes, region: Region, norm: BoundaryNorm) -> None:
    text, video = (np.concatenate(([0.0], of)) for of in (region.text.text, region.video.video))
    x, y = 100 * text / text[-1], 100 * video / video[-1]
    values = np.full(region.points.shape, np.nan)
    with np.errstate(invalid="ignore"):
        # Unbounded ratios have the colour of the last class.
        values[1:, :] = np.clip(region.text.values.mean(axis=0) / np.log(2), -20, 20)
    axis.set_facecolor(NO_TEXT)
    axis.pcolormesh(x, y, values.T, cmap="RdBu", norm=norm, shading="nearest", rasterized=True)
    later = np.zeros(region.points.shape, dtype=bool)
    later[:, 1:] = region.on_time == WORSE
    for marked, look in ((later, LATER), ((region.points == UNDECIDED) & ~later, OPEN)):
        at = np.argwhere(marked)
        axis.plot(x[at[:, 0]], y[at[:, 1]], **look)
    axis.grid(visible=False)
    axis.xaxis.set_major_locator(FixedLocator([0, 50, 100]))
    axis.yaxis.set_major_locator(FixedLocator([0, 50, 100]))
    axis.margins(0)


def _fraction(ratio: float) -> str:
    return f"{ratio:g}" if ratio >= 1 else f"1/{1 / ratio:g}"


def shares(found: dict[tuple[str, str], Region]) -> Figure:
    """The part of the map in which integration meets both criteria, that of text, and that of video.

    Args:
        found: regions by device and scheduler.
    """
    panels = {
        BOTH: "Integration better (% of mixes)",
        OF_TEXT: "Text not slower (% of mixes)",
        OF_VIDEO: "Video not later (% of mixes)",
    }
    parts = {
        (scheduler, device, title): region.share(of)
        for (device, scheduler), region in found.items()
        for of, title in panels.items()
    }
    figure = plots.points(
        plots.tabled(parts, "scheduler", "device", "panel"), x="scheduler", hue="device", col="panel",
        across=True, height=3.2,
        note="Points: means over repetitions meet the criterion. Bars: from the mixes that are decided "
        f"better to those that are not decided worse. Dotted: {HOLDS_PCT} %, the paper's large region.",
    )  # fmt: skip
    for axis in figure.axes:
        axis.set_xlim(-2, 102)
    plots.reference(figure.axes[0], HOLDS_PCT, across=False)
    return figure
