"""Folders of pinned files for the registry's tests: the files need not be models, names never open them."""

import json
from hashlib import sha256

from bankml.gguf.block_types import F32
from bankml.gguf.values import ValueType
from bankml.gguf.writer import TensorSpec, encode_value, writing

TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"


def pin(folder, *files, fork=None, content=b""):
    """Records `files` in one FORK.json; makes those that are not there. Returns their sha256s."""
    digests = []
    for file in files:
        path = folder / file
        if not path.exists():
            path.write_bytes(content or file.encode())
        digests.append(sha256(path.read_bytes()).hexdigest())
    records = [{"path": file, "bytes": 1, "sha256": digest} for file, digest in zip(files, digests, strict=True)]
    (folder / (fork or f"{files[0]}.FORK.json")).write_text(json.dumps({"files": records}))
    return digests


def templated(path, template=TEMPLATE):
    """A GGUF of one tensor that has a chat template."""
    entries = [
        ("general.architecture", encode_value(ValueType.STRING, "llama")),
        ("tokenizer.chat_template", encode_value(ValueType.STRING, template)),
    ]
    with writing(path, entries, [TensorSpec("w", (8,), F32)]) as out:
        out.write(bytes(32))
    return path
