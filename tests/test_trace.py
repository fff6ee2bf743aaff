"""`weir trace` from end to end: a trace is described, filtered, converted and drawn."""

import json
import subprocess
import sys

import pytest
from support import ROOT, weir


@pytest.fixture
def trace(tmp_path):
    """A week in miniature: 4,000 requests to two devices, a third of them writes, half sequential."""
    lines = []
    for n in range(4000):
        block = (n // 2 * 7919 % 4001) * 64 + n % 2 * 8
        lines.append(f"{n // 2 % 2},{block},4096,{'w' if n % 3 == 0 else 'r'},{n * 0.013:.6f}")
    path = tmp_path / "small.spc"
    path.write_text("\n".join(lines) + "\n")
    return path


def stat(path, *options):
    done = weir("trace", "stat", path, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_trace_is_described(trace):
    found = stat(trace)
    assert (found["requests"], found["trace_format"], found["devices"]) == (4000, "spc", 2)
    assert found["duration_ns"] == 51_987_000_000
    assert found["ops"]["write"]["requests"] == 1334
    assert found["sequentiality"]["share"] == pytest.approx(0.5, abs=0.01)
    text = weir("trace", "stat", trace).stdout
    assert "4,000" in text and "index of dispersion" in text and "LRU miss ratio" in text


def test_a_filtered_trace_is_a_trace(trace, tmp_path):
    out = tmp_path / "half.parquet"
    options = ("--from", 13, "--to", 26, "--device", 1, "--scale-time", "0.5", "--fit-to", 1 << 24)
    done = weir("trace", "filter", trace, "--out", out, *options)
    assert done.returncode == 0, done.stderr
    assert "time range: 1000 of 4,000 go on" in done.stdout.replace("1,000", "1000")
    found = stat(out)
    assert (found["trace_format"], found["requests"], found["devices"]) == ("requests", 500, 1)
    assert found["duration_ns"] == pytest.approx(6.5e9, rel=0.02)
    assert found["device"][0]["end_bytes"] <= 1 << 24


def test_a_cache_absorbs_what_its_curve_says(trace, tmp_path):
    """1 MiB is 256 blocks; the curve of the reuse distances and the cache are two programs."""
    curve = {point["units"]: point["ratio"] for point in stat(trace)["working_set"]["lru"]}
    for policy in ("lru", "arc", "sieve", "s3-fifo"):
        out = tmp_path / f"{policy}.iolog"
        done = weir("trace", "filter", trace, "--out", out, "--cache", policy, "--cache-mib", 1)
        assert done.returncode == 0, done.stderr
        kept = sum(line.split()[2] in ("read", "write") for line in out.read_text().splitlines()[1:])
        if policy == "lru":
            assert kept == round(curve[256] * 4000)


def test_devices_are_split_and_disorder_is_sorted(trace, tmp_path):
    folder = tmp_path / "split"
    assert weir("trace", "filter", trace, "--split-by-device", folder).returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == ["0.parquet", "1.parquet"]
    lines = trace.read_text().splitlines()
    trace.write_text("\n".join(reversed(lines)) + "\n")
    out = tmp_path / "x.disksim"
    refused = weir("trace", "convert", trace, "--to", "disksim", "--out", out)
    assert refused.returncode == 2 and "sort the trace with --sort" in refused.stderr
    assert not list(tmp_path.glob("x.disksim*"))
    assert weir("trace", "convert", trace, "--to", "disksim", "--out", out, "--sort").returncode == 0
    assert len(out.read_text().splitlines()) == 4000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("stat", "absent.spc"), "absent.spc"),
        (("stat", "{trace}", "--format", "nonesuch"), "Name it with --format"),
        (("stat", "{trace}", "--unit", "page"), "write block or object"),
        (("convert", "{trace}", "--to", "tar", "--out", "x"), "parquet, weir, iolog, blktrace, disksim"),
        (("convert", "{trace}", "--to", "disksim", "--out", "{trace}"), "name another file"),
        (("filter", "{trace}", "--out", "x", "--scale-time", "-1"), "-1"),
        (("filter", "{trace}", "--out", "x", "--scale-time", "0"), "above 0"),
        (("filter", "{trace}", "--out", "x", "--from", "ten"), "write seconds"),
        (("filter", "{trace}", "--out", "x", "--cache", "mru", "--cache-mib", "1"), "s3-fifo"),
        (("filter", "{trace}", "--out", "x", "--cache", "lru", "--cache-mib", "0"), "--cache-mib 0"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(trace, tmp_path, arguments, says):
    refused = weir("trace", *(a.format(trace=trace) for a in arguments), cwd=tmp_path)
    assert refused.returncode == 2
    assert says in refused.stderr and "panicked" not in refused.stderr
    assert not (tmp_path / "x").exists()


def test_a_damaged_line_is_named_or_passed_over(trace):
    text = trace.read_text().splitlines()
    text[41] = "1,2,3,x,4"
    trace.write_text("\n".join(text))
    refused = weir("trace", "stat", trace)
    assert refused.returncode == 2
    assert f"{trace}:42: opcode" in refused.stderr
    found = stat(trace, "--skip-bad")
    assert (found["requests"], found["skipped"]["records"]) == (3999, 1)


def test_the_page_is_drawn_from_the_json(trace, tmp_path):
    source = tmp_path / "small.json"
    source.write_text(weir("trace", "stat", trace, "--json").stdout)
    drawn = subprocess.run(
        [sys.executable, "-m", "weir", "trace-page", source],
        cwd=ROOT / "analysis",
        capture_output=True,
        text=True,
    )
    assert drawn.returncode == 0, drawn.stderr
    page = source.with_suffix(".html").read_text()
    assert page.count("data:image/svg+xml;base64,") >= 4


def test_weirs_own_format_holds_all_of_a_trace(trace, tmp_path):
    """Described, a converted trace is the same trace; a damaged one is refused with its place."""
    out = tmp_path / "small.weir"
    done = weir("trace", "convert", trace, "--to", "weir", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "4,000 requests" in done.stdout
    before, after = stat(trace), stat(out)
    assert after.pop("trace_format") == "weir" and before.pop("trace_format") == "spc"
    for found in (before, after):
        for name in ("path", "file", "trace"):
            found.pop(name, None)
    assert after == before
    data = bytearray(out.read_bytes())
    data[len(data) // 2] ^= 1
    out.write_bytes(data)
    done = weir("trace", "stat", out, "--json")
    assert done.returncode == 2
    assert "small.weir:byte" in done.stderr and "damaged" in done.stderr
