"""Claims: a paper's figure held against ours, by fixed rules.

The rules:

- A number is met if ours, the mean over seeds, is within the claim's limits: 15 % of the paper's number,
  unless its register has others with a reason. With `whole_interval` our whole interval must be within.
- `reproduced`: all numbers are met, and the shape holds.
- `shape only`: the shape holds, but a number is missed, or the paper prints none to meet (its figures were
  images; a curve that is judged by eye is no number).
- `not reproduced`: neither; the note says why.
- `fitted or input`: agreement is no evidence, because the model has this number or was fitted to it.
- `not obtainable`: what it needs is not public. `struck`: it is no well-formed claim.
- `not measured`: its study has no results.

A claim that is judged at several settings of an open parameter has the status of the setting that its
register names; the others are listed.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from weir.documents import read_list, write_text
from weir.errors import InputError
from weir.labels import number
from weir.register import MODEL, Entry, Register
from weir.statistics import Interval, mean_interval

REPRODUCED = "reproduced"
SHAPE_ONLY = "shape only"
NOT_REPRODUCED = "not reproduced"
NOT_MEASURED = "not measured"
FITTED = "fitted or input"
NOT_OBTAINABLE = "not obtainable"
STRUCK = "struck"
STATUSES = (REPRODUCED, SHAPE_ONLY, NOT_REPRODUCED, NOT_MEASURED, FITTED, NOT_OBTAINABLE, STRUCK)
#: Claims that count: all others are shown, and are evidence neither for nor against.
COUNTED = STATUSES[:4]
FILE = "claims.json"
_AGAIN = "run the notebook that writes it again"


@dataclass(frozen=True)
class AtSetting:
    """What one setting of an open parameter comes to.

    Attributes:
        setting: such as `period 10 s`.
        status: reproduced, shape only, or not reproduced.
        ours: our number there; None without one.
    """

    setting: str
    status: str
    ours: float | None


@dataclass(frozen=True)
class Claim:
    """A row of claims.json.

    Attributes:
        id: of the figure or table, and which part.
        status: one of `STATUSES`.
        paper: the paper's number; None if it prints none.
        ours: ours; None if there is none.
        interval: of ours, 95 %; None without one.
        unit: of all of them.
        note: what was looked at, and why it was missed.
        settings: of a claim that is judged at several settings.
    """

    id: str
    status: str
    paper: float | None
    ours: float | None
    interval: list[float] | None
    unit: str
    note: str
    settings: list[AtSetting] = field(default_factory=list)

    def holds(self) -> str:
        """`holds for ..., fails for ...`; empty for a claim that is judged at one setting."""
        good = [one.setting for one in self.settings if one.status == REPRODUCED]
        bad = [one.setting for one in self.settings if one.status != REPRODUCED]
        parts = [
            f"{verb} for {', '.join(names)}" for verb, names in (("holds", good), ("fails", bad)) if names
        ]
        return "; ".join(parts)


@dataclass(frozen=True)
class Found:
    """What our runs show of a claim.

    Attributes:
        ours: our number, with its interval over seeds if it has one; None if there is nothing to look at.
        note: what was looked at.
        shape: whether what the paper says in words holds; None if it says nothing beside the number.
        is_comparable: whether the two numbers are of the same thing; if not, they may be near by chance
            only, and the number is not met.
        missed: why it is missed, if it is.
    """

    ours: Interval | float | None
    note: str = ""
    shape: bool | None = None
    is_comparable: bool = True
    missed: str = ""

    @property
    def value(self) -> float | None:
        """Our number."""
        return self.ours.estimate if isinstance(self.ours, Interval) else self.ours

    @property
    def ends(self) -> list[float] | None:
        """Of its interval."""
        if not isinstance(self.ours, Interval) or self.ours.low is None or self.ours.high is None:
            return None
        return [self.ours.low, self.ours.high]


@dataclass(frozen=True)
class Claims:
    """Judges the claims of one paper.

    Attributes:
        register: the paper's.
    """

    register: Register

    @classmethod
    def beside(cls, module: str) -> "Claims":
        """Those of the register in the folder of a module.

        Args:
            module: its `__file__`.
        """
        return cls(Register.beside(module))

    def judged(
        self,
        id: str,
        ours: Interval | float | None,
        note: str = "",
        *,
        shape: bool | None = None,
        is_comparable: bool = True,
        missed: str = "",
    ) -> Claim:
        """A claim; the arguments are those of `Found`.

        Raises:
            InputError: the register has no such claim.
        """
        return self._judged(id, Found(ours, note, shape, is_comparable, missed))

    def over(self, id: str, found: Mapping[str, Found]) -> Claim:
        """A claim that a study shows at several settings of an open parameter.

        Args:
            id: the claim's.
            found: what our runs show, by setting.

        Raises:
            InputError: the register has no such claim, or its `setting` is none of these.
        """
        entry = self.register[id]
        if entry.setting not in found:
            problem = f"claim `{id}`: setting `{entry.setting}` is not one of {', '.join(found)}"
            raise InputError(self.register.path, problem, "name one of them")
        decides = self._judged(id, found[entry.setting])
        settings = [AtSetting(name, self._plain(entry, one), one.value) for name, one in found.items()]
        claim = replace(decides, settings=settings)
        return replace(claim, note=f"{claim.note}; {claim.holds()}")

    def completed(self, made: Iterable[Claim]) -> list[Claim]:
        """The claims of the register in its order: those that were judged, and the others with the reason.

        Raises:
            InputError: a claim was judged twice.
        """
        made = list(made)
        twice = [id for id, count in Counter(one.id for one in made).items() if count > 1]
        if twice:
            raise InputError(
                self.register.path, f"claim `{twice[0]}` was judged twice", "judge it in one place"
            )
        judged = {one.id: one for one in made}
        return [judged.get(id) or _unjudged(entry) for id, entry in self.register.entries.items()]

    def _judged(self, id: str, found: Found) -> Claim:
        entry = self.register[id]
        met, status = self._is_met(entry, found), self._plain(entry, found)
        note = f"{entry.place}: {entry.says}. Ours: {_noted(found)}"
        if status == NOT_REPRODUCED:
            reasons = [_why(entry, found, met), found.missed]
            note += "; not reproduced, because " + ": ".join(filter(None, reasons))
        elif status == SHAPE_ONLY and met is False:
            note += f"; the number is missed: {_why(entry, found, met)}"
            note += f": {found.missed}" if found.missed else ""
        if apart := _apart(entry):
            status, reason = apart
            note += f"; {status}: {reason}"
        return Claim(id, status, entry.paper, found.value, found.ends, entry.unit, note)

    def _plain(self, entry: Entry, found: Found) -> str:
        """The status by what was found alone."""
        # Truths may be numpy's, and its false is not `False` itself.
        if self._is_met(entry, found) and (found.shape is None or found.shape):
            return REPRODUCED
        return SHAPE_ONLY if found.shape else NOT_REPRODUCED

    def _is_met(self, entry: Entry, found: Found) -> bool | None:
        """Whether the number is met; None where there is none to meet."""
        bounds = entry.bounds
        if found.value is None or bounds is None:
            return None
        ends = found.ends if self.register.header.whole_interval else None
        return found.is_comparable and all(
            bounds[0] <= one <= bounds[1] for one in (found.value, *(ends or ()))
        )


def _noted(found: Found) -> str:
    own = found.ours.note if isinstance(found.ours, Interval) else ""
    value = "nothing" if found.value is None else number(found.value)
    return "; ".join(filter(None, (found.note, own))) or value


def _why(entry: Entry, found: Found, met: bool | None) -> str:
    if found.value is None:
        return "" if found.missed else "there is no number"
    if met or met is None:
        return "" if found.missed else "the shape is another"
    if not found.is_comparable:
        return "the two numbers are not of the same thing"
    low, high = entry.bounds or (-math.inf, math.inf)
    line = f"at least {number(low)}" if math.isinf(high) else f"from {number(low)} to {number(high)}"
    if low <= found.value <= high:
        return f"the interval is not all {line}"
    return f"{number(found.value)} is not {line}"


def _apart(entry: Entry) -> tuple[str, str] | None:
    """The status and reason of a claim that does not count."""
    for status, reason in (
        (FITTED, entry.fitted),
        (NOT_OBTAINABLE, entry.unobtainable),
        (STRUCK, entry.struck),
    ):
        if reason:
            return status, reason
    return None


def _unjudged(entry: Entry) -> Claim:
    commands = " or ".join(f"make study STUDY={name}" for name in entry.study if name != MODEL)
    why = f"no results to compare: {commands}" if commands else "the notebook was not run, or lacks its data"
    why = entry.lacks or why
    status, reason = _apart(entry) or (NOT_MEASURED, why)
    note = f"{entry.place}: {entry.says}. {reason}"
    return Claim(entry.id, status, entry.paper, None, None, entry.unit, note)


@dataclass(frozen=True)
class Headline:
    """How many claims are reproduced.

    Attributes:
        counts: claims by status.
    """

    counts: Mapping[str, int]

    @classmethod
    def of(cls, claims: Iterable[Claim]) -> "Headline":
        """The headline of some claims."""
        found = Counter(one.status for one in claims)
        return cls({status: found[status] for status in STATUSES})

    @property
    def counted(self) -> int:
        """Unique, well-formed, obtainable claims to which the model was not fitted."""
        return sum(self.counts[status] for status in COUNTED)

    @property
    def all(self) -> int:
        """All unique claims."""
        return sum(self.counts.values())

    def sentence(self) -> str:
        """Reproduced of obtainable, and of all."""
        good, parts = self.counts[REPRODUCED], []
        if self.counted == self.counts[NOT_MEASURED]:
            of = f"{self.counted} obtainable claims ({self.all} in all)"
            return f"None of {of} is judged: make figures STUDY=PAPER."
        for total, what in ((self.counted, "obtainable claims"), (self.all, "claims")):
            share = f" ({100 * good / total:.0f} %)" if total else ""
            parts.append(f"{good} of {total} {what}{share}")
        rest = ", ".join(f"{count} {status}" for status, count in self.counts.items() if status != REPRODUCED)
        return f"Reproduced: {parts[0]}, {parts[1]}. Others: {rest}."


def over_seeds(values: Iterable[float]) -> Interval:
    """Mean and 95 % t interval over seeds; each seed is a repetition."""
    return mean_interval([float(value) for value in values])


def write(folder: Path, claims: Iterable[Claim]) -> Path:
    """Writes claims.json into a folder and returns its path."""
    path = folder / FILE
    write_text(path, as_text(claims))
    return path


def as_text(claims: Iterable[Claim]) -> str:
    """What claims.json holds."""
    rows = [asdict(c) for c in claims]
    return json.dumps([row if row["settings"] else _short(row) for row in rows], indent=2) + "\n"


def _short(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "settings"}


def read(folder: Path) -> list[Claim]:
    """The claims of a folder; none without `claims.json`.

    Raises:
        InputError: the file is damaged, or a claim has no known status.
    """
    path = folder / FILE
    if not path.exists():
        return []
    found = []
    for row in read_list(path, _AGAIN):
        if row.get("status") not in STATUSES:
            wanted = ", ".join(STATUSES)
            raise InputError(path, f"field `status` is {row.get('status')!r}, not one of {wanted}", _AGAIN)
        try:
            settings: Sequence[AtSetting] = [AtSetting(**one) for one in row.get("settings", ())]
            found.append(Claim(**row | {"settings": list(settings)}))
        except TypeError as error:
            raise InputError(path, f"is damaged: {error}", _AGAIN) from error
    return found


def text(interval: Interval) -> str:
    """A mean and its interval, for tables."""
    if interval.low is None:
        return number(interval.estimate)
    return f"{number(interval.estimate)} [{number(interval.low)}, {number(interval.high)}]"
