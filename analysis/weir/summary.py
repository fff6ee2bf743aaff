"""Results of a study as one document, with the numbers of `weir summary`."""

from dataclasses import asdict
from typing import Any

import polars as pl

from weir import present
from weir.answers import answers
from weir.change_points import change_points
from weir.duplicates import floors
from weir.load import Study
from weir.mixed_hosts import mixed_hosts
from weir.power import SHOWN_CHANGE, power_of
from weir.precision import decide


def document(study: Study, table: pl.DataFrame) -> dict[str, Any]:
    """Answers, estimates of every cell with intervals, and what a reader must know about the runs.

    Args:
        study: the study.
        table: one row per valid run and class.
    """
    warnings = [*mixed_hosts(study), *change_points(study, table)]
    return {
        "study": study.name,
        "label": study.label,
        "question": study.question,
        "note": study.note,
        "runs": {status: len(runs) for status, runs in study.by_status.items()}
        | {"missing": len(study.missing), "unsealed": len(study.unsealed)},
        "answers": [
            asdict(one) | {"settled": one.settled, "sentence": one.sentence()}
            for one in answers(study, table)
        ],
        "power": power_of(study, table, changes=(SHOWN_CHANGE,)).document(),
        "precision": None if study.precision is None else decide(study, table).document(),
        "duplicates": [asdict(one) | {"sentence": one.sentence()} for one in floors(study)],
        "warnings": [one.sentence() for one in warnings],
        "provenance": present.provenance(study),
        "classes": [
            {
                "class": one.name,
                "workload": one.workload,
                "objective": one.objective,
                "estimates": present.estimates(study, table, one.name),
                "attained": present.attained(study, table, one.name),
            }
            for one in (study.classes if study.valid_runs else ())
        ],
        "excluded": present.excluded(study),
    }
