"""Pages of dynamic sites: how many, and whether the mix is Table 1's.

A test that takes each page for a draw of its own is wrong here: the next page depends on the last one. Two
tests are not. Transitions are: given a page, what follows is drawn from its row of the table of transitions,
whatever came before (Anderson and Goodman, "Statistical inference about Markov chains", Annals of
Mathematical Statistics 28, 1957). And shares are, if divided by how much more they vary from client to client
than independent draws would (Rao and Scott, "The analysis of categorical data from complex sample surveys",
JASA 76, 1981, first-order correction, with F in place of chi-squared): clients are independent.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from papers.data_center import printed
from papers.data_center.names import MIXES, mix_and_class
from weir.errors import InputError
from weir.load import RUN_AGAIN, Run, Study

#: Thresholds of a table of transitions are of so many.
DRAWS = 9999
#: Cells that fewer are expected in are put together.
LEAST_EXPECTED = 5
TABLES = Path("workloads/tables")


@dataclass(frozen=True)
class Tested:
    """A test of a mix.

    Attributes:
        pages: how many it rests on.
        chi2: Pearson's statistic as of independent pages.
        freedom: its degrees of freedom.
        plain_p: its p as of independent pages.
        design_effect: how much more shares vary than those of independent pages, mean of interactions.
        p: of the corrected test.
        most_off: the interaction that is furthest off, and by how many points.
        walk_chi2, walk_freedom, walk_p: of the transitions; None without any.
        impossible: transitions that the table does not have, other than those to a session's first page.
    """

    pages: int
    chi2: float
    freedom: int
    plain_p: float
    design_effect: float
    p: float
    most_off: tuple[str, float]
    walk_chi2: float | None
    walk_freedom: int
    walk_p: float | None
    impossible: int


def read(run: Run) -> pl.DataFrame:
    """The pages of a run that were answered, in order: `class`, `client`, `page`, `completed_ns`, `warmup`.

    Raises:
        InputError: the table is absent or damaged.
    """
    path = run.path / "pages.parquet"
    columns = [
        "request",
        "class",
        "client",
        "page",
        "intended_ns",
        "completed_ns",
        "http_status",
        "status",
        "warmup",
    ]
    try:
        frame = pl.read_parquet(path, columns=columns)
    except FileNotFoundError:
        raise InputError(path, "there is no such file", RUN_AGAIN) from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(path, f"is no table of pages ({reason})", RUN_AGAIN) from error
    # A page that failed is asked for again: only the attempt that was answered is a page.
    answered = (pl.col("status") == 0) & (pl.col("http_status") < 400)
    names = pl.col("class", "page").cast(pl.String)
    return frame.with_columns(names).filter(answered).sort("class", "client", "intended_ns", "request")


def longest(study: Study | None) -> dict[str, list[Run]]:
    """By mix, of each repetition the run with most pages.

    Runs of a repetition are asked the same walks, whatever they run on: one of them is a sample, all of them
    are the same one several times.
    """
    best: dict[tuple[str, int], tuple[int, Run]] = {}
    for run in () if study is None else study.valid_runs:
        mix, _ = mix_and_class(str(run.levels["variant"]))
        pages = read(run).height
        key = (mix, run.repetition)
        if key not in best or pages > best[key][0]:
            best[key] = (pages, run)
    found: dict[str, list[Run]] = {}
    for (mix, _), (_, run) in sorted(best.items(), key=lambda item: item[0]):
        found.setdefault(mix, []).append(run)
    return {mix: found[mix] for mix in MIXES if mix in found}


def tested(mix: str, pages: pl.DataFrame, transitions: dict[str, dict[str, float]]) -> Tested | None:
    """Tests the pages of a mix; None if there are fewer than two clients or pages.

    Args:
        mix: its name, as in Table 1.
        pages: rows of `read`, with `walker`: a client of a repetition.
        transitions: by page, the probability of what follows.
    """
    wanted = printed.mix(mix)
    names = list(wanted)
    share = np.array([wanted[name] for name in names])
    share = share / share.sum()
    measured = pages.filter(~pl.col("warmup") & pl.col("page").is_in(names))
    counts = (
        measured.group_by("walker", "page", maintain_order=True)
        .len()
        .pivot("page", index="walker", values="len")
        .fill_null(0)
    )
    if counts.height < 2:
        return None
    each = np.array([counts[name] if name in counts.columns else np.zeros(counts.height) for name in names]).T
    n, clients = float(each.sum()), each.shape[0]
    found = each.sum(axis=0) / n
    chi2 = float(n * ((found - share) ** 2 / share).sum())
    freedom = len(names) - 1
    # The variance of a share over clients, by that of independent pages.
    residual = each - share * each.sum(axis=1, keepdims=True)
    variance = clients / (clients - 1) * (residual**2).sum(axis=0) / n**2
    effects = variance / (share * (1 - share) / n)
    effect = float(((1 - share) * effects).sum() / freedom)
    off = 100 * (found - share)
    worst = int(np.argmax(np.abs(off)))
    walk_chi2, walk_freedom, impossible = _walk(pages, transitions)
    return Tested(
        pages=int(n),
        chi2=chi2,
        freedom=freedom,
        plain_p=float(special.chdtrc(freedom, chi2)),
        design_effect=effect,
        p=_corrected(chi2, freedom, effect, clients),
        most_off=(names[worst], float(off[worst])),
        walk_chi2=walk_chi2 if walk_freedom else None,
        walk_freedom=walk_freedom,
        walk_p=float(special.chdtrc(walk_freedom, walk_chi2)) if walk_freedom else None,
        impossible=impossible,
    )


def _corrected(chi2: float, freedom: int, effect: float, clients: int) -> float:
    """The p of a statistic by its design effect, which is known from so many clients only."""
    if effect == 0:
        return 1.0 if chi2 == 0 else 0.0
    return float(special.fdtrc(freedom, freedom * (clients - 1), chi2 / effect / freedom))


def _walk(pages: pl.DataFrame, transitions: dict[str, dict[str, float]]) -> tuple[float, int, int]:
    """Chi-squared of the transitions, its degrees of freedom, and how many transitions the table has not."""
    steps = (
        pages.with_columns(pl.col("page").shift(-1).over("walker").alias("next"))
        .drop_nulls("next")
        .group_by("page", "next", maintain_order=True)
        .len()
    )
    chi2, freedom, impossible = 0.0, 0, 0
    for page, row in transitions.items():
        seen = dict(steps.filter(pl.col("page") == page).select("next", "len").iter_rows())
        known = {name: seen.get(name, 0) for name in row}
        impossible += sum(count for name, count in seen.items() if name not in row and name != "HOME")
        total = sum(known.values())
        expected = {name: total * probability for name, probability in row.items()}
        large = [name for name, value in expected.items() if value >= LEAST_EXPECTED]
        small = [name for name in row if name not in large]
        cells = [(known[name], expected[name]) for name in large]
        rest = (sum(known[name] for name in small), sum(expected[name] for name in small))
        if rest[1] >= LEAST_EXPECTED:
            cells.append(rest)
        elif cells and small:
            (count, value), *others = sorted(cells, key=lambda cell: cell[1])
            cells = [(count + rest[0], value + rest[1]), *others]
        if len(cells) > 1:
            chi2 += sum((count - value) ** 2 / value for count, value in cells)
            freedom += len(cells) - 1
    return chi2, freedom, impossible


def transitions_of(root: Path, mix: str) -> dict[str, dict[str, float]]:
    """The table of transitions of a mix of TPC-W: by page, the probability of what follows.

    Args:
        root: the folder that holds `workloads/tables/`.
        mix: its name.

    Raises:
        InputError: the table is absent or another kind of file.
    """
    path = root / TABLES / f"tpcw-{mix}.yml"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", "call this in the repository") from error
    _, _, section = text.partition("\nthresholds:\n")
    found: dict[str, dict[str, float]] = {}
    for name, row in re.findall(r"^  (\w+): \{(.*)\}$", section, re.MULTILINE):
        last, found[name] = 0, {}
        for arc in row.split(","):
            to, threshold = arc.split(":")
            found[name][to.strip()] = (int(threshold) - last) / DRAWS
            last = int(threshold)
    if not found:
        raise InputError(path, "has no `thresholds`", "is it a table of TPC-W?")
    return found


def stacked(runs: list[Run]) -> pl.DataFrame:
    """The pages of runs of different repetitions, with `walker`."""
    frames = [
        read(run).with_columns(
            pl.format("{} {} {}", pl.lit(run.repetition), "class", "client").alias("walker")
        )
        for run in runs
    ]
    return pl.concat(frames)


def mixes_table(found: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Table 1 beside today's: shares of the interactions in %."""
    names = list(printed.mix("browsing"))
    table: dict[str, Any] = {"interaction": names}
    for mix, pages in found.items():
        counts = pages.filter(~pl.col("warmup"))["page"].value_counts()
        seen = dict(counts.iter_rows())
        total = sum(seen.values()) or 1
        table[f"{mix}, paper (%)"] = [f"{printed.mix(mix)[name]:.2f}" for name in names]
        table[f"{mix} (%)"] = [f"{100 * seen.get(name, 0) / total:.2f}" for name in names]
    return pl.DataFrame(table)
