"""Judges an RO-Crate by `roc-validator`, without a network.

The validator fetches the contexts of RO-Crate 1.1 and of Workflow Run Crate. Here they are the terms of the
two contexts (CC0) that weir's crates use: a term that is missing here fails a test.
"""

import json

import pytest

_SCHEMA = "http://schema.org/"
_OF_SCHEMA = [
    "about",
    "actionStatus",
    "affiliation",
    "agent",
    "author",
    "cite-as",
    "CreateAction",
    "ControlAction",
    "ComputerLanguage",
    "contentSize",
    "CreativeWork",
    "Dataset",
    "datePublished",
    "description",
    "encodingFormat",
    "error",
    "hasPart",
    "HowTo",
    "HowToStep",
    "identifier",
    "instrument",
    "keywords",
    "license",
    "mainEntity",
    "mentions",
    "name",
    "object",
    "OrganizeAction",
    "Organization",
    "Person",
    "position",
    "programmingLanguage",
    "PropertyValue",
    "result",
    "SoftwareApplication",
    "SoftwareSourceCode",
    "softwareVersion",
    "step",
    "url",
    "value",
    "version",
    "workExample",
]
CONTEXTS = {
    "https://w3id.org/ro/crate/1.1/context": {name: f"{_SCHEMA}{name}" for name in _OF_SCHEMA}
    | {
        "cite-as": "https://www.w3.org/ns/iana/link-relations/relation#cite-as",
        "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
        "conformsTo": "http://purl.org/dc/terms/conformsTo",
        "File": f"{_SCHEMA}MediaObject",
    },
    "https://w3id.org/ro/terms/workflow-run/context": {
        "sha256": "https://w3id.org/ro/terms/workflow-run#sha256"
    },
}


class _Answer:
    status_code = 200
    headers = {"Content-Type": "application/ld+json"}  # noqa: RUF012

    def __init__(self, terms):
        self._document = {"@context": terms}
        self.text = json.dumps(self._document)
        self.content = self.text.encode()

    def json(self):
        return self._document

    def raise_for_status(self):
        pass


def unknown_terms(crate):
    """Terms of a crate that the contexts above lack."""
    known = set().union(*CONTEXTS.values())
    used = set()
    for entity in crate["@graph"]:
        types = entity["@type"]
        used |= {*entity} | set([types] if isinstance(types, str) else types)
    return {name for name in used - known if not name.startswith("@")}


def problems(folder, monkeypatch, profile, severity="REQUIRED"):
    """What the validator finds in a crate: severity, message, entity."""
    pytest.importorskip("rocrate_validator", reason="roc-validator is not installed: make setup")
    from rocrate_validator import models, services
    from rocrate_validator.utils import document_loader
    from rocrate_validator.utils.http import HttpRequester

    def get(url, *_, **__):
        return _Answer(CONTEXTS[url])

    monkeypatch.setattr(document_loader, "_fetch_json_ld", lambda url: get(url).json())
    monkeypatch.setattr(HttpRequester, "get", lambda self, url, *_, **__: get(url), raising=False)
    settings = services.ValidationSettings(
        rocrate_uri=str(folder),
        profile_identifier=profile,
        requirement_severity=getattr(models.Severity, severity),
    )
    found = services.validate(settings).get_issues()
    return sorted({(one.severity.name, one.message, str(one.violatingEntity)) for one in found})
