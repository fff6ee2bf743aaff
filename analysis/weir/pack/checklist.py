"""Checklist of artifact evaluation: what an archive has, by the badges of FAST, OSDI and SC.

Badges are those of USENIX and ACM: *Available* (the artifact is in a permanent archive under a licence),
*Functional* (documented, complete, exercisable, with evidence of correctness), *Reproduced* (others obtain
the main results). A checklist prepares for the evaluation; only its committee gives a badge.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from weir.load import Study
from weir.pack.citation import Citation
from weir.pack.environment import UNCOMMITTED
from weir.pack.numbers import Judged

AVAILABLE, FUNCTIONAL, REPRODUCED = "Available", "Functional", "Reproduced"
Outcome = Literal["yes", "no", "look"]


@dataclass(frozen=True)
class Item:
    """One line of the checklist.

    Attributes:
        badge: the badge that asks for it.
        what: what must hold.
        outcome: `yes`, `no`, or `look`: a person must judge.
        detail: what was found.
        remedy: what to do where it does not hold.
    """

    badge: str
    what: str
    outcome: Outcome
    detail: str
    remedy: str = ""

    def line(self) -> str:
        """The item as a line of text."""
        rest = f" ({self.detail})" if self.detail else ""
        then = f". {self.remedy}" if self.remedy and self.outcome != "yes" else ""
        return f"[{self.outcome:>4}] {self.badge}: {self.what}{rest}{then}"


def items(
    studies: list[Study],
    citation: Citation,
    given_by_specs: dict[str, bool | None],
    judged: list[Judged],
    commit: str | None,
) -> Iterator[Item]:
    """The checklist of an archive.

    Args:
        studies: the studies.
        citation: who made them.
        given_by_specs: whether each study's file still gives its plan; None where it could not be asked.
        judged: claims of papers.
        commit: of weir; None where it is not known.
    """
    yield from _available(citation)
    yield from _functional(studies, given_by_specs, commit)
    yield from _reproduced(studies, judged)


def _yes(holds: bool) -> Outcome:
    return "yes" if holds else "no"


def _available(citation: Citation) -> Iterator[Item]:
    add = "Add it to the file of --citation"
    names = ", ".join(author.name for author in citation.authors)
    yield Item(AVAILABLE, "authors are named", _yes(bool(names)), names, f"{add}: `authors`")
    yield Item(
        AVAILABLE, "a licence is stated", _yes(bool(citation.licence)), citation.licence, f"{add}: `license`"
    )
    remedy = f"Reserve one at Zenodo, Figshare or another permanent archive. {add}: `doi`"
    yield Item(AVAILABLE, "a DOI is given", _yes(bool(citation.doi)), citation.doi, remedy)
    date = str(citation.published or "")
    yield Item(AVAILABLE, "the date of release is given", _yes(bool(date)), date, f"{add}: `date-released`")
    remedy = f"{add}: `preferred-citation`, with the paper's `doi` or `title`"
    yield Item(AVAILABLE, "the paper is named", _yes(bool(citation.paper)), citation.paper, remedy)
    look = (
        "Upload the archive under that DOI; a page that can be deleted, such as a repository's, is not enough"
    )
    yield Item(AVAILABLE, "the archive is in a permanent archive", "look", "", look)


def _functional(
    studies: list[Study], given_by_specs: dict[str, bool | None], commit: str | None
) -> Iterator[Item]:
    for study in studies:
        yield from _functional_study(study, given_by_specs.get(study.name))
    is_clean = commit is not None and not commit.endswith(UNCOMMITTED)
    what = "the commit of weir is known and has no uncommitted changes"
    yield Item(FUNCTIONAL, what, _yes(is_clean), commit or "no repository", "Commit, then pack again")


def _functional_study(study: Study, given: bool | None) -> Iterator[Item]:
    def item(what: str, outcome: Outcome, detail: str, remedy: str) -> Item:
        return Item(FUNCTIONAL, f"{study.name}: {what}", outcome, detail, remedy)

    made, again = len(study.runs), f"make study STUDY={study.name}"
    counts = f"{made} of {study.planned - len(study.not_needed)} planned"
    yield item("every planned run is there", _yes(not study.missing), counts, again)
    old = "Repeat the others: they are of a version of weir without manifests"
    sealed = f"{made - len(study.unsealed)} of {made}"
    yield item("every run has a manifest", _yes(not study.unsealed), sealed, old)
    valid = len(study.runs_with("valid"))
    remedy = f"Explain the others in the paper, or repeat them: {again} RETRY=invalid"
    yield item("every run is valid", _yes(valid == made), f"{valid} of {made}", remedy)
    words = {True: "", False: "they give other runs", None: "no study of this name, or runs with labels"}
    remedy = "Pack from the commit that made the runs, or run the study again"
    outcome: Outcome = "look" if given is None else _yes(given)
    yield item("the specifications give the plan of these runs", outcome, words[given], remedy)
    on_devices = [run for run in study.runs if run.testbed != "simulator"]
    if on_devices:
        known = sum(bool(run.host) for run in on_devices)
        found = f"{known} of {len(on_devices)}"
        what = "each run on a device has a record of its host"
        yield item(what, _yes(known == len(on_devices)), found, "Repeat the others")
        hosts = {str((run.host.get("system") or {}).get("host_name", "several")) for run in on_devices}
        found = f"hosts: {', '.join(sorted(hosts))}"
        yield item("names of hosts and disks may be published", "look", found, "Read host.json of a run")


def _reproduced(studies: list[Study], judged: list[Judged]) -> Iterator[Item]:
    for study in studies:
        virtual, all_runs = sum(run.testbed == "simulator" for run in study.runs), len(study.runs)
        found = f"{virtual} of {all_runs} runs are in virtual time and repeat to the ns anywhere"
        outcome: Outcome = "yes" if virtual == all_runs else "look"
        remedy = "Name the hardware and the hours that runs on devices need"
        yield Item(REPRODUCED, f"{study.name}: reviewers can repeat the runs", outcome, found, remedy)
        n = study.fewest_repetitions
        remedy = f"Fewer than 5 seldom settle a question: weir power {study.name}"
        yield Item(REPRODUCED, f"{study.name}: 5 repetitions or more", _yes(n >= 5), str(n), remedy)
    for one in judged:
        what = f"claims of {one.paper} are judged on these results"
        has_claims = any(derived.kind == "claims" for derived in one.files)
        why_not = one.why_not or ("" if has_claims else "none can be judged on these studies")
        remedy = f"Pack all studies of the paper: weir pack {one.paper}"
        yield Item(REPRODUCED, what, _yes(has_claims), why_not, remedy)
    remedy = "Add a table to the paper's appendix: claim, figure, file below numbers/ or claims/"
    what = "each claim of the paper names its figure or table in the archive"
    yield Item(REPRODUCED, what, "look", "", remedy)


def summary(found: list[Item]) -> str:
    """How many items of each badge hold."""
    parts = []
    for badge in (AVAILABLE, FUNCTIONAL, REPRODUCED):
        own = [item.outcome for item in found if item.badge == badge]
        look = f", {own.count('look')} to look at" if own.count("look") else ""
        parts.append(f"{badge} {own.count('yes')} of {len(own)}{look}")
    return f"checklist: {'; '.join(parts)}"
