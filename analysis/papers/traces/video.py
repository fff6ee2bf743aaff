"""Video: Shenoy Fig. 5 and Table 2, Bosch Figs. 3.1-3.3."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from papers.traces import paper, series
from weir.binary_cache import NOT_AT_HAND, BinaryCache
from weir.claims import Claim, over_seeds, text
from weir.labels import number
from weir.statistics import Interval

SEEDS = range(1, 21)
#: Real films: path, name, what their files have to be told, frames a second. None is of the papers.
STAR_WARS = ("mpeg/garrett/starwars.frames.old", "Star Wars (JPEG-like)", ("unit=bytes", "rate_hz=24"), 24.0)
SILENCE = ("mpeg/tkn/Terse_silence.dat", "Silence of the Lambs (MPEG-4)", ("unit=bytes", "rate_hz=25"), 25.0)
#: Length of Shenoy's Frasier trace: 5,960 frames at 30 a second.
SECONDS = 198
#: Sizes of blocks that are large beside a frame; the thesis does not say which it means.
LARGE_KB = (256, 1024)


@dataclass(frozen=True)
class Recorded:
    """A real film: its name, sizes of frames in bytes, frames a second."""

    name: str
    frames: np.ndarray
    rate_hz: float


def recorded(binary: BinaryCache, which: tuple[str, str, tuple[str, ...], float]) -> Recorded | None:
    """A real film; None if it is not at hand."""
    path, name, options, rate_hz = which
    rows = binary.recording(path, options)
    return None if rows is None else Recorded(name, rows["size_bytes"].to_numpy().astype(np.int64), rate_hz)


@dataclass(frozen=True)
class Mpeg:
    """Shenoy's four MPEG-1 films, one of each per seed.

    Attributes:
        films: by name, then by seed: sizes of frames in bytes.
        real: a real MPEG film.
    """

    films: dict[str, list[np.ndarray]]
    real: Recorded | None

    @classmethod
    def load(cls, binary: BinaryCache) -> "Mpeg":
        """Makes the films, or reads them from the cache."""
        films = {
            name: binary.each(lambda seed, name=name: binary.frames(f"mpeg-{name}", seed), SEEDS)
            for name in paper.MPEG_MBIT_S
        }
        return cls(films, recorded(binary, SILENCE))

    def single(self, at: int) -> np.ndarray:
        """Frasier's rate over windows of 1 s, in Mb/s, of one seed."""
        return series.frame_rates_mbit_s(self.films["frasier"][at], paper.MPEG_RATE_HZ)

    def together(self, at: int) -> np.ndarray:
        """The rate of ten clients, in Mb/s, of one seed."""
        films = [seeds[at] for seeds in self.films.values()]
        return series.aggregate_mbit_s(films, paper.MPEG_RATE_HZ, paper.AGGREGATE_CLIENTS, SECONDS, SEEDS[at])

    @cached_property
    def variations(self) -> tuple[Interval, Interval]:
        """Coefficients of variation of one film and of ten clients, over 1 s."""
        every = range(len(SEEDS))
        one = over_seeds(series.variation(self.single(at)) for at in every)
        return one, over_seeds(series.variation(self.together(at)) for at in every)

    def table(self) -> pl.DataFrame:
        """Shenoy, Table 2, and how much the rates vary."""
        rows = []
        for name, mbit_s in paper.MPEG_MBIT_S.items():
            rates = [series.frame_rates_mbit_s(film, paper.MPEG_RATE_HZ) for film in self.films[name]]
            mean = over_seeds(_mean_mbit_s(film) for film in self.films[name])
            cov = over_seeds(series.variation(rate) for rate in rates)
            rows.append((name, number(mbit_s), text(mean), "not printed", text(cov)))
        if self.real is None:
            rows.append((NOT_AT_HAND, "", "", "", ""))
        else:
            rate = series.frame_rates_mbit_s(self.real.frames, self.real.rate_hz)
            rows.append(
                (f"real: {self.real.name}", "", number(rate.mean()), "", number(series.variation(rate)))
            )
        names = ("film", "paper: Mb/s", "synthetic or real: Mb/s", "paper: CoV in 1 s", "CoV in 1 s")
        return pl.DataFrame(rows, schema=names, orient="row")

    def claims(self) -> Iterator[Claim]:
        """S-T2 and S-F5."""
        for name in paper.MPEG_MBIT_S:
            mean = over_seeds(_mean_mbit_s(film) for film in self.films[name])
            yield paper.SHENOY.judged(f"S-T2 {name}", mean)
        one, ten = self.variations
        yield paper.SHENOY.judged("S-F5a", one, "Frasier, over 1 s")
        note = f"{ten.estimate / one.estimate:.2f} of what one film varies by"
        yield paper.SHENOY.judged("S-F5b", ten, note)


@dataclass(frozen=True)
class MotionJpeg:
    """Bosch's three films, one of each per seed.

    Attributes:
        films: by the place in `paper.FILMS`, then by seed: sizes of frames in bytes.
        real: a real film whose every frame is coded on its own.
    """

    films: list[list[np.ndarray]]
    real: Recorded | None

    @classmethod
    def load(cls, binary: BinaryCache) -> "MotionJpeg":
        """Makes the films, or reads them from the cache."""
        films = [
            binary.each(lambda seed, film=film: binary.frames(film.workload, seed), SEEDS)
            for film in paper.FILMS
        ]
        return cls(films, recorded(binary, STAR_WARS))

    def panels(self) -> list[tuple[str, np.ndarray, float]]:
        """Name, frames in bytes and rate of what figures show: each film's first seed, and the real one."""
        shown = [(f.name, s[0], paper.FILM_RATE_HZ) for f, s in zip(paper.FILMS, self.films, strict=True)]
        if self.real is not None:
            shown.append((f"real: {self.real.name}", self.real.frames, self.real.rate_hz))
        return shown

    def table(self) -> pl.DataFrame:
        """Bosch, 3.1.1 and 3.1.2: sizes of frames, and early buffers."""
        rows = []
        for film, seeds in zip(paper.FILMS, self.films, strict=True):
            mean, std = (over_seeds(f(s) / series.KB for s in seeds) for f in (np.mean, np.std))
            printed = f"{film.mean_kb:.0f} ({film.std_kb})"
            shares = (text(early(seeds, kb)) for kb in LARGE_KB)
            own = f"{text(mean)} ({text(std)})"
            rows.append((film.name, printed, own, number(paper.EARLY_SHARE), *shares))
        if self.real is None:
            rows.append((NOT_AT_HAND, "", "", "", "", ""))
        else:
            sizes = self.real.frames / series.KB
            own = (f"real: {self.real.name}", "", f"{number(sizes.mean())} ({number(sizes.std())})", "")
            rows.append(own + tuple(number(self.real_early(kb)) for kb in LARGE_KB))
        names = ("film", "paper: KB (std)", "ours: KB (std)", "paper: early", "early, 256 KB", "early, 1 MB")
        return pl.DataFrame(rows, schema=names, orient="row")

    def real_early(self, block_kb: int) -> float | None:
        """Share of early buffers of the real film; None if it is not at hand."""
        if self.real is None:
            return None
        delays = series.block_delays_us_per_kb(self.real.frames, self.real.rate_hz, block_kb * series.KB)
        return series.early_share(delays)


def _mean_mbit_s(frames: np.ndarray) -> float:
    return float(frames.mean() * 8 * paper.MPEG_RATE_HZ / 1e6)


def delays(frames: np.ndarray, block_kb: int) -> np.ndarray:
    """Inter-block delays of a film in us per KB (`series.block_delays_us_per_kb`)."""
    return series.block_delays_us_per_kb(frames, paper.FILM_RATE_HZ, block_kb * series.KB)


def early(seeds: list[np.ndarray], block_kb: int) -> Interval:
    """Share of early buffers, over seeds."""
    return over_seeds(series.early_share(delays(frames, block_kb)) for frames in seeds)
