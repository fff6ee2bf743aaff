"""Figures: video: Shenoy Fig. 5, Bosch Figs. 3.1-3.3."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.traces import paper, series
from papers.traces.video import SECONDS, MotionJpeg, Mpeg
from weir import plots
from weir.binary_cache import NOT_AT_HAND

#: Points along a film: more than a printed page resolves.
BINS = 400


@plots.style()
def rates(mpeg: Mpeg) -> Figure:
    """Shenoy Fig. 5: one film's rate, and ten clients', over windows of a second."""
    figure, axes = plots.panels(2, 1, 4.2)
    axes[0].plot(mpeg.single(0), color=plots.colour(0), linewidth=1, label="Frasier, synthetic")
    plots.reference(axes[0], paper.MPEG_MBIT_S["frasier"], line="--", label="paper: mean")
    if mpeg.real is None:
        _absent(axes[0])
    else:
        real = series.frame_rates_mbit_s(mpeg.real.frames, mpeg.real.rate_hz)
        shown = real[:SECONDS]
        scaled = shown * paper.MPEG_MBIT_S["frasier"] / shown.mean()
        label = f"real: {mpeg.real.name}, scaled to the same mean"
        axes[0].plot(scaled, color=plots.colour(1), linewidth=0.8, linestyle=plots.line_style(1), label=label)
    axes[1].plot(mpeg.together(0), color=plots.colour(0), linewidth=1, label="ten clients, synthetic")
    mean = np.mean(list(paper.MPEG_MBIT_S.values())) * paper.AGGREGATE_CLIENTS
    plots.reference(axes[1], mean, line="--", label="ten times the mean of Table 2")
    for axis, part in zip(axes, "ab", strict=True):
        axis.set_ylabel("rate (Mb/s)")
        axis.set_ylim(bottom=0, top=axis.get_ylim()[1] * 1.18)
        axis.set_title(f"({part})", loc="left")
        axis.margins(x=0)
        axis.legend(ncols=3, loc="upper right")
    axes[0].tick_params(labelbottom=False)
    axes[1].set_xlabel("time (s)")
    plots.note(figure, "Means over windows of 1 s; seed 1.")
    return figure


@plots.style()
def frame_sizes(films: MotionJpeg) -> Figure:
    """Bosch Fig. 3.1: sizes of frames over time."""
    shown = films.panels()
    figure, axes = plots.panels(len(shown), 1, 1.3 * len(shown) + 0.4)
    for at, (axis, (name, frames, rate_hz)) in enumerate(zip(axes, shown, strict=True)):
        time_min, low, mean, high = envelope(frames / series.KB, rate_hz)
        of = 0 if at < len(paper.FILMS) else 1
        plots.band(axis, time_min, low, high, of, alpha=0.3, label="all frames")
        axis.plot(time_min, mean, color=plots.colour(of), linewidth=0.8, label="mean")
        if at < len(paper.FILMS):
            film = paper.FILMS[at]
            plots.reference(axis, film.mean_kb, line="--", label="paper: mean and standard deviation")
            plots.reference(axis, film.mean_kb - film.std_kb, film.mean_kb + film.std_kb)
        axis.set_title(name, loc="left")
        axis.set_ylabel("frame (KB)")
        axis.set_ylim(bottom=0)
        axis.margins(x=0)
    axes[-1].set_xlabel("time (min)")
    plots.legend(figure, axes[0], 3, loc="outside upper right")
    plots.note(figure, _with_absence(films, "Seed 1. KB = 1024 bytes."))
    return figure


@plots.style()
def delay_distributions(films: MotionJpeg) -> Figure:
    """Bosch Fig. 3.2: distributions of the inter-block delay by size of the block."""
    shown = films.panels()
    figure, axes = plots.panels(2, 2, 4.6)
    for axis, (name, frames, rate_hz) in zip(axes, shown, strict=False):
        mean = 1e6 * series.KB / (frames.mean() * rate_hz)
        for at, block_kb in enumerate(paper.BLOCKS_KB):
            delays = series.block_delays_us_per_kb(frames, rate_hz, block_kb * series.KB)
            value, counts = np.unique(delays, return_counts=True)
            share = np.cumsum(counts) / len(delays)
            look = plots.look(at, marker="", linewidth=1.2, label=f"{block_kb} KB")
            x = np.concatenate(([0], value, [1e9]))
            axis.step(x, np.concatenate(([0], share, [1])), where="post", **look)
        plots.reference(
            axis, mean / series.EARLY, across=False, line="--", label="a tenth faster than the mean"
        )
        plots.reference(axis, paper.EARLY_SHARE, label="paper: 20 %")
        axis.set_xlim(0, 2.6 * mean)
        axis.set_ylim(0, 1.02)
        axis.set_title(name, loc="left")
    _hide_absent(axes[len(shown) :])
    plots.axis_titles(axes, "inter-block delay (us/KB)", "share that is not longer")
    plots.legend(figure, axes[0], 4, loc="outside upper right")
    plots.note(figure, _with_absence(films, "Seed 1. Delays of 4 KB blocks go beyond the right edge."))
    return figure


@plots.style()
def delay_spreads(films: MotionJpeg) -> Figure:
    """Bosch Fig. 3.3: mean and standard deviation of the inter-block delay by size of the block."""
    shown = films.panels()
    figure, axes = plots.panels(2, 2, 4.2)
    for at, (axis, (name, frames, rate_hz)) in enumerate(zip(axes, shown, strict=False)):
        found = [series.block_delays_us_per_kb(frames, rate_hz, kb * series.KB) for kb in paper.BLOCKS_KB]
        mean, std = np.array([d.mean() for d in found]), np.array([d.std() for d in found])
        is_real = at >= len(paper.FILMS)
        look = plots.look(int(is_real), linestyle="-", linewidth=1, markersize=4)
        axis.errorbar(paper.BLOCKS_KB, mean, std, capsize=3, label="mean and standard deviation", **look)
        if not is_real:
            plots.reference(axis, 1e6 / paper.FILMS[at].kb_s, line="--", label="mean of the printed rate")
        plots.powers_of_two(axis, paper.BLOCKS_KB)
        axis.set_title(name, loc="left")
    _hide_absent(axes[len(shown) :])
    plots.axis_titles(axes, "block (KB)", "inter-block delay (us/KB)")
    plots.legend(figure, axes[0], 2, loc="outside upper right")
    plots.note(figure, _with_absence(films, "Seed 1; the bars are the standard deviation of blocks."))
    return figure


def envelope(values: np.ndarray, rate_hz: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times in minutes; lowest, mean and highest value of about 400 equal parts of a film."""
    length = max(len(values) // BINS, 1)
    parts = values[: len(values) // length * length].reshape(-1, length)
    time_min = (np.arange(len(parts)) + 0.5) * length / rate_hz / 60
    return time_min, parts.min(axis=1), parts.mean(axis=1), parts.max(axis=1)


def _absent(axis: Axes) -> None:
    axis.text(0.98, 0.06, NOT_AT_HAND, transform=axis.transAxes, ha="right", color="#666666", fontsize=8)


def _hide_absent(axes: list[Axes]) -> None:
    for axis in axes:
        axis.set_axis_off()
        _absent(axis)


def _with_absence(films: MotionJpeg, words: str) -> str:
    return f"{words} {NOT_AT_HAND.capitalize()}." if films.real is None else words
