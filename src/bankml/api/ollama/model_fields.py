"""The fields of `/api/create` that describe the model to make, read into a Modelfile."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bankml.errors import RequestError
from bankml.library import parameters
from bankml.library.modelfile import Modelfile, check_spelling, checked_message, checked_version
from bankml.library.names import quoted


def read_model_fields(body: Mapping[str, Any]) -> Modelfile:
    """The Modelfile that the fields of a request describe: `from`, `system`, `template`, `parameters`, `messages`,
    `license` (a string or a list of them), `requires`; null is the same as missing. Other fields are the caller's.
    A text that no Modelfile can contain is refused, so that every model can be written as one. Raises RequestError,
    naming the field."""
    parameters_, stop = _json_parameters(body.get("parameters"))
    license_ = body.get("license")
    made = Modelfile(
        source=_json_text(body, "from") or "",
        system=_json_text(body, "system"),
        parameters=parameters_,
        stop=stop,
        messages=tuple(_json_message(one, i) for i, one in enumerate(_json_list(body, "messages"))),
        license=(license_,) if isinstance(license_, str) else tuple(_json_license(_json_list(body, "license"))),
        template=_json_text(body, "template"),
        requires=None if _json_text(body, "requires") is None else checked_version(body["requires"]),
    )
    check_spelling(made)
    return made


def _json_text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise RequestError(f"{name} must be a string")
    return value


def _json_list(body: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = body.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise RequestError(f"{name} must be a list")
    return value


def _json_license(values: Sequence[Any]) -> Iterator[str]:
    for value in values:
        if not isinstance(value, str):
            raise RequestError("license must be a string or a list of strings")
        yield value


def _json_message(value: Any, index: int) -> dict[str, str]:
    if not isinstance(value, dict) or not isinstance(value.get("content"), str):
        raise RequestError(f"messages[{index}] must be an object with a role and a content")
    odd = next((key for key, one in value.items() if key not in ("role", "content") and one), None)
    if odd is not None:
        raise RequestError(f"messages[{index}] has {quoted(odd)}: expected only role and content")
    return checked_message(str(value.get("role")), value["content"])


def _json_parameters(value: Any) -> tuple[dict[str, int | float], tuple[str, ...]]:
    if value is None:
        return {}, ()
    if not isinstance(value, dict):
        raise RequestError("parameters must be an object")
    stop = value.get("stop")
    texts = [stop] if isinstance(stop, str) else stop if stop is not None else []
    if not isinstance(texts, list):
        raise RequestError("the parameter stop must be a string or a list of strings")
    for name in value:
        if name not in (*parameters.PARAMETERS, *parameters.IGNORED, "stop"):
            raise parameters.unknown(name)
    kept = {name: one for name, one in value.items() if name in parameters.PARAMETERS and one is not None}
    given = {name: parameters.checked(name, one) for name, one in kept.items()}
    return given, parameters.checked_stops(texts)
