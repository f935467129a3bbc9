"""`POST /api/chat` and `POST /api/generate`: from a request's bytes to an answer with a receipt."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bankml.api.answering import Generation, Prepared, Writer, answer
from bankml.api.chat_request import chat_request
from bankml.api.ending import stop_word_tokens
from bankml.api.exchange import LogLine, Reply, Request
from bankml.api.fitting import Fitted, fitted, limited, within
from bankml.api.json_out import written
from bankml.api.logprobs import Logprobs
from bankml.api.ollama.chat_request import read_chat
from bankml.api.ollama.durations import FOREVER
from bankml.api.ollama.generate_request import Generate, read_generate
from bankml.api.ollama.request import Asked
from bankml.api.ollama.writers import Carry, Head, StreamWriter, WholeWriter, entry_with, message, response
from bankml.engine.completion import Job
from bankml.library.derived import with_layer
from bankml.library.reference import Layer, Reference
from bankml.library.residency import FOR_GOOD, Library
from bankml.library.resident import Resident
from bankml.receipt.receipt import Tally

Body = Mapping[str, Any]


def chat(library: Library, request: Request, reply: Reply, default_keep: float) -> LogLine:
    """Answers one conversation; one without messages loads the model, or unloads it."""
    asked = read_chat(request.body)
    reference = library.resolve(asked.asked.model)
    if not asked.messages:
        return _without_answer(library, reference, asked.asked, message, request, reply, default_keep)
    layer = reference.layer or Layer()

    def prompted(resident: Resident) -> Fitted:
        body = with_layer({**asked.asked.fields, "messages": list(asked.messages)}, layer)
        return fitted(body, resident, _n_ctx(asked.asked, layer, resident), asked.asked.truncate)

    return _answer(library, reference, asked.asked, message, prompted, request, reply, default_keep)
