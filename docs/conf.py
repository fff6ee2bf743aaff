"""Configuration of the documentation site: `make docs` reads the Markdown pages of the repository where they lie."""

import os
import re
import sys
from pathlib import Path

from docutils import nodes

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "analysis"))

project = "weir"
copyright = "the authors of weir, Apache-2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/README"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/*.md",
    "docs/**/*.md",
    "ansible/README.md",
    "ansible/roles/*/README.md",
]
nitpicky = True
# Types of other packages: their pages are on the network.
nitpick_ignore_regex = [("py:.*", r"(?!weir\.).*")]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# A fence with a language that Pygments lacks is shown as it stands.
suppress_warnings = ["myst.header"]
highlight_language = "none"

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = "weir"
html_copy_source = False
html_show_sphinx = False
html_additional_pages = {"index": "redirect.html"}
templates_path = ["site"]
html_static_path = ["site/static"]
html_css_files = ["weir.css"]

SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
LINK = re.compile(r"^\| \[(?P<title>[^\]]+)\]\((?P<page>[^)#]+\.md)\)", re.MULTILINE)


def _contents(app, name, source):
    """Makes the index of docs/README.md the table of contents: one part for each section, one page for each row."""
    if name != root_doc:
        return
    titles = [match["title"] for match in SECTION.finditer(source[0])]
    for title, section in zip(titles, SECTION.split(source[0])[2::2], strict=True):
        rows = [f"{match['title']} <{match['page']}>" for match in LINK.finditer(section)]
        source[0] += "\n```{toctree}\n:hidden:\n:caption: " + "\n".join([title, "", *rows]) + "\n```\n"


def _source_file(app, environment, node, content):
    """A link to a file that is no page, such as a study, is shown as the file's path."""
    if node.get("refdomain") != "doc" and node.get("reftype") != "myst":
        return None
    target = node["reftarget"].partition("#")[0]
    file = (ROOT / node["refdoc"]).parent / target
    if not file.exists():
        return None
    return nodes.literal(text=os.path.relpath(file, ROOT))


def setup(app):
    """Connects the hooks."""
    app.connect("source-read", _contents)
    app.connect("missing-reference", _source_file)
