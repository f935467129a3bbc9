"""The generation routes of OpenAI's, Anthropic's and llama-server's APIs."""

from collections.abc import Callable, Mapping

from bankml.api.answering import answer
from bankml.api.call import Call, call_of
from bankml.api.formats.anthropic import MessagesFormat
from bankml.api.formats.chat import ChatFormat
from bankml.api.formats.completion import CompletionFormat
from bankml.api.formats.responses import ResponsesFormat
from bankml.api.formats.text_completion import TextCompletionFormat
from bankml.api.reading.anthropic import read_messages_request
from bankml.api.reading.generation import read_chat, read_completion, read_text_completion
from bankml.api.reading.infill import read_infill
from bankml.api.reading.responses import read_responses
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.library.residency import Library

CallOf = Callable[[Library, Request], Call]
"""Reads a request. Raises RequestError, NotFound, Refused."""


def chat_call(library: Library, request: Request) -> Call:
    """`POST /v1/chat/completions`."""
    return call_of(library, read_chat(request.body, library.parallel), request, ChatFormat)


def completion_call(library: Library, request: Request) -> Call:
    """`POST /completion`, llama-server's own."""
    return call_of(library, read_completion(request.body, library.parallel), request, CompletionFormat)


def text_completion_call(library: Library, request: Request) -> Call:
    """`POST /v1/completions`."""
    return call_of(library, read_text_completion(request.body, library.parallel), request, TextCompletionFormat)


def responses_call(library: Library, request: Request) -> Call:
    """`POST /v1/responses`."""
    return call_of(library, read_responses(request.body), request, ResponsesFormat)


def messages_call(library: Library, request: Request) -> Call:
    """`POST /v1/messages`."""
    return call_of(library, read_messages_request(request.body), request, MessagesFormat)


def infill_call(library: Library, request: Request) -> Call:
    """`POST /infill`, llama-server's own."""
    return call_of(library, read_infill(request.body), request, CompletionFormat)


CALLS: Mapping[str, CallOf] = {
    "/completion": completion_call,
    "/completions": completion_call,
    "/v1/completions": text_completion_call,
    "/chat/completions": chat_call,
    "/v1/chat/completions": chat_call,
    "/infill": infill_call,
    "/responses": responses_call,
    "/v1/responses": responses_call,
    "/v1/messages": messages_call,
}
"""The paths that generate."""


def generating(call: CallOf) -> Callable[[Library, Request, Reply], RequestOutcome]:
    """The handler of a path that generates."""

    def handler(library: Library, request: Request, reply: Reply) -> RequestOutcome:
        return answer(library, call(library, request), reply)

    return handler
