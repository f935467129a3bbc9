"""A chat request's constraint behind a template, as the API makes it of the request's body."""

from bankml.answers.describe import describe
from bankml.answers.parser import FormattedAnswer
from bankml.answers.request import FormatRequest
from bankml.api.reading.generation import chat_request
from bankml.text.answer import content_of


def constrain(body, template):
    """The format of the answer to a chat request's body."""
    request = chat_request(body)
    return describe(FormatRequest(template, request.prompt, request.constraint.schema))


class ContentStream:
    """The content of one answer of a format, as it is streamed."""

    def __init__(self, form):
        self.parser = FormattedAnswer(form, lambda: "id", echo=True)

    def push(self, text):
        return content_of(self.parser.push(text, last=False))

    def finish(self):
        return content_of(self.parser.push("", last=True))


def content_stream(form):
    return ContentStream(form)
