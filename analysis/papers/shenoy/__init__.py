"""Partitioned or integrated servers.

Shenoy, Goyal and Vin, "Architectural considerations for next generation file systems". `claims.toml` holds
what the paper reports; `claims` and `region_claims` judge it.
"""

from weir.claims import Claims

CLAIMS = Claims.beside(__file__)
