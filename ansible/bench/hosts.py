"""Measures what the playbook costs on many hosts: bringing them up, preparing a study, and each run.

python ansible/bench/hosts.py [--hosts 5,50] [--runs 3] [--seconds 10]

Hosts are network namespaces of this machine, which all share its processors: what is measured is what the
controller and the hosts' parts of Ansible cost together, more than a controller has to do whose hosts are
machines of their own. Runs are on tmpfs and ask little, so that they take their time and hardly a
processor's. Writes results/bench-hosts/hosts.json and a figure, and prints a table. Brings test hosts up and
takes them down; none may be up.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOK = Path(sys.executable).parent / "ansible-playbook"
STUDY = """\
name: bench-hosts
question: What does the playbook add to a run, on few hosts and on many?
testbed: device
seed: 1
repetitions: {blocks}
warmup_s: 0.5
duration_s: {seconds}
capture: none
storage: {{profile: hdd-7200, heads: 1, size_mib: 64}}
classes:
  text: {{workload: poisson-text, with: {{files.count: 10}}, clients: 5}}
factors: {{load: [1]}}
hold: {{filesystem: tmpfs}}
"""
#: A test bed of its own, beside one that somebody may have up.
FOLDER = ROOT / ".weir/bench-hosts"
BED = {
    "hosts_netns_name": "bench",
    "hosts_netns_subnet": "10.79.7.0/24",
    "hosts_netns_state": "/run/weir-bench-hosts",
    "hosts_netns_folder": str(FOLDER / "namespaces"),
    "test_hosts_folder": str(FOLDER),
    "test_hosts_state": "/run/weir-bench-hosts",
}
#: The phases that are told apart, by the beginnings of names of roles.
PHASES = {
    "preflight": ("preflight",),
    "devices and file systems": ("devices", "file_systems"),
    "runs": ("runs",),
    "fetch": ("fetch",),
    "cleanup": ("cleanup",),
    "verdicts": ("verdicts",),
}


def main():
    """Measures for each number of hosts, and says what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="5,50", help="numbers of hosts, separated by commas")
    parser.add_argument("--runs", type=int, default=3, help="runs of each host")
    parser.add_argument("--seconds", type=float, default=10, help="length of a run")
    options = parser.parse_args()
    # The memory that runs lock for io_uring counts for all hosts together here.
    _, most = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (most, most))
    folder = ROOT / "results/bench-hosts"
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for count in map(int, options.hosts.split(",")):
        found.append(measure(folder, count, options.runs, options.seconds))
    (folder / "hosts.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print_table(found)
    draw(found, folder)


def measure(folder, count, runs, seconds):
    """Brings hosts up, carries a study out on them, and takes them down."""
    up_s, _ = play(
        "hosts.yml", BED | {"kind": "netns", "hosts_netns_count": count}, "inventories/localhost.yml"
    )
    try:
        file = folder / "bench-hosts.yml"
        file.write_text(STUDY.format(blocks=count * runs, seconds=seconds), encoding="utf-8")
        results, times = folder / f"of-{count}", folder / f"times-{count}.json"
        subprocess.run(["rm", "-rf", "--", results], check=True)
        # Namespaces measure one after another unless told otherwise, since they share processors.
        variables = {"study": str(file), "weir_results": str(results), "weir_share_processors": False}
        # A host that shares this machine's files needs no copy of the program.
        variables["weir_binary"] = str(ROOT / "target/release/weir")
        study_s, cpu_s = play(
            "study.yml", variables, FOLDER / "inventory.yml", "--skip-tags", "report", times=times
        )
        done = len([path for path in (results / "bench-hosts").iterdir() if (path / "verdict.json").exists()])
        print(f"{count} hosts: {done} of {count * runs} runs were carried out", flush=True)
        if done < 0.9 * count * runs:
            sys.exit("too few of them: see above")
    finally:
        play("hosts_down.yml", BED, "inventories/localhost.yml")
    told = json.loads(times.read_text(encoding="utf-8"))
    return summed(count, runs, up_s, study_s, cpu_s, told)


def summed(count, runs, up_s, study_s, cpu_s, told):
    """What is kept of the times of one study."""
    phases = defaultdict(float)
    for task in told["tasks"]:
        role = task["name"].split(" : ")[0]
        phase = next((name for name, roles in PHASES.items() if role in roles), "other")
        phases[phase] += task["wall_s"]
    by_host = defaultdict(list)
    for run in told["runs"]:
        by_host[run["host"]].append(run)
    failed = {run["host"] for run in told["runs"] if run["rc"] not in (0, 3)}
    for host in failed:
        del by_host[host]
    # The first run of a host also waits until the hosts before it were begun.
    each = [
        (max(run["at_s"] for run in mine) - sum(run["command_s"] for run in mine)) / len(mine)
        for mine in by_host.values()
    ]
    later = []
    for mine in by_host.values():
        mine.sort(key=lambda run: run["at_s"])
        later += [after["at_s"] - run["at_s"] - after["command_s"] for run, after in itertools.pairwise(mine)]
    costly = sorted(told["tasks"], key=lambda task: -task["wall_s"])
    return {
        "hosts": count,
        "runs_per_host": runs,
        "up_s": up_s,
        "study_s": study_s,
        "cpu_s": cpu_s,
        "phases_s": dict(phases),
        "prepare_s": phases["preflight"] + phases["devices and file systems"],
        "beside_each_run_s": sorted(each),
        "beside_later_runs_s": sorted(later),
        "command_s": sorted(run["command_s"] for run in told["runs"]),
        "costly_tasks": [(task["name"], round(task["wall_s"], 2)) for task in costly[:12]],
    }


def play(playbook, variables, inventory, *arguments, times=None):
    """Plays a playbook; returns its seconds, and those of all processors that it and its children had."""
    environment = os.environ | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    if times:
        environment |= {"ANSIBLE_CALLBACKS_ENABLED": "task_times", "WEIR_TASK_TIMES": str(times)}
    where = inventory if Path(inventory).is_absolute() else ROOT / "ansible" / inventory
    command = [
        PLAYBOOK,
        "-i",
        where,
        ROOT / "ansible/playbooks" / playbook,
        "-e",
        json.dumps(variables),
        *arguments,
    ]
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    elapsed_s = time.monotonic() - began_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Of a study, some runs may have failed (exit code 2): those are counted.
    if done.returncode != 0 and not (times and done.returncode == 2):
        sys.exit(f"{playbook}: exit code {done.returncode}\n{done.stdout}")
    return elapsed_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def median(values):
    """The median of a sorted list; of none, not a number."""
    return values[len(values) // 2] if values else float("nan")


def print_table(found):
    """Prints what was found, a column for each number of hosts."""
    rows = [
        ("hosts brought up, s", lambda one: f"{one['up_s']:.1f}"),
        ("study prepared on all, s", lambda one: f"{one['prepare_s']:.1f}"),
        *(
            (f"  {phase}, s", lambda one, phase=phase: f"{one['phases_s'].get(phase, 0.0):.1f}")
            for phase in (*PHASES, "other")
        ),
        ("beside each run, median, s", lambda one: f"{median(one['beside_each_run_s']):.2f}"),
        ("beside each run, worst host, s", lambda one: f"{one['beside_each_run_s'][-1]:.2f}"),
        ("beside runs after the first, median, s", lambda one: f"{median(one['beside_later_runs_s']):.2f}"),
        ("a run's own command, median, s", lambda one: f"{median(one['command_s']):.2f}"),
        ("processor time, all of it, per host, s", lambda one: f"{one['cpu_s'] / one['hosts']:.1f}"),
        ("study, s", lambda one: f"{one['study_s']:.1f}"),
    ]
    print(f"{'hosts':40}" + "".join(f"{one['hosts']:>10}" for one in found))
    for name, value in rows:
        print(f"{name:40}" + "".join(f"{value(one):>10}" for one in found))
    for name, seconds in found[-1]["costly_tasks"]:
        print(f"  {seconds:7.2f} s  {name}")
    print(flush=True)


def draw(found, folder):
    """Draws what the playbook adds to each run, by host, and where its time goes."""
    from matplotlib.figure import Figure

    from weir.plots.palette import PALETTE
    from weir.plots.style import encode, style, width_inch

    with style():
        figure = Figure(figsize=(width_inch(), 2.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        labels = [str(one["hosts"]) for one in found]
        for place, one in enumerate(found):
            values = one["beside_later_runs_s"]
            left.plot([place] * len(values), values, "o", alpha=0.3, markersize=3, color=PALETTE[0])
            left.plot([place - 0.2, place + 0.2], [median(values)] * 2, "-", color="#333333")
        left.set_xticks(range(len(found)), labels)
        left.set_xlim(-0.6, len(found) - 0.4)
        left.set_ylim(bottom=0)
        left.set_xlabel("Hosts")
        left.set_ylabel("Beside each run after the first (s)")
        bottoms = [0.0] * len(found)
        for at, phase in enumerate(("preflight", "devices and file systems", "fetch", "cleanup", "other")):
            heights = [one["phases_s"].get(phase, 0.0) / one["hosts"] for one in found]
            right.bar(labels, heights, bottom=bottoms, label=phase, width=0.5, color=PALETTE[at])
            bottoms = [below + height for below, height in zip(bottoms, heights, strict=True)]
        right.set_xlim(-0.6, len(found) - 0.4)
        right.set_xlabel("Hosts")
        right.set_ylabel("Once per study, per host (s)")
        handles, names = right.get_legend_handles_labels()
        figure.legend(handles[::-1], names[::-1], loc="outside right upper", frameon=False)
        for suffix in ("png", "svg"):
            (folder / f"hosts.{suffix}").write_bytes(encode(figure, suffix))
    print(f"figure: {(folder / 'hosts.png').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
