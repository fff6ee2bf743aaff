"""Filters on file-system options that roles set between runs."""

import re

from ansible.errors import AnsibleFilterError

#: Keys of a rule of the token bucket filter.
MATCHES = ("jobid", "nid", "opcode")
#: Values of the keys: a rule has them between braces, so they contain neither braces nor blanks.
MATCHED = re.compile(r"[A-Za-z0-9_.:*@%+/-]+")
#: Name of a rule in Lustre.
RULE = re.compile(r"[A-Za-z0-9_]{1,32}")
#: Its rate, in requests per second.
RATE = re.compile(r"[0-9]{1,9}")


def option_groups(runs, plan, file_systems, usual):
    """Groups of consecutive runs with the same options of their file system, for options that roles set.

    Args:
        runs: the runs to carry out, in order, as `weir_runs_of_host` returns them.
        plan: the plan.
        file_systems: output of `weir list filesystems --json`.
        usual: default of each option, by the variable of the role.

    Returns:
        For each group `runs`; `options` by file system and name, as in `testbed.json`; `variables` of
        the roles; `plays` of these: `role`, `tasks`, `on_servers` and `filesystem`. An empty list if no
        run has such an option.
    """
    settings = {run["id"]: run["settings"] for run in plan["runs"]}
    roles = {entry["name"]: _roles(entry) for entry in file_systems}
    used = set()
    for run in runs:
        asked = settings[run["id"]]
        named = asked.get("filesystem_options", {}).keys() & roles[asked["filesystem"]].keys()
        used |= {(asked["filesystem"], name) for name in named}
    if not used:
        return []
    made = []
    for run in runs:
        asked = settings[run["id"]]
        file_system, said = asked["filesystem"], asked.get("filesystem_options", {})
        mine = {name: by for name, by in roles[file_system].items() if (file_system, name) in used}
        told = {name: _text(said[name]) for name in mine if name in said}
        group = {
            "options": {file_system: told} if mine else {},
            "variables": {by["variable"]: told.get(name, usual[by["variable"]]) for name, by in mine.items()},
            "plays": _plays(file_system, mine.values()),
        }
        if made and {part: made[-1][part] for part in group} == group:
            made[-1]["runs"].append(run)
        else:
            made.append(group | {"runs": [run]})
    return made


def usual_options(made, usual):
    """The last group: it restores the default options and has no runs."""
    plays = []
    for group in made:
        plays += [play for play in group["plays"] if play not in plays]
    variables = {name: usual[name] for group in made for name in group["variables"]}
    return {"options": {}, "variables": variables, "plays": plays, "runs": []}


def by_role(file_systems):
    """The variables of roles that set options."""
    return sorted({by["variable"] for entry in file_systems for by in _roles(entry).values()})


def nrs_rules(given):
    """Rules of Lustre's token bucket filter.

    Args:
        given: `NAME jobid=A,B nid=C opcode=D rate=N; NAME ...`, or a list of results of this filter.

    Returns:
        For each rule `name`, `rate` (requests per second) and lists of values by key.

    Raises:
        AnsibleFilterError: a rule has no name, no rate, no key, or an unknown key.
    """
    rules = [*map(_checked, given)] if isinstance(given, list) else []
    text = "" if isinstance(given, list) else str(given or "")
    for one in filter(None, (part.strip() for part in text.split(";"))):
        name, *words = one.split()
        said = dict(word.split("=", 1) for word in words if "=" in word)
        if (
            len(said) != len(words)
            or not RATE.fullmatch(said.get("rate", ""))
            or not said.keys() - {"rate"}
            or said.keys() - {"rate", *MATCHES}
        ):
            raise AnsibleFilterError(
                f"nrs_rules: `{one}` is no rule: write NAME, at least one of jobid=A,B nid=C opcode=D, "
                "and rate=N"
            )
        matches = {key: value.split(",") for key, value in said.items() if key != "rate"}
        rules.append(_checked({"name": name, "rate": int(said["rate"])} | matches))
    return rules


def _checked(rule):
    """A rule whose parts contain only allowed characters.

    Raises:
        AnsibleFilterError: a part has another character.
    """
    matched = [one for key in MATCHES if key in rule for one in rule[key]]
    if (
        not RULE.fullmatch(str(rule.get("name", "")))
        or not RATE.fullmatch(str(rule.get("rate", "")))
        or not all(MATCHED.fullmatch(str(one)) for one in matched)
    ):
        raise AnsibleFilterError(
            f"nrs_rules: `{rule}` is no rule: its name has letters, digits and _, its rate is a number, "
            "and its values have letters, digits and _ . : * @ % + / - only"
        )
    return rule


def _roles(file_system):
    """The options of a file system that roles set, by name."""
    options = file_system.get("options", {}).items()
    return {name: option["by"] for name, option in options if option.get("by")}


def _text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plays(file_system, roles):
    plays = []
    for by in roles:
        play = {
            "filesystem": file_system,
            "role": by["role"],
            "tasks": by["tasks"],
            "on_servers": by["on_servers"],
        }
        if play not in plays:
            plays.append(play)
    return plays


class FilterModule:
    """Filters of this plugin, for Ansible."""

    def filters(self):
        """The filters by name."""
        return {
            "weir_option_groups": option_groups,
            "weir_usual_options": usual_options,
            "weir_by_role": by_role,
            "weir_nrs_rules": nrs_rules,
        }
