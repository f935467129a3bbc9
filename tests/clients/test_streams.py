"""The field's clients read a whole stream of a running server, each in its own words (`make test-clients`)."""

import hashlib
import json

import pytest

from tests.clients.served import MODEL, run, serving
from tests.end_to_end.servers import ask

pytestmark = pytest.mark.clients

QUESTION = {"model": MODEL, "max_tokens": 12, "temperature": 0}
PROMPT = "where is the rain?"

CLIENTS = (
    "openai_loop.py",
    "openai_stream.py",
    "openai_completions.py",
    "langchain_openai_stream.py",
    "langchain_ollama_stream.py",
    "llm_prompt.py",
    "llama_index_openai_like.py",
    "llama_index_ollama.py",
    "haystack_generator.py",
    "autogen_client.py",
    "semantic_kernel_chat.py",
    "litellm_streams.py",
    "openai_loop.mjs",
    "ai_stream_text.mjs",
)


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as gate:
        yield gate


@pytest.fixture(scope="module")
def wanted(port):
    """What the server answers in one piece: each client's report is made of these."""
    chat = json.loads(
        ask(port, "/v1/chat/completions", {**QUESTION, "messages": [{"role": "user", "content": PROMPT}]})[1]
    )
    text = chat["choices"][0]["message"]["content"]
    completion = json.loads(ask(port, "/v1/completions", {**QUESTION, "prompt": PROMPT})[1])["choices"][0]["text"]
    stopped = {"stopped": text.partition(".")[0], "stopped_too": text.partition(".")[0]}
    roles = {"role": "assistant", "next_role": "assistant"}
    texts = dict.fromkeys(("text", "joined", "asked", "ollama"), text)
    ends = {"finish": "length", "counted": 12, "receipt": hashlib.sha256(text.encode()).hexdigest()}
    assert "." in text
    return {**texts, **stopped, **roles, **ends, "completion": completion}


@pytest.mark.parametrize("program", CLIENTS)
def test_a_client_reads_a_whole_stream(program, port, wanted):
    read = run(program, port)
    assert read and read == {name: wanted[name] for name in read}
