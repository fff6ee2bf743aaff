"""Figures: single disks: Figs. 4.5 to 4.7, 4.10, 7.3 to 7.8."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colorbar import ColorbarBase
from matplotlib.figure import Figure

from papers.clockwise import source
from papers.clockwise.disk_claims import KNEE, bandwidth_mb_s, write_behind_mb_s
from papers.clockwise.disk_times import Drive
from papers.clockwise.experiments import CDF_SIZES_KB, SIZES_KB, WIDE, Bench, sectors_of
from weir import plots

ZONES = range(len(source.ZONES))
SHARE = "Share of requests"
SERVICE = "Service time (ms)"


@plots.style()
def seeks(drive: Drive) -> Figure:
    """Fig. 4.5."""
    distance = np.arange(1, 5812)
    ours = np.array([drive.seek_ms(int(d)) for d in distance])
    formula = np.where(distance < KNEE, 9.5 - 1.5e-6 * (distance - 2000.0) ** 2, 6.1 + 0.002 * distance)
    figure, (axis,) = plots.panels(1, 1, 2.8)
    plots.line(axis, distance, ours, "model: mean", 0, marker="")
    plots.line(axis, distance, formula, "the thesis's formulas, coefficients corrected", 1, marker="")
    axis.plot([1], [1.9], "k^", markersize=5, label="measured: 1.9 ms for one cylinder, 17.8 ms at most")
    axis.plot([5811], [17.8], "k^", markersize=5)
    plots.reference(axis, KNEE, across=False)
    axis.set_xlim(-60, 5900)
    axis.set_ylim(0, 20)
    axis.set_xlabel("Distance (cylinders)")
    axis.set_ylabel("Seek (ms)")
    axis.legend(loc="lower right")
    plots.note(figure, "Dotted: 1,500 cylinders. The model does not vary for one distance.")
    return figure


@plots.style()
def bandwidths(bench: Bench) -> Figure:
    """Figs. 4.6, 4.7 and 4.10: bandwidth by block and zone."""
    figure, axes = plots.panels(1, 3, 3.0, sharey=True, sharex=True)
    for zone in ZONES:
        look = {"color": _shade(zone / 11), "linewidth": 1.0, "markersize": 2}
        behind = [write_behind_mb_s(bench, zone, kb) for kb in SIZES_KB]
        axes[0].plot(SIZES_KB, behind, marker="o", **look)
        for axis, write in ((axes[1], False), (axes[2], True)):
            rates = [kb / 1024 / bench.raw(zone, sectors_of(kb), write=write).mean() * 1e3 for kb in SIZES_KB]
            axis.plot(SIZES_KB, rates, marker="o", **look)
    for axis in axes:
        plots.powers_of_two(axis, SIZES_KB[::2])
        plots.reference(axis, 9.5)
        axis.set_xlabel("Block (KB)")
        axis.set_ylim(0, 10.8)
    axes[0].set_ylabel("Bandwidth (MB/s)")
    plots.letters(axes, ["write, drive's cache on", "read, cache off", "write, cache off"])
    _zones(figure, axes)
    plots.note(figure, "Means of up to 400 requests that begin a track. Dotted: Fast SCSI-2, 9.5 MB/s.")
    return figure


@plots.style()
def zig_zag(bench: Bench) -> Figure:
    """Fig. 4.10 near whole tracks, and what passes the heads."""
    track = bench.drive.track(0)
    sectors = np.unique(np.concatenate([np.arange(1, 13) * track + more for more in (0, 10, 60, 120)]))
    figure, (axis,) = plots.panels(1, 1, 2.6)
    for at, (name, write) in enumerate((("read", False), ("write", True))):
        rates = [n / 2048 / bench.raw(0, int(n), write=write).mean() * 1e3 for n in sectors]
        plots.line(axis, sectors / track, rates, name, at)
    plots.reference(axis, bandwidth_mb_s(bench.drive, track))
    axis.set_xticks(range(1, 14))
    axis.set_xlabel("Request (tracks of zone 0)")
    axis.set_ylabel("Bandwidth (MB/s)")
    axis.set_ylim(0, 11)
    axis.legend(loc="lower right")
    plots.note(figure, "Whole tracks and 10, 60 and 120 sectors more. Dotted: what passes the heads.")
    return figure


def _shade(part: float) -> tuple[float, float, float, float]:
    """A colour of a scale from dark to light; the lightest are left out."""
    return colormaps["viridis"](0.92 * part)


def _zones(figure: Figure, axes: list[Axes]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    colours = ListedColormap([_shade(zone / 11) for zone in ZONES])
    bar: ColorbarBase = figure.colorbar(
        ScalarMappable(Normalize(-0.5, 11.5), colours), ax=axes, shrink=0.9, ticks=range(0, 12, 2), pad=0.01
    )
    bar.set_label("Zone")
    bar.outline.set_visible(False)


@plots.style()
def reads(bench: Bench, zone: int) -> Figure:
    """Figs. 7.3 and 7.4: distributions of service times, raw and of a partition."""
    figure, axes = plots.panels(2, 3, 3.9, sharey=True)
    for axis, kb in zip(axes, CDF_SIZES_KB, strict=True):
        plots.distribution(axis, bench.raw(zone, sectors_of(kb)), "raw", 0)
        plots.distribution(axis, bench.partition(zone, kb), "Clockwise", 1)
    plots.letters(axes, [f"{kb} KB" if kb < 1024 else "1 MB" for kb in CDF_SIZES_KB])
    plots.axis_titles(axes, SERVICE, SHARE)
    plots.legend(figure, axes[0])
    plots.note(figure, f"Zone {zone}. No bad blocks: the thesis's long tails are not modelled.")
    return figure


@plots.style()
def track_cache(bench: Bench) -> Figure:
    """Figs. 7.5 and 7.6."""
    sizes = (1, 2, *SIZES_KB)
    means = {
        "raw": [bench.raw(0, sectors_of(kb)).mean() for kb in sizes],
        "uncached": [bench.partition(0, kb).mean() for kb in sizes],
        "Clockwise cache": [bench.cached(0, kb)[0].mean() for kb in sizes],
    }
    figure, axes = plots.panels(1, 2, 3.0)
    for at, (name, values) in enumerate(means.items()):
        plots.line(axes[0], sizes, values, name, at)
    plots.powers_of_two(axes[0], sizes[::2])
    axes[0].set_yscale("log")
    axes[0].yaxis.set_major_formatter(plots.plain)
    axes[0].set_xlabel("Block (KB)")
    axes[0].set_ylabel("Mean service time (ms)")
    axes[0].legend(loc="upper left")
    shown = {
        "raw": bench.raw(0, sectors_of(512)),
        "uncached": bench.partition(0, 512),
        "1-track read-ahead": bench.cached(0, 512)[0],
        "next track (6 tracks)": bench.raw(0, 6 * bench.drive.track(0)),
    }
    for at, (name, values) in enumerate(shown.items()):
        plots.distribution(axes[1], values, name, at)
    axes[1].set_xlabel(SERVICE)
    axes[1].set_ylabel(SHARE)
    axes[1].legend(loc="upper left")
    axes[1].set_xlim(right=axes[1].get_xlim()[1] + 1)
    plots.letters(axes, ["mean by block", "512 KB"])
    plots.note(figure, "Zone 0. Blocks of a partition one behind the other, the platter at a random angle.")
    return figure


@plots.style()
def writes(bench: Bench) -> Figure:
    """Figs. 7.7 and 7.8."""
    track = bench.drive.track(0)
    figure, axes = plots.panels(1, 3, 2.9, sharey=True)
    for at, (name, n) in enumerate(
        (("10 tracks", 10 * track), ("10 and a sector", 10 * track + 1), ("11 tracks", 11 * track))
    ):
        plots.distribution(axes[0], bench.raw(0, n, write=True), name, at)
    plots.reference(axes[0], 11, 12 * source.REVOLUTION_MS, across=False)
    axes[0].legend(loc="upper left", fontsize=7, frameon=True, framealpha=1, edgecolor="none")
    for axis, zone in ((axes[1], 0), (axes[2], 11)):
        for at, (name, changes) in enumerate((("Fast SCSI-2", {}), ("Ultra-Wide", WIDE))):
            plots.distribution(axis, bench.raw(zone, 2048, write=True, **changes), f"raw, {name}", 2 * at)
            own = bench.partition(zone, 1024, write=True, **changes)
            plots.distribution(axis, own, f"Clockwise, {name}", 2 * at + 1)
    plots.reference(axes[1], 111, 120, across=False)
    for axis in axes:
        axis.set_xlabel(SERVICE)
    axes[0].set_ylabel(SHARE)
    plots.letters(axes, ["whole tracks, zone 0", "1 MB, zone 0", "1 MB, zone 11"])
    plots.legend(figure, axes[1])
    words = "Dotted: (a) 11 and 12 revolutions, (b) where most of the thesis's raw writes by Fast SCSI-2 are."
    plots.note(figure, words)
    return figure
