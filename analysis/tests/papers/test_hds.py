"""Hierarchical disk sharing: reservations, rates and claims against tables made by hand."""

import itertools

import numpy as np
import polars as pl
import pytest
import synthetic

from papers.hds import claims, figures, fluid, results, sizes
from weir.claims import FITTED
from weir.load import load_study

TREE = "hds root_kb_s=1000 tree=A:0.5(stream1:0.8,stream2:0.2),B:0.5(stream3:1) below=fcfs"
ROOT = 1.024
REPETITIONS = (0, 1, 2)


def table(seconds, rate, scheduler=TREE, streams=("stream1", "stream2", "stream3"), **levels):
    """A table of windows from a function of stream (by number), second and repetition."""
    return pl.DataFrame(
        {
            "stream": name,
            "second": second,
            "mb_s": float(rate(at, second, repetition)),
            "repetition": repetition,
            "scheduler": scheduler,
        }
        | levels
        for repetition in REPETITIONS
        for at, name in enumerate(streams, start=1)
        for second in range(seconds)
    )


def judged(shown):
    """Claims by id, as the setting that decides shows them."""
    evidence = claims.Evidence()
    evidence.add(sizes.setting(), shown)
    return {claim.id: claim for claim in evidence.claims()}


def statuses(found):
    """All statuses of claims but of those that are fitted."""
    return {claim.status for claim in found.values()} - {FITTED}


# Reservations.


def test_the_arithmetic_of_the_paper():
    assert fluid.shares("p:0.5(a:0.4,b:w4,c:w6)") == pytest.approx({"a": 0.2, "b": 0.12, "c": 0.18})
    assert fluid.shares("a,b:w3") == pytest.approx({"a": 0.25, "b": 0.75})
    assert fluid.shares("x:50%(y:w1(a:0.5,b),c:w1),d:0.1") == pytest.approx(
        {"a": 0.125, "b": 0.125, "c": 0.25, "d": 0.1}
    )


@pytest.mark.parametrize("text", ["", "a(", "a(b", "a)b", "a:0.5(b)c"])
def test_what_is_no_tree_is_refused(text):
    with pytest.raises(ValueError, match="no tree"):
        fluid.shares(text)


def test_settings_are_read_from_the_scheduler():
    assert fluid.tree_of(TREE) == "A:0.5(stream1:0.8,stream2:0.2),B:0.5(stream3:1)"
    assert fluid.tree_of("linux-mq-deadline") == ""
    assert fluid.root_mb_s(TREE) == pytest.approx(ROOT)
    assert fluid.root_kb_s("hds tree=a") == 18_000
    assert (
        figures.setting("hds root_kb_s=18000 burst_ms=100 below=fcfs pass=own")
        == "root 18.4 MB/s, 100 ms, fcfs"
    )
    assert figures.setting("hds below=linux-bfq") == "root 18.4 MB/s, 500 ms, bfq, passes on any tokens"


# Rates.


def test_windows_hold_what_was_answered_in_them(tmp_path):
    study = load_study(synthetic.write_study(tmp_path / "quick", duration_s=2.0))
    found = results.windows(study)
    run = study.valid_runs[0]
    rows = found.filter(pl.col("repetition") == run.repetition)
    for name, level in run.levels.items():
        rows = rows.filter(pl.col(name) == level)
    begin, end = run.window_ns
    assert rows["second"].unique().sort().to_list() == list(range(begin // 10**9, end // 10**9))
    assert sorted(rows["stream"].unique()) == sorted(one.name for one in study.classes)
    requests = pl.read_parquet(run.path / "requests.parquet").filter(
        pl.col("completed_ns").is_not_null()
        & (pl.col("status") == 0)
        & (pl.col("completed_ns") >= begin)
        & (pl.col("completed_ns") < end)
    )
    assert rows["mb_s"].sum() == pytest.approx(requests["size_bytes"].sum() / 1e6)


def test_shares_are_of_all_streams_in_a_repetition():
    got = results.rates(table(10, lambda at, _, repetition: at * (repetition + 1)))
    assert results.of_stream(got, "stream3", "share_pct") == pytest.approx([50, 50, 50])
    assert results.of_stream(got, "stream3", "mb_s") == pytest.approx([3, 6, 9])
    assert results.totals(table(10, lambda *_: 2))["mb_s"].to_list() == pytest.approx([6, 6, 6])


# Claims.


def test_reservations_are_measured():
    scheduler = "hds tree=P:0.5(a:0.4,b:w4,c:w6),Q:0.5(d)"
    streams = ("a", "b", "c", "d")
    fair = [0.2, 0.12, 0.18, 0.5]
    met = claims.reservation(table(5, lambda at, *_: fair[at - 1], scheduler, streams))
    assert {claim.status for claim in met} == {"reproduced"}
    even = list(claims.reservation(table(5, lambda *_: 1, scheduler, streams)))
    assert {claim.status for claim in even} == {"not reproduced"}
    assert even[0].ours == pytest.approx(25)


def phases(at, second, _):
    """Fig. 5 as the paper has it: from 60 to 120 s two streams take turns with what is left."""
    rates = {0: (1, 0, 0), 1: (0.7, 0.3, 0), 2: (0.4, 0.1, 0.5)}[second // 60]
    swing = {1: (0.1, -0.1, 0)}.get(second // 60, (0, 0, 0))[at - 1] * (-1) ** second
    return ROOT * (rates[at - 1] + swing)


def test_what_others_do_not_use_is_borrowed():
    found = judged(claims.borrowing(table(180, phases)))
    assert statuses(found) == {"reproduced"}
    assert found["H-F5 alone"].ours == pytest.approx(100)
    assert found["H-F5 variation"].ours == pytest.approx(10, abs=0.2)


@pytest.mark.parametrize(("second_phase", "third"), [(0.04, 0.0), (0.1, 0.2)])
def test_rates_that_are_steady_or_vary_under_full_load_too_are_not_the_papers(second_phase, third):
    def rate(at, second, repetition):
        swing = {1: second_phase, 2: third}.get(second // 60, 0) * (-1) ** second * ROOT
        return phases(at, second // 60 * 60, repetition) + (swing if at < 3 else 0)

    assert judged(claims.borrowing(table(180, rate)))["H-F5 variation"].status != "reproduced"


def test_without_borrowing_nothing_of_it_is_reproduced():
    reserved = (0.4, 0.1, 0.5)
    found = judged(
        claims.borrowing(table(180, lambda at, s, _: ROOT * reserved[at - 1] if s >= 60 * (at - 1) else 0))
    )
    assert found["H-F5 alone"].status == "not reproduced"
    # Each has what it reserves, so that the shape holds.
    assert found["H-F5 surplus"].status == "shape only"
    assert found["H-F5 3"].status == "reproduced"


@pytest.mark.parametrize(("least", "status"), [(5, "reproduced"), (9, "not reproduced")])
def test_the_total_varies_with_the_streams(least, status):
    def rate(at, second, _):
        begun = second // 25 + 1
        return (10 if begun == 1 else least) / begun if at <= begun else 0

    streams = [f"stream{at}" for at in range(1, 9)]
    (claim,) = judged(claims.throughput(table(200, rate, "linux-mq-deadline", streams))).values()
    assert (claim.ours, claim.status) == (pytest.approx(100 - 10 * least), status)


def failing(step):
    """Shares that are kept before a step of the root, and even from there on."""
    reserved = (0.4, 0.1, 0.5)
    return lambda at, second, _: reserved[at - 1] if second < step * 20 else 1 / 3


@pytest.mark.parametrize(("step", "met"), [(6, True), (5, True), (4, False), (7, False)])
def test_the_root_is_too_fast_from_a_step_on(step, met):
    found = judged(claims.root(table(240, failing(step))))
    assert (found["H-F7 holds"].ours, found["H-F7 holds"].status) == (pytest.approx(0), "reproduced")
    fails = found["H-F7 fails"]
    assert fails.ours == pytest.approx(step * 384 * 1024 / 1e6)
    # The request size makes this number.
    assert fails.status == FITTED
    assert fails.settings[0].status == ("reproduced" if met else "shape only")


def test_shares_that_never_fail_or_fail_at_once_are_not_reproduced():
    never = judged(claims.root(table(240, failing(99))))
    assert never["H-F7 fails"].settings[0].status == "not reproduced"
    assert judged(claims.root(table(240, failing(0))))["H-F7 holds"].status == "not reproduced"


@pytest.mark.parametrize(
    ("gain", "ratio", "met"),
    [
        (1.1, 3, {"before", "total", "ratio", "stream 2"}),
        (1.2, 3, {"before", "total", "ratio"}),
        (1.0, 3.3, {"before", "ratio", "stream 2"}),
        (1.2, 1, {"before", "total"}),
        (1.04, 3, {"before", "ratio", "stream 2"}),
    ],
)
def test_an_adaptive_root_raises_the_total_and_keeps_the_ratio(gain, ratio, met):
    def rate(at, second, _):
        total, part = (10, 3) if second < 70 else (10 * gain, ratio)
        return total * (part if at == 1 else 1) / (part + 1)

    rows = table(200, rate, "hds tree=stream1:w3,stream2:w1", ("stream1", "stream2"))
    found = judged(claims.adaptive(rows))
    assert {id.removeprefix("H-F8 ") for id, claim in found.items() if claim.status == "reproduced"} == met


def test_a_ratio_that_is_another_from_the_start_is_not_the_papers():
    rows = table(200, lambda at, *_: 3 - at, "hds tree=stream1:w3,stream2:w1", ("stream1", "stream2"))
    assert judged(claims.adaptive(rows))["H-F8 before"].status == "not reproduced"


LEVELS = {
    "linux-mq-deadline": (0.5, 2.0),
    "hds root_kb_s=18000 tree=stream1:w1,stream2:w1 below=fcfs": (0.5, 0.1),
    "hds root_kb_s=18000 tree=stream1:0.7,stream2:0.3 below=fcfs": (0.7, 0.1),
}


def offered(noise_alone, capacity=18.4, cost=0.05):
    """Fig. 3: streams that get what they ask for up to the capacity, and their shares beyond, with noise.

    Token buckets cost a part of the capacity.
    """
    alone = capacity / (1 - cost)
    parts = []
    for (scheduler, (share, noise)), asked in itertools.product(LEVELS.items(), (2, 8, 12, 16, 20)):
        is_alone = scheduler.startswith("linux")
        swing, most = (noise_alone, alone) if is_alone else (noise, capacity)

        def rate(at, second, _, asked=asked, share=share, swing=swing, capacity=most):
            own = asked
            if 2 * asked > capacity:
                mine = share if at == 1 else 1 - share
                other = min(asked, (1 - mine) * capacity)
                own = min(asked, max(mine * capacity, capacity - other)) + swing * (-1) ** second
            return own

        parts.append(table(60, rate, scheduler, ("stream1", "stream2"), variant=f"mb-{asked:02d}"))
    return pl.concat(parts)


def test_overload_is_unstable_alone_and_divided_with_buckets():
    found = judged(claims.overload(offered(noise_alone=2.0)))
    assert statuses(found) == {"reproduced"}
    assert found["H-F3 c stream 1"].status == FITTED
    assert found["H-F3 a"].ours == pytest.approx(20.9, abs=0.2)
    assert found["H-F3 b cost"].ours == pytest.approx(0.95)
    assert found["H-F3 b cost"].settings[0].status == "reproduced"
    assert found["H-F3 c share"].ours == pytest.approx(70)


@pytest.mark.parametrize("cost", [0, 0.3])
def test_equal_weights_that_cost_nothing_or_much_are_not_the_papers(cost):
    found = judged(claims.overload(offered(noise_alone=2.0, cost=cost)))
    # The request size makes this number.
    assert found["H-F3 b cost"].status == FITTED
    assert found["H-F3 b cost"].settings[0].status == "not reproduced"


def test_a_stable_disk_does_not_reproduce_the_instability():
    found = judged(claims.overload(offered(noise_alone=0.1)))
    # No more variable than with token buckets.
    assert found["H-F3 a"].status == "not reproduced"


def test_readers_alone_are_summed_up():
    swing = lambda at, second, _: 10 + (-1) ** (second + at) * (2 if at == 1 else 1)  # noqa: E731
    both = table(60, swing, "c-look", ("stream1", "stream2"), variant="two")
    (row,) = claims.alone(both).rows(named=True)
    assert (row["requests in flight"], row["disk scheduler"], row["total (MB/s)"]) == (
        "two",
        "c-look",
        "20.0",
    )
    assert float(row["variability"]) == pytest.approx(0.2, abs=0.01)


def test_groups_are_isolated():
    tree = "hds tree=A:0.5(stream1:1),B:0.5(stream2:0.65,stream3:0.35)"
    shares = (50, 32.5, 17.5)
    both = pl.concat(
        [table(60, lambda at, *_: shares[at - 1], tree), table(60, lambda *_: 1, "linux-mq-deadline")]
    )
    found = judged(claims.isolation(both))
    assert statuses(found) == {"reproduced"}
    assert "without token buckets 33.3 %" in found["H-F4 1"].note


# The size of requests.


def test_claims_are_judged_by_the_size_of_requests():
    reserved = (0.5, 0.325, 0.175)
    tree = "hds tree=A:0.5(stream1:1),B:0.5(stream2:0.65,stream3:0.35)"
    greedy = pl.concat(
        table(
            60,
            lambda at, s, _, share=share: 18 * (share if at == 1 else 1 - share),
            name,
            ("stream1", "stream2"),
        )
        for name, (share, _) in LEVELS.items()
    )
    late = {256: 1 / 3, 416: None}
    studies = {
        "request-size": greedy,
        "isolation": table(60, lambda at, *_: reserved[at - 1], tree),
        "borrowing": table(180, phases),
        "throughput": table(200, lambda *_: 1, "c-look", [f"stream{at}" for at in range(1, 9)]),
        "root": table(240, failing(6)),
        "adaptive": table(200, lambda at, *_: 4 - 1.5 * at, TREE, ("stream1", "stream2")),
    }
    studies["isolation"] = pl.concat([studies["isolation"], table(60, lambda *_: 1, "linux-mq-deadline")])
    by_size = {
        name: pl.concat(
            one.with_columns(
                pl.lit(f"kib-{kib}").alias("variant"),
                pl.when(name == "isolation" and even is not None).then(even).otherwise("mb_s").alias("mb_s"),
            )
            for kib, even in late.items()
        )
        for name, one in studies.items()
    }
    assert sizes.sizes_of(by_size["root"]) == [256, 416]
    evidence = claims.Evidence()
    evidence.add(sizes.setting(), claims.overload(offered(noise_alone=2.0)))
    for name, rows in by_size.items():
        sizes.add(evidence, name, rows)
    made = {claim.id: claim for claim in evidence.claims()}
    assert made["H-F4 1"].holds() == "holds for 416 KiB; fails for 256 KiB"
    moved = {row["claim"]: row for row in sizes.moved(made.values(), (256, 416)).rows(named=True)}
    assert (moved["H-F4 1"]["256 KiB"], moved["H-F4 1"]["416 KiB"]) == ("33.3*", "50.0")
    assert moved["H-F3 c share"] == {
        "claim": "H-F3 c share",
        "paper": "70.0",
        "256 KiB": "70.0",
        "416 KiB": "70.0",
    }
    assert moved["H-F6"]["416 KiB"] == "0*"


def test_shares_are_judged_with_other_roots_and_buckets_too():
    tree = "tree=A:0.5(stream1:1),B:0.5(stream2:0.65,stream3:0.35)"
    shares = (50, 32.5, 17.5)
    base, small = (f"hds root_kb_s=18000 burst_ms={ms} {tree} below=fcfs pass=own" for ms in (500, 100))
    rows = pl.concat(
        [
            table(60, lambda at, *_: shares[at - 1], base, variant="kib-416-depth-1"),
            table(60, lambda *_: 1, small, variant="kib-416-depth-1"),
            table(60, lambda *_: 1, base, variant="kib-128-depth-1"),
        ]
    )
    evidence = claims.Evidence()
    sizes.add_others(evidence, rows)
    assert evidence.claims() == []
    evidence.add(sizes.setting(), claims.isolation(table(60, lambda at, *_: shares[at - 1], base)))
    claim = evidence.claims()[0]
    assert (
        claim.holds()
        == "holds for root 18.4 MB/s, 500 ms, fcfs, 416 KiB; fails for root 18.4 MB/s, 100 ms, fcfs"
    )


# Figures.


def test_figures_are_drawn_of_what_there_is():
    both = pl.concat([table(60, phases), table(60, lambda *_: 1, "linux-mq-deadline")])
    assert len(figures.isolation(both).axes) == 2
    assert len(figures.overload(offered(2.0)).axes) == 3
    drawn = figures.over_time(table(180, phases), events=(60, 120), reserved=True).axes[0]
    labels = drawn.get_legend_handles_labels()[1]
    assert labels == ["stream 1", "stream 2", "stream 3", "total"]
    # Fig. 6 is without a tree.
    assert figures.over_time(table(180, phases, "linux-elevator-linus")).axes
    # A stream is drawn from when it begins.
    begins = {line.get_label(): line.get_xdata()[0] for line in drawn.lines if line.get_label() in labels}
    assert begins["stream 3"] == pytest.approx(121)
    off = np.abs(np.random.default_rng(1).normal(size=(3, 12)))
    assert len(figures.root(table(240, failing(6)), off, 20, 0.4).axes) == 2
