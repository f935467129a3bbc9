"""A real browser for tests: Chromium, headless, driven by its DevTools protocol over a pipe of its own.

    def test_a_page(chromium):
        with chromium.page() as page:
            assert page.open("http://127.0.0.1:8000/") == 200
            page.run("document.querySelector('button').click()")
            page.wait_for("document.querySelector('output').textContent")

`chromium` is a fixture that every test can ask for: one browser for the run, a profile of its own for each page. It is
skipped with the reason where no Chromium is installed. BANKML_CHROMIUM names another program. The browser ends when its
pipe does, so that it does not outlive a run that is killed.

No name is looked up outside: `evil.example` and all below it are 127.0.0.1 (which is what a page that rebinds its name
makes of it), `localhost` and addresses are themselves, and every other name is unknown to the browser.
"""

import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--disable-features=Translate,OptimizationHints,MediaRouter", "--no-proxy-server",
    "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP *.evil.example 127.0.0.1, MAP * ~NOTFOUND,"
    " EXCLUDE localhost, EXCLUDE 127.0.0.1, EXCLUDE [::1]",
    "--remote-debugging-pipe",
)  # fmt: skip
WITHIN = 30.0  # seconds for anything asked of the browser, on a busy machine


class ScriptError(Exception):
    """A page's script threw; the message is the exception's text."""


class Chromium:
    """A running browser. Commands go in at its descriptor 3 and answers come from its 4, each ended by NUL."""

    def __init__(self, program: str, profile: str) -> None:
        words = [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        # The shell, because Popen gives no child the descriptors 3 and 4.
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null', *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        self._held = b""
        self._ids = itertools.count(1)
        self._events: dict[str | None, list[dict[str, Any]]] = {}

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol and its result. Events that come before it are kept, see `events`."""
        number = next(self._ids)
        command = {"id": number, "method": method, "params": parameters}
        self._process.stdin.write(json.dumps(command | ({"sessionId": session} if session else {})).encode() + b"\0")
        until = time.monotonic() + WITHIN
        while True:
            message = self._message(until, method)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._keep(message)

    def events(self, session: str) -> list[dict[str, Any]]:
        """What has happened in a tab, in order: {"method": …, "params": …}. The list goes on growing."""
        return self._events.setdefault(session, [])

    def listen(self, seconds: float) -> None:
        """Takes in one more event, if one comes within `seconds`."""
        with contextlib.suppress(TimeoutError):
            self._keep(self._message(time.monotonic() + seconds, "an event"))

    def _keep(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self._events.setdefault(message.get("sessionId"), []).append(message)

    def _message(self, until: float, awaited: str) -> dict[str, Any]:
        output = self._process.stdout
        while b"\0" not in self._held:
            if not select.select([output], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError(f"the browser gave no answer: {awaited}")
            data = output.read(1 << 16)
            if not data:
                raise RuntimeError(f"the browser ended with exit code {self._process.wait()}: {awaited}")
            self._held += data
        message, _, self._held = self._held.partition(b"\0")
        return json.loads(message)

    @contextlib.contextmanager
    def page(self) -> Iterator["Page"]:
        """An empty tab in a profile of its own, for the `with` block."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        try:
            for domain in ("Page", "Network", "Runtime", "Log"):
                self.call(f"{domain}.enable", session)
            yield Page(self, session)
        finally:
            self.call("Target.disposeBrowserContext", browserContextId=context)

    def close(self) -> None:
        with contextlib.suppress(RuntimeError, OSError, TimeoutError):
            self.call("Browser.close")
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class Page:
    """One tab. Everything else the protocol can do is `page.call("Input.insertText", text="…")` and the like."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def open(self, url: str) -> int | None:
        """Goes to `url` and waits until it is loaded. The status of the answer, None where none came."""
        seen = len(self._browser.events(self._session))
        went = self.call("Page.navigate", url=url)
        if "errorText" in went and "loaderId" not in went:
            return None
        self._await("Page.loadEventFired", seen)
        statuses = [
            event["params"]["response"]["status"]
            for event in self._browser.events(self._session)[seen:]
            if event["method"] == "Network.responseReceived" and event["params"]["type"] == "Document"
        ]
        return statuses[-1] if statuses else None

    def run(self, script: str) -> Any:
        """Runs `script` in the page as the body of an async function; what it returns, as JSON can hold it.

        Raises ScriptError where it throws.
        """
        got = self.call(
            "Runtime.evaluate",
            expression=f"(async () => {{{script}\n}})()",
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in got:
            thrown = got["exceptionDetails"]
            raise ScriptError(thrown.get("exception", {}).get("description") or thrown["text"])
        return got["result"].get("value")

    def wait_for(self, condition: str, seconds: float = WITHIN) -> Any:
        """Waits until the expression `condition` is true in the page, and gives its value."""
        until = time.monotonic() + seconds
        while not (value := self.run(f"return {condition}")):
            if time.monotonic() > until:
                raise TimeoutError(f"never came true: {condition}")
            time.sleep(0.02)
        return value

    @property
    def text(self) -> str:
        """What the page shows, as text."""
        return self.run("return document.body.innerText")

    @property
    def complaints(self) -> list[str]:
        """Uncaught exceptions, console.error and the browser's own errors (refused requests, CORS, CSP), in order."""
        found = []
        for event in self._browser.events(self._session):
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                thrown = params["exceptionDetails"]
                found.append(thrown.get("exception", {}).get("description") or thrown["text"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
                found.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
        return found

    def requested(self) -> list[str]:
        """The URL of every request the page has made over HTTP, in order."""
        events = self._browser.events(self._session)
        asked = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [one["request"]["url"] for one in asked if one["request"]["url"].startswith("http")]

    def screenshot(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_bytes(b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def _await(self, method: str, seen: int) -> None:
        until = time.monotonic() + WITHIN
        while not any(event["method"] == method for event in self._browser.events(self._session)[seen:]):
            if time.monotonic() > until:
                raise TimeoutError(f"the page did not come to {method}")
            self._browser.listen(1.0)


def program() -> str:
    """The installed Chromium; skips the test where there is none."""
    named = os.environ.get("BANKML_CHROMIUM")
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no Chromium is installed (looked for {named or ', '.join(NAMES)})")
    return found


@contextlib.contextmanager
def running() -> Iterator[Chromium]:
    """A browser with an empty profile, for the `with` block."""
    with tempfile.TemporaryDirectory(prefix="bankml-chromium-", ignore_cleanup_errors=True) as profile:
        browser = Chromium(program(), profile)
        try:
            browser.call("Browser.getVersion")
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """One browser for all tests of a run; each takes a `page()` of its own."""
    with running() as browser:
        yield browser
