"""Registers of claims as a whole, and the page that shows them."""

import pkgutil
import re

import pytest

from weir import claims, claims_page, locate, paper_registry
from weir.claims import Claim, Claims, Found
from weir.cli import main
from weir.errors import InputError
from weir.register import MODEL, Register
from weir.statistics import Interval

ROOT = locate.project()
REGISTER = """\
[register]
prefix = "X"
paper = "A. Author, \\"A paper\\", 1999"
notebook = "quick"

["X-F1"]
place = "Fig. 1"
passage = "the integrated server is <twice> as fast"
says = "the integrated server is twice as fast"
unit = "times"
paper = 2
study = "quick"
code = "claims.judged"

["X-F2"]
place = "Fig. 2"
passage = "it is never slower"
says = "it is never slower"
unit = "ms"
limits = [0, inf]
why = "the sentence gives a bound"
study = ["quick", "access"]
setting = "period 10 s"

["X-F3"]
place = "3.1"
passage = "the drive seeks in 9 ms"
says = "the drive seeks in 9 ms"
unit = "ms"
paper = 9
study = "model"
fitted = "the profile has this number"

["X-F4"]
place = "3.2"
passage = "explodes"
says = "explodes"
unit = "ms"
study = "model"
struck = "no number is said"
"""
REGISTERS = {register.path.parent.name: register for register in paper_registry.registers()}


@pytest.fixture
def register(tmp_path, monkeypatch):
    path = tmp_path / "papers/x/claims.toml"
    path.parent.mkdir(parents=True)
    path.write_text(REGISTER)
    found = Register(path)
    monkeypatch.setattr(paper_registry, "registers", lambda: [found])
    # No claims of the package, which are of other registers.
    monkeypatch.setattr(locate, "JUDGED", tmp_path / "judged")
    return found


@pytest.fixture
def judged(register, tmp_path):
    """Results of a notebook that judged three of the four claims."""
    of = Claims(register)
    each = {
        "period 5 s": Found(-1.0, "five seconds"),
        "period 10 s": Found(Interval(3.0, 2.0, 4.0, 3, "t"), "ten seconds"),
    }
    made = [of.judged("X-F1", 2.2, "at half load"), of.over("X-F2", each), of.judged("X-F3", 9.0)]
    claims.write(tmp_path / "results/x", made)
    return tmp_path / "results"


def test_a_claim_over_settings_has_the_status_of_the_one_that_decides(register):
    of = Claims(register)
    bad, good = Found(-1.0), Found(1.0)
    claim = of.over("X-F2", {"period 5 s": bad, "period 10 s": good})
    assert (claim.status, claim.ours) == ("reproduced", 1.0)
    assert claim.holds() == "holds for period 10 s; fails for period 5 s"
    assert claim.note.endswith(claim.holds())
    assert of.over("X-F2", {"period 5 s": good, "period 10 s": bad}).status == "not reproduced"
    with pytest.raises(InputError, match=r"setting `period 10 s` is not one of period 5 s"):
        of.over("X-F2", {"period 5 s": good})


def test_a_claim_that_was_fitted_is_never_reproduced(register):
    claim = Claims(register).judged("X-F3", 9.0, "its own seek")
    assert claim.status == "fitted or input" and "the profile has this number" in claim.note


def test_files_are_read_as_they_were_written(judged):
    found = {claim.id: claim for claim in claims.read(judged / "x")}
    assert found["X-F2"].interval == [2.0, 4.0]
    assert [one.setting for one in found["X-F2"].settings] == ["period 5 s", "period 10 s"]
    assert found["X-F1"].settings == []


def test_the_page_has_every_claim_with_passage_limits_and_links(judged, tmp_path, capsys):
    assert main(["claims", "--results", str(judged)]) == 0
    said = capsys.readouterr().out
    headline = "Reproduced: 2 of 2 obtainable claims (100 %), 2 of 4 claims (50 %)."
    assert f"X: {headline} Others: " in said and f"all: {headline}" in said
    assert "1 fitted or input" in said and "1 struck" in said
    page = (judged / "claims.html").read_text()
    for part in (
        headline,
        "the integrated server is &lt;twice&gt; as fast",
        "Limits: 1.70 to 2.30.",
        "Limits: at least 0 (the sentence gives a bound).",
        "Setting that decides: period 10 s.",
        "holds for period 10 s; fails for period 5 s",
        "no number is said",
    ):
        assert part in page, part
    for link in re.findall(r'href="([^"#]+)"', page):
        assert (judged / link).is_file(), link


def test_what_was_not_judged_names_the_command(register, tmp_path):
    (paper,) = claims_page.of_papers(tmp_path / "nothing")
    assert [claim.status for claim in paper.claims] == [
        "not measured", "not measured", "fitted or input", "struck",
    ]  # fmt: skip
    assert "make study STUDY=quick or make study STUDY=access" in paper.claims[1].note
    said = "None of 2 obtainable claims (4 in all) is judged: make figures STUDY=PAPER."
    assert paper.headline.sentence() == said


def test_a_claim_has_one_home(judged, tmp_path, capsys):
    claims.write(judged / "y", [Claim("X-F1", "reproduced", None, None, None, "", "")])
    assert main(["claims", "--results", str(judged)]) == 2
    assert "claim `X-F1` is also in" in capsys.readouterr().err
    claims.write(judged / "y", [Claim("X-F9", "reproduced", None, None, None, "", "")])
    assert main(["claims", "--results", str(judged)]) == 2
    assert "claim `X-F9` is in no register" in capsys.readouterr().err


def test_ids_of_all_registers_are_unique():
    assert claims_page.unique([claims_page.OfPaper(r, (), {}) for r in paper_registry.registers()]).all == 0


@pytest.mark.parametrize("package", REGISTERS)
def test_a_reader_who_doubts_finds_study_code_and_figure(package):
    """Every claim that can be judged names functions, studies and figures that exist."""
    register = REGISTERS[package]
    notebooks = ROOT / "analysis/notebooks"
    sources = "".join(path.read_text() for path in notebooks.glob("*.py"))
    assert (notebooks / f"{register.header.notebook}.py").is_file()
    wrong = []
    for id, entry in register.entries.items():
        if entry.struck or entry.unobtainable or entry.lacks or (entry.fitted and not entry.code):
            continue
        name = entry.code if entry.code.startswith("papers.") else f"papers.{package}.{entry.code}"
        try:
            judges = pkgutil.resolve_name(name)
        except (AttributeError, ImportError, ValueError):
            judges = None
        if not callable(judges):
            wrong.append(f"{id}: code {entry.code!r}")
        wrong += [
            f"{id}: study {study}"
            for study in entry.study
            if study != MODEL and paper_registry.study_file(ROOT, study) is None
        ]
        if entry.figure and f'"{entry.figure}"' not in sources:
            wrong.append(f"{id}: figure {entry.figure}")
    assert wrong == []
