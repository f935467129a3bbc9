"""Paths of the APIs in the field that this server does not answer: the response names the missing feature."""

from bankml.errors import NotFound, NotSupported, RequestError

KNOWN = {
    "/v1/moderations": "moderation",
    "/v1/files": "the Files API",
    "/v1/batches": "the Batch API",
    "/v1/assistants": "the Assistants API",
    "/v1/threads": "the Assistants API",
    "/v1/fine_tuning/jobs": "fine-tuning",
    "/lora-adapters": "LoRA adapters",
}
PREFIXES = {"/v1/audio/": "audio", "/v1/images/": "images", "/v1/realtime": "the Realtime API"}
SERVED = (
    "/v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, /v1/embeddings, /v1/rerank, /completion, "
    "/v1/models and Ollama's /api"
)


def unknown_path(path: str) -> RequestError:
    """The error for a path that is not answered: 501 naming the feature where another server has one there, else
    404."""
    feature = KNOWN.get(path) or next((name for start, name in PREFIXES.items() if path.startswith(start)), None)
    if feature is not None:
        return NotSupported(f"{path}: {feature} is not supported; this server answers {SERVED}")
    return NotFound(f"there is nothing at this path; this server answers {SERVED}")
