"""The log's formatter against the system's snprintf: a C program's fixed cases, and random ones through ctypes."""

import ctypes
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .building import LOG, SANITIZED, build, run

HERE = Path(__file__).parent
LIBC = ctypes.CDLL(None)
SINK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    return build(tmp_path_factory.mktemp("oracle"), "oracle", [*LOG, HERE / "printf_oracle.c"], *SANITIZED)


@pytest.mark.parametrize("mode", [[], ["hooked"]], ids=["alone", "hooked"])
def test_every_byte_is_snprintfs_and_every_marker_exact(oracle, mode):
    done = run(oracle, *mode)
    assert int(done.stdout.split()[0]) > 500_000


def test_the_decimal_point_is_the_hosts(oracle, tmp_path):
    if shutil.which("localedef") is None:
        pytest.skip("no localedef")
    command = ["localedef", "-f", "UTF-8", "-i", "de_DE", str(tmp_path / "de_DE.UTF-8")]
    made = subprocess.run(command, check=False, capture_output=True)
    if made.returncode != 0:
        pytest.skip(f"no German locale: {made.stderr.decode(errors='replace')}")
    run(oracle, "de_DE.UTF-8", env={"LOCPATH": str(tmp_path)})


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """bankml_log as a function of Python: the message that a sink receives, as bytes."""
    path = build(tmp_path_factory.mktemp("log"), "log.so", LOG, "-O1", "-fPIC", "-shared")
    library, messages = ctypes.CDLL(str(path)), []
    sink = SINK(lambda level, msg, size, user: messages.append(ctypes.string_at(msg, size)))
    library.bankml_set_log(sink, None)

    def logged(form, *arguments):
        library.bankml_log(2, form, *arguments)
        return messages.pop()

    yield logged
    library.bankml_set_log(None, None)


@dataclass(frozen=True)
class Piece:
    form: bytes
    arguments: tuple = ()  # what it reads, as ctypes
    foreign: bool = False  # of a type that is not known: nothing is read after it
    vouched: bool = True

    def expected(self):
        if not self.vouched:
            return b"%<unsupported:" + self.form[1:] + b">"
        form, arguments = self.form, self.arguments
        if b"*" in form.partition(b".")[0] and arguments[0].value < 0:
            # By C's definition. numpy, if this process has it, brings printf hooks with which glibc pads wrongly here.
            form, arguments = b"%-" + form[1:], (ctypes.c_int(-arguments[0].value), *arguments[1:])
        buffer = ctypes.create_string_buffer(4096)
        size = LIBC.snprintf(buffer, ctypes.c_size_t(4096), form, *arguments)
        assert 0 <= size < 4096
        return buffer.raw[:size]


SIGNED = {"": ctypes.c_int, "hh": ctypes.c_int, "h": ctypes.c_int, "l": ctypes.c_long, "ll": ctypes.c_longlong}
UNSIGNED = {"": ctypes.c_uint, "hh": ctypes.c_uint, "h": ctypes.c_uint, "l": ctypes.c_ulong, "ll": ctypes.c_ulonglong}
TEXT = st.binary(max_size=40).filter(lambda text: b"\0" not in text)
BYTES = st.lists(st.sampled_from([b"a", b" ", b"\xc3\xbc", b"\xff", b"%%", b">"]), max_size=5).map(b"".join)
# Each conversion and the flags that are vouched for.
TYPES = {
    "d": "-+ 0",
    "i": "-+ 0",
    "u": "-+ 0",
    "x": "-+ #0",
    "X": "-+ #0",
    "f": "-+ #0",
    "F": "-+ #0",
    "s": "-",
    "c": "-",
    "p": "-",
}
FOREIGN = ["e", "g", "a", "o", "n", "Lf", "ls", "lc", "jd", "tu", "hhs", "-5.3E", "*.*n", "zc", "w", "\xe9"]


@st.composite
def amounts(draw, most):
    """A width or precision: its text, and the argument it reads."""
    how = draw(st.sampled_from(["absent", "number", "star"]))
    if how == "absent":
        return "", ()
    if how == "number":
        return str(draw(st.integers(1, most))), ()
    return "*", (ctypes.c_int(draw(st.integers(-most, most))),)


@st.composite
def values(draw, kind, length):
    if kind in "fF":
        return ctypes.c_double(draw(st.floats() | st.integers(-(2**70), 2**70).map(lambda n: n / 1024)))
    if kind == "c":
        return ctypes.c_int(draw(st.integers(-(2**31), 2**31 - 1)))
    if kind == "p":
        return ctypes.c_void_p(draw(st.integers(0, 2**64 - 1)))
    if kind == "s":
        return ctypes.c_char_p(draw(st.none() | TEXT))
    if length == "z":
        return (ctypes.c_ssize_t if kind in "di" else ctypes.c_size_t)(draw(st.integers(-(2**63), 2**64 - 1)))
    return (SIGNED if kind in "di" else UNSIGNED)[length](draw(st.integers(-(2**63), 2**64 - 1)))


@st.composite
def conversions(draw):
    """Any conversion whose argument has a known type, vouched for or not."""
    kind = draw(st.sampled_from(list(TYPES)))
    lengths = ["", "l"] if kind in "fF" else ["", "hh", "h", "l", "ll", "z"] if kind in "diuxX" else [""]
    length = draw(st.sampled_from(lengths))
    flags = "".join(draw(st.lists(st.sampled_from(TYPES[kind]), max_size=4)))
    width, read_width = draw(amounts(300))
    precision, read_precision = draw(amounts(300)) if kind not in "cp" else ("", ())
    if precision or (kind not in "cp" and draw(st.booleans())):
        precision = "." + precision
    vouched = True
    spoil = draw(st.sampled_from(["", "", "", "", "flag", "width", "precision"]))
    if spoil == "flag" and set(TYPES[kind]) != set("-+ #0"):
        flags, vouched = flags + draw(st.sampled_from(sorted(set("-+ #0") - set(TYPES[kind])))), False
    elif spoil == "width":
        width, read_width, vouched = str(draw(st.integers(65537, 10**20))), (), False
    elif spoil == "precision":
        precision, read_precision, vouched = ".*", (ctypes.c_int(draw(st.integers(65537, 2**31 - 1))),), False
    form = f"%{flags}{width}{precision}{length}{kind}".encode()
    return Piece(form, (*read_width, *read_precision, draw(values(kind, length))), vouched=vouched)


PIECES = BYTES.map(Piece) | conversions() | conversions() | conversions()
STRANGE = st.sampled_from(FOREIGN).map(lambda spec: Piece(b"%" + spec.encode(), foreign=True, vouched=False))


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=16))
def test_each_argument_is_read_at_its_type(log, pieces):
    arguments = [argument for piece in pieces for argument in piece.arguments]
    assert log(b"".join(p.form for p in pieces), *arguments) == b"".join(p.expected() for p in pieces)


@settings(max_examples=200)
@given(st.lists(PIECES, max_size=5), STRANGE, st.lists(PIECES | STRANGE, max_size=5))
def test_after_a_type_that_is_not_known_nothing_is_read(log, before, strange, after):
    def unread(piece):
        if not piece.arguments and not piece.foreign:
            return piece.expected()
        return b"%<skipped:" + piece.form[1:] + b">"

    arguments = [argument for piece in before for argument in piece.arguments]
    expected = b"".join(p.expected() for p in [*before, strange]) + b"".join(map(unread, after))
    assert log(b"".join(p.form for p in [*before, strange, *after]), *arguments) == expected


CONVERSION = re.compile(
    rb"%([-+ #0]*(?:\*|\d*)(?:\.(?:\*|\d*))?(?:hh|ll|[hlzjtLq])?)([\xc0-\xff][\x80-\xbf]*|[^\xc0-\xff]|\Z)", re.DOTALL
)
LIKELY = st.lists(st.sampled_from([bytes([byte]) for byte in b"%%%%-+ #0123.*hlzjtLqdufscpnx>"]), max_size=20).map(
    b"".join
)
ANY = st.lists(LIKELY | st.binary(max_size=5), max_size=4).map(b"".join).map(lambda text: text.replace(b"\0", b"%"))


@settings(max_examples=300)
@given(ANY)
def test_any_bytes_are_a_format(log, form):
    """After a type that is not known, so that no argument is needed."""

    def written(match):
        if match[0] == b"%%":
            return b"%"
        return b"%<" + (b"skipped:" if match[2] else b"incomplete:") + match[1] + match[2] + b">"

    assert log(b"%n" + form) == b"%<unsupported:n>" + CONVERSION.sub(written, form)
