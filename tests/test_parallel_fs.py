"""The roles fs_lustre, fs_beegfs and fs_orangefs, with stubs in place of the file systems.

Neither Lustre nor BeeGFS nor OrangeFS is here. What runs are the real roles on three "hosts" of this
machine, and `stubs/parallel_fs.py` under the names of their programs and of mount(8). So these tests show
which commands a role gives, with what, in which order, how often, and what it writes. They do not show that
a file system works: that takes hosts that have it.
"""

import base64
import json
import re
from pathlib import Path

import pytest
from beds import bed, free_port, free_ports

pytestmark = pytest.mark.roles


def three_plays(made, *arguments):
    """Up, up again, down."""
    role = made.role
    return (
        made.play(*arguments),
        made.play(),
        made.play(**{f"{role}_state": "absent"}),
    )


# Lustre

DISKS = {name: {"path": f"/dev/disk/by-id/test-{name}"} for name in ("meta", "data-0", "data-1")}
RULES = [
    {"name": "video", "jobid": ["replay.0", "replay.1"], "rate": 100},
    {"name": "reads", "nid": ["127.0.0.*@tcp"], "opcode": ["ost_read"], "rate": 50},
]


def lustre(folder, **common):
    """Three hosts, the client first: nothing may follow the inventory's order."""
    disks = DISKS | {"data-1": DISKS["data-1"] | {"overwrite": "test-data-1"}}
    hosts = {
        "client": {"fs_lustre_roles": ["client"]},
        "oss": {
            "fs_lustre_roles": ["oss"],
            "fs_lustre_targets": [{"kind": "ost", "index": n, "device": f"data-{n}"} for n in (0, 1)],
        },
        "mds": {
            "fs_lustre_roles": ["mgs", "mds"],
            "fs_lustre_targets": [{"kind": "mdt", "index": 0, "device": "meta", "with_mgs": True}],
        },
    }
    variables = {
        "weir_devices": disks,
        "fs_lustre_folder": "{{ bed }}/run",
        "fs_lustre_nrs_policy": "tbf",
        "fs_lustre_nrs_rules": RULES,
        "fs_lustre_jobid_var": "procname_uid",
        "fs_lustre_stripe_count": 2,
    }
    return bed(folder, "fs_lustre", hosts, **variables | common)


@pytest.fixture(scope="module")
def lustre_plays(tmp_path_factory):
    with lustre(tmp_path_factory.mktemp("lustre")) as made:
        made.state("oss", "signatures", {DISKS["data-1"]["path"]: "ext4"})
        yield made, *three_plays(made)


def test_lustre_is_brought_up_by_these_commands(lustre_plays):
    made, up, _, _ = lustre_plays
    assert up.code == 0, up.output
    network = [
        "modprobe lnet",
        "lnetctl lnet configure",
        "lnetctl net add --net tcp --if lab0",
        "modprobe lustre",
    ]
    mkfs = "mkfs.lustre --fsname=weir --backfstype=ldiskfs"
    assert up.did("mds") == [
        *network,
        f"{mkfs} --mdt --mgs --index=0 /dev/disk/by-id/test-meta",
        f"mount.lustre /dev/disk/by-id/test-meta {made.folder}/mds/run/targets/mdt0",
    ]
    ost = f"{mkfs} --ost --index=%d --mgsnode=127.0.0.4@tcp"
    assert up.did("oss") == [
        *network,
        f"{ost % 0} /dev/disk/by-id/test-data-0",
        f"{ost % 1} --reformat /dev/disk/by-id/test-data-1",
        f"mount.lustre /dev/disk/by-id/test-data-0 {made.folder}/oss/run/targets/ost0",
        f"mount.lustre /dev/disk/by-id/test-data-1 {made.folder}/oss/run/targets/ost1",
        "lctl set_param ost.OSS.ost_io.nrs_policies=tbf",
        "lctl set_param ost.OSS.ost_io.nrs_tbf_rule=start video jobid={replay.0 replay.1} rate=100",
        "lctl set_param ost.OSS.ost_io.nrs_tbf_rule="
        "start reads nid={127.0.0.*@tcp}&opcode={ost_read} rate=50",
    ]
    assert up.did("client") == [
        *network,
        f"mount.lustre -o noatime 127.0.0.4@tcp:/weir {made.folder}/client/mnt",
        "lctl set_param jobid_var=procname_uid",
        f"lfs setstripe -c 2 -S 1048576 {made.folder}/client/mnt",
    ]


def test_lustre_starts_in_order_over_hosts(lustre_plays):
    _, up, _, down = lustre_plays
    mdt, ost = "mount.lustre /dev/disk/by-id/test-meta", "mount.lustre /dev/disk/by-id/test-data-"
    assert up.at(mdt) < up.at(f"{ost}0") < up.at(f"{ost}1") < up.at("mount.lustre -o noatime")
    assert down.code == 0, down.output
    ends = [line.rsplit("/", 1)[1] for line in down.did() if line.startswith("umount")]
    assert ends == ["mnt", "ost1", "ost0", "mdt0"]


def test_lustre_again_changes_nothing(lustre_plays):
    _, up, again, _ = lustre_plays
    assert again.code == 0, again.output
    assert set(up.changed) == set(again.changed) == {"client", "oss", "mds"}
    assert all(up.changed.values()) and not any(again.changed.values()), again.output
    assert again.did() == [] and again.commands != []


def test_lustre_is_taken_down_without_losing_data(lustre_plays):
    made, _, _, down = lustre_plays
    network = ["lnetctl net del --net tcp --if lab0", "lustre_rmmod"]
    assert down.did("client")[0] == "lctl set_param jobid_var=disable"
    assert down.did("oss")[0] == "lctl set_param ost.OSS.ost_io.nrs_policies=fifo"
    for host in ("client", "oss", "mds"):
        assert down.did(host)[-2:] == network
        assert json.loads((made.folder / host / "stub/mounts.json").read_text()) == {}
        assert not (made.folder / host / "run").exists()
    assert not any("mkfs" in line for line in down.did())


def test_modules_that_were_loaded_before_stay_and_so_does_a_network_in_use(tmp_path):
    targets = [{"kind": "mgs"}, {"kind": "mdt", "index": 0}]
    hosts = {
        "server": {"fs_lustre_roles": ["mgs", "mds"], "fs_lustre_targets": targets},
        "client": {"fs_lustre_roles": ["client"]},
    }
    variables = {"fs_lustre_backend": "wbcfs", "fs_lustre_folder": "{{ bed }}/run"}
    with bed(tmp_path, "fs_lustre", hosts, **variables) as made:
        made.state("server", "modules", {"libcfs": 1, "lnet": 0})
        assert (up := made.play()).code == 0, up.output
        elsewhere = {"/mnt/home": {"FSTYPE": "lustre", "SOURCE": "10.0.0.1@tcp1:/home", "OPTIONS": "rw"}}
        mounts = json.loads((tmp_path / "client/stub/mounts.json").read_text())
        made.state("client", "mounts", mounts | elsewhere)
        down = made.play(fs_lustre_state="absent")
        assert down.code == 0, down.output
        assert down.did("server")[-1] == "lnetctl net del --net tcp --if lab0"
        assert not any(line.startswith(("lnetctl", "lustre_rmmod")) for line in down.did("client"))
        # Once that is gone, too, what this role has loaded is unloaded.
        made.state("client", "mounts", {})
        assert (down := made.play(fs_lustre_state="absent")).code == 0, down.output
        assert down.did("client")[-1] == "lustre_rmmod" and not (tmp_path / "client/run").exists()


def test_lustre_does_not_format_what_it_has_formatted(lustre_plays):
    made, _, _, _ = lustre_plays
    up = made.play(hosts="mds,oss")
    assert up.code == 0, up.output
    assert not any(line.startswith("mkfs") for line in up.did())
    assert len([line for line in up.did() if line.startswith("mount")]) == 3


def test_rules_that_changed_are_replaced_and_others_kept(lustre_plays):
    made, _, _, _ = lustre_plays
    service = "ost.OSS.ost_io.nrs_"
    kept = {"video": "jobid={replay.0 replay.1} 100", "reads": "opcode={ost_read} 7", "old": "nid={*@tcp} 9"}
    made.state("oss", "params", {f"{service}policies": "tbf", f"{service}tbf_rule": kept})
    done = made.play(tasks_from="set_policy", hosts="oss", fs_lustre_policy="tbf")
    assert done.code == 0, done.output
    assert sorted(done.did()[:2]) == [
        f"lctl set_param {service}tbf_rule=stop {name}" for name in ("old", "reads")
    ]
    start = f"lctl set_param {service}tbf_rule=start reads nid={{127.0.0.*@tcp}}&opcode={{ost_read}} rate=50"
    assert done.did()[2:] == [start]


def test_a_device_that_the_inventory_does_not_name_is_refused_before_anything_ran(tmp_path):
    with lustre(tmp_path, weir_devices={"meta": DISKS["meta"], "data-0": DISKS["data-0"]}) as made:
        done = made.play()
        assert done.code != 0
        assert "data-1 is none of the disks whose data may be lost" in done.output
        assert done.commands == [] and not list(tmp_path.glob("*/run"))


def test_a_device_with_a_signature_is_refused_before_anything_was_changed(tmp_path):
    with lustre(tmp_path) as made:
        # What may be overwritten is data-1 alone.
        made.state("oss", "signatures", {DISKS["data-0"]["path"]: "xfs", DISKS["data-1"]["path"]: "xfs"})
        done = made.play()
        assert done.code != 0
        assert "test-data-0 is not blank: it carries xfs" in done.output
        assert "test-data-1 is not" not in done.output
        assert done.did() == []


def test_another_file_system_at_the_point_is_left_alone(tmp_path):
    with lustre(tmp_path) as made:
        point = f"{tmp_path}/client/mnt"
        made.state("client", "mounts", {point: {"FSTYPE": "nfs4", "SOURCE": "a:/b", "OPTIONS": "rw"}})
        up = made.play(tasks_from="mount", hosts="client,mds")
        assert up.code != 0 and "nfs4 a:/b is mounted there" in up.output and up.did("client") == []
        down = made.play(tasks_from="unmount", hosts="client,mds")
        assert down.code == 0 and down.did("client") == [], down.output


def test_pools_of_targets_are_exported_and_imported_again(tmp_path):
    with lustre(tmp_path, fs_lustre_backend="zfs") as made:
        up, again, down = three_plays(made)
        back = made.play()
        for play in (up, again, down, back):
            assert play.code == 0, play.output
        disk = DISKS["meta"]["path"]
        target = f"--fsname=weir --backfstype=zfs --mdt --mgs --index=0 weir-mdt0/mdt0 {disk}"
        assert up.did("mds")[-2:] == [
            f"mkfs.lustre {target}",
            f"mount.lustre weir-mdt0/mdt0 {tmp_path}/mds/run/targets/mdt0",
        ]
        assert again.did() == [] and not any(again.changed.values())
        # Last, when nothing holds them.
        assert down.did("oss")[-2:] == ["zpool export weir-ost0", "zpool export weir-ost1"]
        assert json.loads((tmp_path / "mds/stub/pools.json").read_text()) == {"weir-mdt0": "imported"}
        assert back.did("mds")[0] == f"zpool import -d{Path(disk).parent} weir-mdt0"
        assert not any("mkfs.lustre" in line for line in back.did())


def test_lustre_in_memory_is_told_what_it_is_by_its_environment(tmp_path):
    roles = ["mgs", "mds", "oss", "client"]
    targets = [{"kind": kind, "index": 0} for kind in ("ost", "mdt", "mgs")]
    hosts = {"all-in-one": {"fs_lustre_roles": roles, "fs_lustre_targets": targets}}
    variables = {"fs_lustre_backend": "wbcfs", "fs_lustre_folder": "{{ bed }}/run"}
    with bed(tmp_path, "fs_lustre", hosts, **variables) as made:
        up = made.play()
        assert up.code == 0, up.output
        started = [entry for entry in up.commands if "lustre-wbcfs" in entry["argv"]]
        common = {"OSD_WBC_FSNAME": "weir", "OSD_WBC_MGS_NID": "127.0.0.2@tcp", "OSD_WBC_INDEX": "0"}
        kinds = [entry["environment"] for entry in started]
        assert kinds == [
            common | {"OSD_WBC_TGT_TYPE": kind, "OSD_WBC_PRIMARY_MDT": "0"} for kind in ("MGT", "MDT", "OST")
        ]
        assert not any("mkfs" in line for line in up.did())


# BeeGFS


def beegfs(folder, major):
    names = ("mgmtd", "meta", "storage", "client", "helperd", "grpc")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    hosts = {
        "client": {"fs_beegfs_roles": ["client"]},
        "store": {
            "fs_beegfs_roles": ["storage"],
            "fs_beegfs_targets": [{"id": n, "folder": "{{ bed }}/data/" + str(n)} for n in (101, 102)],
        },
        "mgmt": {"fs_beegfs_roles": ["mgmtd", "meta"]},
    }
    paths = {f"fs_beegfs_{name}": "{{ bed }}/" + name for name in ("etc", "run", "log")}
    paths |= {f"fs_beegfs_{name}_folder": "{{ bed }}/data/" + name for name in ("mgmtd", "meta")}
    return bed(folder, "fs_beegfs", hosts, fs_beegfs_major=major, fs_beegfs_ports=ports, **paths)


def written(file):
    """Keys and values of a configuration."""
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    return dict(line.split(" = ", 1) for line in lines)


@pytest.fixture(scope="module")
def beegfs_plays(tmp_path_factory):
    with beegfs(tmp_path_factory.mktemp("beegfs"), 7) as made:
        up = made.play("-vvv", "--diff")
        files = {file.name: written(file) for file in made.folder.glob("*/etc/*.conf")}
        secrets = {file: file.read_bytes() for file in made.folder.glob("*/etc/conn.auth")}
        modes = {file: file.stat().st_mode & 0o777 for file in secrets}
        interfaces = {file.read_text() for file in made.folder.glob("*/etc/interfaces")}
        alive = made.alive()
        again = made.play()
        cached = made.play(tasks_from="set_cache", hosts="client", fs_beegfs_cache="native")
        down = made.play(fs_beegfs_state="absent")
        yield {
            "made": made,
            "up": up,
            "again": again,
            "cached": cached,
            "down": down,
            "files": files,
            "secrets": secrets,
            "modes": modes,
            "interfaces": interfaces,
            "alive": alive,
        }


def test_beegfs_is_brought_up_by_these_commands(beegfs_plays):
    up, folder = beegfs_plays["up"], beegfs_plays["made"].folder
    assert up.code == 0, up.output
    data, etc = f"{folder}/%s/data/%s", f"{folder}/%s/etc/beegfs-%s.conf"
    serve = "beegfs-%s cfgFile={} runDaemonized=false"
    guard = f"nft -f {folder}/%s/run/beegfs.nft"
    assert up.did("mgmt") == [
        guard % "mgmt",
        f"beegfs-setup-mgmtd -C -p {data % ('mgmt', 'mgmtd')}",
        serve.format(etc % ("mgmt", "mgmtd")) % "mgmtd",
        f"beegfs-setup-meta -C -p {data % ('mgmt', 'meta')} -s 3",
        serve.format(etc % ("mgmt", "meta")) % "meta",
    ]
    assert up.did("store") == [
        guard % "store",
        f"beegfs-setup-storage -C -p {data % ('store', '101')} -s 2 -i 101",
        f"beegfs-setup-storage -C -p {data % ('store', '102')} -s 2 -i 102",
        serve.format(etc % ("store", "storage")) % "storage",
    ]
    conf, point = etc % ("client", "client"), f"{folder}/client/mnt"
    assert up.did("client") == [
        guard % "client",
        serve.format(etc % ("client", "helperd")) % "helperd",
        f"mount -t beegfs -o cfgFile={conf} beegfs_nodev {point}",
        f"beegfs-ctl --cfgFile={conf} --setpattern --numtargets=4 --chunksize=512K {point}",
    ]
    order = [up.at(f"beegfs-{name} ") for name in ("mgmtd", "meta", "storage", "helperd")]
    assert [*order, up.at("mount")] == sorted([*order, up.at("mount")])


def test_beegfs_files_say_where_to_listen_and_who_belongs(beegfs_plays):
    files, folder = beegfs_plays["files"], beegfs_plays["made"].folder
    assert set(files) == {f"beegfs-{name}.conf" for name in ("mgmtd", "meta", "storage", "helperd", "client")}
    hosts = {"mgmtd": "mgmt", "meta": "mgmt", "storage": "store", "client": "client"}
    for name, host in hosts.items():
        settings = files[f"beegfs-{name}.conf"]
        assert settings["connAuthFile"] == f"{folder}/{host}/etc/conn.auth"
        assert settings["connInterfacesFile"] == f"{folder}/{host}/etc/interfaces"
        assert settings.get("sysMgmtdHost", "127.0.0.4") == "127.0.0.4" and ("sysMgmtdHost" in settings) == (
            name != "mgmtd"
        )
        assert settings["connMgmtdPortTCP"] == files["beegfs-mgmtd.conf"]["connMgmtdPortTCP"]
    assert beegfs_plays["interfaces"] == {"lab0\n"}
    data = f"{folder}/store/data"
    assert files["beegfs-storage.conf"]["storeStorageDirectory"] == f"{data}/101,{data}/102"
    # A folder whose disk is not mounted must not become a new target.
    assert {files[f"beegfs-{n}.conf"]["storeAllowFirstRunInit"] for n in ("mgmtd", "meta", "storage")} == {
        "false"
    }
    assert files["beegfs-client.conf"]["tuneFileCacheType"] == "buffered"


def test_the_secret_is_the_same_everywhere_and_shown_nowhere(beegfs_plays):
    made, secrets = beegfs_plays["made"], beegfs_plays["secrets"]
    ours = made.folder / ".weir/beegfs/conn.auth"
    secret = ours.read_bytes()
    assert len(secret) == 128 and len(set(secret)) > 32
    assert set(secrets.values()) == {secret} and len(secrets) == 3
    assert set(beegfs_plays["modes"].values()) == {0o400}
    assert ours.stat().st_mode & 0o777 == 0o400 and ours.parent.stat().st_mode & 0o777 == 0o700
    # At its most talkative, too.
    said = beegfs_plays["up"].raw + made.log.read_bytes()
    said += b"".join(file.read_bytes() for file in made.folder.glob("*/log/*"))
    assert b"Copy the secret" in said
    for form in (secret[:8], secret.hex()[:16].encode(), base64.b64encode(secret)[:16]):
        assert form not in said


def test_beegfs_again_changes_nothing(beegfs_plays):
    up, again = beegfs_plays["up"], beegfs_plays["again"]
    assert beegfs_plays["alive"] == ["client/helperd", "mgmt/meta", "mgmt/mgmtd", "store/storage"]
    assert again.code == 0, again.output
    assert all(up.changed.values()) and len(again.changed) == 3
    assert not any(again.changed.values()) and again.did() == [], again.output


def test_beegfs_is_mounted_with_another_cache_by_a_play_of_the_client_alone(beegfs_plays):
    folder, cached = beegfs_plays["made"].folder / "client", beegfs_plays["cached"]
    assert cached.code == 0, cached.output
    mount = f"mount -t beegfs -o cfgFile={folder}/etc/beegfs-client.conf beegfs_nodev {folder}/mnt"
    assert cached.did() == [f"umount {folder}/mnt", mount]


def test_beegfs_is_taken_down_without_losing_data(beegfs_plays):
    made, down = beegfs_plays["made"], beegfs_plays["down"]
    assert down.code == 0, down.output
    assert down.did() == [f"umount {made.folder}/client/mnt", *["nft delete table inet weir_beegfs"] * 3]
    assert made.alive() == []
    assert not list(made.folder.glob("*/run/*")) and not list(made.folder.glob("*/etc/*"))
    assert (made.folder / "store/data/101/format.conf").exists()
    # The order of one host's services is that of the loop.
    stopped = re.findall(r"changed: \[mgmt\] => \(item=(\w+)\)", down.output)
    assert stopped == ["meta", "mgmtd"]


def test_a_folder_of_others_is_no_target(beegfs_plays):
    made = beegfs_plays["made"]
    theirs = made.folder / "store/data/103"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("")
    made.inventory["all"]["hosts"]["store"]["fs_beegfs_targets"].append({"id": 103, "folder": str(theirs)})
    done = made.play(hosts="store,mgmt")
    assert done.code != 0 and "is neither empty nor a target of BeeGFS: thesis.tex" in done.output
    assert not any("setup-storage" in line for line in done.did())


def test_beegfs_8_has_another_management_and_another_tool(tmp_path):
    with beegfs(tmp_path, 8) as made:
        up = made.play()
        assert up.code == 0, up.output
        toml = f"{tmp_path}/mgmt/etc/beegfs-mgmtd.toml"
        assert up.did("mgmt")[1:3] == [
            f"beegfs-mgmtd --init --config-file {toml}",
            f"beegfs-mgmtd --config-file {toml}",
        ]
        settings = written(Path(toml))
        ports = made.inventory["all"]["vars"]["fs_beegfs_ports"]
        assert settings == {
            "db-file": f'"{tmp_path}/mgmt/data/mgmtd/mgmtd.sqlite"',
            "beemsg-port": str(ports["mgmtd"]),
            "grpc-port": str(ports["grpc"]),
            "interfaces": '["lab0"]',
            "auth-file": f'"{tmp_path}/mgmt/etc/conn.auth"',
            "tls-disable": "true",
            "log-target": '"std"',
        }
        assert made.alive() == ["mgmt/meta", "mgmt/mgmtd", "store/storage"]
        client = written(tmp_path / "client/etc/beegfs-client.conf")
        assert client["connClientPort"] == str(ports["client"]) and "connHelperdPortTCP" not in client
        tool = up.commands[-1]
        point = f"{tmp_path}/client/mnt"
        assert tool["argv"] == ["beegfs", "entry", "set", "--num-targets=4", "--chunk-size=512KiB", point]
        assert tool["environment"] == {
            "BEEGFS_MGMTD_ADDR": f"127.0.0.4:{ports['grpc']}",
            "BEEGFS_TLS_DISABLE": "true",
            "BEEGFS_AUTH_FILE": f"{tmp_path}/client/etc/conn.auth",
        }


# OrangeFS


def orangefs(folder, **common):
    hosts = {
        "data": {"fs_orangefs_roles": ["io", "client"]},
        "names": {"fs_orangefs_roles": ["meta", "io"]},
    }
    paths = {f"fs_orangefs_{name}": "{{ bed }}/" + name for name in ("etc", "run", "folder")}
    return bed(folder, "fs_orangefs", hosts, fs_orangefs_port=free_port(), **paths | common)


@pytest.fixture(scope="module")
def orangefs_plays(tmp_path_factory):
    with orangefs(tmp_path_factory.mktemp("orangefs")) as made:
        up, again, down = three_plays(made)
        yield made, up, again, down


def test_orangefs_is_brought_up_by_these_commands(orangefs_plays):
    made, up, _, _ = orangefs_plays
    assert up.code == 0, up.output
    port = made.inventory["all"]["vars"]["fs_orangefs_port"]
    conf = f"{made.folder}/%s/etc/weir.conf"
    names = up.did("names")
    words = names[0].split()
    assert words[0] == "pvfs2-genconfig" and words[-1] == conf % "names"
    options = dict(zip(words[2:-1:2], words[3:-1:2], strict=True))
    folder = f"{made.folder}/names"
    assert words[1] == "--quiet" and options == {
        "--protocol": "tcp",
        "--tcpport": str(port),
        "--fsname": "orangefs",
        "--dist-name": "simple_stripe",
        "--dist-params": "strip_size:65536",
        "--metaservers": "127.0.0.3",
        "--ioservers": "127.0.0.2,127.0.0.3",
        "--storage": f"{folder}/folder/data",
        "--metadata": f"{folder}/folder/meta",
        "--logfile": f"{folder}/run/server.log",
    }
    assert names[1:] == [f"pvfs2-server {flag} -a 127.0.0.3 {conf % 'names'}" for flag in ("-f", "-d")]
    programs = f"{made.folder}/data/bin"
    assert up.did("data") == [
        *(f"pvfs2-server {flag} -a 127.0.0.2 {conf % 'data'}" for flag in ("-f", "-d")),
        f"pvfs2-client -f -p {programs}/pvfs2-client-core",
        f"mount -t pvfs2 tcp://127.0.0.3:{port}/orangefs {made.folder}/data/mnt",
    ]
    assert up.at("pvfs2-server -d -a 127.0.0.3") < up.at("pvfs2-server -d -a 127.0.0.2") < up.at("mount")


def test_orangefs_servers_share_a_configuration_and_listen_at_their_addresses(orangefs_plays):
    made, _, _, _ = orangefs_plays
    texts = {file.read_text() for file in made.folder.glob("*/etc/weir.conf")}
    assert len(texts) == 1 and len(list(made.folder.glob("*/etc/weir.conf"))) == 2
    assert texts.pop().startswith("<Defaults>\n\tTCPBindSpecific yes\n\tLogFile")


def test_orangefs_again_changes_nothing(orangefs_plays):
    _, up, again, _ = orangefs_plays
    assert again.code == 0, again.output
    assert all(up.changed.values()) and len(again.changed) == 2
    assert not any(again.changed.values()) and again.did() == [], again.output


def test_orangefs_is_taken_down_and_comes_back_as_it_was(orangefs_plays):
    made, _, _, down = orangefs_plays
    assert down.code == 0, down.output
    assert down.did() == [f"umount {made.folder}/data/mnt"]
    assert made.alive() == [] and not list(made.folder.glob("*/run/*"))
    before = {file: file.read_text() for file in made.folder.glob("*/etc/weir.conf")}
    up = made.play(hosts="data,names")
    assert up.code == 0, up.output
    assert {file: file.read_text() for file in made.folder.glob("*/etc/weir.conf")} == before
    assert not [line for line in up.did() if line.startswith(("pvfs2-genconfig", "pvfs2-server -f"))]
    assert made.alive() == ["data/client", "data/server", "names/server"]


def test_orangefs_of_other_servers_is_refused(orangefs_plays):
    made, _, _, _ = orangefs_plays
    done = made.play(fs_orangefs_stripe_bytes=131072)
    assert done.code != 0 and "is of other servers or settings" in done.output and done.did() == []


def test_orangefs_by_fuse(tmp_path):
    with orangefs(tmp_path, fs_orangefs_client="fuse") as made:
        port = made.inventory["all"]["vars"]["fs_orangefs_port"]
        command = f"pvfs2fuse -o fs_spec=tcp://127.0.0.3:{port}/orangefs {tmp_path}/data/mnt"
        # Names are looked up among the hosts of the play; only one mounts.
        plays = [made.play(tasks_from=tasks) for tasks in ("mount", "mount", "unmount")]
        assert [play.code for play in plays] == [0, 0, 0], plays[0].output
        assert [play.did("data") for play in plays] == [[command], [], [f"umount {tmp_path}/data/mnt"]]
