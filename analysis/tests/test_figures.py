"""Figures: what is drawn is what was measured, and nothing is claimed that was not."""

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import synthetic

from weir import plots
from weir.load import load_study
from weir.plots import distributions, study_figures
from weir.plots.axes import TOO_FEW
from weir.plots.facets import interval_caption, level_texts
from weir.plots.layout import place, reference_level
from weir.report_figures import exhibits
from weir.statistics import summarise
from weir.study import class_table, device_table, per_run


def text_of(figure):
    return " ".join(found.get_text() for found in figure.findobj(lambda artist: hasattr(artist, "get_text")))


def ends_of_bars(figure, across=False):
    """The ends of the bars of intervals: lines without marker along one axis that have two ends."""
    found = []
    for line in (line for axis in figure.axes for line in axis.lines if line.get_marker() == "None"):
        along, other = (
            (line.get_xdata(), line.get_ydata()) if across else (line.get_ydata(), line.get_xdata())
        )
        if (
            len(along) == 2
            and other[0] == other[1]
            and line.get_linestyle() == "-"
            and np.isfinite(along).all()
        ):
            found.append(tuple(along))
    return found


def marks_of(figure, across=False):
    """The estimates that are drawn as markers."""
    lines = [line for axis in figure.axes for line in axis.lines if line.get_marker() in ("o", "s")]
    return [v for line in lines for v in (line.get_xdata() if across else line.get_ydata())]


def bars(figure):
    return len(ends_of_bars(figure))


def test_every_exhibit_of_a_study_is_drawn_with_its_repetitions(study_folder):
    study = load_study(study_folder)
    found = {e.name: e.figure for e in exhibits(study, class_table(study))}
    assert list(found) == [
        "text-response", "text-throughput", "text-tail", "text-time", "video-response", "video-deadlines",
        "video-throughput", "video-tail", "video-time", "split", "ratio-scheduler", "ratio-architecture",
    ]  # fmt: skip
    for name, figure in found.items():
        assert "n = " in text_of(figure), name
    assert "(ms)" in text_of(found["text-response"])


def test_the_mark_is_the_geometric_mean_of_the_runs(study_folder):
    study = load_study(study_folder)
    rows = class_table(study).filter(pl.col("class") == "text")
    figure = study_figures.intervals(study, rows, "response_p95_ms", limit=40)
    cell = (
        (pl.col("scheduler") == "none") & (pl.col("architecture") == "partitioned") & (pl.col("load") == 0.5)
    )
    expected = math.exp(rows.filter(cell)["response_p95_ms"].log().mean())
    marks = [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert marks[0] == pytest.approx(expected)
    # 2 x 2 cells in each of the two panels, each with a bar, or a dash where two seconds are too short.
    dashes = sum(text.get_text() == TOO_FEW for axis in figure.axes for text in axis.texts)
    assert bars(figure) + dashes == 8 and bars(figure) >= 6
    assert bars(study_figures.intervals(study, rows, "response_mean_ms")) == 8


def test_one_repetition_draws_no_bar_and_says_so(single_folder):
    study = load_study(single_folder)
    table = class_table(study)
    figure = study_figures.intervals(study, table.filter(pl.col("class") == "text"), "response_mean_ms")
    assert bars(figure) == 0
    assert "n = 1 repetition: no interval" in text_of(figure)
    assert "n = 1 pair: no interval" in text_of(
        study_figures.ratios(study, table, "response_mean_ms", "scheduler")
    )


def test_an_invalid_run_is_never_drawn(study_folder):
    study = load_study(study_folder)
    rows = class_table(study).filter(pl.col("class") == "text")
    synthetic.set_validity(study.runs[0].path, "invalid", "R-LOSS", "3 requests were lost")
    fewer = load_study(study_folder)
    fewer_rows = class_table(fewer).filter(pl.col("class") == "text")
    points = [
        sum(len(c.get_offsets()) for axis in f.axes for c in axis.collections if len(c.get_offsets()) > 1)
        for f in (
            study_figures.intervals(study, rows, "response_mean_ms"),
            study_figures.intervals(fewer, fewer_rows, "response_mean_ms"),
        )
    ]
    assert points == [24, 23]
    assert "n = 2 to 3" in text_of(study_figures.intervals(fewer, fewer_rows, "response_mean_ms"))
    assert "23 runs" in text_of(study_figures.tail(fewer, "text"))


def test_an_unbounded_estimate_is_marked_not_dropped(study_folder):
    study = load_study(study_folder)
    rows = class_table(study).filter(pl.col("class") == "text")
    first = pl.col("run") == study.runs[0].id
    rows = rows.with_columns(
        response_p95_ms=pl.when(first).then(math.inf).otherwise(pl.col("response_p95_ms"))
    )
    assert "unbounded" in text_of(study_figures.intervals(study, rows, "response_p95_ms"))


def test_equal_repetitions_have_no_bar_and_the_caption_says_why():
    rows = [("a", r, 0.0) for r in range(3)] + [("b", r, float(r)) for r in range(3)]
    table = pl.DataFrame(rows, schema=["scheduler", "repetition", "x"], orient="row")
    assert "none where all are equal" in interval_caption(summarise(table, "x", ["scheduler"]), "bars")


def test_ratios_are_against_the_baseline(study_folder):
    study = load_study(study_folder)
    figure = study_figures.ratios(study, class_table(study), "response_p50_ms", "scheduler")
    assert "mq-deadline relative to none" in text_of(figure)
    # The fixture's mq-deadline serves in 0.7 of the time, and waits are shorter still.
    marks = marks_of(figure, across=True)
    assert len(marks) == 8
    assert max(marks) < 0.9


def test_exceedance_by_hand():
    t, above = distributions.exceedance(np.array([1.0, 2.0, 3.0, math.inf]))
    # The share above the largest finite response is the request that never completed.
    assert dict(zip(t, above, strict=True))[3.0] == 0.25
    assert all(np.diff(t) >= 0)
    assert all(np.diff(above) <= 0)


def test_nothing_to_draw_is_an_error(study_folder):
    study = load_study(study_folder)
    table = class_table(study)
    with pytest.raises(ValueError, match="no run has a value"):
        study_figures.intervals(study, table.clear(), "response_mean_ms")
    with pytest.raises(ValueError, match="no measured request"):
        study_figures.tail(study, "audio")
    with pytest.raises(ValueError, match="no pair"):
        study_figures.ratios(study, table, "response_mean_ms", "scheduler", "kyber")
    with pytest.raises(ValueError, match="no run has a value of queueing_mean_ms"):
        study_figures.split(study, per_run(device_table(study).clear(), study))


def test_more_factors_than_places_are_joined_not_mixed(study_folder):
    study = load_study(study_folder)
    table = class_table(study)
    extra = {f"factor{i}": [1, 2] for i in range(3)}
    table = table.with_columns(**{name: pl.lit(1) for name in extra})
    many = type(study)(
        **{**{f: getattr(study, f) for f in study.__dataclass_fields__}, "factors": study.factors | extra}
    )
    joined, layout = place(many, table)
    assert layout.row == "other factors"
    assert joined["other factors"].unique().to_list() == ["1, 1, 1"]
    assert layout.x in ("scheduler", "architecture")


def test_settings_that_all_levels_have_are_not_shown():
    levels = ["hds below=fcfs burst_ms=9", "hds below=c-look burst_ms=9", "cello burst_ms=9"]
    assert level_texts(levels) == ["hds below=fcfs", "hds below=c-look", "cello"]
    assert level_texts(levels[:1]) == levels[:1] and level_texts([1, 2.0, None]) == ["1", "2", "None"]
    assert level_texts(["fcfs a=1", "fcfs a=1 b=2"]) == ["fcfs", "fcfs b=2"]


def test_long_names_take_no_room_from_what_is_drawn(study_folder):
    study = load_study(study_folder)
    names = {level: f"{level} setting={'x' * 60}{level}" for level in study.factors["scheduler"]}
    table = class_table(study).with_columns(pl.col("scheduler").replace(names))
    study.factors["scheduler"] = list(names.values())
    renamed = (run.levels | {"scheduler": names[run.levels["scheduler"]]} for run in study.runs)
    runs = tuple(replace(run, levels=levels) for run, levels in zip(study.runs, renamed, strict=True))
    study = replace(study, runs=runs)
    rows = table.filter(pl.col("class") == "text")
    for figure in (
        study_figures.intervals(study, rows, "response_p95_ms"),
        study_figures.ratios(study, table, "response_p95_ms", "architecture"),
    ):
        # A layout that cannot be, since nothing is left for the panels, is warned of.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plots.encode(figure, "png")
        panels = [axis.get_window_extent() for axis in figure.axes]
        assert all(panel.width > 40 and panel.height > 40 for panel in panels)
        for legend in figure.legends:
            assert not any(legend.get_window_extent().overlaps(panel) for panel in panels)


def test_the_reference_is_a_level_that_was_run(study_folder):
    study = load_study(study_folder)
    assert reference_level(study, "scheduler", ("raw", "mq-deadline")) == "mq-deadline"
    assert reference_level(study, "scheduler", ("raw",)) == "none"
    with pytest.raises(ValueError, match="filesystem"):
        reference_level(study, "filesystem", ("raw",))


def test_the_reference_has_others_on_its_testbed():
    runs = [("device", "ext4"), ("device", "xfs"), ("simulator", "raw")]
    study = SimpleNamespace(
        name="both",
        factors={"filesystem": ["ext4", "xfs", "raw"]},
        valid_runs=[SimpleNamespace(testbed=bed, levels={"filesystem": level}) for bed, level in runs],
    )
    assert reference_level(study, "filesystem", ("raw", "ext4")) == "ext4"
    study.valid_runs = study.valid_runs[-1:]
    assert reference_level(study, "filesystem", ("raw", "ext4")) == "raw"


def test_figures_are_saved_in_three_formats_and_are_the_same_each_time(study_folder, tmp_path):
    study = load_study(study_folder)
    table = per_run(device_table(study), study)
    paths = plots.save(study_figures.split(study, table), tmp_path / "figures", "split")
    assert [path.suffix for path in paths] == [".pdf", ".png", ".svg"]
    first = [path.read_bytes() for path in paths]
    plots.save(study_figures.split(study, table), tmp_path / "figures", "split")
    assert [path.read_bytes() for path in paths] == first
