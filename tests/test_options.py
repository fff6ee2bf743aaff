"""Options of file systems as factors: what a study may say, and what is set and read back."""

import importlib.util
import itertools
import json
import os
import shlex
import shutil
import subprocess

import pytest
from ansible.errors import AnsibleError
from beds import stub
from support import ROOT, weir

SPEC = importlib.util.spec_from_file_location("options", ROOT / "ansible/plugins/filter/options.py")
options = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(options)

STUDY = """\
name: options
question: What do options of the file system change?
testbed: device
seed: 7
repetitions: 1
warmup_s: 0.2
duration_s: 1
capture: none
storage: {profile: hdd-7200, heads: 2, size_mib: 128}
classes:
  web: {workload: zipf-web, with: {files.count: 40}, clients: 5}
"""
RULE = "bulk nid=10.0.0.*@tcp rate=9"


def missing(*programs):
    return [name for name in programs if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]


def study(folder, rest):
    file = folder / "options.yml"
    file.write_text(STUDY + rest)
    return file


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (
            "factors: {filesystem: [glusterfs, ext4], filesystem_options: {io_threads: [1, 16]}}",
            "factors.filesystem_options.io_threads: is set, but ext4 has no `io_threads` (it has no options)",
        ),
        (
            "factors: {filesystem_options: {io_threads: [1, 65]}}\nhold: {filesystem: glusterfs}",
            "is `65`; it must be a whole number from 1 to 64",
        ),
        (
            "factors: {filesystem_options: {nrs_policy: [fifo, tfb]}}\nhold: {filesystem: lustre}",
            "did you mean `tbf`",
        ),
        (
            "factors: {load: [1]}\nhold: {filesystem: moosefs, filesystem_options: {io_threads: 4}}",
            "hold.filesystem_options.io_threads: is set, but moosefs has no `io_threads`",
        ),
        (
            "factors: {filesystem_options: {cache_mode: [[AUTO]]}}\nhold: {filesystem: moosefs}",
            "write a number or a text",
        ),
    ],
)
def test_what_a_file_system_does_not_have_or_take_is_refused(tmp_path, rest, said):
    done = weir("check", study(tmp_path, rest))
    assert done.returncode == 2 and said in done.stderr + done.stdout, done


def test_each_option_is_a_factor_of_its_own(tmp_path):
    file = study(
        tmp_path,
        "factors: {filesystem_options: {io_threads: [1, 16], least_prio_threads: [0, 1]}}\n"
        "hold: {filesystem: glusterfs}\n"
        "exclude: [{filesystem_options.io_threads: 1, filesystem_options.least_prio_threads: 1}]",
    )
    plan = json.loads(weir("plan", file, "--json").stdout)
    cells = {tuple(sorted(run["levels"].items())) for run in plan["runs"]}
    names = ("filesystem_options.io_threads", "filesystem_options.least_prio_threads")
    assert cells == {tuple(zip(names, levels, strict=True)) for levels in ((1, 0), (16, 0), (16, 1))}
    for run in plan["runs"]:
        said = {
            f"filesystem_options.{name}": value
            for name, value in run["settings"]["filesystem_options"].items()
        }
        assert said == run["levels"]


@pytest.mark.parametrize("beegfs_major", [7, 8])
def test_what_is_set_by_command_reads_back_as_it_was_set(tmp_path, beegfs_major):
    """Lustre's and BeeGFS's programs are stubs here, which keep what they are told: this shows commands."""
    (tmp_path / "host/bin").mkdir(parents=True)
    not_there = "beegfs" if beegfs_major == 7 else "beegfs-ctl"
    for name in set(stub.NAMES) - {not_there}:
        (tmp_path / "host/bin" / name).symlink_to(ROOT / "tests/stubs/parallel_fs.py")
    path = f"{tmp_path}/host/bin:{os.environ['PATH']}"
    values = {
        "lustre": {"stripe_count": "2", "stripe_size_bytes": "1048576"},
        "beegfs": {"stripe_targets": "3", "chunk_size": "512K"},
    }
    all_options = {entry["name"]: entry.get("options", {}) for entry in file_systems()}

    def call(words, value):
        filled = [
            word.replace("{point}", "/mnt/x").replace("{files}", "/mnt/x/run").replace("{value}", value)
            for word in words
        ]
        done = subprocess.run(filled, env={"PATH": path}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (shlex.join(filled), done.stderr)
        return done.stdout.strip()

    for name, wanted in values.items():
        commands = {option: all_options[name][option] for option in wanted}
        assert {option for option, line in all_options[name].items() if line["set"]} == set(wanted)
        for option, value in wanted.items():
            call(commands[option]["set"], value)
        # Whatever was set first is not undone by what was set after it.
        assert {option: call(line["read"], "") for option, line in commands.items()} == wanted
    told = [json.loads(line)["argv"] for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert ["lfs", "setstripe", "-c", "2", "-S", "1048576", "/mnt/x/run"] in told
    client = "--cfgFile=/etc/beegfs/beegfs-client.conf"
    words = {
        7: ["beegfs-ctl", client, "--setpattern", "--numtargets=3", "--chunksize=512K", "/mnt/x/run"],
        8: ["beegfs", "entry", "set", "--num-targets=3", "--chunk-size=512KiB", "/mnt/x/run"],
    }
    assert words[beegfs_major] in told


def file_systems():
    return json.loads(weir("list", "filesystems", "--json").stdout)


def test_runs_are_parted_where_a_role_has_to_set_something(tmp_path):
    file = study(
        tmp_path,
        "factors:\n  filesystem_options: {nrs_policy: [fifo, tbf], stripe_count: [1, 2]}\n"
        f"hold: {{filesystem: lustre, buffered: true, filesystem_options: {{nrs_rules: '{RULE}'}}}}",
    )
    plan = json.loads(weir("plan", file, "--json").stdout)
    runs = [{"id": run["id"]} for run in plan["runs"]]
    usual = {"fs_lustre_nrs_policy": "fifo", "fs_lustre_nrs_rules_text": ""}
    made = options.option_groups(runs, plan, file_systems(), usual)
    policies = [run["settings"]["filesystem_options"]["nrs_policy"] for run in plan["runs"]]
    assert [run for group in made for run in group["runs"]] == runs
    assert len(made) == 1 + sum(a != b for a, b in itertools.pairwise(policies))
    for group in made:
        policy = group["variables"]["fs_lustre_nrs_policy"]
        assert group["options"] == {
            "lustre": {"nrs_policy": policy, "nrs_rules": "bulk nid=10.0.0.*@tcp rate=9"}
        }
        assert group["plays"] == [
            {"filesystem": "lustre", "role": "fs_lustre", "tasks": "set_nrs", "on_servers": True}
        ]
    last = options.usual_options(made, usual)
    assert last == {"options": {}, "variables": usual, "plays": made[0]["plays"], "runs": []}
    plain = study(
        tmp_path, "factors: {filesystem_options: {stripe_count: [1, 2]}}\nhold: {filesystem: lustre}"
    )
    plan = json.loads(weir("plan", plain, "--json").stdout)
    assert (
        options.option_groups([{"id": run["id"]} for run in plan["runs"]], plan, file_systems(), usual) == []
    )


def test_roles_of_options_have_the_tasks_and_the_variables():
    for entry in file_systems():
        for name, option in entry.get("options", {}).items():
            if by := option.get("by"):
                role = ROOT / "ansible/roles" / by["role"]
                assert (role / "tasks" / f"{by['tasks']}.yml").exists(), name
                assert f"\n{by['variable']}:" in (role / "defaults/main.yml").read_text(), name


def test_rules_of_the_token_bucket_filter_in_a_line():
    text = "bulk jobid=fio.0,fio.1 rate=100; reads nid=10.0.0.*@tcp opcode=ost_read rate=50;"
    assert options.nrs_rules(text) == [
        {"name": "bulk", "jobid": ["fio.0", "fio.1"], "rate": 100},
        {"name": "reads", "nid": ["10.0.0.*@tcp"], "opcode": ["ost_read"], "rate": 50},
    ]
    assert options.nrs_rules("") == []
    for wrong in (
        "bulk rate=1",
        "bulk jobid=a",
        "bulk jobid=a rate=x",
        "bulk jobid=a uid=0 rate=1",
        "a;b",
        "a b=c=d",
    ):
        with pytest.raises(AnsibleError, match="is no rule"):
            options.nrs_rules(wrong)


def test_one_run_by_itself_does_not_set_what_a_role_sets(tmp_path):
    """This test asks for one run without the playbook, which is refused before anything is touched."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    file = study(tmp_path, "factors: {filesystem_options: {nrs_policy: [tbf]}}\nhold: {filesystem: lustre}")
    (run,) = json.loads(weir("plan", file, "--json").stdout)["runs"]
    (tmp_path / "run.json").write_text(json.dumps(run))
    testbed = {
        "devices": {},
        "mounts": {"lustre": str(tmp_path)},
        "options": {"lustre": {"nrs_policy": "fifo"}},
    }
    (tmp_path / "testbed.json").write_text(json.dumps(testbed))
    results = tmp_path / "results"
    done = weir(
        "run", tmp_path / "run.json", "--testbed", tmp_path / "testbed.json", "--results", results,
        "--state", tmp_path / "state",
    )  # fmt: skip
    assert done.returncode == 2, done
    assert "nrs_policy: wrong value (found fifo, expected tbf)" in done.stderr and "fs_lustre" in done.stderr
    # But for its own records, which hold the lock.
    assert not any(results.glob("[!.]*"))


def play(bench, rest):
    bench.folder.chmod(0o755)
    file = study(bench.folder, rest)
    code, log = bench.play(file, "--skip-tags", "report", "-e", f"test_network_name=o{os.getpid()}")
    assert code == 0, log
    seen = set()
    for folder in bench.run_folders("options").values():
        observed = json.loads((folder / "observed.json").read_text())["filesystem_options"]
        wanted = json.loads((folder / "run.json").read_text())["settings"]["filesystem_options"]
        assert observed == {name: str(value) for name, value in wanted.items()}
        verdict = json.loads((folder / "verdict.json").read_text())
        rules = {rule["rule"]: rule for rule in verdict["rules"]}
        assert rules["R-STATE"]["status"] == "valid", rules["R-STATE"]
        seen.add(tuple(wanted.values()))
    return seen


@pytest.mark.cluster
def test_options_of_glusterfs_are_in_force(bench):
    """This test varies threads of the bricks, and threads and cache of the client, which GlusterFS tells."""
    if absent := missing("glusterfsd", "glusterfs", "ip"):
        pytest.skip(f"not installed: {', '.join(absent)}")
    seen = play(
        bench,
        "factors: {filesystem_options: {client_io_threads: [1, 8], io_threads: [2, 16]}}\n"
        "hold: {filesystem: glusterfs, buffered: true, filesystem_options: {quick_read_cache: 64MB}}",
    )
    assert len(seen) == 4
    assert bench.leftovers() == []


@pytest.mark.cluster
def test_options_of_moosefs_are_in_force(bench):
    """This test varies how MooseFS's client caches, which it tells in its own file of parameters."""
    if absent := missing("mfsmaster", "mfschunkserver", "mfsmount", "ip"):
        pytest.skip(f"not installed: {', '.join(absent)}")
    seen = play(
        bench,
        "factors: {filesystem_options: {cache_mode: [AUTO, 'YES', DIRECT]}}\n"
        "hold: {filesystem: moosefs, buffered: true, filesystem_options: {read_ahead_mib: 32}}",
    )
    assert len(seen) == 3
    assert bench.leftovers() == []
