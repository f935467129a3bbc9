"""The one way to an answer's format: by the template's family, or by its analysis."""

from bankml.answers.analysis import TemplateAnalysis, analyse
from bankml.answers.families import family_of
from bankml.answers.format import AnswerFormat
from bankml.answers.native import native_format
from bankml.answers.request import FormatRequest
from bankml.errors import RequestError
from bankml.grammar.json_schema import SchemaConversionError, SchemaError

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
        raise RequestError(f"{FAILED if family is None else ''}{error}") from None


def analysis_of(request: FormatRequest) -> TemplateAnalysis:
    """The analysis of the request's template, made at the first use."""
    template = request.template
    return template.remembered("answers", lambda: analyse(template.source, template.probe, template.capabilities))
