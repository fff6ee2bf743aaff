# %% [markdown]
# # Your study
#
# Set `NAME` to the name of any study that has results, then run all cells. `make figures STUDY=mine` does the
# same and writes `results/notebooks/mine.html`.

# %% tags=["parameters"]
NAME = "quick"

# %%
from IPython.display import display

import weir
from weir import notebooks
from weir.errors import InputError
from weir.report_figures import objective_metric

study = weir.Study(NAME)
study

# %% [markdown]
# ## Results of each class
#
# Small points are runs; the larger mark is their estimate, the bar its 95 % interval over repetitions. The
# metric is that of the class's objective. A dash: the quantile rests on too few independent responses.

# %%
for app_class in study.classes:
    metric, _ = objective_metric(app_class)
    if metric in study.metrics:
        figure = study.plot(metric, app_class.name)
        display(notebooks.show(study.loaded, figure, f"yours-{app_class.name}"))
    display(notebooks.grid(*study.captioned(app_class.name)))

# %% [markdown]
# ## Best level of each factor
#
# The level with the shortest response time over all cells, at the objective's quantile and at the 99th
# percentile. All pairs of levels are judged together. `study.best("video", "response_p99_ms", "filesystem")`
# also compares each other level with the best one.

# %%
for factor in study.factors:
    for app_class in study.classes:
        for metric in dict.fromkeys([objective_metric(app_class)[0], "response_p99_ms"]):
            print(study.best(app_class.name, metric, factor)[0])

# %% [markdown]
# ## Controls
#
# Choose class, metric, quantile of response time, and the factor along the axis. Below the figure: the best
# level of the factor, and the estimates. (In a page or a file there is no kernel: nothing is shown here.)

# %% tags=["controls"]
study.controls()

# %% [markdown]
# ## Levels of each factor compared
#
# Paired by block: every level was asked the same requests as the first one. The sentences are about all cells
# and adjusted for the number of comparisons; the figures show each cell.

# %%
for factor in study.factors:
    print(*study.answers(factor), sep="\n")
    for metric in ("response_p95_ms", "requests_per_s"):
        try:
            figure = study.plot_effects(factor, metric)
        except ValueError as error:
            print(f"{factor}: {error}")
        else:
            display(notebooks.show(study.loaded, figure, f"yours-{factor}-{metric}"))

# %% [markdown]
# ## Distribution of response times
#
# One line per run. Studies with `records: summary` keep no requests.

# %%
for app_class in study.classes:
    try:
        figure = study.plot_tail(app_class.name)
    except InputError as error:
        print(f"{app_class.name}: no distribution, {error.path.name} {error.problem}")
    else:
        display(notebooks.show(study.loaded, figure, f"yours-{app_class.name}-tail"))

# %% [markdown]
# ## Queueing delay and service time
#
# As the block layer saw them, per run. There is no row in virtual time.

# %%
study.devices.select("device", *study.factors, "repetition", "queueing_mean_ms", "service_mean_ms") if len(
    study.devices
) else "no block table"

# %% [markdown]
# ## Runs without data

# %%
notebooks.grid(study.without_data())
