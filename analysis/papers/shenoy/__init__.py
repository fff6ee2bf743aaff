"""Partitioned or integrated servers.

Shenoy, Goyal and Vin, "Architectural considerations for next generation file systems".
"""
