"""Framework of the analysis. The data plane writes one folder per run: `results/<study>/<run id>/`.

- places: `locate` (project, results, sample), `make_sample`; `sample/`: results that come with the package
- data: `results` (`weir.Study`, for notebooks), `load`, `plans` (of each label),
  `manifest`, `documents`, `errors`, `tables` (requests), `study` (results as tables)
- metrics: `metrics` (definitions), `derive` (`metrics.json`), `statistics`, `labels`
- responses by cell and over time: `response_grid` (counts of one run), `responses` (a study)
- plots: `plots/`, `alt_texts`
- report: `report`, `report_figures`, `trace_page`, `pages`, `present` (tables of text), `tiers`, `templates/`
- archives: `pack/`, `figure_numbers`
- hosts: `mixed_hosts` (rule R-HOST), `change_points`
- claims: `claims`, `paper_notebook`, `paper_registry` (`papers/*/paper.toml`), `binary_cache`
- notebooks: `notebooks` (execution), `lab` (JupyterLab)

No module here imports a paper.
"""

from importlib.metadata import version
from typing import Any

__version__ = version("weir-bench")
__all__ = ["Study", "__version__"]


def __getattr__(name: str) -> Any:
    """`weir.Study`, imported when it is first used: commands that need no results start without polars."""
    if name == "Study":
        from weir.results import Study

        return Study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
