"""Input files of batches, and runs of the command on them."""

import json
import os
import subprocess
import sys

from bankml.batch.request import CHAT, EMBEDDINGS, TEXT
from tests.tiny_model import END

SYSTEM = "the lantern and the river, and a door of stone. " * 12
"""More than one micro-batch of tokens, which are bytes here."""

NO_END = {"logit_bias": [[END, False]]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}


def chat(i, **fields):
    messages = [{"role": "system", "content": SYSTEM[i % 3 :]}, {"role": "user", "content": f"question {i * 7}"}]
    body = {"messages": messages, "max_tokens": 3 + i % 5, **NO_END, **fields}
    return {"custom_id": f"chat {i}", "method": "POST", "url": CHAT, "body": body}


def requests(n):
    """One of every kind, in turn."""
    kinds = [
        chat,
        lambda i: chat(i, temperature=0),
        lambda i: chat(i, seed=i, temperature=1.5),
        lambda i: chat(i, logprobs=True, top_logprobs=2),
        lambda i: chat(i, tools=[TOOL], tool_choice="required", max_tokens=60),
        lambda i: chat(i, response_format={"type": "json_schema", "json_schema": {"schema": SCHEMA}}),
        lambda i: {"messages": [{"role": "user", "content": f"{i}"}], "max_tokens": 4},
        lambda i: {"custom_id": f"t{i}", "method": "POST", "url": TEXT, "body": {"prompt": SYSTEM, "max_tokens": 4}},
        lambda i: {
            "custom_id": f"e{i}",
            "method": "POST",
            "url": TEXT,
            "body": {"prompt": SYSTEM[:530], "max_tokens": 2, "echo": True, "logprobs": 1},
        },
        lambda i: {"custom_id": f"v{i}", "method": "POST", "url": EMBEDDINGS, "body": {"input": [f"{i}", "two"]}},
        lambda i: {"custom_id": f"bad {i}", "method": "GET"},
    ]
    return [kinds[i % len(kinds)](i) for i in range(n)]


def write_input(path, lines):
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def command(source, output, *options, model=None):
    model_words = [] if model is None else ["--model", str(model), "--ctx", "1024", "--embeddings", "--pooling", "last"]
    return ["batch", str(source), "-o", str(output), *model_words, "--quiet", *map(str, options)]


def started(*words):
    """The command in a process of its own."""
    environment = os.environ | {"BANKML_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "bankml", *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
