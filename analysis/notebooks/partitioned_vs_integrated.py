# %% [markdown]
# # Partitioned and integrated disks compared
#
# Shenoy, Goyal and Vin ("Architectural considerations for next generation file systems", ACM Multimedia
# 1999) compared a *partitioned* storage server, where each application class has disks of its own, with an
# *integrated* one, where all classes share all disks. Sharing gives every class more heads when the others
# are idle; it also lets a burst of one class delay the others, and what the scheduler does about that
# decides.
#
# Here the same requests are sent to both, under the I/O schedulers of today's kernel. Response time runs
# from the moment the workload wanted the request sent, so a late submission counts as waiting.

# %%
import polars as pl

from weir import notebooks, present
from weir.plots import study_figures
from weir.report_figures import objective_metric
from weir.study import class_table

study = notebooks.study_for("partitioned_vs_integrated")
table = class_table(study)
print(notebooks.describe(study))

# %% [markdown]
# ## Text: response time
#
# Small points are runs. The larger mark is their estimate and the bar its 95 % interval over repetitions;
# requests of one run wait for each other, so no interval is computed from them.

# %%
text = table.filter(pl.col("class") == "text")
metric, limit = objective_metric(next(c for c in study.classes if c.name == "text"))
notebooks.show(study, study_figures.intervals(study, text, metric, limit=limit), "text-response")

# %%
notebooks.grid(*present.captioned(study, table, "text"))

# %% [markdown]
# The whole distribution, one line per run: a scheduler that improves the median may still worsen the tail.

# %%
notebooks.show(study, study_figures.tail(study, "text"), "text-tail")

# %% [markdown]
# ## Video: deadline misses
#
# Every frame has a deadline. It is missed when its request completed late, failed or never completed.

# %%
video = table.filter(pl.col("class") == "video")
promised = next(c.objective for c in study.classes if c.name == "video")["deadline_miss_share"]
notebooks.show(
    study, study_figures.intervals(study, video, "deadline_miss_share", limit=promised), "video-deadlines"
)

# %%
notebooks.grid(*present.captioned(study, table, "video"))

# %% [markdown]
# ## Integrated relative to partitioned
#
# The two are compared within each block of the plan: both were asked the same requests, so what the draw
# of the requests adds cancels out. Left of the line, the integrated server is faster; an interval that
# crosses the line settles nothing.

# %%
by_architecture = study_figures.ratios(study, table, "response_p95_ms", "architecture", "partitioned")
notebooks.show(study, by_architecture, "ratio-architecture")

# %% [markdown]
# ## Schedulers relative to none

# %%
by_scheduler = study_figures.ratios(study, table, "response_p95_ms", "scheduler", "none")
notebooks.show(study, by_scheduler, "ratio-scheduler")

# %% [markdown]
# Deadlines missed may be zero, so schedulers are compared by difference there.

# %%
by_difference = study_figures.ratios(
    study, video, "deadline_miss_share", "scheduler", "none", as_difference=True
)
notebooks.show(study, by_difference, "difference-scheduler")

# %% [markdown]
# ## Runs without data

# %%
notebooks.grid(present.excluded(study))
