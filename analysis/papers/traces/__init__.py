"""The traces and workloads of the papers: what they print, what our streams and real recordings show.

`binary` calls the `weir` binary and caches what it made; `series` computes; `paper` holds what the papers
print; `video`, `nfs`, `sprite` and `disks` bring these together, with tables and claims; `*_figures` draw.
"""
