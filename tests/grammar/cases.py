"""Grammars to try: those of the recordings folder, a small vocabulary with every way to cut a character."""

import json
from pathlib import Path

RECORDED = json.loads((Path(__file__).parents[1] / "recordings" / "grammar" / "grammars.json").read_text("utf-8"))

WITH_TOKENS = {
    "one_token": "root ::= ([a-c] <[{0}]>)+",
    "all_but_one": "root ::= ([a-z ]+ | !<[{0}]>) ( <[{1}]> | [0-9] )*",
    "tokens_only": "root ::= !<[{0}]>{{2,5}} <[{1}]>?",
    "by_text": 'root ::= "x"* <|im_start|> [a-z]+ <|im_end|>?',
}

END, UNNAMED, SPECIAL = 0, 1, 2
PIECES = [
    b"", b"", b"<|im_start|>", b"a\0b", b"\0",
    *(bytes([b]) for b in b'abcxyz019 .,-"[]{}():\n\\'),
    b"ab", b"abc", b"abcabc", b"aaaa", b"xx", b"xy", b"  ", b'":', b'",', b'"}', b"}}", b"12", b"1234", b" a",
    "é".encode(), "日".encode(), "本".encode(), "日本".encode(), "é日x".encode(), "😀".encode(), "a😀b".encode(),
    "è".encode(),
    b"\xc3", b"\xa9", b"\xa8a", b"\xe6", b"\xe6\x97", b"\x97", b"\xa5", b"\x97\xa5", b"\xa5\xe6\x9c", b"\x9c\xac",
    b"\xf0", b"\xf0\x9f", b"\x9f\x98\x80", b"\x98\x80", b"\x80", b"a\xc3", b"ab\xe6\x97", b"a\xf0\x9f\x98",
    b"\xc3a", b"\xe6a", b"\xc1", b"\xe0", b"\xe0\x80", b"\xff", b"a\x80", b"\xc3\xa9\xe6",
]  # fmt: skip
