"""Folders of pinned files for the registry's tests: the files need not be models, names never open them.

`create` looks at the header of its base: `templated` makes a file with one that is played.
"""

import json
from hashlib import sha256

from bankml.gguf.values import ValueType
from bankml.gguf.writer import encode_value, writing
from tests import tiny_model

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
    """A model with that chat template, all of whose weights are 0."""
    specs = tiny_model.tensors(1, 32)
    with writing(path, tiny_model.entries(1, 256, 32, template), specs) as out:
        for spec in specs:
            out.write(bytes(spec.nbytes))
    return path


def make_odd(path):
    """Gives a tiny Qwen3 a pre-tokenizer of the same length that is not played."""
    known, other = (encode_value(ValueType.STRING, name) for name in ("qwen2", "pluto"))
    path.write_bytes(path.read_bytes().replace(known, other, 1))
