"""The common study: who is turned away, where schedulers break, and the table, against rows made by hand."""

import json

import polars as pl
import pytest

from papers.schedulers_compared import figures, results, tables
from weir import notebooks
from weir.errors import InputError
from weir.load import AppClass, Run, Validity
from weir.statistics import Interval

REPETITIONS = range(3)
LOADS = (10, 20, 40, 60, 80)
#: Streams that are promised.
MOST = 20


def rows(scheduler, late, *, promised=None, loads=LOADS, **metrics):
    """Rows of one scheduler; `late` and metrics are functions of load and repetition."""
    found = []
    for text in (20, 50):
        for asked in loads:
            for repetition in REPETITIONS:
                row = {
                    "scheduler": scheduler, "asked": asked, "text_per_s": text, "repetition": repetition,
                    "promised": None if promised is None else min(promised, asked),
                    "late_pct": float(late(asked, repetition)),
                    "promised_late": None if promised is None else 0,
                    "text_p95_ms": 50.0, "text_mean_ms": 20.0, "bulk_mb_s": 1000.0 / asked, "busy": 1.0,
                }  # fmt: skip
                row |= {name: float(value(asked, repetition)) for name, value in metrics.items()}
                found.append(row)
    schema = {"promised": pl.Int64, "promised_late": pl.Int64}
    return pl.DataFrame(found, schema_overrides=schema).sort("scheduler", "text_per_s", "asked", "repetition")


def beyond(limit, late=50):
    """Late from a load on."""
    return lambda asked, _: late if asked > limit else 0


def study(**changes):
    """A study of four schedulers."""
    parts = {
        "fcfs": rows("fcfs", beyond(20, 100)),
        "linux-kyber": rows("linux-kyber", beyond(20, 100)),
        "cello": rows("cello", beyond(40)),
        "scan-edf": rows("scan-edf", beyond(99)),
        "deltal": rows("deltal", beyond(60), promised=MOST),
    }
    return pl.concat((parts | changes).values())


# Who is turned away.


def test_refused_streams_leave_and_count_as_late():
    found = results.refused_leave(study())
    deltal = found.filter((pl.col("scheduler") == "deltal") & (pl.col("text_per_s") == 20))
    late = dict(deltal.filter(pl.col("repetition") == 0).select("asked", "late_pct").iter_rows())
    assert late == pytest.approx({10: 0, 20: 0, 40: 50, 60: 100 * 2 / 3, 80: 75})
    # What others get is what they get beside those who were let in.
    assert set(deltal.filter(pl.col("asked") >= MOST)["bulk_mb_s"]) == {50.0}
    others = found.filter(pl.col("scheduler") == "cello")
    assert others.equals(study().filter(pl.col("scheduler") == "cello").select(found.columns))
    assert found.height == study().height


def test_late_requests_of_those_who_are_let_in_count_too():
    found = results.refused_leave(rows("lst", lambda asked, _: 10, promised=MOST))
    assert set(found.filter(pl.col("asked") == 80)["late_pct"]) == {0.25 * 10 + 75}


def test_servers_that_turn_nobody_away_have_lines_of_their_own():
    both = results.with_all(study())
    assert set(both["scheduler"]) - set(study()["scheduler"]) == {"deltal+"}
    assert results.breaks_at(both, "deltal+", 20).estimate == pytest.approx(70)
    assert set(both["scheduler"]) <= set(results.NAMES) == set(results.MEANS)


# Where they break.


def test_a_load_that_breaks_lies_between_two_that_were_run():
    found = results.breaks_at(study(), "cello", 20)
    assert (found.estimate, found.low, found.high, found.n) == (50, 40, 60, 3)


def test_repetitions_widen_the_interval():
    uneven = rows("cello", lambda asked, repetition: 50 if asked > 20 + 20 * repetition else 0)
    found = results.breaks_at(uneven, "cello", 20)
    # Between 20 and 40, 40 and 60, 60 and 80.
    assert found.estimate == pytest.approx(50)
    assert found.low == 0
    assert found.high == pytest.approx(60 + 4.3027 * 20 / 3**0.5, rel=1e-3)


def test_one_percent_is_borne_and_more_is_not():
    assert results.breaks_at(rows("cello", lambda *_: 1.0), "cello", 20) is None
    found = results.breaks_at(rows("cello", lambda *_: 1.01), "cello", 20)
    assert (found.estimate, found.low, found.high) == (5, 0, 10)


def test_who_turns_streams_away_breaks_at_the_last_that_is_let_in():
    found = results.breaks_at(study(), "deltal", 20)
    assert (found.estimate, found.low) == (MOST, None)
    # Unless it is late before.
    late = rows("deltal", beyond(10), promised=MOST)
    assert results.breaks_at(late, "deltal", 20).estimate == 15


def test_who_bears_most_is_first():
    assert results.by_capacity(study(), 20) == ["scan-edf", "cello", "fcfs", "linux-kyber", "deltal"]


# Runs.


def run_of(folder, scheduler, asked, missed):
    """A run's folder with what the table reads of it."""
    contract = {"cost_ms": 32.5, "period_ms": 1000.0}
    classes = {
        "video": {},
        "text": {"response_p95_ms": "unbounded", "response_mean_ms": 3.5},
        "bulk": {"throughput_mb_s": 7.5},
    }
    summary = {
        "format": 1, "classes": classes,
        "clients": {"video": {"deadlines": [10] * asked, "missed": missed}},
    }  # fmt: skip
    described = {"format": 1, "classes": [{"name": "video", "simulated": {"contract": contract}}]}
    observed = {"format": 1, "simulator": {"heads": [{"busy_s": 55.0}], "simulated_s": 110.0}}
    for name, document in (("summary", summary), ("run", described), ("observed", observed)):
        (folder / f"{name}.json").write_text(json.dumps(document))
    counts = {"video": asked, "text": 10, "bulk": 2}
    return Run(
        path=folder, id="r", testbed="simulator", cell="c", levels={"scheduler": scheduler}, repetition=0,
        block=0, order=0, seed=1, warmup_s=10, duration_s=100,
        classes=tuple(AppClass(name, "w", n, "open", None, None) for name, n in counts.items()),
        validity=Validity("valid", ()),
    )  # fmt: skip


def test_a_run_is_a_row(tmp_path):
    missed = [0] * 20 + [1] * 5
    run = run_of(tmp_path, "deltal rejected=best-effort least_slack_ms=350", 25, missed)
    row = results._row(run)
    assert (row["scheduler"], row["asked"], row["text_per_s"], row["promised"]) == ("deltal", 25, 20, 20)
    assert (row["late_pct"], row["promised_late"]) == (pytest.approx(2), 0)
    assert (row["text_p95_ms"], row["bulk_mb_s"], row["busy"]) == (float("inf"), 7.5, 0.5)


@pytest.mark.parametrize(
    ("scheduler", "asked", "promised"),
    [
        ("fcfs", 30, None),
        ("deltal", 30, None),
        ("lst rejected=best-effort", 40, 30),
        ("lst rejected=best-effort least_slack_ms=350", 40, 20),
        ("lst rejected=best-effort least_slack_ms=350.1", 40, 19),
        ("lst rejected=best-effort least_slack_ms=350", 7, 7),
    ],
)
def test_streams_are_let_in_while_slack_is_left(tmp_path, scheduler, asked, promised):
    run = run_of(tmp_path, scheduler, asked, [0] * asked)
    assert results.admitted(run, scheduler, asked) == promised


def test_a_run_of_an_older_simulator_is_named(tmp_path):
    run = run_of(tmp_path, "fcfs", 5, [0] * 5)
    (tmp_path / "summary.json").write_text(json.dumps({"format": 1, "classes": {}, "clients": {}}))
    with pytest.raises(InputError, match=r"summary\.json"):
        results._row(run)


# Tables and figures.


def test_the_table_has_a_row_for_each():
    shown = tables.compared(results.with_all(study()))
    assert shown["scheduler"].to_list()[:3] == ["SCAN-EDF", "\u0394L, all", "Cello"]
    first, last = shown.row(0, named=True), shown.row(-1, named=True)
    assert first["breaks at (text 20/s)"] == "over 80"
    assert (last["scheduler"], last["breaks at (text 50/s)"]) == ("\u0394L", "20.0")
    assert (last["late at 60 (%)"], last["bulk at 60 (MB/s)"]) == ("66.7", "50.0")


def test_what_must_hold_is_looked_at():
    assert set(tables.checks(study())["holds"]) == {"yes"}
    busy = rows("cello", beyond(40), busy=lambda *_: 1.01)
    late = rows("deltal", beyond(60), promised=MOST).with_columns(pl.lit(1, pl.Int64).alias("promised_late"))
    other = rows("linux-kyber", beyond(40, 100))
    easy = rows("fcfs", lambda *_: 0)
    found = tables.checks(study(cello=busy, deltal=late, fcfs=easy, **{"linux-kyber": other}))
    assert set(found["holds"]) == {"NO"}


def test_promises_are_counted():
    late = rows("lst", beyond(60), promised=MOST).with_columns(pl.lit(2, pl.Int64).alias("promised_late"))
    (row,) = tables.promises(late).rows()
    assert row == ("LST", MOST, 30, 60)


def test_orders_on_two_disks_are_compared_where_they_are_apart():
    # Intervals that touch are not apart: SCAN-EDF from four, Cello from those who turn away; on both disks
    # three pairs, of which one is turned around.
    turned = study(cello=rows("cello", beyond(99)), **{"scan-edf": rows("scan-edf", beyond(40))})
    assert tables.same_order(study(), study()).startswith("5 of 5 ")
    assert tables.same_order(study(), turned).startswith("2 of 3 ")
    shown = tables.agreement(study(), turned, ("a", "b"))
    assert shown.row(0) == ("SCAN-EDF", "over 80", "50.0 [40.0, 60.0]", 1, 2)


def test_shares_are_compared_in_pairs():
    divided = pl.concat(
        study(cello=rows("cello", beyond(limit))).with_columns(pl.lit(shares).alias("variant"))
        for shares, limit in (("65", 40), ("80", 60))
    )
    divided = divided.filter(pl.col("scheduler").is_in(["cello", "fcfs"]))
    shown = tables.by_shares(divided, 60)
    assert shown.columns[1:4] == ["video-text-bulk (%)", "breaks at (text 20/s)", "breaks at (text 50/s)"]
    assert [row[:3] for row in shown.rows()] == [
        ("Cello", "65", "50.0 [40.0, 60.0]"),
        ("Cello", "80", "70.0 [60.0, 80.0]"),
        ("FCFS", "65", "30.0 [20.0, 40.0]"),
        ("FCFS", "80", "30.0 [20.0, 40.0]"),
    ]


def test_figures_have_a_line_for_each_scheduler():
    both = results.with_all(study())
    figure = figures.compared(both)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        "SCAN-EDF", "\u0394L, all", "Cello", "FCFS", "Kyber", "\u0394L\u2020",
    ]  # fmt: skip
    assert figure.get_size_inches()[0] == figures.COLUMN_INCH
    shown = [axis for axis in figures.curves(both).axes if axis.get_visible()]
    assert len(shown) == 6


def test_the_notebook_is_of_the_study():
    assert notebooks.of_study("common") == ["schedulers_compared"]


def test_an_interval_ends_where_the_axis_does():
    slow = study(fcfs=rows("fcfs", beyond(20, 100), text_p95_ms=lambda asked, _: 1e6 if asked > 20 else 9))
    found = results.at_load(slow, "fcfs", 20, 60, "text_p95_ms")
    assert isinstance(found, Interval)
    assert found.estimate > figures.LONGEST_MS
    figures.compared(slow)
