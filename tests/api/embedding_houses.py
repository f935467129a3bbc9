"""Servers over tiny models that embed, on free loopback ports."""

import base64
import hashlib
import json
from contextlib import contextmanager

import numpy as np

from bankml.api.routes import Serving, build_application
from bankml.library.load import LoadOptions
from bankml.receipt.check import check
from tests.api.measured_house import House
from tests.tiny_embedders import tiny_embedder

CONTEXT = 1024


@contextmanager
def house(verified, serving=None, **options):
    """A server over a verified file; `options` are LoadOptions'."""
    load = LoadOptions(CONTEXT, threads=2, environment={"BANKML_LLAMA_THREADS": "2"}, **options)
    with House(build_application(verified, load, serving or Serving())) as made:
        yield made


@contextmanager
def house_of(folder, name, **options):
    with house(tiny_embedder(folder, name), **options) as made:
        yield made


def post(house, path, body):
    """Status, and the JSON of the answer; what has a receipt is checked against it."""
    sent = json.dumps(body).encode()
    with house.client() as client:
        status, _, data = client.ask("POST", path, body)
    if status == 200 and b"bankml_receipt" in data:
        assert check(sent, data).problems == ()
    return status, json.loads(data)


def message(answer):
    error = answer["error"]
    return error if isinstance(error, str) else error["message"]


def vectors(answer):
    """The vectors of an answer of OpenAI's form, float32 [vectors, width]."""
    rows = [one["embedding"] for one in answer["data"]]
    return np.array(
        [np.frombuffer(base64.b64decode(one), "<f4") if isinstance(one, str) else np.float32(one) for one in rows]
    )


def sha256(array):
    return hashlib.sha256(np.asarray(array, "<f4").tobytes()).hexdigest()
