"""Admission and deltaL of sets of streams, by `weir admit` (6.2; Table 6.2, Fig. 6.4)."""

import json
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from papers.clockwise.streams import LAYOUTS, Layout, Task, in_turn, rate_mb_s
from weir.binary_cache import BinaryCache

#: More pairs than any layout bears.
MOST_PAIRS = 40


@dataclass(frozen=True)
class Decision:
    """The decision of `weir admit` on a task set. Times are in ms.

    Attributes:
        admitted: whether it fits.
        utilisation: sum of C/T.
        delta_l_ms: the slack; None if rejected.
        in_order_ms: deltaLm.
        out_of_order_ms: deltaLn; None with a single period.
        shortfall_ms: what is missing, of a set rejected for a blocked interval.
        interval_ms: that interval.
    """

    admitted: bool
    utilisation: float
    delta_l_ms: float | None = None
    in_order_ms: float | None = None
    out_of_order_ms: float | None = None
    shortfall_ms: float | None = None
    interval_ms: float | None = None

    @property
    def decided_out_of_order(self) -> bool:
        """Whether deltaL is deltaLn: that of a request that was begun before earlier ones came."""
        return self.out_of_order_ms is not None and self.out_of_order_ms < (self.in_order_ms or 0.0)


Admit = Callable[[Sequence[Task], str], Decision]


def admitter(binary: BinaryCache) -> Admit:
    """A function that asks the binary; `mode` is `thesis` (intervals up to the longest period) or `exact`."""

    def admit(tasks: Sequence[Task], mode: str) -> Decision:
        document = {
            "tasks": [
                {"name": t.name, "cost_ms": t.cost_ms, "period_ms": round(t.period_ms, 6), "streams": t.count}
                for t in tasks
            ]
        }
        with tempfile.TemporaryDirectory(prefix="weir-admit-") as folder:
            path = Path(folder) / "tasks.yml"
            path.write_text(json.dumps(document), encoding="utf-8")
            return read(binary.output("admit", path, "--mode", mode, "--json", accepted=(0, 1)))

    return admit


def read(text: str) -> Decision:
    """A decision from the JSON that `weir admit` prints."""
    report = json.loads(text)
    share = float(report["utilisation"])
    if report["verdict"] == "admitted":
        slack = report["slack"]
        outside = slack["deltaLn"]
        return Decision(
            True,
            share,
            slack["deltaL_ns"] / 1e6,
            slack["deltaLm"]["slack_ns"] / 1e6,
            outside["slack_ns"] / 1e6 if outside else None,
        )
    why = report["rejection"]
    blocked = why["reason"] == "blocked"
    return Decision(
        False,
        share,
        shortfall_ms=why["shortfall_ns"] / 1e6 if blocked else None,
        interval_ms=why["interval_ns"] / 1e6 if blocked else None,
    )


@dataclass(frozen=True)
class Point:
    """One load of Fig. 6.4: pairs, MB/s, and the decision by kind of disk."""

    pairs: int
    mb_s: float
    disks: dict[str, Decision]


@dataclass(frozen=True)
class Curve:
    """DeltaL over the load, up to the last load that is admitted."""

    layout: str
    points: list[Point]

    @property
    def kinds(self) -> list[str]:
        """Kinds of disks, the ones that the text speaks of first."""
        return list(self.points[0].disks)

    def of(self, kind: str) -> list[tuple[float, Decision]]:
        """Load and decision of a kind of disk, for loads of which it has any streams."""
        return [(p.mb_s, p.disks[kind]) for p in self.points if p.disks[kind].utilisation > 0]

    @property
    def end_mb_s(self) -> float:
        """The last load."""
        return self.points[-1].mb_s


def curve(
    admit: Admit,
    layout: str,
    *,
    mode: str = "thesis",
    costs: str | None = None,
    rates_kb_s: dict[str, float] | None = None,
    order: Callable[[int], dict[str, int]] = in_turn,
) -> Curve:
    """The curve of a layout, pair by pair until one is refused.

    Args:
        admit: asks.
        layout: of `LAYOUTS`.
        mode: `thesis` or `exact`.
        costs: of `COSTS_MS`; the layout's own if None.
        rates_kb_s: of streams; Table 6.3's if None.
        order: the first so many pairs.
    """
    laid: Layout = LAYOUTS[layout]

    def point(count: int) -> Point:
        pairs = order(count)
        disks = {
            kind: admit(laid.tasks(of, costs, rates_kb_s), mode) if any(of.values()) else Decision(True, 0.0)
            for kind, of in laid.on_disks(pairs).items()
        }
        return Point(count, rate_mb_s(pairs, rates_kb_s), disks)

    with ThreadPoolExecutor(2) as pool:
        points = list(pool.map(point, range(1, MOST_PAIRS + 1)))
    refused = next(at for at, p in enumerate(points) if not all(v.admitted for v in p.disks.values()))
    return Curve(layout, points[:refused])


def regime_mb_s(found: Curve) -> float:
    """The load from which on requests in order decide deltaL, and no longer those out of order."""
    return next(p.mb_s for p in found.points if not next(iter(p.disks.values())).decided_out_of_order)
