# %% [markdown]
# # All schedulers under one load
#
# Each paper compares its scheduler with those of its time, on a load and a disk of its own. Here Cello
# (Shenoy and Vin), rounds (Wijayaratne and Reddy), hierarchical disk sharing (Wu, Banachowski and
# Brandt), and LST, EDF with best effort in the background and ΔL (Bosch) have one disk of 7200 rpm and
# one load; beside them SCAN-EDF, SFQ, models of the kernel's mq-deadline, BFQ and Kyber, and first
# come, first served.
#
# Video is a request of 64 to 512 KiB per stream and second, due in a second. Text is whole small files,
# 20 or 50 of them a second. Bulk is two readers that are never satisfied, so that a scheduler that
# conserves work keeps the disk busy all the time, and what differs is who gets it. **A scheduler
# breaks** at the number of streams at which more than 1 % of all video requests are late. Five
# repetitions; intervals are 95 %, and never narrower than the steps between the loads that were run.
#
# ## Choices for a fair comparison
#
# - **Shares.** A scheduler looks as good as its share. All that divide the disk divide it alike: 65 %
#   for video, 25 % for text, 10 % for bulk, as weights (Cello, SFQ, BFQ with a queue per class), shares
#   of a round, or reservations of tokens. Text needs about its share with 20 requests a second and more
#   than it with 50.
# - **Contracts** promise what is true in the worst case: a request of 512 KiB, the longest seek and a
#   whole revolution come to less than 32.5 ms. Streams are let in while 350 ms of each second are left,
#   the same 35 % for the others: 20 streams, although the disk serves 37 to 115 in fact, by the
#   scheduler.
# - **Who is turned away.** A server that refuses serves the others better. So there are two lines of
#   these three: † refused streams leave, and their requests count as late; *all*: they are served as
#   best effort, without a promise. At 20 streams all schedulers serve the same load.
# - **Best effort** of the three is in SCAN order, text ahead of bulk, as in the thesis.
# - **Rounds** have no admission here: beyond 65 % of a round video waits for the next one. The leaky
#   bucket lets 60 interactive requests a second through, more than there are. **HDS** has C-LOOK below
#   and a root of 13,000 KB/s, which the disk does under first come, first served at the load at which
#   that breaks: the paper wants it conservative, and with a faster one nothing is promised.
#   **SCAN-EDF** takes deadlines within 500 ms as equal, which is half of the time to them.
# - **Priorities.** mq-deadline has video as real time and bulk as idle. The model of BFQ has weights,
#   no real-time class and no `low_latency`; the kernel's would serve text sooner. With one request at
#   the disk Kyber has nothing to throttle.
# - **One request at a time** is at the disk: a queue in the drive would decide again.
# - **All requests are reads**, and nobody has a cache.

# %% tags=["whole"]
from papers.schedulers_compared import figures, tables
from papers.schedulers_compared.results import table, with_all
from weir.notebooks import grid
from weir.paper_notebook import PaperNotebook

paper = PaperNotebook.open("common")
paper.describe()

# %% [markdown]
# ## Table
#
# The order is by the number of streams that a scheduler bears beside 20 text requests a second. Times
# and rates are with 20 streams, which all serve in time, and with 60 that ask.

# %%
promised = table(paper.studies["common"])
rows = with_all(promised)
grid(tables.compared(rows))

# %% [markdown]
# ## Capacity, response and throughput by scheduler

# %%
paper.show(figures.compared(rows), "compared")

# %% [markdown]
# - Deadlines and order of addresses together bear most (SCAN-EDF, mq-deadline), and give everything for
#   it: with 60 streams text waits for seconds, and bulk gets next to nothing.
# - Shares break where video has used up its own, earlier than the disk would. What they keep for it
#   differs: rounds keep text below 0.1 s and bulk at 7 MB/s, HDS text too, and bulk at 3 MB/s, but
#   leaves a tenth of the disk idle; Cello and SFQ give text and bulk their shares of the *time* too,
#   and still text waits for seconds, since 20 requests a second take about a quarter of the time of a
#   disk whose arm goes back and forth.
# - A worst case costs more than half of the streams: 20 of the 47 that even first come, first served
#   bears. What is not promised is not lost: with all served, ΔL bears 86 streams, and with 60 text
#   waits for 0.3 s and bulk still gets something, because all of best effort is in SCAN order while
#   slack lasts. With few streams this is also why text waits longer under it than under LST: when the
#   slack is used up, what is released is served first.
# - The three with contracts meet all deadlines as long as nobody else has any. They differ when more
#   streams are there than were promised:

# %%
grid(tables.promises(promised))

# %% [markdown]
# EDF and LST serve streams without a promise by *their* deadlines, and when these are too many those
# with a promise are late as well. LST begins to be with fewer streams than EDF: what is released while
# best effort is served was not reckoned with. ΔL is not late for one.
#
# ## Late requests by number of streams

# %%
paper.show(figures.curves(rows), "curves")

# %% [markdown]
# BFQ bears more streams beside *more* text: it lets the disk wait for the next request of a class, and
# waits less when there is always one.
#
# ## Checks

# %%
grid(tables.checks(promised))

# %% [markdown]
# ## Other shares
#
# Where those who divide the disk break is what they were told: with 80 % for video they bear about a quarter
# more of it, in the same order, and the others have less when it comes to that. It says nothing of a
# scheduler that it stands higher in the table by a larger share.

# %%
grid(tables.by_shares(table(paper.studies["shares"]), 30))

# %% [markdown]
# ## Another disk
#
# The same on a Quantum Atlas-II, with seconds of video a quarter as large, half as much text, 12
# streams that can be promised. Not on the Seagate Barracuda whose model was held against a trace: its
# write cache may have to be put away before any request, which makes the worst case 130 ms and a
# promise for five streams. Not on flash either: a solid-state disk bears thousands of such streams, and
# one request at a time leaves its dies idle.

# %%
atlas = with_all(table(paper.studies["atlas"]))
print(tables.same_order(rows, atlas))
grid(tables.agreement(rows, atlas, ("hdd-7200", "Atlas-II")))

# %%
grid(tables.checks(table(paper.studies["atlas"])))
