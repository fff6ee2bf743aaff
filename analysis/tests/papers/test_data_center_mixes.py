"""The mixes of TPC-W: shares of pages and transitions, tested as what they are."""

import data_center_runs
import numpy as np
import polars as pl
import pytest
from data_center_runs import Cell, write_study

from papers.data_center import names, pages, printed
from papers.data_center.names import DIRECT, EXT4, MIXES
from weir.binary_cache import BinaryCache
from weir.errors import InputError
from weir.load import load_study

# Their studies are planned by it.
pytestmark = pytest.mark.binary


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return BinaryCache.find(tmp_path_factory.mktemp("plane")).root


@pytest.mark.parametrize("mix", MIXES)
def test_the_table_of_transitions_has_the_shares_of_table_1(root, mix):
    transitions = pages.transitions_of(root, mix)
    order = list(transitions)
    matrix = np.array([[transitions[a].get(b, 0) for b in order] for a in order])
    assert matrix.sum(axis=1) == pytest.approx(1)
    share = np.full(len(order), 1 / len(order)) @ np.linalg.matrix_power(matrix, 500)
    assert dict(zip(order, 100 * share, strict=True)) == pytest.approx(printed.mix(mix), abs=0.02)


def test_dependent_pages_need_the_correction(root):
    """Over many walks of the right mix the corrected tests reject about as often as they say."""
    transitions = pages.transitions_of(root, "ordering")
    walks = [
        data_center_runs.walk(transitions, 20, 60, seed).with_columns(
            pl.col("page").cast(pl.String), pl.col("client").cast(pl.String).alias("walker")
        )
        for seed in range(40)
    ]
    found = [pages.tested("ordering", one, transitions) for one in walks]
    assert np.mean([one.walk_p < 0.05 for one in found]) < 0.15
    assert np.mean([one.p < 0.05 for one in found]) <= 0.2
    assert found[0].impossible == 0 and found[0].pages > 500
    # Walks of another mix are found out, by both.
    other = pages.tested("browsing", walks[0], pages.transitions_of(root, "browsing"))
    assert other.p < 1e-6 and other.walk_p < 1e-6


def test_only_answered_pages_of_one_run_of_a_repetition_count(tmp_path, root):
    walked = data_center_runs.walk(pages.transitions_of(root, "browsing"), 4, 40, seed=1)
    failed = walked.with_columns(pl.lit(503, pl.UInt16).alias("http_status"))
    cells = []
    for fs, extra in ((EXT4, failed), (DIRECT, walked.clear())):
        variant = {"variant": "browsing-class0", "filesystem": fs}
        cells.append(Cell(variant, {names.SHOPPERS: 10.0}, pages=pl.concat([walked, extra])))
    study = load_study(write_study(tmp_path, names.DYNAMIC, cells))
    runs = pages.longest(study)["browsing"]
    assert len(runs) == 2
    assert pages.stacked(runs).height == 2 * walked.height
    table = pages.mixes_table({"browsing": pages.stacked(runs)})
    assert sum(float(share) for share in table["browsing (%)"]) == pytest.approx(100, abs=0.1)
    assert pages.tested("browsing", pages.stacked(runs).clear(), {}) is None
    (runs[0].path / "pages.parquet").unlink()
    with pytest.raises(InputError, match="no such file"):
        pages.longest(study)
