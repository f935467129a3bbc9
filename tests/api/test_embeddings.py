"""Embeddings over a socket: the routes of OpenAI, llama-server and Ollama, their refusals and their receipts."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import ollama
import openai
import pytest

from bankml.api.routes import Serving
from bankml.cli.parser import POOLINGS as OPTION
from bankml.gate.verify import verify
from bankml.model.shape import POOLINGS
from bankml.receipt.check import check
from tests.api.embedding_houses import house, house_of, message, post, sha256, vectors
from tests.model.test_embedders import RECORDED, inputs
from tests.tiny_embedders import sentence, tiny_embedder
from tests.tiny_model import tiny_model


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    with house_of(tmp_path_factory.mktemp("bert"), "bert", parallel=3) as made:
        yield made


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    with house_of(tmp_path_factory.mktemp("qwen"), "qwen3-embedding", parallel=1) as made:
        yield made


def test_openais_form(bert):
    status, answer = post(bert, "/v1/embeddings", {"model": "bert", "input": ["a b", "c", "a b"]})
    assert status == 200 and (answer["object"], answer["model"]) == ("list", "bert")
    assert [(one["object"], one["index"]) for one in answer["data"]] == [("embedding", i) for i in range(3)]
    rows = vectors(answer)
    assert np.array_equal(rows[0], rows[2]) and np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert answer["usage"] == {"prompt_tokens": 11, "total_tokens": 11}  # each between its two special tokens
    receipt = answer["bankml_receipt"]
    assert (receipt["vectors"], receipt["completion_tokens"], receipt["prompt_tokens"]) == (3, 0, 11)
    assert receipt["response_sha256"] == sha256(rows)


def test_base64_has_the_same_bits(bert):
    body = {"input": [sentence(9), inputs(5)]}
    plain, packed = (post(bert, "/v1/embeddings", body | {"encoding_format": form})[1] for form in ("float", "base64"))
    assert np.array_equal(vectors(plain).view(np.uint32), vectors(packed).view(np.uint32))
    assert packed["data"][0]["encoding_format"] == "base64"
    assert plain["bankml_receipt"]["response_sha256"] == packed["bankml_receipt"]["response_sha256"]


@pytest.mark.parametrize("path", ["/embedding", "/embeddings"])
def test_llama_servers_form_has_the_recorded_bits(bert, path):
    _, answer = post(bert, path, {"content": [inputs(5), inputs(37)], "embd_normalize": -1})
    assert [one["index"] for one in answer] == [0, 1]
    found = [base64.b64encode(np.float32(one["embedding"][0]).tobytes()).decode() for one in answer]
    assert [[one] for one in found] == RECORDED["bert"]["mean"]["lengths"][1:3]
    assert "bankml_receipt" not in answer[0] and answer[1]["bankml_receipt"]["vectors"] == 2
    openai = post(bert, "/v1/embeddings", {"content": inputs(5)})[1]
    assert isinstance(openai, list)  # `content` is not OpenAI's


def test_a_vector_for_each_token(tmp_path):
    with house_of(tmp_path, "bert", pooling="none") as made:
        _, answer = post(made, "/embedding", {"content": ["a b", inputs(5)]})
        assert [len(one["embedding"]) for one in answer] == [4, 5]
        assert answer[1]["bankml_receipt"]["vectors"] == 9
        for path, body, status, why in (
            ("/v1/embeddings", {"input": "a"}, 400, "Pooling type 'none' is not OAI compatible"),
            ("/embedding", {"input": "a", "dimensions": 4}, 501, "with pooling none vectors have all their values"),
            ("/api/embed", {"model": "bert", "input": "a"}, 501, "with pooling none there is a vector a token"),
        ):
            code, answer = post(made, path, body)
            assert code == status and why in message(answer)


def test_fewer_dimensions(bert):
    body = {"input": ["a b c", "d"]}
    whole = vectors(post(bert, "/v1/embeddings", body)[1])
    few = vectors(post(bert, "/v1/embeddings", body | {"dimensions": 16})[1])
    assert few.shape == (2, 16) and np.allclose(np.linalg.norm(few, axis=1), 1, atol=1e-6)
    assert np.allclose(few * np.linalg.norm(whole[:, :16], axis=1, keepdims=True), whole[:, :16], atol=1e-6)
    assert np.array_equal(vectors(post(bert, "/v1/embeddings", body | {"dimensions": 64})[1]), whole)


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({}, 400, '"input" or "content" must be provided'),
        ({"input": []}, 400, '"prompt" must not be empty'),
        ({"input": ["a", []]}, 400, "Input content cannot be empty"),
        ({"input": 5}, 400, '"prompt" elements must be a string, a list of tokens'),
        ({"input": ["a", 77777]}, 400, "Prompt contains invalid tokens"),
        ({"input": "a", "encoding_format": "hex"}, 400, "Can be either float or base64"),
        ({"input": "a", "embd_normalize": "x"}, 400, "Field 'embd_normalize': expected a number"),
        ({"input": "a", "embd_normalize": -2}, 400, "Value must be between -1 <= value <= 65536, but got -2"),
        ({"input": "a", "dimensions": 65}, 400, "Field 'dimensions': the model's vectors have 64 values, not 65"),
        ({"input": "a", "dimensions": 0}, 400, "Field 'dimensions': Value must be between 1"),
        ({"input": ["a"] * 2049}, 400, "at most 2048 prompts a request, but got 2049"),
        ({"input": sentence(600)}, 500, "input (602 tokens) is too large to process. increase the physical batch size"),
        ({"input": ["a", sentence(400)]}, 400, "input (402 tokens) is larger than the max context size (300 tokens)"),
    ],
)
def test_what_is_refused(bert, body, status, why):
    code, answer = post(bert, "/v1/embeddings", body)
    assert code == status and why in message(answer)


def test_an_embedding_model_does_not_chat(bert):
    messages = [{"role": "user", "content": "hi"}]
    for path, body in (
        ("/v1/chat/completions", {"messages": messages}),
        ("/v1/completions", {"prompt": "a"}),
        ("/completion", {"prompt": "a", "stream": True}),
        ("/v1/messages", {"messages": messages, "max_tokens": 3}),
        ("/api/chat", {"model": "bert", "messages": messages}),
        ("/api/generate", {"model": "bert", "prompt": "a"}),
    ):
        status, answer = post(bert, path, body)
        assert status == 400 and "bert does not generate text; it computes embeddings" in message(answer)
    assert post(bert, "/api/chat", {"model": "bert", "messages": []})[1]["done_reason"] == "load"


def test_a_chat_model_embeds_only_where_that_is_asked_for(tmp_path):
    verified = tiny_model(tmp_path)
    with house(verified) as made:
        for path, body in (("/v1/embeddings", {"input": "a"}), ("/embedding", {}), ("/api/embed", {"model": "tiny"})):
            status, answer = post(made, path, body)
            assert status == 501 and message(answer).startswith("This server does not support embeddings.")
    with house(verify(verified.path, verified.fork_path), embeddings=True, pooling="mean") as made:
        long = post(made, "/v1/embeddings", {"input": sentence(400)})[1]  # more than 512 tokens
        assert long["usage"]["prompt_tokens"] == 799
        assert vectors(post(made, "/v1/embeddings", {"input": "a", "dimensions": 3})[1]).shape == (1, 64)  # as there
        own = post(made, "/api/embed", {"model": "tiny", "input": "a", "dimensions": 3})[1]["embeddings"]
        assert len(own[0]) == 3
        chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3}
        assert post(made, "/v1/chat/completions", chat)[1]["usage"]["completion_tokens"] == 3


def test_one_slot_continues_from_what_it_has_and_answers_too(qwen):
    """As llama-server with one slot: the bits are those of a prefix and a rest."""
    whole = vectors(post(qwen, "/v1/embeddings", {"input": inputs(37)})[1])
    again = vectors(post(qwen, "/v1/embeddings", {"input": inputs(37)})[1])
    assert not np.array_equal(whole, again) and np.allclose(whole, again, atol=1e-3)
    prompt = {"prompt": [*inputs(37), 70], "n_predict": 2, "temperature": 0}
    assert post(qwen, "/completion", prompt)[1]["timings"]["cache_n"] == 37
    status, answer = post(qwen, "/v1/embeddings", {"input": inputs(1024)})
    assert status == 400 and "request (1024 tokens) exceeds the available context size (1024 tokens)" in message(answer)
    assert post(qwen, "/v1/embeddings", {"input": inputs(900)})[0] == 200  # in two micro-batches


@pytest.mark.parametrize("name", ["bert", "qwen3-embedding"])
def test_vectors_do_not_depend_on_what_else_is_computed(tmp_path, name):
    """Beside each other, beside chats, and after others: the bits of each input alone."""
    texts = [sentence(n) for n in (1, 3, 20, 21, 22, 70, 3, 20)]
    with house_of(tmp_path, name, parallel=3) as made:
        alone = [vectors(post(made, "/v1/embeddings", {"input": text})[1])[0] for text in texts]

        def asked(i):
            if name != "bert" and i % 3 == 0:
                post(made, "/completion", {"prompt": sentence(i), "n_predict": 8})
            return vectors(post(made, "/v1/embeddings", {"input": texts[i % 8 :]})[1])

        with ThreadPoolExecutor(8) as pool:
            for i, found in enumerate(pool.map(asked, range(24))):
                assert np.array_equal(found, np.array(alone[i % 8 :]))


def test_a_receipt_that_is_false_is_found(bert):
    sent = json.dumps({"input": ["a", "b"]}).encode()
    answer = post(bert, "/v1/embeddings", json.loads(sent))[1]

    def problems(change):
        changed = json.loads(json.dumps(answer))
        change(changed)
        return check(sent, json.dumps(changed).encode()).problems

    def turn(value):
        value["data"][1]["embedding"][7] *= -1

    assert problems(lambda value: None) == ()
    assert "the sha256 of the vectors is" in problems(turn)[0]
    assert "response_sha256" in problems(lambda value: value["data"].reverse())[0]
    assert "vectors is 2, but the answer has 1" in problems(lambda value: value["data"].pop())[1]
    assert "no float32" in problems(lambda value: value["data"][0].update(embedding=["x"]))[0]
    assert "not base64" in problems(lambda value: value["data"][0].update(embedding="?"))[0]
    assert "usage.prompt_tokens" in problems(lambda value: value["usage"].update(prompt_tokens=1))[0]
    assert problems(lambda value: value.update(choices=[]))  # an answer of another kind has no vectors


def test_openais_client(bert):
    with openai.OpenAI(base_url=f"{bert.url}/v1", api_key="none", max_retries=0) as client:
        made = client.embeddings.create(model="text-embedding-3-small", input=["a b", "c"])  # in base64, as it asks
        plain = client.embeddings.create(model="bert", input=["a b", "c"], encoding_format="float")
        assert [one.embedding for one in made.data] == [one.embedding for one in plain.data]
        assert made.usage.prompt_tokens == 7 and len(made.data[0].embedding) == 64
        assert len(client.embeddings.create(model="bert", input=[5, 6], dimensions=8).data[0].embedding) == 8
        with pytest.raises(openai.BadRequestError, match="does not generate text"):
            client.chat.completions.create(model="bert", messages=[{"role": "user", "content": "a"}])


def test_ollamas_client(bert):
    client = ollama.Client(bert.url)
    assert client.show("bert").capabilities == ["embedding"] and client.show("bert").details.family == "bert"
    made = client.embed("bert", ["a b", "c"])
    rows = np.float32(made.embeddings)
    assert np.array_equal(rows, vectors(post(bert, "/v1/embeddings", {"input": ["a b", "c"]})[1]))
    assert made.prompt_eval_count == 7 and made.total_duration > 0 and made.model == "bert"
    assert np.float32(client.embed("bert", "a", dimensions=8).embeddings).shape == (1, 8)
    older = np.float32(client.embeddings("bert", "c").embedding)
    assert np.allclose(older / np.linalg.norm(older), rows[1], atol=1e-6) and np.linalg.norm(older) > 2
    assert client.embed("bert", []).embeddings == [] and list(client.embeddings("bert", "").embedding) == []
    cut = client.embed("bert", sentence(700))
    assert cut.prompt_eval_count == 300 and client.embed("bert", "a", keep_alive="1h").embeddings
    for call, status, why in (
        (lambda: client.embed("nobody", "a"), 404, "unknown model 'nobody'"),
        (lambda: client.embed("bert", sentence(700), truncate=False), 400, "exceeds the context length"),
        (lambda: client.chat("bert", messages=[{"role": "user", "content": "a"}]), 400, "does not generate text"),
    ):
        with pytest.raises(ollama.ResponseError) as found:
            call()
        assert found.value.status_code == status and why in found.value.error
    status, answer = post(bert, "/api/embed", {"model": "bert", "input": [5]})
    assert status == 400 and message(answer).startswith("invalid input type")


def test_ollamas_answers_have_receipts(bert):
    for path, body, count in (
        ("/api/embed", {"model": "bert", "input": ["a", "b c"]}, 2),
        ("/api/embeddings", {"model": "bert", "prompt": "a"}, 1),
    ):
        assert post(bert, path, body)[1]["bankml_receipt"]["vectors"] == count


def test_models_by_name(tmp_path):
    """A chat model and an embedding model: each request gets its own."""
    first = tiny_model(tmp_path)
    tiny_embedder(tmp_path, "nomic-bert")
    with house(first, Serving(registry=str(tmp_path))) as made:
        assert post(made, "/v1/embeddings", {"model": "nomic-bert", "input": "a"})[0] == 200
        status, answer = post(made, "/v1/embeddings", {"model": "tiny", "input": "a"})
        assert status == 501 and "does not support embeddings" in message(answer)
        status, answer = post(made, "/v1/embeddings", {"model": "text-embedding-3-small", "input": "a"})
        assert status == 404 and "unknown model" in message(answer)
        with made.client() as client:
            listed = {one["name"]: one for one in client.get("/api/tags")["models"]}
        assert listed["nomic-bert:latest"]["capabilities"] == ["embedding"]
        assert listed["nomic-bert:latest"]["details"]["family"] == "nomic-bert"
        assert listed["tiny:latest"]["capabilities"] == ["completion"]


def test_the_options_name_every_pooling():
    assert OPTION == POOLINGS
