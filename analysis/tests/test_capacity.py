"""The search for a capacity: bisection against known thresholds, what is refused, verdicts and figure."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from weir import capacity, capacity_report
from weir.capacity import Capacities, Cell, Search, bracket, check, derived, next_number
from weir.errors import InputError

STUDY = {
    "name": "trial",
    "classes": {
        "text": {"workload": "poisson-text", "clients": 4, "objective": {"deadline_miss_share": 0.01}},
        "video": {"workload": "mpeg-vbr", "clients": 2},
    },
    "factors": {"scheduler": ["fcfs", "scan"], "load": [0.5, 1.0]},
    "comparison": {"factor": "load"},
}


@given(
    st.lists(st.integers(0, 3000), min_size=1, max_size=6),
    st.integers(1, 200),
    st.sampled_from([0.001, 0.02, 0.3]),
)
def test_every_repetitions_threshold_is_bracketed(thresholds, least, resolution):
    search = Search("text", least=least, most=2000, resolution=resolution)
    verdicts, tried = {}, []
    while (clients := next_number(verdicts, search)) is not None:
        tried.append(clients)
        for repetition, threshold in enumerate(thresholds):
            verdicts.setdefault(repetition, {})[clients] = clients <= threshold
    assert len(set(tried)) == len(tried) and all(1 <= clients <= search.most for clients in tried)
    for repetition, threshold in enumerate(thresholds):
        low, high = bracket(verdicts[repetition])
        if high is None:
            assert low == search.most <= threshold
            continue
        assert low <= threshold < high
        assert high - low <= max(1, resolution * low)
    # Doubling and bisection: logarithms of the range and of the resolution, for each repetition.
    assert len(tried) <= 2 * math.log2(2000) + len(thresholds) * (2 + math.log2(2000 / (resolution * 2)))


def test_a_number_beyond_a_failure_does_not_count():
    assert bracket({10: True, 20: False, 40: True}) == (10, 20)
    assert bracket({10: False}) == (0, 10)
    assert bracket({10: True, 20: True}) == (20, None)


def test_the_derived_study_has_the_numbers_in_place_of_loads():
    search = Search("text", others={"video": (0, 9)})
    levels = capacity._levels(STUDY, search, {8, 5})
    study = STUDY | {"precision": {"effect": 0.1, "at_most": 40}, "duplicate": True}
    made = derived(study, search, "trial-capacity-text", levels)
    assert made["factors"] == {
        "scheduler": ["fcfs", "scan"],
        "clients": [
            {"text": 5, "video": 0},
            {"text": 8, "video": 0},
            {"text": 5, "video": 9},
            {"text": 8, "video": 9},
        ],
    }
    assert not {"comparison", "precision"} & made.keys() and "comparison" in STUDY
    assert made["duplicate"] is False


@pytest.mark.parametrize(
    ("search", "problem"),
    [
        (Search("audio"), "there is no class `audio`; classes: text, video"),
        (Search("text", others={"audio": (1,)}), "there is no class `audio`"),
        (Search("text", others={"text": (1,)}), "class `text` is the one that is searched"),
        (Search("text", limits={("audio", "response_mean_ms"): 1.0}), "there is no class `audio`"),
        (Search("text", least=0), "--least is at least 1"),
        (Search("text", least=20, most=10), "--least is at least 1"),
        (Search("text", resolution=0), "--resolution is above 0"),
    ],
)
def test_a_search_that_cannot_be_is_refused(search, problem):
    with pytest.raises(InputError) as refused:
        check(STUDY, search)
    assert problem in str(refused.value)


def test_a_study_without_objectives_needs_a_limit():
    classes = {"text": {"workload": "poisson-text", "clients": 4}}
    with pytest.raises(InputError, match="no class has an objective"):
        check(STUDY | {"classes": classes}, Search("text"))
    check(STUDY | {"classes": classes}, Search("text", limits={("text", "response_mean_ms"): 100.0}))


@pytest.mark.parametrize("text", ["video", "video=", "video=a", "=3", "video=-1"])
def test_wrong_numbers_of_other_clients_are_refused(text):
    with pytest.raises(InputError, match="is not CLASS=N,N"):
        capacity_report.parse_others([text])


@pytest.mark.parametrize("text", ["text", "text=3", "text.response_mean_ms", "text.response_mean_ms=a"])
def test_wrong_limits_are_refused(text):
    with pytest.raises(InputError, match=r"is not CLASS\.METRIC=VALUE"):
        capacity_report.parse_limits([text])
    assert capacity_report.parse_limits(["text.response_mean_ms=2.5"]) == {("text", "response_mean_ms"): 2.5}


def found_of(capacities, others=None):
    """Capacities of `{scheduler: [capacity of each repetition]}`, each 10 clients below a failure."""
    search = Search("text", others={"video": (0, 9)} if others else {})
    verdicts = {}
    for scheduler, values in capacities.items():
        for video in search.others.get("video", (None,)):
            cell = Cell((("scheduler", scheduler),), () if video is None else (("video", video),))
            verdicts[cell] = {
                i: {value: True, value + 10: False}
                for i, value in enumerate(v - (video or 0) for v in values)
            }
    return Capacities(None, search, capacity._table(search, verdicts))


def test_estimates_are_geometric_means_with_their_intervals():
    (row,) = found_of({"scan": [90, 100, 110]}).estimates().to_dicts()
    assert row["estimate"] == pytest.approx((90 * 100 * 110) ** (1 / 3))
    assert row["low"] < row["estimate"] < row["high"] and row["method"] == "log-t" and not row["is_most"]


@pytest.mark.parametrize(
    ("scan", "verdict"),
    [
        ([190, 200, 215], "more"),
        ([60, 130, 90], "undecided"),
        # Equal in all repetitions: there is no interval, and the numbers that failed decide.
        ([110, 110, 110], "more"),
        ([105, 105, 105], "undecided"),
        ([90, 90, 90], "fewer"),
    ],
)
def test_a_level_bears_more_fewer_or_it_is_undecided(scan, verdict):
    fcfs = [95, 100, 110] if len(set(scan)) > 1 else [100, 100, 100]
    found = found_of({"fcfs": fcfs, "scan": scan})
    assert found.comparisons("scheduler", "fcfs")["verdict"].to_list() == [verdict]
    table = capacity_report.shown_comparisons(found, "scheduler", "fcfs")
    assert table["bears"].to_list() == [verdict]


def test_a_curve_needs_two_numbers_of_other_clients():
    assert capacity_report.figure(found_of({"fcfs": [9, 9], "scan": [5, 6]}), "scheduler") is None
    found = found_of({"fcfs": [90, 95], "scan": [50, 60]}, others=True)
    figure = capacity_report.figure(found, "scheduler")
    assert isinstance(figure, Figure)
    (axis,) = figure.axes
    drawn = [list(line.get_xdata()) for line, *_ in axis.containers]
    assert drawn == [[0, 9], [0, 9]]


def test_a_capacity_that_is_the_largest_number_is_a_lower_bound():
    search = Search("text", most=64)
    cell = Cell((("scheduler", "scan"),), ())
    table = capacity._table(search, {cell: {i: {32: True, 64: True} for i in range(3)}})
    assert table["failed"].dtype == pl.Int64
    shown = capacity_report.shown(Capacities(None, search, table))
    assert shown["text clients"].to_list() == ["at least 64.0"]
