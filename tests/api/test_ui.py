"""The page, in a real browser: it asks, stops, checks the receipts, needs no other file and sends nothing elsewhere."""

import json
import re
import struct
from itertools import product

import pytest

from bankml.api.ui import page as ui
from tests.api.api_toys import toy_application
from tests.api.measured_house import House, paced_model
from tests.engine.engine_toys import hashing
from tests.gateway.front import House as FrontHouse
from tests.gateway.standin import TEXT

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}
LOADED = "document.querySelector('#guard').textContent === '✓ verified'"
IDLE = "document.querySelector('#stop').disabled"
LAST = "[...document.querySelectorAll('.said.model')].at(-1)"
HOSTILE = "<img src=x onerror=alert(1)></textarea><script>alert(2)</script>\r\n" + "w" * 300 + " å🙂"


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


def test_an_answer_is_streamed_and_its_hashes_are_computed_again(chromium):
    with House(toy_application("Oslo is å 🙂.")) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        assert "toy-1m-f16" in page.text and "/models/FORK.json" in page.text
        ask(page, "Where?")
        text, after = said(page)
        assert text == "Oslo is å 🙂." and after.startswith("✓ receipt matches")
        facts = page.run(f"return [...{LAST}.querySelectorAll('dt .mark')].map(mark => mark.textContent)")
        assert facts == ["✓ matches", "✓ matches", "✓ is a verified file's"]
        ask(page, "And then?")
        assert said(page)[1].startswith("✓ receipt matches")
        page.wait_for("document.querySelectorAll('#answers summary .mark.good').length === 2")
        page.wait_for("document.querySelector('#seen-note').textContent === '2 completions'")
        assert page.complaints == []
        assert {url.removeprefix(house.url) for url in page.requested()} == {
            "/bankml/ui", "/bankml", "/bankml/metrics", "/bankml/usage", "/v1/models", "/v1/chat/completions",
        }  # fmt: skip


def test_an_answer_is_stopped_and_the_server_stops_too(chromium):
    application = toy_application(hashing, model=paced_model(hashing, 0.005))
    with House(application) as house, chromium.page() as tab, house.client() as client:
        page = opened(tab, house.url)
        page.run("globalThis.told = 0; new MutationObserver(() => told++).observe(spoken, {childList: true})")
        begin(page, "Go on for ever.")
        page.wait_for(f"{LAST}.querySelector('.text').textContent.length > 40")
        press(page, "Escape")
        page.wait_for(IDLE)
        text, after = said(page)
        assert len(text) > 40 and after.startswith("stopped: no receipt")
        assert page.run("return told") <= 3  # a screen reader is told of beginning and end, not of every token
        page.wait_for("document.querySelector('#answers')?.textContent.includes('stopped, no receipt')")
        assert client.get("/bankml/metrics")["completions"][0]["finish"] == "cancelled"
        assert page.complaints == []


TAMPER = """
const real = window.fetch;
window.fetch = async (path, options) => {
  if (path !== '/v1/chat/completions') return real(path, options);
  %s
};
"""
OTHER_TEXT = """
  const answer = await real(path, options);
  return new Response((await answer.text()).replace('"content": "O"', '"content": "o"'), answer);
"""
OTHER_REQUEST = """
  return real(path, {...options, body: new TextDecoder().decode(options.body).replace('Where?', 'There?')});
"""


@pytest.mark.parametrize(
    ("way", "marks"),
    [
        (OTHER_TEXT, ["✓ matches", "✗ does not match", "✓ is a verified file's"]),
        (OTHER_REQUEST, ["✗ does not match", "✓ matches", "✓ is a verified file's"]),
    ],
)
def test_what_was_changed_on_its_way_is_found(chromium, way, marks):
    with House(toy_application("Oslo.")) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run(TAMPER % way)
        ask(page, "Where?")
        assert said(page)[1].startswith("✗ receipt does not match")
        assert page.run(f"return [...{LAST}.querySelectorAll('dt .mark')].map(mark => mark.textContent)") == marks
        assert "receipt does not match" in page.run("return spoken.textContent")
        page.wait_for("document.querySelector('#answers summary .mark.bad')?.textContent === '✗ does not match'")
        assert page.complaints == []


def test_an_answer_without_its_receipt_is_not_taken_for_a_good_one(chromium):
    with House(toy_application("Oslo.")) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        cut = "const answer = await real(path, options); return new Response((await answer.text())%s, answer);"
        page.run(TAMPER % (cut % ".replace(/data: .\"bankml_receipt.*\\n\\n/, '')"))
        ask(page, "Where?")
        assert said(page) == ["Oslo.", "✗ no receipt came"]
    with House(toy_application("Oslo.")) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run(TAMPER % (cut % ".replace('data: [DONE]', '')"))
        ask(page, "Where?")
        assert said(page) == ["Oslo.", "the answer broke off before its end"]


def test_a_model_that_writes_html_writes_text(chromium):
    with House(toy_application(HOSTILE)) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        ask(page, "<b>Where?</b>")
        assert said(page)[0] == HOSTILE and "receipt matches" in said(page)[1]
        assert page.run(f"return {LAST}.querySelector('.text').childElementCount") == 0
        for width in (390, 1280):
            dress(page, width, "light")
            assert page.run("return document.documentElement.scrollWidth") <= width
        assert page.complaints == []


def test_the_policy_holds(chromium):
    with House() as house, House() as other, chromium.page() as tab:
        page = opened(tab, house.url)
        listening = "addEventListener('securitypolicyviolation', event => broken.push(event.violatedDirective))"
        page.run(f"globalThis.broken = []; {listening}")
        got = page.run(f"""
            const script = document.createElement('script');
            script.textContent = 'globalThis.ran = true';
            document.body.append(script);
            document.body.setAttribute('style', 'color: red');
            document.body.append(Object.assign(new Image(), {{src: '{other.url}/x.png'}}));
            const reached = await fetch('{other.url}/bankml', {{mode: 'no-cors'}}).then(() => true, () => false);
            return [reached, globalThis.ran === true];
        """)
        assert got == [False, False]
        page.wait_for("broken.length >= 4")
        assert {"connect-src", "script-src-elem", "style-src-attr", "img-src"} <= set(page.run("return broken"))
        assert other.log.getvalue() == ""


def test_everything_can_be_done_from_the_keyboard(chromium):
    application = toy_application(hashing, model=paced_model(hashing, 0.005))
    with House(application) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.wait_for("document.querySelector('#model').value")
        page.run("document.querySelector('form details').open = true")
        met = []
        while (focused := page.run("return document.activeElement.id || document.activeElement.textContent")) != "seed":
            if met or focused:
                outline = page.run("return getComputedStyle(document.activeElement).outlineStyle")
                assert focused not in met[1:] and (not met or outline == "solid"), (met, focused)
                met.append(focused)
            press(page, "Tab")
        order = ["Go to the chat", "pause", "theme", "anew", "talk", "question", "send", "model", "system"]
        assert [each for each in met if each in order] == order
        press(page, "Tab", shift=True)
        page.run("document.querySelector('#question').focus()")
        page.call("Input.insertText", text="one")
        press(page, "Enter", shift=True)
        page.call("Input.insertText", text="two")
        assert page.run("return document.querySelector('#question').value") == "one\ntwo"
        press(page, "Enter")
        page.wait_for(f"{LAST}?.querySelector('.text').textContent.length > 5")
        press(page, "Tab")
        assert page.run("return document.activeElement.id") == "stop"
        press(page, "Enter")
        page.wait_for(IDLE)
        assert page.run("return document.activeElement.id") == "question"


def test_every_control_has_a_name(chromium):
    with House() as house, chromium.page() as tab:
        page = opened(tab, house.url)
        ask(page, "Where?")
        page.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        nodes = page.call("Accessibility.getFullAXTree")["nodes"]
        roles = ("button", "textbox", "combobox", "spinbutton", "image", "region", "link")
        named = [(node["role"]["value"], node["name"]["value"]) for node in nodes if node["role"]["value"] in roles]
        assert all(name for _, name in named), named
        assert ("button", "Copy the model's sha256") in named and ("textbox", "Message") in named
        assert sum(role == "image" for role, _ in named) == 4


def test_the_look_is_the_systems_until_another_is_chosen(chromium):
    ground = "getComputedStyle(document.body).backgroundColor"
    with House() as house, chromium.page() as tab:
        dress(tab, 1280, "light")
        page = opened(tab, house.url)
        light = page.run(f"return {ground}")
        dress(page, 1280, "dark")
        dark = page.run(f"return {ground}")
        assert light != dark
        page.run("theme.click()")
        assert (page.run("return theme.textContent"), page.run(f"return {ground}")) == ("Theme: light", light)
        opened(page, house.url)
        assert page.run(f"return {ground}") == light
        page.run("theme.click()")
        dress(page, 1280, "light")
        assert page.run(f"return {ground}") == dark


@pytest.mark.parametrize(("width", "scheme"), list(product((1280, 390, 320), ("light", "dark"))))
def test_nothing_is_wider_than_the_screen(chromium, width, scheme, tmp_path):
    with House(toy_application("Oslo is the capital of Norway.")) as house, chromium.page() as tab:
        dress(tab, width, scheme)
        page = opened(tab, house.url)
        ask(page, "What is the capital of Norway?")
        page.run("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert page.run("return document.documentElement.scrollWidth") <= width
        beyond = page.run("""return [...document.querySelectorAll('main *')].filter(each => {
            const box = each.getBoundingClientRect();
            return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5);
        }).map(each => each.outerHTML.slice(0, 80))""")
        assert beyond == []
        page.screenshot(tmp_path / "page.png")
        assert struct.unpack(">II", (tmp_path / "page.png").read_bytes()[16:24]) == (width, 900)
        assert page.complaints == []


def test_in_front_of_llama_server_it_checks_and_says_that_nothing_is_measured(chromium, tmp_path):
    with FrontHouse(tmp_path / "m.gguf") as house, chromium.page() as tab:
        page = opened(tab, f"http://127.0.0.1:{house.port}")
        ask(page, "Where?")
        assert said(page)[0] == TEXT and said(page)[1].startswith("✓ receipt matches")
        assert "llama-server's answers are not measured" in page.text
        assert "the arithmetic is llama-server's" in page.text
        page.wait_for("document.querySelectorAll('#answers summary .mark.good').length === 1")
        assert page.complaints == []


def test_models_that_are_not_in_memory_or_not_found_are_told_apart(chromium):
    models = [
        {"name": "toy-1m-f16", "file": "Toy-1M-F16.gguf", "sha256": "1" * 64, "found": True},
        {"name": "poet", "base": "toy-1m-f16", "file": "Toy-1M-F16.gguf", "sha256": "1" * 64, "found": True},
        {"name": "away", "file": "away.gguf", "sha256": "2" * 64, "found": False},
    ]
    told = json.dumps({"resident": None, "models": models})
    script = f"""
        const real = window.fetch;
        window.fetch = async (path, options) => {{
            const answer = await real(path, options);
            return path === '/bankml' ? Response.json({{...await answer.json(), ...{told}}}) : answer;
        }};
    """
    with House() as house, chromium.page() as tab:
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=script)
        page = opened(tab, house.url)
        rows = page.run("return [...models.children].map(row => row.innerText.split(/\\n+/).slice(0, 2))")
        assert rows == [["toy-1m-f16", "1" * 64], ["poet", "laid over toy-1m-f16"], ["away", "file not found"]]
        assert "no model; the next question loads one" in page.text
        assert page.run("return [...model.options].map(each => each.value)") == ["toy-1m-f16", "poet"]
        assert page.complaints == []


def test_a_server_that_went_away_is_told(chromium):
    with chromium.page() as tab:
        with House() as house:
            page = opened(tab, house.url)
        page.wait_for("about.textContent === 'The server does not answer.'")
        ask(page, "Where?")
        assert said(page)[0] == "" and said(page)[1]


def test_a_refusal_is_shown_in_the_servers_words(chromium):
    with House(toy_application("Oslo.")) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        ask(page, "x" * 5000)
        assert "exceeds the available context size" in said(page)[1]


def test_a_setting_that_cannot_be_is_pointed_at_before_anything_is_sent(chromium):
    with House(toy_application("Oslo.")) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run("document.querySelector('#most').value = '-7'")
        begin(page, "Where?")
        page.wait_for("document.activeElement.id === 'most'")
        assert page.run("return document.querySelectorAll('.said').length") == 0
        assert page.complaints == []


# ---- without a browser


def test_the_file_needs_no_other():
    text = ui.FILE.read_text()
    assert set(re.findall(r"https?://[^'\" ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<[^>]+\s(?:on\w+|style)=|innerHTML|outerHTML|insertAdjacentHTML|\beval\b|\r", text)


def test_the_headers_hold_the_page_to_itself():
    with House() as house, house.client() as client:
        _, headers, body = client.ask("GET", "/bankml/ui")
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy.pop("script-src").startswith("'sha256-") and policy.pop("style-src").startswith("'sha256-")
    assert policy.pop("img-src") == "data:" and policy.pop("connect-src") == "'self'"
    assert policy == dict.fromkeys(("default-src", "base-uri", "form-action", "frame-ancestors"), "'none'")
    assert headers["content-type"] == "text/html; charset=utf-8" and body == ui.FILE.read_bytes()
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """As WCAG 2 defines it."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_and_controls_stand_out_enough():
    rules = re.findall(r"\{([^{}]*--ground: [^{}]*)\}", ui.FILE.read_text())
    looks = [dict(re.findall(r"--([\w-]+): (#\w{6})", rule)) for rule in rules]
    assert len(looks) == 3 and looks[1] == looks[2]
    for look in looks:
        grounds = ("ground", "card", "sunk")
        texts = [*product(("ink", "quiet", "good", "bad"), grounds), ("ink", "good-ground")]
        texts += [("good", "good-ground"), ("bad", "bad-ground"), ("on-good", "good")]
        found = {(text, ground): contrast(look[text], look[ground]) for text, ground in texts}
        assert {pair: ratio for pair, ratio in found.items() if ratio < 4.5} == {}
        assert contrast(look["control"], look["card"]) >= 3
