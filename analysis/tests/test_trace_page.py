"""The page of a trace, from documents of weir trace stat."""

import json
import re

import pytest

from weir import trace_page
from weir.cli import main
from weir.errors import InputError


def spread(**changes):
    quantiles = {
        "p01": 1,
        "p10": 2,
        "p25": 3,
        "p50": 512,
        "p75": 4096,
        "p90": 8192,
        "p99": 8192,
        "p999": 8192,
    }
    cdf = [[1, 0.0], [512, 0.25], [4096, 0.5], [8192, 0.75], [16384, 1.0]]
    return (
        {"count": 10, "mean": 5914.2, "sd": 10.0, "cov": 0.5, "min": 1, "max": 8192, "cdf": cdf}
        | quantiles
        | changes
    )


@pytest.fixture
def document():
    """All that a document can hold."""
    scales = [
        {
            "window_ns": 10**6 << k,
            "windows": 100_000 >> k,
            "mean": 2.0**k,
            "variance": 3.0**k,
            "dispersion": 1.5**k,
            "peak_to_mean": 3.0,
            "wavelet_energy": 1.2**k if k else None,
        }
        for k in range(12)
    ]
    peak = {
        "window_ns": 10**9,
        "windows": 100,
        "mean_requests": 3.5,
        "peak_requests": 40,
        "peak_to_mean_requests": 11.4,
        "peak_to_mean_bytes": None,
    }
    hurst = {
        "method": "Haar wavelet energy (Abry and Veitch 1998)",
        "estimate": 0.81,
        "r_squared": 0.99,
        "from_ns": 10**6,
        "to_ns": 10**9,
        "scales": 11,
        "caveat": "a <caveat>",
    }
    return {
        "format": 1,
        "file": "/some/where/ajw.1week.srt",
        "trace_format": "srt",
        "requests": 44519,
        "skipped": {"records": 2, "first": "x:1: bad"},
        "first_arrival_ns": 0,
        "duration_ns": 603_064_600_000_000,
        "requests_per_s": 0.0738,
        "bytes_per_s": 436.6,
        "read_share": 0.293,
        "ops": {"read": {"requests": 13044, "bytes": 10**7}, "write": {"requests": 31475, "bytes": 10**8}},
        "devices": 102,
        "devices_not_listed": 100,
        "device": [
            {"name": f"disk <{n}>", "requests": 9, "reads": 3, "bytes": 4096, "end_bytes": 1 << 20}
            for n in range(2)
        ],
        "size_bytes": spread(),
        "read_size_bytes": spread(),
        "write_size_bytes": None,
        "arrivals": {"order": {"early": 3, "most_early_ns": 1500}, "gap_ns": spread(), "zero_gaps": 1},
        "burstiness": {"peaks": [peak], "scales": scales, "hurst": [hurst]},
        "load": {"window_ns": 10**9, "requests": [3, 0, 5, 9, 2], "bytes": [10, 0, 0, 4, 5]},
        "sequentiality": {"requests": 10, "sequential": 3, "share": 0.3, "run_requests": spread()},
        "working_set": {
            "unit": "block",
            "unit_bytes": 4096,
            "accesses": 100,
            "distinct": 40,
            "distinct_bytes": 163_840,
            "cut_requests": 0,
            "untracked": 0,
            "reuse_distance": spread(),
            "lru": [{"units": 1 << k, "ratio": 1 - k / 10} for k in range(7)],
        },
        "times": {"queue_length": spread(), "queueing_ns": None, "response_ns": spread(), "negative": 0},
    }


def test_the_page_holds_the_trace_and_needs_nothing_else(document, tmp_path):
    source = tmp_path / "week.json"
    source.write_text(json.dumps(document))
    assert main(["trace-page", str(source)]) == 0
    page = (tmp_path / "week.html").read_text()
    for words in (
        "ajw.1week.srt",
        "44,519",
        "29.3%",
        "disk &lt;1&gt;",
        "a &lt;caveat&gt;",
        "0.810",
        "not in the order",
    ):
        assert words in page
    assert page.count("data:image/svg+xml;base64,") == 5
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', page) == []


def test_what_a_trace_does_not_say_is_left_out(document, tmp_path):
    document["working_set"] |= {"unit": "object", "unit_bytes": None, "distinct_bytes": None, "lru": []}
    document |= {"sequentiality": None, "read_size_bytes": None, "size_bytes": None, "requests_per_s": None}
    document |= {"bytes_per_s": None, "read_share": None}
    document["arrivals"]["gap_ns"] = None
    document["burstiness"] = {"peaks": [], "scales": [], "hurst": []}
    document["load"] = {"window_ns": 1, "requests": [1], "bytes": [0]}
    document["times"] |= {"queue_length": None, "response_ns": None}
    page = trace_page.render(document, tmp_path)
    assert "data:image" not in page
    assert "40 objects" in page and "too few scales" in page


def test_another_document_is_refused(document, tmp_path):
    source = tmp_path / "x.json"
    del document["burstiness"]
    source.write_text(json.dumps(document))
    with pytest.raises(InputError, match="burstiness"):
        trace_page.write_trace_page(source)
    source.write_text(json.dumps({"format": 2}))
    assert main(["trace-page", str(source)]) == 2
    assert main(["trace-page", str(tmp_path / "absent.json")]) == 2


@pytest.mark.parametrize(
    ("value", "size", "time"),
    [
        (0, "0 B", "0 ns"),
        (4096, "4 KiB", "4.10 us"),
        (5914, "5.78 KiB", "5.91 us"),
        (3 << 30, "3 GiB", "3.22 s"),
    ],
)
def test_amounts_read_well(value, size, time):
    assert trace_page.size(value) == size
    assert trace_page.duration(value) == time
