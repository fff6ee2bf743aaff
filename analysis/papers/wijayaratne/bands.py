"""Reported numbers by claim: `bands.toml`."""

from pathlib import Path

from weir.paper_notebook import Bands

BANDS = Bands(Path(__file__).with_name("bands.toml"))
