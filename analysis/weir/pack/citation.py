"""`CITATION.cff` of a study: who made it, under which licence, with which DOI.

The file is that of the Citation File Format 1.2 (https://citation-file-format.github.io), with `type:
dataset`.
"""

import datetime
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from weir.errors import InputError

NAME = "CITATION.cff"
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_SPDX = re.compile(r"[A-Za-z0-9.+-]+")
_ORCID = re.compile(r"https://orcid\.org/(\d{4}-){3}\d{3}[\dX]")
_EXAMPLE = "docs/how-to/publish.md has an example"


@dataclass(frozen=True)
class Author:
    """A person or an organisation; `orcid` is a URL, or empty."""

    name: str
    is_person: bool
    orcid: str = ""
    affiliation: str = ""


@dataclass(frozen=True)
class Citation:
    """The fields of a citation file. A text is empty if the file lacks the field.

    Attributes:
        text: the file; empty where there is none.
        title: of the artifact.
        authors: in their order.
        doi: without `https://doi.org/`.
        licence: identifier of SPDX, such as `CC-BY-4.0`.
        published: the date.
        abstract: what it is.
        keywords: of the artifact.
        url: where it can be found.
        paper: DOI or title of the paper that it belongs to (`preferred-citation`).
    """

    text: str = ""
    title: str = ""
    authors: tuple[Author, ...] = ()
    doi: str = ""
    licence: str = ""
    published: datetime.date | None = None
    abstract: str = ""
    keywords: tuple[str, ...] = ()
    url: str = ""
    paper: str = ""

    @property
    def doi_url(self) -> str:
        """The page of the artifact."""
        return f"https://doi.org/{self.doi}"


def licence_url(identifier: str) -> str:
    """The page of a licence with this identifier of SPDX."""
    return f"https://spdx.org/licenses/{identifier}"


def read(path: Path) -> Citation:
    """Reads a citation file.

    Raises:
        InputError: it cannot be read, or a field cannot be used.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = yaml.safe_load(text)
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", "name a CITATION.cff") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = f":{error.problem_mark.line + 1}" if getattr(error, "problem_mark", None) else ""
        raise InputError(f"{path}{line}", "is no YAML", f"correct it; {_EXAMPLE}") from error
    if not isinstance(document, dict):
        raise InputError(path, "has no fields", _EXAMPLE)
    read = _Fields(path, document)
    read.text("cff-version", needed=True)
    return Citation(
        text=text,
        title=read.text("title", needed=True),
        authors=read.authors(),
        doi=read.matching("doi", _DOI, "such as 10.5281/zenodo.1234"),
        licence=read.matching(
            "license", _SPDX, "an identifier of https://spdx.org/licenses such as CC-BY-4.0"
        ),
        published=read.date("date-released"),
        abstract=read.text("abstract"),
        keywords=tuple(map(str, read.listed("keywords"))),
        url=read.text("repository-artifact") or read.text("url"),
        paper=read.paper(),
    )


@dataclass(frozen=True)
class _Fields:
    path: Path
    document: dict[str, Any]

    def _refuse(self, name: str, value: Any, wanted: str) -> InputError:
        found = "is missing" if value is None else f"is {value!r}"
        return InputError(self.path, f"field `{name}` {found}", f"give {wanted}; {_EXAMPLE}")

    def text(self, name: str, *, needed: bool = False) -> str:
        value = self.document.get(name)
        if value is None and not needed:
            return ""
        if not isinstance(value, str | int | float) or isinstance(value, bool) or not str(value).strip():
            raise self._refuse(name, value, "a text")
        return str(value).strip()

    def matching(self, name: str, pattern: re.Pattern[str], wanted: str) -> str:
        value = self.text(name)
        if value and not pattern.fullmatch(value):
            raise self._refuse(name, value, wanted)
        return value

    def date(self, name: str) -> datetime.date | None:
        value = self.document.get(name)
        if value is None or (isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)):
            return value
        try:
            return datetime.date.fromisoformat(str(value))
        except ValueError:
            raise self._refuse(name, value, "a date such as 2026-05-31") from None

    def listed(self, name: str) -> list[Any]:
        value = self.document.get(name, [])
        if not isinstance(value, list):
            raise self._refuse(name, value, "a list")
        return value

    def paper(self) -> str:
        value = self.document.get("preferred-citation")
        named = (value.get("doi") or value.get("title")) if isinstance(value, dict) else None
        if value is not None and not named:
            raise self._refuse(
                "preferred-citation", value, "the `doi` or `title` of the paper as fields of it"
            )
        return str(named or "")

    def authors(self) -> tuple[Author, ...]:
        found = [self._author(entry) for entry in self.listed("authors")]
        if not found:
            raise self._refuse("authors", None, "a list of at least one author")
        return tuple(found)

    def _author(self, entry: Any) -> Author:
        wanted = "`family-names` and `given-names` of a person, or `name` of an organisation"
        if not isinstance(entry, dict):
            raise self._refuse("authors", entry, wanted)
        parts = [
            str(entry[name]) for name in ("given-names", "name-particle", "family-names") if entry.get(name)
        ]
        name = " ".join(parts) or str(entry.get("name") or "")
        if not name:
            raise self._refuse("authors", entry, wanted)
        orcid, affiliation = str(entry.get("orcid") or ""), str(entry.get("affiliation") or "")
        if orcid and not _ORCID.fullmatch(orcid):
            raise self._refuse("orcid", orcid, "a URL such as https://orcid.org/0000-0002-1825-0097")
        return Author(name, bool(parts), orcid, affiliation)
