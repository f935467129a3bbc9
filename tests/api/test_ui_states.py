"""What the page says of the server's state: changed, not in memory, lost, paused; its charts, its models, the focus."""

import json

import pytest

from bankml.measure.completions import Record
from tests.api.measured_house import paced_model
from tests.api.ui_page import IDLE, ask, begin, look_again, opened, press, said, told_instead, toy_house
from tests.engine.engine_toys import hashing

GUARDS = "['guard', 'guard-above'].map(id => document.getElementById(id).textContent)"


def recorded(house, count, rate=20):
    for number in range(count):
        house.measured._completions.record(Record(1.0 + number, "toy", 9, 0, rate + 1, 10.0, 10.0, 1000.0, "stop"))


def test_a_file_that_changed_is_told(chromium):
    house = toy_house("Oslo.")
    with house, chromium.page() as tab:
        page = opened(tab, house.url)
        house.measured._application._library.resident.verified.changed = True
        look_again(page)
        page.wait_for(f"{GUARDS}.every(each => each === '✗ changed')")
        assert "The file changed since it was verified. Nothing is answered with it." in page.text
        assert page.run("return told.textContent") == "The model's file changed since it was verified"
        ask(page, "Where?")
        assert "not the file that was verified" in said(page)[1]


def test_a_server_that_went_away_is_told_beside_the_failure(chromium):
    with chromium.page() as tab:
        with toy_house() as house:
            page = opened(tab, house.url)
        look_again(page)
        page.wait_for("about.textContent === 'The server does not answer.'")
        assert all(each.startswith("no answer since ") for each in page.run(f"return {GUARDS}"))
        assert page.run("return told.textContent") == "The server does not answer"
        assert page.run("return document.querySelector('#seen-note').textContent").startswith("no answer since ")
        ask(page, "Where?")
        assert said(page) == ["", "The server does not answer."]
        assert page.run("return spoken.textContent").startswith("The answer failed: The server does not answer.")


def test_a_pause_is_seen_and_nothing_is_said_to_be_so_meanwhile(chromium):
    slow = toy_house(hashing, model=paced_model(hashing, 0.005))
    with slow as house, chromium.page() as tab:
        page = opened(tab, house.url)
        looks = "(style => [style.color, style.backgroundColor])(getComputedStyle(pause))"
        before = page.run(f"return {looks}")
        page.run("pause.click()")
        page.wait_for(f"({looks}).join() !== {json.dumps(before)}.join()")
        assert page.run("return pause.getAttribute('aria-pressed')") == "true"
        assert all(each.startswith("as of ") for each in page.run(f"return {GUARDS}"))
        assert page.run("return document.querySelector('#seen-note').textContent").startswith("paused since ")
        begin(page, "Go on.")
        page.wait_for("document.querySelectorAll('#chart-rate .live').length === 1")
        press(page, "Escape")
        page.wait_for(IDLE)
        page.wait_for("document.querySelectorAll('#chart-rate .bar').length === 0")
        page.run("pause.click()")
        page.wait_for(f"{GUARDS}.every(each => each === '✓ verified')")
        page.wait_for("document.querySelectorAll('#chart-rate .bar').length === 1")


def test_the_bars_stay_in_their_chart(chromium):
    slow = toy_house(hashing, model=paced_model(hashing, 0.005))
    with slow as house, chromium.page() as tab:
        recorded(house, 30)
        page = opened(tab, house.url)
        left = "[...document.querySelectorAll('#chart-rate rect')].map(bar => Number(bar.getAttribute('x')))"
        assert len(page.run(f"return {left}")) == 24
        begin(page, "Go on.")
        page.wait_for("document.querySelector('#chart-rate .live') !== null")
        assert len(page.run(f"return {left}")) == 24 and min(page.run(f"return {left}")) >= 0
        press(page, "Escape")
        page.wait_for(IDLE)


def test_the_first_sample_of_memory_is_seen(chromium):
    with toy_house() as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run("pause.click()")
        boxes = (
            "[...document.querySelectorAll('#chart-memory svg > *')].map(each => each.getBoundingClientRect().width)"
        )
        assert max(page.run(f"return {boxes}.slice(0, -1)")) > 3  # the last is the ground line


def test_models_are_told_apart(chromium):
    toy = {"file": "Toy-1M-F16.gguf", "sha256": "1" * 64, "found": True, "reason": None}
    gone = {"found": False, "reason": "away.gguf is pinned, but the file is missing"}
    models = [
        {"name": "toy-1m-f16", **toy},
        {"name": "poet", "base": "toy-1m-f16", **toy},
        {"name": "away", "file": "away.gguf", "sha256": "2" * 64, **gone},
        {"name": "other", **toy, "reason": "the architecture is not played"},
    ]
    with toy_house() as house, chromium.page() as tab:
        told_instead(tab, models=models)
        page = opened(tab, house.url)
        page.wait_for("document.querySelector('#models').innerText.includes('not played here')")
        rows = page.run("return [...models.children].map(row => row.innerText.split(/\\n+/).slice(0, 2))")
        assert rows == [
            ["toy-1m-f16", "✓ resident"], ["poet", "laid over toy-1m-f16"], ["away", "file not found"],
            ["other", "not played here"],
        ]  # fmt: skip
        assert "the architecture is not played" in page.text
        assert page.run("return [...model.options].map(each => each.value)") == ["toy-1m-f16", "poet"]
        page.run("globalThis.instead.resident = null")
        look_again(page)
        page.wait_for(f"{GUARDS}.every(each => each === 'not in memory')")
        assert "no model; the next question loads one" in page.text
        assert page.complaints == []


@pytest.mark.parametrize("box", ["models", "verified"])
def test_the_focus_stays_when_another_model_is_resident(chromium, box):
    models = [{"name": name, "sha256": name[0] * 64, "found": True} for name in ("toy-1m-f16", "beta")]
    with toy_house() as house, chromium.page() as tab:
        told_instead(tab, models=models)
        page = opened(tab, house.url)
        page.run(f"document.querySelector('#{box} button').focus()")
        focused = "document.activeElement.closest('[id]').id + document.activeElement.getAttribute('aria-label')"
        before = page.run(f"return {focused}")
        change = {"resident": {"name": "beta", "expires_at": None}, "model": "beta", "model_sha256": "b" * 64}
        page.run(f"Object.assign(globalThis.instead, {json.dumps(change)})")
        look_again(page)
        page.wait_for("verified.innerText.includes('beta')")
        assert page.run(f"return {focused}") == before and before.startswith(box)


def test_an_open_answer_stays_open_and_focused_when_its_measurements_come(chromium):
    with toy_house() as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run("pause.click()")
        ask(page, "Where?")
        page.wait_for("document.querySelector('#answers summary') !== null")
        page.run("const row = document.querySelector('#answers summary'); row.click(); row.focus()")
        page.run("pause.click()")
        page.wait_for("document.querySelector('#answers').innerText.includes('first token after')")
        assert page.run("return document.activeElement.localName") == "summary"
        assert page.run("return document.querySelector('#answers details').open")
