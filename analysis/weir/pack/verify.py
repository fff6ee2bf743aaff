"""`weir verify ARCHIVE`: checks the files of an archive, and computes its numbers again from raw rows."""

import hashlib
import json
import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir import derive, figure_numbers, register
from weir.errors import InputError
from weir.load import Study, load_study
from weir.manifest import METRICS, sha256_of
from weir.pack import archive, crate, environment
from weir.pack.archive import Opened
from weir.pack.numbers import CLAIMS, NUMBERS, REPORT, RESULTS, Derived, differences, of_paper, of_study

#: Files below `numbers/` and `claims/` that show numbers and are not compared.
_SHOWN = (REPORT, register.FILE)
_KINDS = {
    "metrics": "metrics of runs",
    "tables": "tables and answers",
    "figures": "numbers of figures",
    "claims": "claims of papers",
}


@dataclass
class Verification:
    """The outcome of a verification.

    Attributes:
        header: the content of `pack.json`.
        sha256: SHA-256 of the archive; empty for a folder.
        checked: statements that hold.
        problems: file and problem of every difference.
        unchecked: statements that were not checked, and why.
        notes: versions that differ from those that computed the numbers.
    """

    header: dict[str, Any]
    sha256: str
    checked: list[str] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The outcome as a document of JSON."""
        problems = [{"file": file, "problem": problem} for file, problem in self.problems]
        return {
            "archive": self.header,
            "sha256": self.sha256 or None,
            "verified": not self.problems,
            "checked": self.checked,
            "problems": problems,
            "unchecked": self.unchecked,
            "notes": self.notes,
        }

    def lines(self) -> Iterator[str]:
        """The outcome as lines of text; the last line says whether the archive is verified."""
        made = f"weir {self.header.get('weir')}, commit {self.header.get('commit') or 'unknown'}"
        yield f"{self.header.get('title')}: made by {made}"
        if self.sha256:
            yield f"SHA-256 of the archive: {self.sha256}. Compare it with the one that its authors published"
        yield from (f"note: {text}" for text in self.notes)
        yield from (f"checked: {text}" for text in self.checked)
        yield from (f"not checked: {text}" for text in self.unchecked)
        yield from (f"differs: {file}: {problem}" for file, problem in self.problems)
        names = len({file for file, _ in self.problems})
        yield f"NOT VERIFIED: {names} files differ" if self.problems else "verified"


def verify(path: Path) -> Verification:
    """Verifies an archive, or the folder that one was unpacked to.

    An archive is unpacked into a temporary folder, which is removed.

    Raises:
        InputError: it is no archive of `weir pack`, or there is no room to unpack it.
    """
    if path.is_dir():
        return _verify(archive.open_folder(path))
    with tempfile.TemporaryDirectory(prefix="weir-") as made:
        free, size = shutil.disk_usage(made).free, path.stat().st_size
        if free < size:
            problem = f"has {free:,} bytes free, and the archive has {size:,}"
            raise InputError(made, problem, "name a folder with more room: TMPDIR=DIR weir verify ARCHIVE")
        return _verify(archive.unpack(path, Path(made)))


def _verify(opened: Opened) -> Verification:
    outcome = Verification(opened.header, opened.sha256, problems=list(opened.problems))
    same = sum(opened.found[name].sha256 == sum for name, sum in opened.sums.items() if name in opened.found)
    if opened.sums:
        outcome.checked.append(f"{same} of {len(opened.sums)} files equal their SHA-256 in {archive.SUMS}")
    _check_crate(opened, outcome)
    _compare_environment(opened, outcome)
    with derive.from_tables():
        studies = list(_load(opened, outcome))
        for study in studies:
            _check_study(study, opened, outcome)
        _check_papers(studies, opened, outcome)
    outcome.unchecked += _statements(opened, studies)
    return outcome


def _load(opened: Opened, outcome: Verification) -> Iterator[Study]:
    for name in opened.header["studies"]:
        path = opened.folder / RESULTS / str(name)
        try:
            study = load_study(path)
        except InputError as error:
            _add(outcome, opened, error)
            outcome.unchecked.append(f"numbers of study {name}: its results cannot be loaded")
            continue
        if study.stray:
            outcome.problems += [
                (f"{RESULTS}/{name}/{run}", "is a run that the plan has not") for run in study.stray
            ]
        sealed = len(study.runs) - len(study.unsealed)
        outcome.checked.append(f"study {name}: {sealed} of {len(study.runs)} runs equal their manifests")
        yield study


def _add(outcome: Verification, opened: Opened, error: InputError) -> None:
    """Adds an error as a problem, unless its file is known to differ."""
    folder, path = opened.folder.resolve(), error.path.resolve()
    name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(error.path)
    if name not in {file for file, _ in outcome.problems}:
        outcome.problems.append((name, error.problem))


def _check_study(study: Study, opened: Opened, outcome: Verification) -> None:
    try:
        computed = list(of_study(study))
    except InputError as error:
        _add(outcome, opened, error)
        outcome.unchecked.append(f"numbers of study {study.name}: a table cannot be read")
        return
    _compare(computed, opened, outcome, f"study {study.name}")
    known = {one.name for one in computed}
    for name in opened.found:
        is_metrics = name.startswith(f"{RESULTS}/{study.name}/") and name.endswith(f"/{METRICS}")
        is_number = name.startswith(f"{NUMBERS}/{study.name}/") and not name.endswith(_SHOWN)
        if (is_metrics or is_number) and name not in known:
            outcome.problems.append((name, "has numbers that do not follow from the raw rows"))


def _compare(computed: Iterable[Derived], opened: Opened, outcome: Verification, of: str) -> None:
    """Compares derived files with those of the archive, and counts the numbers that are equal."""
    files, numbers = Counter[str](), Counter[str]()
    for one in computed:
        if one.name not in opened.found:
            if one.name not in opened.sums:
                outcome.problems.append((one.name, "is missing: the raw rows give it"))
            continue
        kept = (opened.folder / one.name).read_bytes().decode("utf-8", errors="replace")
        found = differences(kept, one.text, one.name)
        outcome.problems += [(one.name, f"computed again from raw rows: {text}") for text in found]
        if not found:
            files[one.kind] += 1
            numbers[one.kind] += _count(one)
    for kind, count in files.items():
        what = f"{numbers[kind]:,} numbers in {count} files" if numbers[kind] else f"{count} files"
        outcome.checked.append(
            f"{of}: {_KINDS[kind]}, computed again from raw rows: {what}, equal to the bit"
        )


def _count(one: Derived) -> int:
    if one.name.endswith(".json"):
        return figure_numbers.count(json.loads(one.text))
    return sum(_is_number(cell) for line in one.text.splitlines() for cell in line.split(","))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_papers(studies: list[Study], opened: Opened, outcome: Verification) -> None:
    for prefix in opened.header.get("papers", []):
        mine = [name for name in opened.found if name.startswith(f"{CLAIMS}/{prefix}/")]
        if len(studies) < len(opened.header["studies"]):
            outcome.unchecked.append(f"claims of {prefix}: a study cannot be loaded")
            continue
        if not mine and not any(name.startswith(f"{CLAIMS}/{prefix}/") for name in opened.sums):
            outcome.unchecked.append(f"claims of {prefix}: the archive has none")
            continue
        judged = of_paper(prefix, studies)
        if judged.why_not:
            outcome.unchecked.append(f"claims of {prefix}: {judged.why_not}")
            continue
        _compare(judged.files, opened, outcome, f"paper {prefix}")
        known = {one.name for one in judged.files}
        for name in mine:
            if name not in known and not name.endswith(_SHOWN):
                outcome.problems.append((name, "has numbers that the notebook does not give"))


def _check_crate(opened: Opened, outcome: Verification) -> None:
    """Compares the checksums that the crate states with the files."""
    path = opened.folder / crate.NAME
    try:
        graph = json.loads(path.read_text(encoding="utf-8"))["@graph"]
        stated = {one["@id"]: one["sha256"] for one in graph if "sha256" in one}
    except (OSError, ValueError, KeyError, TypeError):
        if crate.NAME not in {file for file, _ in outcome.problems}:
            outcome.problems.append((crate.NAME, "is missing or is no RO-Crate"))
        return
    for name, sha256 in stated.items():
        if name in opened.found and opened.found[name].sha256 != sha256:
            outcome.problems.append((name, f"has another SHA-256 than {crate.NAME} states"))


def _compare_environment(opened: Opened, outcome: Verification) -> None:
    """Notes which versions differ from those that computed the numbers."""
    try:
        then = json.loads((opened.folder / environment.VERSIONS).read_text(encoding="utf-8"))
        packages = dict(then["packages"])
    except (OSError, ValueError, KeyError, TypeError):
        outcome.notes.append(f"{environment.VERSIONS} cannot be read: versions are not compared")
        return
    now = environment.packages() | {"python": platform.python_version()}
    before = packages | {"python": then.get("python")}
    # A version that differs may change the last bit of a number, which is then reported.
    wanted = ("python", "numpy", "polars", "scipy", "matplotlib", "pandas", "seaborn", "pyarrow")
    other = [
        f"{name} {now.get(name)} here, {before.get(name)} then"
        for name in wanted
        if now.get(name) != before.get(name)
    ]
    if then.get("machine") != platform.machine():
        other.append(f"machine {platform.machine()} here, {then.get('machine')} then")
    outcome.notes.append("versions: " + ("; ".join(other) if other else "as those that computed the numbers"))
    own = {name: _sha256(content) for name, content in environment.software()}
    packed = {
        name: one.sha256 for name, one in opened.found.items() if name.startswith(f"{environment.SOFTWARE}/")
    }
    differ = {name for name, _ in own.items() ^ packed.items()}
    where = f"differs from that in the archive in {len(differ)} files"
    outcome.notes.append(f"the analysis that verifies {where if differ else 'equals that in the archive'}")


def _sha256(content: str | Path) -> str:
    return sha256_of(content) if isinstance(content, Path) else hashlib.sha256(content.encode()).hexdigest()


def _statements(opened: Opened, studies: list[Study]) -> Iterator[str]:
    """What an archive states and nobody can check from the archive alone."""
    yield (
        "that the raw rows are what was measured: checksums show damage, not who wrote a file. "
        "Runs in virtual time can be repeated: weir simulate"
    )
    devices = sum(run.testbed != "simulator" for study in studies for run in study.runs)
    virtual = sum(len(study.runs) for study in studies) - devices
    if devices:
        yield f"host records (host.json) of {devices} runs on devices: statements of their programs"
    if virtual:
        yield f"the program that simulated {virtual} runs: they can be repeated, but were not"
    yield "validity (verdict.json) and statistics of load generators (observed.json): statements of the run"
    unsealed = sum(len(study.unsealed) for study in studies)
    if unsealed:
        yield f"{unsealed} runs without a manifest, of a version of weir that wrote none"
    yield f"pages ({NUMBERS}/*/{REPORT}), methods.md and README.md beyond their checksums"
    if any(name.startswith(f"{CLAIMS}/") for name in opened.found):
        yield "claims that need studies which are not in the archive"
