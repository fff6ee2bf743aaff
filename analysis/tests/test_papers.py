"""Studies of papers: which they are, and the rules by which claims on them are judged."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from papers.clockwise.bands import BANDS as CLOCKWISE_BANDS
from papers.hds import claims as hds_claims
from papers.shenoy import claims as shenoy_claims
from papers.wijayaratne import admission_claims, service_claims
from papers.wijayaratne.bands import BANDS
from weir import claims, notebooks, paper_registry, present
from weir.cli import main
from weir.errors import InputError
from weir.paper_notebook import PaperNotebook

ANALYSIS = Path(__file__).parents[1]


def test_papers_are_found_by_their_folders():
    folders = [path.parent.name for path in ANALYSIS.glob("papers/*/paper.toml")]
    found = paper_registry.papers()
    assert len(found) == len(folders) >= 9
    assert found["hierarchical_disk_sharing"] == paper_registry.Paper("hierarchical_disk_sharing", "hds")
    assert paper_registry.needs_devices("live") and not paper_registry.needs_devices("hds")
    assert found["traces"].studies is None


def test_the_framework_imports_no_paper():
    for path in (ANALYSIS / "weir").rglob("*.py"):
        assert not re.search(r"^\s*(from|import) papers\b", path.read_text(), re.MULTILINE), path


def test_a_paper_has_the_studies_of_its_prefix(tmp_path):
    (tmp_path / "studies").mkdir()
    for name in ("shenoy-grid", "shenoy-bursty", "shenoyish", "quick"):
        (tmp_path / "studies" / f"{name}.yml").touch()
    assert paper_registry.study_names(tmp_path, "shenoy") == ["shenoy-bursty", "shenoy-grid"]
    assert paper_registry.study_names(tmp_path, "quick") == ["quick"]
    with pytest.raises(InputError, match="quick, shenoy"):
        paper_registry.study_names(tmp_path, "bosch")


def test_notebooks_are_found_by_the_prefix_of_their_studies():
    assert notebooks.of_study("wijayaratne") == ["qos_guarantees_wijayaratne"]
    of_quick = {"00-quick-tour", "partitioned_vs_integrated", "multi_filesystem"}
    assert set(notebooks.of_study("quick")) == of_quick
    with pytest.raises(InputError, match="make report STUDY=nothing"):
        notebooks.of_study("nothing")


def test_a_paper_without_results_names_the_command(tmp_path, capsys):
    (tmp_path / "results").mkdir()
    assert main(["figures", "qos_guarantees_wijayaratne", "--results", str(tmp_path / "results")]) == 2
    assert "make" in capsys.readouterr().err


def test_a_range_is_met_between_its_limits_only():
    def status(ours, **rest):
        return claims.claim("W", 162.5, ours, "%", "", limits=(80, 250), **rest).status

    assert status(81.0) == "reproduced"
    assert status(79.0) == "not reproduced"
    assert status(79.0, shape_holds=True) == "shape only"
    assert status(81.0, shape_holds=False) == "not reproduced"
    assert status(81.0, shape_holds=np.False_) == "not reproduced"
    assert status(81.0, shape_holds=np.True_) == "reproduced"


@pytest.mark.parametrize(
    "bands",
    [BANDS, shenoy_claims.BANDS, hds_claims.BANDS, CLOCKWISE_BANDS],
    ids=["wijayaratne", "shenoy", "hds", "clockwise"],
)
def test_every_band_has_a_unit_and_says_what_the_paper_shows(bands):
    assert bands.read()
    for name, band in bands.read().items():
        assert band["figure"] and band["says"] and band["unit"], name
        assert "limits" not in band or band["limits"][0] <= band["limits"][1]


def test_a_claim_is_judged_by_its_band():
    claim = BANDS.judged("W-F9 100", BANDS.read()["W-F9 100"]["paper"], "as printed")
    assert (claim.id, claim.status) == ("W-F9 100", "reproduced")
    assert claim.note.endswith("Ours: as printed")
    # Without a number there are only the limits.
    slow = shenoy_claims.BANDS.judged
    assert slow("S-F2", 1.6, "").status == "reproduced"
    assert slow("S-F2", 1.4, "").status == "not reproduced"
    assert slow("S-F2", 1.4, "", shape=True).status == "shape only"


def test_a_book_writes_the_claims_of_its_paper(tmp_path):
    for name, bands, claim in (("one", BANDS, "W-F9 100"), ("other", shenoy_claims.BANDS, "S-F2")):
        (tmp_path / name).mkdir()
        paper = PaperNotebook(name, tmp_path / name, {})
        paper.claim([bands.judged(claim, 2.0, "so")])
        shown = paper.close().data
        assert claim in shown
    assert "W-F9 100" not in shown
    assert sorted(present.claims(tmp_path)["study"]) == ["one", "other"]


def test_the_longest_stretch_is_that_of_a_nearly_full_disk():
    load = np.full(300, 50.0)
    load[100:150] = 99.0
    load[200:230] = 99.0
    # Of 10 rounds' means the first and last few are mixed with emptier ones.
    assert 40 <= admission_claims.longest_stretch(load) <= 50
    assert admission_claims.longest_stretch(np.full(300, 50.0)) == 0


def test_means_are_in_the_order_of_the_levels():
    table = pl.DataFrame({"block_kib": [256, 32, 64, 32], "admitted": [3, 1, 2, 2]})
    assert list(admission_claims.means(table, "admitted", "block_kib").items()) == [
        (32, 1.5),
        (64, 2),
        (256, 3),
    ]


def test_schedulers_are_named_by_what_differs():
    name = service_claims.scheduler_name
    assert name("scan") == "SCAN"
    assert name("wr-round estimate=expected interactive_per_s=12 periodic=50") == service_claims.ROUNDS
    assert name("wr-round estimate=expected interactive_per_s=24") == service_claims.OTHER_BUCKET
    assert name("wr-round estimate=bound interactive_per_s=12") == "rounds, whole revolutions"


def test_merged_sweeps_are_longer_from_within_the_disk_only():
    (claim,) = service_claims.merging(draws=2000)
    assert claim.status == "reproduced"
    # By hand: to 100 and on to 200; and from 190 to 200 and back.
    places = np.array([100, 200])
    from_edge, from_within = (service_claims.sweep_ms(places, arm) for arm in (0, 190))
    assert from_edge == pytest.approx(2 * float(service_claims.seek_ms(np.array(100))))
    assert from_within == pytest.approx(float(service_claims.seek_ms(np.array([10, 100])).sum()))
    seeks = service_claims.seek_ms(np.array([0, 1, 3710]))
    assert seeks == pytest.approx([0, 0.6, 17.0], abs=0.01)
