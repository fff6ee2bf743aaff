"""Test `weir_plain`: whether a value may stand in a file or on a command line as it is."""

import ipaddress
import re

DOCUMENTATION = """
name: weir_plain
author: The weir developers
short_description: Whether a value may stand in a file or on a command line as it is
description:
  - What roles write into the configuration of a server, a rule, an environment or a command is one value of a
    kind, without blanks, quotes, lines and what else means something there. The rules of names and paths are
    those of C(weir check).
options:
  _input:
    description: The value.
    type: raw
    required: true
  kind:
    description:
      - What it is to be. C(path) is absolute and without C(..); C(name) is that of a study, a class or a
        table; C(host) is that of a host; C(word) is one of a configuration; C(options) are those of a mount;
        C(size) is a number with K, M or G behind it. With C(?) behind it, it may be empty.
    type: str
    required: true
"""

PATTERNS = {
    "path": r"/[A-Za-z0-9/._+@:=-]{0,4095}",
    "name": r"[A-Za-z0-9_][A-Za-z0-9_-]{0,39}",
    "host": r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}",
    "word": r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}",
    "options": r"[a-z_][a-z0-9_]*(=[A-Za-z0-9_.:/+-]+)?(,[a-z_][a-z0-9_]*(=[A-Za-z0-9_.:/+-]+)?)*",
    "size": r"[1-9][0-9]{0,11}[KMG]?",
    "number": r"-?[0-9]{1,18}",
}


def plain(value, kind):
    """See DOCUMENTATION."""
    text = str(value)
    if kind.endswith("?"):
        return value == "" or plain(value, kind[:-1])
    if kind == "address":
        return _parses(ipaddress.IPv4Address, text)
    if kind == "network":
        return "/" in text and _parses(lambda given: ipaddress.IPv4Network(given, strict=False), text)
    # `fullmatch` takes no line behind the end, as `match` with `$` does.
    right = re.fullmatch(PATTERNS[kind], text, re.ASCII) is not None
    return right and not (kind == "path" and ".." in text.split("/"))


def _parses(parse, text):
    try:
        parse(text)
    except ValueError:
        return False
    return True


class TestModule:
    """Tests of this plugin, for Ansible."""

    def tests(self):
        """The tests by name."""
        return {"weir_plain": plain}
