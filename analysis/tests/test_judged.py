"""The judged claims that come with the package, and the committed notebooks that they are of."""

import json
import subprocess
from html import escape
from pathlib import Path

import nbformat
import pytest
import synthetic

from weir import claims, claims_page, judged, locate, notebooks, paper_registry, present
from weir.cli import main
from weir.errors import InputError
from weir.load import load_study

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "target/release/weir"
#: The papers with claims in the package, by the folder of their results.
KEPT = sorted(path.parent.name for path in locate.JUDGED.glob(f"*/{claims.FILE}"))
#: The papers whose studies are recorded and run in virtual time. Plans for devices depend on the host.
SIMULATED = sorted(
    path.parent.name
    for path in locate.JUDGED.glob(f"*/{judged.FILE}")
    if judged.studies(path.parent.name) and not paper_registry.needs_devices(path.parent.name)
)


def notebook_of(prefix):
    for name, paper in paper_registry.papers().items():
        if (paper.studies or name) == prefix:
            return nbformat.read(ROOT / notebooks.SOURCES / f"{name}.ipynb", as_version=4)
    raise AssertionError(f"no notebook reads {prefix}")


@pytest.mark.parametrize("prefix", KEPT)
def test_the_committed_notebook_shows_the_claims_that_are_kept(prefix):
    outputs = [cell.outputs for cell in notebook_of(prefix).cells if cell.cell_type == "code"][-1]
    shown = "".join(output.data["text/html"] for output in outputs if "data" in output)
    table = present.claims(locate.JUDGED)
    rows = table.filter(table["study"] == prefix).drop("study").rows()
    assert len(rows) == len(claims.read(locate.JUDGED / prefix)) > 0
    at = 0
    for row in rows:
        for value in row:
            at = shown.find(escape(value), at)
            assert at >= 0, row[0]


@pytest.mark.parametrize("prefix", SIMULATED)
def test_claims_were_judged_from_the_present_studies(prefix):
    if not BINARY.exists():
        pytest.skip("needs target/release/weir")
    recorded = judged.studies(prefix)
    assert set(recorded) == set(paper_registry.study_names(ROOT, prefix))
    for name, record in recorded.items():
        plan = json.loads(subprocess.check_output([BINARY, "plan", name, "--json"], cwd=ROOT))
        again = f"{name} has changed: make figures STUDY={prefix}, then make sample"
        assert judged.digest(run["id"] for run in plan["runs"]) == record["ids"], again
        assert record["runs"] == len(plan["runs"])


def test_the_page_of_a_fresh_clone_has_the_claims_that_are_kept(tmp_path, capsys):
    assert main(["claims", "--results", str(tmp_path)]) == 0
    counted = claims_page.unique(claims_page.of_papers(tmp_path))
    assert f"all: {counted.sentence()}" in capsys.readouterr().out
    kept = [claim for name in KEPT for claim in claims.read(locate.JUDGED / name)]
    reproduced = sum(claim.status == claims.REPRODUCED for claim in kept)
    assert counted.counts[claims.REPRODUCED] == reproduced
    # A paper with results of the user's has theirs alone.
    claims.write(tmp_path / KEPT[0], [])
    left = [claim for name in KEPT[1:] for claim in claims.read(locate.JUDGED / name)]
    found = claims_page.unique(claims_page.of_papers(tmp_path)).counts
    assert found[claims.REPRODUCED] == sum(claim.status == claims.REPRODUCED for claim in left)


def test_what_claims_were_judged_from_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(locate, "JUDGED", tmp_path / "kept")
    synthetic.write_study(tmp_path / "p-one", loads=(0.5,), repetitions=2, duration_s=1.0)
    study = load_study(tmp_path / "p-one")
    # A notebook without claims.
    assert judged.keep(tmp_path / "p", [study]) == tmp_path / "kept/p"
    assert not (tmp_path / "kept/p" / claims.FILE).exists()
    claims.write(tmp_path / "p", [])
    judged.keep(tmp_path / "p", [study])
    assert claims.read(tmp_path / "kept/p") == [] and (tmp_path / "kept/p" / claims.FILE).exists()
    (record,) = judged.studies("p").values()
    assert record["runs"] == record["valid"] == len(study.runs)
    assert record["ids"] == judged.digest(reversed([run.id for run in study.runs]))
    assert record["ids"] != judged.digest([run.id for run in study.runs][1:])
    assert judged.studies("q") == {}
    (tmp_path / "kept/p" / judged.FILE).write_text("{}")
    with pytest.raises(InputError, match="studies"):
        judged.studies("p")
