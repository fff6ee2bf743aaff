"""Packages: what their descriptions say agrees, and what `make packages` built is as they say.

`make test-packages` installs them in clean roots of Debian.
"""

import hashlib
import json
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from support import ROOT

DIST = ROOT / "dist"
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
#: A version at the end of a name (postgresql-15) binds a package to one release.
VERSIONED = re.compile(r"-?[0-9]+(\.[0-9]+)*$")


def _toml(file):
    return tomllib.loads((ROOT / file).read_text())


def _version():
    return _toml("Cargo.toml")["workspace"]["package"]["version"]


def _listed(file):
    """The fields of each line of a list of packages, without comments."""
    lines = (line.split("#")[0].split() for line in (ROOT / file).read_text().splitlines())
    return [line for line in lines if line]


def _section(heading):
    """Names of one section of debian-packages.txt."""
    sections = (ROOT / "setup/debian-packages.txt").read_text().split("\n# ")
    (found,) = (section for section in sections if section.startswith(heading))
    return [line.split()[0] for line in found.splitlines()[1:] if line and not line.startswith("#")]


def test_every_package_has_the_version_of_cargo_toml():
    found = {
        "pyproject.toml": _toml("pyproject.toml")["project"]["version"],
        "CITATION.cff": yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"],
        "ansible/galaxy.yml": yaml.safe_load((ROOT / "ansible/galaxy.yml").read_text())["version"],
        "crates/cli/Cargo.toml": _version()
        if _toml("crates/cli/Cargo.toml")["package"]["version"] == {"workspace": True}
        else "of its own",
    }
    assert found == dict.fromkeys(found, _version())


def test_every_debian_package_has_a_name_in_fedora_and_opensuse():
    wanted = [line[0] for line in _listed("setup/debian-packages.txt")]
    others = _listed("setup/other-packages.txt")
    assert [line[0] for line in others] == wanted, (
        "setup/other-packages.txt: the same names in the same order"
    )
    for line in others:
        assert len(line) == 3, f"setup/other-packages.txt: {line}: DEBIAN FEDORA OPENSUSE"
        for name in line[1:]:
            assert name == "-" or NAME.fullmatch(name), f"setup/other-packages.txt: {name}"
    # Debian's suffix for headers; the others say -devel.
    assert not [line for line in others if any(name.endswith("-dev") for name in line[1:])]


def test_the_debian_package_recommends_what_studies_on_devices_need():
    deb = _toml("crates/cli/Cargo.toml")["package"]["metadata"]["deb"]
    assert deb["recommends"].split(", ") == _section("To run studies on devices")
    assert deb["depends"] == "$auto, libgcc-s1", "what the binary links decides"
    assert "maintainer-scripts" not in deb
    known = [line[0] for line in _listed("setup/debian-packages.txt")]
    for name in (*deb["recommends"].split(", "), *deb["suggests"].split(", ")):
        assert name in known
        assert not VERSIONED.search(name) or name in ("fuse3", "iproute2"), (
            f"{name} has a version in its name"
        )


def test_the_development_container_builds_from_the_containerfile():
    described = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    file = ROOT / ".devcontainer" / described["build"]["dockerfile"]
    text = file.read_text()
    assert file.resolve() == ROOT / "Containerfile"
    assert f"AS {described['build']['target']}\n" in text
    assert described["postCreateCommand"] == "make setup"
    # The list of packages is setup's, not a second one.
    assert "setup/packages.sh" in text and "clang" not in text
    ignored = (ROOT / ".containerignore").read_text().splitlines()
    copied = {name for line in text.splitlines() if line.startswith("COPY ") for name in line.split()[1:-1]}
    assert copied == {line[1:] for line in ignored if line.startswith("!")}


@pytest.fixture(scope="module")
def dist():
    """The folder of what `make packages` built, of this version."""
    sums = DIST / "SHA256SUMS"
    if not sums.exists():
        pytest.skip("needs dist/: call make packages")
    for line in sums.read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((DIST / name).read_bytes()).hexdigest() == digest, name
    if not list(DIST.glob(f"weir_{_version()}-*.deb")):
        pytest.skip("dist/ is of another version: call make packages")
    return DIST


def _one(folder, pattern):
    (found,) = folder.glob(pattern)
    return found


@pytest.fixture(scope="module")
def packaged(dist, tmp_path_factory):
    """The binary of the Debian package."""
    folder = tmp_path_factory.mktemp("deb")
    subprocess.run(["dpkg-deb", "--extract", _one(dist, "*.deb"), folder], check=True)
    return folder / "usr/bin/weir"


def test_wheel_and_debian_package_have_the_same_binary(dist, packaged):
    with zipfile.ZipFile(_one(dist, "*.whl")) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".data/scripts/weir"))
        assert wheel.read(name) == packaged.read_bytes()


def test_the_binary_runs_on_every_supported_system(dist, packaged):
    shown = subprocess.run(["objdump", "-p", packaged], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"NEEDED +(\S+)", shown))
    assert needed <= {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}, needed
    versions = [tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", shown)]
    # Debian 12 has 2.36, Ubuntu 24.04 2.39.
    assert (2, 17) <= max(versions) <= (2, 36)
    tagged = re.search(r"manylinux_2_([0-9]+)_", _one(dist, "*.whl").name)
    assert int(tagged[1]) >= max(versions)[1], (
        "the wheel's name promises an older glibc than the binary needs"
    )
    field = subprocess.run(
        ["dpkg-deb", "--field", _one(dist, "*.deb"), "Depends"], capture_output=True, text=True, check=True
    ).stdout
    assert {part.split()[0] for part in field.split(",")} == {"libc6", "libgcc-s1"}


def test_the_wheel_has_every_python_file_and_no_other(dist, tmp_path):
    built = subprocess.run(
        [ROOT / ".venv/bin/uv", "build", "--wheel", "--out-dir", tmp_path, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        pytest.skip(f"uv cannot build the package for comparison: {built.stderr.splitlines()[-1:]}")

    def files(wheel):
        with zipfile.ZipFile(wheel) as archive:
            names = (name for name in archive.namelist() if not name.endswith("/"))
            return {name for name in names if name.startswith(("weir/", "papers/"))}

    assert files(_one(dist, "*.whl")) == files(_one(tmp_path, "*.whl"))


def test_the_collection_has_the_files_of_the_repository(dist):
    ignored = yaml.safe_load((ROOT / "ansible/galaxy.yml").read_text())["build_ignore"]
    listed = subprocess.run(
        ["git", "ls-files", "ansible"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("needs a checkout of git")
    kept = {Path(name).relative_to("ansible") for name in listed.stdout.splitlines()}
    kept = {name for name in kept if not any(name.match(part) or _below(name, part) for part in ignored)}
    with tarfile.open(_one(dist, "weir-qos-*.tar.gz")) as archive:
        packed = {Path(member.name) for member in archive.getmembers() if not member.isdir()}
    # galaxy.yml becomes MANIFEST.json.
    assert packed - {Path("MANIFEST.json"), Path("FILES.json")} == kept - {Path("galaxy.yml")}


def _below(name, pattern):
    return any(folder.match(pattern) for folder in name.parents)
