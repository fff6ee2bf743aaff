"""Integration on current devices: regions made by hand whose answer is known; the plans of the studies."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from papers.integration import figures, results
from papers.integration.results import (
    ABSENT,
    BETTER,
    BOTH,
    DEVICES,
    OF_TEXT,
    OF_VIDEO,
    UNDECIDED,
    WORSE,
    Region,
    decided,
)
from papers.shenoy.results import SERVERS, Surface
from weir.plots import encode

ROOT = Path(__file__).resolve().parents[3]
BINARY = ROOT / "target/release/weir"
TEXT = np.arange(0, 201, 10.0)
VIDEO = np.arange(0, 101, 10.0)
#: All mixes but that of no clients.
MIXES = 230


def surface(function, spread=0.0, repetitions=3, seed=1):
    """A surface of a function of text and video clients, with lognormal noise of each run."""
    rng = np.random.default_rng(seed)
    t, v = np.meshgrid(TEXT, VIDEO, indexing="ij")
    noise = np.exp(rng.normal(0, spread, (repetitions, *t.shape)))
    return Surface(TEXT, VIDEO, (function(t, v) + 0 * t) * noise)


def region(ratio, more=lambda t, v: 0.0, spread=0.01):
    """A region in which text is so many times as fast together, and so many % more deadlines are violated."""
    apart = surface(lambda t, v: 10 + t, spread, seed=1)
    shared = surface(lambda t, v: (10 + t) / ratio(t, v), spread, seed=2)
    violated = {SERVERS[0]: surface(lambda t, v: 0.0), SERVERS[1]: surface(more)}
    return Region({SERVERS[0]: apart, SERVERS[1]: shared}, violated)


def test_better_everywhere():
    found = region(lambda t, v: 2.0)
    assert found.part(BETTER) == 100 and results.holds(found) == "holds"
    share, ratio = found.share(), found.ratio()
    assert (share.low, share.estimate, share.high) == (100, 100, 100)
    assert ratio.low < 2 < ratio.high and ratio.estimate == pytest.approx(2, rel=0.01)
    assert found.decisions[BOTH].size == MIXES and found.points[0, 0] == ABSENT


def test_better_nowhere():
    found = region(lambda t, v: 0.5)
    # Without text there is only video, which is on time.
    assert (found.points[0, 1:] == BETTER).all() and (found.points[1:] == WORSE).all()
    assert found.part(WORSE) == pytest.approx(100 * 220 / MIXES) and results.holds(found) == "fails"
    assert found.share(OF_TEXT).high == 0


def test_better_where_there_is_little_video():
    found = region(lambda t, v: np.where(v < 50, 2.0, 0.5))
    assert (found.faster[:, :5] == BETTER).all() and (found.faster[:, 5:] == WORSE).all()
    assert found.share(OF_TEXT).estimate == pytest.approx(100 * 5 / 11)


def test_a_spread_leaves_points_undecided():
    found = region(lambda t, v: 1.02, spread=0.3)
    assert (found.faster == UNDECIDED).mean() > 0.95 and results.holds(found) == "undecided"
    share = found.share()
    assert share.low < 10 < share.estimate < 90 < share.high


def test_equal_servers_are_seldom_decided():
    # False decisions of the whole family: none in most regions, whatever their spread.
    found = [decided(np.random.default_rng(seed).normal(0, 0.1, (3, 20, 11))) for seed in range(20)]
    assert np.mean([(one != UNDECIDED).any() for one in found]) <= 0.1


def test_false_decisions_are_a_twentieth_of_all():
    # Half of the map has a difference of ten standard deviations, the other half has none.
    rng, wrong, of = np.random.default_rng(5), 0, 0
    for _ in range(10):
        gains = rng.normal(0, 0.1, (3, 20, 11))
        gains[:, :10] += 1
        made = decided(gains)
        wrong += int((made[10:] != UNDECIDED).sum())
        of += int((made != UNDECIDED).sum())
        assert (made[:10] == BETTER).mean() > 0.9
    assert wrong / of <= 0.06


@pytest.mark.parametrize(("more", "status"), [(0.0, BETTER), (0.05, BETTER), (0.2, WORSE)])
def test_later_video_makes_integration_worse(more, status):
    found = region(lambda t, v: 2.0, lambda t, v: np.where(v >= 80, more, 0.0))
    assert (found.points[:, 8:] == status).all()
    # Text alone and few video clients are not touched.
    assert (found.points[1:, :8] == BETTER).all()
    assert found.share(OF_VIDEO).estimate == (100 if status == BETTER else 70)


def test_video_that_is_later_on_average_only_is_undecided():
    more = np.zeros((3, len(TEXT), len(VIDEO)))
    more[:, :, 10] = np.array([0.0, 0.1, 0.9])[:, None]
    found = region(lambda t, v: 2.0)
    found.violated[SERVERS[1]] = Surface(TEXT, VIDEO, more)
    assert (found.on_time[:, 9] == UNDECIDED).all() and (found.on_time[:, :9] == BETTER).all()
    assert (found.points[1:, 10] == UNDECIDED).all()
    assert found.share().estimate == pytest.approx(100 * (MIXES - 21) / MIXES)


def test_unanswered_text_is_worse_and_has_no_ratio():
    found = region(lambda t, v: 2.0)
    found.response[SERVERS[1]].values[1, 15:, 9:] = np.inf
    assert (found.faster[14:, 9:] == WORSE).all() and (found.faster[:14] == BETTER).all()
    assert found.unanswered() == 12
    assert found.ratio().estimate == pytest.approx(2, rel=0.01)
    # Cached results are those of the values before.
    both = Region(found.response, found.violated)
    both.response[SERVERS[0]].values[0, 20, 10] = np.inf
    assert both.faster[19, 10] == UNDECIDED


def test_a_missing_run_is_undecided():
    gains = np.ones((3, 2, 2)) + np.array([0, 0.01, 0.02])[:, None, None]
    gains[1, 0, 1] = np.nan
    assert decided(gains).tolist() == [[BETTER, UNDECIDED], [BETTER, BETTER]]


def test_the_answer_names_every_scheduler():
    found = {
        ("hdd-7200", "Cello"): region(lambda t, v: 2.0),
        ("hdd-7200", "none"): region(lambda t, v: 0.5),
        ("ssd-sata", "none"): region(lambda t, v: 1.0, spread=0.3),
    }
    said = results.answer(found).splitlines()
    assert said[0] == (
        "hdd-7200: that integration is better holds under Cello (100 % of the map); "
        "fails under none (4 % of the map)."
    )
    assert "is undecided under none" in said[1]
    table = results.summary(found)
    assert table["conclusion"].to_list() == ["holds", "fails", "undecided"]
    assert table["mixes"].to_list() == [MIXES] * 3


def test_figures_are_drawn():
    found = {
        (device, scheduler): region(lambda t, v: 2.0, lambda t, v: np.where(v > 80, 1.0, 0.0))
        for device in DEVICES[1:3]
        for scheduler in ("Cello", "none")
    }
    found["hdd-7200", "none"].response[SERVERS[1]].values[:, 15:, 9:] = np.inf
    del found["ssd-sata", "Cello"]
    for draw in (figures.maps, figures.shares):
        assert len(encode(draw(found), "png")) > 10_000


def test_schedulers_are_called_as_the_kernel_calls_them():
    names = [results.scheduler_name(level) for level in ("fcfs", "linux-bfq queues=class", "hds root_kb_s=1")]
    assert names == ["none", "BFQ", "HDS"]


@pytest.mark.parametrize("device", DEVICES)
def test_the_studies_plan_every_mix_under_every_scheduler(device):
    if not BINARY.exists():
        pytest.skip("needs target/release/weir")
    name = f"integration-{device}"
    plan = json.loads(
        subprocess.run(
            [BINARY, "plan", name, "--json"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
    )
    # Six schedulers together, one server apart, three repetitions.
    assert len(plan["runs"]) == MIXES * (6 + 1) * 3
    levels = [run["levels"] for run in plan["runs"]]
    loads = {(one["clients.text"], one["clients.video"]) for one in levels}
    assert len(loads) == MIXES and len({text for text, _ in loads}) == 21
    assert len({one["scheduler"] for one in levels if one["architecture"] == "integrated"}) == 6
    # Both servers have the same requests in a repetition.
    assert len({(run["repetition"], run["seed"]) for run in plan["runs"]}) == 3
