"""Rule R-HOST: what differs between the hosts of a study's runs, and what may differ by plan."""

import json

import pytest
import synthetic

from weir.cli import main
from weir.load import load_study
from weir.mixed_hosts import mixed_hosts
from weir.report import render


def host(name="a", release="6.18.0", commit="c0ffee", model="CPU X", devices=None):
    disk = {"model": "Disk 7200", "size_bytes": 1 << 40, "number": "8:0"}
    return {
        "system": {"host_name": name, "kernel_release": release, "kernel_version": f"#1 of {release}"},
        "cpu": {"model": model},
        "devices": {"sda": disk} if devices is None else devices,
        "weir": {"version": "0.1.0", "commit": commit},
    }


@pytest.fixture
def folder(tmp_path):
    """Four cells in two blocks on one host."""
    folder = synthetic.write_study(tmp_path / "s", loads=(0.5,), repetitions=2, duration_s=1.0)
    for path in folder.glob("*/run.json"):
        put(path.parent, host())
    return folder


def put(run, document, media="real disk by-id/x"):
    (run / "host.json").write_text(json.dumps(document))
    observed = json.loads((run / "observed.json").read_text())
    observed["media"] = {"text": media, "video": media}
    (run / "observed.json").write_text(json.dumps(observed))


def runs(folder, block=None):
    found = sorted(path.parent for path in folder.glob("*/run.json"))
    return [run for run in found if block is None or run.name.endswith(f"-{block}")]


def facts(folder):
    return [found.fact for found in mixed_hosts(load_study(folder))]


def test_one_host_is_no_finding(folder, capsys):
    assert facts(folder) == []
    assert main(["summary", str(folder), "--strict"]) == 0
    assert "R-HOST" not in capsys.readouterr().out
    assert "Mixed hosts" not in render(load_study(folder))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"release": "6.12.1"}, ["kernel release", "kernel build"]),
        ({"commit": "c0ffee-dirty"}, ["commit of weir"]),
        ({"model": "CPU Y"}, ["CPU model"]),
        ({"devices": {"sda": {"model": "Disk 5400", "size_bytes": 1 << 40}}}, ["devices"]),
        ({"devices": {"sda": {"model": "Disk 7200", "size_bytes": 1 << 39}}}, ["devices"]),
    ],
)
def test_each_fact_that_differs_is_found(folder, change, found, capsys):
    put(runs(folder)[0], host(**change))
    assert facts(folder) == found
    assert main(["summary", str(folder)]) == 0
    assert main(["summary", str(folder), "--strict"]) == 4
    said = capsys.readouterr().out
    assert "warning: R-HOST: runs" in said and f"differ in {found[0]}" in said and "LABEL=NAME" in said
    assert "Mixed hosts" in render(load_study(folder))


def test_a_finding_tells_whether_blocks_are_mixed(folder):
    for run in runs(folder, block=1):
        put(run, host(release="6.12.1"))
    between, _ = mixed_hosts(load_study(folder))
    assert not between.within_blocks and "comparisons within blocks hold" in between.sentence()
    assert "6.18.0 in 4 runs, 6.12.1 in 4 runs" in between.sentence()
    put(runs(folder, block=0)[0], host(release="6.12.1"))
    within, _ = mixed_hosts(load_study(folder))
    assert within.within_blocks and "comparisons are between hosts" in within.sentence()


def test_hosts_of_one_kind_with_disks_of_their_own_are_no_finding(folder):
    """Blocks are assigned to two hosts: other names, numbers and ids of disks of one model."""
    for run in runs(folder, block=1):
        disk = {"model": "Disk 7200", "size_bytes": 1 << 40, "number": "259:1"}
        put(run, host(name="b", devices={"nvme0n1": disk}), media="real disk by-id/y")
    assert facts(folder) == []
    # Hosts of one name: the playbook knows which host a block was assigned to.
    for run in runs(folder, block=1):
        put(run, host(name="a"), media="real disk by-id/y")
    assert facts(folder) == ["disks of host a"]
    (folder / "blocks.json").write_text(json.dumps({"0": "a", "1": "b"}))
    assert facts(folder) == []


def test_another_disk_of_the_same_host_is_found_in_its_cells(folder):
    for run in runs(folder, block=1)[:2]:
        put(run, host(), media="real disk by-id/y")
    (found,) = mixed_hosts(load_study(folder))
    assert found.fact == "disks of host a" and len(found.cells) == 2
    assert "text on real disk by-id/y" in found.sentence()
    # Other cells may be on other devices by design.
    for run in runs(folder):
        medium = "real disk by-id/y" if "partitioned" in run.name else "real disk by-id/x"
        put(run, host(devices={"sda": {}, "sdb": {}} if "partitioned" in run.name else None), media=medium)
    assert facts(folder) == []


def test_several_hosts_of_each_run_are_no_finding(folder):
    """Runs of two clients at once: the same two hosts carry out each run."""
    for place, run in enumerate(runs(folder)):
        (run / "host.json").unlink()
        both = {"a": host(), "b": host(name="b", model="CPU Y")}
        for name, document in sorted(both.items(), reverse=place % 2 == 1):
            (run / "hosts" / name).mkdir(parents=True)
            (run / "hosts" / name / "host.json").write_text(json.dumps(document))
    assert facts(folder) == []
    # A host that replaced a lost one.
    (runs(folder)[0] / "hosts/b/host.json").write_text(json.dumps(host(name="c", model="CPU Z")))
    assert facts(folder) == ["CPU model"]


def test_a_label_declares_the_difference(tmp_path):
    for label, release in (("old", "6.12.1"), ("new", "6.18.0")):
        folder = synthetic.write_study(
            tmp_path / "s", loads=(0.5,), repetitions=2, duration_s=1.0, label=label
        )
        for run in folder.glob(f"{label}-*"):
            put(run, host(release=release))
    assert facts(folder) == []
    put(next(iter(sorted(folder.glob("new-*")))), host(release="6.12.1"))
    mixed = mixed_hosts(load_study(folder))
    assert [(found.fact, found.label) for found in mixed] == [
        ("kernel release", "new"),
        ("kernel build", "new"),
    ]
    assert "runs of label new differ" in mixed[0].sentence()
    assert facts(tmp_path / "s@old") == [] and facts(tmp_path / "s@new") == ["kernel release", "kernel build"]


def test_invalid_runs_and_virtual_time_mix_nothing(folder, tmp_path):
    put(runs(folder)[0], host(release="6.12.1"))
    synthetic.set_validity(runs(folder)[0], "invalid", "R-LATE", "late")
    assert facts(folder) == []
    virtual = synthetic.write_study(tmp_path / "v", repetitions=1, block_table=False, duration_s=1.0)
    for path in virtual.glob("*/host.json"):
        path.unlink()
    assert facts(virtual) == []


def test_compare_warns_of_a_side_that_is_mixed(folder, tmp_path, capsys):
    other = synthetic.write_study(tmp_path / "o" / "s", loads=(0.5,), repetitions=2, duration_s=1.0)
    for run in runs(other):
        put(run, host(release="6.12.1"))
    # Hosts that differ between the sides are what is compared.
    main(["compare", str(folder), str(other)])
    assert "R-HOST" not in capsys.readouterr().out
    put(runs(other)[0], host())
    for form in ("text", "json", "markdown", "junit"):
        code = main(["compare", str(folder), str(other), "--format", form, "--strict"])
        assert code == 4 and "R-HOST" in capsys.readouterr().out


def test_kernels_of_the_study_may_differ_but_each_is_one(folder):
    def booted(name, image="1", **facts):
        return host(release=f"6.{name}", **facts) | {"kernel": {"name": name, "image_sha256": image}}

    for number, run in enumerate(runs(folder)):
        put(run, booted("ab"[number % 2]))
    assert facts(folder) == []
    put(runs(folder)[0], booted("a", image="2"))
    (found,) = mixed_hosts(load_study(folder))
    assert (found.fact, found.kernel) == ("kernel image", "a")
    assert "runs of kernel a differ in kernel image: " in found.sentence()
    put(runs(folder)[0], booted("a", model="CPU Y"))
    assert facts(folder) == ["CPU model"]
    # A run under no kernel of the study is beside those that are.
    put(runs(folder)[0], host())
    assert facts(folder) == []
