"""Memory broker: fixed and variable buffers (5.2.4).

Fixed buffers are an application's for as long as it lives. Variable ones are handed out first come, first
served; when they are out, every application is entitled to the same ratio of variable to fixed buffers, and
who has more is told, by a counter, how many to return. What is not returned within 500 ms is taken.
"""

from dataclasses import dataclass

REVOKE_MS = 500.0


@dataclass
class Application:
    """An application.

    Attributes:
        fixed: buffers that it was promised.
        held: how many of these it has.
        variable: buffers that can be asked back.
        counter: how many it was ever asked to return: an event counter, which only grows.
        returned: how many of these it returned or lost.
    """

    fixed: int
    held: int = 0
    variable: int = 0
    counter: int = 0
    returned: int = 0

    @property
    def owed(self) -> int:
        """Buffers that it is asked for and has not returned."""
        return self.counter - self.returned


@dataclass
class _Waiting:
    """The pending request of an application."""

    name: str
    count: int
    is_fixed: bool


class NoRoomError(Exception):
    """Fixed buffers were asked for that cannot all be fixed."""


class Broker:
    """The buffers of a machine. Times are in ms and never go back.

    Args:
        buffers: all of them.
        reserve: of these, kept from caches, so that streams are served quickly.
    """

    def __init__(self, buffers: int, reserve: int = 0) -> None:
        self.buffers, self.reserve = buffers, reserve
        self.applications: dict[str, Application] = {}
        self._waiting: list[_Waiting] = []
        self._deadlines: list[tuple[float, str, int]] = []

    @property
    def free(self) -> int:
        """Buffers that nobody has."""
        return self.buffers - sum(a.held + a.variable for a in self.applications.values())

    def missing(self, name: str) -> int:
        """Buffers that an application waits for."""
        return sum(w.count for w in self._waiting if w.name == name)

    def share(self, name: str) -> float:
        """Variable buffers that an application is entitled to: the common ratio times its fixed ones."""
        fixed = sum(a.fixed for a in self.applications.values())
        if not fixed:
            return 0.0
        return (self.buffers - self.reserve - fixed) * self.applications[name].fixed / fixed

    def whole_share(self, name: str) -> int:
        """The same in whole buffers: what is left over by rounding goes to the largest remainders."""
        shares = {other: self.share(other) for other in self.applications}
        left = round(sum(shares.values())) - sum(int(part) for part in shares.values())
        by_remainder = sorted(shares, key=lambda other: int(shares[other]) - shares[other])
        return int(shares[name]) + (name in by_remainder[:left])

    def enter(self, name: str, fixed: int, now_ms: float) -> None:
        """An application comes, with the fixed buffers that it needs; it may have to wait for them.

        Raises:
            NoRoomError: they do not fit beside the fixed buffers of the others.
        """
        room = self.buffers - self.reserve - sum(a.fixed for a in self.applications.values())
        if fixed > room:
            raise NoRoomError(f"{fixed} fixed buffers for {name!r}, {room} are left")
        self.applications[name] = Application(fixed)
        # What is promised comes before what is only asked for.
        behind = sum(w.is_fixed for w in self._waiting)
        self._waiting.insert(behind, _Waiting(name, fixed, is_fixed=True))
        self._settle(now_ms)

    def ask(self, name: str, buffers: int, now_ms: float) -> None:
        """An application asks for variable buffers and waits for what is not free."""
        self._waiting.append(_Waiting(name, buffers, is_fixed=False))
        self._settle(now_ms)

    def grow(self, name: str, buffers: int) -> int:
        """A cache takes what is free beyond the reserve, if nobody waits for it: how many it got."""
        got = 0 if self._waiting else max(0, min(buffers, self.free - self.reserve))
        self.applications[name].variable += got
        return got

    def give_back(self, name: str, buffers: int, now_ms: float) -> None:
        """An application returns variable buffers, asked or not."""
        application = self.applications[name]
        buffers = min(buffers, application.variable)
        application.variable -= buffers
        application.returned += min(buffers, application.owed)
        self._settle(now_ms)

    def leave(self, name: str, now_ms: float) -> None:
        """An application ends."""
        del self.applications[name]
        self._waiting = [w for w in self._waiting if w.name != name]
        self._settle(now_ms)

    def advance(self, now_ms: float) -> None:
        """Takes by force what is due by now, if somebody waits for it."""
        due = [d for d in self._deadlines if d[0] <= now_ms]
        self._deadlines = [d for d in self._deadlines if d[0] > now_ms]
        for _, name, counter in due:
            application = self.applications.get(name)
            if application and self._waiting and counter > application.returned:
                self.give_back(name, counter - application.returned, now_ms)

    def _settle(self, now_ms: float) -> None:
        """Gives what is free to those who wait, and asks others for the rest."""
        # First what is promised, then what brings somebody to its share.
        for up_to in (lambda w: w.count if w.is_fixed else 0, self._entitled):
            for waiting in self._waiting:
                self._give(waiting, min(up_to(waiting), self.free))
        self._waiting = [w for w in self._waiting if w.count]
        while self.free > 0 and self._waiting:
            # Beyond shares a buffer at a time, to whoever has least more than its own.
            least = min(self._waiting, key=lambda w: self._surplus(w.name))
            self._give(least, 1)
            self._waiting = [w for w in self._waiting if w.count]
        wanted = sum(w.count if w.is_fixed else self._entitled(w) for w in self._waiting)
        wanted -= sum(a.owed for a in self.applications.values())
        for name in sorted(self.applications, key=self._above, reverse=True):
            back = min(self._above(name), wanted)
            if back > 0:
                application = self.applications[name]
                application.counter += back
                wanted -= back
                self._deadlines.append((now_ms + REVOKE_MS, name, application.counter))

    def _give(self, waiting: _Waiting, count: int) -> None:
        application = self.applications[waiting.name]
        if waiting.is_fixed:
            application.held += count
        else:
            application.variable += count
        waiting.count -= count

    def _surplus(self, name: str) -> float:
        return self.applications[name].variable - self.share(name)

    def _entitled(self, waiting: _Waiting) -> int:
        """Buffers requested from others for an application, up to its share."""
        return max(
            0, min(waiting.count, self.whole_share(waiting.name) - self.applications[waiting.name].variable)
        )

    def _above(self, name: str) -> int:
        """Variable buffers beyond an application's share that it has not yet been asked for."""
        application = self.applications[name]
        return max(0, application.variable - application.owed - self.whole_share(name))
