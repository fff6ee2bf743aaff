"""Framework of the analysis. The data plane writes one folder per run: `results/<study>/<run id>/`.

- data: `load`, `manifest`, `documents`, `errors`, `tables` (requests), `study` (results as tables)
- metrics: `metrics` (definitions), `derive` (`metrics.json`), `statistics`, `labels`
- plots: `plots/`
- report: `report`, `report_figures`, `trace_page`, `pages`, `present` (tables of text), `tiers`, `templates/`
- claims: `claims`, `paper_notebook`, `paper_registry` (`papers/*/paper.toml`), `notebooks`, `binary_cache`

No module here imports a paper.
"""

from importlib.metadata import version

__version__ = version("weir-bench")
