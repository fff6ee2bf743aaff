"""Decisions of studies with `precision`: by a thousand simulated studies, and in a study's folder."""

import json
import math
from dataclasses import replace
from itertools import count

import numpy as np
import polars as pl
import pytest
import synthetic
from test_sequential import fixed

from weir.answers import answers
from weir.cli import main
from weir.errors import InputError
from weir.load import Validity, load_study
from weir.precision import AT_MOST, GO_ON, IMPOSSIBLE, REACHED, decide
from weir.report import render
from weir.study import class_table

STUDIES = 1000
DEVIATION = 0.2
EFFECT = {"effect": 0.1, "confidence": 0.95, "at_most": 90, "class": "text"}


def add_precision(folder, precision, first=3):
    plan = json.loads((folder / "plan.json").read_text())
    plan |= {"precision": precision, "first_repetitions": first}
    (folder / "plan.json").write_text(json.dumps(plan))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study of two cells and six repetitions, all made."""
    path = tmp_path_factory.mktemp("precision") / "s"
    synthetic.write_study(path, architectures=("integrated",), loads=(0.5,), repetitions=6, duration_s=1)
    return add_precision(path, {"effect": 0.1, "confidence": 0.95, "at_most": 6})


@pytest.fixture(scope="module")
def long(folder):
    """The same study with many repetitions, and its table without values."""
    study = load_study(folder)
    template, runs = study.runs[:2], []
    for block in range(EFFECT["at_most"]):
        runs += [replace(run, id=f"{run.cell}-{block}", block=block) for run in template]
    study = replace(study, runs=tuple(runs), repetitions=EFFECT["at_most"], precision=EFFECT, missing={})
    table = class_table(load_study(folder)).filter(pl.col("class") == "text")
    rows = [table.filter(pl.col("block") == 0).with_columns(block=block) for block in range(len(runs) // 2)]
    return study, pl.concat(rows, how="vertical_relaxed")


def with_ratio(table, ratio, rng, deviation=DEVIATION):
    """Lognormal responses of `none` and of `mq-deadline`, whose median is `ratio` times as long."""
    values = rng.lognormal(2, deviation / math.sqrt(2), table.height)
    second = (table["scheduler"].cast(pl.String) == "mq-deadline").to_numpy()
    return table.with_columns(response_p95_ms=pl.Series(np.where(second, values * ratio, values)))


def stopped(long, ratio, seed):
    """Of simulated studies: repetitions, whether the interval covers the ratio, whether it excludes 1."""
    study, table = long
    rng = np.random.default_rng(seed)
    found = [decide(study, with_ratio(table, ratio, rng)) for _ in range(STUDIES)]
    ends = np.array([(one.intervals[0].low, one.intervals[0].high) for one in found])
    covered = (ends[:, 0] <= ratio) & (ratio <= ends[:, 1])
    return [one.after for one in found], covered, (ends[:, 0] > 1) | (ends[:, 1] < 1)


def test_a_thousand_studies_without_and_with_the_change_that_matters(long):
    n_null, covered_null, false = stopped(long, 1.0, seed=1)
    n_change, covered, found = stopped(long, 1.1, seed=2)
    same_power = fixed(DEVIATION, found.mean())
    print(
        f"{STUDIES} studies without a change: false positives {false.mean():.3f}, coverage "
        f"{covered_null.mean():.3f}, mean repetitions {np.mean(n_null):.1f}\n"
        f"{STUDIES} studies with a change of 10 %: power {found.mean():.3f}, coverage {covered.mean():.3f}, "
        f"mean repetitions {np.mean(n_change):.1f}\n"
        f"fixed design of the same power: {same_power} repetitions; runs saved: without a change "
        f"{1 - np.mean(n_null) / same_power:.0%}, with it {1 - np.mean(n_change) / same_power:.0%}"
    )
    assert false.mean() <= 0.05
    assert min(covered_null.mean(), covered.mean()) >= 0.94
    assert found.mean() >= 0.95
    assert np.mean(n_change) <= 0.6 * same_power
    assert np.mean(n_null) <= 0.9 * same_power


def test_a_decision_rests_on_the_repetitions_before_it(long):
    """Later runs change no decision: an interrupted study stops where an uninterrupted one does."""
    study, table = long
    table = with_ratio(table, 1.1, np.random.default_rng(3))
    final = decide(study, table)
    assert final.status == REACHED
    assert final.after < EFFECT["at_most"]
    for made in count(0):
        part = replace(study, runs=tuple(run for run in study.runs if run.block < made))
        part = replace(part, missing={run.id: run.levels for run in study.runs if run.block >= made})
        found = decide(part, table.filter(pl.col("block") < made))
        assert found == final or found.status == GO_ON
        if found == final:
            assert made == final.after
            break
        assert found.repetitions == max(made + 1, 3) or made >= 20


def test_a_study_that_reaches_no_precision_stops_at_the_most(long):
    study, table = long
    found = decide(study, with_ratio(table, 1.05, np.random.default_rng(4), deviation=2))
    assert (found.status, found.after, found.repetitions) == (AT_MOST, 90, 90)
    assert found.lines()[-1] == "precision not reached with 90 repetitions, the most that the study allows"


def test_an_overloaded_level_is_no_reason_to_go_on(long):
    study, table = long
    second = pl.col("scheduler").cast(pl.String) == "mq-deadline"
    table = table.with_columns(response_p95_ms=pl.when(second).then(math.inf).otherwise(5.0))
    found = decide(study, table)
    assert (found.status, found.repetitions) == (IMPOSSIBLE, 3)
    assert "unbounded" in found.lines()[0]


def test_repetitions_without_a_valid_run_do_not_count(long):
    study, table = long
    table = with_ratio(table, 3, np.random.default_rng(5), deviation=0.01)
    whole = decide(study, table).intervals[0]
    assert whole.n == 3
    found = decide(study, table.filter(pl.col("block") != 1))
    assert found.intervals[0].n == found.after - 1
    nothing = decide(study, table.filter(pl.col("block") < 1))
    assert nothing.status == IMPOSSIBLE
    assert nothing.lines()[0].endswith("fewer than two valid repetitions")


@pytest.mark.parametrize("level", ["none", "mq-deadline"])
def test_the_mean_of_a_cell_is_as_narrow_as_asked(long, level):
    study, table = long
    cell = {"width": 0.1, "confidence": 0.9, "at_most": 90, "cell": {"scheduler": level, "load": 0.5}}
    found = decide(replace(study, precision=cell), with_ratio(table, 2, np.random.default_rng(6)))
    (one,) = found.intervals
    assert found.status == REACHED
    assert math.sqrt(one.high / one.low) <= 1.1
    assert level in one.name
    assert one.low < math.exp(2) * (2 if level == "mq-deadline" else 1) < one.high
    text = found.lines()[0]
    assert "90 % repeated CI" in text
    assert text.endswith("precise enough")


EACH_CELL = {"width": 0.05, "confidence": 0.95, "at_most": 90, "cell": {}, "stop": "each", "class": "text"}


def with_deviations(table, rng, steady=0.02, unsteady=0.1):
    """Lognormal responses with median 1: those of `mq-deadline` differ more between repetitions."""
    second = (table["scheduler"].cast(pl.String) == "mq-deadline").to_numpy()
    values = np.exp(rng.normal(0, np.where(second, unsteady, steady)))
    return table.with_columns(response_p95_ms=pl.Series(values))


def only(study, table, stopped, blocks):
    """The study with its first blocks, without what is beyond the repetitions of stopped cells."""
    made = [run for run in study.runs if run.block < min(blocks, stopped.get(run.cell, blocks))]
    rest = {run.id: run.levels for run in study.runs if run not in made}
    return replace(study, runs=tuple(made), missing=rest), table.filter(
        pl.col("run").is_in([run.id for run in made])
    )


@pytest.fixture(scope="module")
def with_ids(long):
    """The long study, with the ids of its runs in the table."""
    study, table = long
    by_place = {(run.block, run.levels["scheduler"]): run.id for run in study.runs}
    places = zip(table["block"].to_list(), table["scheduler"].cast(pl.String).to_list(), strict=True)
    return replace(study, precision=EACH_CELL), table.with_columns(
        run=pl.Series([by_place[place] for place in places])
    )


def test_each_cell_stops_by_itself_and_its_interval_stays(with_ids):
    study, whole = with_ids
    table = with_deviations(whole, np.random.default_rng(11))
    final = decide(study, table)
    assert final.status == REACHED
    ((cell, first),) = final.stopped.items()
    assert cell == next(run.cell for run in study.runs if run.levels["scheduler"] == "none")
    assert first < final.after
    n = {"mq-deadline" in one.name: one.n for one in final.intervals}
    assert n == {False: first, True: final.after}
    # Neither the later runs of the stopped cell nor their absence change anything.
    assert decide(*only(study, table, final.stopped, EFFECT["at_most"])) == final
    stopped = {}
    for made in range(1, final.after + 1):
        found = decide(*only(study, table, stopped, made))
        if made < final.after:
            assert (found.status, found.repetitions) == (GO_ON, max(made + 1, 3))
            assert ("by 1 of 2 means" in found.lines()[-1]) == (first <= made)
        stopped = found.stopped
    assert found == final


def test_each_interval_of_cells_that_stop_by_themselves_covers_its_mean(with_ids):
    study, whole = with_ids
    rng = np.random.default_rng(12)
    found = [decide(study, with_deviations(whole, rng)) for _ in range(STUDIES)]
    covered = np.mean([[one.low <= 1 <= one.high for one in each.intervals] for each in found], axis=0)
    repetitions = [[one.n for one in each.intervals] for each in found]
    print(f"{STUDIES} studies: coverage {covered}, repetitions {np.mean(repetitions, axis=0)}")
    assert covered.min() >= 0.94


def test_cells_without_an_interval_to_come_stop_too(with_ids):
    study, whole = with_ids
    table = with_deviations(whole, np.random.default_rng(13), steady=1)
    second = pl.col("scheduler").cast(pl.String) == "mq-deadline"
    overloaded = table.with_columns(
        response_p95_ms=pl.when(second).then(math.inf).otherwise("response_p95_ms")
    )
    of_second = next(run.cell for run in study.runs if run.levels["scheduler"] == "mq-deadline")
    assert decide(study, overloaded).stopped == {of_second: 3}
    # Skipped: the host does not have it.
    skipped = Validity("skipped", ())
    runs = [replace(run, validity=skipped) if run.cell == of_second else run for run in study.runs]
    without = decide(replace(study, runs=tuple(runs)), table.filter(~second))
    assert without.stopped == {of_second: 3}
    assert without.status == AT_MOST
    assert without.lines()[-1].startswith("precision not reached by 1 of 1 means with 90 repetitions")


def test_a_level_of_one_value_per_class_is_found(with_ids):
    study, whole = with_ids
    table = with_deviations(whole, np.random.default_rng(15)).with_columns(
        scheduler=pl.when(pl.col("scheduler").cast(pl.String) == "none")
        .then(pl.lit("text=1 video=none"))
        .otherwise(pl.lit("text=2 video=none"))
    )
    cell = {"scheduler": {"text": 2, "video": "none"}}
    (one,) = decide(replace(study, precision=EACH_CELL | {"cell": cell}), table).intervals
    assert "text=2 video=none" in one.name


def test_of_many_intervals_those_that_are_too_wide_are_listed(with_ids):
    study, whole = with_ids
    found = decide(study, with_deviations(whole, np.random.default_rng(14)))
    first, second = found.intervals
    many = replace(found, intervals=(*[first] * 12, replace(second, reached=False)))
    assert many.lines()[0] == f"12 intervals are precise enough (n = {first.n} to {first.n})"
    assert len(many.lines()) == 3 and many.lines()[1].endswith("not precise enough")
    assert len(replace(found, intervals=(first,) * 12).lines()) == 13


def test_a_study_folder_lacks_no_run_of_a_stopped_cell(folder, tmp_path):
    path = copy_of(folder, tmp_path / "s", 4)
    precision = EACH_CELL | {"at_most": 6}
    add_precision(path, precision)
    runs = json.loads((path / "plan.json").read_text())["runs"]
    cell = runs[0]["cell"]
    decision = {"precision": precision, "repetitions": 5, "stopped": {cell: 3}}
    (path / "precision.json").write_text(json.dumps(decision))
    study = load_study(path)
    assert [id for id in study.missing] == [
        run["id"] for run in runs if run["block"] == 4 and run["cell"] != cell
    ]
    assert study.complete_blocks == 4
    assert study.repetitions_text == "3 to 5"
    assert "every combination of the levels below, 3 to 5 repetitions of each" in render(study)
    for wrong, named in (([cell], "stopped"), ({cell: "3"}, cell)):
        (path / "precision.json").write_text(json.dumps(decision | {"stopped": wrong}))
        with pytest.raises(InputError, match=f"field `{named}`"):
            load_study(path)


def test_a_comparison_uses_the_repetitions_that_all_its_cells_have(tmp_path):
    """Later blocks, which have one load only, must not count for the mean over the loads."""
    path = tmp_path / "s"
    synthetic.write_study(path, architectures=("integrated",), repetitions=6, duration_s=1)
    study = load_study(path)
    light = {run.cell: 4 for run in study.runs if run.levels["load"] == 0.5}
    missing = {run.id: run for run in study.runs if run.block >= light.get(run.cell, 6)}
    rest = tuple(run for run in study.runs if run.id not in missing)
    times = pl.when(pl.col("load") == 0.5).then(1.0).otherwise(4.0)
    second = pl.col("scheduler").cast(pl.String) == "mq-deadline"
    table = class_table(study).with_columns(response_p95_ms=pl.when(second).then(times).otherwise(1.0))
    some = table.filter(~pl.col("run").is_in(list(missing)))
    found = replace(study, runs=rest, not_needed=tuple(missing), decision={"stopped": light})
    for one in answers(found, some):
        assert (one.level, one.n, one.ratio) == ("mq-deadline", 4, pytest.approx(2))
    # Without the decision the last two blocks count, with one load.
    whole = answers(replace(found, decision=None), some)
    assert whole[0].n == 6 and whole[0].ratio == pytest.approx(4 ** (4 / 6))


def test_two_classes_share_the_confidence(long, folder):
    study, _ = long
    study = replace(study, precision=EFFECT | {"class": None})
    table = class_table(load_study(folder))
    rows = [table.filter(pl.col("block") == 0).with_columns(block=block) for block in range(90)]
    table = with_ratio(pl.concat(rows, how="vertical_relaxed"), 1.5, np.random.default_rng(7))
    found = decide(study, table)
    alone = decide(replace(study, precision=EFFECT), table)
    assert len(found.intervals) == 2
    by_name = {one.name: one for one in found.intervals}
    again = by_name[alone.intervals[0].name]
    assert again.low < alone.intervals[0].low or found.after > alone.after


def test_the_answer_has_the_interval_of_the_decision(long):
    study, table = long
    for ratio, ending in ((1.1, "longer."), (1.0, "no change of 10 % or more.")):
        values = with_ratio(table, ratio, np.random.default_rng(8))
        final = decide(study, values)
        at_stop = tuple(run for run in study.runs if run.block < final.after)
        rest = {run.id: run.levels for run in study.runs if run.block >= final.after}
        stop = replace(study, runs=at_stop, not_needed=tuple(rest))
        first, *_ = answers(stop, values.filter(pl.col("block") < final.after))
        one = final.intervals[0]
        assert (first.low, first.high) == pytest.approx((one.low, one.high))
        assert first.settled == (first.p <= 0.05 and not first.caution)
        assert "95 % repeated CI" in first.sentence()
        verdict = "not settled, although the interval says" if first.caution else "settled"
        assert first.sentence().removesuffix(first.caution).rstrip().endswith(f"; {verdict}: {ending}")


def copy_of(folder, path, blocks):
    """The study with its first repetitions only."""
    path.mkdir(parents=True)
    plan = json.loads((folder / "plan.json").read_text())
    (path / "plan.json").write_text(json.dumps(plan))
    for run in plan["runs"]:
        if run["block"] < blocks:
            (path / run["id"]).symlink_to(folder / run["id"])
    return path


def test_the_command_decides_and_the_folder_keeps_it(folder, tmp_path, capsys):
    path = copy_of(folder, tmp_path / "s", 2)
    study = load_study(path)
    assert (len(study.runs), len(study.missing), len(study.not_needed)) == (4, 2, 6)
    assert main(["precision", str(path)]) == 4
    assert "next decision after 3 of at most 6" in capsys.readouterr().out
    assert not (path / "precision.json").exists()
    for run in json.loads((path / "plan.json").read_text())["runs"]:
        if run["block"] == 2:
            (path / run["id"]).symlink_to(folder / run["id"])
    code = main(["precision", "s", "--results", str(tmp_path), "--decide", "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads((path / "precision.json").read_text())
    assert code == (4 if said["status"] == GO_ON else 0)
    assert said["after"] == 3
    study = load_study(path)
    assert len(study.missing) == 2 * (said["repetitions"] - 3)
    assert study.asked_repetitions == said["repetitions"]
    assert study.planned == 12


def test_summary_and_page_say_the_decision(folder, capsys):
    main(["precision", str(folder)])
    lines = capsys.readouterr().out.splitlines()
    assert main(["summary", str(folder)]) == 0
    summary = capsys.readouterr().out
    page = render(load_study(folder))
    for line in lines:
        assert line in summary
        assert line in page


def test_a_decision_about_another_precision_is_not_followed(folder, tmp_path):
    path = copy_of(folder, tmp_path / "s", 3)
    decision = {"precision": {"effect": 0.2, "confidence": 0.95, "at_most": 6}, "repetitions": 6}
    (path / "precision.json").write_text(json.dumps(decision))
    study = load_study(path)
    assert study.decision is None
    assert len(study.not_needed) == 6


def test_bad_input_is_refused(folder, tmp_path, capsys):
    path = copy_of(folder, tmp_path / "s", 3)
    for text, problem in (("{}", "field `repetitions` is missing"), ("{", "decide again: python -m weir")):
        (path / "precision.json").write_text(text)
        assert main(["precision", str(path), "--decide"]) in (1, 2)
        assert problem in capsys.readouterr().err
    (path / "precision.json").unlink()
    plan = json.loads((path / "plan.json").read_text())
    del plan["precision"]
    (path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(InputError, match="has no field `precision`"):
        decide(load_study(path), pl.DataFrame())
    assert main(["precision", str(path)]) == 2
    assert "has no field `precision`" in capsys.readouterr().err
