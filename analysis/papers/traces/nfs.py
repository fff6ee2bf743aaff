"""A bursty file server: Shenoy Fig. 6 and Table 3."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from papers.traces import paper, series
from weir.binary_cache import NOT_AT_HAND, BinaryCache
from weir.claims import Claim, over_seeds, text
from weir.labels import number
from weir.statistics import Interval

SEEDS = range(1, 21)
DURATION_S = 2000
SECOND_NS = 1_000_000_000
#: Windows over which the distribution of load is shown, in seconds.
WINDOWS_S = (1, 10, 60)
#: A real trace of a virtual machine's disk, two hours; the same cache as the paper's goes before it.
REAL = "libcachesim/cloudPhysicsIO.vscsi"
REAL_NAME = "CloudPhysics virtual disk"
CACHE_MIB = 64


@dataclass(frozen=True)
class Load:
    """A stream: bytes in each second, requests, seconds."""

    bytes_per_s: np.ndarray
    requests: int
    duration_s: float

    def over(self, window_s: int) -> np.ndarray:
        """Bytes over longer windows; the rest of the last is left out."""
        whole = len(self.bytes_per_s) // window_s * window_s
        return self.bytes_per_s[:whole].reshape(-1, window_s).sum(axis=1)

    @property
    def kb_s(self) -> float:
        """Mean rate in KB/s."""
        return float(self.bytes_per_s.sum() / self.duration_s / series.KB)

    @property
    def gap_ms(self) -> float:
        """Mean time between requests."""
        return 1e3 * self.duration_s / self.requests

    @property
    def size_bytes(self) -> float:
        """Mean size of a request."""
        return float(self.bytes_per_s.sum() / self.requests)

    @property
    def peak_to_mean(self) -> float:
        """In windows of a second."""
        return series.peak_to_mean(self.bytes_per_s)


def per_second(requests: pl.LazyFrame) -> pl.LazyFrame:
    """Bytes and requests of each second that has any."""
    second = (pl.col("intended_ns") // 1_000_000_000).alias("second")
    return requests.group_by(second, maintain_order=True).agg(
        pl.col("size_bytes").sum(), pl.len().alias("requests")
    )


@dataclass(frozen=True)
class Nfs:
    """The synthetic server, one stream per seed, and a real one.

    Attributes:
        loads: by seed.
        real: the recording behind the cache; None if it is not at hand.
        original: the recording before the cache; None if it is not at hand.
    """

    loads: list[Load]
    real: Load | None
    original: Load | None

    @classmethod
    def load(cls, binary: BinaryCache) -> "Nfs":
        """Makes the streams, or reads them from the cache."""
        loads = binary.each(
            lambda seed: load_of(binary.stream("auspex-nfs", seed, DURATION_S, per_second), DURATION_S), SEEDS
        )
        return cls(loads, _real(binary, CACHE_MIB), _real(binary, None))

    def mean_of(self, name: str) -> Interval:
        """Mean and interval over seeds of one of Load's figures."""
        return over_seeds(getattr(load, name) for load in self.loads)

    def table(self) -> pl.DataFrame:
        """Shenoy, Table 3."""
        gone = "not modelled"
        lines = (
            ("rate before the cache (KB/s)", paper.NFS_ORIGINAL_KB_S, None, self.original, "kb_s"),
            ("rate behind the cache (KB/s)", paper.NFS_KB_S, "kb_s", self.real, "kb_s"),
            ("time between requests before (ms)", paper.NFS_ORIGINAL_GAP_MS, None, self.original, "gap_ms"),
            ("time between requests behind (ms)", paper.NFS_GAP_MS, "gap_ms", self.real, "gap_ms"),
            ("request size (bytes)", paper.NFS_SIZE_BYTES, "size_bytes", self.real, "size_bytes"),
            ("peak to mean, 1 s", paper.NFS_PEAK_TO_MEAN, "peak_to_mean", self.real, "peak_to_mean"),
        )
        rows = [
            (
                words,
                number(value),
                text(self.mean_of(name)) if name else gone,
                NOT_AT_HAND if real is None else number(getattr(real, real_name)),
            )
            for words, value, name, real, real_name in lines
        ]
        names = ("Table 3", "paper", "synthetic", f"real: {REAL_NAME}")
        return pl.DataFrame(rows, schema=names, orient="row")

    def claims(self) -> Iterator[Claim]:
        """S-T3 and S-F6."""
        yield paper.SHENOY.judged("S-T3 rate", self.mean_of("kb_s"))
        yield paper.SHENOY.judged("S-T3 gap", self.mean_of("gap_ms"))
        yield paper.SHENOY.judged("S-T3 size", self.mean_of("size_bytes"))
        beside = "" if self.real is None else f"; {REAL_NAME}, real: {self.real.peak_to_mean:.0f}"
        yield paper.SHENOY.judged("S-F6a", self.mean_of("peak_to_mean"), f"over 1 s{beside}")
        yield self._distribution()

    def _distribution(self) -> Claim:
        mean = over_seeds(1 / load.peak_to_mean for load in self.loads)
        levels = paper_distribution()
        ours = [
            np.mean([series.share_above(load.bytes_per_s, level) for load in self.loads])
            for _, level, _ in levels
        ]
        at, said, found = (
            ", ".join(format(v, spec) for v in values)
            for values, spec in (
                ([level for _, level, _ in levels], ".2f"),
                ([share for *_, share in levels], ".2f"),
                (ours, ".3f"),
            )
        )
        note = (
            f"windows of 1 s; share of windows above {at} of the peak: ours {found}, paper {said}; "
            f"the paper's own peak to mean in windows of 1 s would give {1 / paper.NFS_PEAK_TO_MEAN:.3f}"
        )
        return paper.SHENOY.judged("S-F6b", mean, note)


def paper_distribution() -> list[tuple[float, float, float]]:
    """Points of Fig. 6b implied by Shenoy's 3.3: mean / peak, level / peak, share of load above it."""
    return [
        (mean / peak, paper.NFS_CAPACITY / peak, delta) for delta, (mean, peak) in paper.NFS_LOADS.items()
    ]


def load_of(seconds: pl.DataFrame, duration_s: float) -> Load:
    """The stream that has these seconds.

    Args:
        seconds: as `per_second` makes them; a second without requests has no row.
        duration_s: length of the stream.
    """
    at_ns = seconds["second"].to_numpy().astype(np.int64) * SECOND_NS
    sums = series.window_sums(at_ns, seconds["size_bytes"].to_numpy(), SECOND_NS, int(duration_s * SECOND_NS))
    return Load(sums, int(seconds["requests"].sum()), duration_s)


def _real(binary: BinaryCache, cache_mib: int | None) -> Load | None:
    rows = binary.recording(REAL, cache_mib=cache_mib)
    if rows is None:
        return None
    seconds = per_second(rows.lazy()).collect()
    # A clock of whole seconds would end on the last request; this one's is finer.
    return load_of(seconds, float(seconds["second"].max() + 1))
