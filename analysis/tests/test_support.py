"""Tail quantiles on too few independent responses: a dash in tables and figures, a flag in frames."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import synthetic
from scipy import signal, stats
from test_figures import marks_of, text_of

import weir
from weir import present
from weir.answers import answers
from weir.cli import main
from weir.labels import DASH
from weir.load import load_study
from weir.metrics import quantile
from weir.plots import study_figures
from weir.plots.axes import TOO_FEW
from weir.report import render
from weir.steady_state import FEWEST_BEYOND, effective_beyond
from weir.study import class_table
from weir.support import FEWEST_PER_RUN, SHOWN, caution, footnote, with_support
from weir.variation import variation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return synthetic.write_study(tmp_path_factory.mktemp("support") / "quick", loads=(0.5,), duration_s=2.0)


def rows_of(study, beyond):
    """The class `text` with this many independent responses beyond its 95th percentile."""
    rows = class_table(study).filter(pl.col("class") == "text")
    none = pl.col("scheduler") == "none"
    return rows.with_columns(response_p95_beyond=pl.when(none).then(beyond).otherwise(20.0))


@pytest.mark.parametrize(
    ("beyond", "is_shown"), [(3.4, True), (3.3, False), (2.9, False), (20.0, True), (None, True)]
)
def test_a_cell_needs_ten_responses_beyond_and_three_a_run(folder, beyond, is_shown):
    study = load_study(folder)
    found = with_support(rows_of(study, beyond), "response_p95_ms", study.varied)
    assert set(found.filter(pl.col("scheduler") == "none")[SHOWN]) == {is_shown}
    assert found.filter(pl.col("scheduler") != "none")[SHOWN].all()
    assert with_support(found, "response_mean_ms", study.varied)[SHOWN].all()


def test_many_repetitions_do_not_replace_longer_runs():
    rows = pl.DataFrame({"response_p99_ms": [1.0] * 30, "response_p99_beyond": [2.0] * 30})
    assert not with_support(rows, "response_p99_ms", [])[SHOWN].any()
    assert with_support(rows[:4].with_columns(response_p99_beyond=3.0), "response_p99_ms", [])[SHOWN].all()


def test_an_unbounded_quantile_is_no_number_and_stays(folder):
    study = load_study(folder)
    rows = rows_of(study, 1.0).with_columns(response_p95_ms=pl.lit(math.inf))
    assert with_support(rows, "response_p95_ms", study.varied)[SHOWN].all()
    assert footnote(study, rows, "response_p95_ms", study.varied) is None


def test_a_table_has_a_dash_and_says_how_long_to_run(folder):
    study = load_study(folder)
    table, notes = present.captioned(study, rows_of(study, 2.0), "text", ["response_p95_ms"])
    column = dict(zip(table["scheduler"], table["95th percentile of response time (ms)"], strict=False))
    assert column["none"] == DASH
    assert "[" in column["mq-deadline"]
    (note,) = [note for note in notes if note.startswith(DASH)]
    # 10 beyond in 3 runs of 2 s that have 2 each; 3 a run asks for less.
    assert "as independent as 2.00; 6.00 in 3 runs. Wanted: 10 in all runs and 3 in each." in note
    assert note.endswith("Run at least 4 s instead of 2 s.")
    assert any(note.startswith("Geometric mean of runs, 95 % interval (log-t") for note in notes)


def test_a_figure_has_a_dash_and_no_point(folder):
    study = load_study(folder)
    all_shown, some, none = (
        study_figures.intervals(study, rows, "response_p95_ms")
        for rows in (rows_of(study, 20.0), rows_of(study, 2.0), rows_of(study, 2.0).filter(scheduler="none"))
    )
    assert len(marks_of(all_shown)) == 4 and DASH not in text_of(all_shown)
    assert len(marks_of(some)) == 2 and "Run at least 4 s instead of 2 s" in text_of(some)
    assert not marks_of(none) and [t.get_text() for t in none.axes[0].texts] == [TOO_FEW] * 2


def test_answers_say_how_many_of_their_cells_have_too_few_responses(folder):
    study = load_study(folder)
    said = "The quantile rests on too few independent responses in 2 of 4 cells."
    rows = rows_of(study, 2.0)
    assert caution(rows, "response_p95_ms", study.varied) == said
    assert caution(rows, "response_mean_ms", study.varied) == ""
    (one,) = [answer for answer in answers(study, rows, "scheduler") if answer.class_name == "text"]
    assert one.sentence().endswith(f". {said}")
    assert said in variation(study, rows, "text").notes()
    assert said in " ".join(
        text_of(study_figures.ratios(study, rows, "response_p95_ms", "scheduler")).split()
    )
    (enough,) = [a for a in answers(study, rows_of(study, 20.0), "scheduler") if a.class_name == "text"]
    assert enough.caution == "" and enough.effect() == one.effect()
    # An interval of quantiles that are no estimates settles nothing.
    clear = replace(enough, ratio=2.4, low=2.0, high=3.0)
    assert clear.settled and clear.sentence().endswith("; settled: longer.")
    doubtful = replace(clear, caution=said)
    assert not doubtful.settled
    assert doubtful.sentence().endswith(f"; not settled, although the interval says: longer. {said}")
    assert variation(study, rows_of(study, 20.0), "text").caution == ""


def test_frames_keep_the_number_and_flag_it(folder):
    study = weir.Study("quick", folder.parent)
    study.__dict__["runs"] = pl.concat([rows_of(study.loaded, 2.0)])
    frame = study.frame()
    assert (frame["response_p95_shown"] == (frame["scheduler"] != "none")).all()
    assert frame["response_p95_ms"].notna().all()
    found = study.summary("response_p95_ms")
    assert set(found.filter(SHOWN)["scheduler"]) == {"mq-deadline"} and found["estimate"].null_count() == 0


def test_page_and_summary_explain_the_dash(folder, capsys):
    page = render(load_study(folder))
    assert main(["summary", str(folder)]) == 0
    said = capsys.readouterr().out
    for text in (page, said):
        assert DASH in text and "Run at least" in text
        assert "Geometric mean of runs, 95 % interval (log-t" in text


@pytest.mark.parametrize(("lag1", "q"), [(0.8, 0.95), (0.95, 0.99), (0.99, 0.95), (0.99, 0.99)])
def test_what_is_shown_is_at_most_a_tenth_too_low(lag1, q):
    """Geometric means over runs of a quantile of autocorrelated lognormal responses, at several lengths."""
    rng = np.random.default_rng(5)
    true = float(np.exp(stats.norm.ppf(q)))
    biases = {}
    for n in (200, 800, 3200, 12_800):
        noise = rng.normal(size=(150, n + 2000)) * math.sqrt(1 - lag1**2)
        x = np.exp(signal.lfilter([1], [1, -lag1], noise, axis=1)[:, 2000:])
        beyond = float(np.mean([effective_beyond(row, q) for row in x]))
        found = math.exp(float(np.mean([math.log(quantile(row, q)) for row in x])))
        biases[n] = (beyond, found / true - 1)
    print(lag1, q, biases)
    shown = [bias for beyond, bias in biases.values() if beyond >= FEWEST_PER_RUN]
    assert all(abs(bias) <= 0.1 for bias in shown)
    # Ten independent responses in every run are a bias of some hundredths.
    assert all(abs(bias) <= 0.05 for beyond, bias in biases.values() if beyond >= FEWEST_BEYOND)


def test_a_quantile_that_is_hidden_would_have_been_far_too_low():
    rng = np.random.default_rng(6)
    noise = rng.normal(size=(100, 2200)) * math.sqrt(1 - 0.99**2)
    x = np.exp(signal.lfilter([1], [1, -0.99], noise, axis=1)[:, 2000:])
    assert np.mean([effective_beyond(row, 0.99) for row in x]) < 2
    found = math.exp(float(np.mean([math.log(quantile(row, 0.99)) for row in x])))
    assert found < 0.5 * float(np.exp(stats.norm.ppf(0.99)))
