"""`POST /v1/completions`: OpenAI's older API over a prompt as it is, as llama-server speaks it, with a receipt."""

from collections.abc import Mapping

from bankml.api.answering import BufferingWriter, PreparedGeneration, Receipt, Writer, answer
from bankml.api.chat_request import Unplayed, refuse_unplayed
from bankml.api.completion import completion_generation, over_layer
from bankml.api.completion_request import read_completion
from bankml.api.ending import stop_word_tokens
from bankml.api.fitting import limited
from bankml.api.logprobs import Logprobs, without_stop_word
from bankml.api.openai import Head, timings, usage
from bankml.engine.completion import Step
from bankml.engine.parts import TextPieces
from bankml.errors import Cancelled
from bankml.grammar.constraint import completion_constraint
from bankml.http.exchange import EVENT_STREAM, Reply, Request, RequestOutcome
from bankml.http.json_out import DONE, json_bytes, sse_event
from bankml.library.residency import Library
from bankml.library.resident import Resident
from bankml.receipt.check import RECEIPT_KEY
from bankml.receipt.receipt import Tally

Json = dict[str, object]

KIND = "text_completion"

UNPLAYED: Unplayed = {
    "echo": ((False,), "Only no echo is supported"),
    "best_of": ((1,), "one answer is computed"),
    "suffix": (("",), "text is continued at its end only"),
}
"""OpenAI's fields that would change the answer: the values that leave it as it is, and why any other is refused."""


def text_completions(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """Answers one request. What can be wrong with it is found before it stands in line for the resident model."""
    asked = read_completion(request.body)
    refuse_unplayed(asked.body, UNPLAYED)
    reference = library.resolve(asked.model)
    asked, n_ctx = over_layer(asked, reference, library.n_ctx)

    def prepare(resident: Resident, loading: float) -> PreparedGeneration:
        wanted = completion_generation(asked, completion_constraint(asked.body), resident)
        generation = limited(wanted, min(n_ctx, resident.n_ctx))
        tally = Tally(resident.provenance, request.body, request.arrived)
        head, logprobs = Head(reference.name), Logprobs(resident.tokens.piece, tally)
        if asked.stream:
            writer: Writer = StreamWriter(head, logprobs, reply)
        else:
            writer = WholeWriter(head, logprobs, reply, generation.pieces, resident)
        return PreparedGeneration(generation, tally, writer)

    return answer(library, reference, prepare, reply)


def _choice(text: str, logprobs: Json | None, finish: str | None) -> Json:
    return {"text": text, "index": 0, "logprobs": logprobs, "finish_reason": finish}


class WholeWriter(BufferingWriter):
    """The answer as one object, when it is complete."""

    def __init__(self, head: Head, logprobs: Logprobs, reply: Reply, pieces: TextPieces, resident: Resident) -> None:
        super().__init__(reply)
        self._head = head
        self._logprobs = logprobs
        self._pieces = pieces
        self._resident = resident

    def end(self, last: Step, receipt: Receipt) -> None:
        entries = without_stop_word(self._entries, stop_word_tokens(last, self._pieces, self._resident.tokens))
        probs: Json | None = {"content": self._logprobs.array(entries)} if entries else None
        value = self._head.around([_choice("".join(self._text), probs, last.finish)], KIND)
        value |= {"usage": usage(last.progress), "timings": timings(last.progress), RECEIPT_KEY: receipt()}
        self._reply.whole(200, json_bytes(value))


class StreamWriter:
    """The answer as server-sent events: one for every Step that released text or has an entry, then one without text
    that has the finish reason, the usage and the timings; then the receipt, [DONE]."""

    def __init__(self, head: Head, logprobs: Logprobs, reply: Reply) -> None:
        self._head = head
        self._logprobs = logprobs
        self._reply = reply
        self._started = False

    def begin(self, prefill: str) -> None:
        """There is none: the prompt is not part of the answer."""

    def step(self, step: Step) -> None:
        if not self._started:
            self._started = True
            self._reply.start(200, EVENT_STREAM)
        if step.text or step.entry is not None:
            probs: Json | None = {"content": self._logprobs.array([step.entry])} if step.entry is not None else None
            self._send(self._head.around([_choice(step.text, probs, None)], KIND))

    def end(self, last: Step, receipt: Receipt) -> None:
        final = self._head.around([_choice("", None, last.finish)], KIND)
        self._send(final | {"usage": usage(last.progress), "timings": timings(last.progress)})
        self._send({RECEIPT_KEY: receipt()})
        if not self._reply.write(DONE):
            raise Cancelled
        self._reply.finish()

    def _send(self, value: Mapping[str, object]) -> None:
        if not self._reply.write(sse_event(value)):
            raise Cancelled
