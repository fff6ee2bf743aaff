"""The best level of a factor: the level that was made the fastest, settled no oftener than it may be."""

import math

import numpy as np
import polars as pl
import pytest
import synthetic

import weir
from weir.best import best
from weir.errors import InputError
from weir.load import load_study
from weir.study import class_table

P99 = "response_p99_ms"
SPEEDS = {"ext4": 1.0, "xfs": 0.7, "btrfs": 1.2, "tmpfs": 0.71}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name, speed in SPEEDS.items():
            patch.setitem(synthetic.SPEED, name, speed)
        folder = tmp_path_factory.mktemp("best") / "mine"
        levels = {"schedulers": tuple(SPEEDS), "factor": "filesystem", "loads": (0.5,)}
        return load_study(synthetic.write_study(folder, **levels, repetitions=5, duration_s=2.0))


def with_times(study, means, spread, seed=1, table=None):
    """The table with lognormal response times around the levels' means, with an effect of the block."""
    table = class_table(study) if table is None else table
    rng = np.random.default_rng(seed)
    scale = (
        table["filesystem"]
        .replace_strict({k: float(v) for k, v in means.items()}, return_dtype=pl.Float64)
        .to_numpy()
    )
    common = np.exp(rng.normal(0, 1, 5))[table["block"].to_numpy()]
    values = pl.Series(scale * common * rng.lognormal(0, spread, table.height))
    # Summaries: how many responses are independent is not known, as if there were enough.
    beyond = pl.lit(None, pl.Float64).alias("response_p99_beyond")
    return table.with_columns(beyond, values.alias(P99))


def test_the_fastest_level_is_found_and_settled_against_the_slower_ones_only(study):
    table = with_times(study, {"ext4": 20, "xfs": 10, "btrfs": 40, "tmpfs": 10.2}, 0.1)
    found = best(study, table, "video", P99, "filesystem")
    assert found.level in ("xfs", "tmpfs") and not found.settled
    near = {"xfs": "tmpfs", "tmpfs": "xfs"}[found.level]
    assert [one.level for one in found.others] == [near, "ext4", "btrfs"]
    assert found.sentence() == (
        f"video, 99th percentile of response time: shortest at filesystem {found.level}, of 4 levels; "
        f"settled against ext4, btrfs; not settled against {near}."
    )
    first, second, *rest = found.sentences()
    assert first == found.sentence() and len(rest) == 2
    assert f"{near} takes" in second and "not settled: about" in second
    assert found.others[1].low < 2 < found.others[1].high and found.others[1].baseline == found.level


def test_a_level_that_is_faster_than_all_is_settled(study):
    table = with_times(study, {"ext4": 20, "xfs": 10, "btrfs": 40, "tmpfs": 30}, 0.1)
    found = best(study, table, "video", P99, "filesystem")
    assert found.settled and found.level == "xfs"
    assert found.sentence().endswith("shortest at filesystem xfs, of 4 levels; settled against all others.")


def test_equal_levels_are_settled_in_at_most_6_of_100_studies(study):
    """The level is chosen by the results."""
    means, table = dict.fromkeys(SPEEDS, 10), class_table(study)
    wrong = 0
    for seed in range(150):
        found = best(study, with_times(study, means, 0.3, seed, table), "video", P99, "filesystem")
        wrong += any(one.low is not None and one.low > 1 for one in found.others)
    assert wrong <= 150 * 0.06 + 2 * math.sqrt(150 * 0.06)


def test_an_unbounded_level_is_never_the_best(study):
    table = with_times(study, {"ext4": 20, "xfs": 10, "btrfs": 40, "tmpfs": 30}, 0.1)
    rows = pl.when(pl.col("filesystem") == "xfs").then(math.inf).otherwise(P99)
    found = best(study, table.with_columns(rows.alias(P99)), "video", P99, "filesystem")
    assert found.level == "ext4" and found.others[-1].level == "xfs" and not found.settled
    assert "; unbounded at xfs." in found.sentence()
    assert "not settled against" not in found.sentence()


def test_few_independent_responses_are_not_settled(study):
    table = with_times(study, {"ext4": 20, "xfs": 10, "btrfs": 40, "tmpfs": 30}, 0.1)
    few = table.with_columns(pl.lit(1.0).alias("response_p99_beyond"))
    found = best(study, few, "video", P99, "filesystem")
    assert found.level == "xfs" and not found.settled
    assert "too few independent responses" in found.sentences()[1]


def test_a_study_names_its_best_level(study):
    mine = weir.Study("mine", study.path.parent)
    first, *others = mine.best("text", "response_mean_ms", "filesystem")
    assert first.startswith("text, mean response time: shortest at filesystem xfs, of 4 levels; ")
    assert len(others) == 3
    assert mine.best()[0].startswith("text, 95th percentile of response time: shortest at filesystem ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("audio",), "classes: text, video"),
        (("text", "requests_per_s"), "is no metric of response time"),
        (("text", P99, "load"), "varied factors: filesystem, architecture"),
    ],
)
def test_what_cannot_be_compared_is_named(study, arguments, said):
    with pytest.raises(InputError, match=said):
        weir.Study("mine", study.path.parent).best(*arguments)
