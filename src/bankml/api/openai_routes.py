"""The generation routes of OpenAI's, Anthropic's and llama-server's APIs."""

from bankml.api.answering import answer
from bankml.api.call import call_of
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


def chat_completions(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`POST /v1/chat/completions`."""
    return answer(library, call_of(library, read_chat(request.body, library.parallel), request, ChatFormat), reply)


def completion(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`POST /completion`, llama-server's own."""
    return answer(
        library, call_of(library, read_completion(request.body, library.parallel), request, CompletionFormat), reply
    )


def text_completions(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`POST /v1/completions`."""
    call = call_of(library, read_text_completion(request.body, library.parallel), request, TextCompletionFormat)
    return answer(library, call, reply)


def responses(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`POST /v1/responses`."""
    return answer(library, call_of(library, read_responses(request.body), request, ResponsesFormat), reply)


def anthropic_messages(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`POST /v1/messages`."""
    return answer(library, call_of(library, read_messages_request(request.body), request, MessagesFormat), reply)


def infill(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`POST /infill`, llama-server's own."""
    return answer(library, call_of(library, read_infill(request.body), request, CompletionFormat), reply)
