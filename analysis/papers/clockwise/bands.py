"""Reported numbers by claim: the files in `reported/`."""

from weir.claims import Claims


CLAIMS = Claims.beside(__file__)
