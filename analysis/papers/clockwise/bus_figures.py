"""Figures: buses, cards and memory: Figs. 4.4, 4.13 to 4.19, 7.9 to 7.11, 8.1, and section 5.2.4."""

import numpy as np
from matplotlib.figure import Figure

from papers.clockwise import CLAIMS, conflicts, memory, network, pci, source
from papers.clockwise.bus_claims import SEEDS, WORDS, SpeedUps, Strings
from papers.clockwise.experiments import SIZES_KB
from weir import plots
from weir.plots import Curve

DISKS = np.arange(1, 13)


def bursts() -> Figure:
    """Fig. 4.4."""
    found = {
        ("", f"{name} ({_several(cycles, 'cycle')})"): Curve(WORDS, pci.burst_mb_s(WORDS, name))
        for name, cycles in pci.SELECT_CYCLES.items()
    }
    return plots.curves(
        found, "Burst (words of 4 bytes)", "Bandwidth (MB/s)", level=_paper("B-F4.4"), at=[20],
        xlim=(0, 129), legends=["lower right"],
        note="Dotted: 125.8 MB/s, and 20 words.",
    )  # fmt: skip


def speed_ups(found: SpeedUps) -> Figure:
    """Figs. 4.13, 4.14 and 7.9."""
    panels = {
        ("read", "without bursts"): "B-F4.13", ("write", "without bursts"): "B-F4.13",
        ("read", "with bursts"): "B-F4.14", ("write", "with bursts"): "B-F4.14",
    }  # fmt: skip
    modes = {"with bursts": "with bursts", "without bursts": CLAIMS.register["B-F4.13 read"].setting}
    lines = {
        (f"{operation}, {bursts}", _several(disks, "disk")): Curve(
            SIZES_KB, [found.up(operation, modes[bursts], disks, kb) for kb in SIZES_KB]
        )
        for operation, bursts in panels
        for disks in range(1, 5)
    }
    printed = {
        f"{operation}, {bursts}": _paper(f"{claim} {operation}")
        for (operation, bursts), claim in panels.items()
    }
    figure = plots.curves(
        lines, "Block (KB)", "Speed-up over one disk", columns=2, share="xy",
        level=printed,
        note="Zone 0, a Fast SCSI-2 bus for each disk. Dotted: the thesis's four disks with 1 MB.",
    )  # fmt: skip
    plots.powers_of_two(figure.axes[0], SIZES_KB)
    return figure


def cheetahs(found: Strings) -> Figure:
    """Figs. 4.17 and 4.18."""
    left, right, layouts = "(a) throughput", "(b) conflicts", ("3", "2+1")
    lines = {
        (left, f"{operation}, {layout}"): Curve(DISKS, found.aggregate(layout, operation))
        for layout in layouts
        for operation in ("read", "write")
    }
    for layout in layouts:
        runs = np.array([conflicts.over_phases(int(n), layout, SEEDS) for n in DISKS]) / 1e3
        step = [conflicts.in_step(int(n), layout) / 1e3 for n in DISKS]
        lines[right, f"{layout}, phases at random"] = Curve(
            DISKS, runs.mean(axis=1), runs.min(axis=1), runs.max(axis=1)
        )
        lines[right, f"{layout}, in step"] = Curve(DISKS, step)
    return plots.curves(
        lines, "Disks", ("Aggregate (MB/s)", "PCI conflicts (1,000/s)"),
        level={left: _paper("B-F4.17 read", "B-F4.17 write")},
        legends=("lower right", "upper left"),
        note="3: bus after bus with three disks; 2+1: two on each, then a third. Dotted: the thesis's "
        "maxima. Shades: all phases.",
    )  # fmt: skip


def shared_bus(found: Strings) -> Figure:
    """Figs. 7.10 and 8.1."""
    left, right, ends = "(a) Fig. 7.10", "(b) Fig. 8.1", [2, 5]
    # Two on each of three buses: only the first disk is alone.
    own = {n: found.times(1 if n == 1 else 2) for n in range(1, 7)}
    grey = {"color": plots.PRINTED, "linewidth": 0, "marker": ""}
    lines = {
        (left, "mean"): Curve(list(own), [times.mean() for times in own.values()]),
        (left, "90th percentile"): Curve(list(own), [np.quantile(times, 0.9) for times in own.values()]),
        (left, ""): [
            Curve(ends, [low] * 2, [low] * 2, [high] * 2, more=grey) for low, high in source.PARALLEL_MS
        ],
    } | {(right, f"{_several(n, 'disk')} on the bus"): Curve.shares(found.times(n)) for n in (1, 2, 3)}
    service = "Service time of 1 MB (ms)"
    figure = plots.curves(
        lines, ("Disks, two on a bus", service), (service, "Share of requests"),
        at={right: _paper("B-F8.1 one", "B-F8.1 two", "B-F8.1 three")},
        note="Grey: the thesis's means and 90th percentiles of 2 to 5 disks. Dotted: its shortest times.",
    )  # fmt: skip
    figure.axes[0].set_ylim(60, 90)
    return figure


def cells() -> Figure:
    """Figs. 4.19 and 7.11."""
    left, right = "(a) Fig. 4.19", "(b) Fig. 7.11"
    sizes = np.arange(48, 9_001, 48) - network.TRAILER_BYTES
    packets = np.arange(16, 1537)
    lines = {
        (left, _several(circuits, "circuit")): Curve(sizes, network.sent_mbit_s(sizes, circuits))
        for circuits in (1, 2, 4, 8)
    } | {
        (right, f"{direction}, NCR53c{card.removeprefix('ncr')}"): Curve(
            packets, [network.combined_mb_s(int(n), direction, card) for n in packets]
        )
        for card in ("ncr810", "ncr875")
        for direction in ("record", "play")
    }
    figure = plots.curves(
        lines, "AAL5 packet (bytes)", ("User bandwidth (Mb/s)", "Network and disk (MB/s)"),
        level={left: _paper("B-F4.19 most"), right: _paper("B-F7.11 least", "B-F7.11 most")},
        legends=["lower right"] * 2,
        note="Dotted: the thesis's greatest and least rates.",
    )  # fmt: skip
    plots.log_x(figure.axes[0])
    return figure


def _paper(*ids: str) -> list[float]:
    """The thesis's numbers of claims."""
    return [paper for id in ids if (paper := CLAIMS.register[id].paper) is not None]


def _several(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


@plots.style()
def broker() -> Figure:
    """Section 5.2.4: who has the memory."""
    figure, axes = plots.panels(1, 2, 2.9, sharey=True)
    titles = {"(a) caches return what they are asked for": True, "(b) it is taken from them": False}
    for axis, (title, obeys) in zip(axes, titles.items(), strict=True):
        found = memory.shared(obeys=obeys)
        at_s = np.array(found.at_ms) / 1e3
        own = {"labels": list(found.held), "colors": plots.PALETTE, "alpha": 0.75, "linewidth": 0}
        axis.stackplot(at_s, *found.held.values(), **own)
        axis.set(xlim=(0, at_s[-1]), ylim=(0, memory.BUFFERS), xlabel="Time (s)")
        axis.set_title(title, loc="left")
    axes[0].set_ylabel("Buffers")
    plots.legend(figure, axes[0])
    plots.note(
        figure, "Streams come at 1.0 and 2.5 s. White: free; the last 64 buffers are kept for streams."
    )
    return figure
