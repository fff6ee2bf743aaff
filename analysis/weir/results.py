"""The results of a study as one object, for notebooks: `weir.Study("quick")`."""

from collections.abc import Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from weir import answers, locate, plans, present, statistics, support
from weir.best import best
from weir.course import course
from weir.errors import InputError, Skipped
from weir.labels import label, objective_text
from weir.load import AppClass, Level, load_study
from weir.plots import study_figures
from weir.plots.layout import reference_level
from weir.study import class_table, comparable, device_table, objective_metric, run_table
from weir.tables import scan_measured
from weir.variation import Variation, variation

#: Quantiles of response time that are kept of every run, by their names in controls.
QUANTILES = {"median": "p50", "90 %": "p90", "95 %": "p95", "99 %": "p99", "99.9 %": "p999"}
RESPONSE = "response time"


class Study:
    """The plan, runs and requests of a study as frames, with estimates, comparisons and figures.

    Only valid runs are in `runs`, `requests`, estimates and figures.

    Attributes:
        loaded: the study as `weir.load` reads it.
        is_sample: whether the results are those that come with weir, since there are no others.
    """

    def __init__(self, name: str, results: Path | str | None = None) -> None:
        """Finds and loads a study.

        Args:
            name: its name; `NAME@LABEL` for the runs of one label.
            results: the folder of results; found by `weir.locate` if None.

        Raises:
            Skipped: the study has no results.
            InputError: its folder is damaged.
        """
        path = locate.study(name, None if results is None else Path(results))
        if path is None:
            raise Skipped.no_results(name)
        self.loaded = load_study(path)
        self.is_sample = locate.is_sample(path)

    @property
    def name(self) -> str:
        """Its name."""
        return self.loaded.name

    @property
    def question(self) -> str:
        """The question that it asks."""
        return self.loaded.question

    @property
    def factors(self) -> dict[str, list[Level]]:
        """The factors that its plan varies, with their levels."""
        return self.loaded.varied

    @property
    def classes(self) -> tuple[AppClass, ...]:
        """Its application classes."""
        return self.loaded.classes

    @cached_property
    def plan(self) -> pl.DataFrame:
        """One row per planned run: place in the plan, levels, `status` (with `missing`) and the reason."""
        validity = {run.id: run.validity for run in self.loaded.runs}
        rows = []
        plan, _ = plans.read(self.loaded.path, self.loaded.label)
        for entry in plan["runs"]:
            found = validity.get(entry["id"])
            place = {name: entry[name] for name in ("order", "block", "repetition", "testbed")}
            levels = {name: str(entry["levels"].get(name)) for name in self.loaded.factors}
            state = ("missing", "") if found is None else (found.status, found.reasons)
            rows.append({"run": entry["id"]} | place | levels | {"status": state[0], "reason": state[1]})
        return pl.DataFrame(rows).sort("order")

    @cached_property
    def runs(self) -> pl.DataFrame:
        """One row per valid run and class: levels and every metric."""
        return class_table(self.loaded)

    @cached_property
    def whole_runs(self) -> pl.DataFrame:
        """One row per valid run: levels and the metrics of the run as a whole."""
        return run_table(self.loaded)

    @cached_property
    def devices(self) -> pl.DataFrame:
        """One row per valid run and block device; none in virtual time."""
        return device_table(self.loaded)

    def requests(self, class_name: str | None = None) -> pl.LazyFrame:
        """Every measured request with the levels of its run; read when it is collected.

        Raises:
            InputError: no run is valid, or the study keeps summaries only.
        """
        found = scan_measured(self.loaded.valid_runs)
        return found if class_name is None else found.filter(pl.col("class") == class_name)

    def course(
        self,
        every_s: float = 1.0,
        quantiles: Sequence[float] = (0.5, 0.95, 0.99),
        by: Sequence[str] | None = None,
    ) -> pl.DataFrame:
        """Requests and response times in intervals of time, by class and cell: `weir.course.course`.

        Args:
            every_s: length of an interval; a multiple of 0.1.
            quantiles: quantiles of response time.
            by: factors whose levels are kept apart; all varied ones if None. Other runs are added up.

        Raises:
            InputError: no valid run has a series.
        """
        factors = list(self.factors) if by is None else by
        return course(self.loaded.valid_runs, every_s, quantiles, factors)

    def frame(self) -> Any:
        """`runs` as a pandas DataFrame.

        A column such as `response_p99_shown` is false where tables and figures have a dash in place of the
        quantile of the row's cell, since it rests on too few independent responses.
        """
        import pandas as pd

        table = self.runs
        for metric in support.tail_metrics():
            name = metric.removesuffix("_ms") + "_shown"
            table = support.with_support(table, metric, ["class", *self.factors], name)
        return pd.DataFrame(table.to_dict(as_series=False))

    def summary(self, metric: str = "response_p95_ms") -> pl.DataFrame:
        """Estimate of a metric by class and cell, with its 95 % interval over repetitions.

        The estimand and the interval are those that fit the metric: `weir.statistics.fitted`, class by class.
        `quantile_shown` is false of quantiles that tables and figures do not show (`weir.support`).
        """
        by = list(self.factors)
        parts = []
        for app_class in self.classes:
            rows = self.runs.filter(pl.col("class") == app_class.name)
            found = statistics.fitted(rows, metric, ["class", *by])
            kept = support.with_support(rows.drop_nulls(metric), metric, by).select(
                "class", *by, support.SHOWN
            )
            parts.append(found.join(kept.unique(), on=["class", *by], how="left", nulls_equal=True))
        return pl.concat(parts)

    def effects(
        self,
        factor: str,
        metric: str = "response_p95_ms",
        baseline: Level | None = None,
        *,
        as_difference: bool = False,
    ) -> pl.DataFrame:
        """The effect of each level of a factor against the baseline, in each cell, by block, with intervals.

        All rows are one family: `settled` says whether Holm's adjusted `p` excludes no change.

        Args:
            factor: the factor whose levels are compared.
            metric: the column to compare.
            baseline: the level that others are compared with; the first if None.
            as_difference: compare by difference; ratios have no value where a metric is 0.

        Raises:
            InputError: the plan does not vary the factor.
        """
        if factor not in self.factors:
            known = ", ".join(self.factors) or "none"
            raise InputError(self.loaded.path, f"does not vary factor `{factor}`", f"varied factors: {known}")
        if baseline is None:
            baseline = reference_level(self.loaded, factor, ())
        by = ["class", *(name for name in self.factors if name != factor)]
        runs = comparable(self.loaded, self.runs, factor, baseline)
        found = statistics.compare(runs, metric, factor, baseline, by, as_difference=as_difference)
        return found.with_columns(settled=(pl.col("p") <= 1 - statistics.CONFIDENCE).fill_null(False))

    def variation(self, class_name: str | None = None, metric: str | None = None) -> Variation | None:
        """How much each factor and interaction explains of a metric's variation.

        Args:
            class_name: the class; the first if None.
            metric: the column; that of the class's objective if None.

        Returns:
            None where there is no factor with two levels, or no variation.
        """
        return variation(self.loaded, self.runs, class_name or self.classes[0].name, metric)

    def answers(self, factor: str | None = None) -> list[str]:
        """The answer about each level of a factor and each class, over all cells, in one sentence each.

        A sentence says whether the answer is settled, and otherwise how many repetitions would settle it.

        Args:
            factor: the factor; the first varied one whose levels are names if None.
        """
        return [answer.sentence() for answer in answers.answers(self.loaded, self.runs, factor)]

    def best(
        self, class_name: str | None = None, metric: str | None = None, factor: str | None = None
    ) -> list[str]:
        """The level of a factor with the shortest response time, and against which others that is settled.

        The first sentence is about the level, each other one about one other level relative to it. All pairs
        of levels are one family, since the level is chosen by the results.

        Args:
            class_name: the class; the first if None.
            metric: a metric of response time, as `response_p99_ms`; that of the class's objective if None.
            factor: the factor; the first varied one whose levels are names if None.

        Raises:
            InputError: there is no such class or varied factor, or the metric is no response time.
        """
        name = class_name or self.classes[0].name
        return best(self.loaded, self.runs, name, metric, factor).sentences()

    def table(self, class_name: str) -> pl.DataFrame:
        """The results of one class as text: a row per cell, a column per metric, with intervals."""
        return present.results(self.loaded, self.runs, class_name)

    def captioned(self, class_name: str) -> tuple[pl.DataFrame, list[str]]:
        """`table`, and the lines below it: estimands, intervals, and what its marks mean."""
        return present.captioned(self.loaded, self.runs, class_name)

    def without_data(self) -> pl.DataFrame:
        """Runs that are invalid, skipped, missing or of an earlier plan, with the reason."""
        return present.excluded(self.loaded)

    @property
    def metrics(self) -> list[str]:
        """The metrics of a class that have a finite value in some run."""
        known = {"run", "testbed", "repetition", "block", "order", "class", *self.loaded.factors}
        return [
            name
            for name, kind in self.runs.schema.items()
            if name not in known and kind.is_numeric() and self.runs[name].drop_nulls().is_finite().any()
        ]

    def plot(
        self, metric: str = "response_p95_ms", class_name: str | None = None, x: str | None = None
    ) -> Figure:
        """A metric of one class by the study's factors: runs, estimates, intervals, objective.

        Args:
            metric: the column.
            class_name: the class; the first if None.
            x: the factor along the axis; chosen if None.

        Raises:
            ValueError: no run has a value of the metric.
        """
        name = class_name or self.classes[0].name
        rows = self.runs.filter(pl.col("class") == name)
        return study_figures.intervals(self.loaded, rows, metric, limit=self._limit(name, metric), x=x)

    def plot_effects(
        self,
        factor: str,
        metric: str = "response_p95_ms",
        baseline: Level | None = None,
        *,
        as_difference: bool = False,
    ) -> Figure:
        """The figure of `effects`."""
        if baseline is None:
            baseline = reference_level(self.loaded, factor, ())
        return study_figures.ratios(
            self.loaded, self.runs, metric, factor, baseline, as_difference=as_difference
        )

    def plot_tail(self, class_name: str | None = None) -> Figure:
        """The share of a class's requests that took longer than t, one line per run.

        Raises:
            InputError: the study keeps summaries only.
        """
        return study_figures.tail(self.loaded, class_name or self.classes[0].name)

    def controls(self) -> Any:
        """Controls for class, metric, quantile and factor, with figure, best level and table.

        The best level is that of response times, by the chosen factor. The controls need the extra `lab`.
        """
        import ipywidgets as widgets
        from IPython.display import display

        metrics = {RESPONSE: RESPONSE} | {label(name).axis: name for name in self.metrics}

        def draw(class_name: str, metric: str, quantile: str, factor: str) -> None:
            column = f"response_{quantile}_ms" if metric == RESPONSE else metric
            try:
                display(shown(self.plot(column, class_name, factor or None)))
            except ValueError as error:
                print(error)
                return
            if metric == RESPONSE and (factor or answers.main_factor(self.loaded)):
                print(*self.best(class_name, column, factor or None), sep="\n")
            rows = self.summary(column).filter(pl.col("class") == class_name)
            display(interactive(rows))

        return widgets.interactive(
            draw,
            class_name=widgets.Dropdown(options=[c.name for c in self.classes], description="class"),
            metric=widgets.Dropdown(options=list(metrics.items()), description="metric"),
            quantile=widgets.Dropdown(options=list(QUANTILES.items()), value="p95", description="quantile"),
            factor=widgets.Dropdown(
                options=[("chosen by weir", ""), *((n, n) for n in self.factors)], description="x axis"
            ),
        )

    def _limit(self, class_name: str, metric: str) -> float | None:
        judged, limit = objective_metric(next(c for c in self.classes if c.name == class_name))
        return limit if metric == judged else None

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(runs)} {status}" for status, runs in self.loaded.by_status.items() if runs)
        return f"weir.Study({self.name!r}): {self.plan.height} runs: {counts or 'none yet'}"

    def _repr_html_(self) -> str:
        counts = self.plan["status"].value_counts().sort("status").iter_rows()
        rows = {
            "question": self.question,
            "results": "sample of weir, in virtual time or on another machine" if self.is_sample else "yours",
            "runs": ", ".join(f"{count} {status}" for status, count in counts),
            "testbed": ", ".join(self.loaded.testbeds),
            "repetitions": self.loaded.repetitions_text,
        }
        rows |= {
            f"factor {name}": ", ".join(str(level) for level in levels)
            for name, levels in self.factors.items()
        }
        for one in self.classes:
            clients = f"{one.clients} clients of {one.workload}"
            rows[f"class {one.name}"] = f"{clients}; objective: {objective_text(one.objective)}"
        cell = '<{0} style="text-align:left">{1}</{0}>'.format
        body = "".join(f"<tr>{cell('th', escape(k))}{cell('td', escape(v))}</tr>" for k, v in rows.items())
        return f'<table style="margin-left:0"><caption>Study {escape(self.name)}</caption>{body}</table>'


def shown(figure: Figure) -> Any:
    """A figure as an image of a notebook."""
    from IPython.display import Image

    from weir.notebooks import WIDTH_PIXELS
    from weir.plots import encode

    return Image(data=encode(figure, "png"), width=WIDTH_PIXELS)


def interactive(table: pl.DataFrame) -> Any:
    """A table that sorts and searches."""
    from itables.widget import ITable

    return ITable(table)
