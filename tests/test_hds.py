"""Hierarchical disk sharing from a study's text to the bytes that streams got."""

import polars as pl
import pytest
from support import weir

from papers.hds.results import between, of_stream, rates, windows
from weir.load import load_study

STUDY = """\
name: trial
question: Does each get its share?
testbed: simulator
seed: 7
repetitions: 2
warmup_s: 0
duration_s: 30
storage: {profile: seagate-st340810a, heads: 1, size_mib: 8192}
classes:
  greedy: {workload: hds-reader, clients: 1}
  late: {workload: hds-reader, clients: 1, with: {arrivals.closed: {depth: 1, start_s: 10}}}
  paced: {workload: hds-reader, clients: 1, with: {arrivals.closed: {depth: 1, start_s: 10, rate_per_s: 3}}}
factors:
  scheduler:
    - hds root_kb_s=10240 tree=A:0.5(greedy),B:0.5(late,paced)
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hds")
    study = folder / "trial.yml"
    study.write_text(STUDY)
    done = weir("simulate", study, "--out", folder / "results")
    assert done.returncode == 0, done.stderr
    return windows(load_study(folder / "results/trial"))


def test_streams_begin_at_their_times(table):
    before = between(table, 0, 10).group_by("stream").agg(pl.col("mb_s").sum())
    assert dict(before.filter(pl.col("stream") != "greedy").rows()) == {"late": 0, "paced": 0}


def test_who_is_alone_has_the_whole_disk_and_shares_it_when_others_come(table):
    root = 10240 * 1024 / 1e6
    alone = of_stream(rates(between(table, 2, 10)), "greedy", "mb_s")
    assert alone == pytest.approx([root, root], rel=0.03)
    shared = rates(between(table, 12, 30))
    assert of_stream(shared, "paced", "mb_s") == pytest.approx([3 * 0.425984] * 2, rel=0.03)
    assert of_stream(shared, "greedy", "mb_s") == pytest.approx([root / 2] * 2, rel=0.05)
    # What the paced one leaves of its half is in the same group.
    rest = root / 2 - 3 * 0.425984
    assert of_stream(shared, "late", "mb_s") == pytest.approx([rest] * 2, rel=0.05)
