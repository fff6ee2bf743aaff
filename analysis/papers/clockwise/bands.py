"""Reported numbers by claim: the files in `reported/`."""

from pathlib import Path

from weir.paper_notebook import Bands

BANDS = Bands(Path(__file__).with_name("reported"))
