"""Studies of papers: which they are, and the rules by which claims on them are judged."""

import re
from pathlib import Path

import numpy as np
import pytest

from weir import claims, notebooks, paper_registry, present
from weir.claims import Claims, Found, Headline
from weir.cli import main
from weir.errors import InputError
from weir.paper_notebook import PaperNotebook
from weir.register import Register
from weir.statistics import Interval

ANALYSIS = Path(__file__).parents[1]
HEADER = '[register]\nprefix = "X"\npaper = "A. Author, A paper, 1999"\nnotebook = "quick"\n'
ENTRY = """
[X-F1]
place = "Fig. 1"
passage = "twice as fast"
says = "it is twice as fast"
unit = "times"
study = "quick"
"""


@pytest.fixture
def register(tmp_path):
    """Writes a register of one claim with more fields."""

    def write(more="", header=HEADER, entry=ENTRY):
        path = tmp_path / "claims.toml"
        path.write_text(header + entry + more)
        # A file is read once; each of these is another.
        return Register(path.rename(tmp_path / f"{len(list(tmp_path.iterdir()))}.toml"))

    return write


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


# The register.


def test_an_entry_is_read_with_its_white_space_joined(register):
    found = register("paper = 2\nlimits = [1, inf]\nwhy = '''a\n  b'''")
    entry = found["X-F1"]
    assert (entry.paper, entry.limits, entry.why) == (2.0, (1.0, float("inf")), "a b")
    assert entry.study == ("quick",) and found.header.prefix == "X" and not found.header.whole_interval
    several = register(entry=ENTRY.replace('"quick"', '["quick", "access"]'))
    assert several["X-F1"].study == ("quick", "access")


def test_a_plain_number_has_fifteen_percent(register):
    assert register("paper = 200")["X-F1"].bounds == pytest.approx((170, 230))
    assert register("paper = -2")["X-F1"].bounds == pytest.approx((-2.3, -1.7))
    assert register("paper = 2\nlimits = [1, 3]\nwhy = 'so'")["X-F1"].bounds == (1, 3)
    assert register()["X-F1"].bounds is None


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("tolerance = 3", "unknown field `tolerance`"),
        ("limits = [1, 2]", "has limits without a reason"),
        ("limits = [2, 1]\nwhy = 'so'", r"field `limits` is \[2, 1\]"),
        ("limits = 2\nwhy = 'so'", "field `limits` is 2"),
        ("why = 'so'", "has `why` without `limits`"),
        ("paper = inf", "field `paper` is no number"),
        ("figure = 3", "field `figure` is 3"),
        ("fitted = 'input'\nstruck = 'ill-formed'", "is fitted and struck"),
        ("fitted = 'input'\nunobtainable = 'lost'", "is fitted and unobtainable"),
        ("[X-F1]", "is no TOML"),
        ("[Y-F1]", "claim `Y-F1`: the id is of another paper"),
        ("[XF1]", "claim `XF1`: the id is of another paper"),
    ],
)
def test_an_entry_that_is_wrong_is_refused(register, more, problem):
    with pytest.raises(InputError, match=problem):
        _ = register(more).entries


@pytest.mark.parametrize("field", ["place", "passage", "says", "unit", "study"])
def test_an_entry_that_lacks_a_field_is_refused(register, field):
    for entry in (
        re.sub(f"^{field} = .*\n", "", ENTRY, flags=re.MULTILINE),
        ENTRY.replace(f'{field} = "', f'{field} = "" # "'),
    ):
        with pytest.raises(InputError, match=f"claim `X-F1`: field `{field}` is missing"):
            _ = register(entry=entry).entries


@pytest.mark.parametrize(
    "header",
    ["", HEADER.replace('prefix = "X"\n', ""), HEADER + 'author = "A."\n'],
    ids=["none", "short", "long"],
)
def test_a_register_without_its_header_is_refused(register, header):
    with pytest.raises(InputError, match="table `register`"):
        _ = register(header=header).header


def test_a_claim_that_no_register_has_is_refused(register):
    with pytest.raises(InputError, match="has no claim `X-F2`"):
        Claims(register()).judged("X-F2", 1.0)


# Judging.


def status(register, ours, **rest):
    return Claims(register).judged("X-F1", ours, **rest).status


def test_a_range_is_met_between_its_limits_only(register):
    one = register("paper = 162.5\nlimits = [80, 250]\nwhy = 'so'")
    assert status(one, 81.0) == "reproduced"
    assert status(one, 79.0) == "not reproduced"
    assert status(one, 79.0, shape=True) == "shape only"
    assert status(one, 81.0, shape=False) == "not reproduced"
    assert status(one, 81.0, shape=np.False_) == "not reproduced"
    assert status(one, 81.0, shape=np.True_) == "reproduced"
    assert status(one, 81.0, is_comparable=False) == "not reproduced"


def test_limits_without_a_number_of_the_paper_are_met_alike(register):
    one = register("limits = [1.5, inf]\nwhy = 'so'")
    assert status(one, 1.6) == "reproduced"
    assert status(one, 1.4) == "not reproduced"
    assert status(one, 1.4, shape=True) == "shape only"


def test_a_shape_without_a_number_is_never_reproduced(register):
    assert status(register(), 2.0, shape=True) == "shape only"
    assert status(register(), 2.0, shape=False) == "not reproduced"
    assert status(register("paper = 2"), None) == "not reproduced"


def test_a_whole_interval_is_met_where_the_register_asks_for_it(register):
    wide = Interval(2.0, 1.0, 3.0, 3, "t")
    assert status(register("paper = 2"), wide) == "reproduced"
    asks = register("paper = 2", header=HEADER + "whole_interval = true\n")
    assert status(asks, wide) == "not reproduced"
    assert status(asks, Interval(2.0, 1.9, 2.1, 3, "t")) == "reproduced"


@pytest.mark.parametrize(
    ("field", "expected"),
    [("fitted", "fitted or input"), ("unobtainable", "not obtainable"), ("struck", "struck")],
)
def test_a_claim_apart_keeps_its_status_and_does_not_count(register, field, expected):
    one = Claims(register(f"paper = 2\n{field} = 'for a reason'"))
    for ours in (2.0, 9.0, None):
        claim = one.judged("X-F1", ours)
        assert claim.status == expected and "for a reason" in claim.note
    assert Headline.of([claim]).counted == 0 and Headline.of([claim]).all == 1


def test_a_claim_says_what_was_looked_at_and_why_it_is_missed(register):
    claim = Claims(register("paper = 2")).judged("X-F1", 3.0, "as printed", missed="it is slow")
    assert claim.note.startswith("Fig. 1: it is twice as fast. Ours: as printed; not reproduced, because ")
    assert claim.note.endswith(": it is slow")


def test_the_setting_that_decides_must_be_judged(register):
    one = Claims(register("paper = 2\nsetting = 'b'"))
    claim = one.over("X-F1", {"a": Found(1.0), "b": Found(2.0)})
    assert (claim.status, claim.ours) == ("reproduced", 2.0)
    assert [at.status for at in claim.settings] == ["not reproduced", "reproduced"]
    with pytest.raises(InputError, match="setting `b` is not one of a"):
        one.over("X-F1", {"a": Found(2.0)})


def test_a_claim_is_judged_once_and_listed_always(register):
    more = ENTRY.replace("X-F1", "X-F2") + "struck = 'ill-formed'\n" + ENTRY.replace("X-F1", "X-F3")
    one = Claims(register("paper = 2\n" + more))
    made = [one.judged("X-F1", 2.0)]
    found = one.completed(made)
    assert [claim.status for claim in found] == ["reproduced", "struck", "not measured"]
    assert "make study STUDY=quick" in found[2].note
    assert Headline.of(found).sentence().startswith("Reproduced: 1 of 2 obtainable claims (50 %), 1 of 3")
    with pytest.raises(InputError, match="claim `X-F1` was judged twice"):
        one.completed(made * 2)


def test_a_notebook_writes_the_claims_of_its_paper(tmp_path, register):
    for name in ("one", "other"):
        of = Claims(
            register(header=HEADER.replace("X", name.upper()), entry=ENTRY.replace("X-", f"{name.upper()}-"))
        )
        (tmp_path / name).mkdir()
        paper = PaperNotebook(name, tmp_path / name, {})
        paper.claim([of.judged(f"{name.upper()}-F1", 2.0, "so")])
        shown = paper.close().data
        assert f"{name.upper()}-F1" in shown
    assert "ONE-F1" not in shown
    assert sorted(present.claims(tmp_path)["study"]) == ["one", "other"]
    assert [claim.status for claim in claims.read(tmp_path / "one")] == ["not reproduced"]
