"""Users of a distributed file system: Bosch, Table 3.1."""

from dataclasses import dataclass

import polars as pl

from papers.traces import paper, series
from weir.binary_cache import NOT_AT_HAND, BinaryCache
from weir.claims import over_seeds, text
from weir.labels import number
from weir.statistics import Interval

SEEDS = range(1, 21)
DURATION_S = 86_400


def per_user(requests: pl.LazyFrame) -> pl.LazyFrame:
    """Bytes of each user in windows of ten seconds."""
    window = (pl.col("intended_ns") // 10_000_000_000).alias("window")
    return requests.group_by("client", window, maintain_order=True).agg(pl.col("size_bytes").sum())


@dataclass(frozen=True)
class Sprite:
    """Rates of the users by length of the window in seconds, then by seed."""

    rates: dict[int, list[series.UserRates]]

    @classmethod
    def load(cls, binary: BinaryCache) -> "Sprite":
        """Makes a day of 40 users for each seed, or reads it from the cache."""

        def day(seed: int) -> pl.DataFrame:
            return binary.stream("sprite", seed, DURATION_S, per_user, clients=paper.SPRITE_USERS)

        days = binary.each(day, SEEDS)
        return cls({window_s: [_rates(of, window_s) for of in days] for window_s in paper.SPRITE_WINDOWS_S})

    def kb_s(self, name: str, window_s: int) -> Interval:
        """One of the figures of `series.UserRates` in KB/s, over seeds."""
        return over_seeds(getattr(rates, name) / series.KB for rates in self.rates[window_s])

    def table(self) -> pl.DataFrame:
        """Bosch, Table 3.1."""
        rows = [
            (
                f"{window_s} s",
                words,
                number(paper.printed(paper.BOSCH, f"B-T3.1 {words}, {window_s} s")),
                text(self.kb_s(name, window_s)),
                NOT_AT_HAND,
            )
            for window_s in paper.SPRITE_WINDOWS_S
            for name, words in paper.SPRITE_RATES.items()
        ]
        return pl.DataFrame(rows, schema=("window", "KB/s", "paper", "synthetic", "real"), orient="row")


def _rates(day: pl.DataFrame, window_s: int) -> series.UserRates:
    client, window, size = (day[name].to_numpy() for name in ("client", "window", "size_bytes"))
    return series.user_rates(client.astype("int64"), window // (window_s // 10), size, window_s)
