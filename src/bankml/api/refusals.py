"""What a refusal looks like: `{"error": {"code", "message", "type"}}`, as OpenAI's clients know it."""

from bankml.errors import BankmlError, ContextExceeded

Json = dict[str, object]


def error_object(error: BankmlError) -> Json:
    """The answer's body, or the event that says the same after an answer has begun."""
    value: Json = {"code": error.status, "message": error.message, "type": error.kind}
    if isinstance(error, ContextExceeded):
        value |= {"n_prompt_tokens": error.n_prompt_tokens, "n_ctx": error.n_ctx}
    return {"error": value}
