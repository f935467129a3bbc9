"""`tokenize` and `chat-template` on a model small enough to make here: every byte a token, and one merge."""

import io
import json
import subprocess
import sys

import pytest

from bankml.cli import main
from bankml.gguf.block_types import F32
from bankml.gguf.values import ValueType
from bankml.gguf.writer import TensorSpec, encode_array, encode_value, writing

pytest.importorskip("bankml.text.tokenizer")

TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}"


def byte_characters():
    """GPT-2's spelling of the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def write_model(path, **changes):
    tokens = [*byte_characters(), "ab", "<end>"]
    strings = {"model": "gpt2", "pre": "smollm", "chat_template": TEMPLATE} | changes
    entries = [("general.architecture", encode_value(ValueType.STRING, "llama"))]
    for key, value in strings.items():
        if value is not None:
            name = f"tokenizer.{key}" if key == "chat_template" else f"tokenizer.ggml.{key}"
            entries.append((name, encode_value(ValueType.STRING, value)))
    entries += [
        ("tokenizer.ggml.tokens", encode_array(ValueType.STRING, tokens)),
        ("tokenizer.ggml.token_type", encode_array(ValueType.INT32, [1] * 257 + [3])),
        ("tokenizer.ggml.merges", encode_array(ValueType.STRING, ["a b"])),
        ("tokenizer.ggml.eos_token_id", encode_value(ValueType.UINT32, 257)),
    ]
    with writing(path, entries, [TensorSpec("w", (8,), F32)]) as out:
        out.write(bytes(32))
    return path


@pytest.fixture
def run(capfd, monkeypatch):
    def run_one(stdin, *command):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(word) for word in command])
        out, err = capfd.readouterr()
        return code, out, err

    return run_one


def test_tokenize(run, tmp_path):
    model = write_model(tmp_path / "m.gguf")
    assert run(b"cab<end>\n", "tokenize", model) == (0, f"[{ord('c')}, 256, 257, 10]\n", "")
    code, out, _ = run(b"cab<end>", "tokenize", model, "--no-special")
    assert code == 0 and json.loads(out) == [ord("c"), 256, *b"<end>"]
    assert run(b"\xff", "tokenize", model) == (1, "", "error: the text on stdin is not UTF-8 (byte 0)\n")
    assert run(b"", "tokenize", model) == (0, "[]\n", "")


def test_what_never_ends_is_not_read_for_ever(tmp_path):
    model = write_model(tmp_path / "m.gguf")
    for command in ("tokenize", "chat-template"):
        with open("/dev/zero", "rb") as zeros:
            words = [sys.executable, "-m", "bankml", command, str(model)]
            ran = subprocess.run(words, stdin=zeros, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr == "error: stdin is longer than 16777216 bytes\n"


def test_chat_template(run, tmp_path):
    model = write_model(tmp_path / "m.gguf")
    messages = [{"role": "user", "content": "hé"}]
    for request in (messages, {"messages": messages}):
        assert run(json.dumps(request).encode(), "chat-template", model) == (0, "[user] hé<end>", "")
    for stdin in (b"", b"7", b"{}", b"[1]", b"[" * 100_000):
        code, out, err = run(stdin, "chat-template", model)
        assert (code, out) == (1, "") and err.startswith("error: ") and err.count("\n") == 1


def test_refusals_name_the_file(run, tmp_path):
    for changes in ({"model": "rwkv"}, {"pre": "other"}):
        model = write_model(tmp_path / "m.gguf", **changes)
        for command in ("tokenize", "chat-template"):
            code, out, err = run(b"[]", command, model)
            assert (code, out) == (2, "") and err.startswith("refuse: m.gguf: ")
    code, out, err = run(b"[]", "chat-template", write_model(tmp_path / "m.gguf", chat_template=b"\xff"))
    assert (code, out) == (2, "") and "tokenizer.chat_template is " in err and err.endswith("must be a UTF-8 string\n")


def test_a_model_without_a_template_is_written_as_chatml(run, tmp_path):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hé"}]
    expected = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhé<|im_end|>\n<|im_start|>assistant\n"
    for template in (None, ""):
        model = write_model(tmp_path / "m.gguf", chat_template=template)
        assert run(json.dumps(messages).encode(), "chat-template", model) == (0, expected, "")
