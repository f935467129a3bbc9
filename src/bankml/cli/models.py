"""`bankml convert | tokenize | chat-template`."""

import json
import os
from argparse import Namespace

from bankml.cli.output import about, file_bar, say, write
from bankml.cli.stdin import read_bytes
from bankml.errors import RequestError, UsageError


def convert(arguments: Namespace) -> int:
    from bankml.convert.requantize import convert_gguf as rewrite

    if arguments.imatrix is not None:
        raise UsageError("--imatrix is not supported: convert writes what llama-quantize writes without one")
    if os.path.isdir(arguments.file):
        raise UsageError(
            f"{arguments.file} is a folder: `bankml create NAME -f Modelfile` converts it, with the line"
            f" `FROM {arguments.file}` in the Modelfile"
        )
    with file_bar("converting", arguments.file) as progress:
        header = rewrite(
            arguments.file, arguments.output, arguments.outtype, overwrite=arguments.force, progress=progress
        )
    say(f"{arguments.output}: {len(header.tensors)} tensors, matrices in {arguments.outtype.upper()}")
    return 0


def tokenize(arguments: Namespace) -> int:
    from bankml.gate.guard import guard, require_model

    header = require_model(guard(arguments.file))

    from bankml.text.tokenizer import Tokenizer

    with about(arguments.file):
        tokenizer = Tokenizer.from_header(header)

    from bankml.api.reading.plain_input import text_in

    text = text_in(read_bytes())
    say(json.dumps(tokenizer.encode(text, parse_special=not arguments.no_special)))
    return 0


def chat_template(arguments: Namespace) -> int:
    from bankml.gate.guard import guard, require_model
    from bankml.library.supported import template_source

    header = require_model(guard(arguments.file))

    from bankml.answers.describe import describe as format_of
    from bankml.answers.request import FormatRequest
    from bankml.api.reading.messages import read_conversation
    from bankml.api.reading.plain_input import request_in
    from bankml.text.template import ChatTemplate
    from bankml.text.tokenizer import Tokenizer

    with about(arguments.file):
        tokenizer = Tokenizer.from_header(header)
        template = ChatTemplate(template_source(header), tokenizer.template_tokens)
    try:
        prompt = format_of(FormatRequest(template, read_conversation(request_in(read_bytes())))).prompt
    except RequestError as error:
        raise UsageError(error.message) from error
    write(prompt.encode())
    return 0
