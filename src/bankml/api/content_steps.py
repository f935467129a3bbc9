"""The steps of an answer that is held to JSON, with its content for their text."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from bankml.engine.completion import Step
from bankml.grammar.content import ContentStream


def content_steps(steps: Iterable[Step], content: ContentStream, streamed: bool) -> Iterator[Step]:
    """Each step with what it adds to the value. An answer that ends before its value began is told as it stands,
    unless it is streamed: then nothing of it is, as in llama-server."""
    said: list[str] = []
    for step in steps:
        said.append(step.text)
        text = content.push(step.text)
        if step.finish is not None and not content.begun and not streamed:
            text = "".join(said)
        yield replace(step, text=text)
