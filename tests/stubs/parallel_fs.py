#!/usr/bin/python3 -IS
"""Stands for the programs of parallel file systems, and for mount(8) and its kin, by the name it is called.

Appends its name and arguments to a log, and keeps as much in files as the next question needs. It is no file
system: nothing is mounted, formatted or loaded. Lies in HOST/bin/NAME; the state of a host is in
HOST/stub, the log of all beside the hosts.
"""

import json
import os
import re
import signal
import socket
import sys
from pathlib import Path

NAME = Path(sys.argv[0]).name
ARGUMENTS = sys.argv[1:]
HOST = Path(os.path.abspath(sys.argv[0])).parent.parent
STATE = HOST / "stub"


def main():
    """Answers for the program that it is called as."""
    handler, reads = find()
    # One write of less than a page: hosts share the log.
    shown = {"host": HOST.name, "argv": [NAME, *ARGUMENTS], "reads": reads}
    shown |= {"environment": {k: v for k, v in os.environ.items() if k.startswith(("OSD_WBC_", "BEEGFS_"))}}
    with (HOST.parent / "log.jsonl").open("a") as log:
        log.write(json.dumps(shown) + "\n")
    sys.exit(handler() or 0)


def find():
    """The function that answers, and whether it only reads."""
    words = " ".join([NAME, *ARGUMENTS])
    for pattern, handler, reads in PROGRAMS:
        if re.match(pattern, words):
            return handler, reads
    sys.exit(f"{words}: the stub does not know this")


def load(kind):
    """A table of this host's state."""
    file = STATE / f"{kind}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def save(kind, table):
    """Keeps a table."""
    STATE.mkdir(exist_ok=True)
    (STATE / f"{kind}.json").write_text(json.dumps(table))


def option(name, default=""):
    """The argument after an option."""
    return ARGUMENTS[ARGUMENTS.index(name) + 1] if name in ARGUMENTS else default


def nothing():
    """What only has to be logged."""


def mount():
    """mount -t TYPE [-o OPTIONS] SOURCE POINT, mount.lustre SOURCE POINT, pvfs2fuse -o OPTIONS POINT."""
    point = ARGUMENTS[-1]
    source = "pvfs2fuse" if NAME == "pvfs2fuse" else ARGUMENTS[-2]
    if not Path(point).is_dir():
        sys.exit(f"mount: {point}: mount point does not exist")
    kinds = {"mount.lustre": "lustre", "pvfs2fuse": "fuse.pvfs2fuse"}
    entry = {"FSTYPE": kinds.get(NAME) or option("-t"), "SOURCE": source, "OPTIONS": "rw," + option("-o")}
    save("mounts", load("mounts") | {point: entry})


def umount():
    """umount POINT."""
    mounts = load("mounts")
    if not mounts.pop(ARGUMENTS[-1], None):
        return 32
    return save("mounts", mounts)


def findmnt():
    """findmnt --noheadings --output COLUMNS --mountpoint POINT, or --output TARGET --types TYPES."""
    if "--types" in ARGUMENTS:
        kinds = option("--types").split(",")
        found = [point for point, entry in load("mounts").items() if entry["FSTYPE"] in kinds]
        # It says 0 even if there is none.
        return print("\n".join(found))
    entry = load("mounts").get(option("--mountpoint"))
    if not entry:
        return 1
    return print(" ".join(entry[column] for column in option("--output").split(",")))


def weir():
    """weir device check DEVICE [--overwrite NAME]."""
    kind = load("signatures").get(ARGUMENTS[2])
    if kind and "--overwrite" not in ARGUMENTS:
        print(f"error: {ARGUMENTS[2]} is not blank: it carries {kind}", file=sys.stderr)
        return 2
    return print(f"{ARGUMENTS[2]}: may be used")


def ip():
    """ip -json address show to ADDRESS/32."""
    ours = option("to") == (HOST / "address").read_text() + "/32"
    print(json.dumps([{}, {"ifname": "lab0"}] if ours else []))


def modprobe():
    """modprobe MODULE; all of Lustre's need libcfs."""
    lustre = {"libcfs": 1} if ARGUMENTS[-1] in ("lnet", "lustre") else {}
    save("modules", load("modules") | lustre | {ARGUMENTS[-1]: 0})


def lsmod():
    """lsmod."""
    print("Module                  Size  Used by")
    for name, users in load("modules").items():
        print(f"{name:<20} 16384  {users}")


def lustre_rmmod():
    """lustre_rmmod: LNet is taken down with the modules; its helpers are found by PATH."""
    if not (Path(os.environ["PATH"].split(":")[0]) / "lnetctl").exists():
        sys.exit("lustre_rmmod: lnetctl: command not found")
    if any(entry["FSTYPE"] == "lustre" for entry in load("mounts").values()):
        sys.exit("rmmod: ERROR: Module lustre is in use")
    save("modules", {})
    save("lnet", {})


def mkfs_lustre():
    """mkfs.lustre OPTIONS DEVICE, or DATASET DEVICE; refuses a formatted device as the real one does."""
    plain = [word for word in ARGUMENTS if not word.startswith("--")]
    fields = dict(word[2:].split("=") for word in ARGUMENTS if "=" in word)
    targets = load("targets")
    if plain[-1] in load("signatures") and "--reformat" not in ARGUMENTS:
        sys.exit(
            "mkfs.lustre FATAL: Device was previously formatted for lustre. Use --reformat to reformat it."
        )
    kind = next((kind for kind in ("MDT", "OST") if f"--{kind.lower()}" in ARGUMENTS), None)
    targets[plain[0]] = f"{fields['fsname']}:{kind}{int(fields['index']):04x}" if kind else "MGS"
    save("targets", targets)
    is_zfs = fields["backfstype"] == "zfs"
    save("signatures", load("signatures") | {plain[-1]: "zfs_member" if is_zfs else "ext4"})
    if is_zfs:
        save("pools", load("pools") | {plain[0].split("/")[0]: "imported"})


def tunefs_lustre():
    """tunefs.lustre --dryrun TARGET."""
    label, pool = load("targets").get(ARGUMENTS[-1]), ARGUMENTS[-1].split("/")[0]
    if not label or load("pools").get(pool, "imported") != "imported":
        sys.exit("tunefs.lustre FATAL: Device has not been formatted with mkfs.lustre")
    print(f"\n   Read previous values:\nTarget:     {label}\nIndex:      0\nLustre FS:  weir\n")


def zpool():
    """zpool list -H -o name, zpool import [-dFOLDER ...] [POOL], zpool export POOL."""
    pools = load("pools")
    named = [word for word in ARGUMENTS[1:] if not word.startswith("-")]
    match ARGUMENTS[0], named:
        case "list", _:
            print("\n".join(name for name, state in pools.items() if state == "imported"))
        case "import", []:
            found = [name for name, state in pools.items() if state == "exported"]
            print("\n".join(f"  pool: {name}\n    id: 9\n state: ONLINE" for name in found))
        case verb, [name] if pools.get(name) == {"import": "exported", "export": "imported"}[verb]:
            save("pools", pools | {name: verb + "ed"})
        case _:
            sys.exit(f"cannot {' '.join(ARGUMENTS)}: no such pool")


def nft():
    """nft -f FILE, nft list|delete table inet NAME."""
    tables = load("tables")
    if ARGUMENTS[0] == "-f":
        text = Path(ARGUMENTS[1]).read_text()
        return save("tables", tables | {re.search(r"^table inet (\w+)", text, re.M)[1]: text})
    if ARGUMENTS[-1] not in tables:
        sys.exit("Error: No such file or directory")
    if ARGUMENTS[0] == "delete":
        del tables[ARGUMENTS[-1]]
        save("tables", tables)
    return 0


def lnetctl():
    """lnetctl lnet configure|unconfigure, lnetctl net show|add|del."""
    match ARGUMENTS[:2]:
        case ["net", "show"] if "net" in load("lnet"):
            address = (HOST / "address").read_text()
            print(f"net:\n    - net type: tcp\n      local NI(s):\n        - nid: {address}@tcp\n")
        case ["net", "add"]:
            save("lnet", {"net": option("--if")})
        case ["net", "del"]:
            save("lnet", {})
        case ["lnet", "unconfigure"] if load("modules"):
            sys.exit("unconfigure: errno -16: LNet unconfigure error: Device or resource busy")


def get_param():
    """lctl get_param -n NAME, as a server of two processor partitions answers."""
    params, name = load("params"), ARGUMENTS[-1]
    if name.endswith("nrs_policies"):
        wanted = params.get(name, "fifo")
        text = ""
        for policy in ("fifo", "crrn", "orr", "trr", "tbf", "delay"):
            state = "started" if policy in ("fifo", wanted) else "stopped"
            text += f"  - name: {policy}\n    state: {state}\n    fallback: no\n"
        print(f"\nregular_requests:\n{text}\nhigh_priority_requests:\n{text}")
    elif name.endswith("nrs_tbf_rule"):
        rules = {"default": "* 10000"} | params.get(name, {})
        partition = "".join(f"{key} {value}, ref 0\n" for key, value in rules.items())
        lines = f"CPT 0:\n{partition}CPT 1:\n{partition}"
        print(f"regular_requests:\n{lines}high_priority_requests:\n{lines}")
    else:
        print(params.get(name, "disable"))


def set_param():
    """lctl set_param NAME=VALUE."""
    params = load("params")
    name, value = ARGUMENTS[-1].split("=", 1)
    if name.endswith("nrs_tbf_rule"):
        verb, rule, *rest = value.split(" ", 2)
        rules = params.get(name, {})
        if (verb == "start") == (rule in rules):
            sys.exit(f"error: set_param: setting {name}={value}: there is such a rule, or there is none")
        rules.pop(rule, None)
        if verb == "start":
            match, rate = rest[0].rsplit(" rate=", 1)
            rules[rule] = f"{match} {rate}"
        value = rules
    elif name.endswith("nrs_policies"):
        # Rules are gone with the filter.
        params.pop(name.replace("nrs_policies", "nrs_tbf_rule"), None)
    save("params", params | {name: value})


def lfs():
    """lfs getstripe -d --stripe-count|--stripe-size FOLDER, lfs setstripe -c COUNT -S SIZE FOLDER."""
    if ARGUMENTS[0] == "setstripe":
        save("stripes", {"--stripe-count": option("-c"), "--stripe-size": option("-S")})
    else:
        print(load("stripes").get(ARGUMENTS[2], "0"))


def beegfs_setup():
    """beegfs-setup-* -C -p FOLDER ..."""
    (Path(option("-p")) / "format.conf").write_text("version = 4\n")


def beegfs_init():
    """beegfs-mgmtd --init --config-file FILE."""
    Path(read_settings(option("--config-file"))["db-file"]).write_text("")


def beegfs_server():
    """A server of BeeGFS: reads its file, wants the secret and what it was set up with, and listens."""
    file = option("--config-file") or ARGUMENTS[0].removeprefix("cfgFile=")
    settings = read_settings(file)
    if len(Path(settings.get("connAuthFile") or settings["auth-file"]).read_bytes()) != 128:
        sys.exit("no secret")
    kind = NAME.removeprefix("beegfs-").capitalize()
    for key in ("storeMgmtdDirectory", "storeMetaDirectory", "storeStorageDirectory"):
        for folder in settings.get(key, "").split(",") if key in settings else []:
            if not (Path(folder) / "format.conf").exists():
                sys.exit(f"{folder} was not set up")
            if kind in ("Mgmtd", "Meta"):
                # As those of 7.4 do, whatever it was.
                Path(folder).chmod(0o755)
    names = [f"conn{kind}PortTCP", f"conn{kind}Port", "beemsg-port"]
    listen(next(int(settings[name]) for name in names if name in settings))


def beegfs_pattern():
    """beegfs-ctl --getentryinfo|--setpattern and beegfs entry info|set."""
    if "--setpattern" in ARGUMENTS or ARGUMENTS[:2] == ["entry", "set"]:
        words = dict(word.lstrip("-").split("=", 1) for word in ARGUMENTS if "=" in word)
        chunk = (words.get("chunksize") or words["chunk-size"]).removesuffix("iB")
        save("pattern", {"chunk": chunk, "targets": words.get("numtargets") or words["num-targets"]})
    else:
        found = {"chunk": "1M", "targets": "4"} | load("pattern")
        print(f"Entry type: directory\nStripe pattern details:\n+ Type: RAID0\n+ Chunksize: {found['chunk']}")
        print(f"+ Number of storage targets: desired: {found['targets']}    ")
    if NAME == "beegfs":
        # As 8.3.1 does where its management has no library for licences.
        sys.exit("Error: unable to verify licensed status: rpc error: code = Unknown desc = Get license")


def genconfig():
    """pvfs2-genconfig OPTIONS FILE: what a server needs here, and a number of its own."""
    text = f"<Defaults>\n\tLogFile {option('--logfile')}\n</Defaults>\n<Aliases>\n"
    servers = dict.fromkeys(option("--metaservers").split(",") + option("--ioservers").split(","))
    port = option("--tcpport")
    text += "".join(f"\tAlias {name} tcp://{name}:{port}\n" for name in servers)
    number = int.from_bytes(os.urandom(4))
    text += f"</Aliases>\n<FileSystem>\n\tName {option('--fsname')}\n\tID {number}\n</FileSystem>\n"
    Path(ARGUMENTS[-1]).write_text(text)


def pvfs2_server():
    """pvfs2-server -d -a ALIAS FILE."""
    text = Path(ARGUMENTS[-1]).read_text()
    listen(int(re.search(rf"Alias {option('-a')} tcp://[\d.]+:(\d+)", text)[1]))


def read_settings(file):
    """Keys and values of a file of BeeGFS's, of either kind."""
    lines = [line.split(" = ", 1) for line in Path(file).read_text().splitlines() if not line.startswith("#")]
    return {key: value.strip('"') for key, value in lines}


def listen(port):
    """Accepts connections at this host's address until it is told to end."""
    with socket.create_server(((HOST / "address").read_text(), port)) as server:
        while True:
            server.accept()[0].close()


#: What the name and the arguments begin with, who answers, and whether it only reads.
PROGRAMS = [
    (r"findmnt ", findmnt, True),
    (r"weir device check ", weir, True),
    (r"ip ", ip, True),
    (r"mount(\.lustre)? |pvfs2fuse ", mount, False),
    (r"umount ", umount, False),
    (r"modprobe ", modprobe, False),
    (r"lsmod", lsmod, True),
    (r"nft list ", nft, True),
    (r"nft ", nft, False),
    (r"zpool (list|import( -d\S+)*$)", zpool, True),
    (r"zpool ", zpool, False),
    (r"lustre_rmmod", lustre_rmmod, False),
    (r"mkfs\.lustre ", mkfs_lustre, False),
    (r"tunefs\.lustre --dryrun ", tunefs_lustre, True),
    (r"lnetctl net show ", lnetctl, True),
    (r"lnetctl ", lnetctl, False),
    (r"lctl get_param ", get_param, True),
    (r"lctl set_param ", set_param, False),
    (r"lfs getstripe ", lfs, True),
    (r"lfs setstripe ", lfs, False),
    (r"beegfs-setup-", beegfs_setup, False),
    (r"beegfs-mgmtd --init ", beegfs_init, False),
    (r"beegfs-(mgmtd|meta|storage|helperd) ", beegfs_server, False),
    (r"beegfs-ctl .*--getentryinfo|beegfs entry info", beegfs_pattern, True),
    (r"beegfs-ctl .*--setpattern|beegfs entry set", beegfs_pattern, False),
    (r"pvfs2-genconfig ", genconfig, False),
    (r"pvfs2-server -f ", nothing, False),
    (r"pvfs2-server -d ", pvfs2_server, False),
    (r"pvfs2-client -f ", signal.pause, False),
]

#: The names under which it is called.
NAMES = [
    *("findmnt", "weir", "ip", "mount", "umount", "modprobe", "lsmod", "nft", "zpool"),
    *("mount.lustre", "mkfs.lustre", "tunefs.lustre", "lnetctl", "lctl", "lfs", "lustre_rmmod"),
    *("beegfs-setup-mgmtd", "beegfs-setup-meta", "beegfs-setup-storage"),
    *("beegfs-mgmtd", "beegfs-meta", "beegfs-storage", "beegfs-helperd", "beegfs-ctl", "beegfs"),
    *("pvfs2-genconfig", "pvfs2-server", "pvfs2-client", "pvfs2fuse"),
]

if __name__ == "__main__":
    main()
