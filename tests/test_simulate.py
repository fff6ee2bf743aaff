"""Studies in virtual time: the same folders as on devices, the same outcome however they are carried out."""

import json
import subprocess
import sys

import polars as pl
import pytest
from support import WEIR, simulate, weir

from weir.derive import run_metrics
from weir.load import load_study

STUDY = """\
name: trial
question: Do text and video clients fare better apart or together?
testbed: simulator
seed: 7
repetitions: 2
warmup_s: 2
duration_s: 20
storage: {profile: hdd-7200, heads: 2, size_mib: 2048, placement: spread}
classes:
  text: {workload: poisson-text, clients: 40, scheduler: look, stripe_unit_kib: 8, cache_mib: 4}
  video: {workload: mpeg-vbr, clients: 15, scheduler: scan-edf, objective: {deadline_miss_share: 0.01}}
factors:
  architecture: [partitioned, integrated]
  scheduler: [look, fcfs]
"""


def contents(folder):
    """What runs came to, by run and file: all but how long it took on this machine."""
    found = {}
    for run in sorted(path.parent for path in folder.glob("*/run.json")):
        found[run.name] = {
            name: (run / name).read_bytes() for name in ("run.json", "requests.parquet", "summary.json")
        }
        observed = json.loads((run / "observed.json").read_text())
        found[run.name]["observed"] = observed["simulator"]
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    done = simulate(folder, STUDY)
    assert done.returncode == 0, done.stderr
    assert "8 runs, all valid" in done.stdout
    return folder / "results/trial"


def test_the_outcome_does_not_depend_on_jobs_or_shards(whole, tmp_path):
    assert simulate(tmp_path, STUDY, "--jobs", 1, out="one").returncode == 0
    refused = simulate(tmp_path, STUDY, "--jobs", 0, out="none")
    assert refused.returncode == 2 and "--jobs 0" in refused.stderr
    assert contents(tmp_path / "one/trial") == contents(whole)
    for part in (1, 2, 3):
        assert simulate(tmp_path, STUDY, "--shard", f"{part}/3", out="parts").returncode == 0
    assert contents(tmp_path / "parts/trial") == contents(whole)


def test_what_is_there_is_not_simulated_again(whole, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in whole.glob("*/requests.parquet")}
    (tmp_path / "trial.yml").write_text(STUDY)
    done = weir("simulate", tmp_path / "trial.yml", "--out", whole.parent)
    assert done.returncode == 0
    assert " 0 requests simulated" in done.stdout
    assert {path: path.stat().st_mtime_ns for path in whole.glob("*/requests.parquet")} == before


def test_a_summary_says_what_the_requests_say(whole, tmp_path):
    """The simulator's counts and the analysis' own, by run, class and metric."""
    compare_summaries(STUDY, whole, tmp_path, classes=2)


def test_a_summary_of_closed_loops_says_what_the_requests_say(tmp_path):
    """Of these it is what was answered in the interval that tells of responses."""
    text = STUDY[STUDY.index("  text:") : STUDY.index("  video:")]
    study = STUDY.replace(text, "  reads: {workload: random-4k, clients: 7, scheduler: look}\n")
    # Short enough that its ends show: what is in flight at the one is counted, at the other is not.
    study = study.replace("duration_s: 20", "duration_s: 3")
    done = simulate(tmp_path, study, out="whole")
    assert done.returncode == 0, done.stderr
    compare_summaries(study, tmp_path / "whole/trial", tmp_path, classes=2)


def compare_summaries(study, whole, tmp_path, classes):
    done = simulate(tmp_path, study.replace("repetitions", "records: summary\nrepetitions"))
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "results").rglob("requests.parquet"))

    def by_cell(folder):
        runs = load_study(folder).valid_runs
        return {(tuple(run.levels.items()), run.repetition): run_metrics(run)["classes"] for run in runs}

    summaries, requests = by_cell(tmp_path / "results/trial"), by_cell(whole)
    assert summaries.keys() == requests.keys()
    compared = 0
    for cell, by_class in requests.items():
        for name, values in by_class.items():
            for metric, value in values.items():
                found = summaries[cell][name][metric]
                if found is None:
                    continue
                # The histogram has three digits.
                exact = "_p" not in metric and "max" not in metric
                assert found == pytest.approx(value, rel=1e-9 if exact else 2e-3), (cell, name, metric)
                compared += 1
    assert compared > len(requests) * classes * 12


ACCESSES = """\
name: accesses
question: How long does a disk access take?
testbed: simulator
seed: 5
repetitions: 1
records: summary
warmup_s: 2
duration_s: 20
storage: {profile: hdd-7200, heads: 3, size_mib: 2048, placement: packed}
classes:
  reads: {workload: random-4k, clients: 7, scheduler: fcfs, stripe_unit_kib: UNIT}
factors:
  architecture: [integrated]
"""


@pytest.mark.parametrize(("unit_kib", "accesses"), [(4, 1), (2, 2)])
def test_a_disk_access_is_what_one_disk_serves_of_a_request(tmp_path, unit_kib, accesses):
    """Reads of 4 KiB are one access in stripe units of 4 KiB, one on each of two disks in units of 2 KiB."""
    done = simulate(tmp_path, ACCESSES.replace("UNIT", str(unit_kib)))
    assert done.returncode == 0, done.stderr
    (run,) = load_study(tmp_path / "results/accesses").valid_runs
    reads = run_metrics(run)["classes"]["reads"]
    assert reads["disk_accesses"] == accesses * reads["requests"] > 1000
    busy_s = reads["disk_accesses"] * reads["access_service_mean_ms"] / 1e3
    # Closed loops tell of what completed in the interval, by which the time of the heads counts, too.
    assert busy_s / (3 * run.duration_s) == pytest.approx(reads["head_time_share"], rel=1e-9)
    parts = [(reads[f"access_{part}_mean_ms"], reads[f"{part}_mean_ms"]) for part in ("queueing", "service")]
    if accesses == 1:
        assert all(of_access == pytest.approx(of_request, rel=1e-9) for of_access, of_request in parts)
    else:
        # The piece that completes last has waited longest; the mean access is ahead of it.
        assert parts[0][0] < parts[0][1]


def test_the_page_reports_a_simulated_study(whole):
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "weir", "report", whole], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    page = (whole / "report.html").read_text()
    assert "simulator" in page
    assert "partitioned" in page


@pytest.mark.parametrize(
    ("clients", "duration_s", "ended"),
    # By the requests outstanding, and by the time after the last was asked.
    [(4000, 200, "ended at"), (1000, 20, "ended at 3")],
)
def test_an_overload_is_a_result_with_the_time_it_began(tmp_path, clients, duration_s, ended):
    # First come first served does not profit from long queues, as sweeps do.
    study = STUDY.replace("clients: 40", f"clients: {clients}")
    study = study.replace("duration_s: 20", f"duration_s: {duration_s}")
    study = study.replace("scheduler: look", "scheduler: fcfs").replace("[look, fcfs]", "[fcfs]")
    done = simulate(tmp_path, study.replace("repetitions: 2", "repetitions: 1\nrecords: summary"))
    assert done.returncode == 0, done.stderr
    verdicts = [json.loads(path.read_text()) for path in (tmp_path / "results").rglob("verdict.json")]
    rules = [rule for verdict in verdicts for rule in verdict["rules"] if rule["rule"] == "R-SATURATED"]
    assert len(rules) == 2
    assert all("did not drain after" in rule["reason"] and ended in rule["reason"] for rule in rules)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("look, fcfs", "lok, fcfs"), ["factors.scheduler", "did you mean `look`?"]),
        (("scheduler: look", "scheduler: look depth=3"), ["classes.text.scheduler", "no setting `depth`"]),
        (("testbed: simulator", "testbed: device"), ["classes.text.cache_mib", "`testbed: simulator` only"]),
        (("hdd-7200", "hdd-7201"), ["storage.profile", "hdd-7200"]),
        (("cache_mib: 4", "cache_mib: 4, weight: 0"), ["classes.text.weight", "from 0.001"]),
        (("cache_mib: 4", "cache_mib: 4, priority: rt/0"), ["classes.text.priority", "use weight"]),
        (("size_mib: 2048", "size_mib: 64"), ["storage.size_mib"]),
    ],
)
def test_what_cannot_be_simulated_is_refused_by_field(tmp_path, change, says):
    assert change[0] in STUDY
    done = simulate(tmp_path, STUDY.replace(*change, 1))
    assert done.returncode == 2
    for part in says:
        assert part in done.stderr, done.stderr
    assert not (tmp_path / "results").exists()


def test_a_shard_that_is_none_is_refused(tmp_path):
    for text in ("0/3", "4/3", "1", "a/b"):
        done = simulate(tmp_path, STUDY, "--shard", text)
        assert done.returncode == 2
        assert "write I/N" in done.stderr


DISK = """\
kind: disk
description: A disk of nowhere
rpm: 5400
heads: 4
zones:
  - {cylinders: 2000, sectors_per_track: 100}
seek_min_ms: 1.7
seek_avg_ms: 11
seek_max_ms: 22.5
head_switch_ms: 0
head_skew_ms: 0
cylinder_skew_ms: 1.7
command_overhead_us: 0
interface_mb_s: 10
"""


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        (("cylinders: 2000", "cylinders: 3"), "storage.profile", ["disk.yml", "3.0 cylinders", "from 16"]),
        (
            ("seek_avg_ms: 11", "seek_avg_ms: 1.8"),
            "storage.profile",
            ["disk.yml", "seek_avg_ms 1.8", "between"],
        ),
        (("100}", "0}"), "storage.profile", ["disk.yml", "zones[0]", "sectors_per_track` is 0"]),
        (("rpm: 5400", "rmp: 5400"), "storage.profile", ["disk.yml", "rmp"]),
        (("cylinders: 2000", "cylinders: 2000"), "storage.size_mib", ["disk.yml", "(4 to 390 MiB)"]),
    ],
)
def test_a_disk_that_cannot_be_is_refused_by_file_and_field(tmp_path, change, field, says):
    assert change[0] in DISK
    disk = tmp_path / "disk.yml"
    disk.write_text(DISK.replace(*change, 1))
    study = STUDY.replace("profile: hdd-7200", f"profile: {disk}")
    for done in (simulate(tmp_path, study), weir("check", tmp_path / "trial.yml")):
        assert done.returncode == 2
        for part in ("trial.yml:8", field, *says):
            assert part in done.stderr, done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("profile", ["ssd-nvme", "ssd-sata", "seagate-elite3", "hp-97560", '"null"'])
def test_every_kind_of_device_can_be_simulated(tmp_path, profile):
    study = STUDY.replace("hdd-7200", profile).replace("repetitions: 2", "repetitions: 1")
    study = study.replace("duration_s: 20", "duration_s: 3").replace("[look, fcfs]", "[cello, linux-bfq]")
    study = study.replace("size_mib: 2048", "size_mib: 1024")
    study = study.replace(", scheduler: look", "").replace(", scheduler: scan-edf", "")
    done = simulate(tmp_path, study)
    assert done.returncode == 0, done.stderr
    assert "4 runs, all valid" in done.stdout


OVERLOAD = """\
name: overload
question: What is the throughput of a device that never idles?
testbed: simulator
seed: 3
repetitions: 1
warmup_s: 10
duration_s: 1000
storage: {profile: PROFILE, heads: 1, size_mib: 4096}
classes:
  reader:
    workload: one-size
    with: {arrivals.poisson.rate_per_s: 1, files: {count: 256, size: {fixed: {bytes: 4194304}}}}
    clients: 300
factors:
  scheduler: [fcfs]
  load: [1, 2, 3]
"""


def test_rates_of_an_overload_that_was_given_up_are_of_the_simulated_part(tmp_path):
    """A device that takes 64 ms for every 4 MiB does 65.5 MB/s at any load, and is never idle."""
    profile = tmp_path / "constant.yml"
    profile.write_text(
        "kind: ssd\ndescription: 64 ms for every 4 MiB\nchannels: 1\npage_kib: 4096\nread_latency_us: 1\n"
        "write_latency_us: 1\nchannel_mb_s: 65.536\ncommand_overhead_us: 0\n"
    )
    study = OVERLOAD.replace("PROFILE", str(profile))
    done = simulate(tmp_path, study)
    assert done.returncode == 0, done.stderr
    loaded = load_study(tmp_path / "results/overload")
    assert len(loaded.valid_runs) == 3
    for run in loaded.valid_runs:
        saturation = run.observed["simulator"]["saturation"]
        assert saturation["at_s"] < run.warmup_s + run.duration_s
        summary = json.loads((run.path / "summary.json").read_text())
        assert summary["heads"][0]["busy_share"] == pytest.approx(1, abs=0.01)
        reader = summary["classes"]["reader"]
        for values in (reader, run_metrics(run)["classes"]["reader"]):
            assert values["throughput_mb_s"] == pytest.approx(65.5, rel=0.01)
            assert values["offered_mb_s"] == pytest.approx(300 * run.levels["load"] * 4.194304, rel=0.02)
        assert reader["head_time_share"] == pytest.approx(1, abs=0.01)


FLASH = """\
kind: ssd
description: a small flash device
channels: 2
page_kib: 4
read_latency_us: 50
write_latency_us: 300
channel_mb_s: 1000
command_overhead_us: 5
flash:
  dies_per_channel: 2
  block_kib: 256
  erase_ms: 2
  over_provisioning_percent: 20
  write_buffer_kib: 64
  interface_mb_s: 2000
"""
ON_FLASH = """\
name: trial
question: What do two classes do to a flash device?
testbed: simulator
seed: 7
repetitions: 1
warmup_s: 0
duration_s: 1
storage: {profile: PROFILE, heads: 1, size_mib: 256, placement: spread}
classes:
  text: {workload: poisson-text, clients: 200, scheduler: fcfs}
  video: {workload: mpeg-vbr, clients: 5, scheduler: fcfs}
hold: {queue_depth: 32}
factors:
  architecture: [integrated]
"""


def on_flash(folder, change, flash=FLASH):
    """The one run of a study on a flash device."""
    folder.mkdir()
    profile = folder / "flash.yml"
    profile.write_text(flash.replace(*change))
    done = simulate(folder, ON_FLASH.replace("PROFILE", str(profile)))
    runs = list((folder / "results/trial").glob("*/verdict.json"))
    return done, runs[0].parent if runs else None


def test_the_steady_state_of_flash_is_recorded_round_by_round(tmp_path):
    done, run = on_flash(tmp_path / "steady", ("  erase_ms: 2\n", "  erase_ms: 2\n  start: steady\n"))
    assert done.returncode == 0, done.stderr
    rules = {rule["rule"]: rule for rule in json.loads((run / "verdict.json").read_text())["rules"]}
    assert rules["R-STEADY"]["status"] == "valid"
    heads = json.loads((run / "observed.json").read_text())["simulator"]["heads"]
    for head in heads:
        found = head["flash"]["preconditioning"]
        last = found["write_amplification"][-5:]
        assert found["is_steady"] and found["mean"] == pytest.approx(sum(last) / 5)
        assert found["range_share"] == pytest.approx((max(last) - min(last)) / found["mean"])
        assert found["range_share"] <= 0.2
        assert abs(found["slope_share"]) <= 0.1
    assert f"{heads[-1]['flash']['preconditioning']['mean']:.3f}" in rules["R-STEADY"]["reason"]
    _, run = on_flash(tmp_path / "written", ("", ""))
    rules = json.loads((run / "verdict.json").read_text())["rules"]
    assert [rule["rule"] for rule in rules] == ["R-PLANNED", "R-SOME", "R-SATURATED"]


@pytest.mark.parametrize("block_kib", [16, 32, 128])
def test_steady_writes_with_wear_levelling_use_every_block(tmp_path, block_kib):
    """A small device will be written until it is steady: each block is emptied for space and for wear."""
    steady = FLASH.replace("block_kib: 256", f"block_kib: {block_kib}").replace("percent: 20", "percent: 7")
    change = ("  erase_ms: 2\n", "  erase_ms: 2\n  start: steady\n  wear_gap_erases: 8\n")
    done, run = on_flash(tmp_path / "worn", change, steady)
    assert done.returncode in (0, 3), done.stderr
    assert json.loads((run / "verdict.json").read_text())["status"] in ("valid", "invalid")


def test_queues_with_a_slot_for_each_command_change_nothing_and_one_slot_does(tmp_path):
    def queues(slots):
        return FLASH + f"queues: {{slots: {slots}, weights: [3, 1]}}\n"

    runs = [
        on_flash(tmp_path / name, ("", ""), flash)[1]
        for name, flash in (("without", FLASH), ("many", queues(32)), ("one", queues(1)))
    ]
    tables = [(run / "requests.parquet").read_bytes() for run in runs]
    assert tables[0] == tables[1] != tables[2]


def test_zones_are_read_in_any_order_but_no_block_device(tmp_path):
    zoned = ("  erase_ms: 2\n", "  erase_ms: 2\n  placement: zns\n")
    done, run = on_flash(tmp_path / "zones", zoned)
    assert done.returncode == 0 and run, "reads need no order"
    (tmp_path / "disk.yml").write_text(
        f"name: zoned\nprofile: {tmp_path / 'zones/flash.yml'}\nsize_mib: 64\nbacking: memory\n"
    )
    refused = weir("serve", tmp_path / "disk.yml")
    assert refused.returncode == 2 and "only at write pointers" in refused.stderr
    assert "testbed: simulator" in refused.stderr


RECORDED = """\
name: trial
question: How much memory does a trace need?
testbed: simulator
seed: 1
repetitions: 1
warmup_s: 0
duration_s: DURATION
storage: {profile: ssd-optane, heads: 1, size_mib: 1100}
classes: {text: {workload: recorded, clients: 1}}
factors: {scheduler: [fcfs]}
"""

RECORDED_WORKLOAD = """\
name: recorded
description: A trace that this test wrote.
source: "generated"
arrivals: {recorded: {path: TRACE, format: alibaba}}
files: {count: 1, size: {fixed: {bytes: 1073741824}}}
sizes: recorded
access: recorded
"""

#: Runs a command and prints its peak memory in KiB. The peak of a child begins with the memory of its parent,
#: which is small here.
MEASURED = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""

INTERVAL_US = 20


def _peak_mib(folder, requests):
    """Peak memory of the simulation of a trace with so many requests, one each 20 us."""
    folder.mkdir()
    number = pl.int_range(requests, eager=True)
    offsets = (number * 7919 % 262144) * 4096
    columns = [pl.lit("0"), pl.lit("R"), offsets, pl.lit(4096), number * INTERVAL_US]
    named = [column.alias(str(place)) for place, column in enumerate(columns)]
    pl.select(named).write_csv(folder / "trace.csv", include_header=False)
    for kind in ("studies", "workloads"):
        (folder / kind).mkdir()
    workload = RECORDED_WORKLOAD.replace("TRACE", str(folder / "trace.csv"))
    (folder / "workloads/recorded.yml").write_text(workload)
    study = folder / "studies/trial.yml"
    study.write_text(RECORDED.replace("DURATION", str((requests - 0.5) * INTERVAL_US / 1e6)))
    command = [WEIR, "simulate", study, "--jobs", "1", "--out", folder / "results"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, command)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "results/trial").glob("*/requests.parquet")
    assert pl.scan_parquet(run).select(pl.len()).collect().item() == requests
    return int(done.stdout) / 1024


def test_memory_does_not_grow_with_the_length_of_a_trace(tmp_path):
    """6 million requests more: a byte that is kept of each is 6 MiB."""
    few, many = (_peak_mib(tmp_path / str(millions), millions * 1_000_000) for millions in (2, 8))
    assert many - few < 16, f"{few:.0f} MiB, {many:.0f} MiB"
    assert many < 160
