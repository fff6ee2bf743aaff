# %% [markdown]
# # Hierarchical disk sharing: Wu, Banachowski and Brandt reproduced
#
# "Hierarchical disk sharing for multimedia systems" (NOSSDAV 2005) puts a tree of token buckets before a
# disk scheduler. A request passes when its stream's bucket, or one above it, has the tokens for it. Here
# its experiments are repeated on a model of a disk of the class of the paper's (Seagate ST340810A).
#
# `analysis/papers/hds/claims.toml` has what the paper claims, with its words, and the limits within which a
# number is *reproduced*; without limits 15 %. Statuses are computed from the runs, with 95 % t intervals over
# five repetitions. A claim is judged at every setting of the open parameters that its studies vary, and has
# the status of the setting that the register names. Open parameters of the paper, and what was chosen:
#
# - streams read files from end to end in requests of 416 KiB, one at a time: what is read of one file
#   before the arm goes to another. **This size was fitted**, once, so that three readers get about what
#   the paper's disk gave them (18 to 20 MB/s); how each claim moves with it is shown below;
# - files of 0.5 to 1.5 GiB lie one behind the other from the outer edge, drawn anew each time;
# - "Linux alone" is the model of the elevator of Linux 2.4, which also orders what the token buckets let
#   pass;
# - a request that finds no tokens takes them from its own bucket and sleeps, as in Fig. 2 (`pass=own`);
#   the figure of sensitivity has the other reading of the text, that it passes as soon as a bucket above
#   has them;
# - the root has 18,000 KB/s of 1,024 bytes, and a bucket holds half a second's tokens;
# - the paper's Fig. 2 has three misprints; its text is followed (docs/reference/schedulers-hds.md).

# %% tags=["whole"]
from papers.hds import claims, figures, live, sizes
from papers.hds.claims import PAPER
from papers.hds.results import windows
from weir import locate
from weir.notebooks import grid
from weir.paper_notebook import PaperNotebook

paper = PaperNotebook.open("hds")
evidence = claims.Evidence()
paper.describe()

# %% [markdown]
# ## Reservations (3.3)

# %%
table = windows(paper.studies["reservation"])
paper.claim(claims.reservation(table))

# %% [markdown]
# ## Overload (Fig. 3)

# %%
table = windows(paper.studies["overload"])
evidence.add(sizes.setting(), claims.overload(table))
paper.show(figures.overload(table), "fig-3")

# %% [markdown]
# That two readers alone are unstable depends on how many requests each has in flight and on the disk
# scheduler. With one at a time every scheduler serves them in turn. With two, a scheduler that goes on
# upwards finds the next request of the same file there, and the other reader waits for a while or for
# long. Variability is the standard deviation of a stream's rate over seconds by its mean, of the stream
# that varies more.

# %%
grid(claims.alone(windows(paper.studies["alone"])))

# %% [markdown]
# ## Isolation (Fig. 4)

# %%
table = windows(paper.studies["isolation"])
sizes.add(evidence, "isolation", table)
table = sizes.at(table)
paper.show(figures.isolation(table), "fig-4")

# %% [markdown]
# ## Borrowing of unused shares (Fig. 5)

# %%
table = windows(paper.studies["borrowing"])
sizes.add(evidence, "borrowing", table)
table = sizes.at(table)
paper.show(figures.over_time(table, events=(60, 120), reserved=True, total=False), "fig-5")

# %% [markdown]
# ## Throughput by zone of the disk (Fig. 6)

# %%
table = windows(paper.studies["throughput"])
sizes.add(evidence, "throughput", table)
table = sizes.at(table)
paper.show(figures.over_time(table), "fig-6")

# %% [markdown]
# ## A root rate above the disk's throughput (Fig. 7)

# %%
table = windows(paper.studies["root"])
sizes.add(evidence, "root", table)
table = sizes.at(table)
off = claims.off_points(table)
paper.show(figures.root(table, off, PAPER.step_s, PAPER.step_kb_s * 1024 / 1e6), "fig-7")

# %% [markdown]
# ## Adaptive root rate (Fig. 8)

# %%
table = windows(paper.studies["adaptive"])
sizes.add(evidence, "adaptive", table)
table = sizes.at(table)
paper.show(figures.over_time(table, events=(PAPER.second_s, PAPER.adapts_s)), "fig-8")

# %% [markdown]
# ## Beyond the paper: a reservation in KB/s
#
# Section 5 proposes it as future work. A share is of whatever the disk can do; a bandwidth is set aside,
# and when its stream gets too little, the root is slowed down, and with it only those who have shares.

# %%
table = windows(paper.studies["bandwidth"])
paper.show(figures.bandwidth(table, 6000 * 1024 / 1e6), "bandwidth")

# %% [markdown]
# ## On a block device
#
# Figs. 3 to 8 again in real time: the same policy in front of the same model, behind a block device of the
# kernel
# that fio reads (docs/how-to/live.md). So that all of it is done within minutes, what took minutes takes
# seconds; the studies
# `live-hds-*` have the same short times in virtual time, so that what the device changes can be told from
# what
# their shortness does. They need root: `make study STUDY=live-hds`.

# %% tags=["whole"]
found = live.studies(locate.results())
live.add(evidence, found)
live.described(found)

# %% tags=["whole"]
grid(live.compared(evidence)) if found else None

# %% tags=["whole"]
paper.show(live.figure(found["borrowing"]), "live-fig-5") if "borrowing" in found else None

# %% [markdown]
# ## Sensitivity to the fitted request size
#
# Large requests make a faster disk, and the size was chosen for the disk's total rate. So the rates of Fig. 3
# and how far the root can rise in Fig. 7 are fitted, and count neither for nor against. Of Fig. 3 the other
# sizes are greedy streams only. Numbers at which a claim is not reproduced have an asterisk.

# %%
table = windows(paper.studies["request-size"])
sizes.add(evidence, "request-size", table)
grid(sizes.moved(evidence.claims(), sizes.sizes_of(table)))

# %% [markdown]
# ## Sensitivity to the paper's open parameters
#
# Fig. 4 with other requests, bucket sizes, rates of the root and disk schedulers below. Its claims are also
# judged with each of these schedulers and requests of 416 KiB, one at a time.

# %%
table = windows(paper.studies["sensitivity"])
sizes.add_others(evidence, table)
paper.show(figures.sensitivity(table), "sensitivity")

# %% [markdown]
# ## Claims

# %% tags=["whole"]
paper.claim(evidence.claims())
paper.close()
