"""Panels of a figure: axes and their scales, titles, legends, and the note below."""

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from weir.plots.style import WIDTH_INCH

#: A positive axis whose largest value is this many times its smallest is logarithmic.
LOG_RATIO = 30
#: From this ratio on there is no room for ticks between decades.
NARROW_RATIO = 200


def panels(
    rows: int, columns: int, height: float, *, width: float = WIDTH_INCH, **share: object
) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of panels.

    Args:
        rows: of panels.
        columns: of panels.
        height: of the figure in inches.
        width: of the figure in inches; a page's text block by default.
        share: what panels share (`sharex`, `sharey`), and `height_ratios`.

    Returns:
        The figure and its panels, row by row.
    """
    # Not through pyplot, which keeps every figure in a global list.
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **share).flat)


def hide(axes: Iterable[Axes]) -> None:
    """Hides panels that have no data."""
    for axis in axes:
        axis.set_visible(False)


def letters(axes: Sequence[Axes], titles: Iterable[str]) -> None:
    """Panel titles with letters, such as `(a) reads`."""
    for axis, letter, title in zip(axes, "abcdefghijkl", titles, strict=False):
        axis.set_title(f"({letter}) {title}".rstrip(), loc="left")


def legend(
    figure: Figure,
    axes: Axes | Iterable[Axes],
    columns: int = 4,
    *,
    title: str | None = None,
    loc: str = "outside upper center",
) -> None:
    """One legend for all panels, beside or above them.

    Args:
        figure: the figure.
        axes: the panels whose series are named; a name occurs once.
        columns: of the legend.
        title: of the legend.
        loc: its place outside the panels, in matplotlib's words.
    """
    handles: dict[str, object] = {}
    for axis in [axes] if isinstance(axes, Axes) else axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(handles.values(), handles, loc=loc, ncols=columns, title=title)


def legend_above(axis: Axes) -> None:
    """The legend of one panel, above it, where it covers no data."""
    entries = len(axis.get_legend_handles_labels()[0])
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, ncols=entries)


def note(figure: Figure, text: str) -> None:
    """A line below the figure; saving with a tight box includes it."""
    figure.text(0.01, -0.02, text, fontsize=7.5, color="#444444", va="top")


def name_rows(axis: Axes, names: Sequence[str]) -> None:
    """Names the rows of a panel, the first one on top, with lines across."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.grid(axis="x")
    axis.grid(visible=False, axis="y")


def log_x(axis: Axes) -> None:
    """A logarithmic x axis with few round ticks, for a fifth of a decade as for five."""
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    subs = (1, 2, 5) if high / low < NARROW_RATIO else (1,)
    narrow = MaxNLocator(5, steps=[1, 2, 5, 10])
    axis.xaxis.set_major_locator(LogLocator(subs=subs) if high / low > 8 else narrow)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(plain))


def log_y(axes: Iterable[Axes]) -> None:
    """Logarithmic y axes with plain numbers; 2 and 5 between decades where there are few."""
    for axis in axes:
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.yaxis.set_major_formatter(FuncFormatter(plain))
        is_narrow = high / low < NARROW_RATIO
        axis.yaxis.set_minor_formatter(FuncFormatter(two_and_five) if is_narrow else NullFormatter())


def decades(axis: Axes, values: Iterable[float | None]) -> None:
    """A y axis from zero, or a logarithmic one where values span more than `LOG_RATIO`."""
    found = [value for value in values if value is not None and value > 0]
    if found and max(found) / min(found) > LOG_RATIO:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(FuncFormatter(plain))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_ylim(min(found) / 1.6, max(found) * 1.6)
    else:
        axis.set_ylim(bottom=0)


def powers_of_two(axis: Axes, ticks: Sequence[int]) -> None:
    """An x axis of sizes in powers of two."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(ticks))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(plain))


def plain(value: float, _position: int) -> str:
    """A tick without powers of ten."""
    return f"{value:g}"


def two_and_five(value: float, _position: int) -> str:
    """Ticks between two decades: 2 and 5 only, since all nine do not fit."""
    return f"{value:g}" if f"{value:e}"[0] in "25" else ""
