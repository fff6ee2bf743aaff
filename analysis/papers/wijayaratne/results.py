"""Results of admission control as tables."""

import polars as pl

from weir.documents import check_format, field, read_document
from weir.load import RUN_AGAIN, Run, Study

#: Before the names of factors that are parameters of admission control.
PREFIX = "admission."


def admission_table(study: Study) -> pl.DataFrame:
    """One row per valid run that admitted streams.

    Columns: `repetition`, `block`, the levels (parameters of admission control without their prefix),
    `asked`, `admitted` (streams), `startup_mean_rounds`, `dropped_pct` (of blocks), `utilisation_pct` (mean
    worst-case load of all disks over all rounds), `playing_pct` (the same over the rounds in which all
    streams play).

    Raises:
        InputError: a run's `admission.json` is damaged or absent.
    """
    return pl.DataFrame([_row(run) for run in study.valid_runs], infer_schema_length=None)


def _row(run: Run) -> dict[str, object]:
    path = run.path / "admission.json"
    document = read_document(path, RUN_AGAIN)
    check_format(document, path)
    blocks = field(document, path, "blocks", int)
    utilisation = field(document, path, "utilisation", dict)
    playing = utilisation.get("playing_mean")
    return {
        "repetition": run.repetition,
        "block": run.block,
        **levels(run),
        "asked": field(document, path, "asked", int),
        "admitted": field(document, path, "admitted", int),
        "startup_mean_rounds": document.get("startup_mean_rounds"),
        "dropped_pct": 100 * field(document, path, "dropped_blocks", int) / blocks if blocks else 0.0,
        "utilisation_pct": 100 * (utilisation.get("mean") or 0.0),
        "playing_pct": None if playing is None else 100 * playing,
    }


def levels(run: Run) -> dict[str, object]:
    """The run's levels, with parameters of admission control by their own names."""
    return {name.removeprefix(PREFIX): level for name, level in run.levels.items()}


def load_pct(run: Run) -> list[list[float]]:
    """The worst-case load of each disk in each round, in % of a round.

    Raises:
        InputError: the run kept no load.
    """
    path = run.path / "load.json"
    document = read_document(path, "run the study with `records: requests`")
    check_format(document, path)
    return [[ppm / 1e4 for ppm in disk] for disk in field(document, path, "disks", list)]


def demand_blocks(run: Run) -> dict[str, list[int]]:
    """Blocks that a stream of each class needs in each of its rounds.

    Raises:
        InputError: the run kept no load.
    """
    path = run.path / "load.json"
    return field(read_document(path, "run the study with `records: requests`"), path, "demand_blocks", dict)


def admitted_rounds(run: Run) -> list[int]:
    """Rounds that each admitted stream waits, in the order in which they asked.

    Raises:
        InputError: the run's `admission.json` is damaged or absent.
    """
    path = run.path / "admission.json"
    return field(read_document(path, RUN_AGAIN), path, "startup_rounds", list)
