"""Claims of Figs. 7 to 12: both servers at the loads that the partitioned one bears."""

from collections.abc import Iterator

import numpy as np

from papers.shenoy import CLAIMS
from papers.shenoy.results import EQUAL_PCT, SERVERS, Surface
from weir.claims import Claim, over_seeds
from weir.labels import number

#: A response that is longer by no more than this share is comparable.
COMPARABLE = 0.15
#: Within this share a response is independent of a load.
EQUAL = 0.05
#: From this share more on a response is significantly longer.
SIGNIFICANT = 0.25
#: "Low" and "light" are below this share of a server's limit, "heavy" above.
HALF = 0.5
#: "Light and moderate" video loads go up to this share of V.
MODERATE = 0.6
#: "Heavy text loads" begin at this share of T.
HEAVY = 0.9
#: A service time is "largely independent" of what changes it by less than this share.
LARGELY = 0.2
#: Text loads of Fig. 9, as shares of T.
OF_FIG_9 = (0.25, 0.5, 0.75, 1)


def region(text: dict[str, Surface], video: dict[str, Surface]) -> Iterator[Claim]:
    """S-F7 and S-F8: where, and by how much, the integrated server is better or worse."""
    yield from _text_in_the_region(text)
    apart, shared = (video[server].without_video_zero() for server in SERVERS)
    more = shared.values - apart.values
    worse = more.mean(axis=0) > EQUAL_PCT
    t, v = np.nonzero(worse)
    light = (apart.text[t] <= HALF * apart.text[-1]) | (apart.video[v] <= HALF * apart.video[-1])
    note = f"at most {number(more.mean(axis=0).max())} percentage points more"
    if t.size:
        note += (
            f", from {number(apart.text[t].min())} text and {number(apart.video[v].min())} video clients on"
        )
    share = 100 * (1 - (more > EQUAL_PCT).mean(axis=(1, 2)))
    yield CLAIMS.judged("S-F7 video", over_seeds(share), note, shape=not light.any())


def _text_in_the_region(text: dict[str, Surface]) -> Iterator[Claim]:
    apart, shared = (text[server].without_text_zero() for server in SERVERS)
    worse = shared.mean > apart.mean * (1 + COMPARABLE)
    low = np.add.outer(apart.text, 0 * apart.video) < HALF * apart.text[-1]
    heavy = np.add.outer(0 * apart.text, apart.video) > HALF * apart.video[-1]
    share = 100 * (1 - (shared.values > apart.values * (1 + COMPARABLE)).mean(axis=(1, 2)))
    note = f"{number(100 * np.mean(worse & low & heavy))} % worse at low text and heavy video"
    elsewhere = worse & ~(low & heavy)
    if elsewhere.any():
        t, v = np.nonzero(elsewhere)
        note += (
            f", {number(100 * np.mean(elsewhere))} % elsewhere: {_range(apart.text[t])} text and "
            f"{_range(apart.video[v])} video clients"
        )
    only = bool(elsewhere.mean() < EQUAL)
    yield CLAIMS.judged("S-F7 text", over_seeds(share), note, shape=only)
    ratio = apart.values / shared.values
    gain = 100 * (ratio > 1 + SIGNIFICANT).mean(axis=(1, 2))
    yield CLAIMS.judged("S-F8 gain", over_seeds(gain), f"{number(ratio.mean())} times as long on average")
    t, v = np.unravel_index(np.argmin(ratio.mean(axis=0)), ratio.shape[1:])
    note = f"at {number(apart.text[t])} text and {number(apart.video[v])} video clients"
    yield CLAIMS.judged("S-F8 loss", over_seeds(1 / ratio[:, t, v]), note)


def _range(values: np.ndarray) -> str:
    return f"{number(values.min())} to {number(values.max())}"


def against_video(text: dict[str, Surface]) -> Iterator[Claim]:
    """S-F9: the response of text as video is added."""
    apart, shared = (text[server].without_text_zero() for server in SERVERS)
    at = [int(np.argmin(np.abs(apart.text - share * apart.text[-1]))) for share in OF_FIG_9]
    flat = all(np.ptp(apart.mean[row]) <= EQUAL * apart.mean[row].mean() for row in at)
    rising = all(shared.mean[row][-1] > shared.mean[row][0] for row in at)
    lines = shared.values[:, at]
    # Per tenth of V, however far apart the points are.
    tenths = np.diff(10 * shared.video / shared.video[-1])
    steps = 100 * ((lines[:, :, 1:] / lines[:, :, :-1]) ** (1 / tenths) - 1)
    said = [
        f"{number(shared.mean[row][0])} to {number(shared.mean[row][-1])} ms at {number(apart.text[row])} "
        f"(apart {number(apart.mean[row].mean())})"
        for row in at
    ]
    note = f"integrated from no video to V: {', '.join(said)}"
    yield CLAIMS.judged("S-F9", over_seeds(steps.max(axis=(1, 2))), note, shape=bool(flat and rising))


def against_text(text: dict[str, Surface]) -> Iterator[Claim]:
    """S-F10: the response of text as text is added."""
    apart, shared = (text[server].without_text_zero() for server in SERVERS)
    growth = {name: (s.mean[-1] - s.mean[0]) for name, s in zip(SERVERS, (apart, shared), strict=True)}
    rising = all((np.diff(s.mean, axis=0) > 0).mean() > 1 - EQUAL for s in (apart, shared))
    faster = bool((growth["partitioned"] > growth["integrated"]).mean() > HALF)
    heavy = apart.text >= HEAVY * apart.text[-1]
    least = (apart.values[:, heavy] / shared.values[:, heavy]).min(axis=(1, 2))
    better = (shared.mean[heavy] < apart.mean[heavy]).mean(axis=0) == 1
    until = apart.video[better].max() if better.any() else 0
    more_apart, more_together = growth["partitioned"].mean(), growth["integrated"]
    note = (
        f"from {number(apart.text[0])} to {number(apart.text[-1])} text clients {number(more_apart)} ms more "
        f"apart, {number(more_together[0])} (no video) to {number(more_together[-1])} ms (V) together; at "
        f"heavy text together is better up to {number(until)} video clients"
    )
    yield CLAIMS.judged("S-F10", over_seeds(least), note, shape=bool(rising and faster))


def parts(service: dict[str, Surface], queueing: dict[str, Surface]) -> Iterator[Claim]:
    """S-F11: what a text's disk access grows by, from the lightest to the heaviest text load at half of V."""
    shares, notes, level = [], [], True
    for server in SERVERS:
        s, q = service[server].without_text_zero(), queueing[server].without_text_zero()
        half = int(np.argmin(np.abs(s.video - HALF * s.video[-1])))
        ds, dq = s.values[:, -1, half] - s.values[:, 0, half], q.values[:, -1, half] - q.values[:, 0, half]
        shares.append(100 * dq / (ds + dq))
        level = level and abs(ds.mean()) <= LARGELY * s.mean[0, half]
        notes.append(
            f"{server}: service {number(s.mean[0, half])} to {number(s.mean[-1, half])} ms, "
            f"queueing {number(q.mean[0, half])} to {number(q.mean[-1, half])} ms"
        )
    yield CLAIMS.judged("S-F11", over_seeds(np.minimum(*shares)), "; ".join(notes), shape=bool(level))


def deadlines(video: dict[str, Surface]) -> Iterator[Claim]:
    """S-F12: violated deadlines over the video load."""
    apart, shared = (video[server].without_video_zero() for server in SERVERS)
    moderate = apart.video <= MODERATE * apart.video[-1]
    most = {
        server: one.values[:, :, moderate].max(axis=(1, 2))
        for server, one in zip(SERVERS, (apart, shared), strict=True)
    }
    note = f"up to {MODERATE:.0%} of V: " + ", ".join(
        f"{number(values.mean())} % {server}" for server, values in most.items()
    )
    yield CLAIMS.judged("S-F12 moderate", over_seeds(np.maximum(*most.values())), note)
    more = shared.values[:, :, -1] - apart.values[:, :, -1]
    light = np.flatnonzero(apart.text <= HALF * apart.text[-1])
    at = light[np.argmax(np.abs(more.mean(axis=0)[light]))]
    for name, row in (("light", at), ("heavy", -1)):
        note = (
            f"at {number(apart.text[row])} text and {number(apart.video[-1])} video clients "
            f"{number(apart.mean[row, -1])} % apart, {number(shared.mean[row, -1])} % together"
        )
        yield CLAIMS.judged(f"S-F12 {name} text", over_seeds(more[:, row]), note)
