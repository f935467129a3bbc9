"""The page in front of llama-server: whose names, whose figures, and a model that thinks before it answers."""

import json
import threading

from tests.api.ui_page import IDLE, LAST, ask, begin, look_again, opened, said
from tests.upstream.front import House
from tests.upstream.standin import DONE, ROLE, STREAM_HEAD, TEXT, TIMINGS, chunk, delta

PAGE = "http://127.0.0.1:{}"


def thought(text):
    choice = {"finish_reason": None, "index": 0, "delta": {"reasoning_content": text}}
    return b"data: %s\n\n" % json.dumps({"choices": [choice]}).encode()


def test_it_checks_and_tells_what_it_knows(chromium, tmp_path):
    with House(tmp_path / "m.gguf") as house, chromium.page() as tab:
        page = opened(tab, PAGE.format(house.port))
        ask(page, "Where?")
        assert said(page)[0] == TEXT and said(page)[1].startswith("✓ receipt matches")
        assert page.run(f"return {LAST}.querySelector('.who').textContent") == "m.gguf"
        assert "model" not in json.loads(house.standin.chats()[0].body)
        assert page.run("return models.innerText.split(/\\n+/).slice(0, 2)") == ["m.gguf", "✓ answers here"]
        assert "the arithmetic is llama-server's" in page.text and "of this page's answers" in page.text
        page.wait_for("document.querySelectorAll('#answers summary .mark.good').length === 1")
        now = "[...document.querySelectorAll('.charts figure')].map(each => each.querySelector('.now').textContent)"
        rate, ttft, _, cached = page.run(f"return {now}")
        assert rate == "– tokens/s" and ttft != "– ms" and cached == "93 %"  # 14 of 15 tokens
        assert page.complaints == []
        status, _, metrics = house.ask(path="/metrics")
        assert status == 200 and b"bankml_time_to_first_token_seconds_count 1\n" in metrics


def test_a_file_that_changed_is_told(chromium, tmp_path):
    with House(tmp_path / "m.gguf") as house, chromium.page() as tab:
        assert json.loads(house.ask(path="/bankml")[2])["unchanged"] is True
        page = opened(tab, PAGE.format(house.port))
        house.path.touch()
        look_again(page)
        page.wait_for("document.querySelector('#guard').textContent === '✗ changed'")
        assert json.loads(house.ask(path="/bankml")[2])["unchanged"] is False
        ask(page, "Where?")
        assert "changed since it was verified" in said(page)[1]


def test_what_a_model_thinks_is_shown_when_asked_for_and_is_no_part_of_its_answer(chromium, tmp_path):
    thinks = [ROLE, *(thought(f"step {number}, ") for number in range(20))]
    ends = [delta("Oslo."), delta(None, "stop", b"," + TIMINGS), DONE]
    may_end = threading.Event()

    def chat(asked, write):
        write(STREAM_HEAD + b"".join(map(chunk, thinks)))
        may_end.wait(10)
        write(b"".join(map(chunk, ends)) + chunk(b""))

    with House(tmp_path / "m.gguf", chat=chat) as house, chromium.page() as tab:
        page = opened(tab, PAGE.format(house.port))
        begin(page, "Where?")
        page.wait_for("document.querySelector('.thought')?.textContent.includes('step 19')")
        assert page.run(f"return {LAST}.querySelector('summary').textContent") == "Thinking…"
        assert page.run("return keys.textContent").startswith("Thinking, ")
        assert not page.run(f"return {LAST}.querySelector('details').open")
        may_end.set()
        page.wait_for(IDLE)
        assert said(page)[0] == "Oslo." and said(page)[1].startswith("✓ receipt matches")
        assert page.run(f"return {LAST}.querySelector('summary').textContent") == "What it thought"
