"""The page verifies the signatures of its answers with WebCrypto, and shows by which key they are."""

import pytest

from bankml.receipt.issuer import Issuer
from bankml.signing import ed25519
from bankml.signing.keys import SigningKey
from tests.api.api_toys import toy_ollama
from tests.api.measured_house import House
from tests.api.ui_page import LAST, ask, opened, said

TAMPER = """
const real = window.fetch;
window.fetch = async (path, options) => {
  const answer = await real(path, options);
  if (path !== '/v1/chat/completions') return answer;
  return new Response((await answer.text()).replace(%s), answer);
};
"""
SIGNATURE = f"[...{LAST}.querySelectorAll('.facts > div')].find(each => each.textContent.startsWith('signature'))"


@pytest.fixture(scope="module")
def key():
    return SigningKey(ed25519.new_key())


def signing_house(issuer):
    application, library = toy_ollama("Oslo is å 🙂.")
    library.issuer = issuer
    return House(application)


@pytest.mark.parametrize("days", [None, 30])
def test_a_signature_is_verified_and_its_key_is_shown(chromium, key, days):
    with signing_house(Issuer(key, days)) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        assert key.key_id in page.run("return verified.textContent")
        ask(page, "Where?")
        assert said(page)[1].startswith("✓ receipt matches and is signed")
        shown = page.run(f"return {SIGNATURE}.textContent")
        assert shown.startswith("signature, by the key✓ matches") and key.key_id in shown
        assert page.complaints == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ('\'"guard": "play"\', \'"guard": "Play"\'', "does not match"),
        (r"/(\"completion_tokens\": )\d+(, \"ttft)/, '$199$2'", "does not match"),
        (r"/(\"signature\": \"[0-9a-f]{127})./, '$1x'", "not a signature"),
        (r"/(\"signature\": \")[0-9a-f]{8}/, '$100000000'", "does not match"),
        (r"/, \"signature\": \"[0-9a-f]+\"/, ''", "missing"),
        ("'\"signed\": true', '\"signed\": false'", "missing"),
        (r"/(\"key_id\": \")[0-9a-f]{8}/, '$100000000'", "by another key than the server shows"),
    ],
)
def test_a_changed_receipt_is_found(chromium, key, change, says):
    with signing_house(Issuer(key)) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        page.run(TAMPER % change)
        ask(page, "Where?")
        assert said(page)[1].startswith("✗ receipt does not match")
        assert page.run(f"return {SIGNATURE}.querySelector('.mark').textContent") == f"✗ {says}"
        assert "false is signature, by the key" in page.run("return spoken.textContent")


def test_an_expired_signature_is_named(chromium, key):
    with signing_house(Issuer(key, 1, clock=lambda: 1_700_000_000.0)) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        ask(page, "Where?")
        shown = page.run(f"return {SIGNATURE}.querySelector('.mark').textContent")
        assert shown == "✗ expired 2023-11-15T22:13:20Z"


def test_a_server_without_a_key_has_no_such_row(chromium):
    with signing_house(Issuer()) as house, chromium.page() as tab:
        page = opened(tab, house.url)
        ask(page, "Where?")
        assert said(page)[1].startswith("✓ receipt matches")
        assert "signed" not in said(page)[1] and page.run(f"return {SIGNATURE} === undefined")
        assert "Key that signs" not in page.run("return verified.textContent")
