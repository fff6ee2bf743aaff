# %% [markdown]
# # Workloads of the papers, synthetic and recorded
#
# Shenoy, Goyal and Vin ("Architectural considerations for next generation file systems", ACM Multimedia 1999)
# and Bosch ("Mixed-media file systems", thesis, University of Twente, 1999) describe the workloads that they
# measure with by figures and tables. Most of the traces behind them are lost or given on request only. Here
# every figure is drawn again, from streams that `weir generate` makes from our specifications; where a real
# recording of the same kind is at hand, it stands beside.
#
# The claims of Shenoy's Fig. 5, Fig. 6, Tables 2 and 3 are judged here; those of chapter 3 of Bosch's thesis
# are judged in the notebook `clockwise`, and only shown here. The registers `claims.toml` of the two papers
# have the passage and the limits of each. A specification that was fitted to a number meets it by
# construction: that is *fitted or input*, and does not count.

# %%
from papers.traces import disk_figures, nfs_figures, video_figures
from papers.traces.disks import Cello
from papers.traces.nfs import Nfs
from papers.traces.sprite import Sprite
from papers.traces.video import MotionJpeg, Mpeg
from weir import notebooks
from weir.paper_notebook import PaperNotebook

paper = PaperNotebook.open("traces")
print(paper.binary.describe_recordings())

# %% [markdown]
# ## MPEG video (Shenoy Fig. 5, Table 2)
#
# The paper shows the rate of its Frasier trace over windows of a second, and that of ten clients, to say that
# one client's demand varies from round to round and that many together vary less. It prints the mean rates
# only; how much they vary is ours to choose. The real film beside it is of another coder (MPEG-4), and varies
# more.

# %%
mpeg = Mpeg.load(paper.binary)
paper.claim(mpeg.claims())
paper.show(video_figures.rates(mpeg), "shenoy-fig-5")

# %%
notebooks.grid(mpeg.table())

# %% [markdown]
# ## A bursty NFS server (Shenoy Fig. 6, Table 3)
#
# The load of an Auspex server behind a cache of 64 MB, over windows of a second: mostly quiet, with a busiest
# second of 12.5 times the mean. The trace is not at hand; the recording below it is of a virtual machine's
# disk, behind the same cache.

# %%
nfs = Nfs.load(paper.binary)
paper.claim(nfs.claims())
paper.show(nfs_figures.rates(nfs), "shenoy-fig-6a")

# %% [markdown]
# The normalised distribution of that load is what the paper's section 3.3 draws its transient overloads from.
# The means and peaks that it prints there (Fig. 16) give three points of this curve and its mean. They do not
# agree with windows of a second: those have a mean of 1/12.51 of the peak, and the points one of 0.2.

# %%
paper.show(nfs_figures.distribution(nfs), "shenoy-fig-6b")

# %%
notebooks.grid(nfs.table())

# %% [markdown]
# ## Motion-JPEG video (Bosch Figs. 3.1-3.3)
#
# Three films, each frame coded on its own: the sizes of frames stay near their mean. Buffers of a fixed size
# are filled with frames; the time between two full ones, by their size, is the inter-block delay. Small
# buffers are filled by one frame, several at once, so their delays are multiples of 40 ms; large ones average
# over frames. The thesis says that with a tenth more bandwidth than the mean, a fifth of the requests come
# early: that needs sizes which stay high or low for seconds.

# %%
films = MotionJpeg.load(paper.binary)
paper.show(video_figures.frame_sizes(films), "bosch-fig-3-1")

# %%
paper.show(video_figures.delay_distributions(films), "bosch-fig-3-2")

# %%
paper.show(video_figures.delay_spreads(films), "bosch-fig-3-3")

# %%
notebooks.grid(films.table())

# %% [markdown]
# ## Users of a distributed file system (Bosch Table 3.1)
#
# Rates of the users of Sprite, in windows in which they ask for anything. Nearly all of the load of a busy
# window is one user's, so all users' peak is hardly above one's.

# %%
sprite = Sprite.load(paper.binary)
notebooks.grid(sprite.table())

# %% [markdown]
# ## The disks of a file server (Bosch Figs. 3.4-3.6, Tables 3.2-3.5)
#
# Two months of the disks of CELLO. The trace is given on request only; our specification stands for one day
# of it, June 1st, 1992 (the thesis's day 44), of which Tables 6.5 and 7.1 print totals and busiest minutes.
# What follows shows 63 days of that kind: they have the day's shape and cannot have the maxima of other days.
# A week of HPLAJW, a workstation of the same laboratory, is real and stands beside.

# %%
cello = Cello.load(paper.binary)
notebooks.grid(cello.machines())

# %%
notebooks.grid(cello.loads())

# %%
paper.show(disk_figures.hours(cello), "bosch-fig-3-4")

# %%
notebooks.grid(cello.peaks("hour"))

# %% [markdown]
# By the minute, during working hours. A disk serves 2,317 requests a minute at most; above that line queues
# build up.

# %%
paper.show(disk_figures.minutes(cello, "3.5"), "bosch-fig-3-5")

# %%
paper.show(disk_figures.minutes(cello, "3.6"), "bosch-fig-3-6")

# %%
notebooks.grid(cello.peaks("minute"))

# %% [markdown]
# ## Claims

# %%
paper.close()
