"""Clockwise: models of buses, memory and the track cache, against the thesis and in general."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.clockwise import (
    CLAIMS,
    broker,
    bus_claims,
    bus_figures,
    conflicts,
    disk_claims,
    disk_times,
    memory,
    network,
    pci,
    source,
    string,
    track_cache,
)
from weir.claims import FITTED, STRUCK

# PCI.


def test_bursts_are_those_of_the_formula():
    found = {name: pci.burst_mb_s(np.array([1, 20, 128]), name) for name in pci.SELECT_CYCLES}
    assert found["fast"] == pytest.approx([42.0, 114.4, 123.9], abs=0.1)
    assert found["subtractive"] == pytest.approx([21.0, 100.7, 121.2], abs=0.1)


def test_transactions_cost_what_was_measured():
    assert (pci.read_ns(64), pci.read_ns(512)) == pytest.approx((870, 4260))
    assert pci.write_ns(64, "ncr810") == pytest.approx(570)
    assert pci.write_ns(64, "oppo") == pytest.approx(560)
    assert pci.write_ns(512, "ncr875") == pytest.approx(3920)


@settings(max_examples=25, deadline=None)
@given(
    cards=st.integers(1, 4),
    burst=st.sampled_from([8, 16, 64]),
    burst_ns=st.floats(10, 20_000),
    seed=st.integers(0, 9),
)
def test_no_bus_is_more_than_busy_and_no_card_faster_than_its_link(cards, burst, burst_ns, seed):
    rates = pci.link_rates(cards, burst, 64, burst_ns, seed, bursts=300)
    assert rates.sum() / burst * burst_ns <= 1 + 1e-9
    # A FIFO's first fill is not counted, and jitter is even.
    assert (rates <= pci.LINK_BYTES_NS * 1.06).all()
    # Bytes per ns never rise when another comes; a part of a percent is the draws'.
    if cards > 1:
        assert rates.mean() <= pci.link_rates(1, burst, 64, burst_ns, seed, bursts=300).mean() * 1.05


def judged(claims):
    return {claim.id: claim for claim in claims}


def unmet(found):
    """The ids of claims whose number is outside their limits."""
    return {id for id, claim in found.items() if not is_met(claim)}


def is_met(claim):
    low, high = CLAIMS.register[claim.id].bounds
    return low <= claim.ours <= high


EIGHT = pci.words(8)


def speed_ups(**rates):
    """Links of known rates, as parts of the full one: two disks fill PCI when written without bursts."""
    alone = {
        "read": dict.fromkeys(bus_claims.SIZES_KB, 110.0),
        "write": dict.fromkeys(bus_claims.SIZES_KB, 110.0),
    }
    links = {(op, mode): [1.0, 1.0, 1.0, 1.0] for op in alone for mode in pci.modes(op)}
    links["write", EIGHT] = [1, 0.9, 0.6, 0.45]
    links["read", EIGHT] = [1, 0.98, 0.95, 0.92]
    links["read", "with bursts"] = [1, 0.99, 0.98, 0.97]
    links["write", "with bursts"] = [1, 0.97, 0.92, 0.85]
    links |= {("read" if key.startswith("read") else "write", EIGHT): value for key, value in rates.items()}
    return bus_claims.SpeedUps(
        alone, {key: [pci.LINK_BYTES_NS * part for part in parts] for key, parts in links.items()}
    )


def test_speed_ups_follow_from_links():
    found = speed_ups()
    # 102.4 ms of bytes take 1 / 0.45 times as long.
    later = 2**20 / pci.LINK_BYTES_NS * (1 / 0.45 - 1) / 1e6
    assert found.up("write", EIGHT, 4) == pytest.approx(4 * 110 / (110 + later))
    assert len(bus_figures.speed_ups(found).axes) == 4
    made = judged(bus_claims.speed_ups(found))
    assert {claim.status for claim in made.values()} == {"reproduced"}
    # The other sizes of a transaction have full links here.
    assert made["B-F4.13 read"].holds() == (
        "holds for 8 bytes a transaction; fails for 4 bytes a transaction, 16 bytes a transaction"
    )


def test_disks_that_do_not_slow_each_other_down_are_not_the_papers():
    full = [1.0] * 4
    perfect = speed_ups()
    perfect = bus_claims.SpeedUps(perfect.alone_ms, {key: [pci.LINK_BYTES_NS] * 4 for key in perfect.links})
    made = judged(bus_claims.speed_ups(perfect))
    assert {claim.status for claim in made.values()} == {"not reproduced"}
    # As fast as four disks together may be, but no faster with four than with two.
    made = judged(bus_claims.speed_ups(speed_ups(write=[1, 0.45, 0.45, 0.45])))
    assert made["B-F4.13 write"].status == "not reproduced"
    assert judged(bus_claims.speed_ups(speed_ups(read=full)))["B-F4.13 read"].status == "not reproduced"
    # More than 3.5 times as fast is not almost 3.5 times.
    quick = speed_ups()
    quick.links["write", "with bursts"] = [pci.LINK_BYTES_NS * part for part in (1, 0.98, 0.96, 0.9)]
    assert judged(bus_claims.speed_ups(quick))["B-F4.14 write"].status == "not reproduced"


# Conflicts.


@pytest.mark.parametrize(
    ("disks", "layout", "expected"),
    [(1, "3", [1]), (4, "3", [3, 1]), (12, "3", [3] * 4), (4, "2+1", [2, 2]), (9, "2+1", [3, 2, 2, 2])],
)
def test_disks_are_attached_as_the_figure_has_them(disks, layout, expected):
    assert conflicts.attached(disks, layout) == expected
    assert sum(conflicts.attached(disks, layout)) == disks


@pytest.mark.parametrize(("disks", "layout"), [(0, "3"), (13, "3"), (4, "4")])
def test_what_cannot_be_attached_is_refused(disks, layout):
    with pytest.raises(ValueError, match="disks as"):
        conflicts.attached(disks, layout)


def test_conflicts_agree_with_a_simple_simulator():
    phases = np.array([0.1, 0.6, 0.9])
    disks = [3, 2, 1]
    asked = sorted(
        phase * conflicts.PERIOD_US[n] + k * conflicts.PERIOD_US[n]
        for n, phase in zip(disks, phases, strict=True)
        for k in range(int(conflicts.SPAN_US / conflicts.PERIOD_US[n]) + 1)
    )
    free, waited = 0.0, 0
    for at in asked:
        begun = max(at, free)
        if begun < conflicts.SPAN_US:
            waited += begun > at + 1e-6
        free = begun + conflicts.HOLD_US
    assert conflicts.per_second(disks, phases) == pytest.approx(waited / conflicts.SPAN_US * 1e6, rel=1e-3)


def test_one_card_never_waits():
    assert conflicts.in_step(3, "3") == 0
    assert conflicts.over_phases(2, "2+1", range(3)).tolist() == [0, 0, 0]


# A shared SCSI bus.


@settings(max_examples=20, deadline=None)
@given(disks=st.integers(1, 3), least=st.floats(40, 90), seed=st.integers(0, 9))
def test_a_bus_moves_no_more_than_it_can(disks, least, seed):
    alone = np.linspace(least, least + 8, 50)
    found = string.serve(disks, alone, seed, blocks=60)
    assert found.busy <= 1 + 1e-9
    assert found.rate_mb_s <= string.BUS_MB_S + 1e-9
    # All bytes pass: blocks of 1 MB, as many on each disk.
    assert found.service_ms.shape == (disks, 60)
    assert found.rate_mb_s == pytest.approx(disks * 1e3 / found.service_ms.mean(), rel=0.08)
    # Nobody is faster than alone.
    assert found.service_ms.min() >= least - 1e-9


def test_aggregates_stop_at_memory():
    rates = {1: 13.0, 2: 24.0, 3: 32.0}
    assert string.aggregate_mb_s(4, "3", "read", rates) == 45
    assert string.aggregate_mb_s(8, "2+1", "read", rates) == 96
    assert string.aggregate_mb_s(12, "3", "read", rates) == string.MEMORY_MB_S["read"]
    assert string.schedulable_mb_s(np.full(10, 80.0), 2) == pytest.approx(25)


def test_strings_are_judged_and_drawn():
    alone = np.linspace(70.5, 78, 40)
    runs = {n: [string.serve(n, alone, seed, 60) for seed in range(3)] for n in (1, 2, 3)}
    strings = bus_claims.Strings(runs)
    made = judged([*bus_claims.cheetahs(strings), *bus_claims.parallel(strings)])
    assert made["B-F4.17 one"].status == "reproduced"
    # Buses do not meet.
    assert (made["B-F7.10 six"].ours, made["B-F7.10 six"].status) == (0, "not reproduced")
    assert {id for id, claim in made.items() if claim.status == FITTED} == {
        "B-F4.17 three",
        "B-F4.17 read",
        "B-F4.17 write",
        "B-F8.1 rate 3",
    }
    assert {id for id, claim in made.items() if claim.status == STRUCK} == {
        "B-F4.17 eight",
        "B-F4.17 apart",
        "B-F7.10 mean",
        "B-F7.10 rate",
    }
    assert made["B-F8.1 one"].ours == pytest.approx(70.5, abs=0.1)
    for figure in (bus_figures.cheetahs(strings), bus_figures.shared_bus(strings)):
        assert len(figure.axes) == 2


def test_six_disks_slow_each_other_down_where_memory_is_full():
    times = np.full((1, 4), 60.0)
    runs = {n: [string.Served(np.repeat(times, n, axis=0), n * 1e3 / 60, 0.5)] for n in (1, 2, 3)}
    found = bus_claims.Strings(runs)
    # 100 MB/s are 60 ms for each of six blocks, and less for each of five.
    assert [found.parallel_ms(n) for n in (5, 6)] == [60, 60]
    runs[2] = [string.Served(np.full((2, 4), 50.0), 40, 0.5)]
    assert [found.parallel_ms(n) for n in (5, 6)] == [50, 60]


def test_conflicts_are_judged_at_random_phases_and_in_step():
    made = judged(bus_claims.bus_conflicts())
    rises = made["B-F4.18 rises"]
    assert [one.setting for one in rises.settings] == ["phases at random", "all cards in step"]
    assert rises.ours == rises.settings[0].ours
    assert {made[f"B-F4.18 {name}"].status for name in ("explodes", "nine")} == {STRUCK}


# The network.


def test_combined_throughput_is_that_of_the_closed_model():
    def rates(size):
        return [
            network.combined_mb_s(size, direction, card)
            for direction in ("record", "play")
            for card in ("ncr810", "ncr875")
        ]

    # By hand. The card that sends takes 2,450 ns for 256 bytes, 997 for 64 and 520 for 1.
    assert rates(64) == pytest.approx([42.7, 42.7, 38.9, 40.0], abs=0.1)
    assert rates(257) == pytest.approx([39.6, 52.7, 45.9, 49.4], abs=0.1)
    assert rates(512) == pytest.approx([42.7, 55.9, 51.6, 55.4], abs=0.1)


def test_small_packets_are_what_rings_allow():
    packets = network.sent_mbit_s(np.array([48]), 1)[0] * 1e6 / 8 / 48
    assert packets == pytest.approx(18_000)
    assert network.sent_mbit_s(np.array([65_000]), 4)[0] == pytest.approx(135.7, abs=0.2)


def test_bus_shares_are_the_printed_ones():
    for _, size, ns, printed in source.BUS_SHARES:
        assert network.bus_share_pct(size, ns) == pytest.approx(printed, abs=0.1)


def test_buses_and_cards_are_drawn():
    assert len(bus_figures.bursts().axes) == 1
    assert len(bus_figures.cells().axes) == 2


@pytest.mark.parametrize("claims", [bus_claims.bursts, bus_claims.cells])
def test_the_thesis_s_arithmetic_is_met_and_counts_for_nothing(claims):
    made = judged(claims())
    assert {claim.status for claim in made.values()} == {FITTED}
    assert not unmet(made)


def test_packets_are_those_of_the_closed_model(monkeypatch):
    made = judged(bus_claims.packets())
    assert {one.status for one in made.values()} == {"reproduced"}
    real = network.combined_mb_s
    monkeypatch.setattr(
        network, "combined_mb_s", lambda n, way, card: real(n, way, card) * (1.1 if way == "record" else 0.7)
    )
    made = judged(bus_claims.packets())
    assert {made[f"B-F7.11 {name}"].status for name in ("least", "packet")} == {
        "not reproduced",
        "shape only",
    }
    monkeypatch.setattr(
        network,
        "combined_mb_s",
        lambda n, way, card: (
            real(n, way, card) * (1.1 if card == "ncr875" else 1)
            + (3 if way == "record" and card == "ncr875" else 0)
        ),
    )
    assert judged(bus_claims.packets())["B-F7.11 order"].status == "reproduced"


# Memory.


def test_memory_is_that_of_the_thesis():
    assert memory.rows() == {"one": 7.5, "rotation": 129.0, "memory": 43.0, "large": 79.5}
    made = judged(bus_claims.buffers())
    assert {claim.status for claim in made.values()} <= {"reproduced", FITTED}
    assert not unmet(made)


def test_who_does_not_return_buffers_loses_them_after_half_a_second():
    found = broker.Broker(100)
    found.enter("cache", 10, 0)
    assert found.grow("cache", 1000) == 90
    found.enter("stream", 20, 100)
    assert found.missing("stream") == 20
    assert found.applications["cache"].owed == 20
    found.advance(599)
    assert found.missing("stream") == 20
    found.advance(600)
    assert found.missing("stream") == 0
    assert found.applications["cache"].variable == 70


def test_who_returns_them_is_left_alone():
    found = broker.Broker(100)
    found.enter("cache", 10, 0)
    found.grow("cache", 90)
    found.enter("stream", 20, 100)
    found.give_back("cache", 20, 150)
    assert found.missing("stream") == 0
    found.advance(700)
    assert found.applications["cache"].variable == 70


def test_more_than_can_be_fixed_is_refused():
    found = broker.Broker(100, reserve=10)
    found.enter("one", 60, 0)
    with pytest.raises(broker.NoRoomError, match="30 are left"):
        found.enter("two", 31, 0)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "ask", "grow", "give", "leave", "wait"]),
        st.integers(0, 4),
        st.integers(1, 60),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps=_STEPS, reserve=st.integers(0, 8))
def test_buffers_are_neither_made_nor_lost(steps, reserve):
    found, now = broker.Broker(100, reserve), 0.0
    for kind, who, count in steps:
        name, now = f"a{who}", now + 40
        there = name in found.applications
        if kind == "enter" and not there:
            room = 100 - reserve - sum(a.fixed for a in found.applications.values())
            if count <= room:
                found.enter(name, count, now)
        elif kind == "ask" and there:
            found.ask(name, count, now)
        elif kind == "grow" and there:
            found.grow(name, count)
        elif kind == "give" and there:
            found.give_back(name, count, now)
        elif kind == "leave" and there:
            found.leave(name, now)
        elif kind == "wait":
            now += 500
        found.advance(now)
        assert 0 <= found.free <= 100
        for application in found.applications.values():
            assert 0 <= application.held <= application.fixed
            assert application.variable >= 0
            assert 0 <= application.returned <= application.counter
    # What was promised is there half a second later, whoever has the rest.
    found.advance(now + 501)
    assert all(a.held == a.fixed for a in found.applications.values())


@settings(max_examples=20, deadline=None)
@given(fixed=st.lists(st.integers(1, 20), min_size=2, max_size=5))
def test_all_come_to_the_same_ratio_when_all_want_everything(fixed):
    found = broker.Broker(200)
    for at, count in enumerate(fixed):
        found.enter(f"a{at}", count, at)
        found.ask(f"a{at}", 200, at)
    for now in range(0, 6_000, 100):
        found.advance(now)
    for name, application in found.applications.items():
        assert abs(application.variable - found.share(name)) <= 1


# The track cache.


def test_the_example_of_the_thesis():
    first, second = track_cache.answers(179, 1024, 2)
    assert (first.cached, first.request.sectors) == (0, 2131)
    assert (second.cached, second.request.sectors) == (83, 1969)


@settings(max_examples=100, deadline=None)
@given(track=st.integers(20, 200), block_kb=st.sampled_from([1, 4, 16, 64, 256]), count=st.integers(1, 60))
def test_every_sector_is_read_once(track, block_kb, count):
    asked = track_cache.blocks(block_kb, count)
    found = track_cache.answers(track, block_kb, count)
    read_to = track_cache.FIRST_SECTOR
    for block, answer in zip(asked, found, strict=True):
        assert block.start + answer.cached <= read_to
        if answer.request:
            assert answer.request.start == read_to == block.start + answer.cached
            read_to = answer.request.start + answer.request.sectors
            assert read_to % track == 0
        assert read_to >= block.start + block.sectors
    assert read_to - (asked[-1].start + asked[-1].sectors) < track


def test_the_least_recently_used_track_makes_room():
    cache = track_cache.TrackCache(100, buffers=2)
    for start in (10, 1010, 2010):
        cache.read(start, 50)
    assert cache.read(2060, 10).cached == 10
    assert cache.read(60, 10).cached == 0


def test_one_kilobyte_misses_once_a_track():
    found = track_cache.answers(179, 1, 20_000)
    assert sum(answer.request is None for answer in found) / len(found) == pytest.approx(
        1 - 1 / 89.5, abs=1e-3
    )


# Single disks, as the bench gives their times.


class Bench:
    """Service times of the thesis's disk, or of one that is other in something."""

    drive = disk_times.Drive(
        "made by hand",
        tuple((zone.sectors_per_track, zone.cylinders) for zone in source.ZONES),
        10,
        source.REVOLUTION_MS,
        {
            "seek_points": [
                {"distance_cylinders": at, "ms": ms} for at, ms in ((1, 1.9), (1500, 9.1), (5811, 17.722))
            ]
        },
    )

    def __init__(
        self,
        *,
        spread_ms=1.8,
        zig_zag=True,
        inner_loss=0.2,
        outer_loss=0.0,
        fast=9.2,
        wide=0.92,
        revolution=source.REVOLUTION_MS,
        late=0.0,
    ):
        self.revolution, self.late = revolution, late
        self.spread_ms, self.zig_zag, self.fast, self.wide = spread_ms, zig_zag, fast, wide
        self.loss = [outer_loss] * 2 + [inner_loss] * 10

    def seeks(self, zone, distance):
        assert (zone, distance) == (0, 1000)
        return 8 + np.linspace(0, source.REVOLUTION_MS + self.spread_ms, 200)

    def raw(self, zone, sectors, *, write=False, **changes):
        if "write_cache_kib" in changes:
            mb = sectors / 2048
            return np.full(4, 1e3 * mb / self.fast / (1 - self.loss[zone] * (mb == 1)))
        track = self.drive.track(zone)
        if write:
            turns = -(-sectors // track) + 1 if self.zig_zag else sectors / track + 1
            if sectors == 2048:
                return np.linspace(111, 121, 100) * (self.wide if changes else 1)
            return turns * source.REVOLUTION_MS + np.linspace(-1, 1, 9)
        ends = source.READS_MS.get(sectors, (2 + 8 * sectors / track,) * 2)
        return np.linspace(*ends, 9)

    def cached(self, zone, block_kb):
        answers = track_cache.answers(self.drive.track(zone), block_kb, 2000)
        sectors = np.array([one.request.sectors if one.request else 0 for one in answers])
        # A revolution for each track and half a one until it begins.
        turns = -(-sectors // self.drive.track(zone))
        return (
            np.where(sectors, self.revolution * turns + self.late, 0.01),
            sectors,
            float(np.mean(sectors == 0)),
        )

    def partition(self, zone, block_kb, *, write=False, **changes):
        later = source.REVOLUTION_MS
        return self.raw(zone, 2 * block_kb, write=write, **changes) + np.linspace(0, later, 9)[-1]


def test_seeks_over_one_distance_differ():
    made = judged(disk_claims.seeks(Bench()))
    assert made["B-F4.5 spread"].ours == pytest.approx(1.8)
    assert made["B-F4.5 spread"].status == "reproduced"
    assert {made[f"B-F4.5 {one}"].status for one in ("one", "knee", "longest")} == {FITTED}
    for spread_ms in (0, 1, 3):
        made = judged(disk_claims.seeks(Bench(spread_ms=spread_ms)))
        assert made["B-F4.5 spread"].status == "not reproduced"


def test_a_write_cache_is_as_fast_as_the_bus_until_it_is_full():
    assert judged(disk_claims.cached_writes(Bench()))["B-F4.6"].status == "reproduced"
    for other in ({"outer_loss": 0.1}, {"inner_loss": 0.0}, {"fast": 8.0}):
        status = judged(disk_claims.cached_writes(Bench(**other)))["B-F4.6"].status
        assert status in ("not reproduced", "shape only"), other


def test_writes_that_are_no_whole_tracks_take_a_revolution_more():
    zig_zag, smooth = (judged(disk_claims.writes(Bench(zig_zag=one))) for one in (True, False))
    assert zig_zag["B-F4.10 zig-zag"].ours == pytest.approx(source.REVOLUTION_MS)
    assert is_met(zig_zag["B-F4.10 zig-zag"]) and not is_met(smooth["B-F4.10 zig-zag"])
    assert {zig_zag[f"B-F4.10 {name}"].status for name in (2, 179, "zig-zag")} == {FITTED}


def test_whole_tracks_are_written_in_a_revolution_more_than_they_have():
    made = judged(disk_claims.written_tracks(Bench()))
    for name in ("ten", "eleven", "sector"):
        assert made[f"B-F7.7 {name}"].status == FITTED and is_met(made[f"B-F7.7 {name}"]), name
    for name in ("B-F7.8 raw", "B-F7.8 wide"):
        assert made[name].status == "reproduced", made[name]
    assert made["B-F7.8 raw"].ours == pytest.approx(90)
    made = judged(disk_claims.written_tracks(Bench(zig_zag=False, wide=1.0)))
    assert not is_met(made["B-F7.7 sector"])
    assert made["B-F7.8 wide"].status == "not reproduced"


def test_the_track_cache_reads_whole_tracks():
    made = judged(disk_claims.cache_of_tracks(Bench()))
    for name in ("B-F7.5 hits", "B-F7.6 split", "B-F7.6 apart"):
        assert made[name].status == "reproduced", made[name]
    assert {made[f"B-7.2.2 {name}"].status for name in ("first", "second")} == {FITTED}
    assert not unmet({id: claim for id, claim in made.items() if id.startswith("B-7.2.2")})
    # The partition of this bench is a whole revolution late, not half of one.
    assert made["B-F7.5 uncached"].status == "not reproduced"
    made = judged(disk_claims.cache_of_tracks(Bench(revolution=7, late=20)))
    assert made["B-F7.6 apart"].status != "reproduced" and made["B-F7.5 cached"].status != "reproduced"


def test_reads_are_held_against_the_ranges():
    made = judged(disk_claims.reads(Bench()))
    assert {made[f"B-F4.7 {sectors}"].ours for sectors in source.READS_MS} == {0}
    assert {made[f"B-F4.7 zone {zone}"].status for zone in (0, 11)} == {FITTED}


def test_unaligned_blocks_take_a_revolution_more():
    made = judged(disk_claims.unaligned_reads(Bench()))
    assert made["B-F7.3"].status == "reproduced"
    assert made["B-F7.3"].ours == pytest.approx(source.REVOLUTION_MS)


# Requests for the simulator.


def test_requests_are_written_as_a_trace():
    requests = [disk_times.Request(0, 2), disk_times.Request(179, 10, is_write=True)]
    lines = disk_times._table(requests, 8.0, seed=1).splitlines()
    assert lines[0] == "time,op,offset,size"
    first, second = (line.split(",") for line in lines[1:])
    assert first[1:] == ["R", "0", "1024"]
    assert second[1:] == ["W", str(179 * 512), "5120"]
    assert 0 <= float(first[0]) < 0.008
    assert 0.5 <= float(second[0]) < 0.508
