"""Figures: video: Shenoy Fig. 5, Bosch Figs. 3.1-3.3."""

import numpy as np
from matplotlib.figure import Figure

from papers.traces import paper, series
from papers.traces.video import SECONDS, MotionJpeg, Mpeg
from weir import plots
from weir.binary_cache import NOT_AT_HAND
from weir.plots import Curve
from weir.statistics import Interval

#: Points along a film: more than a printed page resolves.
BINS = 400


def rates(mpeg: Mpeg) -> Figure:
    """Shenoy Fig. 5: one film's rate, and ten clients', over windows of a second."""
    one, ten = "(a)", "(b)"
    mean = np.mean(list(paper.MPEG_MBIT_S.values())) * paper.AGGREGATE_CLIENTS
    lines = {
        (one, "Frasier, synthetic"): _by_second(mpeg.single(0)),
        (ten, "ten clients, synthetic"): _by_second(mpeg.together(0)),
    }
    if mpeg.real is not None:
        shown = series.frame_rates_mbit_s(mpeg.real.frames, mpeg.real.rate_hz)[:SECONDS]
        scaled = shown * paper.MPEG_MBIT_S["frasier"] / shown.mean()
        lines[one, f"real: {mpeg.real.name}, scaled to the same mean"] = _by_second(scaled)
    absent = f" {NOT_AT_HAND.capitalize()}." if mpeg.real is None else ""
    return plots.curves(
        lines, ("", "time (s)"), "rate (Mb/s)", columns=1,
        level={one: [paper.MPEG_MBIT_S["frasier"]], ten: [mean]},
        note="Means over windows of 1 s; seed 1. Dotted: the paper's mean, and ten times the mean of its "
        f"Table 2.{absent}",
    )  # fmt: skip


def _by_second(rates: np.ndarray) -> Curve:
    return Curve(range(len(rates)), rates, more={"linewidth": 0.9})


def frame_sizes(films: MotionJpeg) -> Figure:
    """Bosch Fig. 3.1: sizes of frames over time."""
    lines, printed = {}, {}
    for film, (name, frames, rate_hz) in zip([*paper.FILMS, None], films.panels(), strict=False):
        time_min, low, mean, high = envelope(frames / series.KB, rate_hz)
        lines[name, "mean"] = Curve(time_min, mean, low, high, more={"linewidth": 0.8})
        if film is not None:
            printed[name] = (film.mean_kb - film.std_kb, film.mean_kb, film.mean_kb + film.std_kb)
    note = "Shades: all frames. Dotted: the paper's mean and standard deviation. Seed 1. KB = 1024 bytes."
    return plots.curves(
        lines, "time (min)", "frame (KB)", columns=1, level=printed, note=_with_absence(films, note)
    )


def delay_distributions(films: MotionJpeg) -> Figure:
    """Bosch Fig. 3.2: distributions of the inter-block delay by size of the block."""
    lines, means = {}, {}
    for name, frames, rate_hz in films.panels():
        means[name] = 1e6 * series.KB / (frames.mean() * rate_hz)
        for block_kb in paper.BLOCKS_KB:
            delays = series.block_delays_us_per_kb(frames, rate_hz, block_kb * series.KB)
            lines[name, f"{block_kb} KB"] = Curve.shares(delays)
    figure = plots.curves(
        _whole(lines), "inter-block delay (us/KB)", "share that is not longer", columns=2,
        level=[paper.EARLY_SHARE], at={name: [mean / series.EARLY] for name, mean in means.items()},
        ylim=(0, 1.02), absent=NOT_AT_HAND,
        note=_with_absence(
            films,
            "Dotted: the paper's 20 %, and a tenth faster than the mean. Seed 1. Delays of 4 KB blocks go "
            "beyond the right edge.",
        ),
    )  # fmt: skip
    for axis, mean in zip(figure.axes, means.values(), strict=False):
        axis.set_xlim(0, 2.6 * mean)
    return figure


def delay_spreads(films: MotionJpeg) -> Figure:
    """Bosch Fig. 3.3: mean and standard deviation of the inter-block delay by size of the block."""
    lines, printed = {}, {}
    for film, (name, frames, rate_hz) in zip([*paper.FILMS, None], films.panels(), strict=False):
        found = [series.block_delays_us_per_kb(frames, rate_hz, kb * series.KB) for kb in paper.BLOCKS_KB]
        spread = [(d.mean(), d.std(), len(d)) for d in found]
        lines[name, ""] = Curve(
            paper.BLOCKS_KB, [Interval(m, m - std, m + std, n, "std") for m, std, n in spread]
        )
        if film is not None:
            printed[name] = [1e6 / (film.mean_kb * paper.FILM_RATE_HZ)]
    figure = plots.curves(
        _whole(lines), "block (KB)", "inter-block delay (us/KB)", columns=2, level=printed, ylim=None,
        absent=NOT_AT_HAND,
        note=_with_absence(
            films, "Bars: the standard deviation of blocks. Dotted: by the printed mean frame size. Seed 1."
        ),
    )  # fmt: skip
    for axis in figure.axes:
        plots.powers_of_two(axis, paper.BLOCKS_KB)
    return figure


def _whole(lines: dict[tuple[str, str], Curve]) -> dict[tuple[str, str], Curve | list[Curve]]:
    """With a panel for the real film where it is not at hand."""
    is_absent = len({panel for panel, _ in lines}) == len(paper.FILMS)
    return lines | ({("real", ""): []} if is_absent else {})


def envelope(values: np.ndarray, rate_hz: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times in minutes; lowest, mean and highest value of about 400 equal parts of a film."""
    length = max(len(values) // BINS, 1)
    parts = values[: len(values) // length * length].reshape(-1, length)
    time_min = (np.arange(len(parts)) + 0.5) * length / rate_hz / 60
    return time_min, parts.min(axis=1), parts.mean(axis=1), parts.max(axis=1)


def _with_absence(films: MotionJpeg, words: str) -> str:
    return f"{words} {NOT_AT_HAND.capitalize()}." if films.real is None else words
