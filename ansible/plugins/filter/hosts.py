"""Test hosts: names, addresses, and inventory."""

import re

from ansible.errors import AnsibleFilterError

#: Network of the guests.
LAB = "10.78.0"
#: The address after the last guest's is the broadcast address.
MOST_GUESTS = 254


def guests(count, first_port):
    """Guests: `{name, port, set}`. `port` leads to its ssh, `set` are settings of the service `guest`."""
    count, first_port = int(count), int(first_port)
    if not 1 <= count <= MOST_GUESTS:
        raise AnsibleFilterError(f"N={count}: bring up 1 to {MOST_GUESTS} guests")
    if not 1024 <= first_port <= 65536 - count:
        raise AnsibleFilterError(f"hosts_qemu_first_port is {first_port}: {count} ports from 1024 are needed")
    return [
        {
            "name": f"guest-{number}",
            "port": first_port + number,
            "set": {
                "host": f"guest-{number}",
                "lab_address": f"{LAB}.{number + 1}/24",
                "mac": f"52:54:00:77:00:{number + 1:02x}",
            },
        }
        for number in range(count)
    ]


def listed(text):
    """Hosts from `USER@HOST:PORT/ADDRESS,...`: `{name, user, host, port, address}`.

    Default user and port are `root` and 22. The address is that in the test network, by default `host`.
    """
    found = []
    for one in str(text or "").split(","):
        match = re.fullmatch(
            r"(?:(\w[\w.-]*)@)?(\w[\w.-]*|\[[0-9a-fA-F:]+\])(?::(\d{1,5}))?(?:/([0-9.]+))?",
            one.strip(),
            re.ASCII,
        )
        if not match or int(match[3] or 22) > 65535:
            raise AnsibleFilterError(
                f"HOSTS={text}: `{one}` is no host. List hosts as USER@HOST:PORT, separated by commas "
                "(USER@HOST:PORT/ADDRESS if the test network has another address)"
            )
        host, port = match[2].strip("[]"), int(match[3] or 22)
        name = host if port == 22 else f"{host}-{port}"
        if name in (known["name"] for known in found):
            raise AnsibleFilterError(f"HOSTS={text}: {one} is listed twice")
        user, address = match[1] or "root", match[4] or host
        found.append({"name": name, "user": user, "host": host, "port": port, "address": address})
    return found


def inventory(hosts, kind, **variables):
    """An inventory of `hosts`, variables by name, with common `variables`.

    For file systems of several hosts the last one is the client, and all others are servers.
    """
    names = list(hosts)
    members = {"servers": names[:-1], "clients": names[-1:]} if len(names) > 1 else {}
    groups = {group: {"hosts": {name: {} for name in found}} for group, found in members.items()}
    return {"all": {"vars": {"weir_hosts_kind": kind, **variables}, "hosts": hosts, "children": groups}}


def settings(values):
    """Options of `weir service start` for the settings of a daemon."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


class FilterModule:
    """Filters of this plugin, for Ansible."""

    def filters(self):
        """The filters by name."""
        return {
            "weir_guests": guests,
            "weir_listed_hosts": listed,
            "weir_inventory": inventory,
            "weir_settings": settings,
        }
