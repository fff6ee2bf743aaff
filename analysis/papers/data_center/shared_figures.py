"""Figures 11 to 14, and limits on the other site."""

import polars as pl
from matplotlib.figure import Figure

from papers.data_center.hybrid_claims import gains
from papers.data_center.judge import BANDS
from papers.data_center.names import BACKGROUND, HOT, MIXES, PLAIN, SITE, alpha
from papers.data_center.plot import BARS, class_look, name_places, points
from papers.data_center.samples import interval, sample
from weir import plots
from weir.statistics import Interval

GAIN = "Gain of the second site (%)"
#: Dynamic sites, in the order of figures.
SITES = (*MIXES, "rubis", "rubbos")
#: What a dashed line is.
DASHED = "Dashed: the most that the paper has."


@plots.style()
def by_background(table: pl.DataFrame, claims: dict[str, tuple[str, tuple[str, ...]]]) -> Figure:
    """Figs. 11 to 13: what hot files gain the second site, over the background.

    Args:
        table: of `results.served`.
        claims: by the title of a panel, the claim whose number is drawn (empty for none) and its sites; all
            sites where there are none.
    """
    found = gains(table)
    figure, axes = plots.panels(1, len(claims), 2.9, sharey=True)
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
    plots.legend(figure, axes, 5)
    plots.note(figure, f"{BARS} {DASHED}")
    return figure


@plots.style()
def by_alpha(table: pl.DataFrame) -> Figure:
    """Fig. 14: what hot files gain over a network file system, by locality."""
    found = {alpha(site): one for (site, _), one in gains(table).items() if alpha(site) is not None}
    named = {f"{value:.2f}": one for value, one in sorted(found.items(), reverse=True)}
    figure, axes = plots.panels(1, 1, 2.7)
    points(axes[0], 0, 1, list(named), named, "")
    name_places(axes[0], list(named), "alpha, less and less locality")
    _lines(axes[0], "V-F14")
    axes[0].set_ylabel("Gain of the site (%)")
    plots.note(figure, f"{BARS} {DASHED}")
    return figure


def _look(site: str) -> int:
    """The colour and marker of a site, the same in all figures."""
    return SITES.index(site) if site in SITES else class_look(site)


def _site(name: str) -> str:
    return {"rubis": "RUBiS", "rubbos": "RUBBoS"}.get(name, name.replace("class", "class "))


def _lines(axis, claim: str) -> None:
    plots.reference(axis, 0, line="-")
    if claim:
        plots.reference(axis, BANDS.read()[claim]["paper"], line="--")


@plots.style()
def limits(table: pl.DataFrame) -> Figure:
    """Beyond the paper: throughput of both sites under each measure, by what it is without."""
    variants = [PLAIN, HOT, *sorted(set(table["variant"]) - {PLAIN, HOT})]
    figure, axes = plots.panels(1, 2, 2.7)
    for at, (axis, of) in enumerate(zip(axes, (SITE, BACKGROUND), strict=True)):
        found: dict[str, Interval] = {}
        for variant in variants:
            one = sample(table, "per_s", variant=variant, **{"class": of})
            if one is not None:
                found[variant] = interval(one)
        axis.bar(
            [variants.index(name) for name in found], [one.estimate for one in found.values()], 0.55,
            color=plots.colour(at), alpha=0.85,
        )  # fmt: skip
        for name, one in found.items():
            plots.interval_bar(axis, variants.index(name), one)
        name_places(axis, variants)
        axis.tick_params(axis="x", labelrotation=20)
        axis.set_title(("(a) the site", "(b) the background")[at], loc="left")
    axes[0].set_ylabel("Answered (1/s)")
    plots.note(figure, BARS.replace("Bars", "Lines"))
    return figure
