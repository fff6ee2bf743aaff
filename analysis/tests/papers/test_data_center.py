"""The shared data center: claims where the paper is right and where it is wrong, and what they rest on."""

import importlib
import itertools
import math
from pathlib import Path

import data_center_runs
import numpy as np
import polars as pl
import pytest
import yaml
from data_center_runs import Cell, write_study

from papers.data_center import (
    figures,
    hybrid_claims,
    names,
    pages,
    printed,
    results,
    samples,
)
from papers.data_center.judge import CLAIMS, judged
from papers.data_center.names import (
    CACHED,
    DIRECT,
    EXT4,
    MIXES,
    SIZES,
    STRIPED_CACHED,
    STRIPED_DIRECT,
    TMPFS,
)
from weir import notebooks, paper_registry
from weir.binary_cache import BinaryCache
from weir.claims import FITTED, NOT_MEASURED, NOT_OBTAINABLE, REPRODUCED, STRUCK
from weir.errors import InputError
from weir.load import load_study
from weir.report import render
from weir.statistics import Interval

# Their studies are planned by it.
pytestmark = pytest.mark.binary

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "shared_data_center.py"
#: Of a network file system without a client cache, with one, and of ours on disk and in memory.
SPEEDS = {EXT4: 40.0, TMPFS: 40.0, DIRECT: 10.0, CACHED: 20.0}


def levels(variant, filesystem=None, **more):
    return {"variant": variant} | ({} if filesystem is None else {"filesystem": filesystem}) | more


def write_basics(path, right):
    """Tables 2, 4, 5, 6 as printed; or with local and network file systems exchanged."""
    swap = {EXT4: STRIPED_DIRECT, STRIPED_DIRECT: EXT4, STRIPED_CACHED: EXT4, TMPFS: EXT4}
    of = {name: name if right else other for name, other in swap.items()}
    cells = [
        Cell(
            levels("servers" if fs in names.STRIPED.values() else "local", fs),
            {"x": 1},
            operations_us={n: printed.access_us(of[fs], n) for n in names.OPERATIONS},
        )
        for fs in swap
    ]
    write_study(path, names.ACCESS, cells, repetitions=1, capture=False)
    cells = []
    for cached, size, fs in itertools.product((True, False), SIZES, swap):
        per_s = printed.per_s(of[fs], size, cached=cached) / 10
        response_us = printed.response_us(of[fs], size, cached=cached)
        # As it seems to be meant, not as it is misprinted.
        response_us = 16666 if response_us == 1666 else response_us
        if not right and fs == EXT4:
            per_s, response_us = per_s / 2, response_us * (0.01 if not cached and size == SIZES[-1] else 2)
        variant = names.document(size, fs, cached=cached)
        cells.append(Cell(levels(variant, fs), {names.DOCUMENTS: per_s}, response_ms=response_us / 1000))
    write_study(path, names.FILES, cells, repetitions=1, capture=False)


def write_sites(path, right):
    read = (0.01, 0.02, 0.05, 0.3, 0.9) if right else (0.9, 0.3, 0.05, 0.02, 0.01)
    traffic = (
        {EXT4: None, TMPFS: None, DIRECT: 1.0, CACHED: 0.05}
        if right
        else {EXT4: None, TMPFS: None, DIRECT: 4, CACHED: 1}
    )
    speeds = SPEEDS if right else SPEEDS | {EXT4: 9.0, TMPFS: 9.0}
    cells = [
        Cell(
            levels(f"class{at}", fs), {names.SITE: speeds[fs]}, kib=8 * (1 + at) if right else 8,
            network_bytes_by_served=traffic.get(fs), read_by_served=read[at] if fs == EXT4 else 0,
        )
        for at in range(5) for fs in SPEEDS if at < 3 or fs not in (TMPFS,)
    ]  # fmt: skip
    write_study(path, names.STATIC, cells)
    share = 0.5 if right else 2000
    cells = [
        Cell(levels(f"class{at}", DIRECT), {names.SITE: 10.0}, network_bytes_by_served=share * (1 + at))
        for at in (0, 3)
    ]
    write_study(path, names.NETWORK, cells, repetitions=1, capture=False)
    rates = dict(zip(MIXES, (30.0, 24.0, 12.0) if right else (12.0, 24.0, 30.0), strict=True))
    root = BinaryCache.find(path).root
    wrong = dict(zip(MIXES, (*MIXES[1:], MIXES[0]), strict=True))
    walked = {
        mix: data_center_runs.walk(pages.transitions_of(root, mix if right else wrong[mix]), 12, 120, seed=at)
        for at, mix in enumerate(MIXES)
    }
    share = (
        {EXT4: 1.0, TMPFS: 1.0, DIRECT: 0.4, CACHED: 0.97}
        if right
        else {EXT4: 1.0, TMPFS: 1.0, DIRECT: 1.2, CACHED: 0.5}
    )
    cells = [
        Cell(
            levels(f"{mix}-class{at}", fs), {names.SHOPPERS: rates[mix] * share[fs]},
            kib=8 if right else 8 * (1 + at), read_by_served=0.01 if right else 9.0,
            network_bytes_by_served={DIRECT: 1.0, CACHED: 0.02 if right else 2}.get(fs), pages=walked[mix],
        )
        for mix in MIXES for at in (0, 3) for fs in (EXT4, DIRECT, CACHED)
    ]  # fmt: skip
    write_study(path, names.DYNAMIC, cells, repetitions=1)


def write_caches(path, right):
    local = {0.9: 60.0, 0.75: 40.0, 0.5: 20.0, 0.25: 10.0}
    cells = [
        Cell(levels(f"alpha-{at:.2f}", fs), {names.SITE: rate if (fs == EXT4) == right else 20.0})
        for at, rate in local.items() for fs in (EXT4, DIRECT, CACHED)
    ]  # fmt: skip
    write_study(path, names.LOCALITY, cells, repetitions=1)
    single = (0.0, 0.0, 0.1, 0.2, 0.4)
    shared = (0.0, 0.0, 0.4, 0.9, 0.95) if right else (0.3, 0.4, 0.1, 0.2, 0.4)
    cells = [
        Cell(
            levels(f"class{at}", **{"clients.first": 8, names.SECOND_CLIENTS: 8 * (sites - 1)}),
            {"first": 40.0, "second": 40.0 * (sites - 1)}, slow=missed[at], read_by_served=missed[at],
        )
        for at in range(5) for sites, missed in ((1, single), (2, shared))
    ]  # fmt: skip
    write_study(path, names.POLLUTION, cells)


def write_shared(path, right):
    def pair(name, gain, slow=0.0):
        sites = {names.BACKGROUND: 30.0, names.SITE: 500.0}
        faster = sites | {names.SITE: 500.0 * (1 + gain / 100)}
        return [
            Cell(levels(f"{name}-plain"), sites),
            Cell(levels(f"{name}-hot"), faster, slow=slow, hot=(names.SITE,)),
        ]

    sign = 1 if right else -1
    static = {(at, behind): sign * 48 * (behind + 1) / 4 for at in (0, 1) for behind in (0, 3)}
    cells = [
        c
        for (at, behind), gain in static.items()
        for c in pair(f"class{at}-behind-class{behind}", gain, 0.5 if behind and not right else 0.0)
    ]
    write_study(path, names.HYBRID, cells, capture=False)
    dynamic = {"browsing": 40, "shopping": 20, "ordering": 10, "rubis": 8, "rubbos": 3}
    dynamic = dynamic if right else dict(zip(dynamic, reversed(dynamic.values()), strict=True))
    cells = [
        c
        for site, gain in dynamic.items()
        for behind in (0, 3)
        for c in pair(f"{site}-behind-class{behind}", gain * (1 if (behind == 3) == right else 0.5))
    ]
    write_study(path, names.HYBRID_TABLES, cells, capture=False)
    alphas = {0.9: 15, 0.5: 5, 0.25: 2} if right else {0.9: 2, 0.5: 5, 0.25: 40}
    cells = [c for at, gain in alphas.items() for c in pair(f"alpha-{at:.2f}", gain)]
    write_study(path, names.HYBRID_NETWORK, cells, capture=False)
    gains = {"plain": 0, "hot": 30, "memory-limited": 35 if right else 10, "rate-limited": 10}
    cells = [
        Cell(levels(n), {names.BACKGROUND: 30.0, names.SITE: 500.0 * (1 + g / 100)}) for n, g in gains.items()
    ]
    write_study(path, names.LIMITS, cells, capture=False)


def write_all(path, right):
    for write in (write_basics, write_sites, write_caches, write_shared):
        write(path, right)


def run_notebook(results_path, monkeypatch, *, draws=True):
    """The notebook's names after all of its cells, and its figures, which are not saved."""
    drawn = {}
    monkeypatch.setenv(notebooks.RESULTS_VARIABLE, str(results_path))
    monkeypatch.setattr(notebooks, "show_in", lambda _folder, figure, name: drawn.setdefault(name, figure))
    for module in () if draws else (figures,):
        for name in vars(module):
            if getattr(getattr(module, name), "__module__", "") == module.__name__:
                monkeypatch.setattr(module, name, lambda *_: None)
    left = {}
    exec(compile(NOTEBOOK.read_text(encoding="utf-8"), NOTEBOOK, "exec"), left)
    return left, drawn


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    """One in which the paper is right, and one in which it is wrong."""
    paths = {right: tmp_path_factory.mktemp("results") for right in (True, False)}
    for right, path in paths.items():
        write_all(path, right)
    return paths


def apart(entry):
    """The status of a claim that does not count; reproduced for all others."""
    reasons = {FITTED: entry.fitted, NOT_OBTAINABLE: entry.unobtainable, STRUCK: entry.struck}
    return next((status for status, reason in reasons.items() if reason), REPRODUCED)


def test_where_the_paper_is_right_its_claims_are_reproduced(worlds, monkeypatch):
    left, drawn = run_notebook(worlds[True], monkeypatch)
    made = {claim.id: claim for claim in left["paper"].made}
    assert list(made) == list(CLAIMS.register.entries)
    for id, entry in CLAIMS.register.entries.items():
        assert made[id].status == apart(entry), made[id]
        assert (made[id].ours is None) == bool(entry.struck), id
        assert not entry.setting or entry.setting in {one.setting for one in made[id].settings}, id
        assert entry.figure in {"", *drawn}, id
    said = hybrid_claims.answer(left["limited"])
    assert "memory-limited: 35.0 [" in said and "as much or more" in said and "which is less" in said
    beneath = hybrid_claims.gains_table(left["sites"])
    assert beneath["site"][0] == "class0 behind class0" and set(beneath["requests for hot files (%)"]) == {
        "25.0"
    }
    assert len(drawn) == 12
    for figure in drawn.values():
        assert all(axis.lines or axis.patches for axis in figure.axes)
    half = figures.throughput(left["answered"], None)
    assert half.axes[1].texts[0].get_text() == "not measured"


def test_where_the_paper_is_wrong_none_of_its_claims_is(worlds, monkeypatch):
    left, _ = run_notebook(worlds[False], monkeypatch, draws=False)
    made = {claim.id: claim for claim in left["paper"].made}
    assert set(made) == set(CLAIMS.register.entries)
    assert {name for name, claim in made.items() if claim.status in (REPRODUCED, NOT_MEASURED)} == set()
    for claim in made.values():
        entry = CLAIMS.register[claim.id]
        if apart(entry) == REPRODUCED:
            assert "because" in claim.note or "the number is missed" in claim.note, claim.id
        else:
            assert claim.status == apart(entry)
    assert "as much or more" not in hybrid_claims.answer(left["limited"])


def test_what_was_not_measured_names_its_study(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="make study STUDY=data-center"):
        paper_registry.load_paper(names.PREFIX, tmp_path)
    cells = [
        Cell(levels(f"alpha-{at:.2f}", fs), {names.SITE: rate})
        for at, rate in ((0.9, 60.0), (0.25, 10.0)) for fs, rate in ((EXT4, rate), (DIRECT, 20.0))
    ]  # fmt: skip
    write_study(tmp_path, names.LOCALITY, cells, repetitions=1)
    left, drawn = run_notebook(tmp_path, monkeypatch)
    paper = left["paper"]
    made = {claim.id: claim for claim in paper.made}
    assert list(drawn) == ["fig-9"] and set(made) == set(CLAIMS.register.entries)
    assert made["V-F9 larger direct"].status == REPRODUCED
    assert made["V-T2 open-close direct"].status == NOT_MEASURED
    assert "make study STUDY=data-center-access" in made["V-T2 open-close direct"].note
    assert made["V-F9 larger cached"].status == NOT_MEASURED
    both = "make study STUDY=data-center-long or make study STUDY=data-center-dynamic"
    assert both in made["V-F8 shopping direct"].note
    assert made["V-T6 uncached 1M direct"].status == STRUCK
    assert hybrid_claims.answer(left["limited"]) == "Not measured."
    assert "data-center-hybrid" in paper.unless_measured(names.HYBRID).data
    assert paper.unless_measured(names.LOCALITY) is None
    assert "data-center-long</code> or" in paper.unless_any(names.LONG, names.DYNAMIC).data
    assert paper.first(names.LONG, names.LOCALITY) is paper.study(names.LOCALITY)
    assert paper.first(names.LONG, names.DYNAMIC) is None


# What claims rest on.


def test_an_interval_that_crosses_the_line_is_not_reproduced():
    def status(low, middle, high):
        (claim,) = judged("V-F9 0.75 direct", Interval(middle, low, high, 3, "t"))
        return claim.status, claim.note

    assert status(1.1, 1.5, 1.9)[0] == "reproduced"
    crossing = status(0.9, 1.5, 1.9)
    assert crossing[0] == "not reproduced" and "interval is not all at least 1.00" in crossing[1]
    assert "0.500 is not at least 1.00" in status(0.4, 0.5, 0.6)[1]
    assert list(judged("V-F9 0.75 direct", None)) == []


def test_ratios_of_repetitions_are_paired_and_of_batches_are_not():
    # Blocks differ by ten times, their ratio by nothing.
    above, below = (
        samples.Sample((20.0, 202.0, 21.0), (0, 1, 2)),
        samples.Sample((10.0, 100.0, 10.2), (0, 1, 2)),
    )
    paired = samples.ratio(above, below)
    assert 1.9 < paired.low < 2.03 < paired.high < 2.2
    free = samples.ratio(samples.Sample(above.values), samples.Sample(below.values))
    assert free.low == 0 and free.note == samples.WITHIN
    # Blocks that only one has are left out; a zero takes another way.
    assert samples.ratio(above, samples.Sample((10.0, 50.0), (0, 7))).low is None
    assert (
        samples.ratio(samples.Sample((0.0, 1.0), (0, 1)), samples.Sample((2.0, 2.0), (0, 1))).estimate == 0.25
    )
    assert samples.ratio(above, samples.Sample((0.0,))) is None
    assert samples.ratio(None, below) is None


def test_few_repetitions_have_the_spread_of_all_cells():
    rng = np.random.default_rng(2)
    rows = [
        {"variant": f"v{at}", "filesystem": fs, "sites": 1, "class": "site", "repetition": repetition}
        | {"per_s": 100 * (at + 1) * float(np.exp(rng.normal(0, 0.1))), "hit_pct": 1.0 + repetition}
        for at in range(10) for fs in (EXT4, DIRECT) for repetition in (0, 1)
    ]  # fmt: skip
    table = pl.DataFrame(rows)
    pair = [samples.sample(table, "per_s", variant="v3", filesystem=fs) for fs in (EXT4, DIRECT)]
    variance, freedom = pair[0].spread
    assert freedom == 20 and 0.005 < variance < 0.02
    of = samples.ratio(*pair)
    # 2.09 standard errors of 0.1, not 12.7.
    assert of.n == 2 and of.method == samples.POOLED
    assert math.log(of.high / of.low) == pytest.approx(2 * 2.086 * math.sqrt(variance), rel=0.01)
    assert samples.interval(pair[0]).method == samples.POOLED
    # A cell that reads next to nothing says nothing of the others.
    quiet = pl.col("variant") == "v0"
    reads = table.with_columns((pl.col("per_s") * pl.when(quiet).then(1e-6).otherwise(1)).alias("read_mb_s"))
    assert samples.sample(reads, "read_mb_s", variant="v3", filesystem=EXT4).spread[1] == 18
    # Other metrics and lonely cells have their own.
    assert samples.sample(table, "hit_pct", variant="v3", filesystem=EXT4).spread is None
    alone = table.filter(pl.col("variant") == "v3", pl.col("filesystem") == EXT4)
    assert samples.sample(alone, "per_s", variant="v3").spread is None


def test_the_delta_method_covers_the_ratio():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        of = samples.ratio(*(samples.Sample(tuple(rng.normal(mean, 1, 8))) for mean in (20, 10)))
        covered += of.low <= 2 <= of.high
    assert 0.92 < covered / 400 < 0.98


def test_differences_and_means_of_intervals():
    a, b = Interval(10, 7, 14, 5, "t"), Interval(4, 2, 8, 3, "t")
    of = samples.difference(a, b)
    assert (of.estimate, of.low, of.high, of.n) == (6, 6 - math.hypot(3, 4), 6 + math.hypot(4, 2), 3)
    assert samples.difference(a, Interval(4, None, None, 1, "none")).low is None
    assert samples.average([a, b]).low == pytest.approx(7 - math.hypot(3, 2) / 2)
    assert samples.average([]) is None
    assert samples.percent_gain(Interval(1.5, 1.2, 1.8, 2, "t")).high == pytest.approx(80)


def test_a_single_run_is_cut_into_batches(tmp_path):
    cells = [Cell(levels("alpha-0.90", EXT4), {names.SITE: 40.0, "idle": 0})]
    study = load_study(write_study(tmp_path, names.LOCALITY, cells, repetitions=1, capture=False))
    table = results.served(study)
    assert table["class"].to_list() == [names.SITE]
    row = table.row(0, named=True)
    assert row["per_s"] == pytest.approx(40, rel=0.02)
    assert np.mean(row["per_s_batches"]) == pytest.approx(row["per_s"])
    assert row["response_ms"] == pytest.approx(1) and len(row["mb_s_batches"]) == samples.BATCHES
    found = samples.sample(table, "per_s", variant="alpha-0.90")
    assert found.blocks == () and samples.interval(found).method == samples.WITHIN
    assert samples.sample(table, "per_s", variant="alpha-0.25") is None
    # Without a capture, hits are of the whole run.
    assert results.hits(study)["hit_pct"].to_list() == [100.0]
    assert results.activity(study) is None


def test_traffic_is_by_request_and_by_what_was_served(tmp_path):
    cells = [
        Cell(
            levels("class0", DIRECT),
            {names.SITE: 40.0},
            kib=8,
            network_bytes_by_served=1.5,
            read_by_served=0.5,
        )
    ]
    study = load_study(write_study(tmp_path, names.STATIC, cells, repetitions=1))
    row = results.traffic(study).row(0, named=True)
    assert row["per_served"] == pytest.approx(2.5) and row["kib_each"] == pytest.approx(20)
    assert row["read_mb_s"] == pytest.approx(row["read_mb"] / 5, rel=0.02)
    over = results.activity(study)
    assert over["second"].to_list() == [0.5 * at for at in range(10)]
    assert (over["mb_s"] * results.BIN_S).sum() == pytest.approx(row["read_mb"], rel=0.01)
    assert results.hits(study)["hit_pct"][0] == pytest.approx(50, abs=1)
    # A run without network counters is damaged, not local.
    path = study.valid_runs[0].path / "observed.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="network"):
        results.traffic(study)


def test_variants_say_what_they_are():
    assert names.shared("class1-behind-class0-hot") == ("class1", "class0", "hot", names.HOT_FILES)
    assert names.shared("class1-behind-class0-hot-4mib") == ("class1", "class0", "hot", "4 MiB hot")
    assert names.shared("alpha-0.90-plain")[:3] == ("alpha-0.90", "", "plain")
    assert names.shared("alpha-0.90-hot-2mib") == ("alpha-0.90", "", "hot", "2 MiB hot")
    assert names.shared("hot")[:3] == (names.SITE, names.BACKGROUND, "hot")
    assert names.shared("memory-limited").placement == "memory-limited"
    assert names.mix_and_class("browsing-class3-32mib") == ("browsing", "class3")
    assert names.buffers("browsing-class3-32mib") == "32 MiB of buffers"
    assert names.buffers("browsing-class3") == names.BUFFERS
    assert names.alpha("alpha-0.25-hot") == 0.25 and names.alpha("class0") is None
    assert names.mix_and_class("browsing-class0") == ("browsing", "class0")


def test_every_claim_has_a_study_and_a_function_that_judges_it():
    for id, entry in CLAIMS.register.entries.items():
        for study in entry.study:
            assert study.removeprefix(f"{names.PREFIX}-") in names.STUDIES, id
        if entry.struck:
            assert not entry.code, id
            continue
        module, _, function = entry.code.partition(".")
        assert callable(getattr(importlib.import_module(f"papers.data_center.{module}"), function)), id


def test_the_page_of_a_study_shows_tiers_and_what_browsers_were_answered(tmp_path):
    cells = [Cell(levels("class0", DIRECT), {names.SITE: 40.0}, network_bytes_by_served=1.5)]
    page = render(load_study(write_study(tmp_path, names.STATIC, cells, repetitions=1, capture=False)))
    assert "Tiers" in page and "run.web (CPU s)" in page
    assert "Requests completed (1/s)" in page and "40.0" in page
    # Browsers say how late they were.
    assert "Lateness, 99th percentile (ms)" in page and "7.00" in page


def test_the_studies_have_the_variants_that_are_looked_at():
    def factors(name):
        path = Path(__file__).parents[3] / f"studies/data-center/{names.PREFIX}-{name}.yml"
        return yaml.safe_load(path.read_text(encoding="utf-8"))["factors"]

    filesystems = [EXT4, TMPFS, *names.STRIPED.values()]
    assert factors(names.ACCESS)["filesystem"] == factors(names.FILES)["filesystem"] == filesystems
    documents = itertools.product(SIZES, filesystems, (True, False))
    assert set(factors(names.FILES)["variant"]) == {
        names.document(size, of, cached=cached) for size, of, cached in documents
    }
    hot = [
        names.shared(one) for name in (names.HYBRID, names.HYBRID_NETWORK) for one in factors(name)["variant"]
    ]
    sizes = {one.setting for one in hot if one.placement == names.HOT}
    assert sizes == {f"{mib} MiB hot" for mib in (2, 4, 8, 16)} and names.HOT_FILES in sizes
    dynamic = {names.buffers(one) for one in factors(names.DYNAMIC)["variant"]}
    assert dynamic == {f"{mib} MiB of buffers" for mib in (4, 8, 16, 32)} and names.BUFFERS in dynamic
    alphas = {names.alpha(one) for one in factors(names.LOCALITY)["variant"]}
    assert min(alphas) < names.GIVEN_ALPHA < max(alphas) == 1.2 and names.GIVEN_ALPHA in alphas
    long = {names.mix_and_class(one) for one in factors(names.LONG)["variant"]}
    assert long == {(mix, size) for mix in MIXES for size in ("class1", "class3")}
    tables = [names.shared(one) for one in factors(names.LONG_TABLES)["variant"]]
    behind = {(one.site, one.background) for one in tables if one.placement == names.HOT}
    assert behind == {("browsing", "class1")} | {(site, names.BEHIND) for site in figures.SITES}
