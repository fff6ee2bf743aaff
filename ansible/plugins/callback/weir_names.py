"""Callback `weir_names`: names on the command line and in the inventory that mean nothing are refused."""

# ruff: noqa: D102 -- the hooks are explained by CallbackBase.

import difflib
import os
import re
import sys
from pathlib import Path

import yaml
from ansible import constants, context
from ansible.inventory.manager import InventoryManager, split_host_pattern
from ansible.plugins.callback import CallbackBase
from jinja2 import Environment, TemplateSyntaxError, meta

DOCUMENTATION = """
name: weir_names
type: aggregate
author: The weir developers
short_description: Names that mean nothing are refused
description:
  - Looks at the command line and the inventory before the first task of a playbook of weir, and ends Ansible
    with exit code 2 if a tag, a host pattern, an inventory file or a variable is not known. Says the nearest
    known name.
  - Known variables are those of group_vars/all.yml, the options of all roles, and what the playbook itself
    reads.
  - Needs no setting, and is in force with every other callback.
"""

#: The folder of playbooks, roles and group_vars.
ANSIBLE = Path(__file__).resolve().parent.parent.parent
#: Words that Ansible itself knows as tags.
TAGS = {"all", "tagged", "untagged", "always", "never"}
TRUTHS = {"yes", "no", "true", "false", "on", "off", "y", "n", "t", "f", "1", "0", "1.0", "0.0"}
KINDS = {bool: "yes or no", int: "a whole number", dict: "a mapping", list: "a list"}


class CallbackModule(CallbackBase):
    """See DOCUMENTATION."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "weir_names"

    def __init__(self):
        super().__init__()
        self._playbook = None

    def v2_playbook_on_start(self, playbook):
        file = Path(playbook._file_name).resolve()
        # Other playbooks, such as those of molecule, have variables and tags of their own.
        self._playbook = file if file.parent in (ANSIBLE, ANSIBLE / "playbooks") else None

    def v2_playbook_on_play_start(self, play):
        if not self._playbook:
            return
        playbook, self._playbook = self._playbook, None
        manager = play.get_variable_manager()
        try:
            found = command_line_problems(playbook, context.CLIARGS, manager)
            found += inventory_problems(manager, manager._inventory)
        except Exception as error:  # Ansible would only warn, and go on with names that nobody has looked at.
            found = [f"names cannot be checked: {type(error).__name__}: {error}"]
        if found:
            for problem in found:
                self._display.display(problem, color="red", stderr=True)
            # An exception of another kind would only be a warning.
            sys.stdout.flush()
            sys.exit(2)


def command_line_problems(playbook, arguments, manager):
    """What the command line says that means nothing.

    Args:
        playbook: the file of the playbook.
        arguments: Ansible's arguments by name.
        manager: the play's variable manager.
    """
    inventory, loader = manager._inventory, manager._loader
    found = source_problems(arguments.get("inventory") or (), loader)
    found += limit_problems(arguments.get("subset"), inventory)
    tags = tags_of(playbook)
    for option in ("tags", "skip_tags"):
        found += tag_problems(f"--{option.replace('_', '-')}", arguments.get(option) or (), tags)
    extra, read = manager.extra_vars, names_read_by(playbook)
    if "study" in read and (root := _project(extra)):
        found += study_problems(extra.get("study"), root / "studies")
    return found + extra_problems(extra, known_variables(), read)


def _project(extra):
    """The folder that holds all studies; None where some are in the binary, which refuses unknown names."""
    checkout = ANSIBLE.parent
    if not (checkout / "Cargo.toml").exists():
        return None
    return Path(os.environ.get("WEIR_ROOT") or extra.get("weir_root") or checkout)


def source_problems(sources, loader):
    """Inventories that are not there, or that no inventory plugin can read: Ansible only warns of these."""
    found = []
    for source in sources:
        # A list of hosts has a comma. with_hosts.yml reports that Ansible's default inventory is absent.
        if "," in source or source == constants.DEFAULT_HOST_LIST[0]:
            continue
        path = Path(source)
        if not path.exists():
            beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
            found.append(f"-i {source}: there is no such inventory{meant(path.name, beside)}")
        elif len(sources) > 1 and not InventoryManager(loader=loader, sources=[source]).hosts:
            found.append(f"-i {source}: names no host: is it an inventory?")
    return found


def limit_problems(subset, inventory):
    """Parts of --limit that no host and no group matches."""
    known = [*inventory.hosts, *inventory.groups]
    found = []
    for part in split_host_pattern(subset) if subset else ():
        name = part.lstrip("!&")
        if name[:1] in ("~", "@") or name in inventory.groups:
            continue
        if not inventory.get_hosts(name, ignore_limits=True, ignore_restrictions=True):
            found.append(f"--limit {part}: no host or group of the inventory{meant(name, known)}")
    return found


def tag_problems(option, asked, known):
    """Tags that no task of the playbook has."""
    listed = ", ".join(sorted(known)) or "none"
    return [
        f"{option} {tag}: no task has this tag{meant(tag, known)} (known: {listed})"
        for tag in asked
        if tag not in known and tag not in TAGS
    ]


def study_problems(name, folder):
    """Whether -e study=NAME is no study, nor how the names of several begin. Files are for the binary."""
    if not isinstance(name, str) or not name or "{{" in name or "/" in name or Path(name).suffix:
        return []
    studies = {path.stem for path in folder.rglob("*.yml")}
    several = {stem[:place] for stem in studies for place, letter in enumerate(stem) if letter == "-"}
    if name in studies | several:
        return []
    return [
        f"-e study={name}: unknown study{meant(name, studies | several)} (`weir list studies` lists them)"
    ]


def extra_problems(extra, known, read):
    """Variables of the command line that nobody reads, or that are of another kind than their default.

    Args:
        extra: the variables.
        known: defaults of those that weir knows, by name; None where there is none.
        read: names that the playbook itself reads.
    """
    found = []
    for name, value in extra.items():
        if name not in known and name not in read and not name.startswith("ansible_"):
            near = meant(name, [*known, *read]) or ": a variable of your own belongs in the inventory"
            found.append(f"-e {name}: unknown variable{near}")
        else:
            found += kind_problems(f"-e {name}", value, known.get(name))
    return found


def inventory_problems(manager, inventory):
    """Variables of the inventory that mean nothing, that have no effect, or that are of the wrong kind."""
    known, shared = known_variables(), shared_variables()
    roles = sorted(roles_with_options(), key=len, reverse=True)
    extra, found = manager.extra_vars, {}
    effective = {name: manager.get_vars(host=host) for name, host in inventory.hosts.items()}
    for name, variables in effective.items():
        for variable, value in variables.items():
            text = ""
            if variable in extra:
                continue
            if variable not in known:
                text = unknown_problem(variable, known, roles)
            elif variable in shared:
                text = "".join(kind_problems(variable, value, known[variable]))
            if text:
                # Once for all hosts.
                found.setdefault(text, name)
    problems = [f"inventory, host {name}: {text}" for text, name in found.items()]
    for group in inventory.groups.values():
        for variable in sorted(group.vars.keys() & shared.keys() - extra.keys()):
            value = group.vars[variable]
            hosts = [
                host.name
                for host in group.get_hosts()
                if variable not in host.vars and effective[host.name].get(variable) != value
            ]
            if hosts:
                problems.append(
                    f"inventory, group {group.name}: {variable} has no effect on {', '.join(hosts)}: "
                    "a group's variables in an inventory file count less than group_vars/all.yml; "
                    "say it for each host"
                )
    return problems


def unknown_problem(name, known, roles):
    """Why a variable that is not known is refused; an empty text if it may be somebody's own."""
    if name.startswith("weir_"):
        return f"unknown variable {name}{meant(name, known)}"
    # A role's prefix may be a word of somebody's own variables: only what is nearly an option is refused.
    role = next((role for role in roles if name.startswith(f"{role}_")), None)
    options = [option for option in known if role and option.startswith(f"{role}_")]
    near = difflib.get_close_matches(name, options, 1, 0.85)
    return f"unknown variable {name}, did you mean `{near[0]}`?" if near else ""


def kind_problems(where, value, default):
    """Whether a value is of the kind of its default. What is a template is seen when it is used."""
    wanted = type(default)
    if wanted not in KINDS or (isinstance(value, str) and "{{" in value):
        return []
    if wanted is bool:
        fits = isinstance(value, bool) or str(value).lower() in TRUTHS
    elif wanted is int:
        fits = not isinstance(value, bool) and re.fullmatch(r"-?[0-9]+", str(value)) is not None
    else:
        fits = isinstance(value, wanted)
    return [] if fits else [f"{where} is {value!r}, expected {KINDS[wanted]}"]


def meant(name, known):
    """The nearest of the known names as a question; empty if none is near."""
    near = difflib.get_close_matches(str(name), sorted(map(str, known)), 1, 0.6)
    return f", did you mean `{near[0]}`?" if near else ""


def shared_variables():
    """Defaults of group_vars/all.yml, by name."""
    return _read(ANSIBLE / "group_vars/all.yml") or {}


def roles_with_options():
    """Options of every role as its argument_specs.yml has them: entry points by role."""
    return {
        file.parent.parent.name: (_read(file) or {}).get("argument_specs") or {}
        for file in ANSIBLE.glob("roles/*/meta/argument_specs.yml")
    }


def known_variables():
    """Defaults of all variables that weir knows, by name; None where there is none."""
    known = {}
    for points in roles_with_options().values():
        for point in points.values():
            known |= dict.fromkeys(point.get("options") or {})
    for file in ANSIBLE.glob("roles/*/defaults/main.yml"):
        known |= dict.fromkeys(_read(file) or {})
    return known | shared_variables()


def names_read_by(playbook):
    """Names that the templates of a playbook and of the playbooks that it imports read, such as `study`."""
    names, environment = set(), Environment(autoescape=True)
    environment.filters, environment.tests = _Any(), _Any()
    plays = [play for file in _files(playbook, ("import_playbook",)) for play in _read(file) or ()]
    for text in _texts(plays):
        try:
            names |= meta.find_undeclared_variables(environment.parse(text))
        except TemplateSyntaxError:
            continue
    # What a play sets itself is not for the command line.
    return names - {name for play in plays for name in play.get("vars") or {}}


def tags_of(playbook):
    """Tags of all tasks of a playbook, including those of imported playbooks and task files."""
    tags = set()
    for file in _files(playbook, ("import_playbook", "import_tasks", "include_tasks", "file")):
        for key, value in _entries(_read(file)):
            if key == "tags":
                tags |= set(value if isinstance(value, list) else str(value).split(","))
    return tags


def _files(playbook, keys):
    """A playbook and the files that it names under these keys, directly or through each other."""
    found, waiting = [], [playbook]
    while waiting:
        file = waiting.pop().resolve()
        if file in found or not file.is_file():
            continue
        found.append(file)
        for key, value in _entries(_read(file)):
            if key.rpartition(".")[2] in keys and isinstance(value, str):
                waiting.append(file.parent / value)
    return found


class _Any(dict):
    """Filters or tests of which every name is one: only the variables matter here."""

    def get(self, name, default=None):
        """Some filter."""
        return super().get(name, default) or str


def _entries(value):
    """All keys and values of nested mappings."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict):
        yield from value.items()
    for part in parts:
        yield from _entries(part)


def _texts(value):
    """All templates in a document. A bare condition (`when`, `that`) is one, too."""
    for key, part in _entries(value):
        for text in part if isinstance(part, list) else [part]:
            if not isinstance(text, str):
                continue
            if "{{" in text or "{%" in text:
                yield text
            elif key in ("when", "that", "loop"):
                yield "{{" + text + "}}"


_CACHE = {}


def _read(file):
    """A YAML file's content, read once."""
    if file not in _CACHE:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        with open(file, encoding="utf-8") as stream:
            _CACHE[file] = yaml.load(stream, loader)
    return _CACHE[file]
