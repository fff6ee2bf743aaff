"""What the end-to-end tests share: calling the binary and the playbook, and looking for what they leave."""

import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema

from weir import manifest

ROOT = Path(__file__).resolve().parent.parent
WEIR = ROOT / "target/release/weir"
#: Longer than any playbook of these tests on a loaded machine, in seconds. A slower one says WEIR_PATIENCE_S.
PATIENCE_S = int(os.environ.get("WEIR_PATIENCE_S", "180"))

TINY = """\
name: {name}
question: Does the machinery work?
testbed: device
seed: 7
repetitions: {repetitions}
warmup_s: 0.2
duration_s: {duration_s}
# A kernel without BPF can still run these tests.
capture: optional
storage:
  profile: hdd-7200
  heads: 2
  size_mib: 128
classes:
  text:
    workload: poisson-text
    clients: 40
factors:
  scheduler: {schedulers}
hold:
  filesystem: {filesystem}
"""


def load_plugin(path):
    """A plugin of the playbook as a module, such as `filter/study`."""
    file = ROOT / "ansible/plugins" / f"{path}.py"
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def weir(*arguments, cwd=ROOT, stdin=None, **environment):
    """Runs the binary, which reads the text `stdin`; returns the completed process with its texts."""
    return subprocess.run(
        [WEIR, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | environment,
        input=stdin or "",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def play_role(folder, role, variables, part="main", before=(), **environment):
    """Plays a part of a role on this machine, behind another command's words; returns code and output."""
    common = {"weir_state": str(folder / "state"), "ansible_python_interpreter": sys.executable}
    (folder / "vars.json").write_text(json.dumps(common | variables))
    task = {"ansible.builtin.include_role": {"name": role, "tasks_from": part}}
    play = {"hosts": "all", "gather_facts": False, "connection": "local", "tasks": [task]}
    (folder / "play.json").write_text(json.dumps([play]))
    playbook = ROOT / ".venv/bin/ansible-playbook"
    done = subprocess.run(
        [*before, playbook, "-i", "here,", "-e", f"@{folder / 'vars.json'}", folder / "play.json"],
        cwd=ROOT,
        env=os.environ
        | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_ROLES_PATH": str(ROOT / "ansible/roles")}
        | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout


def problems_by_schema(kind, document):
    """What the shipped JSON Schema of a kind of file refuses in a document: places and reasons."""
    schema = json.loads((ROOT / f"docs/reference/schemas/{kind}.json").read_text())
    found = jsonschema.validators.Draft202012Validator(schema).iter_errors(document)
    return [f"{problem.json_path}: {problem.message}" for problem in found]


def simulate(folder, study, *arguments, out="results"):
    """Writes the text of a study to a file of its name in the folder, and simulates it there."""
    file = folder / f"{re.match('name: (.+)', study)[1]}.yml"
    file.write_text(study)
    done = weir("simulate", file, "--out", folder / out, *arguments)
    assert "panicked" not in done.stderr
    return done


def judge(folder, status):
    """Gives a run another status, as if it had been judged so: with its manifest."""
    verdict = folder / "verdict.json"
    verdict.write_text(json.dumps(json.loads(verdict.read_text()) | {"status": status}))
    sealed = folder / manifest.NAME
    document = json.loads(sealed.read_text())
    del document["checksum"]
    (entry,) = (entry for entry in document["files"] if entry["path"] == verdict.name)
    content = verdict.read_bytes()
    entry |= {"size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    sealed.write_text(manifest.seal(json.dumps(document, indent=2)))


def hidden(folder):
    """Names of what is not whole in a folder of results; weir's own folder there is left out."""
    return sorted(
        path.name for path in Path(folder).iterdir() if path.name.startswith(".") and path.name != ".weir"
    )


@dataclass
class Bench:
    """A place of its own for a playbook: studies, results and state below one folder."""

    folder: Path
    processes: list = field(default_factory=list)

    @property
    def state(self):
        """The state folder."""
        return self.folder / "state"

    @property
    def results(self):
        """The results folder."""
        return self.folder / "results"

    def study(self, name="tiny", schedulers="[none, mq-deadline]", filesystem="ext4", **fields):
        """Writes a study of one cell per scheduler; returns its file."""
        numbers = {"repetitions": 1, "duration_s": 1} | fields
        file = self.folder / f"{name}.yml"
        file.write_text(TINY.format(name=name, schedulers=schedulers, filesystem=filesystem, **numbers))
        return file

    def command(self, study, *arguments):
        """The command line of the playbook."""
        variables = {"study": str(study), "weir_results": str(self.results), "weir_state": str(self.state)}
        playbook = ROOT / ".venv/bin/ansible-playbook"
        return [playbook, ROOT / "ansible/playbooks/study.yml", "-e", json.dumps(variables), *arguments]

    def start(self, study, *arguments, **environment):
        """Starts the playbook; its output goes to `log`."""
        # Without a callback of another kind, colour or verbosity that the caller's environment may ask for.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        settings = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        with self.log.open("w") as log:
            process = subprocess.Popen(
                self.command(study, *arguments),
                cwd=ROOT,
                env=clean | settings | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.processes.append(process)
        return process

    def play(self, study, *arguments, **environment):
        """Carries out the playbook to its end; returns exit code and output."""
        code = self.start(study, *arguments, **environment).wait(PATIENCE_S)
        return code, self.log.read_text()

    @property
    def log(self):
        """Output of the last playbook."""
        return self.folder / "log"

    def run_folders(self, name="tiny"):
        """The folders of runs that are whole, by id."""
        folder = self.results / name
        entries = folder.iterdir() if folder.is_dir() else ()
        return {entry.name: entry for entry in entries if entry.is_dir() and not entry.name.startswith(".")}

    def leftovers(self):
        """Processes, mounts and loop devices that bear this bench's path."""
        mark = str(self.folder)
        mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if mark in line]
        loops = [
            str(file) for file in Path("/sys/block").glob("loop*/loop/backing_file") if mark in _text(file)
        ]
        # The first process is the machine's, whatever it is called.
        ours = {"1", str(os.getpid())}
        processes = [
            f"{file.parent.name}: {_text(file)}"
            for file in Path("/proc").glob("[0-9]*/cmdline")
            if file.parent.name not in ours and mark in _text(file)
        ]
        return mounts + loops + processes

    def living_run(self):
        """Pid of the run that is being carried out, or None."""
        try:
            return json.loads((self.state / "journal/run.json").read_text())["pid"]
        except (FileNotFoundError, ValueError):
            return None

    def close(self):
        """Ends what a failed test left: the playbooks that it started, then what the state folder lists."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        wait_for(
            lambda: not self.living_run() or not Path(f"/proc/{self.living_run()}").exists(), "a run to end"
        )
        weir("clean", "--state", self.state)


def wait_for(condition, what, patience_s=180.0):
    """Waits until a condition holds and returns what it returned."""
    end = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {patience_s} s for {what}"
        time.sleep(0.05)
    return found


def _text(file):
    """A file of /proc or /sys as text; empty if it has just gone."""
    try:
        return file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
