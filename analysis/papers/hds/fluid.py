"""Shares of a tree of reservations by arithmetic alone (section 3.3).

Independent of the scheduler: it is what a study's runs are held against.
"""

import re

_NODE = re.compile(r"([\w-]+)(?::([\w.%]+))?")


def tree_of(scheduler: str) -> str:
    """The tree in a scheduler's settings; empty without one."""
    found = re.search(r"(?:^| )tree=(\S+)", scheduler)
    return found[1] if found else ""


def root_kb_s(scheduler: str) -> float:
    """The root's rate in KB/s (1 KB = 1024 bytes) at which it begins; 18,000 if it is not said."""
    found = re.search(r"(?:^| )root_kb_s=(\d+)", scheduler)
    return float(found[1]) if found else 18_000.0


def root_mb_s(scheduler: str) -> float:
    """The same in MB/s (10^6 bytes)."""
    return root_kb_s(scheduler) * 1024 / 1e6


def shares(tree: str, whole: float = 1.0) -> dict[str, float]:
    """The part of the whole disk that each leaf reserves, fractions and weights only.

    Raises:
        ValueError: the text is no tree of fractions and weights.
    """
    found: dict[str, float] = {}
    end = _children(tree, 0, whole, found)
    if end != len(tree):
        raise ValueError(f"{tree!r} is no tree: {tree[end:]!r} is left")
    return found


def _children(text: str, at: int, whole: float, found: dict[str, float]) -> int:
    """Divides the whole among the nodes from a place on; the place behind them."""
    nodes: list[tuple[str, str, tuple[int, int] | None]] = []
    while True:
        node = _NODE.match(text, at)
        if node is None:
            raise ValueError(f"{text!r} is no tree: no name at {at}")
        at, below = node.end(), None
        if text[at : at + 1] == "(":
            begin = at + 1
            at = _children(text, begin, 0.0, {})
            if text[at : at + 1] != ")":
                raise ValueError(f"{text!r} is no tree: a `)` is missing at {at}")
            below, at = (begin, at), at + 1
        nodes.append((node[1], node[2] or "w1", below))
        if text[at : at + 1] != ",":
            break
        at += 1
    fractions = {name: _fraction(own) for name, own, _ in nodes if not own.startswith("w")}
    weights = {name: float(own[1:]) for name, own, _ in nodes if own.startswith("w")}
    rest = whole * (1 - sum(fractions.values()))
    for name, _, below in nodes:
        own = whole * fractions[name] if name in fractions else rest * weights[name] / sum(weights.values())
        if below is None:
            found[name] = own
        else:
            _children(text[: below[1]], below[0], own, found)
    return at


def _fraction(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)
