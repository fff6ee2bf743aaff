"""What is set gets into a configuration as one value, or not at all: by the binary, and by the roles."""

import importlib.util
import json
import os
import re
import shutil
import socket
import urllib.request

import pytest
import yaml
from support import ROOT, play_role, weir

STUDY = """\
name: injected
question: Does a setting open a listener?
testbed: device
seed: 7
repetitions: 1
warmup_s: 1
duration_s: 2
storage: {profile: hdd-7200, heads: 1, size_mib: 192}
classes:
  documents: {workload: zipf-class0, with: {files.count: 60}, clients: 4, through: web, think_ms: 0}
services:
  web:
    service: nginx
    port: 18080
    settings:
      SETTING
factors:
  filesystem: [ext4]
hold: {buffered: true}
"""
LISTENER = "on; server { listen 0.0.0.0:8080; }"
#: What means something to a shell, or to the configuration of some server.
PAYLOADS = (
    LISTENER,
    "on\nuser root",
    "on; }",
    "{run}",
    "$(touch PROBE)",
    "`touch PROBE`",
    "on # x",
    '"',
    "'",
    "\\",
    "../../etc/passwd",
    "-x",
    "%include /etc/passwd",
    "\u00e9",
    "1" * 100_000,
)
ENGINES = {
    "nginx": "nginx",
    "nginx_proxy": "nginx-proxy",
    "apache": "apache",
    "mariadb": "mariadb",
    "postgresql": "postgresql",
}
PLAYBOOK = ROOT / ".venv/bin/ansible-playbook"


def _first_in_all(names):
    """Of what takes some time each: the first in every test, the others where roles are tested."""
    return [pytest.param(name, marks=[pytest.mark.roles] if at else []) for at, name in enumerate(names)]


def _plugin(name):
    file = ROOT / f"ansible/plugins/{name}.py"
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _services():
    listed = json.loads(weir("list", "services", "--json").stdout)
    return {entry["name"]: entry.get("settings", {}) for entry in listed}


@pytest.fixture
def rooted():
    if os.geteuid() != 0:
        pytest.skip("needs root")


# The binary


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (f'sendfile: "{LISTENER}"', f"is `{LISTENER}`; it must be on or off"),
        ("load_module: /tmp/x.so", "unknown setting `load_module`"),
        ('wrokers: "1"', "did you mean `workers`?"),
        ('workers: "513"', "is `513`; it must be a whole number from 1 to 512"),
        ('address: "0.0.0.0"', "unknown setting `address`"),
    ],
)
def test_check_names_the_line_of_a_setting_that_is_more_than_a_value(tmp_path, setting, said):
    file = tmp_path / "injected.yml"
    file.write_text(STUDY.replace("SETTING", setting))
    done = weir("check", file)
    assert done.returncode == 2
    name = setting.split(":")[0]
    assert f"{file}:16: services.web.settings.{name}: " in done.stderr and said in done.stderr, done.stderr


def test_each_setting_of_each_service_refuses_payloads_at_start(tmp_path):
    tried = 0
    for service, settings in _services().items():
        for name in settings:
            for payload in PAYLOADS:
                state = tmp_path / "state"
                text = payload.replace("PROBE", str(tmp_path / "probe"))
                done = weir(
                    "service",
                    "start",
                    service,
                    "--state",
                    state,
                    "--port",
                    "18081",
                    "--set",
                    f"{name}={text}",
                )
                assert done.returncode == 2, (service, name, payload, done.stderr)
                assert f"setting `{name}`: " in done.stderr and len(done.stderr) < 2000, done.stderr
                assert not state.exists()
                tried += 1
    assert not (tmp_path / "probe").exists()
    assert tried > 500


def test_a_setting_that_nobody_declared_is_refused_at_start(tmp_path):
    for service in _services():
        for name in ("load_module", "run", "address", "first", "index", "user", "../x", "daemon off"):
            done = weir(
                "service",
                "start",
                service,
                "--state",
                tmp_path / "state",
                "--port",
                "18081",
                "--set",
                f"{name}=1",
            )
            assert done.returncode == 2 and "unknown setting" in done.stderr, (service, name, done.stderr)
    assert not (tmp_path / "state").exists()


def test_a_legal_setting_works_and_nothing_else_listens(rooted, tmp_path):
    """This test will start nginx on loopback, and end it."""
    if not shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        pytest.skip("needs nginx (package nginx-light)")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o001 == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    root, state, port = tmp_path / "root", tmp_path / "state", _free_port()
    root.mkdir()
    (root / "a.txt").write_text("a document")
    legal = {"workers": "3", "sendfile": "off", "open_file_cache": "max=10 inactive=20s"}
    options = [word for name, value in legal.items() for word in ("--set", f"{name}={value}")]
    started = weir("service", "start", "nginx", "--state", state, "--port", port, "--root", root, *options)
    assert started.returncode == 0, started.stderr
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/a.txt", timeout=10) as answer:
            assert answer.read() == b"a document"
        text = (state / "services/nginx/nginx.conf").read_text()
        assert 'sendfile "off";' in text and "open_file_cache max=10 inactive=20s;" in text
        assert text.count("listen ") == 1 and f"listen 127.0.0.1:{port} " in text
    finally:
        assert weir("service", "stop", "nginx", "--state", state).returncode == 0


@pytest.mark.parametrize("root", ["a b", "a;b", "a'b", 'a"b', "$(id)"])
def test_a_folder_whose_name_means_something_is_served_by_none(rooted, tmp_path, root):
    if not shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
        pytest.skip("needs nginx (package nginx-light)")
    (tmp_path / root).mkdir()
    state = tmp_path / "state"
    done = weir(
        "service", "start", "nginx", "--state", state, "--port", _free_port(), "--root", tmp_path / root
    )
    assert done.returncode == 2 and "it stands in configurations and commands" in done.stderr, done.stderr
    assert not (state / "services").exists()


@pytest.mark.parametrize("name", ["../../keep", "..", ".", "/", "", "moosefs/../../../keep"])
def test_a_cluster_is_taken_down_by_its_name_and_by_nothing_else(tmp_path, name):
    kept = tmp_path / "keep"
    kept.mkdir()
    (kept / "file").write_text("somebody's")
    (tmp_path / "state/clusters").mkdir(parents=True)
    done = weir("cluster", "down", name, "--state", tmp_path / "state")
    assert done.returncode == 2 and "unknown cluster" in done.stderr, done.stderr
    assert (kept / "file").read_text() == "somebody's"


def test_names_of_commands_are_no_paths(tmp_path):
    for arguments in (
        ("service", "stop", "../x"),
        ("service", "start", "nginx", "--port", "18081", "--name", "../x"),
        ("service", "start", "nginx", "--port", "18081", "--name", "-x"),
    ):
        done = weir(*arguments, "--state", tmp_path / "state")
        assert done.returncode == 2, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_plan_by_hand_names_no_path(tmp_path):
    plan = json.loads(weir("plan", "quick", "--json").stdout)
    run = plan["runs"][0]
    for field, value in (("id", "../outside"), ("study", "a/b")):
        file = tmp_path / "run.json"
        file.write_text(json.dumps(run | {field: value}))
        done = weir(
            "run", file, "--state", tmp_path / "state", "--results", tmp_path / "results", "--testbed", file
        )
        assert done.returncode == 2 and "is `" in done.stderr, done.stderr
    file.write_text(json.dumps(run | {"classes": [run["classes"][0] | {"name": "../x"}]}))
    done = weir(
        "run", file, "--state", tmp_path / "state", "--results", tmp_path / "results", "--testbed", file
    )
    assert done.returncode == 2 and "classes.name: is `../x`" in done.stderr, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json"]


@pytest.mark.parametrize(
    "level",
    ["mq-deadline ../../foo=1", "mq-deadline read_expire=1;id", "mq-deadline read_expire=many", "../none"],
)
def test_a_tunable_is_a_name_and_a_number(tmp_path, level):
    file = tmp_path / "injected.yml"
    file.write_text(
        STUDY.replace("SETTING", 'workers: "1"').replace("filesystem: [ext4]", f'scheduler: ["{level}"]')
    )
    done = weir("check", file)
    assert done.returncode == 2 and f"{file}:18" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("filesystem", "option", "value"),
    [
        ("nfs", "mount_options", "noatime,exec"),
        ("nfs", "mount_options", "noatime -o exec"),
        ("nfs", "mount_options", "rsize=65536;id"),
        ("lustre", "stripe_count", "1; id"),
        ("lustre", "nrs_rules", "bulk jobid=$(id) rate=1"),
        ("lustre", "nrs_rules", "bulk jobid={a} rate=1"),
        ("beegfs", "chunk_size", '1M"; id'),
        ("moosefs", "cache_mode", "AUTO,allow_other"),
        ("glusterfs", "io_threads", "16\nend-volume"),
        ("glusterfs", "quick_read_cache", "1MB\nsubvolumes x"),
    ],
)
def test_an_option_of_a_file_system_is_one_value(tmp_path, filesystem, option, value):
    file = tmp_path / "injected.yml"
    text = STUDY.replace("SETTING", 'workers: "1"').replace(
        "filesystem: [ext4]", f"filesystem_options: {{{option}: [{json.dumps(value)}]}}"
    )
    file.write_text(text.replace("buffered: true", f"buffered: true, filesystem: {filesystem}"))
    done = weir("check", file)
    assert done.returncode == 2, done.stdout
    assert f"{file}:18: factors.filesystem_options.{option}: " in done.stderr, done.stderr


# The roles


@pytest.mark.parametrize("role", ENGINES)
def test_a_role_declares_the_settings_of_its_server(role):
    specs = yaml.safe_load((ROOT / f"ansible/roles/{role}/meta/argument_specs.yml").read_text())
    declared = specs["argument_specs"]["main"]["options"][f"{role}_settings"]["options"]
    settings = _services()[ENGINES[role]]
    assert set(declared) == set(settings)
    for name, setting in settings.items():
        kind = setting["type"]
        words = ["on", "off"] if kind == "on_off" else kind.get("one_of")
        assert declared[name].get("choices") == words, name
        assert (declared[name]["type"] == "int") == (isinstance(kind, dict) and "integer" in kind), name


@pytest.mark.parametrize("role", _first_in_all(ENGINES))
def test_a_role_refuses_a_setting_that_is_more_than_a_value(tmp_path, role):
    settings = _services()[ENGINES[role]]
    first = sorted(settings)[0]
    evil = {first: f"1; {LISTENER}"}
    upstream = {"nginx_proxy_upstream": "127.0.0.1:80"} if role == "nginx_proxy" else {}
    code, said = play_role(tmp_path, role, {f"{role}_settings": evil, **upstream})
    assert code != 0 and first in said and "Validating arguments" in said, said
    code, said = play_role(tmp_path, role, {f"{role}_settings": {"load_module": "x"}, **upstream})
    assert code != 0 and "load_module" in said, said
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("service", _first_in_all(ENGINES.values()))
def test_the_binary_refuses_what_a_role_passes_on(tmp_path, service):
    name = sorted(_services()[service])[-1]
    code, said = play_role(
        tmp_path,
        "service",
        {
            "weir_binary": str(ROOT / "target/release/weir"),
            "service_name": service,
            "service_port": 18081,
            "service_settings": {name: LISTENER},
        },
    )
    assert code != 0 and f"setting `{name}`: " in said and LISTENER in said, said


@pytest.mark.roles
@pytest.mark.parametrize(
    ("role", "variables"),
    [
        ("fs_nfs", {"fs_nfs_folder": "/srv/x *(rw,no_root_squash)\n/"}),
        ("fs_nfs", {"fs_nfs_clients_network": "*"}),
        ("fs_nfs", {"fs_nfs_options": "noatime -o exec"}),
        ("fs_tmpfs", {"fs_tmpfs_options": "noatime,exec;x"}),
        ("fs_tmpfs", {"fs_tmpfs_point": "/mnt/../etc"}),
        ("guard", {"guard_name": "x { }\nflush ruleset", "guard_interface": "eth0"}),
        ("guard", {"guard_name": "x", "guard_interface": 'lo" } accept; flush ruleset; #'}),
        ("fs_lustre", {"fs_lustre_name": "weir --reformat"}),
        ("fs_lustre", {"fs_lustre_jobid_var": "disable\nx"}),
        ("fs_beegfs", {"fs_beegfs_etc": "/etc/x\nconnDisableAuthentication = true"}),
        ("fs_beegfs", {"fs_beegfs_targets": [{"id": 1, "folder": "/data\nx = y"}]}),
        ("fs_orangefs", {"fs_orangefs_name": "x --y"}),
    ],
)
def test_a_role_refuses_a_variable_that_is_more_than_a_value(tmp_path, role, variables):
    common = {"lab_address": "10.77.0.2", "fs_nfs_server": "here", "fs_nfs_clients": []}
    common |= {f"{role}_folder": str(tmp_path / "run")} if role in ("guard", "fs_lustre") else {}
    code, said = play_role(
        tmp_path, role, common | {"weir_points": "/mnt", "weir_root": str(tmp_path)} | variables
    )
    assert code != 0 and "for unsafe characters" in said, said
    assert next(iter(variables)).partition("_targets")[0] in said, said


def test_plain_values_are_what_they_are_said_to_be():
    plain = _plugin("test/plain").plain
    for kind, right, wrong in (
        ("path", ["/a", "/a-b/c.d"], ["a", "/a b", "/a\n", "/../a", "/a/..", "/a;b", "/$x", ""]),
        ("name", ["a", "_a-1"], ["-a", ".a", "a.b", "a" * 41, "a\n", ""]),
        ("host", ["h-1.example.org"], ["-h", ".h", "h/x", "h\n"]),
        ("word", ["ost.OSS.ost_io", "eth0"], ["a b", "-a", "a\n", 'a"']),
        ("options", ["noatime", "rsize=65536,hard"], ["a b", "a,", "a;b", "a=", "a\n"]),
        ("address", ["10.0.0.1"], ["10.0.0.1\n", "10.0.0.256", "h"]),
        ("network", ["10.0.0.0/24"], ["10.0.0.0", "*", "10.0.0.0/33"]),
        ("size", ["512K", "64"], ["K", "1;", "0", "-1K"]),
        ("number", [1, "-1"], ["1;", "", "one"]),
        ("word?", ["", "a"], ["a b"]),
    ):
        assert all(plain(value, kind) for value in right), kind
        assert not any(plain(value, kind) for value in wrong), (kind, [v for v in wrong if plain(v, kind)])


def test_rules_of_lustre_have_no_other_rules_in_them():
    options = _plugin("filter/options")
    text = "bulk jobid=fio.0 rate=100; reads nid=10.0.0.*@tcp opcode=ost_read rate=50"
    rules = options.nrs_rules(text)
    assert [rule["name"] for rule in rules] == ["bulk", "reads"]
    assert options.nrs_rules(rules) == rules
    for wrong in (
        "b jobid=a} rate=1",
        "b jobid=a&nid rate=1",
        "b-c jobid=a rate=1",
        "b jobid=a rate=1e9",
        "b jobid=\u00e9 rate=1",
    ):
        with pytest.raises(options.AnsibleFilterError):
            options.nrs_rules(wrong)
    for wrong in (
        {"name": "a b", "rate": 1, "jobid": ["x"]},
        {"name": "a", "rate": "1 x", "jobid": ["x"]},
        {"name": "a", "rate": 1, "jobid": ["x y"]},
    ):
        with pytest.raises(options.AnsibleFilterError):
            options.nrs_rules([wrong])


def test_no_variable_stands_unquoted_in_the_text_of_a_shell():
    """Values come to a shell by its environment, or through the filter `quote`."""
    for file in sorted((ROOT / "ansible").rglob("*.yml")):
        text = file.read_text()
        if "ansible.builtin.shell" not in text or "molecule" in file.parts:
            continue
        for command in re.findall(
            r"ansible\.builtin\.shell:\n(?:\s+\w+:.*\n)*?\s+cmd: (.*(?:\n(?!\s+\w+: |\s*- name|  \w).*)*)",
            text,
        ):
            for variable in re.findall(r"\{\{(.*?)\}\}", command, re.DOTALL):
                assert re.search(r"\|\s*quote\s*$", variable.strip()), f"{file}: {variable}"
