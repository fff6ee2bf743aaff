"""What `make reference` writes from the binary: pages of the documentation, and the schedulers' labels."""

import json

from support import ROOT, weir


def _printed(*arguments):
    done = weir(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _schedulers():
    """The registry of schedulers, without what depends on this host."""
    listed = json.loads(_printed("list", "schedulers", "--json"))
    kept = ("name", "kind", "label", "counterpart")
    rows = [json.dumps({key: entry[key] for key in kept}, ensure_ascii=False) for entry in listed]
    return "[\n  " + ",\n  ".join(rows) + "\n]\n"


#: Files, by path, and who writes their content.
GENERATED = {
    "docs/reference/columns.md": lambda: _printed("schema", "columns", "--markdown"),
    "docs/reference/study.md": lambda: _printed("schema", "study", "--markdown"),
    "analysis/weir/schedulers.json": _schedulers,
}

if __name__ == "__main__":
    for path, content in GENERATED.items():
        (ROOT / path).write_text(content())
