"""Claims of Figs. 10 to 13: three kinds of requests on the same disks."""

from collections.abc import Callable

import numpy as np
import polars as pl

from papers.wijayaratne import CLAIMS
from papers.wijayaratne.admission_claims import stated
from papers.wijayaratne.results import levels
from weir.claims import Claim, Found
from weir.documents import field, read_document
from weir.labels import number
from weir.load import RUN_AGAIN, Study
from weir.statistics import mean_interval
from weir.study import class_table

#: The classes of video streams: the paper's periodic requests.
FILMS = ("lambs", "term", "news", "asterix")
#: The paper's scheduler: its leaky bucket lets through so many requests at each disk in a second, and it
#: assumes what requests take at worst. The sizes of its subgroups are not printed.
ROUNDS, PAPER_BUCKET, PAPER_ESTIMATE = "rounds", "12", "bound"
#: Aperiodic requests/s of which the paper prints numbers.
PRINTED_RATE = 50
RATE = "aperiodic_per_s"
#: Claims about deadlines where admission assumes the longest seek of each request, too, with this block size.
WORST_CASE, WORST_SEEK, WORST_BLOCK_KIB = "rounds, worst case at admission", "longest", 64


def service_table(study: Study) -> pl.DataFrame:
    """One row per valid run and kind (`periodic`, `interactive`, `aperiodic`).

    Columns: `repetition`, `scheduler`, `aperiodic_per_s`, `requested` and `admitted` (streams), `seek` and
    `block_kib` (None where admission control has no such level), `kind`,
    `mean_ms`, `max_ms`, `missed` (deadlines), `used_pct` (of the disks' time).

    Raises:
        InputError: a run is damaged.
    """
    rows = []
    table = class_table(study).partition_by("run", as_dict=True)
    for run in study.valid_runs:
        path = run.path / "admission.json"
        admission = read_document(path, RUN_AGAIN)
        held = read_document(run.path / "run.json", RUN_AGAIN)["settings"]
        classes = {row["class"]: row for row in table[(run.id,)].iter_rows(named=True)}
        common = {
            "repetition": run.repetition,
            "block": run.block,
            "scheduler": scheduler_name(str(held["scheduler"])),
            "aperiodic_per_s": next(c.clients for c in run.classes if c.name == "aperiodic"),
            "requested": levels(run).get("streams"),
            "seek": levels(run).get("seek"),
            "block_kib": levels(run).get("block_kib"),
            "admitted": field(admission, path, "admitted", int),
        }
        used = read_document(run.path / "summary.json", RUN_AGAIN)["classes"]
        for kind, names in (
            ("periodic", FILMS),
            ("interactive", ["interactive"]),
            ("aperiodic", ["aperiodic"]),
        ):
            of = [classes[name] for name in names if classes[name]["requests"]]
            total = sum(row["requests"] for row in of)
            rows.append(
                common
                | {
                    "kind": kind,
                    "requests": total,
                    "mean_ms": sum(r["response_mean_ms"] * r["requests"] for r in of) / total
                    if total
                    else None,
                    "max_ms": max((r["response_max_ms"] for r in of), default=None),
                    "missed": sum(round((r["deadline_miss_share"] or 0) * r["deadlines"]) for r in of),
                    "used_pct": 100 * sum(used[name]["head_time_share"] for name in names),
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def scheduler_name(text: str) -> str:
    """A scheduler as figures name it: `rounds` as the paper has them, what differs, or its name."""
    name, *tunables = text.split()
    if name != "wr-round":
        return name.upper()
    given = dict(part.split("=") for part in tunables)
    differs = []
    if (rate := given.get("interactive_per_s", PAPER_BUCKET)) != PAPER_BUCKET:
        differs.append(f"{rate}/s")
    if given.get("estimate", PAPER_ESTIMATE) != PAPER_ESTIMATE:
        differs.append("half revolutions")
    if bucket := given.get("bucket"):
        differs.append(f"bucket: {bucket}")
    if subgroup := given.get("subgroup"):
        differs.append(f"subgroups of {subgroup}")
    return ", ".join([ROUNDS, *differs])


def over(table: pl.DataFrame, kind: str, value: str, x: str) -> dict[float, float]:
    """The mean over repetitions of a column of a kind, by a column."""
    rows = (
        table.filter(pl.col("kind") == kind)
        .group_by(x, maintain_order=True)
        .agg(pl.col(value).mean())
        .sort(x)
    )
    return dict(rows.rows())


def by_repetition(table: pl.DataFrame, kind: str, value: str, x: str) -> np.ndarray:
    """A column of a kind, by repetition (rows) and a column."""
    wide = table.filter(pl.col("kind") == kind).sort(x).pivot(on="repetition", index=x, values=value)
    return wide.drop(x).to_numpy().T


def change_pct(curves: np.ndarray) -> np.ndarray:
    """Largest distance of each curve from its first point, in % of it."""
    return 100 * np.abs(curves / curves[:, :1] - 1).max(axis=1)


def _each(table: pl.DataFrame, found: Callable[[pl.DataFrame], Found]) -> dict[str, Found]:
    """What each setting of the scheduler with rounds shows."""
    names = [name for name in table["scheduler"].unique(maintain_order=True) if name.startswith(ROUNDS)]
    return {name: found(table.filter(pl.col("scheduler") == name)) for name in names}


def _said(values: dict[float, float], unit: str) -> str:
    return ", ".join(f"{rate:.0f}/s: {number(value)} {unit}" for rate, value in values.items())


def shares(table: pl.DataFrame) -> list[Claim]:
    """W-F10: the disks' time by kind of request."""

    def periodic(rows: pl.DataFrame) -> Found:
        used = by_repetition(rows, "periodic", "used_pct", RATE)
        streams = rows["admitted"]
        return Found(
            mean_interval(used.max(axis=1).tolist()), f"with {streams.min()} to {streams.max()} streams"
        )

    def unaffected(rows: pl.DataFrame) -> Found:
        moves = {
            kind: change_pct(by_repetition(rows, kind, "used_pct", RATE))
            for kind in ("periodic", "interactive")
        }
        note = ", ".join(f"{kind} {number(values.mean())} %" for kind, values in moves.items())
        return Found(mean_interval(np.maximum(*moves.values()).tolist()), note)

    def aperiodic(rows: pl.DataFrame) -> Found:
        used = over(rows, "aperiodic", "used_pct", RATE)
        last = by_repetition(rows, "aperiodic", "used_pct", RATE)[:, -1]
        grows = bool(np.diff(list(used.values())).min() > 0)
        return Found(mean_interval(last.tolist()), _said(used, "%"), grows)

    return [
        CLAIMS.over("W-F10 periodic", _each(table, periodic)),
        CLAIMS.over("W-F10 unaffected", _each(table, unaffected)),
        CLAIMS.over("W-F10 aperiodic", _each(table, aperiodic)),
    ]


def responses(table: pl.DataFrame) -> list[Claim]:
    """W-F11: mean and longest responses of interactive and aperiodic requests."""

    def printed(kind: str) -> Callable[[pl.DataFrame], Found]:
        def found(rows: pl.DataFrame) -> Found:
            at = by_repetition(rows.filter(pl.col(RATE) == PRINTED_RATE), kind, "max_ms", RATE)
            return Found(mean_interval(at[:, 0].tolist()), f"at {PRINTED_RATE}/s of either")

        return found

    def flat(rows: pl.DataFrame) -> Found:
        moves = change_pct(by_repetition(rows, "interactive", "max_ms", RATE))
        return Found(mean_interval(moves.tolist()), _said(over(rows, "interactive", "max_ms", RATE), "ms"))

    def better(rows: pl.DataFrame) -> Found:
        ratios = {
            value: by_repetition(rows, "aperiodic", value, RATE)
            / by_repetition(rows, "interactive", value, RATE)
            for value in ("mean_ms", "max_ms")
        }
        return _least(ratios)

    return [
        CLAIMS.over("W-F11 flat", _each(table, flat)),
        CLAIMS.over("W-F11 interactive", _each(table, printed("interactive"))),
        CLAIMS.over("W-F11 aperiodic", _each(table, printed("aperiodic"))),
        CLAIMS.over("W-F11 better", _each(table, better)),
    ]


def _least(ratios: dict[str, np.ndarray]) -> Found:
    """The least of ratios of means and of longest responses, over all rates."""
    note = ", ".join(
        f"{value} {number(of.mean(axis=0).min())} to {number(of.mean(axis=0).max())} times"
        for value, of in ratios.items()
    )
    return Found(mean_interval(np.min([of.min(axis=1) for of in ratios.values()], axis=0).tolist()), note)


def deadlines(table: pl.DataFrame, guarantee: pl.DataFrame) -> list[Claim]:
    """W-F11 deadlines; `guarantee` is of the study that varies what admission assumes."""

    def found(rows: pl.DataFrame) -> Found:
        of = rows.filter(pl.col("kind") == "periodic")
        missed = (
            of.group_by("repetition", maintain_order=True)
            .agg(pl.col("missed").sum())
            .sort("repetition")["missed"]
            .to_list()
        )
        streams = f"{of['admitted'].min()} to {of['admitted'].max()} streams"
        note = f"{sum(missed)} of {of['requests'].sum()} requests of video streams, at all rates, {streams}"
        return Found(mean_interval([float(count) for count in missed]), note)

    assumed = {}
    for (scheduler, seek, block), rows in guarantee.group_by(
        "scheduler", "seek", "block_kib", maintain_order=True
    ):
        name = f"{scheduler}, {block} KiB, {seek} seeks at admission"
        if (scheduler, seek, block) == (ROUNDS, WORST_SEEK, WORST_BLOCK_KIB):
            name = WORST_CASE
        assumed[name] = found(rows)
    return [CLAIMS.over("W-F11 deadlines", assumed | _each(table, found))]


def requested(table: pl.DataFrame) -> list[Claim]:
    """W-F12 interactive."""

    def found(rows: pl.DataFrame) -> Found:
        worst = by_repetition(rows, "interactive", "max_ms", "requested")
        served = over(rows, "periodic", "admitted", "requested")
        text = ", ".join(f"{asked:.0f}: {got:.0f}" for asked, got in served.items())
        ends = worst.mean(axis=0).min(), worst.mean(axis=0).max()
        note = f"{ends[0]:.0f} to {ends[1]:.0f} ms; streams by requested {text}"
        return Found(mean_interval(change_pct(worst).tolist()), note)

    each = _each(table, found)
    return [stated("W-F12 interactive", {ROUNDS: each.pop(ROUNDS)} | each)]


def against_scan(table: pl.DataFrame) -> list[Claim]:
    """W-F13."""
    scan = table.filter(pl.col("scheduler") == "SCAN")
    of_scan = {value: by_repetition(scan, "interactive", value, RATE) for value in ("mean_ms", "max_ms")}

    def better(rows: pl.DataFrame) -> Found:
        return _least({
            value: curves / by_repetition(rows, "interactive", value, RATE)
            for value, curves in of_scan.items()
        })  # fmt: skip

    def flat(rows: pl.DataFrame) -> Found:
        moves = change_pct(by_repetition(rows, "interactive", "mean_ms", RATE))
        return Found(mean_interval(moves.tolist()), _said(over(rows, "interactive", "mean_ms", RATE), "ms"))

    grows = [100 * (curves[:, -1] / curves[:, 0] - 1) for curves in of_scan.values()]
    note = ", ".join(f"{value} {more.mean():+.0f} %" for value, more in zip(of_scan, grows, strict=True))
    return [
        CLAIMS.over("W-F13 better", _each(table, better)),
        CLAIMS.judged("W-F13 SCAN", mean_interval(np.minimum(*grows).tolist()), note),
        CLAIMS.over("W-F13 flat", _each(table, flat)),
    ]
