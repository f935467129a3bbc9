"""Models that embed: the reference's recorded vectors and scores, in each instruction set."""

import base64
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bankml import _native
from bankml.errors import UnsupportedModel
from bankml.gguf.block_types import F32
from bankml.gguf.header import TensorInfo
from bankml.model.config import read_config
from bankml.model.model import EmbeddingOptions, Model
from bankml.model.span import Span
from bankml.text.tokenizer import Tokenizer
from tests.model.test_kernels import with_kernels
from tests.tiny_architectures import tiny_architecture
from tests.tiny_embedders import EMBEDDERS, RERANK_TEMPLATE, WORDPIECE, metadata_of, specs_of, tiny_embedder

FILE = Path(__file__).parents[1] / "recordings" / "model" / "embeddings.json"
RECORDED = json.loads(FILE.read_text()) if FILE.exists() else {}
CONTEXT = 1024
POOLINGS = ("none", "mean", "cls", "last")
RERANKERS = ("bert-reranker", "qwen3-reranker")
# One row, some, and rows around a tile of attention and a step of the mean's sum, with rows left over.
LENGTHS = (1, 5, 37, 64, 131, 300)
SHORT = 64  # the definition is slow
NORMS = (0, 1, 2, 3)
QUERY, DOCUMENTS = "what is a", ["a", "b c d", "", "the letter a, is it?", "z [SEP] z"]


def inputs(n, another=0):
    """n tokens of either vocabulary, none of them a control token. No two of the inputs here begin with the same token:
    llama-server would compute the rest alone."""
    return [5 + (7 * i * i + 3 * i + 11 * n + 9 * another) % 60 for i in range(n)]


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Opens a tiny model with a pooling; each is written once."""
    folder, verified, models = tmp_path_factory.mktemp("embedders"), {}, {}

    def of(name, pooling):
        if name not in verified:
            verified[name] = tiny_embedder(folder, name)
        if (name, pooling) not in models:
            options = EmbeddingOptions(pooling, CONTEXT)
            environment = {"BANKML_LLAMA_THREADS": "2"}
            models[name, pooling] = Model.open(verified[name], CONTEXT, 2, environment, embeddings=options)
        return models[name, pooling], Tokenizer.from_header(verified[name].header)

    return of


def embedded(model, tokens, norm=-1):
    vectors = model.embed(Span(tokens, 0, model.new_cells()))
    if norm != -1:
        _native.normalize(vectors[0], norm)
    return vectors


def packed(vectors):
    return [base64.b64encode(one.astype("<f4").tobytes()).decode() for one in vectors]


@pytest.mark.parametrize("kernel_set", _native.kernel_sets())
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("name", [name for name in EMBEDDERS if name not in RERANKERS])
def test_recorded_vectors(opened, name, pooling, kernel_set):
    """Made by scripts/record_embeddings.py with the reference's llama-server."""
    model, _ = opened(name, pooling)
    recorded, found = RECORDED[name][pooling], []
    most = SHORT if kernel_set == "portable" else CONTEXT
    lengths = [n for n in LENGTHS[: len(recorded["lengths"])] if n <= most]
    with_kernels(kernel_set, lambda: found.extend(packed(embedded(model, inputs(n))) for n in lengths))
    assert found == recorded["lengths"][: len(lengths)]
    assert [
        packed(embedded(model, inputs(5, 2 + norm), norm)) for norm in NORMS if "norms" in recorded
    ] == recorded.get("norms", [])


@pytest.mark.parametrize("kernel_set", _native.kernel_sets())
@pytest.mark.parametrize("name", RERANKERS)
def test_recorded_scores(opened, name, kernel_set):
    model, tokenizer = opened(name, "rank")
    template = RERANK_TEMPLATE if name == "qwen3-reranker" else None

    def tokens(document):
        if template is None:
            return tokenizer.pair(QUERY, document)
        return tokenizer.encode(template.replace("{query}", QUERY).replace("{document}", document))

    found = []
    with_kernels(kernel_set, lambda: found.extend(embedded(model, tokens(one))[0, 0] for one in DOCUMENTS))
    assert [float(one) for one in found] == RECORDED[name]["rank"]


def test_every_model_is_recorded():
    assert set(RECORDED) == set(EMBEDDERS)
    assert all(set(RECORDED[name]) == (set(POOLINGS) if name not in RERANKERS else {"rank"}) for name in EMBEDDERS)


def test_a_pair_is_divided_by_the_separator_and_its_texts_have_no_control_tokens(opened):
    _, tokenizer = opened("bert-reranker", "rank")
    spelled = [WORDPIECE[token] for token in tokenizer.pair("a [SEP]", "b")]
    assert spelled[:2] == ["[CLS]", "\u2581a"] and spelled[-2:] == ["[SEP]", "\u2581b"]
    assert spelled.count("[SEP]") == 1


@pytest.mark.parametrize("name", ["bert", "qwen3-embedding"])
def test_a_token_of_a_longer_input_is_not_what_it_is_alone(opened, name):
    """BERT's tokens see what follows them, a decoder's do not."""
    model, _ = opened(name, "cls")
    assert np.allclose(embedded(model, inputs(3)), embedded(model, inputs(3)[:2])) == (name != "bert")


def test_what_cannot_be_pooled_is_refused(tmp_path):
    verified = tiny_embedder(tmp_path, "bert")
    with pytest.raises(UnsupportedModel, match=r"has neither 'cls' nor 'cls\.output'"):
        Model.open(verified, CONTEXT, 1, embeddings=EmbeddingOptions("rank"))
    model = Model.open(verified, CONTEXT, 1)
    assert (model.pooling, model.generates, model.embeds_whole, model.longest) == ("mean", False, True, 512)
    with pytest.raises(ValueError, match="1 to 512 tokens, not 513"):
        embedded(model, inputs(513))


def test_any_decoder_embeds(tmp_path):
    """A sliding window is longer where an input is computed whole."""
    model = Model.open(tiny_architecture(tmp_path, "gemma3"), CONTEXT, 2, embeddings=EmbeddingOptions("mean", CONTEXT))
    cells = model.new_cells()
    assert cells.layers[0][0].shape[1] == CONTEXT
    assert model.embed(Span(inputs(700), 0, cells)).shape == (1, model.width)


def header(name, keys=None, without=(), more=()):
    """The header of a tiny model; `keys` replace its own, None removes one."""
    metadata = metadata_of(name) | {"tokenizer.ggml.tokens": [b"x"] * len(WORDPIECE)} | (keys or {})
    infos = [TensorInfo(one.name, one.shape, one.type, 0, 0) for one in specs_of(name) if one.name not in without]
    infos += [TensorInfo(one, (8,), F32, 0, 0) for one in more]
    return SimpleNamespace(
        metadata={key: value for key, value in metadata.items() if value is not None}, tensors=tuple(infos)
    )


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("bert", {"keys": {"bert.attention.causal": None}}, "bert.attention.causal is true"),
        ("bert", {"keys": {"bert.attention.causal": 0}}, "bert.attention.causal is not true or false"),
        ("bert", {"keys": {"bert.attention.layer_norm_epsilon": None}}, "layer_norm_epsilon is missing"),
        ("bert", {"keys": {"tokenizer.ggml.token_type_count": None}}, "tokenizer.ggml.token_type_count is missing"),
        ("bert", {"keys": {"bert.pooling_type": 5}}, "bert.pooling_type is 5, outside 0 to 4"),
        ("bert", {"keys": {"bert.attention.head_count_kv": 1}}, "the heads of bert are not as wide as its states"),
        ("bert", {"keys": {"bert.embedding_length_out": 32}}, "bert.embedding_length_out is 32"),
        ("bert", {"keys": {"bert.context_length": 512}}, "tensor 'position_embd.weight' has shape [64, 300]"),
        ("bert", {"without": ["token_embd_norm.bias"]}, "tensor 'token_embd_norm.bias' is missing"),
        ("bert", {"without": ["blk.1.layer_output_norm.bias"]}, "tensor 'blk.1.layer_output_norm.bias' is missing"),
        ("bert", {"more": ["output_norm.weight"]}, "'output_norm.weight' is not part of the bert architecture"),
        ("bert-reranker", {"keys": {"bert.classifier.output_labels": []}}, "output_labels is not an array of strings"),
        ("bert-reranker", {"keys": {"bert.classifier.output_labels": ["a", "b"]}}, "'cls.output.weight' has shape"),
        ("nomic-bert", {"more": ["position_embd.weight"]}, "'position_embd.weight' is not part of the nomic-bert"),
        ("nomic-bert", {"without": ["blk.0.ffn_gate.weight"]}, "tensor 'blk.0.ffn_gate.weight' is missing"),
        ("nomic-bert", {"keys": {"nomic-bert.expert_count": 8}}, "nomic-bert.expert_count is 8"),
    ],
)
def test_headers_are_refused_by_name(name, changes, says):
    assert read_config(header(name)).pooling is not None
    with pytest.raises(UnsupportedModel) as refused:
        read_config(header(name, **changes))
    assert says in refused.value.message
