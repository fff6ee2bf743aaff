"""Which factor goes where in a figure: along the axis, as a colour, as columns and rows of panels."""

from dataclasses import dataclass

import polars as pl

from weir.load import TESTBED, Level, Study


@dataclass(frozen=True)
class Layout:
    """The places of a study's factors. A place is a column of the table, or None."""

    x: str | None = None
    hue: str | None = None
    col: str | None = None
    row: str | None = None

    @property
    def factors(self) -> list[str]:
        """The columns in use."""
        return [name for name in (self.x, self.hue, self.col, self.row) if name is not None]


#: The column that joins what does not fit into four places.
REST = "other factors"


def place(study: Study, table: pl.DataFrame, x: str | None = None) -> tuple[pl.DataFrame, Layout]:
    """Places a study's varied factors.

    Named levels (schedulers, file systems) go along the axis and into colours, since they have no scale;
    numbers (loads, depths) go to panels, or along the axis when they are the only factor. More than four
    varied factors: the last ones are joined in one column, so that cells are never mixed. Testbeds are
    columns of panels, side by side; a file system that only one of them has is no level more.

    Args:
        study: the study.
        table: one row per run, or per run and class.
        x: the factor to go along the axis; the choice is made here if None.

    Returns:
        The table (with the joined column, if one is needed) and the layout.
    """
    names = sorted(
        study.varied, key=lambda name: (is_numeric(study.varied[name]), -_reach(study, table, name))
    )
    if x is not None and x in names:
        names.remove(x)
        names.insert(0, x)
    side_by_side = TESTBED in names[1:] or (names[:1] == [TESTBED] and x != TESTBED and len(names) > 1)
    if side_by_side:
        names.remove(TESTBED)
    room = 3 if side_by_side else 4
    if len(names) > room:
        joined = pl.concat_str([pl.col(name).cast(pl.String) for name in names[room - 1 :]], separator=", ")
        table = table.with_columns(joined.alias(REST))
        names = [*names[: room - 1], REST]
    names += [None] * (room - len(names))
    if side_by_side:
        names.insert(2, TESTBED)
    return table, Layout(x=names[0], hue=names[1], col=names[2], row=names[3])


def _reach(study: Study, table: pl.DataFrame, name: str) -> int:
    """Levels of a factor on the testbed that has most of them."""
    if TESTBED not in study.varied or table.is_empty():
        return len(study.varied[name])
    return table.group_by(TESTBED).agg(pl.col(name).n_unique().alias("n"))["n"].max()


def is_numeric(levels: list[Level]) -> bool:
    """Whether a factor's levels are points on a scale."""
    return all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels)


def reference_level(study: Study, factor: str, wanted: tuple[Level, ...]) -> Level:
    """The level that others are compared with: the first wanted one that valid runs have, else any they have.

    Runs on devices and simulated runs are not compared: a level that is alone on its testbed is no reference.

    Raises:
        ValueError: no valid run has the factor.
    """
    of_testbed: dict[str, set[Level]] = {}
    for run in study.valid_runs:
        if factor in run.levels:
            of_testbed.setdefault(run.testbed, set()).add(run.levels[factor])
    compared = [levels for levels in of_testbed.values() if len(levels) > 1] or list(of_testbed.values())
    present = set().union(*compared)
    for level in (*wanted, *study.factors.get(factor, [])):
        if level in present:
            return level
    raise ValueError(f"study {study.name} has no valid run with factor {factor}")
