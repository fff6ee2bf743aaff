"""The factor `kernel`: order of the boots, images and menus of boot loaders, and what is refused."""

import hashlib
import json
import os
import shutil
import subprocess

import pytest
from support import ROOT, WEIR, load_plugin, play_role, weir

study, kernel = load_plugin("filter/study"), load_plugin("modules/weir_kernel")
KERNELS = ROOT / "ansible/roles/guest_image/files/kernel.sh"

TRIAL = """\
name: trial
question: Which kernel?
testbed: device
seed: 7
repetitions: 2
warmup_s: 0.5
duration_s: 1
storage: {profile: ssd-sata, heads: 1, size_mib: 64}
classes:
  text: {workload: poisson-text, clients: 2, with: {files.count: 8}}
factors:
  kernel: [a, b]
  scheduler: [none, mq-deadline]
duplicate: false
"""

MENU = """\
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
else
   set default="0"
fi
function load_video {
  if [ x$feature_all_video_module = xy ]; then insmod all_video; fi
}
menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option 'gnulinux-simple-1' {
\tload_video
\techo\t'Loading Linux 6.12.9 ...'
\tlinux\t/boot/vmlinuz-6.12.9 root=UUID=1 ro quiet
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1' {
\tmenuentry 'Debian, with Linux 6.12.9' --class os $menuentry_id_option 'gnulinux-6.12.9-advanced-1' {
\t\tlinux\t/boot/vmlinuz-6.12.9 root=UUID=1 ro quiet
\t}
\tmenuentry 'Linux 6.1.0 (recovery mode)' --class os $menuentry_id_option 'gnulinux-6.1.0-recovery-1' {
\t\tlinux\t/boot/vmlinuz-6.1.0 root=UUID=1 ro single
\t}
\tmenuentry 'Debian, with Linux 6.1.0' --class os $menuentry_id_option 'gnulinux-6.1.0-advanced-1' {
\t\tif [ x$grub_platform = xxen ]; then insmod xzio; fi
\t\tlinux\t/boot/vmlinuz-6.1.0 root=UUID=1 ro quiet
\t\tinitrd\t/boot/initrd.img-6.1.0
\t}
}
menuentry "My kernel" {
\tlinux /vmlinuz-6.18.0-mine root=/dev/sda1
}
"""


@pytest.fixture
def planned(tmp_path):
    """Plans a study of that text."""

    def plan(text):
        (tmp_path / "trial.yml").write_text(text)
        return json.loads(weir("plan", tmp_path / "trial.yml", "--json").stdout)

    return plan


def test_each_block_and_kernel_gets_a_boot_of_its_own(planned):
    plan = planned(TRIAL)
    runs = study.runs_of_host(plan["runs"], {"0": "x", "1": "x"}, "x")
    groups = study.kernel_groups(runs, plan)
    assert [(group["block"], group["kernel"]) for group in groups] == [(0, "a"), (0, "b"), (1, "b"), (1, "a")]
    assert [run["id"] for group in groups for run in group["runs"]] == [run["id"] for run in plan["runs"]]
    # After an interruption only what is missing is booted.
    assert [len(group["runs"]) for group in study.kernel_groups(runs[3:], plan)] == [1, 2, 2]


PROGRAMS = {
    # What the two programs of GRUB do, for the folder of a test.
    "grub-editenv": 'file=$1; shift; [ "$1" = unset ] && sed -i "/^$2=/d" "$file"',
    "grub-probe": '[ "$1" = --target=fs ] && echo ext2; true',
}


@pytest.fixture
def boot_loader(tmp_path):
    """Plays a part of the role kernel_boot with a boot loader of the test's own; returns code and output."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "grub.cfg").write_text(MENU)
    (tmp_path / "grubenv").write_text("# GRUB Environment Block\n")
    image(tmp_path / "vmlinuz-6.1.0", "6.1.0")
    variables = {
        "weir_kernel_boot": "grub",
        "weir_remote": True,
        "weir_host_folder": str(tmp_path),
        "weir_file_systems_state": str(tmp_path / "none"),
        "weir_kernels": {"old": {"image": str(tmp_path / "vmlinuz-6.1.0")}},
        "kernel_boot_names": ["old"],
        "kernel_boot_grub": str(tmp_path),
        "preflight_claimant": {"boot_id": "0", "pid": 1, "started_ticks": 0, "study": "trial"},
    }

    def play(part, before=()):
        path = f"{tmp_path}:{os.environ['PATH']}"
        code, said = play_role(tmp_path, "kernel_boot", variables, part, before, PATH=path)
        return code, " ".join(said.split())

    return play


def test_the_entry_of_a_killed_study_is_cleared_and_that_of_others_kept(tmp_path, boot_loader):
    """This test will leave what a playbook leaves that was killed between grub-reboot and the reboot."""
    block, record = tmp_path / "grubenv", tmp_path / "own-kernel.json"
    ours = "gnulinux-advanced-1>gnulinux-6.1.0-advanced-1"
    for chosen, kept in ((ours, False), ("My kernel", True)):
        block.write_text(f"# GRUB Environment Block\nsaved_entry=0\nnext_entry={chosen}\n")
        record.write_text(json.dumps(kernel.running() | {"next_entry": ours}))
        code, said = boot_loader("check")
        assert (code == 0) != kept, said
        assert ("let a reboot that another user has prepared happen" in said) == kept, said
        code, said = boot_loader("back")
        assert code == 0, said
        assert (f"next_entry={chosen}" in block.read_text()) == kept
        assert "saved_entry=0" in block.read_text() and not record.exists()


def test_a_host_whose_kernel_is_not_the_default_is_not_booted(tmp_path, boot_loader):
    if os.geteuid() != 0:
        pytest.skip("needs root for a mount namespace")
    command_line = tmp_path / "cmdline"
    inside = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /proc/cmdline && exec "$@"', command_line)
    # A loader that names no image cannot be checked.
    for booted, said in (
        ("BOOT_IMAGE=(hd0,gpt2)/boot/vmlinuz-6.12.9 root=/dev/vda1 ro", ""),
        (
            "BOOT_IMAGE=/vmlinuz-6.1.0 root=/dev/vda1",
            "default of grub is vmlinuz-6.12.9",
        ),
        ("root=/dev/vda1", ""),
    ):
        command_line.write_text(booted + "\n")
        code, output = boot_loader("check", inside)
        assert (code != 0) == bool(said) and said in output, output


def test_a_study_without_kernels_boots_only_what_a_killed_study_left(planned):
    plan = planned(TRIAL.replace("  kernel: [a, b]\n", ""))
    runs = study.runs_of_host(plan["runs"], {"0": "x", "1": "x"}, "x")
    assert study.kernel_groups(runs, plan) == []
    assert study.kernel_groups(runs, plan, left=True) == [{"kernel": "", "runs": runs}]
    assert study.kernel_groups([], plan, left=True) == []


def test_the_booted_kernel_is_in_testbed_json():
    booted = {"name": "a", "release": "6.1.0"}
    (text,) = study.device_files([], {}, "/run/weir", kernel=booted).values()
    assert json.loads(text)["kernel"] == booted
    (text,) = study.device_files([], {}, "/run/weir", kernel={}).values()
    assert "kernel" not in json.loads(text)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        # The first entry of an image, which may be that of the default.
        ("vmlinuz-6.12.9", "gnulinux-simple-1"),
        ("vmlinuz-6.1.0", "gnulinux-advanced-1>gnulinux-6.1.0-advanced-1"),
        ("vmlinuz-6.18.0-mine", "My kernel"),
        ("vmlinuz-6.1", ""),
    ],
)
def test_the_entry_of_an_image_is_found_in_the_menu_of_grub(name, entry):
    assert kernel.entry(MENU, name) == entry


@pytest.mark.parametrize(
    ("default", "saved", "name"),
    [
        ("0", "", "vmlinuz-6.12.9"),
        ("2", "", "vmlinuz-6.18.0-mine"),
        ("1>2", "", "vmlinuz-6.1.0"),
        ("1>gnulinux-6.1.0-advanced-1", "", "vmlinuz-6.1.0"),
        ("Advanced options for Debian GNU/Linux>Debian, with Linux 6.1.0", "", "vmlinuz-6.1.0"),
        # The first entry of a submenu.
        ("gnulinux-advanced-1", "", "vmlinuz-6.12.9"),
        ("${saved_entry}", "", "vmlinuz-6.12.9"),
        ("${saved_entry}", "My kernel", "vmlinuz-6.18.0-mine"),
        ("7", "", ""),
    ],
)
def test_the_default_of_grub_is_found(tmp_path, default, saved, name):
    (tmp_path / "grub.cfg").write_text(MENU.replace('default="0"', f'default="{default}"'))
    (tmp_path / "grubenv").write_text(f"# GRUB Environment Block\nsaved_entry={saved}\n")
    found = kernel.grub(tmp_path, "")
    assert (found["default_image"], found["pending"]) == (name, "")


def image(path, release="6.18.0-mine", build="#3 SMP PREEMPT_DYNAMIC Fri Nov 27 2026"):
    """A file with the header of a bzImage."""
    content = bytearray(8192)
    content[0x202:0x206] = b"HdrS"
    content[0x20E:0x210] = (0x1000).to_bytes(2, "little")
    said = f"{release} (someone@example) {build}".encode()
    content[0x1200 : 0x1200 + len(said)] = said
    path.write_bytes(content)
    return path


def test_an_image_tells_release_and_build(tmp_path):
    found = kernel.image(image(tmp_path / "bzImage"))
    assert found["release"] == "6.18.0-mine"
    assert found["version"] == "#3 SMP PREEMPT_DYNAMIC Fri Nov 27 2026"
    assert len(found["sha256"]) == 64


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + bytes(8192), bytes(0x202) + b"HdrS"])
def test_a_file_that_is_no_image_is_refused(tmp_path, content):
    (tmp_path / "vmlinux").write_bytes(content)
    with pytest.raises(ValueError, match=r"vmlinux: is no kernel image: name a bzImage"):
        kernel.image(tmp_path / "vmlinux")


def test_a_boot_that_another_user_has_chosen_is_seen(tmp_path):
    (tmp_path / "grub.cfg").write_text(MENU)
    found = kernel.grub(tmp_path, "/boot/vmlinuz-6.1.0")
    assert (found["pending"], found["one_shot"]) == ("", False)
    block = "# GRUB Environment Block\nnext_entry=gnulinux-advanced-1\n"
    (tmp_path / "grubenv").write_text(block + "#" * (1024 - len(block)))
    found = kernel.grub(tmp_path, "/boot/vmlinuz-6.1.0")
    assert found["entry"] == "gnulinux-advanced-1>gnulinux-6.1.0-advanced-1"
    assert (found["pending"], found["one_shot"]) == ("gnulinux-advanced-1", True)


@pytest.mark.parametrize("content", ["", "{", "null", '{"release": "6.1.0"}'])
def test_a_damaged_record_of_the_own_kernel_is_told(tmp_path, content):
    record = tmp_path / "own-kernel.json"
    assert kernel.own(record) is None
    record.write_text(json.dumps(kernel.running()))
    assert kernel.own(record) == kernel.running()
    record.write_text(content)
    with pytest.raises(ValueError, match=r"own-kernel.json: is damaged: .*, and remove the file"):
        kernel.own(record)


def test_the_running_kernel_is_this_one():
    found = kernel.running()
    assert found["release"] == os.uname().release and found["version"] == os.uname().version


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({}, 'weir_kernel_boot is ""'),
        # This machine is never rebooted.
        ({"weir_kernel_boot": "kexec"}, "does not reboot the machine that runs the playbook"),
    ],
)
def test_the_playbook_refuses_to_boot_without_permission(dry_bench, extra, said):
    file = dry_bench.folder / "trial.yml"
    file.write_text(TRIAL)
    code, log = dry_bench.play(file, "-e", json.dumps(extra))
    assert code == 2 and said in " ".join(log.split()), log
    assert not dry_bench.state.exists() and not dry_bench.results.exists()


def test_a_run_under_another_kernel_is_refused_and_nothing_is_touched(tmp_path, planned):
    plan = planned(TRIAL)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    booted = kernel.running() | {"name": "a", "source": "a package", "image_sha256": "0" * 64}
    for told, said in (
        (None, "testbed.json: kernel.name: found none, expected `a`"),
        (booted | {"name": "b"}, "testbed.json: kernel.name: found `b`, expected `a`"),
        (booted | {"release": "6.99.0"}, "does not run kernel `a`: release: found "),
        (booted | {"version": "#99"}, "does not run kernel `a`: version: found "),
        (booted | {"boot_id": "0"}, "does not run kernel `a`: boot_id: found "),
    ):
        testbed = {"devices": {}} | ({"kernel": told} if told else {})
        (tmp_path / "testbed.json").write_text(json.dumps(testbed))
        done = subprocess.run(
            [
                *(WEIR, "run", tmp_path / "plan.json", "--id", plan["runs"][0]["id"]),
                *("--testbed", tmp_path / "testbed.json", "--results", tmp_path / "results"),
                *("--state", tmp_path / "state"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if os.geteuid() != 0:
            pytest.skip("weir run needs root")
        assert done.returncode == 2 and said in done.stderr, done.stderr
        assert "make study STUDY=trial" in done.stderr
        assert not (tmp_path / "results").exists()


def test_virtual_time_has_no_kernels(tmp_path):
    text = TRIAL.replace("testbed: device", "testbed: simulator").replace("[none, mq-deadline]", "[scan]")
    (tmp_path / "trial.yml").write_text(text.replace("duplicate: false\n", ""))
    done = subprocess.run(
        [WEIR, "simulate", tmp_path / "trial.yml", "--out", tmp_path / "results"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and not (tmp_path / "results").exists()
    assert "factors.kernel: is a setting of the kernel without a counterpart in virtual time" in done.stderr


def _package(folder, name, depends="", files=()):
    """Builds a Debian package; returns its paragraph of a list of packages."""
    root = folder / name
    control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example>\nDescription: x\n"
    control += f"Depends: {depends}\n" if depends else ""
    for file, content in [("DEBIAN/control", control), *files]:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(content)
    deb = folder / f"{name}_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", root, deb], check=True, capture_output=True)
    content = deb.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return f"{control}Filename: ./{deb.name}\nSize: {len(content)}\nSHA256: {digest}\n\n"


def test_packages_that_are_split_are_put_together(tmp_path):
    """This test will build packages like those of Linux 7.3 in Debian 13's backports."""
    if absent := [program for program in ("busybox", "cpio") if not shutil.which(program)]:
        pytest.skip(f"{', '.join(absent)} absent: the role guest_image installs them")
    modules = "usr/lib/modules/9.9-x"
    built_in = "".join(f"kernel/{name}.ko\n" for name in ("virtio_pci", "virtio_blk", "ext4"))
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "Packages").write_text(
        _package(repository, "linux-image-x", "linux-image-9.9-x")
        + _package(repository, "linux-image-9.9-x", "linux-binary-9.9-x (= 1), linux-modules-9.9-x")
        + _package(repository, "linux-binary-9.9-x", files=[(f"{modules}/vmlinuz", "the image")])
        + _package(repository, "linux-modules-9.9-x", files=[(f"{modules}/modules.builtin", built_in)])
    )
    (tmp_path / "sources.list").write_text(f"deb [trusted=yes] file:{repository} ./\n")
    (tmp_path / "lists/partial").mkdir(parents=True)
    settings = {
        "Dir::Etc::sourcelist": tmp_path / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": tmp_path / "lists",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Sandbox::User": "root",
    }
    (tmp_path / "apt.conf").write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    environment = os.environ | {"APT_CONFIG": str(tmp_path / "apt.conf")}
    subprocess.run(["apt-get", "update"], env=environment, check=True, capture_output=True)
    done = subprocess.run(
        [KERNELS, tmp_path / "out", "package", "linux-image-x"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/vmlinuz").read_text() == "the image"
    assert (tmp_path / "out/source").read_text() == "linux-image-9.9-x 1\n"
    listed = ["debugfs", "-R", "ls -p /9.9-x", tmp_path / "out/modules.img"]
    assert "modules.builtin" in subprocess.run(listed, check=True, capture_output=True, text=True).stdout


def test_what_is_no_kernel_is_not_packed(tmp_path):
    """This test will build a package without a kernel."""
    _package(tmp_path, "nothing")
    done = subprocess.run(
        [KERNELS, tmp_path / "out", "deb", tmp_path / "nothing_1_all.deb"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "has no file vmlinuz*" in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
