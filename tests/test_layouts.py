"""Where files lie on simulated disks, what contracts hold there, and what a run says of them."""

import json

import pytest
from support import simulate, weir

# Two striped films, one film on disk 2 alone, and files behind them all.
STUDY = """\
name: layouts
question: Does each class ask the disks that hold its files?
testbed: simulator
seed: 5
repetitions: 1
warmup_s: 0
duration_s: 60
series_s: 10
storage: {profile: quantum-atlas-ii, heads: 3, size_mib: 4341, stripe_unit_kib: 256}
classes:
  alone:
    workload: clockwise-audio-cd
    clients: 10
    disks: [2]
    contract: {cost_ms: 54, period_ms: 1488.372093}
  striped:
    workload: clockwise-audio-cd
    with:
      arrivals.periodic.interval_ms: 4465.116279
      sizes.drawn.fixed.bytes: 786432
      alignment_bytes: 786432
      deadline.after.ms: 4465.116279
    clients: 12
    contract: {cost_ms: 54, period_ms: 4465.116279}
  text: {workload: interactive-64k, clients: 2, from_mib: 2000}
factors:
  scheduler: [deltal]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layouts")
    done = simulate(folder, STUDY)
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "results/layouts").glob("*/run.json")
    return {
        name: json.loads((run.parent / f"{name}.json").read_text()) for name in ("summary", "series", "run")
    }


def test_contracts_are_those_of_the_disks_that_hold_the_files(run):
    heads = run["summary"]["heads"]
    alone, striped = 60 / 1.488372093, 60 / 4.465116279
    blocks = [int(striped) + 1] * 2 + [int(striped) + 1]
    assert [head["real_time_requests"] for head in heads] == [
        12 * blocks[0],
        12 * blocks[1],
        12 * blocks[2] + 10 * (int(alone) + 1),
    ]
    # 12 of 54 ms leave 3.8 of 4.5 s; beside 10 of 1.5 s less is left of the third disk.
    assert heads[0]["slack_ms"] == heads[1]["slack_ms"] > 3000 > heads[2]["slack_ms"] > 0
    for name in ("alone", "striped"):
        assert run["summary"]["classes"][name]["deadline_miss_share"] == 0


def test_bursts_add_up(run):
    summary = run["summary"]
    assert summary["server"]["best_effort_requests"] == summary["classes"]["text"]["requests"]
    for key in ("real_time_requests", "context_switches", "bursts"):
        assert summary["server"][key] == sum(head[key] for head in summary["heads"])
    for head in summary["heads"]:
        assert abs(head["context_switches"] - 2 * head["bursts"]) <= 1
        assert 1 <= head["burst_mean_requests"] <= head["burst_max_requests"]


def test_a_series_adds_up_to_the_summary(run):
    assert (run["series"]["bin_s"], run["series"]["from_s"]) == (10, 0)
    for name, parts in run["series"]["classes"].items():
        whole = run["summary"]["classes"][name]
        assert len(parts["requests"]) == 6 and sum(parts["requests"]) == whole["requests"]
        answered = [asked - left for asked, left in zip(parts["requests"], parts["unfinished"], strict=True)]
        sums = sum(mean * count for mean, count in zip(parts["response_mean_ms"], answered, strict=True))
        assert sums / sum(answered) == pytest.approx(whole["response_mean_ms"])
        assert max(parts["response_max_ms"]) == pytest.approx(whole["response_max_ms"], rel=2e-3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("disks: [2]", "disks: [3]", "names disk 3, but there are 3, from 0"),
        ("disks: [2]", "disks: [0, 2]", "name disks that follow each other"),
        ("disks: [2]", "disks: []", "name disks that follow each other"),
        (
            "stripe_unit_kib: 256}",
            "stripe_unit_kib: 256, placement: spread}",
            "only packed files begin at a place",
        ),
        ("from_mib: 2000", "from_mib: 4300", "larger or more heads, or fewer files"),
        ("series_s: 10", "series_s: 0", "it must be from 0.001"),
        ("alignment_bytes: 786432", "alignment_bytes: 786433", "a multiple of 4096"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, old, new, message):
    assert old in STUDY
    done = simulate(tmp_path, STUDY.replace(old, new, 1))
    assert done.returncode == 2 and message in done.stderr


def test_scattered_blocks_are_on_all_disks(tmp_path):
    study = STUDY.replace("stripe_unit_kib: 256}", "stripe_unit_kib: 256, placement: scattered}", 1)
    study = (
        study.replace(", from_mib: 2000", "")
        .replace("    disks: [2]\n", "")
        .replace("cost_ms: 54", "cost_ms: 69")
    )
    study = study.replace("clients: 10\n", "clients: 1\n").replace("1488.372093}", "1000}", 1)
    done = simulate(tmp_path, study)
    assert done.returncode == 0, done.stderr
    (summary,) = (tmp_path / "results/layouts").glob("*/summary.json")
    summary = json.loads(summary.read_text())
    # A row of blocks is one on each disk; a single block on any.
    least = [head["real_time_requests"] for head in summary["heads"]]
    assert all(count >= 14 * 12 for count in least) and sum(least) == 3 * 14 * 12 + 41
    assert summary["classes"]["striped"]["deadline_miss_share"] == 0


def test_times_of_a_disk():
    done = weir("disks", "times", "quantum-atlas-ii", "--kib", "1024", "--zone", 11, "--sequential", "--json")
    (row,) = json.loads(done.stdout)["times"]
    assert row["mean_ms"] == pytest.approx(184, rel=0.05)
    assert row["min_ms"] <= row["mean_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["max_ms"]
    assert weir("disks", "times", "hdd-7200", "--requests", 10).returncode == 0
    for arguments, message in [
        (("ssd-sata",), "it is not a disk"),
        (("quantum-atlas-ii", "--zone", "12"), "has 0 to 11"),
        (("quantum-atlas-ii", "--kib", "0"), "expected 512 to"),
        (("quantum-atlas-ii", "--kib", "4194304"), "too large"),
        (("quantum-atlas",), "quantum-atlas-ii"),
    ]:
        refused = weir("disks", "times", *arguments)
        assert refused.returncode == 2 and message in refused.stderr, arguments
