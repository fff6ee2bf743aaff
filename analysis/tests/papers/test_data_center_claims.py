"""Claims of the shared data center on small tables: where they hold, where they fail, at which settings."""

import polars as pl

from papers.data_center import cache_claims, hybrid_claims, site_claims
from papers.data_center.names import BUFFERS, CACHED, DIRECT, EXT4, HOT_FILES, SITE
from weir.claims import NOT_REPRODUCED, REPRODUCED, SHAPE_ONLY


def table(metric, cells, **same):
    """Two repetitions of each cell, which hardly differ."""
    rows = [
        {"repetition": repetition, "sites": 1} | same | levels | {metric: value * (1 + 0.001 * repetition)}
        for levels, value in cells
        for repetition in (0, 1)
    ]
    return pl.DataFrame(rows)


def judged(claims):
    return {claim.id: claim for claim in claims}


def by_setting(claim):
    return {one.setting: one.status for one in claim.settings}


def throughput(rates):
    return table("per_s", [({"variant": name}, rate) for name, rate in rates.items()], **{"class": SITE})


def test_the_size_of_the_hot_files_is_a_setting():
    rates = {"class1-behind-class0-plain": 100.0, "class1-behind-class0-hot": 120.0}
    rates |= {"class1-behind-class3-plain": 100.0, "class1-behind-class3-hot": 290.0}
    rates |= {"class1-behind-class0-hot-4mib": 120.0, "class1-behind-class3-hot-4mib": 148.0}
    found = judged(hybrid_claims.static(throughput(rates)))
    claim = found["V-F11 static"]
    assert by_setting(claim) == {"4 MiB hot": REPRODUCED, HOT_FILES: SHAPE_ONLY}
    assert claim.status == SHAPE_ONLY and "holds for 4 MiB hot; fails for 16 MiB hot" in claim.note
    assert found["V-F11 static growth"].status == REPRODUCED
    beneath = hybrid_claims.gains_table(throughput(rates).with_columns(pl.lit(25.0).alias("hot_pct")))
    assert beneath["hot files"].to_list() == ["16 MiB hot", "4 MiB hot"] * 2
    # Without runs of the setting that decides nothing is judged.
    other = {name: rate for name, rate in rates.items() if not name.endswith("-hot")}
    assert judged(hybrid_claims.static(throughput(other))) == {}


def test_the_gain_over_a_network_falls_with_locality():
    rates = {"alpha-0.90-plain": 100.0, "alpha-0.90-hot": 115.0}
    rates |= {"alpha-0.25-plain": 100.0, "alpha-0.25-hot": 102.0, "alpha-0.25-hot-2mib": 101.0}
    found = judged(hybrid_claims.network(throughput(rates)))
    assert {id: claim.status for id, claim in found.items()} == {
        "V-F14": REPRODUCED,
        "V-F14 falls": REPRODUCED,
    }
    assert by_setting(found["V-F14"])["2 MiB hot"] == SHAPE_ONLY
    rates |= {"alpha-0.25-hot": 190.0}
    assert judged(hybrid_claims.network(throughput(rates)))["V-F14 falls"].status == NOT_REPRODUCED


def test_gains_of_tables_are_those_behind_the_class_that_the_paper_names():
    def status(browsing, rubis):
        rates = {"browsing-behind-class1-plain": 100.0, "browsing-behind-class1-hot": 300.0}
        for site, gain in (("browsing", browsing), ("rubis", rubis)):
            rates |= {f"{site}-behind-class3-plain": 100.0, f"{site}-behind-class3-hot": 100.0 + gain}
        found = judged(hybrid_claims.tables(throughput(rates)))
        return found["V-F11 browsing"].status, found["V-F13 rubis"].status

    assert status(40, 8) == (REPRODUCED, REPRODUCED)
    assert status(60, 20) == (SHAPE_ONLY, SHAPE_ONLY)
    # The number alone is not enough where browsing gains less.
    assert status(5, 8) == (SHAPE_ONLY, NOT_REPRODUCED)
    assert status(-5, -8) == (NOT_REPRODUCED, NOT_REPRODUCED)


def test_ramfs_sustains_pollution_if_its_site_has_the_same_hits():
    def claim(behind_large):
        hits = {("class1", "class0"): 98.0, ("class1", "class4"): behind_large}
        hits |= {("class2", "class0"): 90.0, ("class2", "class4"): 10.0}
        cells = [({"variant": f"{site}-behind-{of}-hot"}, value) for (site, of), value in hits.items()]
        share = pl.when(pl.col("variant").str.starts_with("class1")).then(100.0).otherwise(30.0)
        of = table("quick_pct", cells, **{"class": SITE}).with_columns(share.alias("hot_pct"))
        return judged(hybrid_claims.ramfs(of))["V-4 ramfs"]

    assert claim(97.0).status == REPRODUCED and "class1, 100 %" in claim(97.0).note
    assert claim(60.0).status == NOT_REPRODUCED
    assert judged(hybrid_claims.ramfs(None)) == {}


def test_both_readings_of_alpha_are_judged():
    def found(local):
        cells = [
            ({"variant": f"alpha-{at}", "filesystem": of}, rate if of == EXT4 else 20.0)
            for at, rate in local.items() for of in (EXT4, DIRECT)
        ]  # fmt: skip
        return judged(cache_claims.locality(table("per_s", cells, **{"class": SITE})))

    right = found({"1.20": 80.0, "0.75": 40.0, "0.25": 10.0})
    assert right["V-F9 0.75 direct"].status == REPRODUCED and "V-F9 larger cached" not in right
    assert by_setting(right["V-F9 larger direct"]) == {
        cache_claims.FALLS: REPRODUCED,
        cache_claims.RISES: NOT_REPRODUCED,
    }
    assert right["V-F9 larger direct"].status == REPRODUCED
    # Worse at every alpha, and no worse with less locality: the network does not win by its larger cache.
    parallel = found({"0.75": 5.0, "0.25": 6.0})["V-F9 larger direct"]
    assert parallel.status == NOT_REPRODUCED and "the shape is another" in parallel.note


def test_the_buffers_of_a_database_are_a_setting():
    def found(growth):
        kib = {"browsing-class1": 10.0, "browsing-class3": 10.0 * growth}
        kib |= {"browsing-class1-32mib": 10.0, "browsing-class3-32mib": 10.0}
        cells = [
            ({"variant": variant, "filesystem": of}, value if of != EXT4 else 10.0)
            for variant, value in kib.items() for of in (EXT4, DIRECT, CACHED)
        ]  # fmt: skip
        return judged(site_claims.dynamic_traffic(table("kib_each", cells), None))

    right, wrong = found(1.0), found(3.0)
    assert {claim.status for claim in right.values()} == {REPRODUCED} and len(right) == 3
    for claim in wrong.values():
        assert by_setting(claim) == {"32 MiB of buffers": REPRODUCED, BUFFERS: NOT_REPRODUCED}
        assert claim.status == NOT_REPRODUCED


def test_traffic_of_static_sites_is_that_of_the_worst_class():
    def status(*cached):
        cells = [({"variant": f"class{at}", "filesystem": CACHED}, of) for at, of in enumerate(cached)]
        (claim,) = site_claims.static_traffic(table("per_served", cells))
        return claim.status

    assert status(1.0, 1.05) == REPRODUCED
    assert status(1.6, 1.05) == NOT_REPRODUCED


def test_the_network_is_used_to_less_than_a_quarter():
    def status(*rates):
        cells = [({"variant": f"class{at}", "filesystem": DIRECT}, of) for at, of in enumerate(rates)]
        (claim,) = site_claims.network_use(table("network_mb_s", cells))
        return claim.status

    assert status(10.0, 40.0) == REPRODUCED
    assert status(80.0, 40.0) == NOT_REPRODUCED
    assert judged(site_claims.network_use(None)) == {}


def test_class_4_reads_more_than_any_other():
    def status(*rates):
        cells = [({"variant": f"class{at}", "filesystem": EXT4}, of) for at, of in enumerate(rates)]
        found = judged(site_claims.static_activity(table("read_mb_s", cells)))
        return found["V-F6 static class2"].status, found["V-F6 static class4"].status

    assert status(0.5, 0.5, 1.0, 10.0, 30.0) == (REPRODUCED, REPRODUCED)
    assert status(0.5, 40.0, 9.0, 10.0, 30.0) == (NOT_REPRODUCED, NOT_REPRODUCED)
