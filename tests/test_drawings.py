"""Drawings of the documentation: diagrams show what their text says, a recording what a command printed."""

import importlib.util
import itertools
import re
import sys
import xml.etree.ElementTree as ET

import pytest
from support import ROOT

PAGE = (ROOT / "docs/ARCHITECTURE.md").read_text()


SVG = "{http://www.w3.org/2000/svg}"


def _module(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/site/{name}.py")
    module = importlib.util.module_from_spec(spec)
    # Data classes look for their module.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


diagram, cast = _module("diagram"), _module("cast")


def _flow():
    lines = re.search(r"^```\{diagram\}[^\n]*\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]
    return diagram.Diagram.parse(lines.splitlines())


@pytest.mark.parametrize("make", [_flow, lambda: diagram.crates(PAGE)], ids=["flow", "crates"])
def test_boxes_do_not_overlap_and_arrows_point_down(make):
    drawn = make()
    width, height = drawn.place()
    for box in drawn.boxes.values():
        assert box.x - box.width / 2 >= -0.01 and box.x + box.width / 2 <= width + 0.01
        assert box.y - box.height / 2 >= -0.01 and box.y + box.height / 2 <= height + 0.01
    for a, b in itertools.combinations(drawn.boxes.values(), 2):
        apart = abs(a.x - b.x) >= (a.width + b.width) / 2 or abs(a.y - b.y) >= (a.height + b.height) / 2
        assert apart, (a, b)
    assert all(drawn.boxes[end].y > drawn.boxes[start].y for start, end, _ in drawn.arrows)


def test_the_svg_has_every_text():
    drawn = _flow()
    texts = [line for box in drawn.boxes.values() for line in box.lines]
    texts += [text for *_, text in drawn.arrows if text]
    root = ET.fromstring(drawn.svg("A title <&>"))
    found = [element.text for element in root.iter(f"{SVG}text")]
    assert sorted(found) == sorted(texts) and len(found) > 15
    assert root.find(f"{SVG}title").text == "A title <&>"


def test_arrows_between_crates_imply_the_whole_table_and_no_more():
    drawn = diagram.crates(PAGE)
    table = {
        row["name"]: {name.strip() for name in row["uses"].split(",")} - {"-"}
        for row in diagram.CRATE.finditer(PAGE)
    }
    table["cli"] = table.keys() - {"cli", "fuzz"}
    del table["fuzz"]
    assert drawn.boxes.keys() == table.keys() and len(table) > 20
    used_by = {name: {start for start, end, _ in drawn.arrows if end == name} for name in table}
    for name, uses in table.items():
        reached, new = set(), used_by[name]
        while new:
            reached |= new
            new = set().union(*(used_by[one] for one in new)) - reached
        assert uses <= reached
        assert used_by[name] <= uses
        # No arrow that two others imply.
        assert not any(used_by[name] & used_by[one] for one in used_by[name])


@pytest.mark.parametrize(
    ("lines", "says"), [(["a -> b", "b -> a"], "form a circle"), (["a => b"], "'a => b' is neither")]
)
def test_a_wrong_line_is_named(lines, says):
    with pytest.raises(ValueError, match=says):
        diagram.Diagram.parse(lines).place()


def _text(frame):
    return ["".join(span.itertext()) for span in frame.iter(f"{SVG}text")]


def test_a_recording_shows_what_a_terminal_shows():
    """This test will record a program that erases, colours, and writes a line that is too long."""
    program = r"printf 'one\r\ntwo'; sleep 1; printf '\r\033[2K\033[32mthree\033[0m <\n%0200d\n' 7"
    parts = cast.record(["sh", "-c", program])
    shown = cast.frames("$ it", parts)
    root = ET.fromstring(cast.svg("a title", shown))
    frames = [group for group in root.iter(f"{SVG}g")]
    assert _text(frames[0]) == ["$ it"]
    assert ["$ it", "one", "two"] in [_text(frame) for frame in frames]
    assert _text(frames[-1]) == ["$ it", "one", "three <", "0" * cast.COLUMNS]
    assert any(span.get("style") == "fill:#7ee787" for span in frames[-1].iter(f"{SVG}tspan"))
    # Each frame is shown after the one before, and the last one longest.
    times = [begin for begin, _ in shown]
    assert times == sorted(set(times)) and len(frames) == len(shown)


def test_a_command_that_fails_is_not_recorded():
    with pytest.raises(SystemExit, match="exit code 3"):
        cast.record(["sh", "-c", "exit 3"])


def test_the_recording_of_the_readme_is_small_and_loops():
    file = ROOT / "docs/study.svg"
    assert file.stat().st_size < 60_000
    root = ET.fromstring(file.read_text())
    assert "infinite" in root.find(f"{SVG}style").text
    assert any("settled" in line or "times that of" in line for line in _text(root))
