"""The module weir_daemon, called as functions."""

import json
import os
import signal
import socket

import pytest
from beds import daemon, free_port
from support import wait_for


@pytest.fixture
def note(tmp_path):
    yield tmp_path / "note.json"
    if pid := daemon.living(tmp_path / "note.json"):
        os.killpg(pid, signal.SIGKILL)


def wanted(tmp_path, *argv, **fields):
    return {
        "argv": argv,
        "log": tmp_path / "log",
        "address": "127.0.0.1",
        "port": 0,
        "patience_s": 5,
    } | fields


def test_a_server_is_ended_with_what_it_started(tmp_path, note):
    pid = daemon.begin(wanted(tmp_path, "sh", "-c", f"sleep 60 & echo $! > {tmp_path}/child; wait"), note)
    child = int(
        wait_for(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(), "a child")
    )
    assert daemon.living(note) == pid and daemon.started_ticks(child) is not None
    daemon.stop(pid, note, 5)
    assert daemon.living(note) == 0 and not note.exists()
    wait_for(lambda: daemon.started_ticks(child) is None, "the child to end")


def test_a_pid_that_was_given_to_another_is_not_ours(tmp_path, note):
    pid = daemon.begin(wanted(tmp_path, "sleep", "60"), note)
    ours = note.read_text()
    noted = json.loads(ours)
    note.write_text(json.dumps(noted | {"started_ticks": noted["started_ticks"] - 1}))
    assert daemon.living(note) == 0
    note.write_text(ours)
    assert daemon.living(note) == pid
    daemon.stop(pid, note, 5)


@pytest.mark.parametrize("has_port", [False, True])
def test_a_server_that_dies_is_told_of_with_its_last_words(tmp_path, note, has_port):
    port = free_port() if has_port else 0
    with pytest.raises(RuntimeError, match=r"sh ended with code 3: no disk"):
        daemon.begin(wanted(tmp_path, "sh", "-c", "echo no disk; exit 3", port=port), note)
    assert not note.exists()


def test_a_server_that_does_not_answer_is_ended(tmp_path, note):
    with pytest.raises(RuntimeError, match=r"did not answer at 127\.0\.0\.1"):
        daemon.begin(wanted(tmp_path, "sleep", "60", port=free_port(), patience_s=0.2), note)
    assert not note.exists()


def test_a_port_where_another_answers_is_not_waited_for(tmp_path, note):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RuntimeError, match=f"another server answers at 127.0.0.1:{port}"):
            daemon.begin(wanted(tmp_path, "sleep", "60", port=port), note)
    assert not note.exists()
