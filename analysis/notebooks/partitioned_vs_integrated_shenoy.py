# %% [markdown]
# # Partitioned and integrated servers: Shenoy, Goyal and Vin reproduced
#
# "Architectural considerations for next generation file systems" (ACM Multimedia 1999) asks whether text
# and video should have disks of their own or share all disks under a scheduler that knows classes. Here
# its simulations are repeated: sixteen Seagate Elite3 disks, text under SCAN and video under SCAN-EDF on
# eight each, or both on sixteen under Cello with equal weights. SCAN serves "in the increasing order of
# cylinder numbers" (2.1), which is called C-SCAN elsewhere; so does SCAN-EDF among equal deadlines.
#
# `analysis/papers/shenoy/claims.toml` has every claim with the paper's words and the limits within which a
# number is *reproduced*: 15 % of a printed number, or what the words allow. The status is computed from the
# runs. A claim is *fitted or input* if the model has the paper's number, or if a parameter was chosen by that
# claim. Open parameters of the paper, and what was chosen:
#
# - how many text files of 1 MiB there are, of which a cache of 64 MB answers a part: as many as let the
#   partitioned server bear the paper's 200 text clients, which is fitted (`shenoy-working-set`);
# - requests of text have a standard deviation of 8 KiB and begin anywhere in a file of 1 MiB;
# - the movies have the rates, lengths and patterns of Table 2; how their rounds vary is ours;
# - Cello's interval is a second, the video server's round (2.3) and the only period that the paper names;
#   its estimates take whole revolutions; text is served in SCAN order; a request takes its place in the
#   queue, as far as the slack of the video requests there allows, when it is scheduled. S-F13 of both
#   kinds together is judged at other settings of Cello, too;
# - the NFS trace is a stand-in (see below).
#
# Words are judged by numbers, too. "Comparable" is within 5 %, "significant" a quarter, "low" and "light" up
# to half of a server's limit, "moderate" up to 60 % of V, "heavy" text from 90 % of T on.

# %% tags=["whole"]
from papers.shenoy import claims, figures, load, region_claims, results
from papers.shenoy.results import SERVERS, Surface
from weir.paper_notebook import PaperNotebook

paper = PaperNotebook.open("shenoy")
paper.describe()

# %% [markdown]
# ## Common schedulers on an integrated server (Figs. 2 and 3)
#
# Fair sharing moves the arm between the classes with every turn; SCAN does not, but knows no classes.

# %%
study = paper.studies["schedulers"]
text, video = results.text_table(study), results.video_table(study)
paper.claim(claims.fair_sharing(text, video))
paper.claim(claims.scan(text, video))
paper.show(figures.schedulers(text, video, study.factors["scheduler"]), "fig-2-3")

# %% [markdown]
# ## Capacity of each server (3.1)

# %%
study = paper.studies["limits"]
text, video = results.text_table(study), results.video_table(study)
paper.claim(claims.limits(text, video))
apart = results.apart(text)


def bears(server: str) -> tuple[float, float]:
    of_text = results.capacities(text, server, results.TEXT, "answered_ms", results.FULL_MS)
    of_video = results.capacities(video, server, results.VIDEO, "violated_pct", results.FULL_PCT)
    return sum(of_text) / len(of_text), sum(of_video) / len(of_video)


full, alone = bears("partitioned"), bears("integrated")
print(f"partitioned: T = {full[0]:.0f}, V = {full[1]:.0f}")
print(f"integrated: {alone[0]:.0f} text or {alone[1]:.0f} video clients")
if "working-set" in paper.studies:
    files = results.files_for(results.text_table(paper.studies["working-set"]), 200)
    print(f"with {files:.0f} files of 1 MiB T would be 200")

# %% [markdown]
# ## Results within the partitioned server's capacity (Figs. 7 and 8)
#
# 230 operating points (that of no clients is none), three repetitions each. Text and video of one point
# are the same requests on both servers.
#
# Fig. 11 is of the parts of a response: the service time of a disk access (seek, rotation, transfer), and its
# queueing delay. Of runs that did not count them the figure has those of requests, whose service is that of
# the piece that was finished last; then the claim is not measured.

# %%
study = paper.studies["grid"]
text, video = results.text_table(study), results.video_table(study)
of_access = results.access_parts(text)
parts = of_access or results.OF_REQUEST
response, service, queueing = (
    {server: Surface.of(text, server, metric) for server in SERVERS}
    for metric in ("answered_ms", parts["service"], parts["queueing"])
)
violated = {server: Surface.of(video, server, "violated_pct") for server in SERVERS}
paper.claim(region_claims.region(response, violated))
paper.show(figures.map_of_the_region(response, violated), "fig-7-8")

# %%
paper.claim(region_claims.against_video(response))
paper.show(figures.text_over_video(response), "fig-9")

# %%
paper.claim(region_claims.against_text(response))
paper.show(figures.text_over_text(response), "fig-10")

# %%
if of_access:
    paper.claim(region_claims.parts(service, queueing))
paper.show(figures.parts(service, queueing), "fig-11")

# %%
paper.claim(region_claims.deadlines(violated))
paper.show(figures.deadlines(violated), "fig-12")

# %% [markdown]
# ## Results beyond this capacity (Figs. 13 and 14)

# %%
study = paper.studies["capacity"]
text, video = results.text_table(study), results.video_table(study)
shared = Surface.of(text, "integrated", "answered_ms").without_text_zero()
missed = Surface.of(video, "integrated", "violated_pct").without_video_zero()
paper.claim(claims.line(shared, missed, full))
paper.show(figures.border(shared, missed, full, alone), "fig-13-14")

# %% [markdown]
# The paper leaves open how long the interval is that the classes share, what a request is estimated to
# take, when slack is computed and in which order text is served. Each moves the capacity for both kinds
# together. Beside these settings two schedulers without shares.

# %%
study = paper.studies["cello"]
text, video = results.text_table(study), results.video_table(study)
paper.claim(claims.together(text, video, full))
paper.show(figures.cello(text, video), "fig-14-cello")

# %% [markdown]
# ## Bursty text (Fig. 15)
#
# The Auspex trace is not public. In its place: the sum of ten sources that are on and off for
# heavy-tailed times, with the rate of Table 3 and its ratio of peak to mean in windows of a second. Its
# times are scaled as in 3.3. No eight of these disks serve 3000 KB/s in the 2 KB requests of Table 3, which
# the paper calls half of their capacity. Requests of 8 KiB decide: that is the stripe unit, the most that one
# disk access can have, and 3000 KB/s are about half of what 200 text clients ask for. A run that ends with
# requests unanswered has an unbounded response, and the ratio of the servers has no value.

# %%
study = paper.studies["bursty"]
text, video = results.text_table(study), results.video_table(study)
paper.claim(claims.bursty(text))
paper.claim(claims.bursty_deadlines(video))
paper.show(figures.bursty(text), "fig-15")

# %% [markdown]
# ## Varying loads (Figs. 16 and 17)
#
# Text and video load vary alike and independently. The paper prints the mean and the peak of three text
# loads; they are one distribution at three scales, and give three points of it. That distribution decides
# Fig. 17, and Fig. 16 is its input. The second figure shows beside it what the stand-ins for the trace would
# give over windows of several lengths. Responses of overloaded servers are those of runs of 400 to 1,000 s.

# %%
printed = load.Distribution.printed()
paper.claim(claims.distributions(printed, full[0]))
paper.show(figures.distributions(printed, full[0]), "fig-16")

# %%
streams = {workload: load.loads(paper.binary, workload) for workload in load.WORKLOADS}
readings = {load.PRINTED: [printed]} | {
    f"{workload}, {window_s} s": [load.Distribution.of(one, window_s) for one in streams[workload]]
    for workload in streams
    for window_s in load.WINDOWS_S
}
improved = {
    name: {
        overload: [
            load.improvement(apart, shared, one.clients(full[0], overload), one.within(full[1]))
            for one in found
        ]
        for overload in load.OVERLOADS
    }
    for name, found in readings.items()
}
paper.claim(claims.improvements(improved))
paper.show(figures.improvements(improved), "fig-17")

# %% [markdown]
# ## Other partition sizes (Fig. 18)

# %%
text = results.text_table(paper.studies["partition"])
paper.claim(claims.partitions(text))
paper.show(figures.partitions(text), "fig-18")

# %% [markdown]
# ## Beyond the paper: current devices
#
# The notebook `integration_today` has the same region on a 7200 rpm disk, SATA flash and NVMe flash under six
# schedulers.

# %% [markdown]
# ## Claims

# %% tags=["whole"]
paper.close()
