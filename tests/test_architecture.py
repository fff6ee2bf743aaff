"""The table of crates in docs/ARCHITECTURE.md, against cargo's own account of them."""

import json
import re
import subprocess

from support import ROOT

ROW = re.compile(r"^\| `([a-z-]+)` \| .* \| ([^|]*) \|$", re.MULTILINE)


def crates():
    """The crates that each crate of the workspace uses, without those of its tests."""
    command = ["cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {
        package["name"].removeprefix("weir-"): {
            used["name"].removeprefix("weir-")
            for used in package["dependencies"]
            if used["name"].startswith("weir-") and used["kind"] is None
        }
        for package in json.loads(done.stdout)["packages"]
    }


def table():
    """What the page says of each crate, in its order."""
    text = (ROOT / "docs/ARCHITECTURE.md").read_text()
    section = text.split("\n### Crates\n")[1].split("\n## ")[0]
    return {name: set() if used == "-" else set(used.split(", ")) for name, used in ROW.findall(section)}


def test_the_table_of_crates_is_true():
    found, shown = crates(), table()
    assert found.keys() == shown.keys()
    # These two use nearly all, and are used by none.
    for name in found.keys() - {"cli", "fuzz"}:
        assert found[name] == shown[name], name
        assert not found[name] & {"cli", "fuzz"}, name


def test_dependencies_point_upwards_in_the_table():
    above = set()
    for name, used in table().items():
        if name not in ("cli", "fuzz"):
            assert used <= above, f"{name} uses {used - above}, which stand below it"
        above.add(name)


def test_the_top_has_at_most_12_folders():
    made = {"target", "dist"}
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    assert len(folders - made) <= 12, folders
