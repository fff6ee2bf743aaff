"""Figures: buses, cards and memory: Figs. 4.4, 4.13 to 4.19, 7.9 to 7.11, 8.1, and section 5.2.4."""

import numpy as np
from matplotlib.figure import Figure

from papers.clockwise import conflicts, memory, network, pci
from papers.clockwise.bus_claims import SEEDS, WORDS, SpeedUps, Strings
from papers.clockwise.experiments import SIZES_KB
from weir import plots

DISKS = np.arange(1, 13)


@plots.style()
def bursts() -> Figure:
    """Fig. 4.4."""
    figure, (axis,) = plots.panels(1, 1, 2.8)
    for at, (name, cycles) in enumerate(pci.SELECT_CYCLES.items()):
        label = f"{name} ({cycles} cycle{'s' if cycles > 1 else ''})"
        plots.line(axis, WORDS, pci.burst_mb_s(WORDS, name), label, at, markevery=(at * 4, 16))
    plots.reference(axis, 125.8)
    plots.reference(axis, 20, across=False)
    axis.set_xlim(0, 129)
    axis.set_ylim(0, 135)
    axis.set_xlabel("Burst (words of 4 bytes)")
    axis.set_ylabel("Bandwidth (MB/s)")
    axis.legend(loc="lower right")
    plots.note(figure, "Dotted: 125.8 MB/s, and 20 words.")
    return figure


@plots.style()
def speed_ups(found: SpeedUps) -> Figure:
    """Figs. 4.13, 4.14 and 7.9."""
    panels = [(op, mode) for mode in ("without bursts", "with bursts") for op in ("read", "write")]
    numbers = {panels[0]: 3.7, panels[1]: 1.8, panels[2]: 4.0, panels[3]: 3.5}
    figure, axes = plots.panels(2, 2, 4.4, sharex=True, sharey=True)
    for axis, panel in zip(axes, panels, strict=True):
        for disks in range(1, 5):
            ups = [found.up(*panel, disks, kb) for kb in SIZES_KB]
            label = f"{disks} disk{'s' if disks > 1 else ''}"
            plots.line(axis, SIZES_KB, ups, label, disks - 1)
        plots.reference(axis, numbers[panel])
        plots.powers_of_two(axis, SIZES_KB)
        axis.set_ylim(0, 4.4)
    plots.letters(axes, [f"{operation}, {mode}" for operation, mode in panels])
    plots.axis_titles(axes, "Block (KB)", "Speed-up over one disk")
    plots.legend(figure, axes[0])
    plots.note(figure, "Zone 0, a Fast SCSI-2 bus for each disk. Dotted: the thesis's four disks with 1 MB.")
    return figure


@plots.style()
def cheetahs(found: Strings) -> Figure:
    """Figs. 4.17 and 4.18."""
    figure, axes = plots.panels(1, 2, 3.0)
    for at, (operation, layout) in enumerate(
        (o, layout) for layout in ("3", "2+1") for o in ("read", "write")
    ):
        plots.line(axes[0], DISKS, found.aggregate(layout, operation), f"{operation}, {layout}", at)
    plots.reference(axes[0], 88, 100)
    axes[0].set_ylabel("Aggregate (MB/s)")
    axes[0].set_ylim(0, 112)
    axes[0].legend(loc="lower right")
    for at, layout in enumerate(("3", "2+1")):
        runs = np.array([conflicts.over_phases(int(n), layout, SEEDS) for n in DISKS]) / 1e3
        plots.line(axes[1], DISKS, runs.mean(axis=1), f"{layout}, phases at random", at)
        plots.band(axes[1], DISKS, runs.min(axis=1), runs.max(axis=1), at)
        step = [conflicts.in_step(int(n), layout) / 1e3 for n in DISKS]
        plots.line(axes[1], DISKS, step, f"{layout}, in step", at + 2)
    axes[1].set_ylabel("PCI conflicts (1,000/s)")
    axes[1].set_ylim(bottom=0)
    axes[1].legend(loc="upper left")
    for axis in axes:
        axis.set_xticks(DISKS)
        axis.set_xlabel("Disks")
    plots.letters(axes, ["throughput", "conflicts"])
    words = "3: bus after bus with three disks; 2+1: two on each, then a third. "
    plots.note(figure, words + "Dotted: the thesis's maxima. Shades: all phases.")
    return figure


@plots.style()
def shared_bus(found: Strings) -> Figure:
    """Figs. 7.10 and 8.1."""
    figure, axes = plots.panels(1, 2, 2.9)
    disks = np.arange(1, 7)
    # Two on each of three buses: only the first disk is alone.
    own = {n: found.times(1 if n == 1 else 2) for n in disks}
    plots.line(axes[0], disks, [own[n].mean() for n in disks], "mean", 0)
    plots.line(axes[0], disks, [np.quantile(own[n], 0.9) for n in disks], "90th percentile", 1)
    plots.band(axes[0], [2, 5], [72.0] * 2, [73.3] * 2, plots.PRINTED, alpha=0.3)
    plots.band(axes[0], [2, 5], [73.9] * 2, [75.3] * 2, plots.PRINTED, alpha=0.15)
    axes[0].set_ylim(60, 90)
    axes[0].set_xlabel("Disks, two on a bus")
    axes[0].set_ylabel("Service time of 1 MB (ms)")
    axes[0].legend(loc="upper left")
    for at, n in enumerate((1, 2, 3)):
        label = f"{n} disk{'s' if n > 1 else ''} on the bus"
        plots.distribution(axes[1], found.times(n), label, at)
    plots.reference(axes[1], 70, 73, 88, across=False)
    axes[1].set_xlabel("Service time of 1 MB (ms)")
    axes[1].set_ylabel("Share of requests")
    axes[1].legend(frameon=True, framealpha=1, edgecolor="none", loc="lower right", fontsize=7)
    plots.letters(axes, ["Fig. 7.10", "Fig. 8.1"])
    words = "Grey: the thesis's means and 90th percentiles of 2 to 5 disks. Dotted: its shortest times."
    plots.note(figure, words)
    return figure


@plots.style()
def cells() -> Figure:
    """Figs. 4.19 and 7.11."""
    sizes = np.arange(48, 9_001, 48) - network.TRAILER_BYTES
    packets = np.arange(16, 1537)
    figure, axes = plots.panels(1, 2, 3.0)
    for at, circuits in enumerate((1, 2, 4, 8)):
        label = f"{circuits} circuit{'s' if circuits > 1 else ''}"
        plots.line(axes[0], sizes, network.sent_mbit_s(sizes, circuits), label, at, marker="")
    plots.reference(axes[0], 135.7)
    axes[0].set_xscale("log")
    axes[0].xaxis.set_major_formatter(plots.plain)
    axes[0].set_xlabel("AAL5 packet (bytes)")
    axes[0].set_ylabel("User bandwidth (Mb/s)")
    axes[0].set_ylim(0, 150)
    axes[0].legend(loc="lower right")
    for at, (direction, card) in enumerate((d, c) for c in ("ncr810", "ncr875") for d in ("record", "play")):
        rates = [network.combined_mb_s(int(n), direction, card) for n in packets]
        name = f"{direction}, NCR53c{card.removeprefix('ncr')}"
        plots.line(axes[1], packets, rates, name, at, marker="", linewidth=1)
    plots.reference(axes[1], 43, 57)
    axes[1].set_ylim(0, 62)
    axes[1].set_xlabel("AAL5 packet (bytes)")
    axes[1].set_ylabel("Network and disk (MB/s)")
    axes[1].legend(loc="lower right")
    plots.letters(axes, ["Fig. 4.19", "Fig. 7.11"])
    plots.note(figure, "Dotted: the thesis's greatest and least rates.")
    return figure


@plots.style()
def broker() -> Figure:
    """Section 5.2.4: who has the memory."""
    figure, axes = plots.panels(1, 2, 2.9, sharey=True)
    for axis, obeys in zip(axes, (True, False), strict=True):
        found = memory.shared(obeys=obeys)
        at_s = np.array(found.at_ms) / 1e3
        names = list(found.held)
        colours = [plots.colour(at) for at in range(len(names))]
        axis.stackplot(at_s, *found.held.values(), labels=names, colors=colours, alpha=0.75, linewidth=0)
        axis.set_xlim(0, at_s[-1])
        axis.set_ylim(0, memory.BUFFERS)
        axis.set_xlabel("Time (s)")
    axes[0].set_ylabel("Buffers")
    plots.letters(axes, ["caches return what they are asked for", "it is taken from them"])
    plots.legend(figure, axes[0])
    plots.note(
        figure, "Streams come at 1.0 and 2.5 s. White: free; the last 64 buffers are kept for streams."
    )
    return figure
