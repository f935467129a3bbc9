"""The prompt of `POST /infill`: the text around a gap, and other files, between the tokens for filling in.

    [repository]myproject [separator]FILE … [separator]filename [prefix]… [suffix]… [middle]

A `suffix` on other routes is the same without the names.
The names of the repository and of the file are llama-server's, and so is what is left out of a text that is too long.
"""

from collections.abc import Sequence

from bankml.errors import NotSupported, RequestError
from bankml.library.request import InfillFile, InfillPrompt
from bankml.library.resident import Tokens
from bankml.text.vocabulary import FillIn

BATCH = 2048
"""Tokens of one of llama-server's batches (its default `--batch-size`), which prefix and suffix share 3 : 1."""

SNIPPET = "\n\n--- snippet ---\n\n"
"""What precedes another file where the vocabulary has no separator."""


def infill_tokens(prompt: InfillPrompt, tokens: Tokens, fill_in: FillIn, n_ctx: int) -> list[int]:
    """The prompt's tokens. Raises NotSupported for a model that has not the three tokens it takes."""
    if fill_in.prefix is None or fill_in.suffix is None or fill_in.middle is None:
        parts = (("prefix", fill_in.prefix), ("suffix", fill_in.suffix), ("middle", fill_in.middle))
        missing = "".join(f"{name} token is missing. " for name, token in parts if token is None)
        raise NotSupported(f"Infill is not supported by this model: {missing}")
    begun = tokens.encode(prompt.begun)
    prefix, suffix = _mixed(prompt.prefix, tokens), _mixed(prompt.suffix, tokens)
    prefix = prefix[max(0, len(prefix) - 3 * (BATCH // 4)) :]
    suffix = suffix[: max(0, BATCH // 4 - (2 + len(begun)))]
    others = [] if prompt.files is None else _others(prompt.files, tokens, fill_in)
    others = others[max(0, len(others) - max(0, n_ctx - BATCH + 2)) :]
    return [*others, *tokens.begin, fill_in.prefix, *prefix, *begun, fill_in.suffix, *suffix, fill_in.middle]


def _others(files: Sequence[InfillFile], tokens: Tokens, fill_in: FillIn) -> list[int]:
    """The other files, and the name of the one that has the gap."""
    out: list[int] = []
    if fill_in.repository is not None:
        out += [fill_in.repository, *tokens.encode("myproject\n", parse_special=False)]
    for file in files:
        if fill_in.separator is None:
            out += tokens.encode(SNIPPET, parse_special=False)
        else:
            out += [fill_in.separator, *tokens.encode(file.name + "\n", parse_special=False)]
        out += tokens.encode(file.text, parse_special=False)
    if fill_in.separator is not None:
        out += [fill_in.separator, *tokens.encode("filename\n", parse_special=False)]
    return out


def _mixed(parts: Sequence[str | int], tokens: Tokens) -> list[int]:
    """Texts, in which control tokens are plain text, and token ids. Raises RequestError for ids that are none."""
    out: list[int] = []
    for part in parts:
        if isinstance(part, str):
            out += tokens.encode(part, parse_special=False)
        elif 0 <= part < tokens.n_vocab:
            out.append(part)
        else:
            raise RequestError("Prompt contains invalid tokens")
    return out
