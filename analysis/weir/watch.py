"""Live view of a study that is running: in a terminal, as lines of a log, and as a page."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from weir import pages, plans
from weir.answers import answers
from weir.errors import InputError
from weir.labels import label, number
from weir.progress import Follower, Progress, be_idle
from weir.statistics import summarise
from weir.study import cell_label, objective_metric

#: Seconds between two looks at the folder.
INTERVAL_S = 2.0
#: A look at a large study takes at most this share of the time.
_SHARE = 0.2
#: A look reads finished runs for at most this long, so that the view does not stand still.
_BUDGET_S = 2.0
#: A plan that cannot be read for this long is an error: it is being replaced for less.
_PATIENCE_S = 10.0
#: The longest list of a view.
_MOST = 6
_INTERIM = (
    "Intervals of an unfinished study move: one that excludes 1 now may include it later. "
    "Conclude when all runs are finished."
)
#: How an interval is written: see `answers.Answer.effect`.
_CI = "95 % CI"
#: Exit code of a program that is ended by ctrl-c.
INTERRUPTED = 130


def watch(
    path: Path,
    console: Console,
    *,
    once: bool = False,
    page: Path | None = None,
    say: Callable[[dict[str, Any]], None] | None = None,
) -> int:
    """Shows a study until it is complete, and returns the exit code.

    Args:
        path: the study's folder, or `STUDY@LABEL`.
        console: where to show it: a terminal is drawn again, a log gets a line for each finished run.
        once: show it once.
        page: also write a page that refreshes itself.
        say: gets the state as a document at first and after each change, in place of the console.

    Raises:
        InputError: there is no such study, or the page cannot be written.
    """
    be_idle()
    follower = Follower(path)
    if once:
        progress = _shown(follower.progress(), page, refresh=False)
        if say is None:
            _print(console, progress)
        else:
            say(document(progress))
        return 0
    progress = _shown(follower.progress(_BUDGET_S), page)
    if say is not None:
        return _say_all(say, follower, progress, page)
    try:
        if console.is_terminal:
            # It is removed at the end, since a screen may be too small for all of it.
            with Live(_drawn(progress), console=console, auto_refresh=False, transient=True) as live:
                for latest in _follow(follower, progress, page):
                    progress = latest
                    live.update(_drawn(progress), refresh=True)
        else:
            _print(console, progress)
            for latest in _follow(follower, progress, page):
                if latest.finished > progress.finished:
                    console.print(_status(latest), soft_wrap=True)
                progress = latest
    except KeyboardInterrupt:
        _print(console, progress)
        return INTERRUPTED
    _print(console, progress)
    return 0


def _say_all(
    say: Callable[[dict[str, Any]], None], follower: Follower, progress: Progress, page: Path | None
) -> int:
    said = document(progress)
    say(said)
    try:
        for latest in _follow(follower, progress, page):
            found = document(latest)
            # Times change at each look.
            if found["runs"] != said["runs"] or latest.is_complete:
                said = found
                say(said)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def document(progress: Progress) -> dict[str, Any]:
    """The view as JSON."""
    study = progress.study
    return {
        "study": study.name,
        "label": study.label,
        "question": study.question,
        "planned": progress.planned,
        "finished": progress.finished,
        "is_complete": progress.is_complete,
        "is_paused": progress.is_paused,
        "left_s": progress.left_s,
        "idle_s": progress.idle_s,
        "runs": progress.counts,
        "running": [{"id": id, "elapsed_s": elapsed_s} for id, elapsed_s in progress.running.items()],
        "problems": _problems(progress),
        "steal_share": progress.steal[-1] if progress.steal else None,
        "effects": _effects(progress),
        "precision": study.decision,
    }


def _follow(follower: Follower, progress: Progress, page: Path | None) -> Iterator[Progress]:
    """The study whenever something of it may have changed, until it is complete."""
    failing_s = 0.0
    while not progress.is_complete:
        began = time.monotonic()
        try:
            latest = _shown(follower.progress(_BUDGET_S), page)
        except InputError:
            # The plan is being replaced.
            if failing_s >= _PATIENCE_S or not plans.split(follower.path)[0].is_dir():
                raise
            failing_s += INTERVAL_S
        else:
            progress, failing_s = latest, 0.0
            yield progress
        if not progress.is_complete:
            time.sleep(0 if progress.unread else max(INTERVAL_S, (time.monotonic() - began) / _SHARE))


def lines(progress: Progress) -> list[tuple[str, str]]:
    """The view: names and texts."""
    study = progress.study
    found = [("study", f"{study.name}: {study.question}"), ("progress", _status(progress))]
    found += [("now", text) for text in _now(progress)]
    counts = ", ".join(f"{len(study.runs_with(one))} {one}" for one in ("valid", "invalid", "skipped"))
    again = sum(run.validity.attempt > 1 for run in study.runs)
    repeated = f"; CPU steal made {again} run{_s(again)} need more than one attempt" if again else ""
    found.append(("validity", counts + repeated))
    found += [("", text) for text in _few(_problems(progress))]
    if progress.steal:
        share = [f"{100 * value:.1f} %" for value in (progress.steal[-1], max(progress.steal))]
        found.append(("CPU steal", f"{share[0]} of the wanted CPU time in the last run, {share[1]} at most"))
    effects = _few(_effects(progress)) or ["none yet"]
    if not progress.is_complete and any(_CI in text for text in effects):
        effects.append(_INTERIM)
    found += zip(["effects", *[""] * len(effects)], effects, strict=False)
    if study.decision:
        found.append(("precision", study.decision["sentence"]))
    return found


def _status(progress: Progress) -> str:
    """Progress in one line."""
    parts = [f"{progress.finished} of {progress.planned} runs"]
    if progress.planned:
        parts[0] += f" ({100 * progress.finished // progress.planned} %)"
    if progress.running:
        parts.append(f"{len(progress.running)} in progress")
    invalid = len(progress.study.runs_with("invalid")) + len(progress.damaged)
    if invalid:
        parts.append(f"{invalid} without usable data")
    if progress.unread:
        parts.append(f"{progress.unread} not read yet")
    if progress.is_complete:
        parts.append("complete")
    elif progress.left_s is not None and not progress.is_paused:
        parts.append(f"about {_span(max(progress.left_s, 1))} left")
    return ", ".join(parts)


def _now(progress: Progress) -> list[str]:
    """The runs in progress, or that there is none."""
    study = progress.study
    if progress.is_paused and study.missing:
        since = (
            "no run began yet" if progress.idle_s is None else f"the last one {_span(progress.idle_s)} ago"
        )
        command = f"make study STUDY={study.name}" + (f" LABEL={study.label}" if study.label else "")
        return [f"no run in progress in this folder, {since}; to go on: {command}"]
    texts = []
    for id, seconds in progress.running.items():
        cell = cell_label(study.missing.get(id, {}), study.varied) if id in study.missing else "made again"
        texts.append(f"{cell} (run {id}, {_span(seconds)})")
    return _few(texts)


def _problems(progress: Progress) -> list[str]:
    """Why runs have no usable data: rules with the number of runs and the last reason, and damaged runs."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for run in progress.study.runs:
        for rule in run.validity.rules:
            if rule.status == run.validity.status != "valid":
                where = cell_label(run.levels, progress.study.varied)
                reasons.setdefault((rule.status, rule.rule), []).append(f"{rule.reason} ({where})")
    found = [
        f"{status} by {rule}: {len(texts)} run{_s(len(texts))}, last: {texts[-1]}"
        for (status, rule), texts in sorted(reasons.items(), key=lambda item: -len(item[1]))
    ]
    return [*found, *(f"cannot be read: {reason}" for reason in progress.damaged.values())]


def _effects(progress: Progress) -> list[str]:
    """Effects with their intervals; of a study that varies numbers only, its cells with theirs."""
    study, table = progress.study, progress.table
    if not study.valid_runs:
        return []
    found = answers(study, table)
    if found:
        if progress.is_complete:
            return [one.sentence() for one in found]
        return [one.effect() for one in found if one.ratio is not None]
    texts = []
    for app_class in study.classes:
        metric, _ = objective_metric(app_class)
        rows = table.filter(table["class"] == app_class.name).drop_nulls(metric)
        if rows.is_empty():
            continue
        about = label(metric)
        for row in summarise(rows, metric, list(study.varied), about.method).iter_rows(named=True):
            parts = [f"n = {row['n']}"]
            if row["low"] is not None and row["high"] is not None:
                parts.insert(0, f"{_CI} {number(row['low'])} to {number(row['high'])}")
            value = f"{number(row['estimate'])} for {cell_label(row, study.varied)} ({', '.join(parts)})"
            texts.append(f"{app_class.name}, {about.axis}: {value}")
    return texts


def _few(texts: list[str]) -> list[str]:
    if len(texts) <= _MOST + 1:
        return texts
    return [*texts[:_MOST], f"and {len(texts) - _MOST} more"]


def _shown(progress: Progress, page: Path | None, *, refresh: bool = True) -> Progress:
    """The progress, written as a page if there is one."""
    if page is not None:
        seconds = 0 if progress.is_complete or not refresh else math.ceil(INTERVAL_S)
        text = pages.render(
            "watch.html.j2", name=progress.study.name, lines=lines(progress), refresh_s=seconds
        )
        pages.write_page(page, text, "--page")
    return progress


def _drawn(progress: Progress) -> Group:
    return Group(*_texts(progress))


def _print(console: Console, progress: Progress) -> None:
    for text in _texts(progress):
        console.print(text, soft_wrap=not console.is_terminal)


def _texts(progress: Progress) -> Iterator[Text]:
    for name, text in lines(progress):
        yield Text.assemble((f"{name}: " if name else "  ", "bold"), text)


def _span(seconds: float) -> str:
    """A duration in its two largest units: `1 h 5 min`, `2 min 10 s`, `8 s`."""
    whole = round(seconds)
    for size, unit, part, lesser in ((3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {lesser}" if rest else "")
    return f"{whole} s"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
