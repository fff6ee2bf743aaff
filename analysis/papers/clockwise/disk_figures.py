"""Figures: single disks: Figs. 4.5 to 4.7, 4.10, 7.3 to 7.8."""

import numpy as np
from matplotlib.figure import Figure

from papers.clockwise import CLAIMS, source
from papers.clockwise.disk_claims import KNEE, STROKE, bandwidth_mb_s, write_behind_mb_s
from papers.clockwise.disk_times import Drive
from papers.clockwise.experiments import CDF_SIZES_KB, SIZES_KB, WIDE, Bench, sectors_of
from weir import plots
from weir.plots import Curve

ZONES = range(len(source.ZONES))
SHARE = "Share of requests"
SERVICE = "Service time (ms)"


def seeks(drive: Drive) -> Figure:
    """Fig. 4.5."""
    distance = np.arange(1, 5812)
    formula = np.where(distance < KNEE, 9.5 - 1.5e-6 * (distance - 2000.0) ** 2, 6.1 + 0.002 * distance)
    measured = {"color": "#222222", "linestyle": "none", "marker": "^", "markersize": 5}
    short, knee, longest = (CLAIMS.register[f"B-F4.5 {one}"].paper for one in ("one", "knee", "longest"))
    found = {
        "model: mean": Curve(distance, [drive.seek_ms(int(d)) for d in distance]),
        "the thesis's formulas, coefficients corrected": Curve(distance, formula),
        "measured: one cylinder, and the longest": Curve([1, STROKE], [short, longest], more=measured),
    }
    return plots.curves(
        {("", name): one for name, one in found.items()}, "Distance (cylinders)", "Seek (ms)",
        at=[KNEE], level=[knee], ylim=(0, 20), legends=["lower right"],
        note="Dotted: 1,500 cylinders and 9.1 ms, where the curve becomes a line.",
    )  # fmt: skip


def bandwidths(bench: Bench, by_track: Bench) -> Figure:
    """Figs. 4.6, 4.7 and 4.10: bandwidth by block and zone; writes without a cache are of `by_track`."""
    found = {}
    for zone in ZONES:
        rates = {"(a) write, drive's cache on": [write_behind_mb_s(bench, zone, kb) for kb in SIZES_KB]} | {
            title: [kb / 1024 / of.raw(zone, sectors_of(kb), write=write).mean() * 1e3 for kb in SIZES_KB]
            for title, of, write in (
                ("(b) read, cache off", bench, False),
                ("(c) write, cache off", by_track, True),
            )
        }
        look = {"linewidth": 1.0, "markersize": 2, "marker": "o", "linestyle": "-"}
        found |= {(title, zone): Curve(SIZES_KB, own, more=look) for title, own in rates.items()}
    figure = plots.curves(
        found, "Block (KB)", "Bandwidth (MB/s)", share="xy", title="Zone",
        level=[CLAIMS.register["B-F4.6"].paper],
        note="Means of up to 400 requests that begin a track. Dotted: Fast SCSI-2, 9.5 MB/s.",
    )  # fmt: skip
    plots.powers_of_two(figure.axes[0], SIZES_KB[::2])
    return figure


def zig_zag(bench: Bench) -> Figure:
    """Fig. 4.10 near whole tracks, and what passes the heads."""
    track = bench.drive.track(0)
    sectors = np.unique(np.concatenate([np.arange(1, 13) * track + more for more in (0, 10, 60, 120)]))
    found = {
        ("", name): Curve(
            sectors / track,
            [n / 2048 / bench.raw(0, int(n), write=write).mean() * 1e3 for n in sectors],
            more={"marker": "."},
        )
        for name, write in (("read", False), ("write", True))
    }
    return plots.curves(
        found, "Request (tracks of zone 0)", "Bandwidth (MB/s)", level=[bandwidth_mb_s(bench.drive, track)],
        legends=["lower right"],
        note="Whole tracks and 10, 60 and 120 sectors more. Dotted: what passes the heads.",
    )  # fmt: skip


def reads(bench: Bench, zone: int) -> Figure:
    """Figs. 7.3 and 7.4: distributions of service times, raw and of a partition."""
    found = {}
    for kb in CDF_SIZES_KB:
        panel = f"{kb} KB" if kb < 1024 else "1 MB"
        found[panel, "raw"] = Curve.shares(bench.raw(zone, sectors_of(kb)))
        found[panel, "Clockwise"] = Curve.shares(bench.partition(zone, kb))
    note = f"Zone {zone}. No bad blocks: the thesis's long tails are not modelled."
    return plots.curves(found, SERVICE, SHARE, columns=3, share="y", note=note)


def track_cache(bench: Bench) -> Figure:
    """Figs. 7.5 and 7.6."""
    sizes = (1, 2, *SIZES_KB)
    left, right = "(a) mean by block", "(b) 512 KB"
    means = {
        "raw": [bench.raw(0, sectors_of(kb)).mean() for kb in sizes],
        "uncached": [bench.partition(0, kb).mean() for kb in sizes],
        "Clockwise cache": [bench.cached(0, kb)[0].mean() for kb in sizes],
    }
    shown = {
        "raw": bench.raw(0, sectors_of(512)),
        "uncached": bench.partition(0, 512),
        "1-track read-ahead": bench.cached(0, 512)[0],
        "next track (6 tracks)": bench.raw(0, 6 * bench.drive.track(0)),
    }
    figure = plots.curves(
        {(left, name): Curve(sizes, values) for name, values in means.items()}
        | {(right, name): Curve.shares(values) for name, values in shown.items()},
        ("Block (KB)", SERVICE), ("Mean service time (ms)", SHARE), ylim=None,
        note="Zone 0. Blocks of a partition one behind the other, the platter at a random angle.",
    )  # fmt: skip
    plots.powers_of_two(figure.axes[0], sizes[::2])
    plots.log_y(figure.axes[:1])
    return figure


def writes(bench: Bench) -> Figure:
    """Figs. 7.7 and 7.8."""
    track = bench.drive.track(0)
    tracks, outer, inner = "(a) whole tracks, zone 0", "(b) 1 MB, zone 0", "(c) 1 MB, zone 11"
    lengths = {"10 tracks": 10 * track, "10 and a sector": 10 * track + 1, "11 tracks": 11 * track}
    found = {(tracks, name): Curve.shares(bench.raw(0, n, write=True)) for name, n in lengths.items()}
    for panel, zone in ((outer, 0), (inner, 11)):
        for name, changes in (("Fast SCSI-2", {}), ("Ultra-Wide", WIDE)):
            own = bench.partition(zone, 1024, write=True, **changes)
            found[panel, f"raw, {name}"] = Curve.shares(bench.raw(zone, 2048, write=True, **changes))
            found[panel, f"Clockwise, {name}"] = Curve.shares(own)
    return plots.curves(
        found, SERVICE, SHARE, share="y",
        at={tracks: [n * source.REVOLUTION_MS for n in (11, 12)], outer: source.RAW_WRITES_MS},
        note="Dotted: (a) 11 and 12 revolutions, (b) where most of the thesis's raw writes by Fast SCSI-2 "
        "are.",
    )  # fmt: skip
