"""What can go wrong below a handle, as codes: whatever is raised, nothing of it leaves."""

import json
import logging

import pytest

from bankml.capi.front import open_handle
from bankml.capi.handle import Handle
from bankml.capi.log import SinkHandler
from bankml.capi.reasons import reason_of
from bankml.errors import EngineFailed, FileProblem, ModelChanged, NotSupported, Refused, Truncated

REQUEST = b'{"messages": [{"role": "user", "content": "a"}]}'


def never():
    return False


def called(function):
    return function()


class Failing:
    """A library whose model cannot be asked."""

    def __init__(self, error):
        self.error = error

    def resolve(self, name):
        raise self.error


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (NotSupported("Field 'tools': no"), -2, "Field 'tools': no"),
        (ModelChanged("m.gguf changed"), -3, "m.gguf changed"),
        (EngineFailed("it is gone"), -4, "error: it is gone"),
        (FileProblem("m.gguf: no such file"), -4, "error: m.gguf: no such file"),
        (MemoryError(), -4, "error: out of memory"),
        (OSError(5, "Input/output error"), -4, "error: input/output error"),
        (SystemExit(3), -5, "internal error in bankml; its log has the traceback"),
        (RecursionError("secret"), -5, "internal error in bankml; its log has the traceback"),
        (GeneratorExit(), -5, "internal error in bankml; its log has the traceback"),
    ],
)
def test_what_is_raised_becomes_a_code(caplog, error, code, message):
    assert Handle(Failing(error), never).chat(REQUEST)[0] == code
    got, result = Handle(Failing(error), never).chat(REQUEST)
    assert (got, json.loads(result)) == (code, {"error": {"code": code, "message": message}})
    assert "secret" not in caplog.text


def test_an_error_ends_no_handle():
    handle = Handle(Failing(SystemExit(0)), never)
    assert [handle.chat(REQUEST)[0] for _ in range(3)] == [-5, -5, -5]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Refused("X.gguf has no record"), "refuse: X.gguf has no record"),
        (Truncated("X.gguf: cut", 100), "need_more: X.gguf: cut"),
        (FileProblem("a\nb\x1b: not there"), "error: a\\nb\\x1b: not there"),
        (MemoryError(), "error: out of memory"),
    ],
)
def test_reasons_are_the_command_lines(error, said):
    assert reason_of(error) == said


def test_a_name_that_is_no_utf8_comes_back_as_it_came():
    handle, reason = open_handle("/nowhere/\udcff.gguf", "/nowhere/FORK.json", 0, [], never, called)
    assert handle is None and reason.startswith(b"error: ")


def test_the_log_has_one_way_out_and_its_levels():
    said = []
    package = logging.getLogger("bankml")
    before, level = list(package.handlers), package.level
    try:
        for _ in range(2):
            SinkHandler.install(lambda level, message: said.append((level, message)))
        for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
            logging.getLogger("bankml.any").log(number, "é %d", number)
    finally:
        package.handlers[:] = before
        package.setLevel(level)
    assert said == [(2, "é 20".encode()), (1, "é 30".encode()), (0, "é 40".encode()), (0, "é 50".encode())]
