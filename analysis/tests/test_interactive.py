"""The report in a browser: what it requests, whether charts are drawn, keys, print, narrow and dark pages."""

import json
import math
import re
from pathlib import Path

import pytest
import synthetic
from browser import Page, browser

from weir import interactive
from weir.load import load_study
from weir.report import write_report
from weir.responses import responses
from weir.study import class_table

#: A page of a study is at most this large.
MOST_BYTES = 6_000_000
DRAWN = "document.documentElement.dataset.charts === 'drawn'"
CHART = "document.querySelector('.chart')"
LINES = "[...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('.mark-line path').length)"
PATHS = f"[...{CHART}.querySelectorAll('.mark-line path')].map(p => p.getAttribute('d'))"
#: What is drawn, to a pixel.
SHOWN = f"{PATHS}.join().replace(/-?[\\d.]+(e-?\\d+)?/g, n => Math.round(n))"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = synthetic.write_study(tmp_path_factory.mktemp("results") / "quick", duration_s=2.0)
    return write_report(folder)


def opened(page: Page, report: Path, **how) -> Page:
    page.open(report, **how)
    page.wait(DRAWN)
    assert page.problems == []
    assert [address for address in page.requests if not address.startswith("data:")] == [report.as_uri()]
    return page


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1300, 400])
def test_charts_are_drawn_offline_without_errors(page, report, width, dark):
    opened(page, report, width=width, dark=dark)
    assert page.evaluate("[...document.querySelectorAll('.chart')].map(c => c.hidden)") == [False] * 4
    # By class: a line for each of 2 levels in colours, and over time for each of their 3 repetitions.
    assert page.evaluate(LINES) == [2, 6, 2, 6]
    # The page does not scroll sideways; text is that of the page's colours.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    label = "document.querySelector('.chart .role-axis-label text')"
    quiet = {False: "rgb(91, 101, 112)", True: "rgb(154, 165, 177)"}[dark]
    assert page.evaluate(f"getComputedStyle({label}).fill") == quiet
    assert page.evaluate(f"parseFloat(getComputedStyle({label}).fontSize)") >= 11


def test_what_is_drawn_are_the_shares_of_the_study(page, report):
    """The end of each line, in pixels, against the shares: an axis or a panel mixed up would show here."""
    opened(page, report)
    study = load_study(report.parent)
    found = responses(study, class_table(study))["text"]
    chart = interactive.distributions(study, found, (0.95, 40.0))
    (x_low, x_high), y_high = chart.domain, chart.spec["layer"][0]["encoding"]["y"]["scale"]["domain"][1]
    size = page.evaluate(
        "(b => [b.width, b.height])(document.querySelector('.chart .mark-group .background').getBBox())"
    )
    paths = page.evaluate(PATHS)
    for level, path in enumerate(paths):
        drawn = points(path)
        rows = chart.rows.filter((chart.rows["p"] == 0) & (chart.rows["c"] == level))
        expected = [
            (size[0] * math.log(t / x_low) / math.log(x_high / x_low), size[1] * (1 - y / y_high))
            for t, y in rows.select("t", "share").rows()
        ]
        assert len(expected) > 10
        for x, y in expected:
            assert any(abs(x - a) <= 2 and abs(y - b) <= 2 for a, b in drawn)


def points(path: str) -> list[tuple[float, float]]:
    """The vertices of a path of absolute and relative straight lines."""
    found, x, y = [], 0.0, 0.0
    for command, text in re.findall("([MLHVlhv])([^A-Za-z]*)", re.sub("e-[0-9]+", "", path)):
        numbers = [float(number) for number in re.findall(r"-?[0-9]*\.?[0-9]+", text)]
        if command in "ML":
            x, y = numbers
        elif command in "Hh":
            x = numbers[0] + (x if command == "h" else 0)
        elif command in "Vv":
            y = numbers[0] + (y if command == "v" else 0)
        else:
            x, y = x + numbers[0], y + numbers[1]
        found.append((x, y))
    return found


def test_keys_and_buttons_zoom_and_a_cell_can_be_chosen(page, report):
    opened(page, report)
    whole = json.dumps(page.evaluate(SHOWN))
    page.evaluate("document.querySelector('.plot').focus()")
    page.key("+")
    page.wait(f"{SHOWN} !== {whole}")
    page.key("ArrowRight")
    page.key("0")
    page.wait(f"{SHOWN} === {whole}")
    page.evaluate(f"{CHART}.querySelector('button[data-act=in]').click()")
    page.wait(f"{SHOWN} !== {whole}")
    # Every control is reached by the keyboard.
    controls = f"[...{CHART}.querySelectorAll('select, button, .plot')]"
    assert page.evaluate(f"{controls}.every(e => e.tabIndex === 0)")
    before = json.dumps(page.evaluate(SHOWN))
    choose = "(s => { s.value = 1; s.dispatchEvent(new Event('change')); })"
    page.evaluate(f"{choose}({CHART}.querySelector('select'))")
    page.wait(f"{SHOWN} !== {before}")
    assert page.problems == []


def test_without_scripts_the_static_figures_are_shown(page, report):
    page.open(report, scripts=False)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert page.evaluate("[...document.querySelectorAll('.chart')].every(c => c.hidden)")
    assert page.evaluate("[...document.querySelectorAll('figure img')].every(i => i.offsetHeight > 100)")


def test_print_has_the_static_figures_only(page, report):
    opened(page, report)
    assert page.evaluate("[...document.querySelectorAll('.static')].every(d => !d.open)")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.call("Emulation.setEmulatedMedia", media="print")
    shown = "[...document.querySelectorAll('figure img')].every(i => i.offsetHeight > 100)"
    hidden = "[...document.querySelectorAll('.chart')].every(c => c.offsetHeight === 0)"
    assert page.evaluate(f"{shown} && {hidden}")
    page.call("Emulation.setEmulatedMedia", media="")


def test_a_chart_says_in_words_what_it_shows(page, report):
    opened(page, report)
    texts = page.evaluate("[...document.querySelectorAll('.plot')].map(p => p.getAttribute('aria-label'))")
    assert all(re.search(r"\d ms|\(ms\)[^.]*\d", text) for text in texts)
    assert "Keys: plus and minus zoom" in texts[0]


def test_the_page_is_small_enough(report):
    assert report.stat().st_size < MOST_BYTES


def test_a_large_study_is_capped_and_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("weir.responses.MOST_CELLS", 2)
    monkeypatch.setattr("weir.responses.MOST_RUNS", 2)
    study = load_study(synthetic.write_study(tmp_path / "many", duration_s=1.0))
    found = responses(study, class_table(study))["text"]
    for chart in (interactive.distributions(study, found, None), interactive.over_time(study, found, None)):
        assert "n = 1 of 3 repetitions; 2 of 8 cells: those with the longest responses" in chart.note
        assert chart.rows.group_by("p", "c").len().height == 2
        assert chart.rows.group_by("p", "c", "t").len()["len"].max() == 1


def test_a_request_and_an_error_would_be_seen(page, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<script>console.error('broken'); fetch('http://127.0.0.1:9/x').catch(() => 0)</script>")
    page.open(bad)
    page.wait("true")
    assert any("broken" in problem for problem in page.problems)
    assert "http://127.0.0.1:9/x" in page.requests


def test_nothing_in_a_page_can_end_a_script(study_folder):
    for path in (study_folder / "plan.json", *study_folder.glob("*/run.json")):
        path.write_text(path.read_text().replace('"partitioned"', '"</script><b>"'))
    page = write_report(study_folder).read_text()
    assert "</script><b>" not in page
    assert page.count("<script") == page.count("</script>") == 5


def test_a_study_without_charts_has_no_script(single_folder):
    for run in load_study(single_folder).runs:
        synthetic.set_validity(run.path, "invalid", "R-LATE", "sent 9 ms late")
    assert "<script" not in write_report(single_folder).read_text()
