# %% [markdown]
# # Virtual time and real time compared
#
# The studies `live-*` ask the same of a simulated server and of a kernel block device whose disks the same
# policies rule in real time (docs/how-to/live.md). Models, policies, placement and requests are the same;
# what may differ is when requests arrive, and when answers do. Each live run stands beside the virtual run
# of the same cell and repetition: quantiles of response with 95 % t intervals over repetitions, ratios
# paired by repetition.
#
# In an open loop both are asked the same at the same times. In a closed loop (the greedy readers of
# `live-hds-*`) each request waits for the answer before it, so that their requests drift apart; what is
# compared there is what they get, in the notebook of hierarchical disk sharing.

# %% tags=["whole"]
from papers.virtual_vs_real import clockwise, figures, results
from weir.notebooks import grid
from weir.paper_notebook import PaperNotebook

paper = PaperNotebook.open("live")
paper.describe()

# %% [markdown]
# ## Quantiles side by side

# %%
both = {name: study for name, study in paper.studies.items() if results.of_both(study)}
quantiles = {name: results.quantiles(study) for name, study in both.items()}
compared = results.together(quantiles).filter("is_open")
paper.show(figures.against(compared), "against")

# %%
grid(results.tabulated(quantiles, results.side_by_side))

# %% [markdown]
# ## Tails
#
# The study `live-agreement`, or the first that is there. Where lines lie on each other, the live device
# is the virtual one.

# %%
study = both.get("agreement", next(iter(both.values())))
first, *_, last = [app_class.name for app_class in study.classes]
paper.show(figures.tails(study, first), f"tails-{first}")

# %%
paper.show(figures.tails(study, last), f"tails-{last}")

# %% [markdown]
# ## Parts of the difference
#
# The mean response of a live class is the virtual one and four parts more, which add up exactly. A request
# may
# be *sent* after its time; it has its *way* through io_uring, the block layer, the loop device and FUSE, and
# its
# answer the same way back; the server *answers* after the model's time, by what a timer and a dispatch take;
# and
# what comes late, or not in the same order, is served in *another order or state* of the disk. A part may be
# below 0: a request that comes later may find a shorter queue.

# %%
parts = {name: results.parts(study) for name, study in both.items()}
paper.show(figures.parts(results.parts(study)), "parts")

# %%
grid(results.tabulated(parts, results.explained))

# %% [markdown]
# What the servers say of themselves: how much later than its model a request was answered. The rule R-MODEL
# makes a run invalid above 250 us at the median or 6 ms at the 99th percentile, so no figure here has one.

# %%
grid(results.servers(both.values()))

# %% [markdown]
# ## Clockwise: streams with contracts (Bosch, Figs. 7.1, 7.2 and 6.14)
#
# Section 7.1 of the thesis holds its simulator against the machine: best-effort latencies over the real-time
# load, under EDF,
# LST and deltaL. Here the machine is the block device. The kernel's schedulers have the same load, with
# real-time priority for
# the streams; no stream is promised anything there.

# %%
clocks = {
    name: clockwise.points(paper.studies[name])
    for name in ("clockwise", "clockwise-kernel")
    if name in paper.studies
}
paper.show(clockwise.latencies(clocks["clockwise"]), "clockwise") if "clockwise" in clocks else None

# %%
grid(results.tabulated(clocks, clockwise.tabulated)) if clocks else None

# %%
paper.claim(clockwise.measured(clocks["clockwise"]) if "clockwise" in clocks else [])

# %% [markdown]
# A stream that asks for up to 25 times what it was promised, beside four that keep to their contracts:

# %%
crossed = (
    clockwise.points(paper.studies["clockwise-crosstalk"]) if "clockwise-crosstalk" in paper.studies else None
)
paper.claim(clockwise.crosstalk(crossed) if crossed is not None else [])
grid(clockwise.tabulated(crossed)) if crossed is not None else None

# %% [markdown]
# ## Agreement
#
# Under weir's own policies, over all cells and classes of open loops: live by virtual.

# %%
grid(results.agreement(quantiles))

# %% [markdown]
# ## Claims
#
# Those of the thesis, measured on a block device. Its register is `analysis/papers/clockwise/claims.toml`.

# %% tags=["whole"]
paper.close()
