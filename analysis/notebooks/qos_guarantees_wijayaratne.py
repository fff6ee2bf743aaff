# %% [markdown]
# # QoS guarantees for variable-rate video, interactive and aperiodic requests
#
# Wijayarathne and Reddy ("Providing QoS guarantees for disk I/O", Texas A&M University) let a video stream
# in if all that it needs, round by round, fits beside what the disks have promised already: not its peak,
# but its trace. Figures 5 to 9 are about how many streams get in that way, 10 to 13 about three kinds of
# requests on the same disks, each with a share of every round. All are drawn again here, in virtual time,
# by `weir simulate`.
#
# `analysis/papers/wijayaratne/claims.toml` has every claim with the paper's words and the limits within which
# a number is *reproduced*: 15 % of a printed number, or what the words allow. A claim is *fitted or input* if
# the model has the paper's number, or if a parameter was chosen by that claim. The paper's figures are known
# to us by its text only. A claim that depends on what the paper leaves open is judged at every setting of our
# studies; the setting that the paper's words make likeliest decides. What differs by less than a stream is
# equal.
#
# What the paper leaves open, and what was chosen:
#
# - **Unit of Table 2.** Its KB/s equal the films' published mean frame sizes in bits times 24/1024, so
#   bits seem to have been taken for bytes. We follow the paper; the figure of readings shows the
#   other one.
# - **The films themselves** are synthetic, of 40,000 frames and with the means of Table 2; each repetition
#   makes its own. The table does not say what its standard deviation is of. Here it is of scenes; groups of
#   pictures vary beside them, and scenes last, as in two published films (Silence of the Lambs, Star Wars IV;
#   see `wijayaratne-layouts`). Nothing of that was chosen by a claim. Beside them, for Figs. 7 and 8: films
#   that vary between scenes of 8 to 12 s only, by Table 2 over a second, and films that vary as much as those
#   two published ones.
# - **What a request needs at worst**: the paper speaks of worst-case service times. Here that is a seek
#   as on a sweep over all cylinders at equal distances, a whole revolution, and the disk's lowest rate.
#   Figs. 6 to 8 have two other readings beside it, Fig. 9 without drops eleven: half a revolution (the
#   latency of Table 1), the mean or the highest rate, the longest seek for each request.
# - **Policy, layout, block size, target** of Figs. 5, 6 and 9: random start, and BCTL with 64 KiB and 300
#   rounds where they are not the figure's own factors. Fixed distance is 7 rounds, the prime 17.
# - **Window** of starts: the round of arrival and as many as the target after it. **Utilisation**: what
#   streams are granted at their worst, over all rounds until the last stream ends.
# - **Layout of Figs. 10 to 13**: BCTL with 64 KiB; the leaky bucket lets 12 requests/s through at each disk,
#   as in the paper. Subgroups have four requests, which decides; beside it one, and a bucket of 24.

# %% tags=["whole"]
from papers.wijayaratne import admission_claims, figures, model_claims, service_claims
from papers.wijayaratne.results import admission_table, demand_blocks
from weir.paper_notebook import PaperNotebook

paper = PaperNotebook.open("wijayaratne")
paper.describe()

# %% [markdown]
# ## Merging and the guarantee (sections 2.1 and 2.2)
#
# The merged sweep of two groups of requests is no longer than two sweeps. Demand traces: the paper's example,
# and how much smaller a film's is than the list of its frames.

# %%
paper.claim(model_claims.merging())
paper.claim(model_claims.example(demand_blocks(paper.studies["example"].valid_runs[0])))
paper.claim(model_claims.trace_size(paper.binary.frames("mpeg-lambs", seed) for seed in range(1, 4)))

# %% [markdown]
# ## Layout and block size (Fig. 5)

# %%
layouts = admission_table(paper.studies["layouts"])
paper.claim(admission_claims.layouts(layouts))
paper.show(figures.layouts(layouts), "fig-5")

# %% [markdown]
# ## Load over time (Fig. 6)

# %%
paper.claim(admission_claims.load(paper.studies["load"]))
paper.show(figures.load(paper.studies["load"].valid_runs), "fig-6")

# %% [markdown]
# ## Policies (Figs. 7 and 8)

# %%
policies = admission_table(paper.studies["policies"])
others = {"one scale": "films-one-scale", "as much as published films": "films-wide"}
films = {"two scales": policies} | {
    words: admission_table(paper.studies[name]) for words, name in others.items() if name in paper.studies
}
paper.claim(admission_claims.policies(films))
paper.show(figures.policies(policies, "admitted"), "fig-7")

# %%
paper.show(figures.policies(policies, "startup_mean_rounds"), "fig-8")

# %% [markdown]
# ## Statistical guarantees (Fig. 9)

# %%
statistical = admission_table(paper.studies["statistical"])
paper.claim(admission_claims.statistical(statistical))
paper.show(figures.statistical(statistical), "fig-9")

# %% [markdown]
# ## Sensitivity of the number of streams
#
# The paper's numbers (152 streams at a target of 100 rounds, 179 at 1,000) beside what each reading of it
# gives.

# %%
readings = admission_table(paper.studies["readings"])
paper.claim(admission_claims.readings(readings))
paper.show(figures.readings(readings), "readings")

# %% [markdown]
# ## Sensitivity of the gains
#
# Two films, each with one scale, with two, and as much variation as published films: how much is gained by
# reserving what a stream needs and not its peak, by a policy that keeps peaks apart, and by waiting, beside
# the film's largest round.

# %%
paper.show(figures.films(figures.film_gains(paper.studies["films"])), "films")

# %% [markdown]
# ## Three kinds of requests (Figs. 10 and 11)

# %%
aperiodic = service_claims.service_table(paper.studies["aperiodic"])
guarantee = service_claims.service_table(paper.studies["guarantee"])
paper.claim(service_claims.shares(aperiodic))
with_rounds = aperiodic.filter(aperiodic["scheduler"] == service_claims.ROUNDS)
paper.show(figures.used(with_rounds), "fig-10")

# %%
paper.claim(service_claims.responses(aperiodic))
paper.claim(service_claims.deadlines(aperiodic, guarantee))
paper.show(figures.responses(with_rounds, "aperiodic_per_s"), "fig-11")

# %% [markdown]
# ## More requested streams (Fig. 12)

# %%
requested = service_claims.service_table(paper.studies["requested"])
paper.claim(service_claims.requested(requested))
with_rounds = requested.filter(requested["scheduler"] == service_claims.ROUNDS)
paper.show(figures.responses(with_rounds, "requested"), "fig-12")

# %% [markdown]
# How many streams get in with half of each round depends on layout, block size and what a request is assumed
# to take, none of which the paper prints for this figure. Worst-case service times on a sweep decide.

# %%
if "shares" in paper.studies:
    paper.claim(admission_claims.shares(admission_table(paper.studies["shares"])))

# %% [markdown]
# ## Comparison with SCAN (Fig. 13)

# %%
paper.claim(service_claims.against_scan(aperiodic))
interactive = aperiodic.filter(aperiodic["kind"] == "interactive")
paper.show(figures.responses(interactive, "aperiodic_per_s", "scheduler"), "fig-13")

# %% [markdown]
# ## Beyond the paper: other devices
#
# The question of Fig. 5 for eight disks of today and eight flash devices, with films of eight times the size.
# What a layout costs is positioning: it is most of the difference on the disk of 1998 and on that of today,
# and little on flash. What is gained by reserving what a stream needs and not its peak is the films'.

# %%
mix = layouts.filter(layouts["stream"] == "mix").drop("stream")
others = {name: admission_table(paper.studies[f"modern-{name}"]) for name in ("hdd", "ssd")}
names = ("Seagate Barracuda, 1998", "7200 rpm, 1 TB (8 times)", "SATA flash (8 times)")
paper.show(figures.devices(dict(zip(names, (mix, *others.values()), strict=True))), "devices")

# %% [markdown]
# ## Claims

# %% tags=["whole"]
paper.close()
