"""The studies `live-hds-*`: Figs. 3 to 8 on a block device, in seconds for minutes."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl
from IPython.display import HTML, Markdown
from matplotlib.figure import Figure

from papers.hds import claims, figures
from papers.hds.claims import Times
from papers.hds.results import windows
from weir import notebooks, plans, plots
from weir.claims import Claim
from weir.labels import number
from weir.load import Study, load_study

#: How these studies' names begin.
PREFIX = "live-hds-"
#: When something happens in them.
TIMES = Times(settled_s=1, phase_s=8, stream_s=3, step_s=3, second_s=4, adapts_s=8, last_s=12, ratio_s=4)
TESTBED, LIVE, VIRTUAL = "testbed", "device", "simulator"
#: By study, what is judged of it.
JUDGED: dict[str, Callable[[pl.DataFrame], Iterator[Claim]]] = {
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


def judged(study: Study, name: str, testbed: str) -> list[Claim]:
    """The claims on a study by the runs of one testbed; none where cells are missing of it."""
    table = windows(study)
    table = table.filter(pl.col(TESTBED) == testbed).drop(TESTBED)
    wanted = 1
    for factor, levels in study.factors.items():
        wanted *= 1 if factor == TESTBED else len(levels)
    cells = [factor for factor in study.factors if factor != TESTBED]
    there = table.select(cells).n_unique() if cells else min(table.height, 1)
    return list(JUDGED[name](table)) if there == wanted else []


def compared(made: Iterable[Claim], found: dict[str, Study]) -> pl.DataFrame:
    """One row per claim: the paper, virtual time over minutes, and both testbeds over seconds.

    Args:
        made: the claims that have been judged in virtual time.
        found: what `studies` gives.
    """
    over_minutes = {claim.id: claim for claim in made}
    rows: dict[str, dict[str, str]] = {}
    for name, study in found.items():
        for words, testbed in {"virtual time, short": VIRTUAL, "live": LIVE}.items():
            for claim in judged(study, name, testbed):
                row = rows.setdefault(claim.id, _row(claim, over_minutes.get(claim.id)))
                row[words], row[f"{words}: status"] = _ours(claim), claim.status
    columns = ["virtual time, short", "virtual time, short: status", "live", "live: status"]
    filled = [row | {name: row.get(name, "none") for name in columns} for row in rows.values()]
    return pl.DataFrame(filled)


def _row(claim: Claim, long: Claim | None) -> dict[str, str]:
    paper = claims.CLAIMS.read()[claim.id].get("limits") if claim.paper is None else None
    printed = f"{number(paper[0])} or more" if paper else number(claim.paper)
    row = {"claim": claim.id, "unit": claim.unit, "paper": printed}
    return row | {
        "virtual time": "none" if long is None else _ours(long),
        "virtual time: status": "none" if long is None else long.status,
    }


def _ours(claim: Claim) -> str:
    if claim.interval is None:
        return number(claim.ours)
    return f"{number(claim.ours)} [{number(claim.interval[0])}, {number(claim.interval[1])}]"


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
