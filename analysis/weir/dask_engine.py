"""`weir simulate --dask`: a study in virtual time on the workers of a Dask scheduler.

The submitter sends groups of planned runs; a worker simulates a group and returns the folders of the runs as
an archive; `weir gather` checks and stores them. A group is given to whichever worker is free. The
group of a worker that dies is sent again. A run that was simulated twice is stored once.
"""

import contextlib
import json
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weir import locate
from weir.dask_worker import Group, identity, simulate_group
from weir.errors import DamagedError, InputError
from weir.json_output import Outcome
from weir.plan import read_plan

#: Wanted time of a task, in s: much longer than Dask's own part; a worker that dies loses this much work.
TASK_S = 1.0
#: Most runs of a group, and most bytes of its archive, estimated from finished groups.
MOST_RUNS = 256
MOST_BYTES = 32 << 20
#: Runs of a group until the first group is finished.
FIRST_RUNS = 4
#: Groups under way for each thread of a worker: one is simulated, one waits there, one is on its way.
GROUPS_PER_THREAD = 3
#: Attempts of a run whose worker dies or whose archive is damaged.
MOST_ATTEMPTS = 8
#: Without a terminal, a line at most this often, in s.
EVERY_S = 10.0
CONNECT_S = 30


class CampaignError(DamagedError):
    """Some runs were not simulated; finished runs are stored."""


@dataclass
class Campaign:
    """Runs of a campaign: number wanted, and ids of those that were stored by it, invalid, present before."""

    study: str
    wanted: int
    stored_ids: list[str] = field(default_factory=list)
    invalid_ids: list[str] = field(default_factory=list)
    present_ids: list[str] = field(default_factory=list)
    resent: Counter[str] = field(default_factory=Counter)

    @property
    def stored(self) -> int:
        """Number of runs that it stored."""
        return len(self.stored_ids)

    @property
    def invalid(self) -> int:
        """Number of these that are invalid."""
        return len(self.invalid_ids)

    @property
    def done(self) -> int:
        """Runs that are in the results."""
        return self.stored + len(self.present_ids)


class Gatherer:
    """A process `weir gather --stream`, which takes archives and replies to each."""

    def __init__(self, binary: Path, arguments: list[str], events: queue.Queue[Any]) -> None:
        # In a session of its own, so that Ctrl-C does not reach it: it ends when its input ends.
        self._process = subprocess.Popen(
            [binary, "gather", *arguments, "--stream"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._sent = 0
        if not self._process.stdout.readline():
            raise SystemExit(self._process.wait())
        self._reader = threading.Thread(target=self._read, args=(events,), daemon=True)
        self._reader.start()

    def _read(self, events: queue.Queue[Any]) -> None:
        for line in self._process.stdout:
            events.put(json.loads(line))
        events.put(None)

    def send(self, archive: bytes) -> int:
        """Sends an archive and returns its number in replies. Waits while the process waits for the disk."""
        try:
            self._process.stdin.write(b"%d\n" % len(archive))
            self._process.stdin.write(archive)
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise CampaignError("weir gather", "has ended", "see its message above") from error
        self._sent += 1
        return self._sent - 1

    def close(self) -> None:
        """Waits until everything that was sent is stored."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._reader.join()
        self._process.wait()


def simulate(
    study: str, address: str, out: Path, *, label: str | None = None, retry_invalid: bool = False
) -> Campaign:
    """Simulates the missing runs of a study on the workers of a Dask scheduler.

    Args:
        study: name or file of the study.
        address: of the scheduler, such as `tcp://10.0.0.1:8786`.
        out: the folder of results.
        label: label of the runs.
        retry_invalid: simulate invalid runs again, and replace them.

    Raises:
        InputError: Dask is not installed, no scheduler answers, or a worker has another `weir`.
        DamagedError: a run that is there is damaged, or some run could not be simulated.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError("--dask", "Dask is not installed", "pip install 'weir-bench[scale]'") from error
    binary = locate.binary()
    common = [study, "--out", str(out)] + (["--label", label] if label else [])
    again = ["--retry-invalid"] if retry_invalid else []
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        problem = f"no Dask scheduler answers at {address} ({error})"
        raise InputError("--dask", problem, "start one: dask scheduler") from error
    events: queue.Queue[Any] = queue.Queue()
    with client:
        gatherer = Gatherer(binary, common + again, events)
        try:
            plan, missing = _missing(binary, study, out, label, again)
            _check_present(binary, out / plan["study"], {run["id"] for run in missing})
            campaign = Campaign(plan["study"], len(missing))
            if missing:
                _Dispatcher(client, gatherer, events, plan, missing, identity(binary), campaign).run()
        finally:
            gatherer.close()
    return campaign


def _output(binary: Path, *arguments: str | Path) -> bytes:
    done = subprocess.run([binary, *arguments], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        # The command has written its message to standard error.
        raise SystemExit(done.returncode)
    return done.stdout


def _missing(
    binary: Path, study: str, out: Path, label: str | None, again: list[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The plan without its runs, and the runs in virtual time that the results lack."""
    arguments = ["plan", study, "--json", "--compact", "--missing", out, *again]
    if label:
        arguments += ["--label", label]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(_output(binary, *arguments))
        file.flush()
        plan = read_plan(Path(file.name))
    runs = [run for run in plan["runs"] if run["testbed"] != "device"]
    # A compact plan is of a later format; read_plan has completed its runs.
    return plan | {"runs": [], "format": 1}, runs


def _check_present(binary: Path, folder: Path, missing: set[str]) -> None:
    """Compares the runs that are there with their manifests."""
    if not any(path.is_dir() and path.name not in missing for path in folder.glob("[!.]*")):
        return
    done = subprocess.run([binary, "verify", "--json", folder], stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        # The command has written its message to standard error.
        raise SystemExit(done.returncode)
    if problems := json.loads(done.stdout)["problems"]:
        first = problems[0]
        raise DamagedError(
            first["file"],
            f"{first['problem']} ({len(problems)} problems in runs that are there)",
            "remove the folders of damaged runs (weir verify lists them), then call this again",
        )


class _Dispatcher:
    """Keeps the workers busy until every run is stored."""

    def __init__(
        self,
        client: Any,
        gatherer: Gatherer,
        events: queue.Queue[Any],
        plan: dict[str, Any],
        runs: list[dict[str, Any]],
        binary: str,
        campaign: Campaign,
    ) -> None:
        self.client, self.gatherer, self.events = client, gatherer, events
        self.plan, self.binary, self.campaign = plan, binary, campaign
        self.waiting: deque[list[dict[str, Any]]] = deque()
        self.runs: Iterator[dict[str, Any]] = iter(runs)
        self.under_way: dict[Any, list[dict[str, Any]]] = {}
        self.sent: dict[int, list[dict[str, Any]]] = {}
        self.run_s, self.run_bytes = 0.0, 0.0
        self.threads, self.asked_s = 0, 0.0
        self.began_s = self.told_s = time.monotonic()

    def run(self) -> None:
        try:
            while self.campaign.done < self.campaign.wanted:
                self._submit()
                self._tell()
                try:
                    event = self.events.get(timeout=1.0)
                except queue.Empty:
                    continue
                if event is None:
                    raise CampaignError("weir gather", "has ended", "see its message above")
                if isinstance(event, dict):
                    self._stored(event)
                else:
                    self._finished(event)
        finally:
            self.client.cancel(list(self.under_way))

    def _submit(self) -> None:
        now_s = time.monotonic()
        if now_s - self.asked_s > 1.0:
            self.threads, self.asked_s = sum(self.client.nthreads().values()), now_s
        while len(self.under_way) < GROUPS_PER_THREAD * self.threads and (group := self._next()):
            plan = json.dumps(self.plan | {"runs": group}).encode()
            future = self.client.submit(simulate_group, plan, self.binary, pure=False)
            self.under_way[future] = group
            future.add_done_callback(self.events.put)

    def _next(self) -> list[dict[str, Any]]:
        if self.waiting:
            return self.waiting.popleft()
        most = FIRST_RUNS
        if self.run_s:
            most = int(min(MOST_RUNS, TASK_S / self.run_s, MOST_BYTES / self.run_bytes))
        return [run for _, run in zip(range(max(most, 1)), self.runs, strict=False)]

    def _finished(self, future: Any) -> None:
        from distributed import KilledWorker

        group = self.under_way.pop(future)
        try:
            result: Group = future.result(timeout=60)
        except InputError:
            raise
        except Exception as error:
            # A worker died or its disk is full, or the scheduler restarted. A group that killed workers is
            # halved: a run that kills its worker then takes fewer others with it.
            middle = len(group) // 2 if isinstance(error, KilledWorker) else 0
            for part in filter(None, (group[:middle], group[middle:])):
                self._again(part, f"{type(error).__name__}: {error}")
            return
        # An exponential moving average: runs of later cells may take longer.
        share = 1.0 if not self.run_s else 0.2
        self.run_s += share * (result.elapsed_s / len(group) - self.run_s)
        self.run_bytes += share * (len(result.archive) / len(group) - self.run_bytes)
        self.sent[self.gatherer.send(result.archive)] = group

    def _stored(self, reply: dict[str, Any]) -> None:
        group = self.sent.pop(reply["archive"])
        here = {*reply["stored"], *reply["present"]}
        self.campaign.stored_ids += reply["stored"]
        self.campaign.present_ids += reply["present"]
        self.campaign.invalid_ids += reply["invalid"]
        if left := [run for run in group if run["id"] not in here]:
            self._again(left, "; ".join(reply["problems"]) or "the worker returned no such run")

    def _again(self, group: list[dict[str, Any]], why: str) -> None:
        for run in group:
            self.campaign.resent[run["id"]] += 1
            if self.campaign.resent[run["id"]] >= MOST_ATTEMPTS:
                problem = f"run {run['id']} failed in {MOST_ATTEMPTS} attempts ({why})"
                remedy = (
                    "look at the logs of the workers; finished runs are stored, the same command continues"
                )
                raise CampaignError("--dask", problem, remedy)
        self.waiting.append(group)

    def _tell(self) -> None:
        now_s = time.monotonic()
        if now_s - self.told_s < EVERY_S:
            return
        self.told_s = now_s
        rate = self.campaign.done / (now_s - self.began_s)
        workers = f"{self.threads} threads of workers" if self.threads else "waiting for workers"
        print(
            f"{self.campaign.done} of {self.campaign.wanted} runs, {rate:.1f} per s, {workers}",
            file=sys.stderr,
            flush=True,
        )


def command(study: str, address: str, out: Path, label: str | None, retry_invalid: bool) -> Outcome:
    """`weir simulate --dask` as a command; returns the exit code, and the runs as `weir simulate --json`."""

    def stop(number: int, _: Any) -> None:
        raise KeyboardInterrupt(number)

    signal.signal(signal.SIGTERM, stop)
    began_s = time.monotonic()
    try:
        campaign = simulate(study, address, out, label=label, retry_invalid=retry_invalid)
    except KeyboardInterrupt:
        print("stopped: finished runs are stored; the same command continues", file=sys.stderr)
        return 128 + signal.SIGINT, None
    elapsed_s = time.monotonic() - began_s
    verdict = f"{campaign.invalid} INVALID" if campaign.invalid else "all valid"
    again = f", {len(campaign.resent)} sent again" if campaign.resent else ""
    print(f"{campaign.study}: {campaign.stored} runs stored, {verdict}{again}, in {elapsed_s:.1f} s")
    return (3 if campaign.invalid else 0), {
        "study": campaign.study,
        "folder": out / campaign.study,
        "stored": campaign.stored_ids,
        "present": campaign.present_ids,
        "invalid": campaign.invalid_ids,
        "elapsed_s": elapsed_s,
    }
