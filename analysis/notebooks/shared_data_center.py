# %% [markdown]
# # File systems of a shared data center: Vaidyanathan, Balaji, Jin and Panda reproduced
#
# "Workload-driven Analysis of File Systems in Shared Multi-tier Data-Centers over InfiniBand" (Ohio State
# University, OSU-CISRC-12/04-TR65, 2004) asks which file system suits which tier of a data center, and what
# sites that share one do to each other. Here its experiments are repeated an eighth of the size: ext4 for
# ext3fs, tmpfs for ramfs, and MooseFS twice: reading directly, without a cache at the client, for PVFS, and
# with one for Lustre. In Tables 2, 4, 5 and 6, where stripes decide, CephFS with stripes of 64 KiB takes the
# place of MooseFS, and ext4 has one disk. Disks are modelled, hosts are namespaces of one machine, and memory
# is a control group's (`docs/explanation/studies-data-center.md` has all that differs).
#
# Absolute numbers are of other machines, so claims rest on ratios and orderings. Their passages and limits
# are in `analysis/papers/data_center/claims.toml`. Most figures of the paper are pictures without numbers:
# there what the text says of them is the claim. A claim is *reproduced* if the whole interval is within the
# limits. Intervals are over repetitions; of two to four, rates and times take the spread of all cells of
# their study together. Where there is one only, they are over eight batches of its time, which say how
# steady it was and not how another one would have been. What has not been measured says so.

# %% tags=["whole"]
from papers.data_center import (
    basic_claims,
    cache_claims,
    figures,
    hybrid_claims,
    names,
    pages,
    results,
    site_claims,
)
from papers.data_center.notebook import DataCenterNotebook
from weir.notebooks import grid

paper = DataCenterNotebook.open("data-center")
paper.describe()

# %% [markdown]
# ## TPC-W mixes (Table 1)
#
# Shares of pages are tested twice, as successive pages depend on each other: by chi-squared divided by how
# much more shares vary between clients than independent pages' would, and by the transitions from each
# page. The driver draws pages from the specification's table of transitions, so this checks the driver: the
# claims are *fitted or input*.

# %%
runs = pages.longest(paper.study(names.DYNAMIC))
walked = {mix: pages.stacked(of) for mix, of in runs.items()}
tests = {
    mix: pages.tested(mix, of, pages.transitions_of(paper.binary.root, mix)) for mix, of in walked.items()
}
paper.claim(site_claims.mixes(tests))
paper.unless_measured(names.DYNAMIC) or grid(pages.mixes_table(walked))

# %% [markdown]
# ## Latency of file systems (Table 2)

# %%
access = results.operations(paper.study(names.ACCESS))
paper.claim(basic_claims.access(access))
paper.unless_measured(names.ACCESS) or grid(basic_claims.access_table(access))

# %%
paper.unless_measured(names.ACCESS) or paper.show(figures.access(access), "table-2")

# %% [markdown]
# ## Behind a web server: response (Tables 4 and 5)

# %%
documents = results.served(paper.study(names.FILES))
from_disks = results.traffic(paper.study(names.FILES))
paper.claim(basic_claims.response(documents, from_disks))
paper.unless_measured(names.FILES) or grid(basic_claims.documents_table(documents, "response_ms"))

# %%
paper.unless_measured(names.FILES) or paper.show(figures.documents(documents), "tables-4-and-5")

# %% [markdown]
# ## Behind a web server: throughput (Table 6)
#
# Eight clients that do not think make throughput eight by the response: Table 6 restates Tables 4 and 5,
# which have the claims. In the paper the tables contradict each other: 1 MB, not cached, is faster from
# PVFS in Table 5 and slower in Table 6.

# %%
paper.unless_measured(names.FILES) or grid(basic_claims.documents_table(documents, "per_s"))

# %% [markdown]
# ## Network traffic (Fig. 5)
#
# Bytes that the host with the file system received and sent, and those that the clients were answered, by
# request. The paper counts packets of a run. The size of the database's buffers is open; claims list all
# that were measured.

# %%
static, dynamic = (paper.study(name) for name in (names.STATIC, names.DYNAMIC))
moved, moved_dynamic = results.traffic(static), results.traffic(dynamic)
paper.claim(site_claims.static_traffic(moved))
paper.claim(site_claims.dynamic_traffic(moved_dynamic, moved))
neither = paper.unless_measured(names.STATIC) if dynamic is None else None
neither or paper.show(figures.traffic(moved, moved_dynamic), "fig-5")

# %% [markdown]
# ## Disk activity (Fig. 6)

# %%
paper.claim(site_claims.static_activity(moved))
paper.claim(site_claims.network_use(results.traffic(paper.study(names.NETWORK))))
over_time = results.activity(static), results.activity(dynamic)
neither or paper.show(figures.activity(*over_time), "fig-6")

# %% [markdown]
# ## Throughput by class and file system (Figs. 7 and 8)
#
# Class 0 to class 4 are working sets from 25 MB to 6 GB, an eighth of it here. Class 4 has the sizes of
# class 3: a document of 64 MB would be as large as memory. Pages of the bookshop are of `data-center-long`
# if it has results, which has enough repetitions to tell a few per cent.

# %%
answered, wips = results.served(static), results.served(paper.first(names.LONG, names.DYNAMIC))
paper.claim(site_claims.static_throughput(answered))
paper.claim(site_claims.dynamic_throughput(wips))
none = paper.unless_measured(names.STATIC) if wips is None else None
none or paper.show(figures.throughput(answered, wips), "fig-7")

# %%
paper.unless_any(names.LONG, names.DYNAMIC) or paper.show(figures.mixes(wips), "fig-8")

# %% [markdown]
# ## Throughput by locality (Fig. 9)
#
# The text says that the aggregate size of the popular content increases as alpha does. With probabilities
# in proportion to 1/i^alpha it decreases, so either the text or the axis runs the other way. The reading
# that decides: the less alpha, the more popular content there is, and the better the file system whose
# servers' caches add up. The other reading is listed beside it.

# %%
spread = results.served(paper.study(names.LOCALITY))
paper.claim(cache_claims.locality(spread))
paper.unless_measured(names.LOCALITY) or paper.show(figures.locality(spread), "fig-9")

# %% [markdown]
# ## Sites that share a cache (Fig. 10)
#
# The paper counts accesses, and so do the claims. No counter of these is at hand, but the arm gives them
# away: what is small and comes within 3 ms did not wait for a disk, and hardly anything that did comes so
# soon. Beside them are hits of bytes: what was served and not read from the disk.

# %%
cached = results.hits(paper.study(names.POLLUTION))
paper.claim(cache_claims.pollution(cached))
paper.unless_measured(names.POLLUTION) or paper.show(figures.pollution(cached), "fig-10")

# %% [markdown]
# ## Hot files in memory: static sites (Fig. 11a)
#
# How much memory the hot files have is open; figures have the size that decides, claims and tables all.

# %%
sites = results.served(paper.study(names.HYBRID))
paper.claim(hybrid_claims.ramfs(sites))
paper.claim(hybrid_claims.static(sites))
paper.unless_measured(names.HYBRID) or paper.show(
    figures.by_background(sites, {"(a) static": ("V-F11 static", ())}), "fig-11a"
)

# %%
paper.unless_measured(names.HYBRID) or grid(hybrid_claims.gains_table(sites))

# %% [markdown]
# ## Hot tables in memory: dynamic sites (Figs. 11b, 12, 13)
#
# Of `data-center-long-tables` if it has results, which has enough repetitions to tell a few per cent.

# %%
tables = results.served(paper.first(names.LONG_TABLES, names.HYBRID_TABLES))
no_tables = paper.unless_any(names.LONG_TABLES, names.HYBRID_TABLES)
paper.claim(hybrid_claims.tables(tables))
panels = {
    "TPC-W (Figs. 11b, 12)": ("V-F11 browsing", names.MIXES),
    "RUBiS and RUBBoS (Fig. 13)": ("V-F13 rubis", ("rubis", "rubbos")),
}
no_tables or paper.show(figures.by_background(tables, panels), "fig-11b-to-13")

# %%
no_tables or grid(hybrid_claims.gains_table(tables))

# %% [markdown]
# ## Hot files in memory, the rest on a network (Fig. 14)

# %%
over_network = results.served(paper.study(names.HYBRID_NETWORK))
paper.claim(hybrid_claims.network(over_network))
paper.unless_measured(names.HYBRID_NETWORK) or paper.show(figures.by_alpha(over_network), "fig-14")

# %%
paper.unless_measured(names.HYBRID_NETWORK) or grid(hybrid_claims.gains_table(over_network))

# %% [markdown]
# ## Beyond the paper: limits on the background site
#
# Hot files in memory take memory from all others, and have to be known. A limit on the background's memory
# or on its rate needs neither, nor does a share of what the disks' server reads (reserved: three quarters are
# the site's, what it leaves is the background's).

# %%
limited = results.served(paper.study(names.LIMITS))
paper.unless_measured(names.LIMITS) or paper.show(figures.limits(limited), "limits")

# %%
paper.unless_measured(names.LIMITS) or grid(hybrid_claims.limits(limited))

# %%
print(hybrid_claims.answer(limited))

# %% [markdown]
# ## Claims

# %% tags=["whole"]
paper.close()
