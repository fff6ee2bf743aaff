"""Bosch, Mixed-media file systems (Clockwise): chapters 3 to 8 again.

`source` holds what the thesis prints, `claims.toml` what it claims and how near a reproduction has to come.
`streams`, `admission` and `timelines` are chapter 6's arithmetic and come from the binary; `pci`,
`conflicts`, `network`, `string`, `broker` and `track_cache` model the parts of the machine that the simulator
of disks leaves out; `disk_times` asks the simulator how long requests take. `*_claims` judge, `*_figures`
draw.
"""

from weir.claims import Claims

CLAIMS = Claims.beside(__file__)
