"""Bodies of error responses: `{"error": {"code", "message", "type"}}` for OpenAI's clients, Anthropic's or Ollama's
form."""

from collections.abc import Callable

from bankml.errors import BankmlError, ContextExceeded

Json = dict[str, object]
Shape = Callable[[BankmlError], Json]


def error_object(error: BankmlError) -> Json:
    """The body of an error response, or the error event of a stream."""
    value: Json = {"code": error.status, "message": error.public_message, "type": error.kind}
    if isinstance(error, ContextExceeded):
        value |= {"n_prompt_tokens": error.n_prompt_tokens, "n_ctx": error.n_ctx}
    return {"error": value}


def ollama_error_object(error: BankmlError) -> Json:
    """The same for Ollama's clients."""
    return {"error": error.public_message}


def anthropic_error_object(error: BankmlError) -> Json:
    """The same for Anthropic's clients, which know an error's object, or event, by its `type`."""
    return {"type": "error", **error_object(error)}


def shape_of(path: str, address: str) -> Shape:
    """Ollama's form below /api on the gateway address, Anthropic's at /v1/messages, OpenAI's everywhere else."""
    if path == "/v1/messages" or path.startswith("/v1/messages/"):
        return anthropic_error_object
    return (
        ollama_error_object if address == "gateway" and (path == "/api" or path.startswith("/api/")) else error_object
    )
