"""JupyterLab with the notebooks: `make lab`.

The server listens on 127.0.0.1 alone and wants a random token; it asks no other site for news or updates.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from weir import locate, notebooks
from weir.documents import write_text
from weir.errors import InputError, Skipped

#: The page that JupyterLab opens, beside the sources. It is written at each start, and ignored by git.
START = "start.ipynb"
#: Settings of JupyterLab: no question whether to fetch news, light or dark as the system is.
CONFIG = Path(__file__).parent / "lab_config"
#: Seconds between two looks whether JupyterLab listens.
_LOOK_S = 0.1
_ABOUT = {
    "00-quick-tour": "What a study is, its runs, requests, estimates and comparisons",
    notebooks.TEMPLATE: "Any study: set `NAME`, and choose class, metric, quantile and factor",
    "partitioned_vs_integrated": "Disks of their own, or shared disks?",
    "multi_filesystem": "Response time by file system",
    "isolation": "What keeps clients apart: schedulers, priorities, `io.max`, `io.weight`",
    "virtual_vs_real": "Block devices beside the simulator",
    "traces": "Workloads of the papers, generated and recorded",
    "schedulers_compared": "The schedulers of all papers under one load",
    "integration_today": "Partitioned or integrated servers on current devices, by scheduler",
}


def start(options: Sequence[str] = (), say: Callable[[dict[str, Any]], None] | None = None) -> NoReturn:
    """Starts JupyterLab in place of this process, so that signals reach it.

    Args:
        options: further options of `jupyter lab`.
        say: gets address and process of the server once it listens.

    Raises:
        InputError: there is no project, or JupyterLab is not installed.
    """
    root = locate.project()
    if root is None:
        raise InputError(Path.cwd(), "lies in no project", "call this in the repository")
    if find_spec("jupyterlab") is None:
        raise InputError(
            "jupyterlab", "is not installed", "make lab, or pip install 'WHEEL[lab]' (docs/how-to/install.md)"
        )
    results = locate.results()
    folder = root / notebooks.SOURCES
    write_text(folder / START, start_page(results))
    if say is not None:
        _say_when_ready(say)
    os.execve(sys.executable, [*command(root), *options], environment(results))


def _say_when_ready(say: Callable[[dict[str, Any]], None]) -> None:
    """Lets another process wait until JupyterLab, which gets the id of this process, listens."""
    from jupyter_core.paths import jupyter_runtime_dir

    pid = os.getpid()
    file = Path(jupyter_runtime_dir()) / f"jpserver-{pid}.json"
    # That of an earlier process of this id.
    file.unlink(missing_ok=True)
    if (child := os.fork()) != 0:
        os.waitpid(child, 0)
        return
    # A child of a child is reaped by the first process, not by JupyterLab.
    if os.fork() != 0:
        os._exit(0)
    while Path(f"/proc/{pid}").exists():
        with contextlib.suppress(OSError, ValueError):
            server = json.loads(file.read_text(encoding="utf-8"))
            url = f"{server['url']}lab?token={server['token']}"
            say({"pid": pid, "url": url, "folder": server["root_dir"]})
            break
        time.sleep(_LOOK_S)
    os._exit(0)


def environment(results: Path) -> dict[str, str]:
    """The environment of JupyterLab, which its kernels get too."""
    paths = [str(CONFIG), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    return os.environ | {
        locate.RESULTS_VARIABLE: str(results),
        "JUPYTER_CONFIG_PATH": os.pathsep.join(paths),
    }


def command(root: Path) -> list[str]:
    """The command line of JupyterLab for a project."""
    page = f"/lab/tree/{notebooks.SOURCES}/{START}"
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        "--ip=127.0.0.1",
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url={page}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        # Over a socket file that only this user can open, not over a port.
        "--KernelManager.transport=ipc",
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]


def start_page(results: Path) -> str:
    """The text of the first page: a notebook with a table of all notebooks and of what each shows now."""
    import nbformat

    rows = []
    first = ["00-quick-tour", notebooks.TEMPLATE]
    for name in [*first, *(name for name in notebooks.names() if name not in first)]:
        try:
            shows = notebooks.check(name, results, "quick")
        except Skipped as error:
            # Every notebook is committed with its outputs.
            shows = f"as committed; yours: {error.remedy}"
        except InputError as error:
            shows = str(error)
        about = _ABOUT.get(name, "Claims of a paper")
        rows.append(f"| [{name}]({name}.ipynb) | {about} | {shows.replace('|', ' ')} |")
    others = notebooks.unread(results)
    text = "\n".join(
        (
            "# weir: notebooks",
            "",
            "Open a notebook, then *Run > Run All Cells*.",
            "",
            "*As committed*: the notebook has figures and tables of results that are too large for the "
            "repository. Without results of your own, cells that you run say `skipped` in place of them; "
            "`git checkout NAME.ipynb` brings them back.",
            "",
            "| notebook | shows | results |",
            "| :--- | :--- | :--- |",
            *rows,
            "",
            f"Results are read from `{results}`; where a study has none there, from the sample that comes "
            "with weir. A study of your own: set `NAME` in "
            f"[{notebooks.TEMPLATE}]({notebooks.TEMPLATE}.ipynb)"
            + (f" ({', '.join(f'`{name}`' for name in others)})." if others else "."),
        )
    )
    page = nbformat.v4.new_notebook(
        metadata={"kernelspec": notebooks.KERNEL}, cells=[nbformat.v4.new_markdown_cell(text)]
    )
    page.cells[0]["id"] = "start"
    return nbformat.writes(page) + "\n"
