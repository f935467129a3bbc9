"""White space that llama.cpp b11192 leaves out where it joins tokens to a text (llama_vocab::impl::detokenize)."""


def cleaned(text: bytes) -> bytes:
    """`text` without the spaces before `?!.,`, around a lone apostrophe, and before 's, 'm, 're and 've. Three passes,
    each over what the one before left; what a pass looks back at is its input."""
    return _without_before_contractions(_without_around_apostrophes(_without_before_marks(text)))


def _without_before_marks(text: bytes) -> bytes:
    out = bytearray(text[:1])
    for i in range(1, len(text)):
        if text[i - 1] == 0x20 and text[i] in b"?!.,":
            del out[-1:]
        out.append(text[i])
    return bytes(out)


def _without_around_apostrophes(text: bytes) -> bytes:
    out, data, i = bytearray(text[:1]), bytearray(text), 1
    while i < len(data):
        mark = data[i]
        if mark == 0x27 and i + 1 < len(data) and data[i - 1] == data[i + 1] == 0x20:
            del out[-1:]
            i += 1
            data[i] = 0
        out.append(mark)
        i += 1
    return bytes(out)


def _without_before_contractions(text: bytes) -> bytes:
    out = bytearray(text[:1])
    for i in range(1, len(text)):
        following = text[i + 1 : i + 3]
        if text[i - 1 : i + 1] == b" '" and (following[:1] in (b"s", b"m") or following in (b"re", b"ve")):
            del out[-1:]
        out.append(text[i])
    return bytes(out)
