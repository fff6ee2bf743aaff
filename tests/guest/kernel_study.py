"""A study of the factor `kernel` in an emulated machine, and the playbooks that carry it out."""

import json
import os
import subprocess

from support import ROOT

STUDY = """\
name: {name}
question: Which kernel serves small random reads faster?
testbed: device
seed: 7
repetitions: {repetitions}
warmup_s: 1
duration_s: 4
storage: {{profile: ssd-sata, heads: 1, size_mib: 64}}
capture: optional
classes:
  text:
    # One request at a time: an emulated processor sends scheduled requests late (R-LATE).
    workload: random-4k
    with: {{files.size: {{fixed: {{bytes: 33554432}}}}, arrivals.closed.depth: 1}}
    clients: 1
factors:
  kernel: [{kernels}]
  scheduler: [{schedulers}]
hold: {{filesystem: raw, architecture: partitioned}}
duplicate: false
"""
#: A boot under software emulation takes minutes.
LIMIT_S = 3600


class Controller:
    """Calls playbooks with an inventory, and carries out studies whose results are in `folder`."""

    def __init__(self, folder, inventory, **variables):
        self.folder, self.inventory = folder, inventory
        self.variables = {"weir_results": str(folder / "results")} | variables

    def command(self, playbook, inventory=None, **extra):
        """The words of a playbook's command."""
        return [
            ROOT / ".venv/bin/ansible-playbook",
            *("-i", inventory or self.inventory, ROOT / f"ansible/playbooks/{playbook}.yml"),
            *("-e", json.dumps(self.variables | extra)),
        ]

    def start(self, output, *of, **extra):
        """Starts a playbook, whose output goes to a file, in a process group of its own."""
        environment = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        return subprocess.Popen(
            self.command(*of, **extra),
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def play(self, *of, **extra):
        """Plays a playbook to its end, and returns its output."""
        with self.start(subprocess.PIPE, *of, **extra) as playing:
            try:
                told, _ = playing.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                playing.terminate()
                raise
        assert playing.returncode == 0, told[-8000:]
        return told

    def study(self, name, **of):
        """Writes a study, and returns its file."""
        file = self.folder / f"{name}.yml"
        file.write_text(STUDY.format(name=name, **of))
        return file

    def carry_out(self, name, **of):
        """Runs a study; returns its output, and run.json, host.json and verdict.json of each run."""
        study = str(self.study(name, **of))
        output = self.play("study", study=study)
        results = self.folder / "results" / name
        read = [
            tuple(
                json.loads((results / run["id"] / file).read_text())
                for file in ("run.json", "host.json", "verdict.json")
            )
            for run in json.loads((results / "plan.json").read_text())["runs"]
        ]
        for resolved, host, verdict in read:
            # No rule for scheduled requests applies, so emulation breaks none.
            assert verdict["status"] == "valid", verdict
            booted = host["kernel"]
            assert booted["name"] == resolved["settings"]["kernel"]
            assert booted["release"] == host["system"]["kernel_release"]
        # The host has its own kernel again, and no record is left.
        assert "booting its own kernel" in output
        again = self.play("study", study=study)
        assert f"{len(read)} runs, 0 of them to do" in again and "booting" not in again
        assert "R-HOST" not in output + again
        return output, read
