"""`bankml convert | tokenize | chat-template`."""

import json
import sys
from argparse import Namespace

from bankml.cli.output import file_bar, say
from bankml.errors import RequestError, UsageError


def convert(arguments: Namespace) -> int:
    from bankml.library.convert import convert as rewrite

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

    tokenizer = Tokenizer.from_header(header)
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"the text on stdin is not UTF-8 (byte {error.start})") from error
    print(json.dumps(tokenizer.encode(text, parse_special=not arguments.no_special)), flush=True)
    return 0


def chat_template(arguments: Namespace) -> int:
    from bankml.gate.guard import guard, require_model

    header = require_model(guard(arguments.file))

    from bankml.text.template import ChatTemplate

    template = ChatTemplate.from_header(header)
    try:
        prompt = template.render(_messages(sys.stdin.buffer.read()))
    except RequestError as error:
        raise UsageError(error.message) from error
    sys.stdout.buffer.write(prompt.encode())
    return 0


def _messages(raw: bytes) -> list[dict[str, object]]:
    """The messages of a JSON list, or of a chat request's `messages`."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the messages on stdin are not JSON: {error}") from error
    messages = document.get("messages") if isinstance(document, dict) else document
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise UsageError("the JSON on stdin is neither a list of messages nor an object with one")
    return messages
