"""Diagrams of the documentation site: they show what their text says, and boxes do not overlap."""

import importlib.util
import itertools
import re
import sys
import xml.etree.ElementTree as ET

import pytest
from support import ROOT

PAGE = (ROOT / "docs/ARCHITECTURE.md").read_text()


def _module():
    spec = importlib.util.spec_from_file_location("diagram", ROOT / "docs/site/diagram.py")
    module = importlib.util.module_from_spec(spec)
    # Data classes look for their module.
    sys.modules["diagram"] = module
    spec.loader.exec_module(module)
    return module


diagram = _module()


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
    found = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(found) == sorted(texts) and len(found) > 15
    assert root.find("{http://www.w3.org/2000/svg}title").text == "A title <&>"


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
