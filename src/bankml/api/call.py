"""One request on its way to a model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bankml.api.formats.logprobs import Json, Logprobs
from bankml.api.formats.response import BufferedResponse, ResponseContext, ResponseFormat, StreamedResponse, Writer
from bankml.api.generation import ContextRule
from bankml.http.exchange import Reply, Request
from bankml.library.layer import context_of, with_layer
from bankml.library.reference import Reference
from bankml.library.request import GenerationRequest
from bankml.library.residency import FOR_GOOD, Library
from bankml.library.resident import Resident
from bankml.receipt.issuer import UNSIGNED, Issuer
from bankml.receipt.receipt import LayerIdentity, Provenance, Tally
from bankml.text.messages import Conversation

FormatOf = Callable[[ResponseContext], ResponseFormat]

WriterOf = Callable[[ResponseContext, ResponseFormat, Logprobs, Reply], Writer]


@dataclass(frozen=True)
class Call:
    """One request on its way to a model.

    The receipt is about the bytes `body`, which arrived at `arrived` (time.monotonic). `request` is what they ask for,
    over the layer of the model that `reference` names; the model stays loaded for `keep` seconds afterwards.
    `logprob_shape` makes another API's logprobs entry of llama-server's. `route` is the path that answers, `fields` the
    members of the body that were replaced. `seeds` are those of the answers, where they are known: of a replay.
    `issuer` signs the receipt.
    """

    body: bytes
    arrived: float
    request: GenerationRequest
    reference: Reference
    context: ContextRule
    format_of: FormatOf
    keep: float | None = FOR_GOOD
    logprob_shape: Callable[[Json], Json] = field(default=lambda entry: entry)
    route: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int | None, ...] = ()
    issuer: Issuer = UNSIGNED

    def tally(self, resident: Resident) -> Tally:
        """The receipt of a response of `resident`'s, before anything is sent."""
        return Tally(provenance_of(resident, self.reference), self.body, self.arrived, issuer=self.issuer)

    def logprobs(self, resident: Resident, tally: Tally) -> Logprobs:
        """Writes the probabilities of one answer."""
        return Logprobs(resident.tokens.piece, tally, self.logprob_shape, self.request.response.alternatives)


def call_of(library: Library, request: GenerationRequest, http: Request, format_of: FormatOf) -> Call:
    """The call of an OpenAI or llama-server request. Raises RequestError, NotFound, Refused.

    A conversation loses its oldest messages only where the model's layer sets a context; otherwise one that does not
    fit is refused, as in llama-server. A raw prompt's continuation ends with the context.
    """
    reference = library.resolve(request.model)
    layer = reference.layer
    n_ctx = context_of(reference.name, layer, library.n_ctx)
    layered = layer is not None and layer.num_ctx is not None
    raw = not isinstance(request.prompt, Conversation)
    context = ContextRule(n_ctx, truncate=not raw) if raw or layered else ContextRule()
    made = with_layer(layer, request)
    return Call(http.body, http.arrived, made, reference, context, format_of, route=http.path, issuer=library.issuer)


def response_writer(context: ResponseContext, form: ResponseFormat, logprobs: Logprobs, reply: Reply) -> Writer:
    """The response as the request asked for it: buffered or streamed."""
    if context.request.response.stream:
        return StreamedResponse(context, form, logprobs, reply)
    return BufferedResponse(context, form, logprobs, reply)


def provenance_of(resident: Resident, reference: Reference) -> Provenance:
    """Where the tokens come from: the file, and the layer over it where the model is a derived one."""
    derived = reference.derived
    layer = None if derived is None else LayerIdentity(derived.name, derived.digest)
    return replace(resident.provenance, layer=layer)
