"""Documentation: dead links, index, names of files and commands, examples, words of earlier versions."""

import json
import os
import re
import textwrap
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
from support import ROOT, weir

#: Files whose words are checked, as patterns of their paths.
CHECKED_FOR_WORDS = ("*.md", "*.rs", "*.py", "*.yml", "*.sh", "*.c", "*.h")
#: This file lists the old words.
NOT_CHECKED_FOR_WORDS = {"tests/test_docs.py"}
#: Old names that a page may state, because they still work or because the page says what replaces them.
STATED = {
    "CHANGELOG.md": {"weir attend", "own_work.yml", "verdicts.md", "weir_meeting_port"},
    "ansible/README.md": {"own_work.yml"},
    "ansible/group_vars/all.yml": {"weir_meeting_port"},
    "ansible/roles/joint_runs/vars/main.yml": {"weir_meeting_port"},
    "crates/cli/src/state.rs": {"meeting.token"},
    "tests/test_names.py": {"weir_meeting_port"},
}

#: Phrases of earlier versions, as regular expressions, and what to write instead. Case does not matter.
PHRASES = {
    "came to grief|worked on files fell": "panicked",
    "so-manieth": "run i goes to host i mod N",
    "before they are what they are": "recorded on disk before exec, stopped by PID and start time",
    "processors? (was|were) not given|kept (the )?processors|nobody took away": "CPU steal",
    "after the door": "late peers are told why the run ended",
    "who is silent for": "a host that sends nothing for ... is marked lost",
    "that a bookshop loses no order": "`make durability` kills ... and checks ...",
    "what else is nobody's": "unattributed requests are assigned to the last class",
    "not to be had": "without root",
    "show their full effect": "queue depth is small, so the scheduler decides the order",
    "also where it is no factor": "`variant` changes any field of the study",
    "held by nothing": "not used by RAID, LVM, swap or a mount",
    "id leaves out words": "editing text fields does not invalidate finished runs",
    "preflight: not so": "preflight failed: ...",
    "honest but wide": "too few repetitions",
    "broken when: never": "information only",
    "lines of one look": "lines of the same colour and dash",
    "no classes to part": "`partitioned` needs classes",
    "mends of a reading": "say what was changed",
    "sees? off|saw off|look(s|ed)? round": "drain late peers; poll",
    "weir attend": "weir observe",
    "conductor": "coordinator",
    "snooped": "captured",
    "nobody else's": "owned by no one else",
    "has to be (said|asked)": "is required; must be asked",
    "what is wrong, and what to do|says what to do": "the problem and its remedy",
    "what was seen|what is still to be": "the counts; the unread part",
    "(told|taken) from its content": "detected from its content",
    "foreign keys point at": "foreign keys reference",
    "most connections at once": "maximum simultaneous connections",
    "all that is committed": "committed transactions",
    "has other hosts do it|have it back": "other hosts carry them out; make it reachable",
}

#: Names of earlier versions that are not words of the language, and the new ones. Case matters.
NAMES = {
    "look_round|see_off|GLANCE": "notify_if_done, drain_late_peers, POLL_INTERVAL",
    "Manners|Invitation": "Timeouts, JoinConfig",
    r"(door|arrive|given|apart|several|surroundings|tiers|brick)\.rs": "the file's new name",
    r"(book|plane|gallery|dealing)\.py|(stretch|own_work)\.yml": "the file's new name",
    r"\w+_verdicts\.py|verdicts\.md": "..._claims.py, validity.md",
    r"weir_meeting_port|meeting\.token": "weir_coordination_port, coordination.token",
    r"lab\.rs": "test_network.rs",
    "telling_apart|solvent_ns|look_around|give_up_waiting|put_queue_back": "the function's new name",
}

LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *#*$", re.MULTILINE)
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
PATH = re.compile(
    r"`((?:analysis|ansible|collectors|crates|docs|setup|studies|testbeds|tests|traces|workloads)/[\w./-]+)`"
)

#: Folders that are made and not part of the repository.
MADE = {"target", "results", "__pycache__", "artifacts"}

#: Files that the documentation has a reader write.
EXAMPLES = {
    "crates/scheduler/src/lcfs.rs",
    "studies/albums.yml",
    "testbeds/filesystems/f2fs.yml",
    "workloads/photo-albums.yml",
}
#: Parts of paths that stand for others.
PLACEHOLDER = re.compile("NAME|ROLE|TARGET|HOST|crates/fuzz/artifacts")


@cache
def _files():
    """All files of the repository, without those that are made."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in MADE and not name.startswith("."))
        found += [Path(folder) / name for name in sorted(names)]
    return [file for file in found if not file.is_symlink()]


def _tracked(*patterns):
    """Files of the repository whose path matches a pattern; `*` matches `/`, too."""
    return [file for file in _files() if any(fnmatch(_name(file), pattern) for pattern in patterns)]


def _name(file):
    return str(file.relative_to(ROOT))


def _without_code(text):
    """The text with fenced blocks and code spans blanked."""
    return CODE.sub("", FENCE.sub("", text))


def _anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for match in HEADING.finditer(FENCE.sub("", text)):
        plain = LINK.sub(lambda link: link[0][link[0].index("[") + 1 : link[0].index("]")], match["text"])
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while (anchor := slug if number == 0 else f"{slug}-{number}") in found:
            number += 1
        found.add(anchor)
    return found


def _dead_links(page):
    """Links of a page to a file or a heading of this repository that is not there."""
    text = page.read_text()
    for match in LINK.finditer(_without_code(text)):
        target, _, anchor = match["target"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            yield f"{match['target']}: no such file"
        elif anchor and file.suffix == ".md" and anchor not in _anchors(file.read_text()):
            yield f"{match['target']}: no such heading"


MARKDOWN = _tracked("*.md")


@pytest.mark.parametrize("page", MARKDOWN, ids=_name)
def test_no_link_is_dead(page):
    assert list(_dead_links(page)) == []


def test_dead_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c, d\n[x](page.md#a-b-c-d) [y](#none) [z](no.md)\n`[not](a-link.md)`\n")
    assert list(_dead_links(page)) == ["#none: no such heading", "no.md: no such file"]


def test_the_index_links_every_page():
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / match["target"].partition("#")[0]).resolve()
        for match in LINK.finditer(index.read_text())
    }
    pages = [page for page in _tracked("docs/*.md") if page != index]
    assert [_name(page) for page in pages if page not in linked] == []


@pytest.mark.parametrize("page", MARKDOWN, ids=_name)
def test_named_files_exist(page):
    if page.name == "CHANGELOG.md":
        return
    named = set(PATH.findall(FENCE.sub("", page.read_text()))) - EXAMPLES
    assert [
        name for name in sorted(named) if not PLACEHOLDER.search(name) and not (ROOT / name).exists()
    ] == []


def _commands(page):
    """Calls of weir in a page's blocks and code spans, as lists of words."""
    text = page.read_text()
    blocks = [match[0] for match in FENCE.finditer(text) if re.match(r" *```(console|sh)", match[0])]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    spans = [match[0].strip("`") for match in CODE.finditer(FENCE.sub("", text))]
    for line in lines + spans:
        line = line.strip().removeprefix("$ ").partition(" #")[0]
        for part in re.split(r" *[|;&]+ *", line):
            if part.startswith("weir "):
                yield part.split()


PAGES = [page for page in _tracked("docs/*.md") if page.name not in {"ARCHITECTURE.md", "glossary.md"}]


def test_schedulers_profiles_and_rules_are_documented():
    text = "".join(page.read_text() for page in _tracked("docs/reference/schedulers*.md"))
    known = [
        entry
        for entry in json.loads(weir("list", "schedulers", "--json").stdout)
        if entry["kind"] != "kernel"
    ]
    assert len(known) > 20
    assert [
        entry["name"] for entry in known if f"| `{entry['name']}`" not in text.replace(", `", "| `")
    ] == []
    assert [name for entry in known for name in entry["settings"] if f"`{name}" not in text] == []
    disks = (ROOT / "docs/reference/disks.md").read_text()
    assert [file.stem for file in _tracked("testbeds/disks/*.yml") if f"`{file.stem}`" not in disks] == []
    code = "".join(file.read_text() for file in _tracked("crates/runner/src/*.rs"))
    rules = set(re.findall(r'"(R-[A-Z]+)"', code))
    assert len(rules) > 15
    validity = (ROOT / "docs/reference/validity.md").read_text()
    assert [rule for rule in sorted(rules) if f"| {rule} |" not in validity] == []


@cache
def _help(*names):
    """What `weir NAMES --help` prints; None if there is no such command."""
    done = weir(*names, "--help")
    return done.stdout if done.returncode == 0 else None


def _is_known(command):
    """Whether the subcommands and options of a call exist."""
    names = ()
    while not names or "\nCommands:" in _help(*names):
        word = command[len(names) + 1] if len(command) > len(names) + 1 else "-"
        if not re.match("[a-z]", word):
            break
        names += (word,)
        if _help(*names) is None:
            return False
    options = {word.partition("=")[0] for word in command if re.fullmatch("--[a-z-]+(=.*)?", word)}
    return bool(names) and all(re.search(rf"{option}\b", _help(*names)) for option in options)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_exist(page):
    assert [" ".join(command) for command in _commands(page) if not _is_known(command)] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_make_targets_exist(page):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|[`(]|&& )make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE))
    # OrangeFS is built by its own `make install`.
    assert named - targets - {"install"} == set()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_example_files_are_valid(page, tmp_path):
    """Blocks that begin with the path of a study or workload; `targets:` continues the workload before."""
    files = {}
    for match in FENCE.finditer(page.read_text()):
        block = textwrap.dedent(match[0])
        if not block.startswith("```yaml\n"):
            continue
        text = block.removeprefix("```yaml\n").removesuffix("```")
        if named := re.match(r"# (?:studies|workloads)/([\w-]+\.yml)\n", text):
            files[tmp_path / named[1]] = text
        elif text.startswith("targets:"):
            files[list(files)[-1]] += text
    for file, text in files.items():
        file.write_text(text)
        done = weir("check", file)
        # A trace that nobody has here.
        assert done.returncode == 0 or "/data/traces/week.srt.gz" in done.stderr, done.stderr


def _flat(text):
    """The text in one line, without the marks of comments, so that phrases are found across lines."""
    return re.sub(r"\s*\n\s*(?://[/!]?|#:?|\*|>)?\s*", " ", text)


def _old_words(text, stated=()):
    """Old phrases and names in a text but for those that it may state, with what to write instead."""
    flat = _flat(text)
    for patterns, flags in ((PHRASES, re.IGNORECASE), (NAMES, 0)):
        for pattern, plain in patterns.items():
            for match in re.finditer(rf"\b(?:{pattern})(?!\w)", flat, flags):
                if match[0] in stated:
                    continue
                yield f"{flat[max(0, match.start() - 30) : match.end() + 30]!r}: write: {plain}"


def test_no_old_words():
    files = [file for file in _tracked(*CHECKED_FOR_WORDS) if _name(file) not in NOT_CHECKED_FOR_WORDS]
    assert [
        f"{_name(file)}: {found}"
        for file in files
        for found in _old_words(file.read_text(), STATED.get(_name(file), ()))
    ] == []


def test_old_words_are_found():
    text = "//! It came\n//! to grief; see door.rs, and outdoor.rs.\n"
    assert len(list(_old_words(text))) == 2
    assert len(list(_old_words(text, {"door.rs"}))) == 1
