"""Page of a trace, from the JSON that `weir trace stat --json` prints."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from weir import pages, plots
from weir.documents import check_format, field, read_document
from weir.errors import InputError
from weir.labels import number
from weir.pages import write_page
from weir.plots import trace_figures

_REMEDY = "make it with weir trace stat FILE --json"
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@dataclass(frozen=True)
class Spread:
    """A row of the table of distributions.

    Attributes:
        words: what is distributed.
        found: the distribution, as the document has it.
        text: how its numbers are written.
    """

    words: str
    found: dict[str, Any]
    text: Callable[[float], str]


def write_trace_page(source: Path, out: Path | None = None) -> Path:
    """Writes the page of a trace and returns its path.

    Args:
        source: the JSON of `weir trace stat`.
        out: the page; beside the JSON, with the ending .html, if absent.

    Raises:
        InputError: the document is absent, damaged or another one, or the page cannot be written.
    """
    document = read_document(source, _REMEDY)
    check_format(document, source)
    out = out or source.with_suffix(".html")
    if out.resolve() == source.resolve():
        raise InputError(out, "is the document itself", "name another file with --out")
    return write_page(out, render(document, source))


def render(document: dict[str, Any], source: Path) -> str:
    """The page as HTML.

    Raises:
        InputError: the document lacks a field.
    """
    try:
        return pages.render(
            "trace.html.j2",
            name=Path(field(document, source, "file", str)).name,
            trace_format=field(document, source, "trace_format", str),
            facts=_facts(document),
            warnings=_warnings(document),
            ops=_ops(document),
            spreads=[_spread(spread) for spread in _spreads(document)],
            peaks=[_peak(peak) for peak in document["burstiness"]["peaks"]],
            hurst=document["burstiness"]["hurst"],
            devices=[_device(device) for device in document["device"]],
            devices_not_listed=document["devices_not_listed"],
            figures=[_inline(*drawn) for drawn in _figures(document)],
            duration=duration,
        )
    except (KeyError, TypeError) as error:
        raise InputError(source, f"does not hold the statistics of a trace ({error})", _REMEDY) from error


def size(amount: float) -> str:
    """An amount of data in the binary unit that suits it, such as `5.78 KiB`."""
    unit = 0
    while amount >= 1024 and unit + 1 < len(_BINARY):
        amount /= 1024
        unit += 1
    return (
        f"{amount:.0f} {_BINARY[unit]}" if float(amount).is_integer() else f"{number(amount)} {_BINARY[unit]}"
    )


def duration(ns: float) -> str:
    """A time in the unit that suits it, such as `91.6 ms`."""
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if abs(ns) >= scale:
            value = ns / scale
            return f"{value:,.0f} {unit}" if value >= 1000 else f"{number(value)} {unit}"
    return f"{number(ns)} ns"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or float(value).is_integer() else number(value)


def _share(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1%}"


def _facts(document: dict[str, Any]) -> list[tuple[str, str]]:
    rate, data = document["requests_per_s"], document["bytes_per_s"]
    sequence, working = document["sequentiality"], document["working_set"]
    held = working["distinct_bytes"]
    return [
        ("requests", _count(document["requests"])),
        ("duration", duration(document["duration_ns"])),
        ("requests per second", "n/a" if rate is None else number(rate)),
        ("data per second", "n/a" if data is None else size(data)),
        ("reads", _share(document["read_share"])),
        ("sequential", _share(sequence["share"] if sequence else None)),
        ("working set", size(held) if held is not None else f"{_count(working['distinct'])} objects"),
        ("devices", _count(document["devices"])),
    ]


def _warnings(document: dict[str, Any]) -> list[str]:
    order, working = document["arrivals"]["order"], document["working_set"]
    skipped = document["skipped"]
    found = []
    if skipped["records"]:
        found.append(
            f"{_count(skipped['records'])} damaged records passed over; the first: {skipped['first']}."
        )
    if order["early"]:
        found.append(
            f"The file is not in the order of its times: {_count(order['early'])} requests are up to "
            f"{duration(order['most_early_ns'])} earlier than one before and count as arriving with it."
        )
    if working["cut_requests"]:
        found.append(f"{_count(working['cut_requests'])} requests are so long that only a part was seen.")
    if document["times"]["negative"]:
        found.append(f"{_count(document['times']['negative'])} times below 0 were left out.")
    return found


def _ops(document: dict[str, Any]) -> list[dict[str, str]]:
    total = max(document["requests"], 1)
    return [
        {
            "name": name,
            "requests": _count(op["requests"]),
            "share": _share(op["requests"] / total),
            "data": size(op["bytes"]),
        }
        for name, op in document["ops"].items()
    ]


def _spreads(document: dict[str, Any]) -> list[Spread]:
    times, working = document["times"], document["working_set"]
    sequence = document["sequentiality"] or {}
    rows = [
        ("size", document["size_bytes"], size),
        ("size of reads", document["read_size_bytes"], size),
        ("size of writes", document["write_size_bytes"], size),
        ("time between arrivals", document["arrivals"]["gap_ns"], duration),
        ("run of sequential requests", sequence.get("run_requests"), _count),
        (f"reuse distance ({working['unit']}s)", working["reuse_distance"], _count),
        ("queue length found", times["queue_length"], _count),
        ("queueing", times["queueing_ns"], duration),
        ("response time", times["response_ns"], duration),
    ]
    return [Spread(words, found, text) for words, found, text in rows if found]


def _spread(spread: Spread) -> dict[str, str]:
    found = spread.found
    cov = found["cov"]
    quantiles = ("mean", "min", "p10", "p50", "p90", "p99", "max")
    return {
        "words": spread.words,
        "count": _count(found["count"]),
        "cov": "n/a" if cov is None else number(cov),
        **{name: spread.text(found[name]) for name in quantiles},
    }


def _peak(peak: dict[str, Any]) -> dict[str, str]:
    data = peak["peak_to_mean_bytes"]
    return {
        "window": duration(peak["window_ns"]),
        "windows": _count(peak["windows"]),
        "mean": number(peak["mean_requests"]),
        "peak": _count(peak["peak_requests"]),
        "requests": number(peak["peak_to_mean_requests"]),
        "data": "n/a" if data is None else number(data),
    }


def _device(device: dict[str, Any]) -> dict[str, str]:
    return {
        "name": device["name"],
        "requests": _count(device["requests"]),
        "reads": _share(device["reads"] / max(device["requests"], 1)),
        "data": size(device["bytes"]),
        "end": size(device["end_bytes"]),
    }


@plots.style()
def _figures(document: dict[str, Any]) -> list[tuple[str, str, Figure]]:
    return [drawn for draw in trace_figures.ALL if (drawn := draw(document)) is not None]


def _inline(title: str, text: str, figure: Figure) -> dict[str, str]:
    return {"title": title, "text": text, "source": pages.inline(figure)}
