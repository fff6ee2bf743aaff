"""Reported numbers by claim: `bands.toml`."""

from weir.claims import Claims


CLAIMS = Claims.beside(__file__)
