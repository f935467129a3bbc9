"""A page of a listed origin in a real browser: it asks with a key, reads a stream, and one of another origin cannot."""

import json

import pytest

from bankml.http.api_keys import ApiKeys
from bankml.http.cors import AllowedOrigins
from tests.browser import ScriptError
from tests.http.conftest import running
from tests.http.test_browser import elsewhere, tab

__all__ = ["elsewhere", "tab"]  # fixtures

HEADERS = {"content-type": "application/json", "authorization": "Bearer key", "x-stainless-os": "Linux"}


@pytest.fixture(scope="module")
def allowing(elsewhere):
    origins = AllowedOrigins([f"http://127.0.0.1:{elsewhere}"])
    with running(origins=origins, api_keys=ApiKeys(["key"])) as served:
        yield served


def fetched(page, port, headers=HEADERS):
    url, asked = f"http://127.0.0.1:{port}/v1/chat/completions", {"method": "POST", "headers": headers, "body": "{}"}
    script = f"const answer = await fetch({json.dumps(url)}, {json.dumps(asked)});"
    return page.run(script + "return [answer.status, await answer.text()];")


def test_a_listed_origins_page_asks_and_reads(tab, elsewhere, allowing):
    assert tab.open(f"http://127.0.0.1:{elsewhere}/") == 200
    status, text = fetched(tab, allowing.listening.gateway[1])
    assert status == 200 and text
    status, text = fetched(tab, allowing.listening.gateway[1], {**HEADERS, "authorization": "Bearer other"})
    assert status == 401 and "Invalid API Key" in text


def test_another_origins_page_cannot(tab, elsewhere, allowing):
    before = len(allowing.trial.requests)
    assert tab.open(f"http://evil.example:{elsewhere}/") == 200
    with pytest.raises(ScriptError, match="Failed to fetch"):
        fetched(tab, allowing.listening.gateway[1])
    assert len(allowing.trial.requests) == before, "the preflight was refused"
