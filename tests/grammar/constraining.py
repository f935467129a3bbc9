"""A chat request's constraint behind a template, as the API makes it of the request's body."""

from bankml.grammar.content import ContentStream

from bankml.api.generation import refuse_thoughts
from bankml.api.reading.constraints import check_response_format, read_chat_constraint
from bankml.api.reading.messages import read_conversation
from bankml.grammar.constraint import chat_constraint


def constrain(body, template):
    """The constraint of a chat request's body, None without one."""
    check_response_format(body)
    spec, conversation = read_chat_constraint(body), read_conversation(body)
    refuse_thoughts(conversation, template, constrained=spec.schema is not None)
    prompt = template.prompt(conversation, for_grammar=spec.schema is not None)
    if not spec:
        return None
    return chat_constraint(spec, template.source, template.reasoning, prompt.generation_prompt, prompt.opening)


def content_stream(made):
    """The content of one answer under a constraint, None where all of its text is content."""
    return None if made.shape is None else ContentStream(made.shape, made.opening)
