"""Text for the section on methods of a paper, from the plan, the runs and the hosts of a study."""

from collections import Counter
from typing import Any

import weir
from weir import pages, report
from weir.load import Study

NAME = "methods.md"


def text(studies: list[Study], commit: str | None) -> str:
    """Markdown with one section for each study.

    Args:
        studies: the studies.
        commit: of weir; None if not known.
    """
    sections = [_section(study) for study in studies]
    return pages.render_text("methods.md.j2", studies=sections, weir=weir.__version__, commit=commit)


def _section(study: Study) -> dict[str, Any]:
    hosts = Counter(_host(run.host) for run in study.runs if run.host)
    reasons = Counter(run.validity.reasons for run in study.runs if run.validity.status != "valid")
    return {
        "study": study,
        "design": report.design(study),
        "testbeds": ", ".join(study.testbeds) or "none",
        "counts": {status: len(study.runs_with(status)) for status in ("valid", "invalid", "skipped")},
        "cells": len({run.cell for run in study.runs}),
        "hosts": [f"{host} ({count} runs)" for host, count in hosts.items()],
        "reasons": [f"{reason} ({count})" for reason, count in reasons.items()],
        "seeds": len({run.seed for run in study.runs}),
    }


def _host(host: dict[str, Any]) -> str:
    """Kernel, processor and memory of a host, or of the first of several."""
    if "system" not in host:
        inner = [one for one in host.values() if isinstance(one, dict)]
        return f"{len(inner)} hosts, of which the first has {_host(inner[0])}" if inner else "unknown"
    system, cpu = (host.get(name) or {} for name in ("system", "cpu"))
    parts = [
        f"kernel {_known(system.get('kernel_release'))}",
        f"{cpu.get('count', 'unknown')} CPUs {_known(cpu.get('model'))}",
    ]
    memory_bytes = system.get("memory_bytes")
    if isinstance(memory_bytes, int):
        parts.append(f"{memory_bytes / 2**30:.1f} GiB of memory")
    return ", ".join(parts)


def _known(fact: Any) -> str:
    """A fact of a host as text: one that is not known has a reason in place of a value."""
    return fact if isinstance(fact, str) else "unknown"
