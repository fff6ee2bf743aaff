"""Analysis of storage quality-of-service studies: load, metrics, statistics, figures, report.

The data plane writes one folder per run (`results/<study>/<run id>/`); everything here is computed from
those files and can be computed again from them.
"""

from importlib.metadata import version

__version__ = version("weir-bench")
