"""What a refusal looks like: `{"error": {"code", "message", "type"}}`, as OpenAI's clients know it, or Ollama's."""

from collections.abc import Callable

from bankml.errors import BankmlError, ContextExceeded

Json = dict[str, object]
Shape = Callable[[BankmlError], Json]


def error_object(error: BankmlError) -> Json:
    """The answer's body, or the event that says the same after an answer has begun."""
    value: Json = {"code": error.status, "message": error.public_message, "type": error.kind}
    if isinstance(error, ContextExceeded):
        value |= {"n_prompt_tokens": error.n_prompt_tokens, "n_ctx": error.n_ctx}
    return {"error": value}


def ollama_error_object(error: BankmlError) -> Json:
    """The same as Ollama's clients know it."""
    return {"error": error.public_message}


def shape_of(path: str, address: str) -> Shape:
    """Ollama's shape below /api on the gateway address, OpenAI's everywhere else."""
    return (
        ollama_error_object if address == "gateway" and (path == "/api" or path.startswith("/api/")) else error_object
    )
