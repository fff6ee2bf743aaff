"""Series computed from a stream: loads over windows, inter-block delays, rates of users.

All times are in ns since the stream's start unless a name says otherwise. KB is 1024 bytes, as in the papers.
"""

from dataclasses import dataclass

import numpy as np

KB = 1024
#: "10 % more bandwidth than the average": a buffer that is full in less than 1/1.1 of the mean
#: time is early.
EARLY = 1.1


def window_sums(at_ns: np.ndarray, weights: np.ndarray, window_ns: int, span_ns: int) -> np.ndarray:
    """Sums of weights over all whole windows of a span: floor(span / window) values.

    What arrives after the last whole window is left out.
    """
    windows = span_ns // window_ns
    at = at_ns // window_ns
    inside = at < windows
    return np.bincount(at[inside], weights=weights[inside], minlength=windows)


def peak_to_mean(loads: np.ndarray) -> float:
    """Load of the busiest window by that of the mean window; nan without any load.

    Shenoy et al., Table 3: "peak to average bit rate (1s intervals)".
    """
    mean = loads.mean()
    return float(loads.max() / mean) if mean > 0 else float("nan")


def variation(values: np.ndarray) -> float:
    """Coefficient of variation: standard deviation (of the population) by mean."""
    return float(values.std() / values.mean())


def share_above(loads: np.ndarray, level: float) -> float:
    """Share of windows whose load is above `level` times that of the busiest."""
    return float(np.mean(loads > level * loads.max()))


def frame_rates_mbit_s(frames_bytes: np.ndarray, rate_hz: float, window_s: float = 1.0) -> np.ndarray:
    """Bit rate of a film over consecutive windows, in 10^6 bits per second; only whole ones."""
    frames = round(window_s * rate_hz)
    whole = frames_bytes[: len(frames_bytes) // frames * frames].reshape(-1, frames)
    return whole.sum(axis=1) * 8 * rate_hz / frames / 1e6


def aggregate_mbit_s(
    films: list[np.ndarray], rate_hz: float, clients: int, seconds: int, seed: int
) -> np.ndarray:
    """Bit rate of several clients together, of films and starts drawn at random (Shenoy et al., 2.3).

    Args:
        films: frame sizes in bytes; a film that ends starts again.
        rate_hz: frames a second of all of them; a whole number.
        clients: how many watch.
        seconds: windows of one second to return.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    total = np.zeros(seconds)
    wanted = np.arange(round(seconds * rate_hz))
    for _ in range(clients):
        film = films[rng.integers(len(films))]
        seen = film[(rng.integers(len(film)) + wanted) % len(film)]
        total += frame_rates_mbit_s(seen, rate_hz)
    return total


def block_delays_us_per_kb(frames_bytes: np.ndarray, rate_hz: float, block_bytes: int) -> np.ndarray:
    """Inter-block delays: times between two full buffers, by the buffer's size (Bosch, 3.1.2).

    A frame arrives whole at the end of its time; what a buffer cannot hold begins the next one, so a large
    frame fills several at once. The first delay runs from the film's start.

    Args:
        frames_bytes: sizes of the frames, in bytes.
        rate_hz: frames a second.
        block_bytes: size of a buffer.

    Returns:
        One value per full buffer, in microseconds per KB of buffer.
    """
    arrived = np.cumsum(frames_bytes)
    full_at = np.arange(1, arrived[-1] // block_bytes + 1) * block_bytes
    ticks = np.searchsorted(arrived, full_at, side="left") + 1
    return np.diff(ticks, prepend=0) * (1e6 / rate_hz) / (block_bytes / KB)


def early_share(delays: np.ndarray) -> float:
    """Share of buffers that are full more than a tenth faster than on average."""
    return float(np.mean(delays < delays.mean() / EARLY))


@dataclass(frozen=True)
class UserRates:
    """Rates of users over windows, in bytes per second.

    A user counts in the windows in which it asks for something, as in Baker et al. (SOSP 1991), the source of
    Bosch's Table 3.1.

    Attributes:
        mean: of users that are active, over all windows.
        std: of the same, of the population.
        user_peak: highest of one user.
        total_peak: highest of all users together.
    """

    mean: float
    std: float
    user_peak: float
    total_peak: float


def user_rates(client: np.ndarray, window: np.ndarray, size_bytes: np.ndarray, window_s: float) -> UserRates:
    """Rates from one row per client and window (or finer): client, index of the window, bytes."""
    asked, row = np.unique(np.stack([window, client]), axis=1, return_inverse=True)
    rates = np.bincount(row.ravel(), weights=size_bytes) / window_s
    totals = np.bincount(np.unique(asked[0], return_inverse=True)[1].ravel(), weights=rates)
    active = rates[rates > 0]
    return UserRates(float(active.mean()), float(active.std()), float(active.max()), float(totals.max()))


def by_hour(minutes: np.ndarray) -> np.ndarray:
    """Sums over clock hours of an array whose last axis is the 1,440 minutes of a day."""
    return minutes.reshape(*minutes.shape[:-1], 24, 60).sum(axis=-1)
