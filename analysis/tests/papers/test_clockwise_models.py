"""Clockwise: models of buses, memory and the track cache, against the thesis and in general."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.clockwise import (
    broker,
    bus_claims,
    bus_figures,
    conflicts,
    disk_times,
    memory,
    network,
    pci,
    source,
    string,
    track_cache,
)

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


def speed_ups():
    """Links whose rates are known: two disks fill PCI when written without bursts."""
    alone = {
        "read": dict.fromkeys(bus_claims.SIZES_KB, 110.0),
        "write": dict.fromkeys(bus_claims.SIZES_KB, 110.0),
    }
    full = pci.LINK_BYTES_NS
    links = {(op, mode): [full] * 4 for op in alone for mode in ("without bursts", "with bursts")}
    links["write", "without bursts"] = [full, full * 0.9, full * 0.6, full * 0.45]
    return bus_claims.SpeedUps(alone, links)


def test_speed_ups_follow_from_links():
    found = speed_ups()
    assert found.up("read", "with bursts", 4) == pytest.approx(4)
    # 102.4 ms of bytes take 1 / 0.45 times as long.
    later = 2**20 / pci.LINK_BYTES_NS * (1 / 0.45 - 1) / 1e6
    assert found.up("write", "without bursts", 4) == pytest.approx(4 * 110 / (110 + later))
    judged = {claim.id: claim for claim in bus_claims.speed_ups(found)}
    assert judged["B-F4.13 write"].status == "reproduced"
    assert judged["B-F4.14 write"].status == "reproduced"
    assert judged["B-F7.9 two"].ours == pytest.approx(2)


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
    judged = {claim.id: claim for claim in [*bus_claims.cheetahs(strings), *bus_claims.parallel(strings)]}
    assert judged["B-F4.17 one"].status == "reproduced"
    assert judged["B-F8.1 two"].status == "reproduced"
    assert judged["B-F7.10 six"].status == "not reproduced"
    for figure in (bus_figures.cheetahs(strings), bus_figures.shared_bus(strings)):
        assert len(figure.axes) == 2


# The network.


def test_combined_throughput_is_that_of_the_closed_model():
    def rates(size):
        return [
            network.combined_mb_s(size, direction, card)
            for direction in ("record", "play")
            for card in ("ncr810", "ncr875")
        ]

    assert rates(64) == pytest.approx([42.7, 42.7, 42.5, 43.8], abs=0.25)
    assert rates(257) == pytest.approx([39.6, 52.7, 48.2, 52.1], abs=0.25)
    assert rates(512) == pytest.approx([42.7, 55.9, 53.1, 57.0], abs=0.25)


def test_small_packets_are_what_rings_allow():
    packets = network.sent_mbit_s(np.array([48]), 1)[0] * 1e6 / 8 / 48
    assert packets == pytest.approx(18_000)
    assert network.sent_mbit_s(np.array([65_000]), 4)[0] == pytest.approx(135.7, abs=0.2)


def test_bus_shares_are_the_printed_ones():
    for _, size, ns, printed in source.BUS_SHARES:
        assert network.bus_share_pct(size, ns) == pytest.approx(printed, abs=0.1)


@pytest.mark.parametrize("claims", [bus_claims.bursts, bus_claims.cells, bus_claims.packets])
def test_what_needs_no_disk_is_reproduced(claims):
    assert {claim.status for claim in claims()} == {"reproduced"}


# Memory.


def test_memory_is_that_of_the_thesis():
    assert memory.rows() == {"one": 7.5, "rotation": 129.0, "memory": 43.0, "large": 79.5}
    assert {claim.status for claim in bus_claims.buffers()} == {"reproduced"}


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
