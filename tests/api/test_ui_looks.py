"""How the page looks and is used: from the keyboard, by a screen reader, on every width, and held to itself."""

import re
import struct
from itertools import product

import pytest

from bankml.api.ui import page as ui
from tests.api.measured_house import House, paced_model
from tests.api.ui_page import IDLE, LAST, ask, dress, opened, press, told_instead, toy_house
from tests.engine.engine_toys import hashing


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
    with toy_house(hashing, model=paced_model(hashing, 0.005)) as house, chromium.page() as tab:
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
    with toy_house() as house, chromium.page() as tab:
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
    with toy_house() as house, chromium.page() as tab:
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
    with toy_house("Oslo is the capital of Norway.") as house, chromium.page() as tab:
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


def test_on_a_small_screen_what_comes_next_stands_below(chromium):
    models = [{"name": f"model-{number}", "sha256": f"{number}" * 64, "found": True} for number in range(8)]
    with toy_house() as house, chromium.page() as tab:
        told_instead(tab, models=models)
        dress(tab, 390, "light", 844)
        page = opened(tab, house.url)
        tops = page.run("return [...document.querySelectorAll('.card')].map(card => card.getBoundingClientRect().top)")
        assert len(tops) == 5 and tops == sorted(tops)
        assert page.run("return models.children.length") == 8
        assert page.run("return models.scrollHeight <= models.clientHeight")


def test_without_its_script_the_page_says_where_else_to_look(chromium):
    with toy_house() as house, chromium.page() as tab:
        tab.call("Emulation.setScriptExecutionDisabled", value=True)
        assert tab.open(f"{house.url}/bankml/ui") == 200
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
        assert "GET /bankml tells what was verified" in tab.text


# ---- without a browser


def test_the_file_needs_no_other():
    text = ui.load().body.decode()
    assert set(re.findall(r"https?://[^'\" ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<[^>]+\s(?:on\w+|style)=|innerHTML|outerHTML|insertAdjacentHTML|\beval\b|\r", text)


def test_the_headers_hold_the_page_to_itself():
    with House() as house, house.client() as client:
        _, headers, body = client.ask("GET", "/bankml/ui")
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy.pop("script-src").startswith("'sha256-") and policy.pop("style-src").startswith("'sha256-")
    assert policy.pop("img-src") == "data:" and policy.pop("connect-src") == "'self'"
    assert policy == dict.fromkeys(("default-src", "base-uri", "form-action", "frame-ancestors"), "'none'")
    assert headers["content-type"] == "text/html; charset=utf-8" and body == ui.load().body
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
    rules = re.findall(r"\{([^{}]*--ground: [^{}]*)\}", ui.load().body.decode())
    looks = [dict(re.findall(r"--([\w-]+): (#\w{6})", rule)) for rule in rules]
    assert len(looks) == 3 and looks[1] == looks[2]
    for look in looks:
        grounds = ("ground", "card", "sunk")
        texts = [*product(("ink", "quiet", "good", "bad"), grounds), ("ink", "good-ground")]
        texts += [("good", "good-ground"), ("bad", "bad-ground"), ("on-good", "good")]
        found = {(text, ground): contrast(look[text], look[ground]) for text, ground in texts}
        assert {pair: ratio for pair, ratio in found.items() if ratio < 4.5} == {}
        assert contrast(look["control"], look["card"]) >= 3
