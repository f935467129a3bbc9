"""From a verified file to a model that answers: the one place where the rooms of a model are put together."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from bankml.engine.completion import ENGINE, UNLIMITED, Engine
from bankml.errors import Refused, RequestError
from bankml.gate.verify import Verified
from bankml.grammar.matcher import Grammar, Matcher, VocabularyTree, vocabulary_tree
from bankml.grammar.sampler import GrammarSampler
from bankml.library.resident import Resident
from bankml.model.model import Model
from bankml.receipt.receipt import Provenance
from bankml.sampling.chain import Sampler
from bankml.sampling.lexicon import Lexicon
from bankml.sampling.parameters import SamplingParams, model_defaults
from bankml.sampling.request import from_request
from bankml.text.messages import conversation
from bankml.text.pieces import TextStream
from bankml.text.template import ChatTemplate
from bankml.text.tokenizer import Tokenizer

NOT_IN_PROPS = ("logit_bias", "suppressed", "dry_sequence_breakers")
"""What llama-server leaves out where it lists the defaults of a request."""

NOT_PLAYED = "bankML's native forward pass does not play it"


def load(verified: Verified, n_ctx: int, threads: int | None = None) -> Resident:
    """Makes everything an answer needs; the weights are opened last, when nothing else can refuse any more.

    `n_ctx` is the context in tokens; `threads` None means the model's own choice. Raises Refused, naming the key or
    tensor, for a model that is not played.
    """
    tokenizer = Tokenizer.from_header(verified.header)
    source = verified.header.metadata.get("tokenizer.chat_template")
    if not isinstance(source, str):
        raise Refused(f"{NOT_PLAYED}: tokenizer.chat_template is missing, or is no text")
    template = ChatTemplate(source, tokenizer.bos_text, tokenizer.eos_text)
    defaults = model_defaults(verified.header.metadata)
    lexicon = Lexicon(
        tokenizer.n_vocab,
        lambda text: tokenizer.encode(text, parse_special=False),
        lambda: [tokenizer.spelling(token) for token in range(tokenizer.n_vocab)],
        sorted(tokenizer.vocabulary.end_of_generation),
    )
    tree = lru_cache(maxsize=1)(lambda: tree_of(tokenizer))  # made for the first answer that is held to a grammar
    return Resident(
        verified=verified,
        provenance=Provenance(ENGINE, verified.sha256, verified.verdict.kind),
        tokens=tokenizer,
        template=source,
        bos=tokenizer.bos_text,
        eos=tokenizer.eos_text,
        prompt=lambda body: template.prompt(conversation(body)),
        sampler=lambda body: held_to_grammar(body, sampler(body, defaults, lexicon), tokenizer, tree),
        text_pieces=TextStream,
        sampling_defaults=as_props(defaults),
        engine=Engine(Model.open(verified, n_ctx, threads), tokenizer),
    )


def sampler(body: Mapping[str, Any], defaults: SamplingParams, lexicon: Lexicon) -> Sampler:
    """The chain a request asks for. Raises RequestError where it asks for what cannot be."""
    params = from_request(body, defaults, lexicon)
    if params.n_probs:
        field = "logprobs" if body.get("n_probs") is None else "n_probs"
        raise RequestError(f"Field '{field}': the tokens' probabilities are not given yet")
    return Sampler(params, lexicon)


def tree_of(tokenizer: Tokenizer) -> VocabularyTree:
    """The vocabulary as grammars use it."""
    pieces = [tokenizer.spelling(token) for token in range(tokenizer.n_vocab)]
    return vocabulary_tree(pieces, sorted(tokenizer.vocabulary.end_of_generation))


def held_to_grammar(
    body: Mapping[str, Any], chain: Sampler, tokenizer: Tokenizer, tree: Callable[[], VocabularyTree]
) -> Sampler | GrammarSampler:
    """`chain`, held to the `grammar` of the request if there is one. Raises RequestError when that is no grammar.

    The answer's text is the grammar's from its first token on: nothing of the prompt is part of it.
    """
    text = body.get("grammar")
    if not text:
        return chain
    return GrammarSampler(chain, Matcher(Grammar.parse(text, tokenize=tokenizer.encode), tree()))


def as_props(defaults: SamplingParams) -> dict[str, object]:
    """A request's fields when it names none, by llama-server's names."""
    params: dict[str, object] = {name: value for name, value in asdict(defaults).items() if name not in NOT_IN_PROPS}
    return params | {"max_tokens": UNLIMITED, "n_predict": UNLIMITED, "stream": False}
