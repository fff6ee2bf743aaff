"""The playbook's plugins, called as functions."""

import json
import multiprocessing
import os

import pytest
from ansible.errors import AnsibleError
from support import load_plugin, weir


def _all_on(host, runs):
    """The deal that gives a host every block of these runs."""
    return {str(run["block"]): host for run in runs}


study, owner, controller = (
    load_plugin("filter/study"),
    load_plugin("test/owner"),
    load_plugin("lookup/controller"),
)
hosts, assignment = load_plugin("filter/hosts"), load_plugin("filter/assignment")
progress, host = load_plugin("callback/weir"), load_plugin("modules/weir_host")


@pytest.fixture(scope="module")
def plan():
    return json.loads(weir("plan", "quick", "--json").stdout)


@pytest.fixture(scope="module")
def file_systems():
    return json.loads(weir("list", "filesystems", "--json").stdout)


def test_a_name_means_a_study_or_all_whose_names_begin_so(tmp_path):
    (tmp_path / "studies").mkdir()
    for name in ("paper-b", "paper-a", "alone", "alone-too", "papers"):
        (tmp_path / f"studies/{name}.yml").touch()
    assert study.studies("paper", tmp_path) == ["paper-a", "paper-b"]
    assert study.studies("alone", tmp_path) == ["alone"]
    for name in ("", "unknown", "./studies/alone.yml", str(tmp_path / "studies/alone.yml")):
        assert study.studies(name, tmp_path) == [name]


def test_simulated_runs_say_whether_their_requests_are_kept(plan):
    ids = [run["id"] for run in plan["runs"] if run["testbed"] == "simulator"]
    found = study.simulated_runs(plan["runs"], reversed(ids))
    assert [run["id"] for run in found] == ids and all(run["all"] for run in found)
    summarised = [run | {"records": "summary"} for run in plan["runs"]]
    assert not any(run["all"] for run in study.simulated_runs(summarised, ids))


def test_blocks_are_dealt_out_whole(plan):
    hosts = ["a", "b"]
    blocks = assignment.assign_blocks(plan["runs"], plan["runs"], hosts, "/nonexistent")["hosts"]
    dealt = {name: {run["id"] for run in study.runs_of_host(plan["runs"], blocks, name)} for name in hosts}
    measured = [run for run in plan["runs"] if run["testbed"] == "device"]
    assert len(dealt["a"]) + len(dealt["b"]) == len(measured) and not dealt["a"] & dealt["b"]
    for block in range(plan["repetitions"]):
        ids = {run["id"] for run in measured if run["block"] == block}
        assert sum(bool(ids & mine) for mine in dealt.values()) == 1


GROUPS = {"weir_clients": ["a", "b", "c"], "weir_servers": ["s"], "all": ["a", "b", "c", "s", "x"]}


def test_runs_of_several_hosts_are_those_of_their_groups(plan):
    runs = [run | {"hosts": {"clients": 2}} for run in plan["runs"] if run["testbed"] == "device"]
    assert study.runs_of_host(runs, _all_on("a", runs), "a") == []
    found = study.joint_runs(runs, GROUPS, "a")
    assert [run["id"] for run in found] == [run["id"] for run in runs]
    assert found == study.joint_runs(runs, GROUPS, "s") and study.joint_runs(runs, GROUPS, "x") == []
    assert study.joint_runs(plan["runs"], GROUPS, "a") == [] == study.joint_runs(runs, {}, "a")


def test_who_is_lost_is_stepped_in_for_as_long_as_there_are_enough():
    everyone = study.run_hosts(GROUPS, GROUPS["all"], [], 2)
    assert everyone["clients"] == ["a", "b"] and everyone["all"] == ["a", "b", "s"]
    assert study.run_hosts(GROUPS, GROUPS["all"], ["a"], 2)["clients"] == ["b", "c"]
    assert everyone["ended"] == ""
    assert study.run_hosts(GROUPS, ["b", "s"], [], 2)["ended"] == "of the 2 clients of a run 1 are left (b)"
    assert study.run_hosts(GROUPS, ["a", "b"], [], 2)["ended"] == "server s cannot be reached or used"

    def after(names, who=everyone, keep_going=True, code=3, **hosts):
        joined = {"rc": code, "stdout": json.dumps({"lost": names})}
        return study.after_joint_run(joined, "run", who, {"clients": 2, "lost": "stop"} | hosts, keep_going)

    assert after([], code=0) == {"lost": [], "failed": False, "ended": ""}
    assert "b was lost in run run, and the study has `lost: stop`" in after(["b"])["ended"]
    assert after(["b"], lost="continue") == {"lost": ["b"], "failed": False, "ended": ""}
    few = study.run_hosts(GROUPS, GROUPS["all"], ["a"], 2)
    assert "of the 2 clients of a run 1 are left" in after(["b"], few, lost="continue")["ended"]
    assert "server s was lost" in after(["s"], lost="continue")["ended"]
    assert after([], code=1) == {"lost": [], "failed": True, "ended": ""}
    assert after([], code=1, keep_going=False)["ended"] == "run run failed"
    assert study.after_joint_run({"rc": 1, "stdout": "no"}, "run", everyone, {"lost": "stop"}, True)["failed"]


def test_what_hosts_lack_for_devices_is_said_in_a_phrase():
    assert study.lacking({"a": {"lacking": []}, "b": {}}) == ""
    assert study.lacking({"a": {"lacking": ["root", "FUSE"]}}) == "no root, no FUSE"
    hosts = {"a": {"lacking": ["BPF"]}, "b": {"lacking": ["BPF", "FUSE"]}}
    assert study.lacking(hosts) == "no BPF, no FUSE on b"


def test_what_this_host_lacks_is_looked_at(monkeypatch):
    """This test will let the module look at hosts without root, FUSE, BPF."""
    monkeypatch.setattr(host.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(host, "loadable_modules", set)
    monkeypatch.setattr(host.Path, "exists", lambda path: False)
    assert host.lacking(modelled=True, capture=True) == ["root", "FUSE", "loop devices"]
    assert host.lacking(modelled=False, capture=True) == ["root"]
    monkeypatch.setattr(host.os, "geteuid", lambda: 0)
    assert host.lacking(modelled=True, capture=True) == ["FUSE", "loop devices", "BPF"]
    monkeypatch.setattr(host, "loadable_modules", lambda: {"fuse", "loop"})
    assert host.lacking(modelled=True, capture=False) == []
    monkeypatch.setattr(host.Path, "exists", lambda path: True)
    for capabilities, missing in (
        ("0", ["BPF"]),
        ("200000", []),
        ("c000000000", []),
        ("8000000000", ["BPF"]),
    ):
        monkeypatch.setattr(host, "read_text", lambda path, found=capabilities: f"CapEff:\t{found}\n")
        assert host.lacking(modelled=True, capture=True) == missing, capabilities


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"number": "8:0"}, {"number": "8:0"}, True),
        ({"number": "8:0"}, {"number": "8:16"}, False),
        ({"serial": "S1"}, {"serial": "S1"}, True),
        ({"serial": "S1"}, {"serial": "S2"}, False),
        ({"wwn": "naa.5"}, {"wwn": "naa.5"}, True),
        # Namespaces of one NVMe controller.
        ({"serial": "S1", "wwn": "eui.1"}, {"serial": "S1", "wwn": "eui.2"}, False),
        ({"serial": "S1", "wwn": "eui.1"}, {"serial": "S1"}, True),
        ({"image": "1:2"}, {"image": "1:2"}, True),
        ({}, {}, False),
    ],
)
def test_disks_are_the_same_by_number_wwn_serial_or_image(monkeypatch, one, other, same):
    known = {"/dev/null": one, "/dev/zero": other}
    empty = dict.fromkeys(("number", "serial", "wwn", "image"), "")
    monkeypatch.setattr(host, "disk_identity", lambda path: empty | known[path])
    assert host.same_disk([*known, *known, "/dev/nonesuch"]) == ([["/dev/null", "/dev/zero"]] if same else [])


def test_a_device_with_policies_is_served_so():
    live = {
        "name": "shared",
        "profile": "hdd-7200",
        "heads": 1,
        "stripe_unit_kib": 64,
        "size_mib": 64,
        "live": True,
    }
    spec = json.loads(study.device_files([live], {}, "/s")["/s/specs/shared.yml"])
    assert spec == live | {"live": {"policy": "fcfs"}}


def test_what_each_class_is_carried_out_on_is_told_of_each_host(plan):
    """This test will ask the binary for two hosts that are modelled alike and one that has a real disk."""
    modelled = {"weir_devices": {}, "weir_mounts": {}}
    real = modelled | {"weir_devices": {"text": {"path": "/dev/disk/by-id/nvme-A", "overwrite": "SN1"}}}
    beds = study.testbeds({"a": modelled, "b": real, "c": modelled})
    assert [bed["hosts"] for bed in beds] == [["a", "c"], ["b"]]
    asked = []
    for bed in beds:
        done = weir("plan", "quick", "--json", "--devices", "/dev/stdin", stdin=bed["testbed"])
        asked.append({"item": bed, "stdout": done.stdout})
    lines = study.media(asked)
    assert len(lines) == 4 and all("nvme-A" not in line for line in lines[:2])
    assert lines[2].startswith("quick: class text on b: ") and "real disk by-id/nvme-A" in lines[2]
    assert "modelled disk hdd-7200" in lines[3] and "nvme-A" not in lines[3]
    runs = study.runs_of_host(plan["runs"], _all_on("b", plan["runs"]), "b")
    texts = {json.dumps(run["media"], sort_keys=True) for run in study.with_media(runs, asked, "b")}
    assert texts == {
        '{"text": "2 striped modelled disks hdd-7200", "video": "2 striped modelled disks hdd-7200"}',
        '{"text": "real disk by-id/nvme-A", "video": "modelled disk hdd-7200"}',
    }


@pytest.mark.parametrize(
    ("media", "text"),
    [
        ({"text": "real disk x", "video": "modelled disk y"}, " (text: real disk x, video: modelled disk y)"),
        ({"text": "modelled disk y", "video": "modelled disk y"}, " (modelled disk y)"),
        ({}, ""),
    ],
)
def test_a_progress_line_says_what_a_run_is_carried_out_on(media, text):
    assert progress.medium(media) == text


def test_an_owner_lives_or_not():
    me = controller.LookupModule().run([])[0]
    assert me["pid"] == os.getpid() and me["alive"]
    other = me | {"pid": os.getppid(), "started_ticks": controller.started_ticks(os.getppid())}
    assert owner.living(other, me)
    assert not owner.living(me, me)
    assert not owner.living(other | {"started_ticks": 1}, me), "the pid was used again"
    assert not owner.living({}, me)
    assert owner.living(other | {"boot_id": "elsewhere", "pid": 1}, me), "of another machine nothing is known"


def _in_child(queue):
    queue.put(controller.LookupModule().run([])[0])


def test_the_controller_is_the_parent_of_a_worker():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    seen = queue.get(timeout=20)
    child.join()
    assert seen["pid"] == os.getpid() and seen["alive"]


def _outcome(measured_s, setup_s, **fields):
    said = {"status": "valid", "requests": 5, "broken": []} | fields
    said["timing"] = {"setup_s": setup_s, "measured_s": measured_s, "teardown_s": 0.5}
    return progress.Outcome({"rc": 3 if said["broken"] else 0, "stdout": json.dumps(said)})


def test_time_left_in_virtual_time_is_that_of_the_runs_since_the_beginning(tmp_path, monkeypatch):
    """This test will make the folders of runs as `weir simulate` does, on a clock of its own."""
    now_s = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s)
    runs = progress.Simulated()
    names = [f"run{place}" for place in range(10)]
    runs.plan({"preflight_simulated": [{"id": name} for name in names], "preflight_folder": str(tmp_path)})
    for name in (*names[:4], "of-another-plan"):
        (tmp_path / name).mkdir()
    runs.begin()
    now_s = 104.0
    assert runs.left_s() is None
    for name in names[4:6]:
        (tmp_path / name).mkdir()
    assert runs.left_s() == pytest.approx(4.0 / 2 * 4)
    for name in names[6:]:
        (tmp_path / name).mkdir()
    assert runs.left_s() == 0


def test_the_bar_ends_with_the_runs_that_are_done(tmp_path, capsys):
    """This test will end the bar before it ticks; the runs ended since it began are in its last line."""
    runs = progress.Simulated()
    names = ["a", "b", "c"]
    runs.plan({"preflight_simulated": [{"id": name} for name in names], "preflight_folder": str(tmp_path)})
    runs.begin()
    bar = progress.Bar(runs)
    for name in names:
        (tmp_path / name).mkdir()
    bar.stop()
    assert "3/3" in capsys.readouterr().out


def test_time_left_is_that_of_the_slowest_host():
    runs = progress.Runs()
    run = {"id": "x", "repetition": 1, "levels": {"scheduler": "bfq"}, "seconds": 10.0}
    runs.plan("a", [run] * 3)
    runs.plan("b", [run])
    runs.begin()
    assert runs.left_s() == pytest.approx(3 * (10 + progress.FIRST_GUESS_S), abs=0.5)
    line = runs.add("a", run, _outcome(10, 0.5))
    assert line == "[1/4] x repetition 1 scheduler=bfq on a: valid, 5 requests, 10.0 s of 11.0 s, 22 s left"
    assert runs.left_s() == pytest.approx(2 * 11, abs=0.5)
    runs.add("b", run, _outcome(10, 0.5, status="invalid", broken=["loss: 3 requests"]))
    runs.add("a", run, progress.Outcome({"rc": 1, "stdout": "", "stderr": "error: no room"}))
    runs.end()
    assert "1 valid, 1 INVALID, 1 FAILED" in runs.summary()


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            {"rc": 1, "stderr": "error: no room\n", "msg": "non-zero return code"},
            "FAILED\n    error: no room",
        ),
        ({"rc": -9, "stderr": "", "stdout": ""}, "FAILED\n    it was ended by signal 9"),
        ({"rc": 0, "stdout": "not json"}, "FAILED\n    it ended without saying why"),
        ({"rc": 0, "stdout": '{"id": "x", "status": "present"}'}, "done before"),
    ],
)
def test_what_became_of_a_run_is_told_in_words(result, text):
    assert str(progress.Outcome(result)) == text


@pytest.mark.parametrize(("seconds", "text"), [(9.6, "10 s"), (130, "2 min 10 s"), (7300, "2 h 1 min")])
def test_durations(seconds, text):
    assert progress.duration(seconds) == text


def test_a_kernel_part_is_there_or_absent():
    wanted = [("file_system", "tmpfs"), ("file_system", "nosuchfs"), ("scheduler", "none")]
    wanted += [("scheduler", "nosuchsched"), ("device_node", "null"), ("raid", "nosuchlevel")]
    parts = [{"kind": kind, "name": name, "module": f"{name}-module"} for kind, name in wanted]
    absent, to_load = host.kernel_parts(parts)
    assert absent == ["file system nosuchfs", "scheduler nosuchsched", "RAID level nosuchlevel"]
    assert to_load == []


def test_a_part_that_is_not_there_is_loaded_if_the_kernel_has_its_module(monkeypatch):
    monkeypatch.setattr(host, "loadable_modules", lambda: {"nosuch-iosched"})
    part = {"kind": "scheduler", "name": "nosuch", "module": "nosuch-iosched"}
    assert host.kernel_parts([part]) == ([], ["nosuch-iosched"])


def test_guests_have_ports_and_addresses_of_their_own():
    guests = hosts.guests(3, "22701")
    assert [guest["name"] for guest in guests] == ["guest-0", "guest-1", "guest-2"]
    assert [guest["port"] for guest in guests] == [22701, 22702, 22703]
    for each in ("lab_address", "mac", "host"):
        assert len({guest["set"][each] for guest in guests}) == 3
    for count, port in ((0, 22701), (255, 22701), (2, 65535), (1, 80)):
        with pytest.raises(AnsibleError, match=f"{count}|{port}"):
            hosts.guests(count, port)


def test_of_several_hosts_the_last_is_the_client():
    of = {"a": {"lab_address": "10.1.0.1"}, "b": {}, "c": {}}
    made = hosts.inventory(of, "netns", ansible_connection="netns")["all"]
    assert made["hosts"] == of and made["vars"] == {"weir_hosts_kind": "netns", "ansible_connection": "netns"}
    assert {name: list(group["hosts"]) for name, group in made["children"].items()} == {
        "servers": ["a", "b"],
        "clients": ["c"],
    }
    assert hosts.inventory({"a": {}}, "qemu")["all"]["children"] == {}


def test_listed_hosts_are_read_or_refused():
    fields = ("name", "user", "host", "port", "address")
    found = hosts.listed("a.example.org, weir@b:2222/10.1.0.7,root@192.0.2.1")
    assert [tuple(one[field] for field in fields) for one in found] == [
        ("a.example.org", "root", "a.example.org", 22, "a.example.org"),
        ("b-2222", "weir", "b", 2222, "10.1.0.7"),
        ("192.0.2.1", "root", "192.0.2.1", 22, "192.0.2.1"),
    ]
    for text in (
        "",
        "a,",
        "a b",
        "a;rm -rf /",
        "a:99999",
        "a,b,a",
        "@a",
        "$(x)@a",
        "-oProxyCommand=x",
        "-v",
        "a@-v",
        "a/$(x)",
        "a/",
    ):
        with pytest.raises(AnsibleError, match=r"List hosts as|listed twice"):
            hosts.listed(text)
