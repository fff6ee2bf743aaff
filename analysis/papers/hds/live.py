"""The studies `live-hds-*`: Figs. 3 to 8 on a block device, in seconds for minutes."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import polars as pl
from IPython.display import HTML, Markdown
from matplotlib.figure import Figure

from papers.hds import claims, figures
from papers.hds.claims import CLAIMS, Evidence, Shown, Times
from papers.hds.results import windows
from weir import notebooks, plans, plots
from weir.claims import Claim, Found, text
from weir.labels import number
from weir.load import Study, load_study
from weir.statistics import Interval

#: How these studies' names begin.
PREFIX = "live-hds-"
#: When something happens in them.
TIMES = Times(settled_s=1, phase_s=8, stream_s=3, step_s=3, second_s=4, adapts_s=8, last_s=12, ratio_s=4)
TESTBED, LIVE, VIRTUAL = "testbed", "device", "simulator"
#: By study, what it shows.
JUDGED: dict[str, Callable[[pl.DataFrame], Iterator[Shown]]] = {
    "overload": claims.overload,
    "isolation": claims.isolation,
    "borrowing": lambda table: claims.borrowing(table, TIMES),
    "throughput": lambda table: claims.throughput(table, TIMES),
    "root": lambda table: claims.root(table, TIMES),
    "adaptive": lambda table: claims.adaptive(table, TIMES),
}


def studies(results: Path) -> dict[str, Study]:
    """Those that have valid runs in a folder of results, by name without the prefix.

    Raises:
        InputError: a folder is damaged.
    """
    found = {name: results / f"{PREFIX}{name}" for name in JUDGED}
    loaded = {name: load_study(path) for name, path in found.items() if plans.exists(path)}
    return {name: study for name, study in loaded.items() if study.valid_runs}


def described(found: dict[str, Study]) -> HTML | Markdown:
    """The number of runs of each study, or the command that makes them."""
    if not found:
        return Markdown(
            f"No study `{PREFIX}*` has been carried out: `make study STUDY={PREFIX.rstrip('-')}`, as root."
        )
    rows = [
        {"study": study.name}
        | {words: sum(run.testbed == name for run in study.valid_runs) for words, name in _WORDS.items()}
        | {"invalid": len(study.runs_with("invalid")), "repetitions": study.repetitions}
        for study in found.values()
    ]
    return notebooks.grid(pl.DataFrame(rows))


_WORDS = {"live": LIVE, "virtual time": VIRTUAL}


#: By setting of a claim, on which testbed it is shown.
SETTINGS = {"virtual time, short": VIRTUAL, "live": LIVE}


def shown(study: Study, name: str, testbed: str) -> list[Shown]:
    """What the runs of one testbed show on a study; nothing where cells are missing of it."""
    table = windows(study)
    table = table.filter(pl.col(TESTBED) == testbed).drop(TESTBED)
    wanted = 1
    for factor, levels in study.factors.items():
        wanted *= 1 if factor == TESTBED else len(levels)
    cells = [factor for factor in study.factors if factor != TESTBED]
    there = table.select(cells).n_unique() if cells else min(table.height, 1)
    return list(JUDGED[name](table)) if there == wanted else []


def add(evidence: Evidence, found: Mapping[str, Study]) -> None:
    """Adds what the studies show on both testbeds.

    Args:
        evidence: to which it is added.
        found: what `studies` gives.
    """
    for name, study in found.items():
        for setting, testbed in SETTINGS.items():
            evidence.add(setting, shown(study, name, testbed))


def compared(evidence: Evidence) -> pl.DataFrame:
    """One row per claim with short runs: the paper, minutes of virtual time, seconds on both testbeds."""
    made = {claim.id: claim for claim in evidence.claims()}
    rows = []
    for id, by in evidence.found.items():
        if SETTINGS.keys().isdisjoint(by):
            continue
        entry = CLAIMS.register[id]
        row = {"claim": id, "unit": entry.unit, "paper": _printed(id)}
        statuses = _statuses(made.get(id), id, by)
        for words, setting in {"virtual time": entry.setting, **{one: one for one in SETTINGS}}.items():
            row |= {words: _ours(by.get(setting)), f"{words}: status": statuses.get(setting, "none")}
        rows.append(row)
    return pl.DataFrame(rows)


def _statuses(claim: Claim | None, id: str, by: Mapping[str, Found]) -> dict[str, str]:
    """The status at each setting, also where the one that decides has no runs."""
    claim = claim or CLAIMS.over(id, {CLAIMS.register[id].setting: Found(None), **by})
    return {one.setting: one.status for one in claim.settings if one.setting in by}


def _printed(id: str) -> str:
    entry = CLAIMS.register[id]
    if entry.paper is None and entry.limits:
        return " to ".join(number(end) for end in entry.limits)
    return number(entry.paper)


def _ours(found: Found | None) -> str:
    if found is None:
        return "none"
    return text(found.ours) if isinstance(found.ours, Interval) else number(found.ours)


def figure(study: Study) -> Figure:
    """Fig. 5 live, beside virtual time."""
    table = windows(study)
    lines = {}
    for words, testbed in _WORDS.items():
        lines |= figures.series(table.filter(pl.col(TESTBED) == testbed), words, window_s=1)
    return plots.curves(
        lines, figures.TIME, figures.RECEIVED, at=(TIMES.phase_s, 2 * TIMES.phase_s),
        note="Lines: means over repetitions in windows of a second; shades: the least and the most. "
        "Dotted: a stream begins.",
    )  # fmt: skip
