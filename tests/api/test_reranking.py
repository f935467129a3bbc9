"""Reranking over a socket: Jina's form and that of Text Embeddings Inference."""

import pytest

from tests.api.embedding_houses import house_of, message, post
from tests.model.test_embedders import DOCUMENTS, QUERY, RECORDED, RERANKERS
from tests.tiny_embedders import sentence

BODY = {"query": QUERY, "documents": DOCUMENTS}


@pytest.fixture(scope="module", params=RERANKERS)
def reranker(request, tmp_path_factory):
    """The name of a model, and a server over it."""
    with house_of(tmp_path_factory.mktemp("rerank"), request.param, parallel=2) as made:
        yield request.param, made


@pytest.mark.parametrize("path", ["/rerank", "/reranking", "/v1/rerank", "/v1/reranking"])
def test_the_recorded_scores_best_first(reranker, path):
    name, made = reranker
    status, answer = post(made, path, BODY)
    found = [(one["index"], one["relevance_score"]) for one in answer["results"]]
    scores = RECORDED[name]["rank"]
    assert status == 200 and found == sorted(enumerate(scores), key=lambda one: -one[1])
    assert answer["usage"]["prompt_tokens"] == answer["bankml_receipt"]["prompt_tokens"] > 10
    assert (answer["object"], answer["model"], answer["bankml_receipt"]["vectors"]) == ("list", name, len(scores))


def test_the_best_alone_and_the_other_form(reranker):
    _, made = reranker
    results = post(made, "/v1/rerank", BODY)[1]["results"]
    assert post(made, "/v1/rerank", BODY | {"top_n": 2})[1]["results"] == results[:2]
    assert post(made, "/v1/rerank", BODY | {"top_n": 0})[1]["results"] == []
    tei = post(made, "/rerank", {"query": QUERY, "texts": DOCUMENTS, "return_text": True})[1]
    assert [(one["index"], one["score"]) for one in tei] == [(one["index"], one["relevance_score"]) for one in results]
    assert [one["text"] for one in tei] == [DOCUMENTS[one["index"]] for one in results]
    assert tei[-1]["bankml_receipt"]["vectors"] == len(DOCUMENTS)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, '"query" must be provided'),
        ({"query": 5, "documents": ["a"]}, '"query" must be a string'),
        ({"query": "a"}, '"documents" must be a non-empty string array'),
        ({"query": "a", "documents": []}, '"documents" must be a non-empty string array'),
        ({"query": "a", "documents": ["a", 5]}, '"documents" must be a non-empty string array'),
        ({"query": "a", "documents": ["a"] * 2049}, "at most 2048 documents"),
        ({"query": "a", "documents": ["a"], "top_n": -1}, "Field 'top_n': Value must be between 0"),
    ],
)
def test_what_is_refused(reranker, body, why):
    status, answer = post(reranker[1], "/v1/rerank", body)
    assert status == 400 and why in message(answer)


def test_a_document_that_is_too_long(reranker):
    status, answer = post(reranker[1], "/v1/rerank", {"query": "a", "documents": ["b", sentence(700)]})
    assert status == 500 and "is too large to process. increase the physical batch size" in message(answer)


def test_a_reranker_gives_no_embeddings_and_another_model_no_scores(reranker, tmp_path):
    status, answer = post(reranker[1], "/v1/embeddings", {"input": "a"})
    assert status == 501 and "with pooling rank the model scores documents" in message(answer)
    with house_of(tmp_path, "bert") as made:
        status, answer = post(made, "/v1/rerank", {})
        assert status == 501 and message(answer).startswith("This server does not support reranking.")
