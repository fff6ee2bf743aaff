"""Partitioned or integrated servers on current devices, under current schedulers.

The question of Shenoy, Goyal and Vin (`papers.shenoy`), asked of a 7200 rpm disk, SATA flash and NVMe flash.
"""
