"""The traces and workloads of the papers: what they print, what our streams and real recordings show.

`series` computes; `paper` holds what the papers
print; `video`, `nfs`, `sprite` and `disks` bring these together, with tables; `*_figures` draw. Claims of the
thesis are judged in `papers.clockwise.workload_claims`.
"""
