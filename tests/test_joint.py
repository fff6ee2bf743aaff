"""Runs of several hosts, whose parts are processes of this machine."""

import json
import os
import signal
import subprocess
import time

import polars as pl
import pytest
from joint import Party, missing, mount_tmpfs, rules, study, unmount
from support import problems_by_schema, wait_for, weir

#: How far ahead the clock of the other host is, in s.
AHEAD_S = 100_000


@pytest.fixture
def party(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: a run captures and mounts")
    if lacking := missing("fio"):
        pytest.skip(f"not installed: {', '.join(lacking)}")
    point = tmp_path / "shared"
    mount_tmpfs(point)
    party = Party(tmp_path, point)
    yield party
    party.close()
    left = list(point.iterdir())
    unmount(point)
    assert left == []


def _in_another_time(seconds):
    words = ["unshare", "--time", "--monotonic", str(seconds), "--fork", "--kill-child"]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"this kernel has no time namespaces: {tried.stderr.strip()}")
    return words


def test_a_host_with_another_clock_is_aligned(party):
    """This test will have the clock of one client be 100,000 s ahead: exactly that must be found."""
    elsewhere = _in_another_time(AHEAD_S)
    party.servers = ("s",)
    run = party.write_plan(study(party.folder))
    party.start("a", run)
    party.start("b", run, before=elsewhere)
    party.start("s", run)
    for host, (code, out, errors) in party.finish().items():
        assert code in (0, 3) and json.loads(out)["status"] in ("valid", "invalid"), (host, code, out, errors)
    results = party.gather(run)
    parts = results / f".{run['id']}.parts"
    raw = {host: pl.read_parquet(parts / host / "requests.parquet") for host in party.clients}
    records = {host: json.loads((parts / host / "part.json").read_text()) for host in party.hosts}
    for record in records.values():
        assert problems_by_schema("part", record) == []
    joined = party.join(run)
    assert joined.returncode in (0, 3), joined.stderr
    assert not parts.exists()

    folder = results / run["id"]
    for when in ("start", "end"):
        clock = records["b"]["clocks"][when]
        assert 0 < clock["bound_ns"] < 500_000
        assert abs(clock["offset_ns"] + AHEAD_S * 10**9) <= clock["bound_ns"], clock
    found = rules(folder)
    assert found["R-HOSTS"]["status"] == "valid", found["R-HOSTS"]
    assert "3 hosts" in found["R-HOSTS"]["reason"]
    for rule in ("R-PLANNED", "R-ERRORS", "R-STATE", "R-EXIT"):
        assert found[rule]["status"] == "valid", found[rule]
        assert found[rule]["reason"].startswith(("a: ", "b: "))

    table = pl.read_parquet(folder / "requests.parquet")
    assert table["request"].to_list() == list(range(len(table)))
    assert table["intended_ns"].is_sorted()
    epoch_ns = records["a"]["epoch_ns"]
    assert all(record["epoch_ns"] == epoch_ns for record in records.values())
    for place, host in enumerate(party.clients):
        rows = table.filter(pl.col("host") == host)
        assert len(rows) == len(raw[host]) > 0 and set(rows["class"]) == {"text", "records"}
        # Nobody's clock is asked here: what b said, less what its clock is ahead by, is when it was.
        ahead_ns = AHEAD_S * 10**9 if host == "b" else 0
        bound_ns = max(records[host]["clocks"][when]["bound_ns"] for when in ("start", "end")) if place else 0
        for column in ("intended_ns", "submitted_ns", "completed_ns"):
            true = raw[host][column] + records[host]["local_epoch_ns"] - ahead_ns - epoch_ns
            wrong = (rows[column] - true).abs().max()
            assert wrong <= bound_ns + 2, (host, column, wrong, bound_ns)
        for name, clients in (("text", 20), ("records", 2)):
            numbers = set(rows.filter(pl.col("class") == name)["client"])
            assert numbers <= set(range(place * clients, (place + 1) * clients))
    # Each client host has random streams of its own.
    sent = [
        table.filter((pl.col("host") == host) & (pl.col("class") == "text"))["offset"].to_list()
        for host in party.clients
    ]
    assert sent[0] != sent[1]
    hosts = json.loads((folder / "observed.json").read_text())["hosts"]
    assert set(hosts) == {"a", "b", "s"} and abs(hosts["b"]["drift_ppm"]) < 1000
    for host in party.hosts:
        record = json.loads((folder / "hosts" / host / "host.json").read_text())
        assert record["cpu"]
        assert problems_by_schema("host", record) == []
    assert json.loads((folder / "run.json").read_text())["seed"] == run["seed"]


def test_a_part_that_is_killed_ends_the_run_for_all(party):
    """This test will kill -9 one client in the middle: the others undo their part, the run says who."""
    party.servers = ("s",)
    run = party.write_plan(study(party.folder, duration_s=20))
    for host in party.hosts:
        party.start(host, run)
    wait_for(lambda: party.begun("a", run) and party.begun("b", run), "the run to begin", 20)
    time.sleep(0.5)
    killed = time.monotonic()
    party.processes["b"].kill()
    done = party.finish()
    assert time.monotonic() - killed < 10
    assert done["b"][0] == -signal.SIGKILL
    for host in ("a", "s"):
        code, out, errors = done[host]
        assert code == 3 and "host b was lost after" in json.loads(out)["broken"][0], (host, out, errors)
        assert not (party.folder / f"state-{host}/journal/run.json").exists()
    # Only the dead one's folder is left, and its own host takes it away.
    (left,) = party.point.iterdir()
    assert left.name.startswith(f"weir-{run['id']}.b.") and (left / ".weir-owner").exists()
    assert weir("clean", "--state", party.folder / "state-b").returncode == 0
    party.gather(run)
    joined = party.join(run)
    assert joined.returncode == 3, joined.stderr
    said = json.loads(joined.stdout)
    assert said["lost"] == ["b"] and said["status"] == "invalid"
    found = rules(party.folder / "results" / run["id"])
    assert list(found) == ["R-HOSTS"] and found["R-HOSTS"]["reason"].startswith("host b was lost after ")


def test_a_network_that_is_lost_ends_the_run_for_all(party):
    """This test will take the network of one client away in the middle: both undo their part and say so."""
    state, name = party.folder / "network", f"joint{os.getpid()}"
    up = weir("network", "up", "a,b", "--name", name, "--state", state, "--json")
    if up.returncode != 0:
        pytest.skip(f"no network namespaces: {up.stderr}")
    try:
        party.address = json.loads(up.stdout)["hosts"][0]["address"]
        run = party.write_plan(study(party.folder, duration_s=20))
        inside = {host: ("nsenter", f"--net=/run/netns/weir-{name}-{host}") for host in party.hosts}
        for host in party.hosts:
            party.start(host, run, before=inside[host])
        wait_for(lambda: party.begun("a", run) and party.begun("b", run), "the run to begin", 20)
        time.sleep(0.5)
        cut = time.monotonic()
        subprocess.run([*inside["b"], "ip", "link", "set", "eth0", "down"], check=True)
        done = party.finish()
        assert time.monotonic() - cut < 20
        for host, other in (("a", "b"), ("b", "a")):
            code, out, _ = done[host]
            assert code == 3 and f"host {other} was lost after" in json.loads(out)["broken"][0], done
            assert not (party.folder / f"state-{host}/journal/run.json").exists()
        assert list(party.point.iterdir()) == []
    finally:
        assert weir("network", "down", "--state", state).returncode == 0


def test_a_part_that_cannot_go_on_says_why_to_all(party):
    """This test will let one client find that its storage is not mounted."""
    run = party.write_plan(study(party.folder))
    party.start("a", run)
    party.testbed = party.folder / "other.json"
    party.testbed.write_text(json.dumps({"devices": {}, "mounts": {"mounted": str(party.folder)}}))
    party.start("b", run)
    done = party.finish()
    assert done["b"][0] == 2 and "nothing is mounted there" in done["b"][2], done["b"]
    assert done["a"][0] == 3 and "host b failed" in json.loads(done["a"][1])["broken"][0], done["a"]
    party.gather(run)
    joined = party.join(run)
    assert joined.returncode == 1 and "nothing is mounted there" in joined.stderr, joined
    assert not (party.folder / "results" / run["id"]).exists()


def test_another_token_is_refused_and_named(party):
    """This test will come with another token, one that others may read, and none; nothing is touched."""
    run = party.write_plan(study(party.folder))
    party.start("a", run)
    other = party.folder / "other"
    other.write_text("x" * 48)
    other.chmod(0o644)
    for mode, says in ((0o644, "chmod 600"), (0o600, "host `b` has another token")):
        other.chmod(mode)
        process = party.start("b", run, token=other)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 2 and says in errors, errors
        assert "x" * 48 not in errors
    del party.processes["b"]
    party.processes["a"].send_signal(signal.SIGTERM)
    code, _, errors = party.finish()["a"]
    assert code == 1 and "127.0.0.1 was refused: host `b` has another token" in errors, errors
    assert party.token.read_text() not in errors
    assert not (party.folder / "state-b/journal").exists()
    alone = party.command("a", run)[1:7]
    refused = weir(*alone, "--testbed", party.testbed, "--state", party.folder / "state-a")
    assert refused.returncode == 2 and "takes 2 client hosts" in refused.stderr, refused
