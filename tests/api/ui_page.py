"""The page at /bankml/ui as a test uses it: a server of the toy model, and what a person does and sees."""

import json

from tests.api.api_toys import toy_ollama
from tests.api.measured_house import House

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}
LOADED = "document.querySelector('#guard').textContent === '✓ verified'"
IDLE = "document.querySelector('#stop').disabled"
LAST = "[...document.querySelectorAll('.said.model')].at(-1)"


def toy_house(answer="Oslo.", **parts):
    """A server whose toy model gives `answer`."""
    return House(toy_ollama(answer, **parts)[0])


def opened(page, url):
    """The page at `url`, once it has shown what is verified."""
    assert page.open(f"{url}/bankml/ui") == 200
    page.wait_for(LOADED)
    return page


def press(page, key, shift=False):
    common = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key], "modifiers": 8 if shift else 0}
    text = {"text": "\r"} if key == "Enter" else {}
    page.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **common, **text)
    page.call("Input.dispatchKeyEvent", type="keyUp", **common)


def ask(page, question):
    """Types a question and sends it; returns when its answer has ended."""
    begin(page, question)
    page.wait_for(IDLE)


def begin(page, question):
    page.run("document.querySelector('#question').focus()")
    page.call("Input.insertText", text=question)
    press(page, "Enter")


def said(page):
    """The last answer: its text and what stands below it."""
    return page.run(f"const all = {LAST}; return ['.text', '.after'].map(part => all.querySelector(part).textContent)")


def dress(page, width, scheme, height=900):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    page.call("Emulation.setDeviceMetricsOverride", **size)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


def look_again(page):
    """The page asks the server now what it asks every one or two seconds."""
    page.run("document.dispatchEvent(new Event('visibilitychange'))")


def told_instead(tab, **fields):
    """GET /bankml will tell `fields` instead of its own, and `globalThis.instead` further ones."""
    script = f"""
        const real = window.fetch;
        globalThis.instead = {json.dumps(fields)};
        window.fetch = async (path, options) => {{
            const answer = await real(path, options);
            return path === '/bankml' ? Response.json({{...await answer.json(), ...globalThis.instead}}) : answer;
        }};
    """
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=script)
