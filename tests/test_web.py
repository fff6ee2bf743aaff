"""Documents and browsers: a tree is laid out, Python's own web server serves it, every answer is a row."""

import functools
import http.server
import json
import threading

import polars as pl
import pytest
from support import weir

SMALL = ("--with", "files.count=40", "--seed", 5)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "www"
    laid_out = weir("documents", "zipf-class0", "--out", folder, *SMALL, "--json")
    assert laid_out.returncode == 0, laid_out.stderr
    figures = json.loads(laid_out.stdout)
    assert figures["documents"] == 40
    assert figures["written"]
    return folder


@pytest.fixture
def url(tree):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tree))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_tree_is_checked_to_the_byte(tree):
    again = weir("documents", "zipf-class0", "--out", tree, *SMALL)
    assert "there already" in again.stdout
    assert weir("documents", "zipf-class0", "--out", tree, *SMALL, "--check").returncode == 0
    other = weir(
        "documents", "zipf-class0", "--out", tree, "--with", "files.count=40", "--seed", 6, "--check"
    )
    assert other.returncode == 1
    assert "other documents" in other.stdout


@pytest.mark.parametrize("load", [("--clients", 8), ("--clients", 100, "--open")])
def test_every_answer_is_a_row(url, tmp_path, load):
    rows = tmp_path / "requests.parquet"
    arguments = ("browse", url, "--workload", "zipf-class0", *SMALL, *load)
    asked = weir(*arguments, "--duration-s", 1, "--warmup-s", 0.2, "--out", rows, "--json")
    assert asked.returncode == 0, asked.stderr
    report = json.loads(asked.stdout)
    [site] = report["classes"]
    table = pl.read_parquet(rows)
    assert table.height == site["requests"] + site["warmup_requests"] > 50
    assert site["failed"] == 0
    measured = table.filter(~pl.col("warmup"))
    expected = site["bytes_per_s"] * report["measured_s"]
    assert measured["size_bytes"].sum() == pytest.approx(expected)
    assert table["intended_ns"].is_sorted()
    assert table["request"].to_list() == list(range(table.height))
    assert table["status"].unique().to_list() == [0]


def test_failures_end_the_run_unless_it_is_to_go_on(url, tmp_path):
    arguments = ("browse", url, "--workload", "zipf-class0", "--seed", 5, "--duration-s", 1)
    # With all 668 documents most are not there, and sizes are others.
    stopped = weir(*arguments, "--out", tmp_path / "a.parquet")
    assert stopped.returncode == 1
    assert "--keep-going" in stopped.stderr
    assert "GET /000" in stopped.stderr
    everything = weir(*arguments, "--out", tmp_path / "b.parquet", "--keep-going")
    assert everything.returncode in (0, 1)
    assert "not found" in everything.stdout
    rows = [pl.read_parquet(tmp_path / name).height for name in ("a.parquet", "b.parquet")]
    assert 0 < rows[0] < rows[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("https://127.0.0.1/", "--workload", "zipf-class0"), "TLS is not supported"),
        (("http://127.0.0.1:9/", "--workload", "zipf-clas0"), "zipf-class0"),
        (("http://127.0.0.1:9/", "--workload", "mpeg-vbr"), "whole_file"),
        (("http://127.0.0.1:9/", "--workload", "tpcw-shopping"), "sessions"),
        (("http://127.0.0.1:9/", "--workload", "zipf-class0", "--with", "files.cont=3"), "--with.files.cont"),
        (("http://127.0.0.1:9/", "--workload", "zipf-class0", "--with", "files"), "FIELD=VALUE"),
        (("http://127.0.0.1:9/", "--workload", "zipf-class0", "--warmup-s", "10"), "warmup"),
        (("http://127.0.0.1:9/", "--workload", "zipf-class0", "--duration-s=-1"), "duration"),
        (("http://127.0.0.1:9/", "--workload", "zipf-class0", "--clients", "0"), "at least one client"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path, arguments, says):
    refused = weir("browse", *arguments, "--out", tmp_path / "rows.parquet")
    assert refused.returncode == 2, refused.stderr
    assert says in refused.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    refused = weir("documents", "zipf-class0", "--out", tmp_path, *SMALL)
    assert refused.returncode == 2
    assert "thesis.txt" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
