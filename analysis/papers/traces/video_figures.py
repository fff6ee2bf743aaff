"""Drawings of video: Shenoy Fig. 5, Bosch Figs. 3.1-3.3."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from papers.traces import paper, series
from papers.traces.video import SECONDS, MotionJpeg, Mpeg
from weir.binary_cache import NOT_AT_HAND
from weir.plots import draw
from weir.plots.style import LINES, MARKERS, PALETTE, WIDTH_INCH, style

#: The colour of what a paper prints.
PRINTED = "#333333"
#: Points along a film: more than a printed page resolves.
BINS = 400


def rates(mpeg: Mpeg) -> Figure:
    """Shenoy Fig. 5: one film's rate, and ten clients', over windows of a second."""
    with style():
        figure, axes = _grid(2, 1, 4.2)
        axes[0].plot(mpeg.single(0), color=PALETTE[0], linewidth=1, label="Frasier, synthetic")
        axes[0].axhline(paper.MPEG_MBIT_S["frasier"], **_printed("paper: mean"))
        if mpeg.real is None:
            _absent(axes[0])
        else:
            real = series.frame_rates_mbit_s(mpeg.real.frames, mpeg.real.rate_hz)
            shown = real[:SECONDS]
            scaled = shown * paper.MPEG_MBIT_S["frasier"] / shown.mean()
            label = f"real: {mpeg.real.name}, scaled to the same mean"
            axes[0].plot(scaled, color=PALETTE[1], linewidth=0.8, linestyle=LINES[1], label=label)
        axes[1].plot(mpeg.together(0), color=PALETTE[0], linewidth=1, label="ten clients, synthetic")
        mean = np.mean(list(paper.MPEG_MBIT_S.values())) * paper.AGGREGATE_CLIENTS
        axes[1].axhline(mean, **_printed("ten times the mean of Table 2"))
        for axis, part in zip(axes, "ab", strict=True):
            axis.set_ylabel("rate (Mb/s)")
            axis.set_ylim(bottom=0, top=axis.get_ylim()[1] * 1.18)
            axis.set_title(f"({part})", loc="left")
            axis.margins(x=0)
            axis.legend(frameon=False, ncols=3, loc="upper right")
        axes[0].tick_params(labelbottom=False)
        axes[1].set_xlabel("time (s)")
        draw.note(figure, "Means over windows of 1 s; seed 1.")
    return figure


def frame_sizes(films: MotionJpeg) -> Figure:
    """Bosch Fig. 3.1: sizes of frames over time."""
    shown = films.panels()
    with style():
        figure, axes = _grid(len(shown), 1, 1.3 * len(shown) + 0.4)
        for at, (axis, (name, frames, rate_hz)) in enumerate(zip(axes, shown, strict=True)):
            time_min, low, mean, high = envelope(frames / series.KB, rate_hz)
            colour = PALETTE[0 if at < len(paper.FILMS) else 1]
            axis.fill_between(time_min, low, high, color=colour, alpha=0.3, linewidth=0, label="all frames")
            axis.plot(time_min, mean, color=colour, linewidth=0.8, label="mean")
            if at < len(paper.FILMS):
                film = paper.FILMS[at]
                axis.axhline(film.mean_kb, **_printed("paper: mean and standard deviation"))
                for side in (-1, 1):
                    axis.axhline(
                        film.mean_kb + side * film.std_kb, color=PRINTED, linewidth=0.7, linestyle=":"
                    )
            axis.set_title(name, loc="left")
            axis.set_ylabel("frame (KB)")
            axis.set_ylim(bottom=0)
            axis.margins(x=0)
        axes[-1].set_xlabel("time (min)")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=3, frameon=False)
        draw.note(figure, _with_absence(films, "Seed 1. KB = 1024 bytes."))
    return figure


def delay_distributions(films: MotionJpeg) -> Figure:
    """Bosch Fig. 3.2: distributions of the inter-block delay by size of the block."""
    shown = films.panels()
    with style():
        figure, axes = _grid(2, 2, 4.6)
        for axis, (name, frames, rate_hz) in zip(axes, shown, strict=False):
            mean = 1e6 * series.KB / (frames.mean() * rate_hz)
            for at, block_kb in enumerate(paper.BLOCKS_KB):
                delays = series.block_delays_us_per_kb(frames, rate_hz, block_kb * series.KB)
                value, counts = np.unique(delays, return_counts=True)
                share = np.cumsum(counts) / len(delays)
                look = {"color": PALETTE[at], "linestyle": LINES[at % len(LINES)], "linewidth": 1.2}
                x = np.concatenate(([0], value, [1e9]))
                axis.step(x, np.concatenate(([0], share, [1])), where="post", label=f"{block_kb} KB", **look)
            axis.axvline(mean / series.EARLY, **_printed("a tenth faster than the mean"))
            axis.axhline(paper.EARLY_SHARE, color=PRINTED, linewidth=0.7, linestyle=":", label="paper: 20 %")
            axis.set_xlim(0, 2.6 * mean)
            axis.set_ylim(0, 1.02)
            axis.set_title(name, loc="left")
        for axis in axes[len(shown) :]:
            axis.set_axis_off()
            _absent(axis)
        figure.supxlabel("inter-block delay (us/KB)", fontsize=9)
        figure.supylabel("share that is not longer", fontsize=9)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=4, frameon=False)
        draw.note(figure, _with_absence(films, "Seed 1. Delays of 4 KB blocks go beyond the right edge."))
    return figure


def delay_spreads(films: MotionJpeg) -> Figure:
    """Bosch Fig. 3.3: mean and standard deviation of the inter-block delay by size of the block."""
    shown = films.panels()
    with style():
        figure, axes = _grid(2, 2, 4.2)
        for at, (axis, (name, frames, rate_hz)) in enumerate(zip(axes, shown, strict=False)):
            found = [series.block_delays_us_per_kb(frames, rate_hz, kb * series.KB) for kb in paper.BLOCKS_KB]
            mean, std = np.array([d.mean() for d in found]), np.array([d.std() for d in found])
            is_real = at >= len(paper.FILMS)
            axis.errorbar(
                paper.BLOCKS_KB, mean, std, color=PALETTE[int(is_real)], marker=MARKERS[int(is_real)],
                markersize=4, linewidth=1, capsize=3, label="mean and standard deviation",
            )  # fmt: skip
            if not is_real:
                axis.axhline(1e6 / paper.FILMS[at].kb_s, **_printed("mean of the printed rate"))
            axis.set_xscale("log", base=2)
            axis.set_xticks(paper.BLOCKS_KB)
            axis.xaxis.set_major_formatter(FuncFormatter(draw.plain))
            axis.xaxis.set_minor_locator(NullLocator())
            axis.set_title(name, loc="left")
        for axis in axes[len(shown) :]:
            axis.set_axis_off()
            _absent(axis)
        figure.supxlabel("block (KB)", fontsize=9)
        figure.supylabel("inter-block delay (us/KB)", fontsize=9)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False)
        draw.note(figure, _with_absence(films, "Seed 1; the bars are the standard deviation of blocks."))
    return figure


def envelope(values: np.ndarray, rate_hz: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times in minutes; lowest, mean and highest value of about 400 equal parts of a film."""
    length = max(len(values) // BINS, 1)
    parts = values[: len(values) // length * length].reshape(-1, length)
    time_min = (np.arange(len(parts)) + 0.5) * length / rate_hz / 60
    return time_min, parts.min(axis=1), parts.mean(axis=1), parts.max(axis=1)


def _grid(rows: int, cols: int, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH_INCH, height), layout="constrained")
    return figure, list(figure.subplots(rows, cols, squeeze=False).flat)


def _printed(label: str) -> dict[str, object]:
    return {"color": PRINTED, "linewidth": 0.9, "linestyle": (0, (4, 2)), "label": label}


def _absent(axis: Axes) -> None:
    axis.text(0.98, 0.06, NOT_AT_HAND, transform=axis.transAxes, ha="right", color="#666666", fontsize=8)


def _with_absence(films: MotionJpeg, words: str) -> str:
    return f"{words} {NOT_AT_HAND.capitalize()}." if films.real is None else words
