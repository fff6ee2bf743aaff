"""`ro-crate-metadata.json`: the archive as an RO-Crate that says how each file came about.

The crate follows RO-Crate 1.1 and Provenance Run Crate 0.5 (https://w3id.org/ro/wfrun/provenance/0.5), which
includes Workflow Run Crate and Process Run Crate. The plan of a study is the workflow, weir is its engine;
each run is a `CreateAction` whose objects are the plan, the specifications and the levels, and whose results
are the files of the run. The analysis is one more action.
"""

import json
import mimetypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import weir
from weir.load import Run, Study
from weir.pack.archive import README, Sum
from weir.pack.citation import Author, Citation, licence_url
from weir.pack.environment import ENVIRONMENT, SOFTWARE
from weir.pack.numbers import CLAIMS, FIGURES, NUMBERS, REPORT, RESULTS
from weir.pack.specs import SPECS

NAME = "ro-crate-metadata.json"
CONTEXT = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"]
_CRATE, _WORKFLOW_CRATE = (
    "https://w3id.org/ro/crate/1.1",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0",
)
_APACHE = "Apache-2.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
    _WORKFLOW_CRATE: "Workflow RO-Crate",
}
_FOLDERS = {
    RESULTS: "Raw results: one folder for each run of each study",
    NUMBERS: "Numbers computed from the raw results: the table of all runs, answers, numbers of figures",
    CLAIMS: "Claims of papers, judged on these results",
    SPECS: "Specifications: studies, workloads, disk models, file systems, daemons",
    ENVIRONMENT: "Versions of programs and packages",
    SOFTWARE: "The analysis that computes all numbers",
}
_MEANINGS = {
    "requests.parquet": "Every request as the application saw it",
    "block.parquet": "Every request as the block layer saw it",
    "pages.parquet": "Every page request of a browser",
    "series.parquet": "Response times over time",
    "run.json": "The run as resolved: levels, settings, classes with their workloads, devices, seed",
    "host.json": "Kernel, CPU, memory, devices and settings of the host, as recorded by weir",
    "part.json": "One host's part of a run of several hosts",
    "observed.json": "Statistics of load generators and collectors",
    "summary.json": "Figures of a simulated run",
    "series.json": "Service of each class over time",
    "verdict.json": "Validity of the run, rule by rule",
    "manifest.json": "SHA-256 of each file of the run, written when it ended",
    "metrics.json": "Metrics computed from the run's tables",
    "plan.json": "The plan: every run with all settings as resolved",
    "runs.csv": "One row for each planned run and class: levels, validity, every metric",
    REPORT: "Report of a study",
    "answers.txt": "Answers to the study's question",
    "claims.json": "Claims of a paper: the paper's number, ours, and the status",
}
_TYPES = {
    ".parquet": "application/x-parquet",
    ".yml": "application/yaml",
    ".cff": "application/yaml",
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".lock": "text/plain",
    ".log": "text/plain",
}
_RUN_TOOL, _ANALYSIS, _ENGINE, _LANGUAGE = "#weir-run", "#weir-analysis", "#weir", "#weir-plan"
#: Steps of a study: name, words, tool.
_STEPS = (("runs", "Carry out the runs", _RUN_TOOL), ("analysis", "Compute the numbers", _ANALYSIS))
_DONE, _FAILED = "http://schema.org/CompletedActionStatus", "http://schema.org/FailedActionStatus"
Entity = dict[str, Any]


@dataclass(frozen=True)
class Described:
    """Title, authors, studies and plans that a crate describes.

    Attributes:
        title: of the crate.
        description: of the crate.
        published: the date, as ISO 8601.
        citation: authors, licence, DOI.
        studies: those of the archive.
        plans: files of the plans, by study.
    """

    title: str
    description: str
    published: str
    citation: Citation
    studies: Sequence[Study]
    plans: Mapping[str, Sequence[str]]


def as_text(about: Described, sums: Mapping[str, Sum]) -> str:
    """The metadata file of an archive with these files; one entity a line.

    Args:
        about: what the crate is about.
        sums: size and SHA-256 of each file, by name.
    """
    entities = "".join(f",\n  {json.dumps(entity)}" for entity in _Graph(about, sums).entities())
    return f'{{\n "@context": {json.dumps(CONTEXT)},\n "@graph": [{entities[1:]}\n ]\n}}\n'


@dataclass(frozen=True)
class _Graph:
    about: Described
    sums: Mapping[str, Sum]

    def entities(self) -> Iterable[Entity]:
        """Every entity of the graph, the descriptor first."""
        yield {
            "@id": NAME,
            "@type": "CreativeWork",
            "conformsTo": _refer([_CRATE, _WORKFLOW_CRATE]),
            "about": _refer("./"),
        }
        actions = [action for study in self.about.studies for action in self._actions(study)]
        yield self._root([action["@id"] for action in actions if action["@type"] == "CreateAction"])
        for url, name in PROFILES.items():
            yield {"@id": url, "@type": "CreativeWork", "name": name, "version": url.rpartition("/")[2]}
        yield from self._people()
        yield from self._licence()
        yield from self._tools()
        yield from self._files()
        yield from self._folders()
        for study in self.about.studies:
            yield from self._levels(study)
        yield from actions

    def _root(self, actions: list[str]) -> Entity:
        about, citation = self.about, self.about.citation
        top = [name for name in self.sums if "/" not in name]
        root: Entity = {
            "@id": "./",
            "@type": "Dataset",
            "name": about.title,
            "description": about.description,
            "datePublished": about.published,
            "license": _refer(licence_url(citation.licence) if citation.licence else "#no-licence"),
            "conformsTo": _refer(list(PROFILES)),
            "hasPart": _refer([*top, *(f"{name}/" for name in self._top())]),
            "mainEntity": _refer(about.plans[about.studies[0].name][0]),
            "mentions": _refer(actions),
        }
        if citation.authors:
            root["author"] = _refer([_person(author) for author in citation.authors])
        if citation.doi:
            root |= {"identifier": citation.doi_url, "cite-as": citation.doi_url}
        if citation.keywords:
            root["keywords"] = ", ".join(citation.keywords)
        if citation.url:
            root["url"] = citation.url
        return root

    def _top(self) -> list[str]:
        return [name for name in _FOLDERS if any(file.startswith(f"{name}/") for file in self.sums)]

    def _people(self) -> Iterable[Entity]:
        for author in self.about.citation.authors:
            entity: Entity = {
                "@id": _person(author),
                "@type": "Person" if author.is_person else "Organization",
                "name": author.name,
            }
            if author.affiliation:
                entity["affiliation"] = author.affiliation
            yield entity

    def _licence(self) -> Iterable[Entity]:
        citation = self.about.citation
        for name in dict.fromkeys(filter(None, (citation.licence, _APACHE))):
            yield {"@id": licence_url(name), "@type": "CreativeWork", "name": name, "identifier": name}
        if not citation.licence:
            words = "No licence is stated: ask the authors before you use the data"
            yield {"@id": "#no-licence", "@type": "CreativeWork", "name": "none", "description": words}

    def _tools(self) -> Iterable[Entity]:
        version = weir.__version__
        made_by = sorted({run.testbed for study in self.about.studies for run in study.runs})
        commands = {"device": "weir run", "simulator": "weir simulate"}
        words = " and ".join(commands.get(testbed, testbed) for testbed in made_by)
        for name, title, of in (
            (_ENGINE, "weir", "Carries out the runs of a plan, in randomised blocks"),
            (_RUN_TOOL, words, "Carries out one run and records every request"),
            (_ANALYSIS, "python -m weir", "Computes metrics, intervals and figures from raw rows"),
        ):
            yield {
                "@id": name,
                "@type": "SoftwareApplication",
                "name": title,
                "description": of,
                "softwareVersion": version,
                "license": _refer(licence_url(_APACHE)),
            }
        text = "Plan of a study: a list of runs with all settings, in JSON"
        yield {"@id": _LANGUAGE, "@type": "ComputerLanguage", "name": "weir plan", "description": text}

    def _files(self) -> Iterable[Entity]:
        for name, one in sorted(self.sums.items()):
            if name.startswith(f"{SOFTWARE}/"):
                # Described as a folder; SHA256SUMS has each of its files.
                continue
            path = PurePosixPath(name)
            known = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain"
            entity: Entity = {
                "@id": name,
                "@type": "File",
                "name": path.name,
                "contentSize": str(one.size_bytes),
                "sha256": one.sha256,
                "encodingFormat": known,
            }
            if meaning := _MEANINGS.get(path.name) or (FIGURES in path.parts and "Numbers of a figure"):
                entity["description"] = meaning
            if name == README:
                entity["about"] = _refer("./")
            study = next((s for s in self.about.studies if name in self.about.plans[s.name]), None)
            yield entity | (self._workflow(study) if study else {})

    def _workflow(self, study: Study) -> Entity:
        return {
            "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
            "name": f"Plan of study {study.name}",
            "description": study.question,
            "version": weir.__version__,
            "programmingLanguage": _refer(_LANGUAGE),
            "hasPart": _refer([_RUN_TOOL, _ANALYSIS]),
            "step": _refer([f"#step/{study.name}/{step}" for step, _, _ in _STEPS]),
        }

    def _folders(self) -> Iterable[Entity]:
        runs = {f"{RESULTS}/{study.name}/{run.id}": run for study in self.about.studies for run in study.runs}
        for top in self._top():
            inner: list[str] = []
            of_study: dict[str, list[str]] = {}
            of_run: dict[str, list[str]] = {}
            for name in self.sums:
                parts = name.split("/")
                if parts[0] != top or top == SOFTWARE:
                    continue
                if top != RESULTS:
                    inner.append(name)
                elif "/".join(parts[:3]) in runs:
                    of_run.setdefault("/".join(parts[:3]), []).append(name)
                else:
                    of_study.setdefault("/".join(parts[:2]), []).append(name)
            parts_of_top = [*inner, *(f"{folder}/" for folder in of_study)]
            entity: Entity = {"@id": f"{top}/", "@type": "Dataset", "name": top, "description": _FOLDERS[top]}
            if parts_of_top:
                entity["hasPart"] = _refer(parts_of_top)
            if top == SOFTWARE:
                entity["license"] = _refer(licence_url(_APACHE))
            yield entity
            for folder, files in of_study.items():
                mine = [f"{run}/" for run in of_run if run.startswith(f"{folder}/")]
                yield {
                    "@id": f"{folder}/",
                    "@type": "Dataset",
                    "name": f"Results of study {folder.rpartition('/')[2]}",
                    "hasPart": _refer([*files, *mine]),
                }
            for folder, files in of_run.items():
                run = runs[folder]
                yield {
                    "@id": f"{folder}/",
                    "@type": "Dataset",
                    "name": f"Run {run.id}",
                    "description": f"{_levels_text(run)}, repetition {run.repetition}",
                    "hasPart": _refer(files),
                }

    def _levels(self, study: Study) -> Iterable[Entity]:
        seen = {
            _level(name, level): (name, level) for run in study.runs for name, level in run.levels.items()
        }
        for place, (name, level) in seen.items():
            yield {"@id": place, "@type": "PropertyValue", "name": name, "value": level}

    def _actions(self, study: Study) -> list[Entity]:
        first, *_ = plans = self.about.plans[study.name]
        specs = [name for name in self.sums if name.startswith(f"{SPECS}/")]
        authors = self.about.citation.authors
        own = {"agent": _refer(_person(authors[0]))} if authors else {}
        runs = [self._run(study, run, [*plans, *specs], own) for run in study.runs]
        raw = [f"{RESULTS}/{study.name}/{run.id}/" for run in study.runs]
        numbers = [name for name in self.sums if name.startswith(f"{NUMBERS}/{study.name}/")]
        analysis = {
            "@id": f"#analysis/{study.name}",
            "@type": "CreateAction",
            "name": f"Analysis of study {study.name}",
            "description": "Metrics, answers and figures, computed from the raw rows of valid runs",
            "instrument": _refer(_ANALYSIS),
            "object": _refer(raw),
            "result": _refer(numbers),
            "actionStatus": _DONE,
            **own,
        }
        tools = [*runs, analysis]
        steps = [
            {
                "@id": f"#step/{study.name}/{step}",
                "@type": "HowToStep",
                "name": words,
                "position": str(position),
                "workExample": _refer(tool),
            }
            for position, (step, words, tool) in enumerate(_STEPS, 1)
        ]
        controls = [
            {
                "@id": f"#control/{action['@id'].lstrip('#')}",
                "@type": "ControlAction",
                "name": f"Step of {action['name']}",
                "instrument": _refer(steps[action is analysis]["@id"]),
                "object": _refer(action["@id"]),
            }
            for action in tools
        ]
        whole = {
            "@id": f"#study/{study.name}",
            "@type": "CreateAction",
            "name": f"Study {study.name}",
            "description": study.question,
            "instrument": _refer(first),
            "object": _refer([*plans, *specs]),
            "result": _refer([f"{RESULTS}/{study.name}/", *numbers]),
            "actionStatus": _DONE if not study.missing else _FAILED,
            **({"error": f"{len(study.missing)} planned runs are missing"} if study.missing else {}),
            **own,
        }
        organised = {
            "@id": f"#orchestration/{study.name}",
            "@type": "OrganizeAction",
            "name": f"Orchestration of study {study.name}",
            "instrument": _refer(_ENGINE),
            "object": _refer([control["@id"] for control in controls]),
            "result": _refer(whole["@id"]),
            **own,
        }
        return [whole, organised, *tools, *controls, *steps]

    def _run(self, study: Study, run: Run, inputs: list[str], own: Entity) -> Entity:
        folder = f"{RESULTS}/{study.name}/{run.id}/"
        files = [name for name in self.sums if name.startswith(folder) and not name.endswith("/metrics.json")]
        is_valid = run.validity.status == "valid"
        return {
            "@id": f"#run/{study.name}/{run.id}",
            "@type": "CreateAction",
            "name": f"Run {run.id} of study {study.name}",
            "description": f"{_levels_text(run)}, repetition {run.repetition}, seed {run.seed}",
            "instrument": _refer(_RUN_TOOL),
            "object": _refer([*inputs, *(_level(name, level) for name, level in run.levels.items())]),
            "result": _refer(files),
            "actionStatus": _DONE if is_valid else _FAILED,
            **({} if is_valid else {"error": f"{run.validity.status}: {run.validity.reasons}"}),
            **own,
        }


def _person(author: Author) -> str:
    return author.orcid or "#" + "-".join(author.name.split())


def _level(name: str, level: object) -> str:
    return f"#level/{name}={level}".replace(" ", "%20")


def _levels_text(run: Run) -> str:
    return ", ".join(f"{name} {level}" for name, level in run.levels.items()) or "all factors held"


def _refer(names: str | list[str]) -> Any:
    found = [{"@id": name} for name in ([names] if isinstance(names, str) else names)]
    # RO-Crate writes a list of one as that one.
    return found[0] if len(found) == 1 else found
