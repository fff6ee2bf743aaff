"""Resource use of the tiers of a run: CPU time by process, network bytes by host, memory."""

from typing import Any

import polars as pl

from weir.labels import number
from weir.load import Run, Study
from weir.statistics import mean_interval

CPU, NETWORK, MEMORY = "CPU s", "network MB", "MB"


def used(run: Run) -> dict[str, float]:
    """Resource use of one run, warm-up included, by the name of a column.

    Returns:
        Processor time in s by process (`driver` sends the requests), what each host of the test network
        received and sent in MB; at the end, in MB, memory of the run's group and of its files in the page
        cache. Only what the run observed.
    """
    found: dict[str, float] = {}
    observed = run.observed
    for name, cpu in _objects(observed.get("cpu")):
        found[f"{name} ({CPU})"] = (cpu.get("user_ns", 0) + cpu.get("system_ns", 0)) / 1e9
    for host, moved in _objects(observed.get("network")):
        found[f"{host} ({NETWORK})"] = (moved.get("received_bytes", 0) + moved.get("sent_bytes", 0)) / 1e6
    memory = observed.get("memory")
    if isinstance(memory, dict) and "used_bytes" in memory:
        found[f"memory ({MEMORY})"] = memory["used_bytes"] / 1e6
    cached = [of["cached_bytes"] for _, of in _objects(observed.get("residency")) if "cached_bytes" in of]
    if cached:
        found[f"files in memory ({MEMORY})"] = sum(cached) / 1e6
    return found


def tiers(study: Study) -> pl.DataFrame | None:
    """Means over the valid runs of each cell; None for a study without services or a network.

    What only a part of the cells has (servers of a network file system) is empty in the others.
    """
    found = [(run, used(run)) for run in study.valid_runs]
    # A study whose only process is the driver has no tiers.
    names = list(dict.fromkeys(name for _, row in found for name in row))
    if not any(
        name.endswith((f"({CPU})", f"({NETWORK})")) and not name.startswith("driver ") for name in names
    ):
        return None
    factors = list(study.varied)
    cells: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for run, row in found:
        cells.setdefault(tuple(str(run.levels.get(name, "")) for name in factors), []).append(row)
    rows: list[dict[str, Any]] = []
    for levels, of_cell in sorted(cells.items()):
        means = {}
        for name in names:
            values = [row[name] for row in of_cell if name in row]
            means[name] = number(mean_interval(values).estimate) if values else ""
        rows.append(dict(zip(factors, levels, strict=True)) | means)
    return pl.DataFrame(rows)


def _objects(value: object) -> list[tuple[str, dict[str, Any]]]:
    return (
        [(name, of) for name, of in value.items() if isinstance(of, dict)] if isinstance(value, dict) else []
    )
