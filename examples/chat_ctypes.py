"""Sends a chat request to a verified model: streams the answer to stdout, prints the receipt's hashes to stderr.

python3 chat_ctypes.py MODEL.gguf MODEL.gguf.FORK.json "What is a receipt?"
"""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable

Piece = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p)
# A char * that the caller frees: ctypes converts a c_char_p to bytes, which would lose its address.
Owned = ctypes.POINTER(ctypes.c_char)


def load() -> ctypes.CDLL:
    """Loads the library from the path that `bankml capi` prints."""
    prefix = subprocess.run(["bankml", "capi", "--prefix"], check=True, capture_output=True, text=True).stdout.strip()
    library = ctypes.CDLL(f"{prefix}/lib/libbankml.so")
    model, text, place = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Owned)
    signatures = {
        "bankml_open": (model, text, text, ctypes.c_uint32, place),
        "bankml_chat": (ctypes.c_int, model, text, Piece, ctypes.c_void_p, place),
        "bankml_close": (None, model),
        "bankml_free": (None, Owned),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Model:
    """A verified, loaded model. Raises RuntimeError, with the reason, if it is refused."""

    def __init__(self, library: ctypes.CDLL, path: str, fork: str) -> None:
        self._library = library
        reason = Owned()
        self._handle = library.bankml_open(os.fsencode(path), os.fsencode(fork), 0, ctypes.byref(reason))
        message = self._taken(reason)
        if not self._handle:
            raise RuntimeError(message)

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self._library.bankml_close(self._handle)

    def chat(self, request: dict, write: Callable[[str], bool]) -> dict:
        """Calls `write` with each piece of the answer, which returns whether to continue; returns the response."""

        @Piece
        def on_piece(piece, size, _):
            return write(ctypes.string_at(piece, size).decode())

        result = Owned()
        body = json.dumps(request).encode()
        code = self._library.bankml_chat(self._handle, body, on_piece, None, ctypes.byref(result))
        answer = json.loads(self._taken(result))
        if code != 0:
            raise RuntimeError(f"bankml_chat returned {code}: {answer['error']['message']}")
        return answer

    def _taken(self, text: Owned) -> str:
        """A copy of a string of the library, which is freed."""
        try:
            return ctypes.string_at(text).decode() if text else ""
        finally:
            self._library.bankml_free(text)


def show(piece: str) -> bool:
    print(piece, end="", flush=True)
    return True


def main(path: str, fork: str, question: str) -> None:
    with Model(load(), path, fork) as model:
        request = {"max_tokens": 256, "messages": [{"role": "user", "content": question}]}
        answer = model.chat(request, show)
    print()
    for key in ("model_sha256", "request_sha256", "response_sha256"):
        print(key, answer["bankml_receipt"][key], file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(f"usage: {sys.argv[0]} MODEL.gguf FORK.json QUESTION")
    try:
        main(*sys.argv[1:])
    except RuntimeError as error:
        sys.exit(str(error))
