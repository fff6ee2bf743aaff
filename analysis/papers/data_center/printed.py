"""The paper's tables, as printed."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from papers.data_center.names import SIZES, STANDS_FOR

TABLES = Path(__file__).with_name("tables.toml")


@cache
def tables() -> dict[str, Any]:
    """All of them."""
    return tomllib.loads(TABLES.read_text(encoding="utf-8"))


def mix(name: str) -> dict[str, float]:
    """Table 1: the shares in % of the interactions of a mix."""
    return tables()["mixes"][name]


def access_us(filesystem: str, operation: str) -> float | None:
    """Table 2: microseconds of the file system that ours stands for; None if ours stands for none."""
    return tables()["access"].get(STANDS_FOR.get(filesystem, ""), {}).get(operation)


def response_us(filesystem: str, size: str, *, cached: bool) -> float | None:
    """Tables 4 and 5: microseconds."""
    return _of("response", filesystem, size, cached=cached)


def per_s(filesystem: str, size: str, *, cached: bool) -> float | None:
    """Table 6: transactions per second."""
    return _of("throughput", filesystem, size, cached=cached)


def _of(table: str, filesystem: str, size: str, *, cached: bool) -> float | None:
    rows = tables()[table].get(STANDS_FOR.get(filesystem, ""))
    return None if rows is None else rows["cached" if cached else "uncached"][SIZES.index(size)]


def by(above: float | None, below: float | None) -> float | None:
    """The ratio of two of them."""
    return None if above is None or below is None else above / below
