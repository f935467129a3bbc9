"""What a page in a real browser can do with the server, in front of a stand-in and native: only its own can."""

import contextlib
import http.server
import json
import subprocess
import sys
import threading
import time

import pytest

from bankml.receipt.check import check
from tests.browser import ScriptError
from tests.end_to_end.servers import free_port, waiting
from tests.gateway.front import House
from tests.tiny_model import tiny_model

CHAT = '{"messages":[{"role":"user","content":"Say hello."}],"max_tokens":4}'


class Served:
    """A server's port and its log."""

    def __init__(self, port, log):
        self.port = port
        self._log = log
        self._seen = 0

    def url(self, path, host="127.0.0.1"):
        return f"http://{host}:{self.port}{path}"

    def news(self, count):
        """The log's next `count` lines, without times: method, path, status."""
        until = time.monotonic() + 10
        while len(lines := self._requests()) < self._seen + count and time.monotonic() < until:
            time.sleep(0.01)
        new, self._seen = lines[self._seen :], len(lines)
        return [" ".join(line.split()[2:5]) for line in new]

    def _requests(self):
        return [line for line in self._log().splitlines() if " gateway " in line and "/favicon.ico" not in line]


@contextlib.contextmanager
def in_front(folder):
    with House(folder / "m.gguf") as house:
        yield Served(house.port, house.log.getvalue)


@contextlib.contextmanager
def native(folder):
    model, log, ports = tiny_model(folder).path, folder / "log", (free_port(), free_port())
    addresses = [f"--{name}=127.0.0.1:{port}" for name, port in zip(("listen", "upstream"), ports, strict=True)]
    words = [sys.executable, "-m", "bankml", "serve", model, "--native", "--ctx=256", "--threads=1", *addresses]
    with open(log, "wb") as out, subprocess.Popen(words, stderr=out) as process:
        try:
            waiting(ports[0], process)
            served = Served(ports[0], log.read_text)
            served.news(1)
            yield served
        finally:
            process.terminate()


@pytest.fixture(scope="module", params=[in_front, native])
def served(request, tmp_path_factory):
    with request.param(tmp_path_factory.mktemp("served")) as served:
        yield served


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


@pytest.fixture(params=["127.0.0.1", "evil.example"])
def page(request, chromium, elsewhere):
    """A page of another origin: another port of this machine, or another name."""
    with chromium.page() as page:
        assert page.open(f"http://{request.param}:{elsewhere}/") == 200
        yield page


def fetch(url, **options):
    return f"const answer = await fetch({json.dumps(url)}, {json.dumps(options)});"


READ = "return [answer.status, await answer.text()];"
JSON = {"content-type": "application/json"}


def test_another_origins_page_cannot_read(page, served):
    for path in ("/health", "/props", "/v1/models", "/bankml"):
        with pytest.raises(ScriptError, match="Failed to fetch"):
            page.run(fetch(served.url(path)) + READ)
        assert served.news(1) == [f"GET {path} 200"], "it was asked, and the browser kept the answer to itself"
        assert page.run(fetch(served.url(path), mode="no-cors") + READ) == [0, ""]
        served.news(1)
    assert any("CORS" in complaint for complaint in page.complaints)


def test_another_origins_page_cannot_ask(page, served):
    for options in (
        {"method": "POST", "headers": JSON, "body": CHAT},
        {"method": "POST", "headers": {"content-type": "text/plain", "x-api-key": "1"}, "body": CHAT},
        {"method": "DELETE"},
    ):
        with pytest.raises(ScriptError, match="Failed to fetch"):
            page.run(fetch(served.url("/v1/chat/completions"), **options) + READ)
        assert served.news(1) == ["OPTIONS /v1/chat/completions 405"], "the preflight is refused, and nothing follows"


def test_what_needs_no_preflight_is_refused(page, served):
    """What a page may send anywhere: three media types, none of them JSON's."""
    path = "/v1/chat/completions"
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        options = {"method": "POST", "headers": {"content-type": kind}, "body": CHAT}
        with pytest.raises(ScriptError, match="Failed to fetch"):
            page.run(fetch(served.url(path), **options) + READ)
        assert page.run(fetch(served.url(path), mode="no-cors", **options) + READ) == [0, ""]
        assert served.news(2) == [f"POST {path} 415"] * 2
    page.run(f"navigator.sendBeacon({json.dumps(served.url(path))}, {json.dumps(CHAT)})")
    assert served.news(1) == [f"POST {path} 415"]
    page.run(
        "const form = document.createElement('form');"
        f"Object.assign(form, {{method: 'post', enctype: 'text/plain', action: {json.dumps(served.url(path))}}});"
        "document.body.append(form); form.submit()"
    )
    assert served.news(1) == [f"POST {path} 415"]


def test_another_origins_page_cannot_run_or_show_an_answer(page, served):
    """No answer is a script or a picture, whatever it is asked for as."""
    for tag in ("script", "img"):
        came = page.run(
            f"const element = document.createElement('{tag}');"
            "const came = new Promise(done => { element.onload = () => done('taken');"
            " element.onerror = () => done('refused'); });"
            f"element.src = {json.dumps(served.url('/v1/models'))}; document.head.append(element);"
            "return await came;"
        )
        assert came == "refused"
        assert served.news(1) == ["GET /v1/models 200"]


def test_a_rebound_name_learns_nothing(chromium, served):
    """The page's own name is 127.0.0.1's by now, so the browser thinks the server its own."""
    for name in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example"):
        with chromium.page() as page:
            assert page.open(served.url("/health", name)) == 403
            assert page.run(fetch("/v1/models") + "return answer.status;") == 403
            asked = fetch("/v1/chat/completions", method="POST", headers=JSON, body=CHAT)
            status, said = page.run(asked + READ)
            assert status == 403 and "Host must be 127.0.0.1" in said and "receipt" not in said
        assert served.news(3) == ["GET /health 403", "GET /v1/models 403", "POST /v1/chat/completions 403"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_the_servers_own_does_everything(chromium, served, host):
    with chromium.page() as page:
        assert page.open(served.url("/health", host)) == 200
        asked = fetch("/v1/chat/completions", method="POST", headers=JSON, body=CHAT)
        status, said = page.run(asked + READ)
        assert status == 200 and check(CHAT.encode(), said.encode()).ok
        body = json.dumps(json.loads(CHAT) | {"stream": True})
        asked = fetch("/v1/chat/completions", method="POST", headers=JSON, body=body)
        status, said = page.run(asked + READ)
        assert status == 200 and check(body.encode(), said.encode()).ok
    assert len(served.news(3)) == 3
