"""The page while the server changes under it: files that come, go and change, refusals, a server that hangs."""

import json

from bankml.api.routes import Serving, build_application
from bankml.gate.verify import record
from bankml.library.load import LoadOptions
from tests.api.measured_house import House
from tests.api.ui_page import LAST, ask, begin, look_again, opened, press, said, toy_house
from tests.end_to_end import tiny
from tests.library.folders import make_odd
from tests.tiny_model import tiny_model

ROWS = "[...models.children].map(row => [...row.querySelectorAll('.name, .mark')].map(e => e.textContent).join(': '))"
CHOICES = "[...model.options].map(each => each.textContent)"


def write(path, name="tiny-qwen3-q2_0"):
    tiny.write(path, next(model for model in tiny.MODELS if model.name == name))


def rows(page, *expected):
    page.wait_for(f"({ROWS}).join() === {json.dumps(','.join(expected))}")


def registry_house(folder):
    return House(build_application(tiny_model(folder), LoadOptions(256, 1), Serving(registry=str(folder))))


def test_models_that_come_change_and_go_are_seen_without_a_reload(chromium, tmp_path):
    with registry_house(tmp_path) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        rows(page, "tiny: ✓ resident")
        other = tmp_path / "other.gguf"
        write(other)
        record(other, tmp_path / "other.FORK.json")
        rows(page, "tiny: ✓ resident", "other")
        assert page.run(f"return {CHOICES}") == ["tiny", "other"]
        make_odd(other)
        rows(page, "tiny: ✓ resident", "other: not played here")
        assert "tokenizer.ggml.pre: unsupported pre-tokenizer 'pluto'" in page.text and page.run(
            f"return {CHOICES}"
        ) == ["tiny"]
        other.unlink()
        rows(page, "tiny: ✓ resident", "other: file not found")
        (tmp_path / "other.FORK.json").unlink()
        rows(page, "tiny: ✓ resident")
        assert page.complaints == []


def test_a_refused_verification_is_told_where_what_was_verified_is(chromium, tmp_path):
    with registry_house(tmp_path) as house, chromium.page() as tab:
        other = tmp_path / "other.gguf"
        write(other)
        record(other, tmp_path / "other.FORK.json")
        page = opened(tab, house.url)
        whole = other.read_bytes()
        other.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        page.run("model.value = 'other'")
        ask(page, "Who?")
        page.wait_for("document.querySelector('#guard').textContent === '✗ refused'")
        sentence = said(page)[1]
        assert (
            "other.gguf" in sentence and page.run("return verified.querySelector('.problem').textContent") == sentence
        )
        rows(page, "tiny", "other: ✗ refused")
        other.write_bytes(whole)
        ask(page, "Who?")
        rows(page, "tiny", "other: ✓ resident")
        assert page.run("return verified.querySelector('.problem')") is None


def test_a_resident_model_whose_file_changed_is_not_called_resident(chromium, tmp_path):
    with registry_house(tmp_path) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        (tmp_path / "tiny.gguf").touch()
        rows(page, "tiny: ✗ changed")
        (tmp_path / "tiny.gguf").unlink()
        page.wait_for("document.querySelector('#guard').textContent === '✗ changed'")
        rows(page, "tiny: ✗ changed")


CLOCKWORK = """
globalThis.beat = null;
globalThis.every = globalThis.patience = 0;
window.setInterval = (beat, every) => Object.assign(globalThis, {beat, every});
const timeout = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = patience => { globalThis.patience = patience; return timeout(patience); };
const real = window.fetch;
globalThis.asked = 0;
globalThis.hangs = false;
window.fetch = (path, options) => {
  globalThis.asked += 1;
  if (!globalThis.hangs) return real(path, options);
  return new Promise((_, no) => options.signal.addEventListener('abort', () => no(options.signal.reason)));
};
"""


def test_a_server_that_hangs_is_told_within_three_seconds_and_found_again(chromium):
    with toy_house("Oslo.") as house, chromium.page() as tab:
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=CLOCKWORK)
        page = opened(tab, house.url)
        assert page.run("return every + patience") <= 3000
        begin(page, "Where?")
        page.wait_for(f"{LAST}?.querySelector('.after').textContent.startsWith('✓')")
        page.run("question.focus()")
        page.call("Input.insertText", text="And when")
        page.run("hangs = true; beat()")
        page.wait_for("about.textContent === 'The server does not answer.'")
        assert page.run("return keys.textContent") == "The server does not answer; what is typed stays here."
        press(page, "Enter")
        look_again(page)
        page.wait_for("keys.textContent === 'The server does not answer; the question waits.'")
        press(page, "Escape")
        page.wait_for("keys.textContent === 'The server does not answer; what is typed stays here.'")
        assert page.run("return question.value") == "And when"
        page.run("hangs = false; beat()")
        page.wait_for("document.querySelector('#guard').textContent === '✓ verified'")
        assert page.run("return told.textContent") == "The server answers again"
        assert page.run("return [keys.textContent.slice(0, 5), question.value]") == ["Enter", "And when"]
        assert page.complaints == []


def test_an_answer_that_comes_after_a_later_one_is_no_news(chromium):
    with toy_house("Oslo.") as house, chromium.page() as tab:
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=CLOCKWORK)
        page = opened(tab, house.url)
        page.run(
            "hangs = true; beat(); hangs = false; beat(); await new Promise(then => setTimeout(then, patience + 100))"
        )
        assert page.run("return [guard.textContent, told.textContent]") == ["✓ verified", ""]


def test_it_asks_at_most_twice_a_second_and_not_at_all_where_nobody_looks(chromium):
    with toy_house("Oslo.") as house, chromium.page() as tab:
        tab.call("Page.addScriptToEvaluateOnNewDocument", source=CLOCKWORK)
        page = opened(tab, house.url)
        beats = "for (let at = 0; at < 8; at += 1) beat(); return asked - before"
        assert page.run(f"const before = asked; {beats}") * 1000 <= 2 * 8 * page.run("return every")
        page.run("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        assert page.run(f"const before = asked; {beats}") == 0
