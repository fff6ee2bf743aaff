"""Drawings of single disks: Figs. 4.5 to 4.7, 4.10, 7.3 to 7.8."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import ColorbarBase
from matplotlib.figure import Figure

from papers.clockwise import plot, source
from papers.clockwise.disk_claims import KNEE, bandwidth_mb_s, write_behind_mb_s
from papers.clockwise.disk_times import Drive
from papers.clockwise.experiments import CDF_SIZES_KB, SIZES_KB, WIDE, Bench, sectors_of
from weir.plots import draw
from weir.plots.style import style

ZONES = range(len(source.ZONES))
SHARE = "Share of requests"
SERVICE = "Service time (ms)"


def seeks(drive: Drive) -> Figure:
    """Fig. 4.5."""
    distance = np.arange(1, 5812)
    ours = np.array([drive.seek_ms(int(d)) for d in distance])
    formula = np.where(distance < KNEE, 9.5 - 1.5e-6 * (distance - 2000.0) ** 2, 6.1 + 0.002 * distance)
    with style():
        figure, (axis,) = plot.grid(1, 1, 2.8)
        plot.line(axis, distance, ours, "model: mean", 0, marker="")
        plot.line(axis, distance, formula, "the thesis's formulas, coefficients corrected", 1, marker="")
        axis.plot([1], [1.9], "k^", markersize=5, label="measured: 1.9 ms for one cylinder, 17.8 ms at most")
        axis.plot([5811], [17.8], "k^", markersize=5)
        plot.printed(axis, KNEE, across=False)
        axis.set_xlim(-60, 5900)
        axis.set_ylim(0, 20)
        axis.set_xlabel("Distance (cylinders)")
        axis.set_ylabel("Seek (ms)")
        axis.legend(frameon=False, loc="lower right")
        draw.note(figure, "Dotted: 1,500 cylinders. The model does not vary for one distance.")
    return figure


def bandwidths(bench: Bench) -> Figure:
    """Figs. 4.6, 4.7 and 4.10: bandwidth by block and zone."""
    with style():
        figure, axes = plot.grid(1, 3, 3.0, sharey=True, sharex=True)
        for zone in ZONES:
            look = {"color": plot.shade(zone / 11), "linewidth": 1.0, "markersize": 2}
            behind = [write_behind_mb_s(bench, zone, kb) for kb in SIZES_KB]
            axes[0].plot(SIZES_KB, behind, marker="o", **look)
            for axis, write in ((axes[1], False), (axes[2], True)):
                rates = [
                    kb / 1024 / bench.raw(zone, sectors_of(kb), write=write).mean() * 1e3 for kb in SIZES_KB
                ]
                axis.plot(SIZES_KB, rates, marker="o", **look)
        for axis in axes:
            plot.sizes(axis, SIZES_KB, ticks=SIZES_KB[::2])
            plot.printed(axis, 9.5)
            axis.set_xlabel(plot.BLOCK)
            axis.set_ylim(0, 10.8)
        axes[0].set_ylabel("Bandwidth (MB/s)")
        plot.letters(axes, ["write, drive's cache on", "read, cache off", "write, cache off"])
        _zones(figure, axes)
        draw.note(figure, "Means of up to 400 requests that begin a track. Dotted: Fast SCSI-2, 9.5 MB/s.")
    return figure


def zig_zag(bench: Bench) -> Figure:
    """Fig. 4.10 near whole tracks, and what passes the heads."""
    track = bench.drive.track(0)
    sectors = np.unique(np.concatenate([np.arange(1, 13) * track + more for more in (0, 10, 60, 120)]))
    with style():
        figure, (axis,) = plot.grid(1, 1, 2.6)
        for at, (name, write) in enumerate((("read", False), ("write", True))):
            rates = [n / 2048 / bench.raw(0, int(n), write=write).mean() * 1e3 for n in sectors]
            plot.line(axis, sectors / track, rates, name, at)
        plot.printed(axis, bandwidth_mb_s(bench.drive, track))
        axis.set_xticks(range(1, 14))
        axis.set_xlabel("Request (tracks of zone 0)")
        axis.set_ylabel("Bandwidth (MB/s)")
        axis.set_ylim(0, 11)
        axis.legend(frameon=False, loc="lower right")
        draw.note(figure, "Whole tracks and 10, 60 and 120 sectors more. Dotted: what passes the heads.")
    return figure


def _zones(figure: Figure, axes: list[Axes]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    colours = ListedColormap([plot.shade(zone / 11) for zone in ZONES])
    bar: ColorbarBase = figure.colorbar(
        ScalarMappable(Normalize(-0.5, 11.5), colours), ax=axes, shrink=0.9, ticks=range(0, 12, 2), pad=0.01
    )
    bar.set_label("Zone")
    bar.outline.set_visible(False)


def reads(bench: Bench, zone: int) -> Figure:
    """Figs. 7.3 and 7.4: distributions of service times, raw and of a partition."""
    with style():
        figure, axes = plot.grid(2, 3, 3.9, sharey=True)
        for axis, kb in zip(axes, CDF_SIZES_KB, strict=True):
            plot.distribution(axis, bench.raw(zone, sectors_of(kb)), "raw", 0)
            plot.distribution(axis, bench.partition(zone, kb), "Clockwise", 1)
        plot.letters(axes, [f"{kb} KB" if kb < 1024 else "1 MB" for kb in CDF_SIZES_KB])
        figure.supxlabel(SERVICE, fontsize=9)
        figure.supylabel(SHARE, fontsize=9)
        plot.legend(figure, axes[0])
        draw.note(figure, f"Zone {zone}. No bad blocks: the thesis's long tails are not modelled.")
    return figure


def track_cache(bench: Bench) -> Figure:
    """Figs. 7.5 and 7.6."""
    sizes = (1, 2, *SIZES_KB)
    means = {
        "raw": [bench.raw(0, sectors_of(kb)).mean() for kb in sizes],
        "uncached": [bench.partition(0, kb).mean() for kb in sizes],
        "Clockwise cache": [bench.cached(0, kb)[0].mean() for kb in sizes],
    }
    with style():
        figure, axes = plot.grid(1, 2, 3.0)
        for at, (name, values) in enumerate(means.items()):
            plot.line(axes[0], sizes, values, name, at)
        plot.sizes(axes[0], sizes, ticks=sizes[::2])
        axes[0].set_yscale("log")
        axes[0].yaxis.set_major_formatter(draw.plain)
        axes[0].set_xlabel(plot.BLOCK)
        axes[0].set_ylabel("Mean service time (ms)")
        axes[0].legend(frameon=False, loc="upper left")
        shown = {
            "raw": bench.raw(0, sectors_of(512)),
            "uncached": bench.partition(0, 512),
            "1-track read-ahead": bench.cached(0, 512)[0],
            "next track (6 tracks)": bench.raw(0, 6 * bench.drive.track(0)),
        }
        for at, (name, values) in enumerate(shown.items()):
            plot.distribution(axes[1], values, name, at)
        axes[1].set_xlabel(SERVICE)
        axes[1].set_ylabel(SHARE)
        axes[1].legend(frameon=False, loc="upper left")
        axes[1].set_xlim(right=axes[1].get_xlim()[1] + 1)
        plot.letters(axes, ["mean by block", "512 KB"])
        draw.note(
            figure, "Zone 0. Blocks of a partition one behind the other, the platter at a random angle."
        )
    return figure


def writes(bench: Bench) -> Figure:
    """Figs. 7.7 and 7.8."""
    track = bench.drive.track(0)
    with style():
        figure, axes = plot.grid(1, 3, 2.9, sharey=True)
        for at, (name, n) in enumerate(
            (("10 tracks", 10 * track), ("10 and a sector", 10 * track + 1), ("11 tracks", 11 * track))
        ):
            plot.distribution(axes[0], bench.raw(0, n, write=True), name, at)
        for rotations in (11, 12):
            plot.printed(axes[0], rotations * source.REVOLUTION_MS, across=False)
        axes[0].legend(loc="upper left", fontsize=7, frameon=True, framealpha=1, edgecolor="none")
        for axis, zone in ((axes[1], 0), (axes[2], 11)):
            for at, (name, changes) in enumerate((("Fast SCSI-2", {}), ("Ultra-Wide", WIDE))):
                plot.distribution(axis, bench.raw(zone, 2048, write=True, **changes), f"raw, {name}", 2 * at)
                own = bench.partition(zone, 1024, write=True, **changes)
                plot.distribution(axis, own, f"Clockwise, {name}", 2 * at + 1)
        for edge in (111, 120):
            plot.printed(axes[1], edge, across=False)
        for axis in axes:
            axis.set_xlabel(SERVICE)
        axes[0].set_ylabel(SHARE)
        plot.letters(axes, ["whole tracks, zone 0", "1 MB, zone 0", "1 MB, zone 11"])
        plot.legend(figure, axes[1])
        words = (
            "Dotted: (a) 11 and 12 revolutions, (b) where most of the thesis's raw writes by Fast SCSI-2 are."
        )
        draw.note(figure, words)
    return figure
