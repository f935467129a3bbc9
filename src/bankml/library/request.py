"""A generation request: what a client asks for, whichever API it used, checked before any token is computed."""

from dataclasses import dataclass, field

from bankml.engine.completion import UNLIMITED
from bankml.grammar.constraint import ConstraintSpec
from bankml.sampling.overrides import SamplingOverrides
from bankml.text.messages import Conversation

__all__ = [
    "EUCLIDEAN",
    "UNLIMITED",
    "EmbeddingRequest",
    "GenerationRequest",
    "InfillFile",
    "InfillPrompt",
    "RawPrompt",
    "ResponseOptions",
    "ThoughtBudget",
]


@dataclass(frozen=True)
class RawPrompt:
    """A prompt without a chat template: texts and token ids in order."""

    parts: tuple[str | int, ...]


EUCLIDEAN = 2
"""The norm that embeddings have, unless a request says otherwise."""


@dataclass(frozen=True)
class EmbeddingRequest:
    """Inputs to embed. `model` None means the startup model. `norm` is llama-server's number of a norm: -1 none, 0 the
    largest magnitude is 32760, else a p-norm. `dimensions`: the first so many values of each vector; None: all.
    `truncate`: an input that is too long loses its end. `cache_prompt` False: nothing computed before is used."""

    model: str | None
    inputs: tuple[RawPrompt, ...]
    norm: int = EUCLIDEAN
    dimensions: int | None = None
    truncate: bool = False
    cache_prompt: bool = True


@dataclass(frozen=True)
class InfillFile:
    """Another file, which the model sees before the one that has the gap."""

    name: str
    text: str


@dataclass(frozen=True)
class InfillPrompt:
    """A gap to fill: what is before and after it, texts and token ids in order, and the text that its filling begins
    with. `files` None: the model sees no names of files either."""

    prefix: tuple[str | int, ...]
    suffix: tuple[str | int, ...]
    begun: str = ""
    files: tuple[InfillFile, ...] | None = None


@dataclass(frozen=True)
class ResponseOptions:
    """How the response is written. `include_usage`: a stream's token counts come in a chunk of their own;
    `return_tokens`: a buffered `/completion` lists its token ids; `timings_per_token`: each chunk of a stream has the
    timings; `verbose`: a chat's last object has llama-server's `__verbose`; `fields`: the fields of a `/completion`
    that are wanted, () for all; `alternatives`: how many alternatives a logprobs entry lists, None for all there are;
    `ping_interval`: seconds of silence after which a stream of server-sent events gets a comment, None for never;
    `return_progress`: a stream reports how much of the prompt is computed; `whole_calls`: a tool call is one delta;
    `echo`: the text begins with the prompt; `left_out`: paths of fields that are not used, listed in a Warning header.
    """

    stream: bool = False
    include_usage: bool = False
    return_tokens: bool = False
    timings_per_token: bool = False
    verbose: bool = False
    fields: tuple[str, ...] = ()
    alternatives: int | None = None
    ping_interval: float | None = 30.0
    return_progress: bool = False
    whole_calls: bool = False
    echo: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class ThoughtBudget:
    """After `tokens` (UNLIMITED: no limit) a thought is ended with `message` and the template's mark. `controlled`:
    another request may end it."""

    tokens: int = UNLIMITED
    message: str = ""
    controlled: bool = False


@dataclass(frozen=True)
class GenerationRequest:
    """One request. `model` None means the startup model. Each of its prompts gets `copies` answers.

    `slot` is the number of the slot to use, None for any. `max_tokens` (UNLIMITED: no limit) and `stop` are None where
    the request does not set them, so that a derived model's layer may.
    """

    model: str | None
    prompt: Conversation | RawPrompt | InfillPrompt
    more_prompts: tuple[RawPrompt, ...] = ()
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    sampling: SamplingOverrides = field(default_factory=SamplingOverrides)
    constraint: ConstraintSpec = field(default_factory=ConstraintSpec)
    cache_prompt: bool = True
    slot: int | None = None
    copies: int = 1
    thought: ThoughtBudget = ThoughtBudget()
    response: ResponseOptions = field(default_factory=ResponseOptions)

    @property
    def answers(self) -> int:
        """How many answers it asks for."""
        return (1 + len(self.more_prompts)) * self.copies
