# %% [markdown]
# # Partitioned or integrated servers on current devices
#
# Shenoy, Goyal and Vin (ACM Multimedia 1999) conclude that a server on which text and video share all disks
# is better than one with disks of their own for each, up to the limits of the latter, with the exception of
# small corners. Does the conclusion hold on 7200 rpm disks, on SATA flash and on NVMe flash, and under which
# schedulers? The control is the paper's own disk of 1998. The map is the paper's Fig. 7: 21 text loads by 11
# video loads up to the limits T and V of the partitioned server on each device, three repetitions, the same
# requests on both servers.
#
# The criteria precede the full runs (`analysis/papers/integration/results.py`). Text is not slower
# where the ratio of mean response times, partitioned / integrated, is at least 1. Video is not later up to
# 0.1 percentage points of violated deadlines. Each is decided at a point by a paired t test over repetitions
# with the false-discovery rate of all points at 5 % (Benjamini and Hochberg). The conclusion holds where
# integration is decided better in at least 75 % of the map, fails where it is decided worse in more than
# 25 %, and is undecided otherwise.
#
# The servers are the paper's: sixteen devices, 8 KiB stripe units for text and 64 KiB for video, a cache of
# 64 MiB for text. Only the device and the scheduler differ, and NVMe flash has four devices.

# %%
from papers.integration import figures, results
from weir.notebooks import grid
from weir.paper_notebook import PaperNotebook

paper = PaperNotebook.open("integration")
found = results.regions(paper.studies)
print(results.answer(found))

# %% tags=["whole"]
paper.describe()

# %% [markdown]
# ## The map of each device and scheduler
#
# Blue: text is faster on the integrated server; red: slower. A mix that leaves text unanswered has the
# darkest red.

# %%
paper.show(figures.maps(found), "maps")

# %% [markdown]
# ## The part of the map in which integration is better

# %%
paper.show(figures.shares(found), "shares")

# %%
grid(results.summary(found))

# %% [markdown]
# The ratio is the geometric mean over the mixes at which all requests were answered, with a 95 % t interval
# over repetitions; above 1 integration is faster.
#
# ## Limits of the partitioned server
#
# T is where the mean response time of text is six times that of an idle device, V where 1 % of the video
# deadlines are violated. HDS takes as its root the mean of what the text device transfers at T and the video
# device at V. The studies use these numbers, rounded.

# %%
limits = results.limits(paper.studies["limits"])
grid(limits.with_columns(*(limits[name].round_sig_figs(4) for name in limits.columns[1:])))
