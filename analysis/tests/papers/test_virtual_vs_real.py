"""Both testbeds side by side: pairs, quantiles and the parts of their difference, on tables made by hand."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import write_study

from papers.virtual_vs_real import clockwise, figures, results
from weir.labels import number
from weir.load import load_study

#: What each live request takes more than the virtual one, in ms, by part.
SENT, WAY, ANSWERED, OTHER = 0.2, 0.4, 0.1, 0.3
LATER_MS = SENT + WAY + ANSWERED + OTHER


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study in which each live answer comes a known time later than the virtual one."""
    folder = tmp_path_factory.mktemp("results") / "live-trial"
    write_study(
        folder,
        loads=(0.5,),
        architectures=("integrated",),
        repetitions=3,
        both_testbeds=True,
        block_table=False,
    )
    for virtual in folder.glob("*-simulator-*"):
        live = folder / virtual.name.replace("-simulator-", "-device-")
        rows = pl.read_parquet(virtual / "requests.parquet")
        server = []
        for (name,), of in rows.group_by("class"):
            mean_ms = float((of["completed_ns"] - of["intended_ns"]).mean()) / 1e6
            server.append({"name": name, "requests": of.height, "mean_ms": mean_ms + OTHER})
        rows.with_columns(
            pl.col("intended_ns").add(round(SENT * 1e6)).alias("submitted_ns"),
            pl.col("completed_ns").add(round(LATER_MS * 1e6)),
        ).write_parquet(live / "requests.parquet")
        late = {
            "count": rows.height,
            "mean_ns": ANSWERED * 1e6,
            "median_ns": 7e4,
            "p99_ns": 2e5,
            "max_ns": 3e6,
        }
        observed = {
            "live": {"shared": {"stats": {"classes": server}}},
            "models": {"shared": {"service_error": late}},
        }
        (live / "observed.json").write_text(json.dumps(observed))
        run = json.loads((live / "run.json").read_text())
        (live / "run.json").write_text(json.dumps(run | {"live": True}))
    return load_study(folder)


def test_runs_are_paired_with_those_that_were_asked_the_same(study):
    found = list(results.pairs(study))
    assert len(found) == 6 and results.of_both(study)
    for live, virtual in found:
        assert (live.testbed, virtual.testbed) == ("device", "simulator")
        assert live.repetition == virtual.repetition
        assert {k: v for k, v in live.levels.items() if k != "testbed"} == {
            k: v for k, v in virtual.levels.items() if k != "testbed"
        }
        assert results.is_own(live) and results.cell(live) == results.cell(virtual)


def test_quantiles_differ_by_what_each_answer_takes_more(study):
    table = results.quantiles(study)
    assert set(table["quantile"]) == {"p50", "p95", "p99"} and set(table["class"]) == {"text", "video"}
    assert (table["live_ms"] - table["virtual_ms"]).to_list() == pytest.approx([LATER_MS] * table.height)
    shown = results.side_by_side(table)
    assert shown.height == 4 and all("[" in words for words in shown["p50 live / virtual"])


def test_the_parts_add_up_to_the_difference(study):
    table = results.parts(study)
    assert table.height == 12
    assert table["sent_ms"].to_list() == pytest.approx([SENT] * 12)
    assert table["way_ms"].to_list() == pytest.approx([WAY] * 12)
    assert table["answered_ms"].to_list() == pytest.approx([ANSWERED] * 12)
    assert table["other_ms"].to_list() == pytest.approx([OTHER] * 12)
    whole = table.select(pl.sum_horizontal("virtual_ms", *results.PARTS)).to_series()
    assert whole.to_list() == pytest.approx(table["live_ms"].to_list())
    assert results.explained(table).height == 4
    (row,) = results.servers([study]).rows(named=True)
    assert (row["runs"], row["worst 99th percentile (us)"], row["latest (ms)"]) == (6, "200", "3.0")


def test_a_class_whose_requests_the_kernel_cut_has_no_parts(study, tmp_path):
    live, _ = next(results.pairs(study))
    assert results._served(live, "text") is not None and results._served(live, "nobody") is None
    observed = live.observed
    observed["live"]["shared"]["stats"]["classes"][0]["requests"] += 1
    before = (live.path / "observed.json").read_text()
    try:
        (live.path / "observed.json").write_text(json.dumps(observed))
        assert results.parts(study).height == 11
    finally:
        (live.path / "observed.json").write_text(before)


@given(st.lists(st.floats(0.5, 2.0), min_size=6, max_size=6))
def test_agreement_is_the_geometric_mean_by_repetition(ratios):
    rows = [
        {
            "cell": cell,
            "is_own": True,
            "is_open": True,
            "class": "text",
            "quantile": "p50",
            "repetition": at,
            "live_ms": 10 * ratio,
            "virtual_ms": 10.0,
        }
        for (cell, at), ratio in zip([(c, r) for c in "ab" for r in range(3)], ratios, strict=True)
    ]
    kernel = rows[0] | {"is_own": False, "cell": "c", "live_ms": 1e6}
    closed = rows[0] | {"is_open": False, "cell": "d", "live_ms": 1e6}
    (row,) = results.agreement({"one": pl.DataFrame([*rows, kernel, closed])}).rows(named=True)
    each = [np.sqrt(ratios[at] * ratios[at + 3]) for at in range(3)]
    assert row["live / virtual"].startswith(number(np.mean(each)))
    assert (row["agrees"] == "yes") == (abs(np.mean(each) - 1) <= 0.05)
    assert row["cells and classes"] == 2


def test_what_is_equal_agrees_and_what_is_half_does_not():
    row = {
        "cell": "a",
        "is_own": True,
        "is_open": True,
        "class": "text",
        "quantile": "p95",
        "repetition": 0,
        "virtual_ms": 8.0,
    }
    for live_ms, agrees in [(8.2, "yes"), (4.0, "no")]:
        table = results.agreement({"one": pl.DataFrame([row | {"live_ms": live_ms}])})
        assert table["agrees"].to_list() == [agrees]


def test_figures_are_drawn_of_what_there_is(study):
    table = results.quantiles(study)
    drawn = figures.against(results.together({"one": table, "two": table}))
    assert [axis.get_title(loc="left") for axis in drawn.axes] == ["p50", "p95", "p99"]
    drawn = figures.tails(study, "text")
    # Two cells, each with three repetitions of both testbeds.
    assert [len(axis.lines) for axis in drawn.axes] == [6, 6]
    assert figures.tails(study, "nobody") is None
    assert len(figures.parts(results.parts(study)).axes) == len(results.PARTS)


# Clockwise.


def clocked(ratio=1.0, live_misses=0.0, swap=False):
    """Runs of three schedulers at two loads: under EDF best effort waits longest; the others are a tie."""
    latency = {"edf": 100.0, "lst": 60.0, "deltal": 59.0}
    swapped = {"edf": 60.0, "lst": 100.0, "deltal": 59.0}
    return pl.DataFrame(
        {
            "testbed": testbed,
            "scheduler": scheduler,
            "variant": variant,
            "repetition": repetition,
            "mb_s": mb_s,
            "latency_ms": (swapped if swap and testbed == "device" else latency)[scheduler]
            * (1 + mb_s)
            * (ratio if testbed == "device" else 1.0),
            "misses_pct": live_misses if testbed == "device" else 0.0,
        }
        for testbed in ("device", "simulator")
        for scheduler in latency
        for variant, mb_s in (("rt-1", 0.8), ("rt-7", 5.9))
        for repetition in range(2)
    )


def by_id(claims):
    return {claim.id: claim for claim in claims}


def test_what_was_measured_agrees_with_what_was_simulated():
    found = by_id(clockwise.measured(clocked(1.04)))
    assert {claim.status for claim in found.values()} == {"reproduced"}
    assert found["B-F7.1 live"].ours == pytest.approx(1.04)
    # LST and deltaL are a tie at both loads.
    assert "of 4 pairs" in found["B-F7.1 live order"].note


@pytest.mark.parametrize(
    ("wrong", "missed"),
    [
        ({"ratio": 1.3}, "B-F7.1 live"),
        ({"ratio": 1.12}, "B-F7.1 live"),
        ({"swap": True}, "B-F7.1 live order"),
        ({"live_misses": 2.0}, "B-F7.2 live deadlines"),
    ],
)
def test_what_does_not_agree_is_not_reproduced(wrong, missed):
    assert by_id(clockwise.measured(clocked(**wrong)))[missed].status != "reproduced"


def test_without_live_runs_clockwise_claims_nothing():
    assert list(clockwise.measured(clocked().filter(pl.col("testbed") == "simulator"))) == []


@pytest.mark.parametrize(("misses", "status"), [(0.0, "reproduced"), (0.5, "not reproduced")])
def test_a_stream_that_asks_for_more_may_make_no_other_late(misses, status):
    found = by_id(clockwise.crosstalk(clocked(live_misses=misses)))
    assert found.keys() == {"B-F6.14 live"}
    assert found["B-F6.14 live"].status == status
    by_testbed = {one.setting: one.status for one in found["B-F6.14 live"].settings}
    assert by_testbed == {"live": status, "simulated": "reproduced"}
    assert "best effort waits" in found["B-F6.14 live"].note
    simulated = clocked(live_misses=misses).filter(pl.col("testbed") == "simulator")
    assert list(clockwise.crosstalk(simulated)) == []
    assert clockwise.tabulated(clocked()).height == 6
    assert len(clockwise.latencies(clocked()).axes) == 2
