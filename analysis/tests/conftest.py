"""Fixtures: a small synthetic study, made anew in a temporary folder."""

import os
from pathlib import Path

import pytest
import synthetic

# A browser or terminal is never asked for.
os.environ.setdefault("MPLBACKEND", "Agg")


@pytest.fixture
def study_folder(tmp_path: Path) -> Path:
    return synthetic.write_study(tmp_path / "results" / "quick", duration_s=2.0)


@pytest.fixture
def single_folder(tmp_path: Path) -> Path:
    """One repetition of each cell."""
    return synthetic.write_study(tmp_path / "results" / "quick", loads=(0.5,), repetitions=1, duration_s=1.0)


@pytest.fixture
def sealed_folder(tmp_path: Path) -> Path:
    """Runs with manifests, as the data plane leaves them."""
    folder = synthetic.write_study(
        tmp_path / "results" / "quick", loads=(0.5,), repetitions=1, duration_s=1.0, sealed=True
    )
    # As it is when nobody has just written there.
    for path in folder.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    return folder
