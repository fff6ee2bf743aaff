"""Claims of Figs. 10 to 13: three kinds of requests on the same disks."""

import numpy as np
import polars as pl

from papers.wijayaratne.bands import CLAIMS
from papers.wijayaratne.results import levels
from weir.claims import Claim
from weir.documents import field, read_document
from weir.load import RUN_AGAIN, Study
from weir.statistics import mean_interval
from weir.study import class_table

#: The classes of video streams: the paper's periodic requests.
FILMS = ("lambs", "term", "news", "asterix")
#: "Unaffected", "not considerably impacted": by no more than this share, from the lightest load on.
UNAFFECTED = 0.25
#: The paper's scheduler, and what its leaky bucket lets through at each disk in a second.
ROUNDS, PAPER_BUCKET = "rounds", "12"
#: The scheduler with a bucket of twice that.
OTHER_BUCKET = "rounds, 24/s"
#: Aperiodic requests/s of which the paper prints numbers.
PRINTED_RATE = 50


def service_table(study: Study) -> pl.DataFrame:
    """One row per valid run and kind (`periodic`, `interactive`, `aperiodic`).

    Columns: `repetition`, `scheduler`, `aperiodic_per_s`, `requested` and `admitted` (streams), `kind`,
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
    if given["interactive_per_s"] != PAPER_BUCKET:
        differs.append(f"{given['interactive_per_s']}/s")
    if given["estimate"] != "expected":
        differs.append("whole revolutions")
    return ", ".join([ROUNDS, *differs])


def over(table: pl.DataFrame, kind: str, value: str, x: str) -> dict[float, float]:
    """The mean over repetitions of a column of a kind, by a column."""
    rows = table.filter(pl.col("kind") == kind).group_by(x).agg(pl.col(value).mean()).sort(x)
    return dict(rows.rows())


def _of(table: pl.DataFrame, kind: str, value: str) -> list[float]:
    return table.filter(pl.col("kind") == kind).sort("repetition")[value].to_list()


def change(curve: dict[float, float]) -> float:
    """Largest relative distance of a curve from its first point."""
    values = list(curve.values())
    return max(abs(value / values[0] - 1) for value in values) if values[0] else float("inf")


def aperiodic(table: pl.DataFrame, guarantee: pl.DataFrame) -> list[Claim]:
    """W-F10, W-F11 and W-F13; `guarantee` is of the study with true bounds."""
    rounds, scan = (table.filter(pl.col("scheduler") == name) for name in (ROUNDS, "SCAN"))
    rate = "aperiodic_per_s"
    used = {kind: over(rounds, kind, "used_pct", rate) for kind in ("periodic", "interactive", "aperiodic")}
    heaviest = max(used["aperiodic"])
    flat = {kind: change(used[kind]) for kind in ("periodic", "interactive")}
    unaffected = max(flat.values()) <= UNAFFECTED
    worst = {kind: over(rounds, kind, "max_ms", rate) for kind in ("interactive", "aperiodic")}
    mean = {kind: over(rounds, kind, "mean_ms", rate) for kind in ("interactive", "aperiodic")}
    printed = rounds.filter(pl.col(rate) == PRINTED_RATE)
    lower = all(
        curve["interactive"][r] < curve["aperiodic"][r]
        for curve in (worst, mean)
        for r in worst["interactive"]
    )
    moves = change(worst["interactive"])
    missed = rounds.filter(pl.col("kind") == "periodic").group_by("repetition").agg(pl.col("missed").sum())
    asked = rounds.filter(pl.col("kind") == "periodic")["requests"].sum()
    at_most = rounds.filter((pl.col("kind") == "periodic") & (pl.col(rate) == heaviest))
    by_rate = ", ".join(f"{r:.0f}/s: {v:.1f} %" for r, v in used["aperiodic"].items())
    streams = sorted(set(rounds["admitted"].to_list()))
    return [
        CLAIMS.judged(
            "W-F10 periodic", mean_interval(_of(at_most, "periodic", "used_pct")),
            f"{streams[0]} to {streams[-1]} streams; over all aperiodic loads, periodic changes by "
            f"{100 * flat['periodic']:.1f} % of itself, interactive by {100 * flat['interactive']:.1f} %",
            shape=unaffected,
        ),
        CLAIMS.judged(
            "W-F10 aperiodic",
            mean_interval(_of(rounds.filter(pl.col(rate) == heaviest), "aperiodic", "used_pct")), by_rate,
        ),
        CLAIMS.judged(
            "W-F11 interactive", mean_interval(_of(printed, "interactive", "max_ms")),
            f"changes by {100 * moves:.0f} % at most with the aperiodic rate; {_bucket(table)}",
            shape=moves <= UNAFFECTED,
        ),
        CLAIMS.judged(
            "W-F11 aperiodic", mean_interval(_of(printed, "aperiodic", "max_ms")),
            f"interactive means and maxima are lower at every rate: {'yes' if lower else 'no'}", shape=lower,
        ),
        CLAIMS.judged(
            "W-F11 deadlines", mean_interval(missed["missed"].to_list()),
            f"of {asked} requests of video streams with rounds, in all repetitions and at all rates; "
            f"{_true_bounds(guarantee)}",
        ),
        _against_scan(rounds, scan, _bucket(table)),
    ]  # fmt: skip


def _bucket(table: pl.DataFrame) -> str:
    """Effect of the leaky bucket's rate on the longest interactive responses."""
    other = table.filter(pl.col("scheduler") == OTHER_BUCKET)
    worst = over(other, "interactive", "max_ms", "aperiodic_per_s")
    scan = over(table.filter(pl.col("scheduler") == "SCAN"), "interactive", "max_ms", "aperiodic_per_s")
    lower = sum(worst[rate] < scan[rate] for rate in worst)
    return (
        f"the bucket of {PAPER_BUCKET}/s holds bursts back; with twice that it is "
        f"{min(worst.values()):.0f} to {max(worst.values()):.0f} ms, {worst[PRINTED_RATE]:.0f} at "
        f"{PRINTED_RATE}/s, and lower than SCAN's at {lower} of {len(worst)} rates"
    )


def _true_bounds(guarantee: pl.DataFrame) -> str:
    """Deadline misses with worst-case estimates of service time."""
    rows = guarantee.filter(pl.col("kind") == "periodic")
    streams = sorted(rows["admitted"].to_list())
    return (
        "half a revolution and the mean rate are no worst case; with whole revolutions and the lowest rate "
        f"{streams[0]} to {streams[-1]} get in, and {rows['missed'].sum()} of {rows['requests'].sum()} miss"
    )


def _against_scan(rounds: pl.DataFrame, scan: pl.DataFrame, bucket: str) -> Claim:
    """W-F13."""
    rate = "aperiodic_per_s"
    curves = {
        (name, value): over(table, "interactive", value, rate)
        for name, table in (("rounds", rounds), ("scan", scan))
        for value in ("mean_ms", "max_ms")
    }
    lower = {
        value: [curves["rounds", value][r] < curves["scan", value][r] for r in curves["rounds", value]]
        for value in ("mean_ms", "max_ms")
    }
    flat = {value: change(curves["rounds", value]) <= UNAFFECTED for value in lower}
    rises = {value: change(curves["scan", value]) > UNAFFECTED for value in lower}
    heaviest = max(curves["rounds", "mean_ms"])
    pairs = zip(
        _of(scan.filter(pl.col(rate) == heaviest), "interactive", "mean_ms"),
        _of(rounds.filter(pl.col(rate) == heaviest), "interactive", "mean_ms"),
        strict=True,
    )
    words = [
        f"{value}: lower at {sum(lower[value])} of {len(lower[value])} rates, changes by "
        f"{100 * change(curves['rounds', value]):.0f} % with rounds, "
        f"{100 * change(curves['scan', value]):.0f} % with SCAN"
        for value in lower
    ]
    shape = all(all(of) for of in lower.values()) and all(flat.values()) and all(rises.values())
    return CLAIMS.judged(
        "W-F13",
        mean_interval([a / b for a, b in pairs]),
        f"{'; '.join(words)}; the number is at {heaviest:.0f}/s; {bucket}",
        shape=shape,
    )


def requested(table: pl.DataFrame) -> list[Claim]:
    """W-F12."""
    admitted = table.filter(pl.col("kind") == "periodic")
    most = admitted.group_by("repetition").agg(pl.col("admitted").max())["admitted"].to_list()
    beyond = bool((admitted["admitted"] <= admitted["requested"]).all())
    worst = over(table, "interactive", "max_ms", "requested")
    moves = change(worst)
    served = over(table, "periodic", "admitted", "requested")
    text = ", ".join(f"{asked:.0f}: {got:.0f}" for asked, got in served.items())
    return [
        CLAIMS.judged(
            "W-F12", mean_interval(most),
            f"let in by streams that asked {text}; the longest interactive response changes by "
            f"{100 * moves:.0f} % at most "
            f"({min(worst.values()):.0f} to {max(worst.values()):.0f} ms)",
            shape=beyond and moves <= UNAFFECTED,
        )
    ]  # fmt: skip


def example(demand_blocks: dict[str, list[int]]) -> list[Claim]:
    """W-C2, from the demand trace that admission control used."""
    blocks = demand_blocks["example"]
    return [CLAIMS.judged("W-C2", float(blocks[0]), f"{blocks}", shape=blocks == [3, 1])]


#: Table 1: cylinders, and seeks at least, on average and at most, in ms.
CYLINDERS, MIN_MS, AVG_MS, MAX_MS = 3711, 0.60, 8.0, 17.0


def seek_ms(distance: np.ndarray) -> np.ndarray:
    """The seek curve of Lee and Katz through Table 1's figures."""
    a = (15 * AVG_MS - 10 * MIN_MS - 5 * MAX_MS) / (3 * np.sqrt(CYLINDERS))
    b = (7 * MIN_MS - 15 * AVG_MS + 8 * MAX_MS) / (3 * CYLINDERS)
    rest = np.maximum(distance - 1, 0)
    return np.where(distance > 0, a * np.sqrt(rest) + b * rest + MIN_MS, 0.0)


def sweep_ms(places: np.ndarray, arm: int) -> float:
    """Seeks of one sweep over places, from its nearer end."""
    ordered = np.sort(places)
    ways = (np.concatenate(([arm], order)) for order in (ordered, ordered[::-1]))
    return min(float(seek_ms(np.abs(np.diff(way))).sum()) for way in ways)


def merging(draws: int = 20_000, seed: int = 1) -> list[Claim]:
    """W-C1: two groups of random requests, swept apart and together; from an edge, and from anywhere."""
    random = np.random.default_rng(seed)
    longer = {"edge": 0, "anywhere": 0}
    for _ in range(draws):
        groups = [random.integers(0, CYLINDERS, random.integers(1, 9)) for _ in range(2)]
        for where, arm in (("edge", 0), ("anywhere", int(random.integers(0, CYLINDERS)))):
            apart = sum(sweep_ms(group, arm) for group in groups)
            longer[where] += sweep_ms(np.concatenate(groups), arm) > apart + 1e-9
    note = (
        f"of {draws} pairs of groups swept from an edge; from anywhere {longer['anywhere']} are longer "
        "together, so that the scheduler computes its slack from where the arm is"
    )
    return [CLAIMS.judged("W-C1", float(longer["edge"]), note)]
