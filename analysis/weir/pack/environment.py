"""The environment of an archive: versions of programs, and the analysis itself.

The copy of the analysis computes the numbers again where nothing of weir is installed: it needs Python and
the packages of `environment/requirements.txt`.
"""

import json
import platform
import re
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import weir
from weir import locate
from weir.binary_cache import BinaryCache
from weir.errors import InputError

ENVIRONMENT, SOFTWARE = "environment", "software"
VERSIONS, REQUIREMENTS = f"{ENVIRONMENT}/versions.json", f"{ENVIRONMENT}/requirements.txt"
_PACKAGE = "weir-bench"
#: Files of the project that fix versions of everything else.
_LOCKS = ("requirements.lock", "Cargo.lock", "rust-toolchain.toml", "setup/debian-packages.txt")
#: How a commit ends if tracked files differ from it.
UNCOMMITTED = " with uncommitted changes"
#: Folders of the package that no archive needs: results and claims of weir itself.
_LEFT_OUT = {"sample", "judged_claims", "__pycache__", "lab_config", "tests"}


def versions() -> dict[str, object]:
    """Versions of what computed the numbers: weir, its commit, Python, its packages, and the machine."""
    return {
        "weir": weir.__version__,
        "commit": commit(),
        "binary": _binary(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": packages(),
    }


def packages() -> dict[str, str]:
    """The packages that the analysis needs, with those that they need, and their versions here."""
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    waiting = [(_PACKAGE, frozenset[str]())]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        if name != _PACKAGE:
            found[_canonical(name)] = distribution.version
        for text in distribution.requires or ():
            needed = Requirement(text)
            marker = needed.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or ("",)):
                entry = (_canonical(needed.name), frozenset(needed.extras))
                if entry not in seen:
                    seen.add(entry)
                    waiting.append(entry)
    return dict(sorted(found.items()))


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def commit() -> str | None:
    """The commit of weir's project, with `UNCOMMITTED` if files differ; None outside of its repository."""
    root = locate.project()
    if root is None or not (root / ".git").exists():
        return None
    ask = ["git", "-C", str(root)]
    try:
        head = subprocess.run([*ask, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        state = [*ask, "status", "--porcelain", "--untracked-files=no"]
        changed = subprocess.run(state, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + (UNCOMMITTED if changed.strip() else "")


def _binary() -> str | None:
    try:
        return BinaryCache.find(locate.results()).output("--version").strip()
    except InputError:
        return None


def files() -> Iterator[tuple[str, str | Path]]:
    """The files of an archive that describe and hold the environment: name, and content."""
    yield VERSIONS, json.dumps(versions(), indent=2) + "\n"
    root = locate.project()
    lock = root / "requirements.lock" if root else None
    yield REQUIREMENTS, requirements(packages(), lock.read_text() if lock and lock.exists() else "")
    for name in _LOCKS if root else ():
        if (root / name).is_file():
            yield f"{ENVIRONMENT}/{Path(name).name}", root / name
    yield from software()


def software() -> Iterator[tuple[str, str | Path]]:
    """The analysis, its licence and its version as files of an archive: name, and content."""
    package = Path(weir.__file__).parent
    for folder in (package, package.parent / "papers"):
        for file in sorted(folder.rglob("*")) if folder.is_dir() else ():
            inner = file.relative_to(folder)
            if file.is_file() and not _LEFT_OUT & set(inner.parts) and not inner.name.startswith("."):
                yield f"{SOFTWARE}/{folder.name}/{inner.as_posix()}", file
    for file in sorted((package.parent / "notebooks").glob("*.py")):
        yield f"{SOFTWARE}/notebooks/{file.name}", file
    about = f"{SOFTWARE}/{_PACKAGE.replace('-', '_')}-{weir.__version__}.dist-info/METADATA"
    # `weir.__version__` is read from here, without an installation.
    lines = [f"Requires-Dist: {text}" for text in metadata.requires(_PACKAGE) or () if "extra ==" not in text]
    header = ["Metadata-Version: 2.1", f"Name: {_PACKAGE}", f"Version: {weir.__version__}", *lines]
    yield about, "\n".join(header) + "\n"
    licence = licence_text()
    if licence:
        yield f"{SOFTWARE}/LICENSE", licence


def licence_text() -> str:
    """The licence of weir; empty if no file has it."""
    # The copy of the analysis in an archive has the licence beside the package.
    for folder in (locate.project(), Path(weir.__file__).parent.parent):
        if folder and (folder / "LICENSE").is_file():
            return (folder / "LICENSE").read_text(encoding="utf-8")
    for file in metadata.files(_PACKAGE) or ():
        if file.name == "LICENSE":
            return Path(str(file.locate())).read_text(encoding="utf-8")
    return ""


def requirements(versions: dict[str, str], lock: str) -> str:
    """Requirements of what the analysis needs.

    Args:
        versions: the versions here, by name.
        lock: the project's lock; empty where there is none.

    Returns:
        The lock's own lines, with hashes and for every version of Python, if the versions here are among
        them; else the versions here.
    """
    blocks: dict[str, list[str]] = {}
    needed_by: dict[str, set[str]] = {}
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock):
        if match := re.match(r"([A-Za-z0-9._-]+)==", block):
            name = _canonical(match[1])
            lines = [line for line in block.splitlines() if not line.lstrip().startswith("#")]
            blocks.setdefault(name, []).append("\n".join(lines))
            users = re.findall(r"^    # (?:via |  )([A-Za-z0-9._-]+)", block, re.MULTILINE)
            needed_by.setdefault(name, set()).update(map(_canonical, users))
    if not all(f"{n}=={v}" in "\n".join(blocks.get(n, ())) for n, v in versions.items()):
        return "".join(f"{name}=={version}\n" for name, version in versions.items())
    # Another Python needs other packages: the lock says what each is for.
    needed = set(versions)
    while more := {name for name, users in needed_by.items() if users & needed} - needed:
        needed |= more
    return "\n".join(block for name in sorted(needed) for block in blocks[name]) + "\n"
