"""Configuration of the documentation site: Markdown pages of the repository, read where they are."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "analysis"), str(ROOT / "docs/site")]

project = "weir"
copyright = "the authors of weir, Apache-2.0"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "directives"]
root_doc = "docs/README"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/*.md",
    "docs/**/*.md",
    "ansible/README.md",
    "ansible/roles/*/README.md",
    "analysis/notebooks/*.ipynb",
]
# The launcher of the notebooks links to files on this machine.
exclude_patterns = ["analysis/notebooks/start.ipynb"]
# Notebooks are shown with the outputs that they have.
nb_execution_mode = "off"
# `name` in a docstring, as in Markdown.
default_role = "code"
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
ROW = re.compile(r"^\| \[(?P<title>[^\]]+)\]\((?P<page>[^)#]+\.md)\)", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s:#]+)\)")
#: The page below which the roles' pages are listed.
ROLES = "ansible/README"
#: The page below which the notebooks are listed, if they are in the repository with their outputs.
NOTEBOOKS = "docs/notebooks"


def _contents(app, name, source):
    """Makes the tables of docs/README.md the contents: a part for each section, a page for each row."""
    if name == root_doc:
        for title, section in _sections(source[0]):
            rows = "\n".join(f"{row['title']} <{row['page']}>" for row in ROW.finditer(section))
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{rows}\n```\n"
    if name == ROLES:
        source[0] += f"\n## Roles\n\n{_glob('roles/*/README')}"
    if name == NOTEBOOKS and any((ROOT / "analysis/notebooks").glob("*.ipynb")):
        source[0] += f"\n## All notebooks\n\n{_glob('../analysis/notebooks/*')}"


def _glob(pages):
    return f"```{{toctree}}\n:glob:\n:maxdepth: 1\n\n{pages}\n```\n"


def _sections(text):
    parts = SECTION.split(text)
    return zip(parts[1::2], parts[2::2], strict=True)


def _folders(app, name, source):
    """Shows a link to a folder as its text: the site has pages, and files to download."""
    at = (ROOT / name).parent
    source[0] = LINK.sub(lambda link: link["text"] if (at / link["target"]).is_dir() else link[0], source[0])


def _plain(app, what, name, obj, options, lines):
    """Keeps the bars of absolute values in docstrings, which reStructuredText would replace."""
    lines[:] = [re.sub(r"(`[^`]*`)|\|", lambda found: found[1] or r"\|", line) for line in lines]


def setup(app):
    """Connects the hooks."""
    app.connect("source-read", _contents)
    app.connect("source-read", _folders)
    app.connect("autodoc-process-docstring", _plain, priority=400)
