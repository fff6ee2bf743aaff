# %% [markdown]
# # Isolation benchmark
#
# Several share one disk. Does each get what it was promised, does the urgent one come first, and what
# does it cost that somebody sees to that? Five desiderata, for every mechanism that this kernel has and
# for the policies of the block server in its place: **overhead**, **fairness**, **priority against
# utilisation**, **burst response**, **work conservation**. `docs/explanation/isolation.md` defines
# each and says where it comes from. Mechanisms that a host lacks are not drawn; the last table says which
# and why.
#
# The devices are modelled, and slow on purpose: what differs is who is served. Only the study of
# overhead has one that takes no time. Numbers are those of this host and do not make a mechanism good
# or bad elsewhere.

# %% tags=["whole"]
from papers.isolation import figures, results, summary
from weir.notebooks import grid
from weir.paper_notebook import PaperNotebook

paper = PaperNotebook.open("isolation")
paper.describe()

# %%
cost = results.overhead(paper.studies["overhead"])
shared = results.fairness(paper.studies["fairness"])
urgent = results.compared(results.priority(paper.studies["priority"]))
grid(summary.summary(cost, shared, urgent))

# %% [markdown]
# ## Overhead
#
# A device that takes no time, one client, a mechanism that has nothing to do. Everything else that the
# processors did is in these numbers: where the rings of one mechanism are far apart, the machine was busy,
# and nothing follows.

# %%
paper.show(figures.overhead(cost), "overhead")

# %% [markdown]
# ## Fairness
#
# Jain's index of what each got by what each was promised: 1 is what was promised, a third is all for
# one of three. `io.max` knows no shares; it was given the limits that make them on this device.

# %%
paper.show(figures.fairness(shared), "fairness")

# %% [markdown]
# ## Slowdown and utilisation
#
# One read at a time beside 32. To serve the one first costs nothing by itself; to hold the others back
# lest they stand in its way leaves the device idle.

# %%
paper.show(figures.priority(urgent), "priority")

# %% [markdown]
# ## Bursts, and work conservation
#
# The urgent class begins when the batch class has had the device for 2 s. Left: until when it has nine
# tenths of the rate that it is going to have. Right: what the batch class had until then, beside what it
# has without a mechanism: below 1 a mechanism wasted what nobody else wanted.

# %%
paper.show(figures.bursts(urgent), "bursts")

# %% [markdown]
# ## Mechanisms absent on this host

# %%
grid(results.skipped(paper.studies))
