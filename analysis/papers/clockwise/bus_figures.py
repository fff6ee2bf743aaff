"""Drawings of buses, cards and memory: Figs. 4.4, 4.13 to 4.19, 7.9 to 7.11, 8.1, and section 5.2.4."""

import numpy as np
from matplotlib.figure import Figure

from papers.clockwise import conflicts, memory, network, pci, plot
from papers.clockwise.bus_claims import SEEDS, WORDS, SpeedUps, Strings
from papers.clockwise.experiments import SIZES_KB
from weir.plots import draw
from weir.plots.style import LINES, PALETTE, style

DISKS = np.arange(1, 13)


def bursts() -> Figure:
    """Fig. 4.4."""
    with style():
        figure, (axis,) = plot.grid(1, 1, 2.8)
        for at, (name, cycles) in enumerate(pci.SELECT_CYCLES.items()):
            label = f"{name} ({cycles} cycle{'s' if cycles > 1 else ''})"
            plot.line(axis, WORDS, pci.burst_mb_s(WORDS, name), label, at, markevery=(at * 4, 16))
        plot.printed(axis, 125.8)
        plot.printed(axis, 20, across=False)
        axis.set_xlim(0, 129)
        axis.set_ylim(0, 135)
        axis.set_xlabel("Burst (words of 4 bytes)")
        axis.set_ylabel("Bandwidth (MB/s)")
        axis.legend(frameon=False, loc="lower right")
        draw.note(figure, "Dotted: 125.8 MB/s, and 20 words.")
    return figure


def speed_ups(found: SpeedUps) -> Figure:
    """Figs. 4.13, 4.14 and 7.9."""
    panels = [(op, mode) for mode in ("without bursts", "with bursts") for op in ("read", "write")]
    numbers = {panels[0]: 3.7, panels[1]: 1.8, panels[2]: 4.0, panels[3]: 3.5}
    with style():
        figure, axes = plot.grid(2, 2, 4.4, sharex=True, sharey=True)
        for axis, panel in zip(axes, panels, strict=True):
            for disks in range(1, 5):
                ups = [found.up(*panel, disks, kb) for kb in SIZES_KB]
                label = f"{disks} disk{'s' if disks > 1 else ''}"
                plot.line(axis, SIZES_KB, ups, label, disks - 1)
            plot.printed(axis, numbers[panel])
            plot.sizes(axis, SIZES_KB)
            axis.set_ylim(0, 4.4)
        plot.letters(axes, [f"{operation}, {mode}" for operation, mode in panels])
        figure.supxlabel(plot.BLOCK, fontsize=9)
        figure.supylabel("Speed-up over one disk", fontsize=9)
        plot.legend(figure, axes[0])
        draw.note(
            figure, "Zone 0, a Fast SCSI-2 bus for each disk. Dotted: the thesis's four disks with 1 MB."
        )
    return figure


def cheetahs(found: Strings) -> Figure:
    """Figs. 4.17 and 4.18."""
    with style():
        figure, axes = plot.grid(1, 2, 3.0)
        for at, (operation, layout) in enumerate(
            (o, layout) for layout in ("3", "2+1") for o in ("read", "write")
        ):
            plot.line(axes[0], DISKS, found.aggregate(layout, operation), f"{operation}, {layout}", at)
        for value in (88, 100):
            plot.printed(axes[0], value)
        axes[0].set_ylabel("Aggregate (MB/s)")
        axes[0].set_ylim(0, 112)
        axes[0].legend(frameon=False, loc="lower right")
        for at, layout in enumerate(("3", "2+1")):
            runs = np.array([conflicts.over_phases(int(n), layout, SEEDS) for n in DISKS]) / 1e3
            plot.line(axes[1], DISKS, runs.mean(axis=1), f"{layout}, phases at random", at)
            colour = PALETTE[at]
            axes[1].fill_between(
                DISKS, runs.min(axis=1), runs.max(axis=1), color=colour, alpha=0.2, linewidth=0
            )
            step = [conflicts.in_step(int(n), layout) / 1e3 for n in DISKS]
            plot.line(axes[1], DISKS, step, f"{layout}, in step", at + 2)
        axes[1].set_ylabel("PCI conflicts (1,000/s)")
        axes[1].set_ylim(bottom=0)
        axes[1].legend(frameon=False, loc="upper left")
        for axis in axes:
            axis.set_xticks(DISKS)
            axis.set_xlabel("Disks")
        plot.letters(axes, ["throughput", "conflicts"])
        words = "3: bus after bus with three disks; 2+1: two on each, then a third. "
        draw.note(figure, words + "Dotted: the thesis's maxima. Shades: all phases.")
    return figure


def shared_bus(found: Strings) -> Figure:
    """Figs. 7.10 and 8.1."""
    with style():
        figure, axes = plot.grid(1, 2, 2.9)
        disks = np.arange(1, 7)
        # Two on each of three buses: only the first disk is alone.
        own = {n: found.times(1 if n == 1 else 2) for n in disks}
        plot.line(axes[0], disks, [own[n].mean() for n in disks], "mean", 0)
        plot.line(axes[0], disks, [np.quantile(own[n], 0.9) for n in disks], "90th percentile", 1)
        axes[0].fill_between([2, 5], 72.0, 73.3, color=plot.PRINTED, alpha=0.3, linewidth=0)
        axes[0].fill_between([2, 5], 73.9, 75.3, color=plot.PRINTED, alpha=0.15, linewidth=0)
        axes[0].set_ylim(60, 90)
        axes[0].set_xlabel("Disks, two on a bus")
        axes[0].set_ylabel("Service time of 1 MB (ms)")
        axes[0].legend(frameon=False, loc="upper left")
        for at, n in enumerate((1, 2, 3)):
            label = f"{n} disk{'s' if n > 1 else ''} on the bus"
            plot.distribution(axes[1], found.times(n), label, at)
        for value in (70, 73, 88):
            plot.printed(axes[1], value, across=False)
        axes[1].set_xlabel("Service time of 1 MB (ms)")
        axes[1].set_ylabel("Share of requests")
        axes[1].legend(frameon=True, framealpha=1, edgecolor="none", loc="lower right", fontsize=7)
        plot.letters(axes, ["Fig. 7.10", "Fig. 8.1"])
        words = "Grey: the thesis's means and 90th percentiles of 2 to 5 disks. Dotted: its shortest times."
        draw.note(figure, words)
    return figure


def cells() -> Figure:
    """Figs. 4.19 and 7.11."""
    sizes = np.arange(48, 9_001, 48) - network.TRAILER_BYTES
    packets = np.arange(16, 1537)
    with style():
        figure, axes = plot.grid(1, 2, 3.0)
        for at, circuits in enumerate((1, 2, 4, 8)):
            label = f"{circuits} circuit{'s' if circuits > 1 else ''}"
            plot.line(axes[0], sizes, network.sent_mbit_s(sizes, circuits), label, at, marker="")
        plot.printed(axes[0], 135.7)
        axes[0].set_xscale("log")
        axes[0].xaxis.set_major_formatter(draw.plain)
        axes[0].set_xlabel("AAL5 packet (bytes)")
        axes[0].set_ylabel("User bandwidth (Mb/s)")
        axes[0].set_ylim(0, 150)
        axes[0].legend(frameon=False, loc="lower right")
        for at, (direction, card) in enumerate(
            (d, c) for c in ("ncr810", "ncr875") for d in ("record", "play")
        ):
            rates = [network.combined_mb_s(int(n), direction, card) for n in packets]
            name = f"{direction}, NCR53c{card.removeprefix('ncr')}"
            axes[1].plot(packets, rates, label=name, color=PALETTE[at], linestyle=LINES[at], linewidth=1)
        for value in (43, 57):
            plot.printed(axes[1], value)
        axes[1].set_ylim(0, 62)
        axes[1].set_xlabel("AAL5 packet (bytes)")
        axes[1].set_ylabel("Network and disk (MB/s)")
        axes[1].legend(frameon=False, loc="lower right")
        plot.letters(axes, ["Fig. 4.19", "Fig. 7.11"])
        draw.note(figure, "Dotted: the thesis's greatest and least rates.")
    return figure


def broker() -> Figure:
    """Section 5.2.4: who has the memory."""
    with style():
        figure, axes = plot.grid(1, 2, 2.9, sharey=True)
        for axis, obeys in zip(axes, (True, False), strict=True):
            found = memory.shared(obeys=obeys)
            at_s = np.array(found.at_ms) / 1e3
            names = list(found.held)
            colours = [PALETTE[at] for at in range(len(names))]
            axis.stackplot(at_s, *found.held.values(), labels=names, colors=colours, alpha=0.75, linewidth=0)
            axis.set_xlim(0, at_s[-1])
            axis.set_ylim(0, memory.BUFFERS)
            axis.set_xlabel("Time (s)")
        axes[0].set_ylabel("Buffers")
        plot.letters(axes, ["caches return what they are asked for", "it is taken from them"])
        plot.legend(figure, axes[0])
        draw.note(
            figure, "Streams come at 1.0 and 2.5 s. White: free; the last 64 buffers are kept for streams."
        )
    return figure
