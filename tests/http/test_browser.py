"""What a page in a real browser can do with the server, in front of a stand-in and native: only its own can."""

import contextlib
import http.server
import json
import threading

import pytest

from bankml.receipt.check import check
from tests.browser import ScriptError

CHAT = '{"messages":[{"role":"user","content":"Say hello."}],"max_tokens":4}'


@pytest.fixture(scope="module")
def elsewhere():
    """The port of an ordinary web server with an empty page."""

    class Empty(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"<!doctype html><title>elsewhere</title><body></body>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def tab(chromium):
    with chromium.page() as page:
        yield page


@pytest.fixture(params=["127.0.0.1", "evil.example"])
def page(request, tab, elsewhere):
    """A page of another origin: another port of this machine, or another name."""
    assert tab.open(f"http://{request.param}:{elsewhere}/") == 200
    return tab


def fetch(url, **options):
    return f"const answer = await fetch({json.dumps(url)}, {json.dumps(options)});"


READ = "return [answer.status, await answer.text()];"
JSON = {"content-type": "application/json"}


def test_another_origins_page_cannot_read(page, answering):
    for path in ("/health", "/props", "/v1/models", "/bankml"):
        with pytest.raises(ScriptError, match="Failed to fetch"):
            page.run(fetch(answering.url(path)) + READ)
        assert answering.news(1) == [f"GET {path} 200"], "it was asked, and the browser kept the answer to itself"
        assert page.run(fetch(answering.url(path), mode="no-cors") + READ) == [0, ""]
        answering.news(1)
    assert any("CORS" in complaint for complaint in page.complaints)


def test_another_origins_page_cannot_ask(page, answering):
    for options in (
        {"method": "POST", "headers": JSON, "body": CHAT},
        {"method": "POST", "headers": {"content-type": "text/plain", "x-api-key": "1"}, "body": CHAT},
        {"method": "DELETE"},
    ):
        with pytest.raises(ScriptError, match="Failed to fetch"):
            page.run(fetch(answering.url("/v1/chat/completions"), **options) + READ)
        assert answering.news(1) == ["OPTIONS /v1/chat/completions 405"], "nothing follows the preflight"


def test_what_needs_no_preflight_is_refused(page, answering):
    """What a page may send anywhere: three media types, none of them JSON's."""
    path = "/v1/chat/completions"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        options = {"method": "POST", "headers": {"content-type": kind}, "body": CHAT}
        with pytest.raises(ScriptError, match="Failed to fetch"):
            page.run(fetch(answering.url(path), **options) + READ)
        assert page.run(fetch(answering.url(path), mode="no-cors", **options) + READ) == [0, ""]
        assert answering.news(2) == [f"POST {path} 415"] * 2
    page.run(f"navigator.sendBeacon({json.dumps(answering.url(path))}, {json.dumps(CHAT)})")
    assert answering.news(1) == [f"POST {path} 415"]
    page.run(
        "const form = document.createElement('form');"
        f"Object.assign(form, {{method: 'post', enctype: 'text/plain', action: {json.dumps(answering.url(path))}}});"
        "document.body.append(form); form.submit()"
    )
    assert answering.news(1) == [f"POST {path} 415"]


UNTYPED = {
    "bytes": "new TextEncoder().encode(CHAT)",
    "a blob without a type": "new Blob([CHAT])",
    "a blob of octets": "new Blob([CHAT], {type: 'application/octet-stream'})",
    "a blob of json": "new Blob([CHAT], {type: 'application/json'})",
}


@pytest.mark.parametrize("name", UNTYPED)
def test_a_body_without_a_type_is_refused_from_a_page(page, answering, name):
    """A POST without a Content-Type needs no preflight: the browser's Origin and Sec-Fetch headers give it away."""
    path, body = "/v1/chat/completions", UNTYPED[name].replace("CHAT", json.dumps(CHAT))
    url = json.dumps(answering.url(path))
    for send in (
        f"await fetch({url}, {{method: 'POST', mode: 'no-cors', body: {body}}})",
        f"await fetch({url}, {{method: 'POST', mode: 'no-cors', keepalive: true, credentials: 'omit',"
        f" referrerPolicy: 'no-referrer', body: {body}}})",
        f"navigator.sendBeacon({url}, {body})",
        f"const frame = document.createElement('iframe'); frame.sandbox = 'allow-scripts';"
        f'frame.srcdoc = \'<script>fetch(\' + JSON.stringify({url}) + \', {{method: "POST", mode: "no-cors",'
        f" body: new Blob([' + JSON.stringify({json.dumps(CHAT)}) + '])}})</' + 'script>';"
        "document.body.append(frame)",
    ):
        with contextlib.suppress(ScriptError):
            page.run(send)
        told = answering.news(1)
        assert told in ([f"POST {path} 415"], [f"OPTIONS {path} 405"]), (send, told)


def test_another_origins_page_cannot_run_or_show_an_answer(page, answering):
    """No answer is a script or a picture, whatever it is asked for as."""
    for tag in ("script", "img"):
        came = page.run(
            f"const element = document.createElement('{tag}');"
            "const came = new Promise(done => { element.onload = () => done('taken');"
            " element.onerror = () => done('refused'); });"
            f"element.src = {json.dumps(answering.url('/v1/models'))}; document.head.append(element);"
            "return await came;"
        )
        assert came == "refused"
        assert answering.news(1) == ["GET /v1/models 200"]


def test_a_rebound_name_learns_nothing(chromium, answering):
    """The page's own name is 127.0.0.1's by now, so the browser thinks the server its own."""
    for name in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example"):
        with chromium.page() as page:
            assert page.open(answering.url("/health", name)) == 403
            assert page.run(fetch("/v1/models") + "return answer.status;") == 403
            asked = fetch("/v1/chat/completions", method="POST", headers=JSON, body=CHAT)
            status, said = page.run(asked + READ)
            assert status == 403 and "Host must be 127.0.0.1" in said and "receipt" not in said
        assert answering.news(3) == ["GET /health 403", "GET /v1/models 403", "POST /v1/chat/completions 403"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_the_servers_own_does_everything(chromium, answering, host):
    with chromium.page() as page:
        assert page.open(answering.url("/health", host)) == 200
        asked = fetch("/v1/chat/completions", method="POST", headers=JSON, body=CHAT)
        status, said = page.run(asked + READ)
        assert status == 200 and check(CHAT.encode(), said.encode()).ok
        body = json.dumps(json.loads(CHAT) | {"stream": True})
        asked = fetch("/v1/chat/completions", method="POST", headers=JSON, body=body)
        status, said = page.run(asked + READ)
        assert status == 200 and check(body.encode(), said.encode()).ok
    assert len(answering.news(3)) == 3
