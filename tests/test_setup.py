"""Set-up: what it says where something is missing, and that it is quick where nothing is."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import pytest
from support import ROOT

TRIPLE = "x86_64-unknown-linux-gnu"


def _script(folder, name, *, as_nobody=False, **environment):
    command = [folder / "setup" / name]
    if as_nobody:
        command = ["setpriv", "--reuid=65534", "--clear-groups", *command]
    return subprocess.run(
        command,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _refused(done, *parts):
    """It ended with exit code 2 and one line on stderr, which holds these parts."""
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    for part in parts:
        assert part in line


@pytest.fixture
def copy(tmp_path):
    """The set-up scripts in a folder of their own, which anybody may read."""
    folder = tmp_path / "weir"
    shutil.copytree(ROOT / "setup", folder / "setup")
    for name in ("Cargo.toml", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def _open_to_all(folder):
    """Lets anybody into a folder of a test, through all those above it that are tests', too."""
    below_tmp = [above for above in folder.parents if Path(tempfile.gettempdir()) in above.parents]
    for one in (folder, *below_tmp):
        one.chmod(0o755)


def _path_with(folder, *programs):
    """A search path that holds only these programs."""
    places = folder / "bin"
    places.mkdir()
    for program in programs:
        (places / program).symlink_to(shutil.which(program))
    return str(places)


def _program(folder, name, *lines):
    """A shell script in place of a program; returns its folder."""
    places = folder / "bin"
    places.mkdir(parents=True, exist_ok=True)
    file = places / name
    file.unlink(missing_ok=True)
    file.write_text("\n".join(["#!/bin/bash", *lines, ""]))
    file.chmod(0o755)
    return places


def _cargo(folder, version):
    return _program(folder, "cargo", f"echo 'cargo {version} (fd9c4297c 2022-07-01)'")


@pytest.fixture
def machine(copy):
    """A copy of the set-up scripts on a machine whose only toolchains are those that a test makes.

    Its search path is `copy/bin`; Ubuntu's toolchains are in `copy/usr/lib/rust-VERSION`.
    """
    script = copy / "setup/rust.sh"
    text = script.read_text()
    assert text.count(" /usr/bin/cargo /usr/lib/") == 1
    script.write_text(text.replace(" /usr/bin/cargo /usr/lib/", f" {copy}/usr/lib/"))
    programs = ("bash", "cat", "dirname", "env", "grep", "head", "ln", "mkdir", "sed", "sort", "tr")
    _path_with(copy, *programs)
    return copy


def _run(machine, name, *arguments, as_nobody=False, path=()):
    command = [machine / "setup" / name, *arguments]
    if as_nobody:
        command = [shutil.which("setpriv"), "--reuid=65534", "--clear-groups", *command]
    return subprocess.run(
        command,
        env={"PATH": ":".join(str(folder) for folder in path or [machine / "bin"])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _apt_knows(machine, versions):
    """Makes an apt-cache that knows these packages by name and version."""
    known = [f"[{name}]='{version}'" for name, version in versions.items()]
    _program(
        machine,
        "apt-cache",
        f"declare -A known=({' '.join(known)})",
        'if [[ $1 == pkgnames ]]; then printf "%s\\n" "${!known[@]}"',
        'elif [[ -n ${known[$2]:-} ]]; then printf "%s:\\n  Candidate: %s\\n" "$2" "${known[$2]}"; fi',
    )


DEBIAN_12 = {"rustc": "1.63.0+dfsg1-2", "rustc-web": "1.96.0+dfsg1-1~deb12u2"}
UBUNTU = {
    "rustc": "1.75.0+dfsg0ubuntu1",
    "rustc-1.85": "1.85.1",
    "rustc-1.91": "1.91.1",
    "rustc-1.91-src": "9",
}


def test_no_rust(machine):
    _refused(_run(machine, "rust.sh"), "cargo is not in the PATH", "https://rustup.rs")


def test_a_rust_that_is_too_old(machine):
    _cargo(machine, "1.63.0")
    _refused(_run(machine, "rust.sh"), "cargo is 1.63.0, too old", "https://rustup.rs")


@pytest.mark.parametrize("version", ["1.89.0", "1.100.1", "2.0.0"])
def test_a_rust_that_is_new_enough_is_used_as_it_is(machine, version):
    _cargo(machine, version)
    done = _run(machine, "rust.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (machine / ".weir/rust").exists()
    assert _run(machine, "rust.sh", "--packages").stdout == ""


def test_an_old_rust_stays_and_a_newer_one_elsewhere_gets_links(machine):
    _cargo(machine, "1.75.0")
    old = (machine / "bin/cargo").read_bytes()
    newer = _cargo(machine / "usr/lib/rust-1.91", "1.91.1")
    _program(machine / "usr/lib/rust-1.91", "rustc")
    done = _run(machine, "rust.sh")
    assert (done.returncode, done.stderr) == (0, "")
    assert "cargo is 1.75.0, too old" in done.stdout and str(newer) in done.stdout
    folder = machine / ".weir/rust"
    links = {link.name: link.readlink() for link in folder.iterdir()}
    assert links == {name: newer / name for name in ("cargo", "rustc")}
    assert (machine / "bin/cargo").read_bytes() == old
    # make puts the links first in the PATH. What is installed later is linked too, and nothing is said again.
    _program(machine / "usr/lib/rust-1.91", "rustfmt")
    again = _run(machine, "rust.sh", path=[folder, machine / "bin"])
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert (folder / "rustfmt").exists()
    assert "cargo is 1.75.0" in _run(machine, "rust.sh", "--why", path=[folder, machine / "bin"]).stdout


@pytest.mark.parametrize(
    ("known", "packages"),
    [
        (DEBIAN_12, "cargo-web rustc-web"),
        ({"rustc": "1.96.1+dfsg1-2", "rustc-web": "1.97.0"}, "cargo rustc"),
        (UBUNTU, "cargo-1.91 rustc-1.91"),
        ({"rustc": "1.63.0", "rustc-web": "1.85.0", "rustc-1.88": "1.88.0"}, ""),
    ],
    ids=["Debian 12", "Debian's own is new enough", "Ubuntu", "none is new enough"],
)
def test_packages_that_bring_rust(machine, known, packages):
    _apt_knows(machine, known)
    assert _run(machine, "rust.sh", "--packages").stdout.split() == packages.split()


def test_no_package_replaces_an_older_rust(machine):
    if os.geteuid() != 0:
        pytest.skip("needs root, whose packages are installed")
    (machine / "setup/debian-packages.txt").write_text("bash   is there\n")
    _program(machine, "dpkg-query", "echo installed bash")
    _cargo(machine, "1.63.0")
    _apt_knows(machine, DEBIAN_12)
    # It fails as apt-get does where a package would have to go.
    called = machine / "called"
    _program(machine, "apt-get", f'echo "$*" >>{called}', '[[ "$*" == *update* ]]')
    done = _run(machine, "packages.sh")
    _refused(
        done, "cargo is 1.63.0, too old", "cargo-web rustc-web would replace packages", "https://rustup.rs"
    )
    update, install = called.read_text().splitlines()
    assert update.endswith("update")
    assert "--simulate --no-remove install cargo-web rustc-web" in install


def test_no_root(machine):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become nobody")
    (machine / "setup/debian-packages.txt").write_text(
        "bash   is there\nno-such-package-as-this   does nothing\n"
    )
    _program(machine, "dpkg-query", "echo installed bash")
    _apt_knows(machine, UBUNTU)
    _open_to_all(machine)
    done = _run(machine, "packages.sh", as_nobody=True)
    assert (done.returncode, done.stdout) == (2, "")
    package, rust, remedy = done.stderr.splitlines()
    assert package == "setup: missing: no-such-package-as-this (does nothing)"
    assert "cargo is not in the PATH" in rust and "https://rustup.rs" in rust
    command = "sudo apt-get install --no-install-recommends no-such-package-as-this cargo-1.91 rustc-1.91"
    assert command in remedy


def test_no_root_and_only_rust_is_missing(machine):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become nobody")
    (machine / "setup/debian-packages.txt").write_text("bash   is there\n")
    _program(machine, "dpkg-query", "echo installed bash")
    _apt_knows(machine, {"rustc": "1.63.0"})
    _open_to_all(machine)
    _refused(_run(machine, "packages.sh", as_nobody=True), "cargo is not in the PATH", "https://rustup.rs")


def test_packages_that_only_devices_need_are_left_out_without_root(machine):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become nobody")
    (machine / "setup/debian-packages.txt").write_text(
        "# To build\nbash   is there\n\n# To run studies\nno-such-package-as-this   is not\n"
    )
    _program(machine, "dpkg-query", "echo installed bash")
    _cargo(machine, "1.89.0")
    _open_to_all(machine)
    done = _run(machine, "packages.sh", as_nobody=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no-such-package-as-this (studies in virtual time do without)" in done.stdout


def test_the_list_for_an_administrator(machine):
    (machine / "setup/debian-packages.txt").write_text(
        "# To build\nclang   compiles\n# To run studies\nfio   sends\n"
    )
    _apt_knows(machine, DEBIAN_12)
    done = _run(machine, "packages.sh", "--print")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["clang", "fio", "cargo-web", "rustc-web"]


def test_the_first_build_says_how_long_it_takes_and_took(machine):
    """This test will build with a cargo that only makes the file; a second build is silent."""
    _program(machine, "cargo", "install -D /dev/null target/release/weir")
    path = [machine / "bin", "/usr/bin", "/bin"]
    first, again = (_run(machine, "build.sh", path=path) for _ in range(2))
    assert first.returncode == again.returncode == 0, first.stderr
    assert "about 4 minutes on 2 processors" in first.stdout
    assert re.search(r"^setup: built in 0 min \d+ s$", first.stdout, re.MULTILINE)
    assert again.stdout == ""


def test_a_system_without_dpkg(machine):
    done = _run(machine, "packages.sh")
    _refused(done, "this system has no dpkg", "clang", "WEIR_PACKAGES=skip")


@pytest.mark.parametrize("script", ["packages.sh", "rust.sh"])
def test_an_unknown_argument(machine, script):
    _refused(_run(machine, script, "--prnt"), "unknown argument --prnt")


def test_packages_that_are_there_need_no_root_and_no_network(copy):
    (copy / "setup/debian-packages.txt").write_text("# a comment\n\nbash   is there\ncoreutils   too\n")
    done = _script(copy, "packages.sh")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_network_for_python(copy):
    # A proxy that nobody listens at stands for a network that is not there.
    nowhere = {
        name: "http://127.0.0.1:9" for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    }
    nowhere |= {
        "PIP_INDEX_URL": "http://127.0.0.1:9",
        "PIP_RETRIES": "0",
        "PIP_NO_CACHE_DIR": "1",
        "NO_PROXY": "",
    }
    done = _script(copy, "python.sh", **nowhere)
    _refused(done, "check the network", ".weir/logs/python.log")
    assert (copy / ".weir/logs/python.log").stat().st_size > 0


def test_what_is_set_up_is_passed_over_in_silence():
    names = ("packages.sh", "rust.sh", "python.sh", "crates.sh")
    for name in names:
        assert _script(ROOT, name).returncode == 0
    began = time.monotonic()
    for name in names:
        done = _script(ROOT, name)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # Coarse: a set-up that does its work again takes minutes.
    assert time.monotonic() - began < 20


def test_no_locked_crate_needs_a_newer_rust():
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--locked", "--offline", "--format-version=1", "--filter-platform", TRIPLE],
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
    )
    used = {node["id"] for node in metadata["resolve"]["nodes"]}
    promised = _version(
        tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    )
    newer = [
        f"{package['name']} {package['version']} needs Rust {package['rust_version']}"
        for package in metadata["packages"]
        if package["id"] in used and _version(package["rust_version"] or "1") > promised
    ]
    assert newer == []


def _version(text):
    """Major, minor, patch: absent parts are 0."""
    return [*(int(part) for part in text.split(".")), 0, 0][:3]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("study", "STUDI=quick"), "STUDI: unknown variable, did you mean `STUDY`?"),
        (("study", "RETRY=yes"), "RETRY=yes: say RETRY=invalid"),
        (("hosts", "KIND=nets"), "KIND=nets: unknown kind, did you mean `netns`?"),
        (("hosts", "N=0"), "N=0: give a whole number of 1 or more"),
        (("molecule", "ROLE=ngnix"), "ROLE=ngnix: unknown role, did you mean `nginx`?"),
        (("test-fresh", "DIST=bookwurm"), "DIST=bookwurm: unknown distribution, did you mean `bookworm`?"),
        (("test-fresh", "DIST=noble"), "DIST=noble: unknown distribution (known: bookworm, trixie)"),
        (("test-packages", "DIST=nobel"), "DIST=nobel: unknown distribution, did you mean `noble`?"),
        (("compare", "A=results/quick"), "B: compare needs it"),
        (("watch", "STUDY=quikc"), "STUDY=quikc: unknown study, did you mean `quick`?"),
        (("export", "TO=tables", "FORM=xls"), "FORM=xls: unknown value (known: parquet, csv, arrow)"),
        (("studi",), "No rule to make target 'studi'"),
    ],
)
def test_make_refuses_what_it_does_not_know(arguments, problem):
    done = subprocess.run(
        ["make", "-n", *arguments],
        cwd=ROOT,
        env=os.environ | {"LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and problem in done.stderr


def test_arguments_are_checked_after_set_up_where_python_was_missing(machine):
    shutil.copy(ROOT / "Makefile", machine)
    (machine / "studies").mkdir()
    (machine / "studies/quick.yml").touch()
    for name in ("packages.sh", "rust.sh", "crates.sh", "python.sh", "build.sh"):
        _program(machine, name)
        (machine / "bin" / name).replace(machine / "setup" / name)
    # It installs Python.
    (machine / "setup/packages.sh").write_text(f"#!/bin/bash\nln -s {sys.executable} {machine}/bin/python3\n")
    for program in ("make", "sh"):
        (machine / "bin" / program).symlink_to(shutil.which(program))
    done = subprocess.run(
        ["make", "study", "RETRY=yes"],
        cwd=machine,
        env={"PATH": str(machine / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "RETRY=yes: say RETRY=invalid" in done.stderr


def test_make_help_lists_the_targets():
    shown = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("setup", "study", "figures", "report", "test", "lint", "bench", "clean"):
        assert f"make {target} " in shown
    for group in ("Studies", "Hosts", "Analysis", "Tests", "Benchmarks", "Development"):
        assert f"\n{group}\n" in shown
