"""The paper's studies as tables: response of text and violated deadlines of video, by operating point."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from scipy.interpolate import RegularGridInterpolator

from weir.load import Study
from weir.study import class_table

#: What a server is full at: mean response of text (ms) and share of violated deadlines (%), tau_t and tau_v
#: of 2.2.
FULL_MS = 100.0
FULL_PCT = 1.0
#: Within this many percentage points two shares of violated deadlines are equal.
EQUAL_PCT = 0.1
#: The integrated server's scheduler: its interval is the video server's round, the paper's only period.
CELLO = "cello batches=none period_ms=1000 slack=insertion"
#: Servers, in the order of figures.
SERVERS = ("partitioned", "integrated")
TEXT, VIDEO = "clients.text", "clients.video"


#: Columns of mean queueing delay and service time: of a disk access, and of a request, whose service is that
#: of the piece that was finished last.
PARTS = ("queueing", "service")
OF_ACCESS = {part: f"access_{part}_mean_ms" for part in PARTS}
OF_REQUEST = {part: f"{part}_mean_ms" for part in PARTS}


def text_table(study: Study) -> pl.DataFrame:
    """One row per valid run with text: levels, `response_ms`, `answered_ms`.

    A run that cannot keep up leaves requests unanswered: its `response_ms` is infinite. `answered_ms` is the
    mean of what was answered. Of such a run it depends on the run's length and is less than the response; it
    serves for interpolation, since such a server is far beyond its limit by either.
    """
    table = class_table(study).filter(pl.col("class") == "text")
    answered = pl.col("queueing_mean_ms") + pl.col("service_mean_ms")
    drained = pl.col("unfinished").fill_null(0) == 0
    return _counted(table).with_columns(
        answered.alias("answered_ms"),
        pl.when(drained).then(answered).otherwise(float("inf")).alias("response_ms"),
    )


def access_parts(text: pl.DataFrame) -> dict[str, str] | None:
    """Columns of the mean queueing delay and service time of a disk access; None if the runs counted none."""
    counted = all(
        name in text.columns and text[name].null_count() < text.height for name in OF_ACCESS.values()
    )
    return OF_ACCESS if counted else None


def files_for(text: pl.DataFrame, clients: float) -> float:
    """With how many files a server responds in `FULL_MS` to so many clients, between those tried.

    NaN if that is fewer or more than were tried.

    Args:
        text: of a study whose variants are `files-N`, at several numbers of clients.
        clients: the number wanted.
    """
    files = text.with_columns(pl.col("variant").str.extract(r"files-(\d+)").cast(pl.Int64).alias("files"))
    at = (
        files.filter(pl.col(TEXT) == clients)
        .group_by("files", maintain_order=True)
        .agg(pl.col("answered_ms").mean())
    )
    at = at.sort("files")
    if at.is_empty() or at["answered_ms"][0] > FULL_MS:
        return float("nan")
    return crossing(at["files"].to_numpy(), at["answered_ms"].to_numpy(), FULL_MS)


def video_table(study: Study) -> pl.DataFrame:
    """One row per valid run with video: levels and `violated_pct`."""
    table = class_table(study).filter(pl.col("class") == "video")
    return _counted(table).with_columns((100 * pl.col("deadline_miss_share")).alias("violated_pct"))


def _counted(table: pl.DataFrame) -> pl.DataFrame:
    """With the numbers of clients as numbers, where they are levels such as `text=10 video=0`."""
    if "clients" not in table.columns:
        return table
    of = pl.col("clients").str.extract
    return table.with_columns(
        of(r"text=(\d+)").cast(pl.Int64).alias(TEXT), of(r"video=(\d+)").cast(pl.Int64).alias(VIDEO)
    )


def crossing(x: np.ndarray, y: np.ndarray, limit: float) -> float:
    """The point where a growing curve reaches a limit, by linear interpolation.

    NaN where it does not, its first place where it begins above.

    Args:
        x: places, ascending.
        y: values there; not all need be larger than the one before.
        limit: the value to reach.
    """
    above = np.flatnonzero(y > limit)
    if above.size == 0:
        return float("nan")
    at = int(above[0])
    if at == 0:
        return float(x[0])
    share = (limit - y[at - 1]) / (y[at] - y[at - 1])
    return float(x[at - 1] + share * (x[at] - x[at - 1]))


def capacities(table: pl.DataFrame, server: str, clients: str, metric: str, limit: float) -> list[float]:
    """Capacity of a server in clients, by repetition."""
    found = []
    table = table.filter(pl.col("architecture") == server).sort("repetition", clients)
    for _, rows in table.group_by("repetition", maintain_order=True):
        found.append(crossing(rows[clients].to_numpy(), rows[metric].to_numpy(), limit))
    return found


@dataclass(frozen=True)
class Surface:
    """A metric over text and video clients, by repetition.

    Attributes:
        text: numbers of text clients, ascending.
        video: numbers of video clients, ascending.
        values: by repetition, text and video; NaN where no run is.
    """

    text: np.ndarray
    video: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, table: pl.DataFrame, server: str, metric: str) -> "Surface":
        """The surface of one server."""
        rows = table.filter(pl.col("architecture") == server) if "architecture" in table.columns else table
        text, video = np.unique(rows[TEXT].to_numpy()), np.unique(rows[VIDEO].to_numpy())
        repetitions = np.unique(rows["repetition"].to_numpy())
        values = np.full((len(repetitions), len(text), len(video)), np.nan)
        at = (
            np.searchsorted(repetitions, rows["repetition"].to_numpy()),
            np.searchsorted(text, rows[TEXT].to_numpy()),
            np.searchsorted(video, rows[VIDEO].to_numpy()),
        )
        values[at] = rows[metric].to_numpy()
        return cls(text.astype(float), video.astype(float), values)

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean over repetitions, by text and video."""
        return np.asarray(self.values.mean(axis=0))

    def at(self, text: np.ndarray, video: np.ndarray) -> np.ndarray:
        """Between the points, linearly, by repetition; beyond the ends the end's."""
        text = np.clip(text, self.text[0], self.text[-1])
        video = np.clip(video, self.video[0], self.video[-1])
        points = np.stack(np.broadcast_arrays(text, video), axis=-1)
        return np.stack(
            [RegularGridInterpolator((self.text, self.video), one)(points) for one in self.values]
        )

    def frame(self) -> pl.DataFrame:
        """A row per repetition and mix: `repetition`, the numbers of clients, `value`."""
        repetition, text, video = np.indices(self.values.shape)
        return pl.DataFrame(
            {
                "repetition": repetition.ravel(),
                TEXT: self.text[text.ravel()],
                VIDEO: self.video[video.ravel()],
                "value": self.values.ravel(),
            }
        )

    def without_text_zero(self) -> "Surface":
        """Without the row of no text clients, which have no response."""
        keep = self.text > 0
        return Surface(self.text[keep], self.video, self.values[:, keep])

    def without_video_zero(self) -> "Surface":
        """Without the column of no video clients, which violate nothing."""
        keep = self.video > 0
        return Surface(self.text, self.video[keep], self.values[:, :, keep])


def apart(table: pl.DataFrame) -> Surface:
    """The response of text on a partitioned server, whatever the video load: of runs without video."""
    rows = table.filter((pl.col("architecture") == "partitioned") & (pl.col(VIDEO) == 0))
    line = Surface.of(rows, "partitioned", "answered_ms")
    return Surface(line.text, np.array([0.0, 1e6]), np.repeat(line.values, 2, axis=2))


@dataclass(frozen=True)
class Reached:
    """How far a server gets on a ray.

    Attributes:
        lost_pct: what is missing to the ray's end, by repetition; negative where it gets further.
        first: `text` or `video`, whose limit is reached first on average, or `neither`.
    """

    lost_pct: np.ndarray
    first: str


def along(text: Surface, video: Surface, end: tuple[float, float]) -> Reached:
    """How far a server gets on the ray to a mix before text or video is over its limit.

    Args:
        text: response of text in ms.
        video: violated deadlines in per cent.
        end: text and video clients at the ray's end.
    """
    # Of integers: whole shares are exact.
    shares = np.arange(0, 1200) / 1000
    ms, pct = (surface.at(shares * end[0], shares * end[1]) for surface in (text, video))
    # Full at the first point: nothing is borne on this ray.
    borne = [max(_first(over) - 1, 0) for over in (ms > FULL_MS) | (pct > FULL_PCT)]
    slow, late = _first(ms.mean(axis=0) > FULL_MS), _first(pct.mean(axis=0) > FULL_PCT)
    first = "neither" if slow == late == len(shares) else "text" if slow <= late else "video"
    return Reached(100 * (1 - shares[borne]), first)


def _first(over: np.ndarray) -> int:
    """The first place where it is so; their number where it is nowhere so."""
    return int(over.argmax()) if over.any() else len(over)
