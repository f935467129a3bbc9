"""The one way to an answer's format: by the template's family, or by its analysis."""

from bankml.answers.analysis import TemplateAnalysis, analyse
from bankml.answers.families import family_of
from bankml.answers.format import AnswerFormat
from bankml.answers.native import native_format
from bankml.answers.request import FormatRequest
from bankml.errors import RequestError
from bankml.grammar.json_schema import SchemaConversionError, SchemaError
from bankml.text.messages import Conversation
from bankml.text.template import ChatTemplate

FAILED = "Unable to generate parser for this template. Automatic parser generation failed: "
"""What b11192 puts before the reason, whatever the reason is."""


def describe(request: FormatRequest) -> AnswerFormat:
    """The format of the answer to `request`. Raises RequestError."""
    family = family_of(request.source)
    try:
        if family is not None:
            return family.describe(request)
        return native_format(request, analysis_of(request))
    except (SchemaError, SchemaConversionError) as error:
        raise RequestError(f"{FAILED if family is None and not request.strict else ''}{error}") from None


def analysis_of(request: FormatRequest) -> TemplateAnalysis:
    """The analysis of the request's template, made at the first use."""
    template = request.template
    found = template.remembered("answers", lambda: analyse(template.source, template.probe, template.capabilities))
    assert isinstance(found, TemplateAnalysis)
    return found


def template_thinks(template: ChatTemplate) -> bool:
    """The template is one of a model that reasons; found at the first use."""

    def find() -> bool:
        conversation = Conversation([{"role": "user", "content": "test"}], enable_thinking=True)
        try:
            return describe(FormatRequest(template, conversation)).thinks
        except RequestError:
            return False

    return bool(template.remembered("thinks", find))
