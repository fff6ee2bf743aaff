"""Shenoy, Goyal and Vin, "Architectural considerations for next generation file systems": partitioned or integrated."""
