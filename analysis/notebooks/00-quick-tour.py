# %% [markdown]
# # Quick tour
#
# A study asks a question. Its runs are repetitions of cells: combinations of the levels of its factors. This
# notebook shows what one object, `weir.Study`, gives. It reads `results/quick`, or the sample of the study
# `quick` that comes with weir: 27 runs on block devices and 12 in virtual time, on modelled 7200 rpm disks.

# %%
import polars as pl

import weir
from weir import notebooks

study = weir.Study("quick")
study

# %% [markdown]
# ## Plan
#
# One row per planned run. A run is valid, invalid, skipped or missing; only valid runs have data.

# %%
cells = list(dict.fromkeys(["testbed", *study.factors]))
study.plan.group_by(*cells, "status", maintain_order=True).len("runs")

# %% [markdown]
# ## Runs
#
# One row per valid run and class, with every metric. Response time counts from the intended time of a
# request, so a request that is sent late has waited.

# %%
columns = ["class", *study.factors, "repetition", "response_p50_ms", "response_p95_ms", "deadline_miss_share"]
study.runs.select(columns).head(6)

# %% [markdown]
# ## Estimates
#
# Estimate over repetitions with its 95 % interval: the geometric mean of runs for times and rates, the mean
# of runs for shares. Requests of one run wait for each other: no interval is computed from them. A dash: the
# quantile rests on too few independent responses, and the run is too short.

# %%
notebooks.grid(*study.captioned("text"))

# %%
notebooks.show(study.loaded, study.plot("response_p95_ms", "text"), "tour-text")

# %%
notebooks.show(study.loaded, study.plot("deadline_miss_share", "video"), "tour-video")

# %% [markdown]
# ## Comparisons
#
# Both architectures are asked the same requests in each block of the plan, so runs are compared in pairs.
# First over all cells, in one sentence for each class; then in each cell. A ratio below 1: the integrated
# server is faster. `p` is adjusted for the number of comparisons.

# %%
print(*study.answers("architecture"), sep="\n")

# %%
columns = ["class", "scheduler", "filesystem", "estimate", "low", "high", "n", "p", "settled"]
study.effects("architecture", baseline="partitioned").select(columns)

# %%
ratios = study.plot_effects("architecture", baseline="partitioned")
notebooks.show(study.loaded, ratios, "tour-architecture")

# %% [markdown]
# ## Requests
#
# Every measured request, with the levels of its run. The table is lazy: only the columns that a query names
# are read.

# %%
slow = pl.col("response_ms") > 100
counts = pl.len().alias("requests"), slow.mean().alias("over 100 ms")
study.requests().group_by("class").agg(*counts).sort("class").collect()

# %%
notebooks.show(study.loaded, study.plot_tail("text"), "tour-tail")

# %% [markdown]
# ## Next
#
# - [your-study](your-study.ipynb): the same of any study, with controls.
# - `weir plan quick` prints the plan, `make study` runs it on block devices.
# - `study.frame()` is `study.runs` as a pandas DataFrame.
