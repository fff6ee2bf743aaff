"""`weir pack`: collects the files of an archive and writes it."""

import datetime
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import weir
from weir import derive, documents, locate, manifest, pages, plans, register, report
from weir.errors import DamagedError, InputError
from weir.load import DECISION, Study, load_study
from weir.pack import anonymous, archive, checklist, citation, crate, croissant, environment, methods, specs
from weir.pack.citation import Citation
from weir.pack.numbers import CLAIMS, NUMBERS, REPORT, RESULTS, Judged, of_paper, of_study, papers_of
from weir.paper_registry import registers

#: The date of an archive of which no date of release is given, as seconds since 1970.
DATE_VARIABLE = "SOURCE_DATE_EPOCH"


@dataclass(frozen=True)
class Packed:
    """An archive that was written.

    Attributes:
        path: the archive.
        sha256: SHA-256 of the archive.
        files: number of files in the archive.
        size_bytes: size of the archive.
        left_out: runs of earlier plans, by study.
        checklist: the items of artifact evaluation.
        with_host_name: files of an anonymous archive that still have the name of a host as a word.
    """

    path: Path
    sha256: str
    files: int
    size_bytes: int
    left_out: dict[str, tuple[str, ...]]
    checklist: list[checklist.Item]
    with_host_name: list[str]


def find(names: Sequence[str], results: Path | None) -> list[Study]:
    """Loads the studies to pack.

    Args:
        names: a name is that of a study, of its folder, or what the names of several begin with.
        results: the folder of results; that of the project if None.

    Raises:
        InputError: there is no such study, or a folder of one is damaged.
    """
    found: dict[str, Path] = {}
    for name in names:
        path = Path(name)
        folder, label = plans.split(path)
        if label is not None:
            raise InputError(name, "names one label of a study", f"pack the whole study: weir pack {folder}")
        if plans.exists(path):
            found[path.resolve().name] = path
        elif one := locate.study(name, results):
            found[one.name] = one
        elif several := locate.studies(name, results):
            found |= several
        else:
            known = ", ".join(path.name for path in plans.folders(results or locate.results())) or "none"
            raise InputError(
                name, f"has no results (studies with results: {known})", f"make study STUDY={name}"
            )
    return [load_study(path) for _, path in sorted(found.items())]


def pack(studies: list[Study], out: Path, cited: Citation, *, withhold_hosts: bool = False) -> Packed:
    """Writes the archive of some studies. A failure leaves no archive behind.

    Args:
        studies: the studies; their results are not changed.
        out: the archive.
        cited: authors, licence, DOI.
        withhold_hosts: leave out what names the hosts (`weir.pack.anonymous`).

    Raises:
        InputError: the archive exists, or cannot be written; or a study has no run, or one on several hosts
            that are not to be named.
        DamagedError: a file differs from its run's manifest.
    """
    if out.exists():
        raise InputError(out, "exists", "remove it, or name another file with --out")
    for study in studies:
        if not study.runs:
            raise InputError(study.path, "has no run", f"run it first: make study STUDY={study.name}")
    published = _published(cited)
    hidden = _anonymous if withhold_hosts else _as_they_are
    try:
        with hidden(studies, out) as (shown, named), derive.from_tables():
            with documents.replaced(out, sync=True) as stream:
                writer = archive.Writer(stream, _root(studies), _seconds(published))
                judged = _Build(shown, cited, published, writer).write()
            items = _items(shown, cited, judged)
    except OSError as error:
        problem = f"cannot be read or written ({error.strerror or error})"
        remedy = "make room on the disk, or name another file with --out"
        raise InputError(error.filename or out, problem, remedy) from error
    return Packed(
        path=out,
        sha256=manifest.sha256_of(out),
        files=len(writer.sums),
        size_bytes=out.stat().st_size,
        left_out={study.name: study.stray for study in studies if study.stray},
        checklist=items,
        with_host_name=named,
    )


@contextmanager
def _as_they_are(studies: list[Study], _: Path) -> Iterator[tuple[list[Study], list[str]]]:
    yield studies, []


@contextmanager
def _anonymous(studies: list[Study], out: Path) -> Iterator[tuple[list[Study], list[str]]]:
    """Copies of studies beside the archive, where links to their files can be, without names of hosts."""
    with tempfile.TemporaryDirectory(dir=out.absolute().parent, prefix=".weir-") as folder:
        named = []
        for study in studies:
            copy = Path(folder) / study.name
            named += [f"{study.name}/{name}" for name in anonymous.copy(study, copy)]
        yield [load_study(Path(folder) / study.name) for study in studies], named


def check(studies: list[Study], cited: Citation) -> list[checklist.Item]:
    """The checklist of these studies, without an archive."""
    with derive.from_tables():
        judged = [of_paper(prefix, studies) for prefix in papers_of(study.name for study in studies)]
    return _items(studies, cited, judged)


def _items(studies: list[Study], cited: Citation, judged: list[Judged]) -> list[checklist.Item]:
    given = {study.name: specs.give_plan(study) for study in studies}
    return list(checklist.items(studies, cited, given, judged, environment.commit()))


def _root(studies: list[Study]) -> str:
    """The folder of an archive: the name of the study, or what the names of several begin with."""
    if len(studies) == 1:
        return studies[0].name
    parts = [study.name.split("-") for study in studies]
    same = takewhile(lambda column: len(set(column)) == 1, zip(*parts, strict=False))
    return "-".join(column[0] for column in same) or "studies"


def _published(cited: Citation) -> datetime.date:
    if cited.published:
        return cited.published
    given = os.environ.get(DATE_VARIABLE)
    if given is None:
        return datetime.datetime.now(datetime.UTC).date()
    try:
        return datetime.datetime.fromtimestamp(int(given), datetime.UTC).date()
    except (ValueError, OverflowError, OSError):
        problem = f"is {given!r}, not a number of seconds since 1970"
        raise InputError(f"${DATE_VARIABLE}", problem, "unset it, or set it to such a number") from None


def _seconds(date: datetime.date) -> int:
    return int(datetime.datetime(date.year, date.month, date.day, tzinfo=datetime.UTC).timestamp())


@dataclass(frozen=True)
class _Build:
    """Writes the files of one archive in their order."""

    studies: list[Study]
    cited: Citation
    published: datetime.date
    writer: archive.Writer

    def write(self) -> list[Judged]:
        """Writes all files; returns the judged claims of papers."""
        names = [study.name for study in self.studies]
        words = ", ".join(names)
        commit = environment.commit()
        about = crate.Described(
            title=self.cited.title or f"Results of {'studies' if len(names) > 1 else 'study'} {words}",
            description=self.cited.abstract or " ".join(study.question for study in self.studies),
            published=self.published.isoformat(),
            citation=self.cited,
            studies=self.studies,
            plans={study.name: [*map(_in_results(study), _plans(study))] for study in self.studies},
        )
        header = {
            "weir_pack": archive.FORMAT,
            "weir": weir.__version__,
            "commit": commit,
            "title": about.title,
            "published": about.published,
            "studies": names,
            "papers": papers_of(names),
        }
        add = self.writer.add
        add(archive.HEADER, json.dumps(header, indent=2) + "\n")
        add(archive.README, pages.render_text("pack.md.j2", about=about, header=header, studies=self.studies))
        if self.cited.text:
            add(citation.NAME, self.cited.text)
        add(methods.NAME, methods.text(self.studies, commit))
        for name, content in [*specs.files_of(self.studies).items(), *environment.files()]:
            add(name, content)
        for study in self.studies:
            self._results(study)
            for derived in of_study(study):
                add(derived.name, derived.text)
            add(f"{NUMBERS}/{study.name}/{REPORT}", report.render(study))
        judged = [of_paper(prefix, self.studies) for prefix in header["papers"]]
        for one in judged:
            for derived in one.files:
                add(derived.name, derived.text)
            if one.files and (path := _register(one.paper)):
                add(f"{CLAIMS}/{one.paper}/{register.FILE}", path)
        add(croissant.NAME, croissant.as_text(about, self.writer.sums))
        add(crate.NAME, crate.as_text(about, self.writer.sums))
        self.writer.close()
        return judged

    def _results(self, study: Study) -> None:
        place = _in_results(study)
        for name in [*_plans(study), *_others(study)]:
            self.writer.add(place(name), study.path / name)
        for run in study.runs:
            for name, sha256 in manifest.listed(run.path).items():
                added = place(f"{run.id}/{name}")
                self.writer.add(added, run.path / name)
                if sha256 is not None and self.writer.sums[added].sha256 != sha256:
                    problem = "is damaged: its SHA-256 is not that in manifest.json"
                    raise DamagedError(run.path / name, problem, manifest.RUN_AGAIN)


def _in_results(study: Study):
    return f"{RESULTS}/{study.name}/{{}}".format


def _plans(study: Study) -> list[str]:
    return [path.name for path in plans.files(study.path).values()]


def _others(study: Study) -> Iterator[str]:
    """Files about blocks, and the last decision about the precision."""
    for path in sorted([*study.path.glob("blocks*.json"), study.path / DECISION]):
        if path.is_file():
            yield path.name


def _register(prefix: str) -> Path | None:
    """The register of the claims of a paper with this prefix of studies."""
    return next((one.path for one in registers() if one.path.parent.name.replace("_", "-") == prefix), None)
