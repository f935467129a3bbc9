"""The page, in a real browser: it asks, stops, checks the receipts, needs no other file and sends nothing elsewhere."""

import pytest

from tests.api.measured_house import paced_model
from tests.api.ui_page import IDLE, LAST, ask, begin, dress, opened, press, said, toy_house
from tests.engine.engine_toys import hashing

HOSTILE = "<img src=x onerror=alert(1)></textarea><script>alert(2)</script>\r\n" + "w" * 300 + " å🙂"


def test_an_answer_is_streamed_and_its_hashes_are_computed_again(chromium):
    with toy_house("Oslo is å 🙂.") as house, chromium.page() as tab:
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
        assert page.run("return keys.textContent").startswith("Enter sends")
        assert page.complaints == []
        assert {url.removeprefix(house.url) for url in page.requested()} == {
            "/bankml/ui", "/bankml", "/bankml/metrics", "/bankml/usage", "/v1/chat/completions",
        }  # fmt: skip


def test_an_answer_is_stopped_and_the_server_stops_too(chromium):
    with (
        toy_house(hashing, model=paced_model(hashing, 0.005)) as house,
        chromium.page() as tab,
        house.client() as client,
    ):
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
    ("way", "fields"),
    [
        (OTHER_TEXT, ["response_sha256", "request_sha256"]),
        (OTHER_REQUEST, ["request_sha256", "response_sha256"]),
    ],
)
def test_what_was_changed_on_its_way_is_found(chromium, way, fields):
    with toy_house("Oslo.") as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run(TAMPER % way)
        ask(page, "Where?")
        assert said(page)[1].startswith("✗ receipt does not match")
        facts = page.run(f"return [...{LAST}.querySelectorAll('dt')].map(each => each.innerText)")[:3]
        assert [each.split(",")[0] for each in facts] == [*fields, "model_sha256"]  # what is false comes first
        assert ["✗ does not match" in each for each in facts] == [True, False, False]
        assert f"receipt does not match, false is {fields[0]}" in page.run("return spoken.textContent")
        page.wait_for("document.querySelector('#answers summary .mark.bad')?.textContent === '✗ does not match'")
        assert page.complaints == []


def test_an_answer_without_its_receipt_is_not_taken_for_a_good_one(chromium):
    with toy_house("Oslo.") as house, chromium.page() as tab:
        page = opened(tab, house.url)
        cut = "const answer = await real(path, options); return new Response((await answer.text())%s, answer);"
        page.run(TAMPER % (cut % ".replace(/, \"bankml_receipt\": [{][^}]*[}]/, '')"))
        ask(page, "Where?")
        assert said(page) == ["Oslo.", "✗ no receipt came"]
    with toy_house("Oslo.") as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run(TAMPER % (cut % ".replace('data: [DONE]', '')"))
        ask(page, "Where?")
        assert said(page) == ["Oslo.", "The answer broke off before its end."]


def test_a_model_that_writes_html_writes_text(chromium):
    with toy_house(HOSTILE) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        ask(page, "<b>Where?</b>")
        assert said(page)[0] == HOSTILE and "receipt matches" in said(page)[1]
        assert page.run(f"return {LAST}.querySelector('.text').childElementCount") == 0
        for width in (390, 1280):
            dress(page, width, "light")
            assert page.run("return document.documentElement.scrollWidth") <= width
        assert page.complaints == []


def test_a_refusal_is_shown_in_the_servers_words(chromium):
    with toy_house("Oslo.") as house, chromium.page() as tab:
        page = opened(tab, house.url)
        ask(page, "x" * 5000)
        assert "exceeds the available context size" in said(page)[1]


def test_a_setting_that_cannot_be_is_pointed_at_before_anything_is_sent(chromium):
    with toy_house("Oslo.") as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run("document.querySelector('#most').value = '-7'")
        begin(page, "Where?")
        page.wait_for("document.activeElement.id === 'most'")
        assert page.run("return document.querySelectorAll('.said').length") == 0
        assert page.complaints == []


IN_VIEW = """(each => {
  const box = each.getBoundingClientRect(), talked = talk.getBoundingClientRect();
  return box.height > 0 && box.top >= Math.max(0, talked.top) && box.bottom <= Math.min(innerHeight, talked.bottom);
})"""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844), (390, 500)])
def test_what_is_false_is_in_view(chromium, width, height):
    with toy_house("O" + "slo.\n" * 60) as house, chromium.page() as tab:
        dress(tab, width, "light", height)
        page = opened(tab, house.url)
        for number in range(2):
            ask(page, f"Where? {number}")
        page.run(TAMPER % OTHER_TEXT)
        ask(page, "Where?")
        assert said(page)[1].startswith("✗ receipt does not match")
        shown = f"[...{LAST}.querySelectorAll('.after .mark, dt .mark.bad, dd .problem')]"
        assert page.run(f"return {shown}.map({IN_VIEW})") == [True, True, True]


def test_an_error_and_a_stop_are_in_view_and_the_question_comes_back(chromium):
    slow = toy_house(hashing, model=paced_model(hashing, 0.005))
    with slow as house, chromium.page() as tab:
        dress(tab, 390, "light", 844)
        page = opened(tab, house.url)
        begin(page, "Go on.\n" * 30)
        page.wait_for(f"{LAST}.querySelector('.text').textContent.length > 40")
        press(page, "Escape")
        page.wait_for(IDLE)
        assert page.run(f"return {IN_VIEW}({LAST}.querySelector('.after'))")
        ask(page, "y" * 5000)
        assert page.run(f"return {IN_VIEW}({LAST}.querySelector('.problem'))")
        assert page.run("return question.value.length") == 5000
        marked = "[...document.querySelectorAll('.said.user .after')].map(each => each.textContent)"
        assert page.run(f"return {marked}") == ["", "not answeredleft out of the conversation"]
        assert page.run("return talk.scrollWidth <= talk.clientWidth")
        assert "in the box again" in page.run("return spoken.textContent")
        page.run("question.value = ''; globalThis.sent = []")
        page.run(TAMPER % "sent.push(JSON.parse(new TextDecoder().decode(options.body))); return real(path, options);")
        begin(page, "And now?")
        page.wait_for("sent.length")
        roles = [(each["role"], each["content"][:3]) for each in page.run("return sent[0].messages")]
        assert [role for role, _ in roles] == ["user", "assistant", "user"] and roles[2][1] == "And"
        press(page, "Escape")
        page.wait_for(IDLE)


def test_a_question_that_was_stopped_before_its_first_word_leaves_what_was_typed_since(chromium):
    with toy_house("Oslo.") as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run(TAMPER % "return new Promise((_, no) => options.signal.onabort = () => no(options.signal.reason));")
        begin(page, "Where?")
        page.call("Input.insertText", text="Something else")
        press(page, "Escape")
        page.wait_for(IDLE)
        assert said(page) == ["", "stopped before its first word"]
        assert page.run("return [question.value, spoken.textContent]") == ["Something else", "Stopped."]


def test_one_who_has_scrolled_up_is_left_there(chromium):
    with toy_house("O" + "slo.\n" * 60) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        ask(page, "Where?")
        page.run("talk.scrollTop = 30")
        page.run(
            TAMPER
            % """
          const answer = await real(path, options);
          setTimeout(() => { talk.scrollTop = 30; globalThis.up = true; }, 100);
          const slow = new TransformStream({async transform(part, out) {
            while (!globalThis.up) await new Promise(then => setTimeout(then, 20));
            out.enqueue(part);
          }});
          return new Response(answer.body.pipeThrough(slow), answer);
        """
        )
        ask(page, "Where again?")
        assert said(page)[1].startswith("✓ receipt matches")
        assert page.run("return talk.scrollTop") == 30


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("throw new TypeError('Failed to fetch');", "The server does not answer."),
        (
            "return new Response(new ReadableStream({pull(to) { to.error(new TypeError('network error')); }}));",
            "The answer broke off before its end.",
        ),
        ("return new Response('data: {bad\\n\\n');", "The answer has an event in it that cannot be read."),
        ("return new Response('data: null\\n\\ndata: [DONE]\\n\\n');", "✗ no receipt came"),
        ("return new Response('<html>', {status: 502});", "The server answered 502."),
    ],
)
def test_what_went_wrong_is_said_in_a_sentence(chromium, way, words):
    with toy_house("Oslo.") as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run(TAMPER % way)
        ask(page, "Where?")
        assert said(page) == ["", words]
        page.wait_for("!document.querySelector('.waits')")
        spoken = page.run("return spoken.textContent")
        assert words.removeprefix("✗ ") in spoken and ("in the box again" in spoken) == (words[0] != "✗")


def test_what_is_written_from_right_to_left_is_shown_so(chromium):
    with toy_house("أوسلو هي عاصمة النرويج.") as house, chromium.page() as tab:
        page = opened(tab, house.url)
        ask(page, "ما هي عاصمة النرويج؟")
        ways = "[...document.querySelectorAll('.said .text')].map(each => getComputedStyle(each).direction)"
        assert page.run(f"return {ways}") == ["rtl", "rtl"]
