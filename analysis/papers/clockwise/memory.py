"""Memory of streams, and its division by the broker (5.2.4, 6.5.3)."""

from dataclasses import dataclass

from papers.clockwise import source
from papers.clockwise.broker import Broker
from papers.clockwise.streams import LAYOUTS, PAIRS, Layout

#: The machine of chapter 7: 128 MB in buffers of 64 KB, a few of them kept free.
BUFFERS, RESERVE = 2048, 64
#: Fixed buffers of two file systems, for their dirty blocks, and of the streams that come later.
FILE_SYSTEMS = {"file system 1": 256, "file system 2": 128}
STREAMS = {"stream 1": 192, "stream 2": 320}
#: When streams come, how often a cache asks for more, and how long it takes to clean what it is asked for.
ENTER_MS = {"stream 1": 1_000, "stream 2": 2_500}
STEP_MS, POLL_MS, CLEAN_MS = 10, 50, 120
END_MS = 4_000


def needed_mb(layout: Layout, pairs: dict[str, int]) -> float:
    """M = sum of 2 D b: two buffers per disk of each stream, in MB."""
    sizes = [
        2 * layout.disks_of_a_stream * layout.block_kb[part] * count
        for name, count in pairs.items()
        for part in PAIRS[name]
    ]
    return sum(sizes) * source.KB / source.MB


@dataclass(frozen=True)
class Timeline:
    """Buffers of each owner over time.

    Attributes:
        at_ms: times.
        held: by application, buffers at each time, fixed and variable.
        waited_ms: by stream, until it had all its fixed buffers.
    """

    at_ms: list[int]
    held: dict[str, list[int]]
    waited_ms: dict[str, float]


def shared(*, obeys: bool) -> Timeline:
    """Two file systems take all memory, then two streams come.

    Args:
        obeys: whether file systems return what they are asked for; if not, it is taken from them.
    """
    broker = Broker(BUFFERS, RESERVE)
    for name, fixed in FILE_SYSTEMS.items():
        broker.enter(name, fixed, 0)
    held: dict[str, list[int]] = {name: [] for name in FILE_SYSTEMS | STREAMS}
    waited, asked = {}, dict.fromkeys(FILE_SYSTEMS, 0)
    seen: dict[str, list[tuple[int, int]]] = {name: [] for name in FILE_SYSTEMS}
    times = list(range(0, END_MS + 1, STEP_MS))
    for now in times:
        broker.advance(now)
        for name, at in ENTER_MS.items():
            if now == at:
                broker.enter(name, STREAMS[name], now)
        for name in FILE_SYSTEMS:
            counter = broker.applications[name].counter
            if counter > asked[name]:
                seen[name].append((now + CLEAN_MS, counter - asked[name]))
                asked[name] = counter
            for at, count in [s for s in seen[name] if s[0] <= now and obeys]:
                broker.give_back(name, count, now)
                seen[name].remove((at, count))
            if now % POLL_MS == 0:
                broker.grow(name, BUFFERS // 16)
        for name in STREAMS:
            entered = name in broker.applications
            if entered and name not in waited and not broker.missing(name):
                waited[name] = now - ENTER_MS[name]
        for name, values in held.items():
            application = broker.applications.get(name)
            values.append(application.held + application.variable if application else 0)
    return Timeline(times, held, waited)


def contended() -> dict[str, float]:
    """Variable buffers that applications have beyond their share when all ask for all there is.

    They ask one after the other, so the first has everything until it is asked to return it. Nothing is
    reserved.
    """
    broker = Broker(BUFFERS)
    applications = FILE_SYSTEMS | STREAMS
    for at, (name, fixed) in enumerate(applications.items()):
        broker.enter(name, fixed, at)
        broker.ask(name, BUFFERS, at)
    # Long enough that all is taken which is not returned.
    for now in range(0, 10_000, STEP_MS):
        broker.advance(now)
    return {name: broker.applications[name].variable - broker.share(name) for name in applications}


def rows() -> dict[str, float]:
    """The sums that section 6.5.3 prints, in MB."""
    both = {"RO": 12, "WG": 13}
    return {
        "one": needed_mb(LAYOUTS["rotation"], {"RO": 1}),
        "rotation": needed_mb(LAYOUTS["rotation"], both),
        "memory": needed_mb(LAYOUTS["memory-optimized"], both),
        "large": needed_mb(LAYOUTS["memory-optimized (large buffers)"], both),
    }
