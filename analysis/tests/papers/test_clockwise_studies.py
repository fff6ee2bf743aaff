"""Clockwise: chapter 6 as tables, figures and claims on results made by hand; admission; small sets."""

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from papers.clockwise import (
    CLAIMS,
    admission,
    disk_claims,
    layout_claims,
    layout_figures,
    load,
    results,
    set_claims,
    set_figures,
    sets,
    source,
    streams,
    timelines,
    worst_case,
)
from papers.clockwise.disk_times import Drive
from papers.clockwise.experiments import Bench
from papers.traces import paper
from weir.binary_cache import BinaryCache
from weir.load import AppClass, Run, Study, Validity

ROOT = Path(__file__).resolve().parents[3]
BINARY = ROOT / "target/release/weir"


def judged(claims):
    return {claim.id: claim for claim in claims}


# Streams and admission.


def test_pairs_need_what_the_thesis_says():
    for pairs, mb_s in (((12, 12), 16.48), ((13, 12), 16.88), ((13, 13), 17.85), ((12, 11), 15.51)):
        assert streams.rate_mb_s(dict(zip(("WG", "RO"), pairs, strict=True))) == pytest.approx(
            mb_s, abs=0.005
        )
    assert streams.in_turn(3) == {"WG": 2, "RO": 1}


def test_layouts_give_disks_their_tasks():
    rotation = streams.LAYOUTS["rotation"].tasks({"WG": 12, "RO": 12})
    assert [(t.cost_ms, round(t.period_ms, 2), t.count) for t in rotation] == [
        (54, 3134.69, 12), (54, 4465.12, 12), (133, 3760.10, 12), (54, 4465.12, 12),
    ]  # fmt: skip
    assert streams.LAYOUTS["memory-optimized"].on_disks({"WG": 13, "RO": 11}) == {
        "RO disks": {"RO": 6},
        "WG disk": {"WG": 13},
    }


def fake_admit(limit=0.9):
    """Admits up to a utilisation; deltaL falls with it, and deltaLn decides below a half."""

    def admit(tasks, _mode):
        share = sum(t.count * t.cost_ms / t.period_ms for t in tasks)
        if share > limit:
            return admission.Decision(False, share)
        slack = min(t.period_ms for t in tasks) * (1 - share)
        return admission.Decision(True, share, slack, slack, slack - 1 if share < 0.5 else slack + 1)

    return admit


def test_curves_end_where_a_pair_is_refused():
    curve = admission.curve(fake_admit(), "rotation")
    assert [p.pairs for p in curve.points] == list(range(1, len(curve.points) + 1))
    last, refused = curve.points[-1], streams.in_turn(len(curve.points) + 1)
    assert last.disks["all disks"].utilisation <= 0.9
    assert not fake_admit()(streams.LAYOUTS["rotation"].tasks(refused), "thesis").admitted
    at = next(p for p in curve.points if p.disks["all disks"].utilisation >= 0.5)
    assert admission.regime_mb_s(curve) == at.mb_s


def test_curves_are_judged_and_drawn():
    admit = fake_admit(0.98)
    curves = set_claims.curves(admit)
    found = judged(set_claims.delta_l(curves, admit))
    assert found["B-F6.4 left rotation"].status == "reproduced"
    assert found["B-F6.4 doubles"].ours == pytest.approx(np.median(list(ratios(curves))))
    # A random layout admits blocks at the slowest zone's times.
    last = {name: curve.end_mb_s for name, curve in curves.items()}
    assert found["B-F6.7 end"].ours == pytest.approx(last["random"] / last["rotation"])
    assert found["B-F6.7 end"].status == "reproduced"
    assert len(set_figures.delta_l(curves).axes) == 1


def test_large_buffers_that_admit_no_more_are_not_the_thesis_s():
    admit = fake_admit(0.98)
    curves = set_claims.curves(admit)
    curves["memory-optimized"] = curves["memory-optimized (large buffers)"]
    found = judged(set_claims.delta_l(curves, admit))
    assert found["B-F6.4 end large"].status != "reproduced"


def ratios(curves):
    """Of deltaL with and without large buffers: two disks of one film, one of the other."""
    for before, after in zip(
        curves["memory-optimized"].points, curves["memory-optimized (large buffers)"].points, strict=False
    ):
        for kind, count in (("RO disks", 2), ("WG disk", 1)):
            if before.disks[kind].utilisation:
                yield from [after.disks[kind].delta_l_ms / before.disks[kind].delta_l_ms] * count


def test_a_set_that_is_admitted_is_not_the_thesis_s():
    table = pl.DataFrame({"stream": ["tau2"], "asked_ms": [250], "done_ms": [507.0], "late_ms": [7.0]})
    admitted = judged(set_claims.usd_set(lambda *_: admission.Decision(True, 0.6475), table))
    assert admitted["B-T6.2"].status == "not reproduced"
    refused = judged(set_claims.usd_set(lambda *_: admission.Decision(False, 0.6475), table))
    assert refused["B-T6.2"].status == "reproduced"


def test_the_binarys_words_are_read():
    slack = {"slack_ns": 10, "interval_ns": 20}
    report = {
        "verdict": "admitted", "utilisation": 0.5,
        "slack": {"deltaL_ns": 2_000_000, "deltaLm": {"slack_ns": 3_000_000}, "deltaLn": None},
    }  # fmt: skip
    found = admission.read(json.dumps(report))
    assert (found.delta_l_ms, found.in_order_ms, found.out_of_order_ms) == (2, 3, None)
    assert not found.decided_out_of_order
    report = {"verdict": "rejected", "utilisation": 1.1, "rejection": {"reason": "overload", **slack}}
    assert admission.read(json.dumps(report)) == admission.Decision(False, 1.1)


def test_periods_are_the_printed_ones_but_for_one_row():
    (found,) = set_claims.periods()
    assert (found.id, found.status) == ("B-T6.3", "fitted or input")
    assert found.ours <= CLAIMS.register["B-T6.3"].limits[1]
    assert set_claims.periods_s()["WG"][0] > 1.1 * source.PERIODS_S["WG"][1][0]


@pytest.mark.binary
def test_the_binary_agrees_with_the_thesis(tmp_path):
    binary = BinaryCache(BINARY, ROOT, tmp_path / "cache", None)
    usd = sets.usd(binary)
    assert {c.status for c in set_claims.usd_set(admission.admitter(binary), usd)} == {"reproduced"}
    lst, delta = (sets.slack_stealing(binary, name) for name in ("lst", "deltal"))
    assert {c.status for c in set_claims.slack_stealing(lst, delta)} == {"reproduced"}
    panels = {"a": usd, "b": lst, "c": delta, "d": sets.critical_instant(binary)}
    assert len(set_figures.timelines(panels).axes) == 4
    # Kept: a second reading makes no run.
    assert sets.usd(binary).equals(usd)
    bench = Bench(binary, Drive.load(binary, "quantum-atlas-ii"))
    for claim in [*disk_claims.zones(bench.drive), judged(disk_claims.seeks(bench))["B-F4.5 knee"]]:
        low, high = CLAIMS.register[claim.id].bounds
        assert claim.status == "fitted or input" and low <= claim.ours <= high
    assert bench.raw(0, 2048).mean() == pytest.approx(116, rel=0.05)
    times, sectors, hits = bench.cached(0, 512)
    assert len(times) == len(sectors)
    assert hits == 0


def test_due_times_follow_from_contracts():
    lead = timelines.LEAD_MS * 1_000_000
    rows = pl.DataFrame(
        {
            "class": ["a", "a", "b"],
            "intended_ns": [lead, lead + 5_000_000, lead],
            "served_ns": [lead, lead + 20_000_000, None],
            "completed_ns": [lead + 10_000_000, lead + 41_000_000, None],
        }
    )
    both = [timelines.Stream("a", 10, [0, 5], 20), timelines.Stream("b", 10, [0])]
    found = timelines._told(rows, both, 100)
    # The second was asked for too early: it is due a period after the first's deadline.
    assert found.filter(pl.col("stream") == "a")["due_ms"].to_list() == [20, 40]
    assert timelines.misses(found) == 1


def test_crosstalk_is_judged_and_drawn():
    missed = {(name, f): [0, 0] for name in sets.SCHEDULERS for f in sets.FACTORS}
    missed["EDF", 2.0] = missed["LST", 3.0] = [3, 0]
    found = sets.Crosstalk(missed)
    assert judged(set_claims.crosstalk(found))["B-7.3"].status == "reproduced"
    assert len(set_figures.crosstalk(found).axes) == 1
    missed["deltaL", 3.0] = [1, 0]
    assert judged(set_claims.crosstalk(found))["B-7.3"].status == "shape only"


def test_worst_cases_are_held_against_the_table():
    exact = {kb: [float(v) for v in row] for kb, row in source.WORST_CASE_MS.items()}
    assert {c.status for c in worst_case.claims(exact)} == {"reproduced"}
    off = {kb: [1.1 * v for v in row] for kb, row in exact.items()}
    assert judged(worst_case.claims(off))["B-T6.4 1 MB"].status == "shape only"
    flat = {kb: [sum(row) / len(row) - 2 * at for at in range(len(row))] for kb, row in exact.items()}
    assert judged(worst_case.claims(flat))["B-T6.4 1 MB"].status == "not reproduced"
    assert worst_case.table(exact).height == 12


# The load.


def test_the_slice_is_held_against_the_table():
    seconds = np.zeros((2, 8, source.SLICE_S), dtype=np.int64)
    for disk, (requests, peak) in enumerate(zip(source.SLICE_REQUESTS, source.SLICE_PEAKS, strict=True)):
        seconds[:, disk, 0] = peak
        seconds[:, disk, 1:] = (requests - peak) // (source.SLICE_S - 1)
        seconds[:, disk, 1] += requests - seconds[0, disk].sum()
    part = load.Slice(seconds)
    found = judged(part.claims())
    assert {c.status for c in found.values()} == {"fitted or input"}
    assert found["B-T7.1 requests"].ours == 0
    assert part.table().height == 8
    assert judged(load.Slice(2 * seconds).claims())["B-T7.1 requests"].ours == 100


def test_the_day_is_held_against_the_table():
    class Day:
        minutes = np.zeros((8, 1, 1440), dtype=np.int64)

    for disk, requests in enumerate(paper.DAY_REQUESTS):
        Day.minutes[disk, 0, 0] = source.DAY_PEAKS[disk]
        rest = requests - source.DAY_PEAKS[disk]
        Day.minutes[disk, 0, 1:] = rest // 1439
        Day.minutes[disk, 0, 1 : 1 + rest % 1439] += 1
    found = judged(load.day_claims(Day))
    assert {c.status for c in found.values()} == {"fitted or input"}
    assert (found["B-T6.5 requests"].ours, found["B-T6.5 peaks"].ours) == (801_007, 0)
    assert load.day_table(Day).height == 8


# Studies.


def run(path, levels, clients, repetition=0):
    classes = tuple(AppClass(name, "w", n, "simulate", None, None) for name, n in clients.items())
    return Run(
        path,
        path.name,
        "simulator",
        "c",
        levels,
        repetition,
        0,
        0,
        1,
        60.0,
        86340.0,
        classes,
        Validity("valid", ()),
    )


def study(runs, missing=None):
    return Study(Path("s"), "clockwise-rotation", "q", "", 1, 2, "", {}, (), tuple(runs), missing or {}, ())


def test_a_run_becomes_a_row(tmp_path):
    path = tmp_path / "r1"
    path.mkdir()
    none = {"deadlines": 0, "deadline_miss_share": None}
    summary = {
        "classes": {
            "cello0": {"response_mean_ms": 25.5, **none},
            "cello7": {"response_mean_ms": "unbounded", **none},
            "ro0_video": {"response_mean_ms": 90, "deadlines": 200, "deadline_miss_share": 0.01},
        },
        "server": {"context_switches": 9, "burst_mean_requests": 2.5, "burst_sd_requests": 1.5},
        "heads": [{"slack_ms": 900.0}, {"slack_ms": 800.0}, {"slack_ms": None}],
    }
    (path / "summary.json").write_text(json.dumps(summary))
    clients = {
        "cello0": 1,
        "cello7": 1,
        "ro0_video": 3,
        "ro1_video": 2,
        "ro0_audio": 3,
        "wg_video": 4,
        "wg_audio": 4,
    }
    rows = results.table(study([run(path, {"scheduler": "deltal spare=fill"}, clients)]))
    row = rows.row(0, named=True)
    assert (row["scheduler"], row["setting"], row["wg"], row["ro"], row["tasks"]) == (
        "deltaL",
        "spare=fill",
        4,
        5,
        18,
    )
    assert row["mb_s"] == pytest.approx(streams.rate_mb_s({"WG": 4, "RO": 5}))
    assert (row["missed"], row["deadlines"], row["slack_ms"]) == (2, 200, 800)
    assert (row["cello0"], row["cello7"], row["cello1"]) == (25.5, math.inf, None)
    assert results.shown_disks(rows) == [0, 7]


def layout(
    latency, *, loads=range(14), settings=(("EDF", ""), ("LST", ""), ("deltaL", "")), noise=0.01, missed=0
):
    """A study of a layout: latency of scheduler, setting, MB/s; pairs of both kinds by their number."""
    rows = []
    for repetition in range(3):
        for pairs in loads:
            rate = streams.rate_mb_s({"WG": pairs, "RO": pairs})
            for scheduler, setting in settings:
                base = latency(scheduler, setting, rate) * (1 + noise * repetition)
                grows = {"EDF": 1 + pairs, "LST": 20 - pairs, "deltaL": 20 - pairs}[scheduler]
                more = 1.2 if scheduler == "LST" and pairs >= 9 else 1.0
                falls = scheduler == "EDF"
                wider = 1.5 if scheduler == "deltaL" else 1.0
                rows.append(
                    {
                        "repetition": repetition, "scheduler": scheduler, "setting": setting, "variant": "",
                        "wg": pairs, "ro": pairs, "mb_s": rate, "tasks": 4 * pairs, "deadlines": 1000,
                        "missed": missed, "switches": (100 - pairs if falls else 10 + pairs) * more,
                        "burst_mean": float(grows), "burst_sd": grows * wider,
                        "slack_ms": 900.0,
                    }
                    | {results.disk(at): base * (1 + at / 10) for at in results.DISKS}
                )  # fmt: skip
    return pl.DataFrame(rows)


def as_the_thesis(scheduler, _setting, mb_s):
    """Latencies that have the orderings of Fig. 6.5."""
    base = 20 * math.exp(mb_s / 8)
    if mb_s == 0:
        return 20.0
    if scheduler == "EDF":
        return base * (1.5 if mb_s > 16 else 3)
    if scheduler == "LST":
        return base * (2 if mb_s > 16 else 0.9 if mb_s > 5 else 1.0)
    return base


def test_orderings_of_the_rotating_layout_are_found():
    rows = layout(as_the_thesis)
    found = judged([*layout_claims.rotation(rows, rows), *layout_claims.bursts(rows)])
    assert {c.id: c.status for c in found.values() if c.status != "reproduced"} == {}
    assert found["B-F6.5 extreme"].ours == pytest.approx(2)
    # EDF that is slow at medium load, and at low load as good as the others.
    good = layout(lambda s, t, x: as_the_thesis("deltaL" if s == "EDF" and x < 5 else s, t, x))
    assert judged(layout_claims.rotation(good, good))["B-F6.5 EDF"].status == "not reproduced"
    assert found["B-F6.6 switches"].ours == 36
    assert (
        found["B-F6.6 switches"].holds() == "holds for 2 % apart, 5 % apart, 10 % apart; fails for 20 % apart"
    )
    assert layout_claims.latency_table(rows).height == 14


def test_without_these_orderings_nothing_of_them_is_reproduced():
    rows = layout(lambda scheduler, *_: {"EDF": 10, "LST": 5, "deltaL": 20}[scheduler])
    found = judged(layout_claims.rotation(rows, rows))
    # LST is better, and by far more than slightly.
    assert found.pop("B-F6.5 medium").status == "shape only"
    assert {c.status for c in found.values()} == {"not reproduced"}
    assert found["B-F6.5 worst"].ours == pytest.approx(0.5)
    assert found["B-F6.5 low"].ours == pytest.approx(0.25)


def test_one_missed_deadline_is_one_too_many():
    tables = {"rotation": layout(as_the_thesis), "random": layout(as_the_thesis)}
    assert judged(layout_claims.misses(tables))["B-F6.5 misses"].status == "reproduced"
    tables["random"] = layout(as_the_thesis, missed=1)
    assert judged(layout_claims.misses(tables))["B-F6.5 misses"].status == "shape only"


def test_random_places_are_held_against_sequential_ones():
    sequential = layout(as_the_thesis)
    spare = (("LST", "spare=fill"), ("deltaL", "spare=fill"))
    everything = (("EDF", ""), ("LST", ""), ("deltaL", ""), *spare)

    def slower(scheduler, setting, mb_s):
        return as_the_thesis(scheduler, setting, mb_s) * 1.5 * (0.95 if setting and mb_s > 5 else 1)

    rows = layout(slower, loads=range(10), settings=everything)
    found = judged([*layout_claims.random(rows, sequential), *layout_claims.over_predicted(rows)])
    assert {c.id: c.status for c in found.values() if c.status != "reproduced"} == {}
    # A disk on which LST is no better, and a gain that is none.
    same = pl.when(pl.col("scheduler") == "LST").then(1.2).otherwise(1.0)
    other = judged(layout_claims.random(rows.with_columns(pl.col("cello4") * same), sequential))
    assert other["B-F6.7 medium"].status == "not reproduced"
    plain = layout(lambda s, _, x: slower(s, "", x), loads=range(10), settings=everything)
    assert {c.status for c in layout_claims.over_predicted(plain)} == {"not reproduced"}
    assert found["B-F6.8 lst"].ours == pytest.approx(1.5)
    assert found["B-F6.9 deltal"].ours == pytest.approx(0.95)
    for figure, axes in (
        (layout_figures.placed(rows, sequential), 3),
        (layout_figures.over_predicted(rows), 2),
        (layout_figures.by_disk(rows), 8),
        (layout_figures.bursts(sequential), 3),
        (layout_figures.ratios({"rotation": sequential, "random": rows}), 1),
    ):
        assert len(figure.axes) == axes


def test_films_on_single_disks_are_held_against_each_other():
    sequential = layout(as_the_thesis)
    rows = layout(
        lambda s, _, x: as_the_thesis("deltaL", "", x) * (1.1 if s == "LST" else 1), loads=range(12)
    )
    large = layout(lambda s, t, x: 0.8 * as_the_thesis("deltaL", t, x), loads=range(13))
    found = judged(layout_claims.optimized(rows, large, sequential))
    assert {c.id: c.status for c in found.values() if c.status != "reproduced"} == {}
    assert found["B-F6.11 lower"].ours == pytest.approx(0.8)
    # On one disk LST is much better.
    lower = pl.when(pl.col("scheduler") == "LST").then(0.5).otherwise(1.0)
    found = judged(layout_claims.optimized(rows, large.with_columns(pl.col("cello3") * lower), sequential))
    assert found["B-F6.11 extreme"].status == "not reproduced"
    assert found["B-F6.11 extreme"].ours == pytest.approx(0.5)


def test_the_slice_needs_the_orderings_of_chapter_6():
    found = judged(layout_claims.slice_of_the_day(layout(as_the_thesis)))
    assert {c.id: c.status for c in found.values()} == dict.fromkeys(("B-F7.1", "B-F7.2"), "reproduced")
    found = judged(layout_claims.slice_of_the_day(layout(lambda *_: 10)))
    assert {c.status for c in found.values()} == {"not reproduced"}
