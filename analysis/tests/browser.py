"""A page in headless Chromium, through its DevTools protocol: what it requests, prints and draws."""

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

websocket = pytest.importorskip("websocket", reason="the package websocket-client is not installed")
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
#: A busy machine takes long to start a browser.
PATIENCE_S = 120


class Page:
    """A page of the browser.

    Attributes:
        requests: addresses that the page requested, itself included.
        problems: errors and warnings of the console, and exceptions.
    """

    def __init__(self, address: str) -> None:
        self.requests: list[str] = []
        self.problems: list[str] = []
        self._calls = 0
        self._socket = websocket.create_connection(address, timeout=PATIENCE_S)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method and returns its result; events that come first are kept."""
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._calls:
                assert "error" not in message, message
                return message["result"]
            self._keep(message.get("method"), message.get("params") or {})

    def _keep(self, method: str | None, event: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.problems.append(event["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(event["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(a.get("value", a.get("description"))) for a in event["args"]))

    def evaluate(self, expression: str) -> Any:
        """The value of an expression; a promise is awaited."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Waits until an expression is true."""
        end = time.monotonic() + PATIENCE_S
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"never true: {expression}; {self.problems}"
            time.sleep(0.05)

    def open(self, path: Path, *, width: int = 1300, dark: bool = False, scripts: bool = True) -> None:
        """Opens a file and waits until it is loaded."""
        self.requests.clear()
        self.problems.clear()
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete'")

    def key(self, key: str) -> None:
        """Presses and releases a key."""
        text = {"text": key} if len(key) == 1 else {}
        code = {"Tab": 9, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13}.get(key, ord(key[0]))
        for kind in ("keyDown", "keyUp"):
            own = text if kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **own)

    def picture(self, path: Path) -> None:
        """Writes the whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1}
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A browser with one page; skips the test where there is no Chromium.

    Args:
        folder: an empty folder for the browser's profile.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install --no-install-recommends chromium")
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
        f"--user-data-dir={folder}", "--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port_file, end = folder / "DevToolsActivePort", time.monotonic() + PATIENCE_S
        while not (port_file.exists() and port_file.read_text().count("\n")):
            if process.poll() is not None:
                pytest.skip(f"Chromium does not start here (exit code {process.returncode})")
            assert time.monotonic() < end, "Chromium did not start"
            time.sleep(0.05)
        port = port_file.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
            tabs = json.load(answer)
        with closing(
            Page(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
        ) as page:
            yield page
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
