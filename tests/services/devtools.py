"""A page in headless Chromium that keys are sent to, by the Chrome DevTools Protocol over a pipe."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_SECONDS = 90
_KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
"""Key -> its Windows virtual key code, which Chromium acts upon."""
_TEXTS = {"Enter": "\r", " ": " "}
_SHIFT = 8


class Page:
    """One page. Answers are awaited one at a time; events of the browser are passed over."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._rest, self._session = 0, b"", ""
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]

    def open(self, page: Path, *, width: int = 1200, dark: bool = False, fragment: str = "") -> None:
        """Show a file, from a fragment on, in a window of this width, in the light or the dark theme."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self._call("Emulation.setEmulatedMedia", {"features": [scheme, still]})
        self._call("Emulation.setFocusEmulationEnabled", {"enabled": True})
        # By way of another page: the one that is shown may be the same file, and is complete.
        for address in ("about:blank", page.as_uri() + (f"#{fragment}" if fragment else "")):
            self._call("Page.navigate", {"url": address})
            self.wait_for(f"document.readyState === 'complete' && location.href === {json.dumps(address)}")

    def press(self, key: str, *, shift: bool = False, times: int = 1) -> None:
        """Press a key and let it go, so many times."""
        values = {
            "key": key,
            "code": key.replace(" ", "Space"),
            "windowsVirtualKeyCode": _KEYS[key],
            "modifiers": _SHIFT if shift else 0,
        }
        text = {"type": "keyDown", "text": _TEXTS[key]} if key in _TEXTS else {"type": "rawKeyDown"}
        self._call_all("Input.dispatchKeyEvent", [{**values, **text}, {**values, "type": "keyUp"}] * times)

    def ask(self, expression: str) -> Any:
        """The value of an expression in JavaScript, as JSON has it."""
        found = self._call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Wait until a condition in JavaScript holds, as what a key starts may take some frames."""
        held = (
            f"new Promise(done => {{ const look = () => ({condition}) ? done(true) : setTimeout(look, 10); look(); }})"
        )
        assert self.ask(held)

    def accessibility(self) -> list[dict[str, Any]]:
        """The nodes of the accessibility tree, which screen readers are given, without those that they are not."""
        nodes: list[dict[str, Any]] = self._call("Accessibility.getFullAXTree", {})["nodes"]
        return [node for node in nodes if not node["ignored"]]

    def picture(self, target: Path) -> None:
        """Write what the window shows as PNG."""
        target.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", {})["data"]))

    def _call(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return self._call_all(method, [parameters])

    def _call_all(self, method: str, each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Call with each of these parameters before the first answer is awaited; give the last answer."""
        first = self._number + 1
        session = {"sessionId": self._session} if self._session else {}
        for self._number, parameters in enumerate(each, first):
            message = {"id": self._number, "method": method, "params": parameters, **session}
            os.write(self._commands, json.dumps(message).encode() + b"\0")
        answers: dict[int, dict[str, Any]] = {}
        while len(answers) < len(each):
            answer = self._answer()
            if answer.get("id", 0) >= first:
                answers[answer["id"]] = answer
        assert not any("error" in answer for answer in answers.values()), (method, answers)
        result: dict[str, Any] = answers[self._number]["result"]
        return result

    def _answer(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select([self._answers], [], [], _SECONDS)[0], "the browser does not answer"
            read = os.read(self._answers, 1 << 16)
            assert read, "the browser has ended"
            self._rest += read
        first, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(first)
        return answer


@contextmanager
def browser_page(browser: str, profile: Path) -> Iterator[Page]:
    """A page of a browser of its own, which ends with the context.

    Args:
        browser: The program.
        profile: An empty directory for what it keeps.
    """
    (taken, commands), (answers, given) = os.pipe(), os.pipe()
    # Chromium reads commands from descriptor 3 and answers to 4.
    shell = f'exec "$@" 3<&{taken} 4>&{given}'
    started = ["bash", "-c", shell, "bash", browser, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
    process = subprocess.Popen(started, pass_fds=(taken, given), stderr=subprocess.DEVNULL)
    os.close(taken)
    os.close(given)
    try:
        yield Page(commands, answers)
    finally:
        os.close(commands)
        process.terminate()
        process.wait(_SECONDS)
        os.close(answers)
