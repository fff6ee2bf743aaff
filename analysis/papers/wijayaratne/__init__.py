"""Providing QoS guarantees for disk I/O.

Wijayarathne and Reddy. `claims.toml` holds what the paper reports; `model_claims`, `admission_claims` and
`service_claims` judge it.
"""

from weir.claims import Claims

CLAIMS = Claims.beside(__file__)
