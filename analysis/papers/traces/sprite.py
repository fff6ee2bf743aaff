"""Users of a distributed file system: Bosch, Table 3.1."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from papers.traces import paper, series
from weir.binary_cache import NOT_AT_HAND, BinaryCache
from weir.claims import Claim, claim, over_seeds, text
from weir.labels import number

SEEDS = range(1, 21)
DURATION_S = 86_400
#: "Peaks rarely coalesce": all users' peak is hardly above one user's. The paper has 1.49 and 1.01.
COALESCE = 0.15


def per_user(requests: pl.LazyFrame) -> pl.LazyFrame:
    """Bytes of each user in windows of ten seconds."""
    window = (pl.col("intended_ns") // 10_000_000_000).alias("window")
    return requests.group_by("client", window).agg(pl.col("size_bytes").sum())


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
        return cls({load.window_s: [_rates(of, load.window_s) for of in days] for load in paper.SPRITE})

    def table(self) -> pl.DataFrame:
        """Bosch, Table 3.1."""
        rows = []
        for load in paper.SPRITE:
            window = f"{load.window_s} s"
            for words, value, name in _lines(load):
                ours = text(over_seeds(getattr(r, name) / series.KB for r in self.rates[load.window_s]))
                rows.append((window, words, number(value), ours, NOT_AT_HAND))
        return pl.DataFrame(rows, schema=("window", "KB/s", "paper", "synthetic", "real"), orient="row")

    def claims(self) -> Iterator[Claim]:
        """B-T3.1."""
        for load in paper.SPRITE:
            rates = self.rates[load.window_s]
            printed = load.total_peak / load.user_peak
            ratio = over_seeds(r.total_peak / r.user_peak for r in rates).estimate
            apart = abs(ratio / printed - 1) <= COALESCE
            bursty = over_seeds(r.std / r.mean for r in rates).estimate
            for words, value, name in _lines(load):
                ours = over_seeds(getattr(r, name) / series.KB for r in rates)
                if "peak" in name:
                    said = f"all users' peak is {ratio:.2f} of one user's (paper {printed:.2f})"
                    holds = apart
                else:
                    said = f"std is {bursty:.1f} of the mean (paper {load.std / load.mean:.1f})"
                    holds = is_bursty(bursty, load.std / load.mean)
                yield claim(
                    f"B-T3.1 {words}, {load.window_s} s", value, ours, "KB/s",
                    f"{said}; the specification is held to it, within its own bands", shape_holds=holds,
                )  # fmt: skip


def is_bursty(ours: float, printed: float) -> bool:
    """Whether std by mean is at least half of the paper's: as bursty for the eye, and far from Poisson."""
    return ours >= printed / 2


def _lines(load: paper.UserLoad) -> list[tuple[str, float, str]]:
    return [
        ("average per user", load.mean, "mean"),
        ("standard deviation", load.std, "std"),
        ("peak per user", load.user_peak, "user_peak"),
        ("peak of all", load.total_peak, "total_peak"),
    ]


def _rates(day: pl.DataFrame, window_s: int) -> series.UserRates:
    client, window, size = (day[name].to_numpy() for name in ("client", "window", "size_bytes"))
    return series.user_rates(client.astype("int64"), window // (window_s // 10), size, window_s)
