"""Directives of the documentation site: figures from code, diagrams from text.

    ```{figure-of} Response time by scheduler and architecture.
    study = weir.Study("quick")
    study.plot("response_p95_ms", "text")
    ```

`figure-of` shows Python code and the figure that its last line makes, on the sample results of weir. The
argument is the text in place of the figure. `diagram` draws its lines (`diagram.py`), `crate-diagram` the
table of crates of its page, without arrows that others imply.
"""

import ast
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

import diagram
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import weir
from weir import locate, plots

FOLDER = "_figures"
#: In dark pages the colours for dark pages hold, whatever the reader's system prefers.
PREFERS_DARK = b"@media (prefers-color-scheme:dark)"


class FigureOf(SphinxDirective):
    """Shows code, and below it the figure."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draws the figure into the site; a failure is an error of the page."""
        code = "\n".join(self.content)
        alt = " ".join(self.arguments[0].split())
        try:
            with _sample():
                figure = _value(code)
                light, dark = plots.encode(figure, "svg"), plots.adaptive_svg(figure)
        except Exception as error:
            raise self.error(f"the code of a figure failed: {type(error).__name__}: {error}") from error
        folder = Path(self.env.app.outdir, FOLDER)
        folder.mkdir(exist_ok=True)
        up = "../" * self.env.docname.count("/")
        images = []
        for page, data in (("light", light), ("dark", dark.replace(PREFERS_DARK, b"@media all"))):
            file = folder / f"{hashlib.sha256(code.encode()).hexdigest()[:16]}-{page}.svg"
            file.write_bytes(data)
            image = f'<img class="only-{page}" src="{up}{FOLDER}/{file.name}" alt="{escape(alt)}">'
            images.append(image)
        return [
            nodes.literal_block(code, code, language="python"),
            nodes.raw("", f'<div class="drawn">{"".join(images)}</div>', format="html"),
        ]


def _value(code: str) -> object:
    """Executes code and returns the value of its last line."""
    tree = ast.parse(code)
    last = tree.body.pop()
    if not isinstance(last, ast.Expr):
        raise ValueError("the last line must be an expression")
    names: dict[str, object] = {"weir": weir}
    exec(compile(tree, "<figure-of>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<figure-of>", "eval"), names)


@contextmanager
def _sample() -> Iterator[None]:
    """Studies are those of the sample, whatever results this machine has."""
    before = os.environ.get(locate.RESULTS_VARIABLE)
    os.environ[locate.RESULTS_VARIABLE] = str(locate.SAMPLE)
    try:
        yield
    finally:
        if before is None:
            del os.environ[locate.RESULTS_VARIABLE]
        else:
            os.environ[locate.RESULTS_VARIABLE] = before


class DrawnDiagram(SphinxDirective):
    """Draws its lines."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def drawn(self) -> diagram.Diagram:
        """What is drawn."""
        return diagram.Diagram.parse(self.content)

    def run(self) -> list[nodes.Node]:
        """Shows the diagram; a wrong line is an error of the page."""
        try:
            svg = self.drawn().svg(self.arguments[0])
        except ValueError as error:
            raise self.error(str(error)) from error
        return [nodes.raw("", f'<div class="drawn">{svg}</div>', format="html")]


class CrateDiagram(DrawnDiagram):
    """Draws the table of crates of its page; its lines are for readers of the page's text."""

    def drawn(self) -> diagram.Diagram:
        """What is drawn."""
        return diagram.crates(Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Adds the directives."""
    app.add_directive("figure-of", FigureOf)
    app.add_directive("diagram", DrawnDiagram)
    app.add_directive("crate-diagram", CrateDiagram)
    return {"parallel_read_safe": True}
