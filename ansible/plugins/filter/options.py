"""Filters on file-system options that roles set between runs."""

import re

from ansible.errors import AnsibleFilterError

#: What a rule of the token bucket filter may match.
MATCHES = ("jobid", "nid", "opcode")
#: What each of them is: it stands between braces in a rule, which neither they nor a blank may end.
MATCHED = re.compile(r"[A-Za-z0-9_.:*@%+/-]+")
#: The name of a rule, as Lustre takes it.
RULE = re.compile(r"[A-Za-z0-9_]{1,32}")
#: Its rate, in requests per second.
RATE = re.compile(r"[0-9]{1,9}")


def option_groups(runs, plan, file_systems, usual):
    """Consecutive runs with the same options of their file system, grouped, where roles set options.

    Args:
        runs: those to carry out, in their order, as `weir_runs_of_host` returns them.
        plan: the plan.
        file_systems: what `weir list filesystems --json` says.
        usual: what is in force where a run says nothing, by the variable of the role.

    Returns:
        Of each group `runs`; `options` by file system and name, as `testbed.json` has them; `variables` of
        the roles; `plays` of these: `role`, `tasks` and `on_servers`, with the `filesystem`. Nothing if no
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
    """The group that follows all others: it sets the usual options again and has no runs."""
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
        given: `NAME jobid=A,B nid=C opcode=D rate=N; NAME ...`, or a list of what this returns.

    Returns:
        Of each `name`, `rate` (requests per second) and lists by what it matches.

    Raises:
        AnsibleFilterError: a rule has no name, no rate, nothing to match, or something else.
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
                f"nrs_rules: `{one}` is no rule: write NAME, some of jobid=A,B nid=C opcode=D, and rate=N"
            )
        matches = {key: value.split(",") for key, value in said.items() if key != "rate"}
        rules.append(_checked({"name": name, "rate": int(said["rate"])} | matches))
    return rules


def _checked(rule):
    """A rule none of whose parts is more than it.

    Raises:
        AnsibleFilterError: one is.
    """
    matched = [one for key in MATCHES if key in rule for one in rule[key]]
    if (
        not RULE.fullmatch(str(rule.get("name", "")))
        or not RATE.fullmatch(str(rule.get("rate", "")))
        or not all(MATCHED.fullmatch(str(one)) for one in matched)
    ):
        raise AnsibleFilterError(
            f"nrs_rules: `{rule}` is no rule: its name has letters, digits and _, its rate is a number, "
            "and what it matches has letters, digits and _ . : * @ % + / - only"
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
