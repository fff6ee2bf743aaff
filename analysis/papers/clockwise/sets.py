"""The small sets of streams of chapters 6 and 7, and what schedulers make of them."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from papers.clockwise import source
from papers.clockwise.timelines import BEST_EFFORT, Stream, misses, served
from weir.binary_cache import BinaryCache

SEEDS = range(1, 11)
#: Section 7.3: behaving streams and a generator, in ms. Each can be late by what another takes too much:
#: deltaL is 0.
BEHAVING = {"video": (10, 20), "sound": (10, 40)}
GENERATOR = (10, 40)
#: How many times as often as its contract says the generator asks.
FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0)
CROSSTALK_MS = 20_000
SCHEDULERS = {"EDF": "edf-background", "LST": "lst", "deltaL": "deltal"}


def usd(binary: BinaryCache, span_ms: int = 600) -> pl.DataFrame:
    """Table 6.2 on the scheduler that admits it (Fig. 6.3): all streams begin at 0."""
    streams = [
        Stream(f"tau{at}", cost, list(range(0, span_ms, period)), period)
        for at, (cost, period) in enumerate(source.USD_TASKS_MS, start=1)
    ]
    return served(binary, "usd", streams, span_ms)


def critical_instant(binary: BinaryCache) -> pl.DataFrame:
    """Fig. 6.2, with numbers of ours: the longest period's request begins just before all others come."""
    periods = {"tau1": (5, 20), "tau2": (5, 25), "tau3": (5, 35), "tau4": (9, 60)}
    streams = [
        Stream(name, cost, [0] if name == "tau4" else [1, 1 + period], period)
        for name, (cost, period) in periods.items()
    ]
    return served(binary, "deltal", streams, 80)


def slack_stealing(binary: BinaryCache, scheduler: str) -> pl.DataFrame:
    """Section 6.4.2's example of what slack stealing does not see."""
    streams = [
        Stream(f"tau{at}", cost, [release], period)
        for at, (cost, period, release) in enumerate(source.LST_TASKS_MS, start=1)
    ]
    return served(binary, scheduler, [*streams, Stream(BEST_EFFORT, source.LST_BEST_EFFORT_MS, [0])], 200)


@dataclass(frozen=True)
class Crosstalk:
    """Section 7.3: deadlines of behaving streams that were missed, by scheduler and factor, then by seed."""

    missed: dict[tuple[str, float], list[int]]

    @classmethod
    def of(cls, binary: BinaryCache) -> "Crosstalk":
        """Runs each."""
        cells = [(name, factor) for name in SCHEDULERS for factor in FACTORS]
        runs = binary.each(
            lambda at: [_behaving_missed(binary, *cells[at], seed) for seed in SEEDS], range(len(cells))
        )
        return cls(dict(zip(cells, runs, strict=True)))


def _behaving_missed(binary: BinaryCache, scheduler: str, factor: float, seed: int) -> int:
    rng = np.random.default_rng(seed)
    streams = []
    for name, (cost, period) in BEHAVING.items():
        # At least a period between two requests, at most two.
        asks = np.cumsum(rng.integers(period, 2 * period + 1, CROSSTALK_MS // period))
        streams.append(Stream(name, cost, asks[asks < CROSSTALK_MS].tolist(), period))
    cost, period = GENERATOR
    asks = np.arange(0, CROSSTALK_MS, period / factor)
    streams.append(Stream("generator", cost, asks.tolist(), period))
    table = served(binary, SCHEDULERS[scheduler], streams, CROSSTALK_MS)
    return misses(table.filter(pl.col("stream") != "generator"))
