# %% [markdown]
# # Response time by file system
#
# The same requests go to the same disk through different file systems. Where a raw device is among them,
# it is the floor: what a file system adds is what it costs above that. tmpfs has no device below it and
# shows how much of the time is not the disk's at all.

# %%
import polars as pl
from IPython.display import display

from weir import notebooks, present
from weir.best import best
from weir.plots import study_figures
from weir.plots.layout import reference_level
from weir.report_figures import exhibits, objective_metric
from weir.study import class_table

study = notebooks.study_for("multi_filesystem")
table = class_table(study)
print(notebooks.describe(study))

# %% [markdown]
# ## Response time of each class
#
# Small points are runs; the larger mark is their estimate with its 95 % interval over repetitions.

# %%
for app_class in study.classes:
    metric, limit = objective_metric(app_class)
    rows = table.filter(pl.col("class") == app_class.name)
    figure = study_figures.intervals(study, rows, metric, limit=limit, x="filesystem")
    display(notebooks.show(study, figure, f"{app_class.name}-by-filesystem"))
    display(notebooks.grid(*present.captioned(study, table, app_class.name)))

# %% [markdown]
# ## Relative to one file system
#
# Paired by block: each file system was asked the same requests as the reference in that block.

# %%
reference = reference_level(study, "filesystem", ("raw", "ext4"))
by_filesystem = study_figures.ratios(study, table, "response_p95_ms", "filesystem", reference)
notebooks.show(study, by_filesystem, "ratio-filesystem")

# %% [markdown]
# ## Which file system is best, and is it settled?
#
# By the 99th percentile of response time. The best one is chosen by the results, so it is judged among all
# pairs of file systems.

# %%
for app_class in study.classes:
    print(*best(study, table, app_class.name, "response_p99_ms", "filesystem").sentences(), sep="\n")

# %% [markdown]
# ## Queueing delay and service time
#
# Queueing delay and service time as the block layer saw them. A file system without a block device has no
# bar.

# %%
for exhibit in exhibits(study, table):
    if exhibit.name == "split":
        display(notebooks.show(study, exhibit.figure, "filesystem-split"))

# %% [markdown]
# ## Runs without data

# %%
notebooks.grid(present.excluded(study))
