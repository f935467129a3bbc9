"""One resident model: the line before it, its switching, and how long it stays."""

import gc
import json
import os
import threading
import time
import weakref
from dataclasses import replace

import pytest

from bankml.api.answering import answer
from bankml.api.call import Call
from bankml.api.formats.chat import ChatFormat
from bankml.api.generation import ContextRule
from bankml.api.reading.generation import chat_request
from bankml.api.routes import NativeApplication
from bankml.errors import Cancelled, ContextExceeded, NotFound, Refused
from bankml.gate.verify import record, verify
from bankml.library.facts import FileFacts
from bankml.library.load import LoadOptions, open_library
from bankml.library.reference import PinnedFile, Reference
from bankml.library.residency import FOR_GOOD, Library
from tests.api.api_toys import MemoryReply, ask, toy_resident, user
from tests.end_to_end.tiny import MODELS, write
from tests.engine.engine_toys import ToyModel, saying

NEVER = lambda: False  # noqa: E731


def call(shelf, name, text, **more):
    """A chat request to the model of that name."""
    request = chat_request({"messages": [{"role": "user", "content": text}]})
    return Call(b"{}", time.monotonic(), request, shelf.resolve(name), ContextRule(), ChatFormat, **more)


class Shelf:
    """Toy models by name; what is open of them at any time is counted."""

    def __init__(self, *names):
        self.sources = {
            name: PinnedFile(name, f"{name}.gguf", name * 8, "/FORK.json", f"/{name}.gguf") for name in names
        }
        self.startup = Reference(names[0], self.sources[names[0]])
        self.opened, self.alive, self.most = [], 0, 0
        self.failing = self.unplayed = None

    def resolve(self, name):
        if name is None:
            return self.startup
        if name not in self.sources:
            raise NotFound(f"there is no model {name!r} here")
        return Reference(name, self.sources[name])

    def references(self):
        return [self.resolve(name) for name in self.sources]

    def names_of(self, source):
        return [source.name]

    n_ctx = 4096

    def facts(self, source):
        return FileFacts(reason="it is not played" if source.name == self.unplayed else None)

    def check(self, source):
        if source.name == self.unplayed:
            raise Refused(f"{source.file} is not played: refused")

    def open(self, source):
        if source.name == self.failing:
            raise Refused(f"{source.file} sha256 differs: refused")
        self.opened.append(source.name)
        self.alive += 1
        self.most = max(self.most, self.alive)
        shelf = self

        class Counted(ToyModel):
            def close(self):
                super().close()
                shelf.alive -= 1

        resident = toy_resident(model=Counted(saying(f"I am {source.name}.")))
        resident.source = source
        return resident

    def library(self):
        return Library(self, self, self.open(self.startup.source))


def said(application, name, **more):
    reply = ask(application, body=user("Who?", model=name, **more))
    return reply.json["choices"][0]["message"]["content"] if reply.status == 200 else (reply.status, reply.error)


def test_a_switch_drops_the_old_model_before_the_new_one_is_read():
    shelf = Shelf("one", "two", "three")
    library = shelf.library()
    application = NativeApplication(library)
    for name in ["one", "two", "two", "three", "one", "one"]:
        assert said(application, name) == f"I am {name}."
        assert library.resident.name == name
    assert shelf.opened == ["one", "two", "three", "one"] and shelf.most == 1


def test_switches_under_load_never_hold_two_and_every_answer_is_its_models():
    shelf = Shelf("one", "two", "three")
    application, wrong = NativeApplication(shelf.library()), []

    def work(seed):
        for i in range(15):
            name = ["one", "two", "three"][(seed + i) % 3]
            if (got := said(application, name)) != f"I am {name}.":
                wrong.append((name, got))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == [] and shelf.most == 1


def test_a_request_read_for_one_model_is_read_again_for_the_one_that_took_its_place():
    shelf = Shelf("one", "two")
    library = shelf.library()
    application, replies = NativeApplication(library), []
    with library.turn(NEVER):
        thread = threading.Thread(target=lambda: replies.append(said(application, "one")))
        thread.start()
        while not library.waiting:
            time.sleep(0.002)
        library.ready(shelf.resolve("two"))  # the model for which the waiting request was read is gone
    thread.join(10)
    assert replies == ["I am one."] and shelf.opened == ["one", "two", "one"]


def test_mistakes_are_told_without_standing_in_line_or_loading():
    shelf = Shelf("one", "two")
    library = shelf.library()
    application = NativeApplication(library)
    with library.turn(NEVER):
        reply = ask(application, body={"messages": [], "model": "one"})
        assert (reply.status, said(application, "nine")[0]) == (400, 404)
    assert shelf.opened == ["one"]


def test_a_model_that_cannot_be_opened_is_refused_and_the_next_request_is_answered():
    shelf = Shelf("one", "two")
    library = shelf.library()
    application = NativeApplication(library)
    shelf.failing = "two"
    status, error = said(application, "two")
    assert (status, error["message"]) == (422, "two.gguf sha256 differs: refused")
    assert library.resident is None and shelf.alive == 0
    status = ask(application, "/bankml").json
    assert status["resident"] is None and status["model"] == "one", "what was verified last"
    assert ask(application, "/v1/models").json["data"][0]["id"] == "one", "the startup model, loaded"
    refused = status["refused"]
    assert (refused["name"], refused["reason"]) == ("two", "two.gguf sha256 differs: refused")
    assert said(application, "one") == "I am one."
    assert ask(application, "/bankml").json["refused"] == refused, "nobody has found anything else of it since"
    shelf.failing = None
    assert said(application, "two") == "I am two." and ask(application, "/bankml").json["refused"] is None


def test_what_can_be_told_beforehand_costs_nobody_the_resident_model():
    shelf = Shelf("one", "two")
    library = shelf.library()
    shelf.unplayed = "two"
    with library.turn(NEVER):
        library.keep(60)
    assert said(NativeApplication(library), "two")[1]["message"] == "two.gguf is not played: refused"
    assert library.resident.name == "one" and shelf.alive == 1 and library.expires_at is not None
    assert library.refused.name == "two" and library.refused.reason == "two.gguf is not played: refused"


def test_a_mistake_that_only_the_model_shows_does_not_keep_it():
    shelf = Shelf("one", "two")
    library = shelf.library()

    for keep, resident in ((0, None), (60, "two")):
        with pytest.raises(ContextExceeded):
            answer(library, call(shelf, "two", "x" * 5000, keep=keep), MemoryReply())
        assert (library.resident and library.resident.name) == resident
    assert library.expires_at == pytest.approx(time.time() + 60, abs=1)


def test_a_request_whose_client_left_while_a_model_was_loaded_is_not_read():
    shelf, reply, read = Shelf("one", "two"), MemoryReply(), []
    library = shelf.library()
    opened = shelf.open

    def open_and_hang_up(source):
        reply.is_cancelled = True
        return opened(source)

    shelf.open = open_and_hang_up
    with pytest.raises(Cancelled):
        answer(library, call(shelf, "two", "Hi"), reply, lambda *_: read.append(1))
    assert read == [] and library.resident.name == "two"


def test_a_look_keeps_a_model_no_longer_than_is_usual():
    shelf = Shelf("one", "two")
    library = Library(shelf, shelf, shelf.open(shelf.startup.source), default_keep=60)
    assert library.look(NEVER).name == "one" and library.expires_at is None, "it was there"
    for reference in (shelf.resolve("two"), None):
        with library.turn(NEVER):
            library.drop()
        library.look(NEVER, reference)
        assert library.expires_at == pytest.approx(time.time() + 60, abs=1)


def test_what_is_asked_without_computing_is_answered_by_the_model_that_is_named():
    shelf = Shelf("one", "two")
    library = shelf.library()
    application = NativeApplication(library)
    assert ask(application, "/tokenize", {"content": "a", "model": "nine"}).status == 404
    assert ask(application, "/tokenize", {"content": "a"}).json == {"tokens": [97]} and shelf.opened == ["one"]
    assert ask(application, "/apply-template", user("Hi", model="two")).status == 200
    assert library.resident.name == "two"
    models = ask(application, "/v1/models").json["data"]
    assert [model["id"] for model in models] == ["two", "one"]
    assert [model["name"] for model in ask(application, "/bankml").json["models"]] == ["one", "two"]


def test_a_model_goes_when_its_time_is_up_and_only_then():
    shelf = Shelf("one")
    library = shelf.library()
    library.expire()
    assert library.resident is not None and library.expires_at is None
    with library.turn(NEVER):
        library.keep(0.05)
        library.expire()  # somebody has the turn
        assert library.expires_at == pytest.approx(time.time() + 0.05, abs=0.05)
    library.expire()
    assert library.resident is not None
    time.sleep(0.06)
    library.expire()
    assert library.resident is None and shelf.alive == 0
    assert library.look(NEVER).name == "one" and library.expires_at is None
    with library.turn(NEVER):
        library.keep(0)
    assert library.resident is None


def test_an_answer_keeps_the_model_for_good_whatever_its_time_was():
    shelf = Shelf("one")
    library = shelf.library()
    with library.turn(NEVER):
        library.keep(0.01)
    assert said(NativeApplication(library), "one") == "I am one."
    time.sleep(0.02)
    library.expire()
    assert library.resident is not None


def test_the_reaper_drops_a_model_within_two_seconds():
    shelf = Shelf("one")
    library = shelf.library()
    library.start_reaper()
    with library.turn(NEVER):
        library.keep(0.1)
    deadline = time.monotonic() + 5
    while library.resident is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert library.resident is None


def test_who_leaves_while_a_model_is_waited_for_gets_nothing():
    shelf = Shelf("one", "two")
    library = shelf.library()
    with library.turn(NEVER):
        library.drop()
        with pytest.raises(Cancelled):
            library.look(lambda: True)
    assert FOR_GOOD is None and library.resident is None


@pytest.fixture
def three(tmp_path):
    for tiny in MODELS[:3]:
        write(tmp_path / f"{tiny.name}.gguf", tiny)
        record(tmp_path / f"{tiny.name}.gguf", tmp_path / "FORK.json")
    return tmp_path


class OnDisk(Shelf):
    def __init__(self, folder, names):
        records = {one["path"]: one["sha256"] for one in json.loads((folder / "FORK.json").read_text())["files"]}
        self.sources = {
            name: PinnedFile(
                name, f"{name}.gguf", records[f"{name}.gguf"], str(folder / "FORK.json"), str(folder / f"{name}.gguf")
            )
            for name in names
        }
        self.startup = Reference(names[0], self.sources[names[0]])


def test_of_a_dropped_model_no_weight_and_no_cell_is_left(three):
    names = [tiny.name for tiny in MODELS[:3]]
    shelf = OnDisk(three, names)
    library = open_library(verify(three / f"{names[0]}.gguf", three / "FORK.json"), LoadOptions(512, 1), shelf)
    application, left = NativeApplication(library), []
    for name in [*names, *names]:
        assert ask(application, body=user("Hello", model=name, max_tokens=4)).status == 200
        engine = library.resident.engine
        left.append((weakref.ref(engine.slots[0].cells), weakref.ref(engine.model._decoder._weights)))
        del engine
    gc.collect()
    assert [tuple(ref() is None for ref in refs) for refs in left[:-1]] == [(True, True)] * 5


def test_what_is_left_of_a_dropped_model_needs_no_collection(three):
    """Its words too: a vocabulary takes tens of megabytes, and the next collection may be far away."""
    names = [tiny.name for tiny in MODELS[:2]]
    library = open_library(
        verify(three / f"{names[0]}.gguf", three / "FORK.json"), LoadOptions(512, 1), OnDisk(three, names)
    )
    application = NativeApplication(library)
    body = {"temperature": 0.5, "dry_multiplier": 0.5, "json_schema": {"type": "string"}, "max_tokens": 4}
    assert ask(application, body=user("Hello", **body)).status == 200
    resident = library.resident
    parts = (resident, resident.tokens, resident.tokens.vocabulary, resident.engine.model)
    left = [weakref.ref(part) for part in parts]
    del parts, resident
    gc.collect()
    gc.disable()
    try:
        assert ask(application, body=user("Hello", model=names[1], max_tokens=1)).status == 200
        assert [ref() for ref in left] == [None] * 4
    finally:
        gc.enable()


def test_a_file_that_is_gone_is_refused_without_its_path(three):
    names = [MODELS[0].name]
    library = open_library(verify(three / f"{names[0]}.gguf", three / "FORK.json"), LoadOptions(512, 1))
    with library.turn(NEVER):
        library.drop()
    (three / f"{names[0]}.gguf").unlink()
    application = NativeApplication(library)
    for path, body in (("/props", None), ("/tokenize", {"content": "x"}), ("/v1/chat/completions", user("Hi"))):
        reply = ask(application, path, body)
        assert reply.status == 404 and str(three).encode() not in reply.body
    assert ask(application, "/v1/models").json["data"] == []
    status = ask(application, "/bankml").json
    assert [(one["name"], one["found"]) for one in status["models"]] == [(names[0], False)]
    assert status["refused"]["reason"] == f"{names[0]}.gguf is pinned, but the file is missing: refused"


def test_a_file_replaced_between_two_requests_is_refused(three):
    names = [tiny.name for tiny in MODELS[:2]]
    shelf = OnDisk(three, names)
    library = open_library(verify(three / f"{names[0]}.gguf", three / "FORK.json"), LoadOptions(512, 1), shelf)
    application = NativeApplication(library)
    assert ask(application, body=user("Hello", model=names[1], max_tokens=1)).status == 200
    other = three / f"{names[0]}.gguf"
    write(other, replace(MODELS[0], seed=9))
    reply = ask(application, body=user("Hello", model=names[0], max_tokens=1))
    assert reply.status == 503 and "!= pinned" in reply.error["message"]
    (three / "FORK.json").unlink()
    record(other, three / "FORK.json")
    reply = ask(application, body=user("Hello", model=names[0], max_tokens=1))
    assert reply.status == 503 and "!= pinned" in reply.error["message"], "that it differs from what was named is known"
    os.utime(other)  # now it may be any file, and is hashed again
    reply = ask(application, body=user("Hello", model=names[0], max_tokens=1))
    assert reply.status == 422 and "is pinned to" in reply.error["message"], "the pin is not the one that was named"


def test_a_pinned_file_that_is_nowhere(three):
    names = [MODELS[0].name]
    shelf = OnDisk(three, names)
    library = open_library(verify(three / f"{names[0]}.gguf", three / "FORK.json"), LoadOptions(512, 1), shelf)
    shelf.sources["gone"] = replace(shelf.startup.source, name="gone", file="gone.gguf", path=None)
    reply = ask(NativeApplication(library), body=user("Hello", model="gone"))
    assert (reply.status, reply.error["message"]) == (404, "gone.gguf is pinned, but the file is missing: refused")
