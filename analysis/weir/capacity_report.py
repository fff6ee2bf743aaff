"""Capacities as text and JSON, and the options of a search."""

from collections.abc import Iterable
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from weir.capacity import Capacities
from weir.errors import InputError
from weir.labels import number, with_interval
from weir.load import Level
from weir.plots import Curve, curves
from weir.statistics import CONFIDENCE, Interval


def shown(found: Capacities) -> pl.DataFrame:
    """The capacities as text: a row per cell."""
    rows = []
    for row in found.estimates().to_dicts():
        text = with_interval(row["estimate"], row["low"], row["high"], row["note"])
        text = f"at least {text}" if row["is_most"] else text
        cell = {name: str(row[name]) for name in found.keys}
        rows.append({**cell, "n": str(row["n"]), f"{found.search.class_name} clients": text})
    return pl.DataFrame(rows)


def shown_comparisons(found: Capacities, factor: str, baseline: str) -> pl.DataFrame:
    """The comparisons as text: ratio, simultaneous interval, and which server bears more."""
    rows = []
    for row in found.comparisons(factor, baseline).to_dicts():
        cell = {name: str(row[name]) for name in found.keys}
        rows.append(
            {
                **cell,
                f"clients / those of {baseline}": with_interval(
                    row["estimate"], row["family_low"], row["family_high"], row["note"]
                ),
                "p": "" if row["p"] is None else number(row["p"]),
                "bears": row["verdict"],
            }
        )
    return pl.DataFrame(rows)


def figure(found: Capacities, factor: str | None) -> Figure | None:
    """Shenoy's curve: the capacity by the number of clients of another class, a line for each level.

    The first class of `Search.others` goes along the x axis; of further classes and factors there is a panel
    for each combination.

    Returns:
        None where no other class has two numbers of clients.
    """
    rows, others = found.estimates(), [f"{name} clients" for name in found.search.others]
    if not others or rows[others[0]].n_unique() < 2:
        return None
    along, kept = others[0], [name for name in found.keys if name not in (factor, others[0])]
    lines: dict[tuple[str, Level], list[dict[str, Any]]] = {}
    for row in rows.sort(along, maintain_order=True).to_dicts():
        panel = ", ".join(f"{name} {row[name]}" for name in kept)
        lines.setdefault((panel, row[factor] if factor else ""), []).append(row)
    drawn = {
        key: Curve(
            [row[along] for row in of],
            [Interval(row["estimate"], row["low"], row["high"], row["n"], row["method"]) for row in of],
        )
        for key, of in lines.items()
    }
    y = f"Largest number of {found.search.class_name} clients"
    return curves(drawn, along.capitalize(), y, share="y", title=factor)


def parse_others(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Numbers of clients of other classes, from `CLASS=N,N`."""
    found = {}
    for text in texts:
        name, _, numbers = text.partition("=")
        parts = numbers.split(",")
        if not name or not all(part.isdigit() for part in parts):
            raise InputError("--with", f"`{text}` is not CLASS=N,N", "write --with video=0,20,40")
        found[name] = tuple(map(int, parts))
    return found


def parse_limits(texts: Iterable[str]) -> dict[tuple[str, str], float]:
    """Limits by class and metric, from `CLASS.METRIC=VALUE`."""
    found = {}
    for text in texts:
        place, _, value = text.partition("=")
        name, _, metric = place.rpartition(".")
        try:
            found[name, metric] = float(value)
        except ValueError:
            name = ""
        if not name:
            problem = f"`{text}` is not CLASS.METRIC=VALUE"
            raise InputError("--limit", problem, "write --limit text.response_mean_ms=100")
    return found


def notes(found: Capacities) -> list[str]:
    """What the numbers are."""
    search, rows = found.search, found.estimates()
    tried = int(found.table["tried"].max() or 0)
    kinds = ", ".join(sorted({kind for kind in rows["method"] if kind != "none"})) or "no interval"
    limits = [f"{name}.{metric} at most {value:g}" for (name, metric), value in search.limits.items()]
    lines = [
        f"{rows['estimand'][0].capitalize()}, {CONFIDENCE:.0%} interval over repetitions ({kinds}).",
        "The capacity of a repetition is the largest number tried that attained all objectives. The next "
        f"number failed, and is larger by at most {search.resolution:.0%} or one client.",
        f"At most {tried} numbers were tried of a cell.",
    ]
    return lines + ([f"Further objectives: {', '.join(limits)}."] if limits else [])


def as_document(found: Capacities, factor: str | None, baseline: str | None) -> dict[str, Any]:
    """Estimates, comparisons and repetitions as JSON."""
    document = {
        "study": found.study.name,
        "class": found.search.class_name,
        "resolution": found.search.resolution,
        "estimates": found.estimates().to_dicts(),
        "repetitions": found.table.to_dicts(),
    }
    if factor is not None and baseline is not None:
        document |= {"factor": factor, "baseline": baseline}
        document["comparisons"] = found.comparisons(factor, baseline).to_dicts()
    return document
