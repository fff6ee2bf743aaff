"""Drawings of Figs. 11 to 14, and of limits on the other site."""

import polars as pl
from matplotlib.figure import Figure

from papers.data_center.hybrid_claims import gains
from papers.data_center.judge import BANDS
from papers.data_center.names import BACKGROUND, HOT, MIXES, PLAIN, SITE, alpha
from papers.data_center.plot import BARS, PRINTED, class_look, figure, legend, name_places, points
from papers.data_center.samples import interval, sample
from weir.plots import draw
from weir.plots.style import PALETTE, style
from weir.statistics import Interval

GAIN = "Gain of the second site (%)"
#: Dynamic sites, in the order of figures.
SITES = (*MIXES, "rubis", "rubbos")
#: What a dashed line is.
DASHED = "Dashed: the most that the paper has."


def by_background(table: pl.DataFrame, claims: dict[str, tuple[str, tuple[str, ...]]]) -> Figure:
    """Figs. 11 to 13: what hot files gain the second site, over the background.

    Args:
        table: of `results.served`.
        claims: by the title of a panel, the claim whose number is drawn (empty for none) and its sites; all
            sites where there are none.
    """
    found = gains(table)
    with style():
        made, axes = figure(len(claims), 2.9, sharey=True)
        for axis, (title, (claim, wanted)) in zip(axes, claims.items(), strict=True):
            sites = sorted({site for site, _ in found if not wanted or site in wanted}, key=_look)
            behind = sorted({background for site, background in found if site in sites})
            for at, site in enumerate(sites):
                own = {background: one for (name, background), one in found.items() if name == site}
                points(axis, at, len(sites), behind, own, _site(site), _look(site))
            name_places(axis, behind, "Background")
            _lines(axis, claim)
            axis.set_title(title, loc="left")
        axes[0].set_ylabel(GAIN)
        legend(made, axes)
        draw.note(made, f"{BARS} {DASHED}")
    return made


def by_alpha(table: pl.DataFrame) -> Figure:
    """Fig. 14: what hot files gain over a network file system, by locality."""
    found = {alpha(site): one for (site, _), one in gains(table).items() if alpha(site) is not None}
    named = {f"{value:.2f}": one for value, one in sorted(found.items(), reverse=True)}
    with style():
        made, axes = figure(1, 2.7)
        points(axes[0], 0, 1, list(named), named, "")
        name_places(axes[0], list(named), "alpha, less and less locality")
        _lines(axes[0], "V-F14")
        axes[0].set_ylabel("Gain of the site (%)")
        draw.note(made, f"{BARS} {DASHED}")
    return made


def _look(site: str) -> int:
    """The colour and marker of a site, the same in all figures."""
    return SITES.index(site) if site in SITES else class_look(site)


def _site(name: str) -> str:
    return {"rubis": "RUBiS", "rubbos": "RUBBoS"}.get(name, name.replace("class", "class "))


def _lines(axis, claim: str) -> None:
    axis.axhline(0, color=PRINTED, linewidth=0.7)
    if claim:
        axis.axhline(BANDS.read()[claim]["paper"], color=PRINTED, linewidth=0.9, linestyle="--")


def limits(table: pl.DataFrame) -> Figure:
    """Beyond the paper: throughput of both sites under each measure, by what it is without."""
    variants = [PLAIN, HOT, *sorted(set(table["variant"]) - {PLAIN, HOT})]
    with style():
        made, axes = figure(2, 2.7)
        for at, (axis, of) in enumerate(zip(axes, (SITE, BACKGROUND), strict=True)):
            found: dict[str, Interval] = {}
            for variant in variants:
                one = sample(table, "per_s", variant=variant, **{"class": of})
                if one is not None:
                    found[variant] = interval(one)
            axis.bar(
                [variants.index(name) for name in found], [one.estimate for one in found.values()], 0.55,
                color=PALETTE[at], alpha=0.85,
            )  # fmt: skip
            for name, one in found.items():
                if one.low is not None:
                    x = variants.index(name)
                    axis.plot([x, x], [one.low, one.high], color="#222222", linewidth=1)
            name_places(axis, variants)
            axis.tick_params(axis="x", labelrotation=20)
            axis.set_title(("(a) the site", "(b) the background")[at], loc="left")
        axes[0].set_ylabel("Answered (1/s)")
        draw.note(made, BARS.replace("Bars", "Lines"))
    return made
