# %% [markdown]
# # Isolation benchmark
#
# How well do the mechanisms of this kernel, and the policies of the block server, isolate clients that
# share a disk, and what do they cost? Six desiderata: **overhead**, **fairness**, **priority against
# utilisation**, **burst response**, **work conservation** and **delta-fairness**; then the reads of one
# client beside the dirty pages of another, and a search for iocost's parameters.
# `docs/explanation/isolation.md` defines each and gives its source. Mechanisms that a host lacks are left
# out; the last table has the reasons.
#
# The devices are modelled and slow, so that a mechanism decides who is served. Only the study of overhead
# has a device that takes no time. The numbers are those of this host.

# %% tags=["whole"]
from papers.isolation import figures, qos, results, summary
from weir.notebooks import grid
from weir.paper_notebook import PaperNotebook

paper = PaperNotebook.open("isolation")
paper.describe()

# %% [markdown]
# Each cell is repeated until its mean is known as exactly as the study asks, or as often as it allows. In
# all other tables an interval is that of a fixed number of repetitions. The intervals in the next one hold at
# all decisions of a study, so they are wider.

# %%
grid(summary.precision(paper.studies))

# %%
cost = results.overhead(paper.studies["overhead"])
shared = results.fairness(paper.studies["fairness"])
urgent = results.compared(results.priority(paper.studies["priority"]))
grid(summary.summary(cost, shared, urgent))

# %% [markdown]
# ## Overhead
#
# The device takes no time, there is one client, and the mechanism has nothing to limit. All other CPU
# work is in these numbers: if the repetitions of a mechanism (rings) are far apart, the machine was busy,
# and the numbers show nothing.

# %%
paper.show(figures.overhead(cost), "overhead")

# %% [markdown]
# ## Fairness
#
# Jain's index of rate / weight of three classes: 1 is the promised share, one third is all for one class.
# `io.max` has no shares; its limits are those that make the shares on this device.

# %%
paper.show(figures.fairness(shared), "fairness")

# %% [markdown]
# ## Slowdown and utilisation
#
# One urgent read at a time beside 32 others. To serve the urgent one first costs nothing by itself; to
# hold the others back before it comes leaves the device idle.

# %%
paper.show(figures.priority(urgent), "priority")

# %% [markdown]
# ## Burst response and work conservation
#
# The urgent class begins when the batch class has used the device for 1.5 s. Left: the time until it has
# nine tenths of its settled rate. Right: the rate of the batch class before that / its rate without a
# mechanism. Below 1 the mechanism wasted capacity.

# %%
paper.show(figures.bursts(urgent), "bursts")

# %% [markdown]
# ## Tenants and delta-fairness
#
# 1 to 256 tenants with a control group and 4 outstanding reads each; after 4 s one more begins. Its delay
# is the time until it has had nine tenths of its fair share, which delta-fairness bounds.

# %%
tenants = results.tenants(paper.studies["tenants"])
paper.show(figures.tenants(tenants), "tenants")

# %%
grid(summary.tenants(tenants))

# %% [markdown]
# ## Dirty pages of one client, reads of another
#
# Through the page cache of ext4, with a memory limit that holds neither file. Each ratio is a reader
# beside a writer / the reader alone, paired by block, with its 95 % confidence interval.

# %%
grid(summary.writeback(results.writeback(paper.studies["writeback"])))

# %% [markdown]
# ## iocost's parameters
#
# The rate of iocost's virtual time in percent of the measured cost model, from far below the disk's
# capacity to above it.

# %%
rates = results.compared(results.priority(paper.studies["qos"]))
paper.show(figures.rates(rates), "rates") if qos.solutions(rates) else "no cell under io.weight was measured"

# %%
print(paper.keep(qos.parameters(qos.models(paper.studies["qos"]), qos.solutions(rates)), "io_cost.txt"))

# %% [markdown]
# ## Mechanisms absent on this host

# %%
grid(results.skipped(paper.studies))
