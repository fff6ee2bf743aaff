"""Self-contained HTML pages: templates with styles and figures inside, so that a page needs no other file."""

import base64
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from weir import __version__
from weir.documents import write_text
from weir.errors import InputError
from weir.plots import adaptive_svg


def render(template: str, **values: object) -> str:
    """A page from a file in `templates/`.

    Args:
        template: the file's name.
        values: what the template shows; the version is added.
    """
    return _environment(autoescape=True).get_template(template).render(version=__version__, **values)


def render_text(template: str, **values: object) -> str:
    """A text from a file in `templates/`, where nothing is HTML."""
    return _environment(autoescape=False).get_template(template).render(**values)


def _environment(*, autoescape: bool) -> Environment:
    return Environment(
        loader=PackageLoader("weir"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not autoescape,
    )


def inline(figure: Figure) -> str:
    """A figure as the source of an image, as SVG."""
    data = base64.b64encode(adaptive_svg(figure)).decode("ascii")
    return f"data:image/svg+xml;base64,{data}"


def write_page(path: Path, page: str, option: str = "--out") -> Path:
    """Writes a page and returns its path.

    Args:
        path: the file.
        page: its content.
        option: the option that names another file.

    Raises:
        InputError: the page cannot be written.
    """
    try:
        write_text(path, page)
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise InputError(path, problem, f"name another file with {option}") from error
    return path
