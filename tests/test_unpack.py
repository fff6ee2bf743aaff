"""The archive of a host, which is not trusted: only what was asked for comes out of it, into a new folder."""

import contextlib
import gzip
import io
import json
import os
import re
import subprocess
import tarfile

import pytest
from support import ROOT, load_plugin

module = load_plugin("modules/weir_unpack")
RUN = "0123456789ab"
GOOD = {
    f"{RUN}/run.json": b'{"id": "0123456789ab"}',
    f"{RUN}/requests.parquet": b"x" * 3000,
    f"{RUN}/logs/fio-bulk/clat.1.log": b"1, 2\n",
    f"{RUN}/verdict.json": b'{"status": "valid"}',
}
MIB = 1 << 20


def test_every_table_of_a_run_may_come_out():
    tables = re.findall(
        r"^## (\S+\.parquet)$", (ROOT / "docs/reference/columns.md").read_text(), re.MULTILINE
    )
    assert len(tables) == 5
    # The interactions of sessions are written by weir generate, not by a run.
    assert set(tables) - {"sessions.parquet"} <= module.FILES


def _entry(name, content=b"", kind=tarfile.REGTYPE, size=None, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(content) if size is None else size, link
    return info, content


def _packed(entries, form=tarfile.GNU_FORMAT):
    raw = io.BytesIO()
    for info, content in entries:
        raw.write(info.tobuf(form))
        raw.write(content + b"\0" * (-len(content) % 512))
    raw.write(b"\0" * 1024)
    return gzip.compress(raw.getvalue())


def _good():
    return [_entry(name, content) for name, content in GOOD.items()]


def _unpack(folder, pack, names=(RUN,), limit_bytes=MIB):
    partial = module.new_folder(folder, ".one.partial")
    module.unpack(io.BytesIO(pack), partial, names, limit_bytes)
    return partial


def _files(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_what_was_asked_for_comes_out(tmp_path):
    folders = [_entry(f"{RUN}/", kind=tarfile.DIRTYPE), _entry("./", kind=tarfile.DIRTYPE)]
    partial = _unpack(tmp_path, _packed(folders + _good()))
    assert _files(partial) == GOOD
    assert module.put_in_place(partial, tmp_path, False) == ([RUN], [])
    assert _files(tmp_path / RUN) == {name.removeprefix(f"{RUN}/"): content for name, content in GOOD.items()}
    assert os.listdir(partial) == []


@pytest.mark.parametrize("arguments", [(RUN,), (".",), (f"./{RUN}",)])
def test_what_tar_packs_comes_out(tmp_path, arguments):
    """This test will have tar(1) pack a folder as the playbook does."""
    for name, content in GOOD.items():
        (tmp_path / "there" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "there" / name).write_bytes(content)
    command = ["tar", "--format=gnu", "-C", tmp_path / "there", "-czf", "-", *arguments]
    pack = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    assert _files(_unpack(tmp_path / "here", pack)) == GOOD


LINK = {"kind": tarfile.SYMTYPE, "link": "/etc"}
EVIL = {
    "absolute": [_entry("/etc/weir-evil", b"x")],
    "above": [_entry(f"{RUN}/../../evil", b"x")],
    "above at once": [_entry("../run.json", b"x")],
    "symlink": [_entry(f"{RUN}/run.json", **LINK)],
    "symlink, then a file through it": [_entry(f"{RUN}/logs", **LINK), _entry(f"{RUN}/logs/weir-evil", b"x")],
    "folder as a symlink": [_entry(RUN, **LINK), _entry(f"{RUN}/run.json", b"x")],
    "hard link": [_entry(f"{RUN}/run.json", kind=tarfile.LNKTYPE, link="/etc/passwd")],
    "character device": [_entry(f"{RUN}/run.json", kind=tarfile.CHRTYPE)],
    "block device": [_entry(f"{RUN}/run.json", kind=tarfile.BLKTYPE)],
    "fifo": [_entry(f"{RUN}/run.json", kind=tarfile.FIFOTYPE)],
    "sparse": [_entry(f"{RUN}/run.json", kind=tarfile.GNUTYPE_SPARSE)],
    "contiguous": [_entry(f"{RUN}/run.json", kind=tarfile.CONTTYPE)],
    "extended header": [_entry("x", b"13 path=/etc/\n", kind=tarfile.XHDTYPE)],
    "long name": [_entry("././@LongLink", b"x" * 200, kind=tarfile.GNUTYPE_LONGNAME)],
    "the same name twice": [*_good(), _entry(f"{RUN}/run.json", b"other")],
    "10 GiB of zeros": [_entry(f"{RUN}/requests.parquet", size=10 << 30)],
    "too much in small parts": [_entry(f"{RUN}/logs/{n}", b"x" * (MIB // 4)) for n in range(5)],
    "a run that was not asked for": [_entry("ba9876543210/run.json", b"x")],
    "a file that no run has": [_entry(f"{RUN}/evil.sh", b"x")],
    "a hidden file": [_entry(f"{RUN}/.bashrc", b"x")],
    "a hidden log": [_entry(f"{RUN}/logs/.x", b"x")],
    "a file in place of the folder": [_entry(RUN, b"x")],
    "a folder in place of a file": [_entry(f"{RUN}/run.json/", kind=tarfile.DIRTYPE)],
    "a deep folder": [_entry(f"{RUN}/logs/a/b/c/d/e", b"x")],
    "the plan": [_entry("plan.json", b"x")],
    "a name with a line in it": [_entry(f"{RUN}/logs/a\nb", b"x")],
    "a name that is empty": [_entry("", b"x")],
    "a folder with content": [_entry(f"{RUN}/", kind=tarfile.DIRTYPE, size=512)],
}


@pytest.mark.parametrize("entries", EVIL.values(), ids=EVIL)
def test_anything_else_is_refused(tmp_path, entries):
    """This test will feed an archive of every evil kind; what lies beside the new folder stays as it is."""
    (tmp_path / RUN).mkdir()
    (tmp_path / RUN / "run.json").write_text("mine")
    with pytest.raises(module.Refused):
        _unpack(tmp_path, _packed(entries))
    assert sorted(os.listdir(tmp_path)) == [".one.partial", RUN]
    assert _files(tmp_path / RUN) == {"run.json": b"mine"} and not os.path.exists("/etc/weir-evil")
    written = [path for path in (tmp_path / ".one.partial").rglob("*") if not path.is_dir()]
    assert all(path.is_file() and not path.is_symlink() for path in written)
    assert sum(path.stat().st_size for path in written) <= MIB


@pytest.mark.parametrize("cut", [0, 10, 100, -300])
def test_what_is_cut_short_is_refused(tmp_path, cut):
    pack = _packed([_entry(f"{RUN}/requests.parquet", os.urandom(4096))])
    with pytest.raises(module.Refused):
        _unpack(tmp_path, pack[:cut])


def test_a_flipped_bit_of_a_header_is_refused_or_means_nothing(tmp_path):
    """This test will flip a bit of each byte of the first header; some of its checksum mean nothing."""
    raw = gzip.decompress(_packed(_good()))
    for bit in (8 * byte + byte % 7 for byte in range(345)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        with contextlib.suppress(module.Refused):
            found = _files(_unpack(tmp_path, gzip.compress(bytes(damaged), 1)))
            assert found == GOOD and bit // 8 in range(148, 156)
        assert os.listdir(tmp_path) == [".one.partial"]


@pytest.mark.parametrize(
    ("status", "retry", "goes"),
    [
        ("valid", True, False),
        ("invalid", False, False),
        ("invalid", True, True),
        ("skipped", False, True),
        (None, True, False),
    ],
)
def test_a_folder_that_is_there_goes_only_if_it_was_judged_so(tmp_path, status, retry, goes):
    place = tmp_path / RUN
    place.mkdir()
    if status:
        (place / "verdict.json").write_text(json.dumps({"status": status}))
    (place / "old").touch()
    partial = _unpack(tmp_path, _packed(_good()))
    assert module.put_in_place(partial, tmp_path, retry) == (([RUN], []) if goes else ([], [RUN]))
    assert (place / "old").exists() is not goes
    assert sorted(os.listdir(tmp_path)) == [".one.partial", RUN]


@pytest.mark.parametrize("place", ["symlink", "file"])
def test_what_is_no_folder_stays(tmp_path, place):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/verdict.json").write_text('{"status": "skipped"}')
    if place == "symlink":
        (tmp_path / RUN).symlink_to("other")
    else:
        (tmp_path / RUN).write_text("mine")
    partial = _unpack(tmp_path, _packed(_good()))
    assert module.put_in_place(partial, tmp_path, True) == ([], [RUN])
    assert os.listdir(tmp_path / "other") == ["verdict.json"]


@pytest.mark.parametrize("name", ["partial", "..", "./x", ".a/b", "/tmp/.x", ".", ".a b"])
def test_a_partial_folder_has_a_name_of_its_own(tmp_path, name):
    with pytest.raises(module.Refused):
        module.new_folder(tmp_path, name)
    assert os.listdir(tmp_path) == []


def test_a_partial_folder_is_new(tmp_path):
    (tmp_path / ".one.partial").mkdir()
    (tmp_path / ".one.partial/left").touch()
    assert os.listdir(module.new_folder(tmp_path, ".one.partial")) == []
    (tmp_path / ".two.partial").symlink_to("/etc")
    with pytest.raises(module.Refused, match="is no folder"):
        module.new_folder(tmp_path, ".two.partial")
