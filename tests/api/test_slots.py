import hashlib
import json
import threading

import pytest

from bankml.api.routes import NativeApplication
from bankml.engine.slot_folder import SlotFolder
from bankml.http.exchange import Request
from tests.api.api_toys import MemoryReply, ask, toy_library, toy_resident, user
from tests.engine.cell_toys import CellModel
from tests.engine.engine_toys import hashing


@pytest.fixture
def application(tmp_path):
    model = CellModel(hashing, n_ctx=512)
    return NativeApplication(toy_library(toy_resident(model=model)), SlotFolder(str(tmp_path)))


def act(application, action, body=b"", slot_id="0", method="POST", address="engine"):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    query = "" if action is None else f"action={action}"
    reply = MemoryReply()
    reply.log = application.answer(Request(method, f"/slots/{slot_id}", query, {}, body, address, 0.0), reply)
    return reply


def test_save_erase_and_restore(application, tmp_path):
    answer = ask(application, body=user("Hi", max_tokens=5)).json["choices"][0]["message"]["content"]
    held = len("Q:Hi\nA:") + 4
    saved = act(application, "save", {"filename": "a.bin"})
    nbytes = (tmp_path / "a.bin").stat().st_size
    assert saved.status == 200 and saved.log.note == "save"
    assert {**saved.json, "timings": set(saved.json["timings"])} == {
        "id_slot": 0, "filename": "a.bin", "n_saved": held, "n_written": nbytes, "timings": {"save_ms"},
    }  # fmt: skip
    assert act(application, "erase").json == {"id_slot": 0, "n_erased": held}
    restored = act(application, "restore", {"filename": "a.bin"}).json
    assert {**restored, "timings": set(restored["timings"])} == {
        "id_slot": 0, "filename": "a.bin", "n_restored": held, "n_read": nbytes, "timings": {"restore_ms"},
    }  # fmt: skip
    again = ask(application, body=user("Hi", max_tokens=5)).json
    assert again["timings"]["cache_n"] == held - 5 and again["choices"][0]["message"]["content"] == answer
    content = (tmp_path / "a.bin").read_bytes()[:-64]
    assert again["bankml_receipt"]["slot_file_sha256"] == hashlib.sha256(content).hexdigest()
    fresh = ask(application, body=user("Hi", max_tokens=5, cache_prompt=False)).json
    assert "slot_file_sha256" not in fresh["bankml_receipt"], "everything was computed from the weights"


def test_without_a_folder():
    application = NativeApplication(toy_library(toy_resident(model=CellModel())))
    for action in ("save", "erase", "nonsense"):
        reply = act(application, action, {"filename": "a"})
        assert reply.status == 501 and reply.error["type"] == "not_supported_error"
        assert reply.error["message"] == ("This server does not support slots action. Start it with `--slot-save-path`")


@pytest.mark.parametrize(
    "action,body,slot_id,says",
    [
        ("save", {"filename": "../a"}, "0", "Invalid filename"),
        ("restore", {"filename": ""}, "0", "Invalid filename"),
        ("save", {}, "0", "Field 'filename': it is required"),
        ("save", {"filename": 7}, "0", "Field 'filename': expected a string, but got 7"),
        ("save", [], "0", "the body must be a JSON object, but it is an array"),
        ("save", b"{", "0", "the body is not JSON"),
        ("save", {"filename": "a"}, "1", "Invalid slot ID"),
        ("erase", {}, "7", "Invalid slot ID"),
        ("save", {"filename": ""}, "1", "Invalid filename"),
        ("save", {"filename": ""}, "2147483648", "Invalid slot ID"),
        ("save", {"filename": ""}, "9" * 5000, "Invalid slot ID"),
        ("save", {"filename": "a"}, "x", "Invalid slot ID"),
        ("save", {"filename": "a"}, "", "Invalid slot ID"),
        ("save", {"filename": "a"}, "0/1", "Invalid slot ID"),
        ("frob", {"filename": "a"}, "0", "Invalid action"),
        (None, {"filename": "a"}, "0", "Invalid action"),
        ("restore", {"filename": "a"}, "0",
         "Unable to restore slot: No available space in KV cache or invalid slot save file"),
    ],
)  # fmt: skip
def test_what_is_refused(application, tmp_path, action, body, slot_id, says):
    reply = act(application, action, body, slot_id)
    assert reply.status == 400 and reply.error["type"] == "invalid_request_error"
    assert reply.error["message"].startswith(says)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_is_a_500_and_no_path_is_told(application, tmp_path):
    tmp_path.rmdir()
    reply = act(application, "save", {"filename": "a"})
    assert reply.status == 500 and reply.error["type"] == "server_error"
    assert reply.error["message"].startswith("Unable to save slot: ") and str(tmp_path.parent) not in str(reply.body)


def test_a_changed_file_answers_503(application):
    application._library.resident.verified.changed = True
    assert act(application, "erase").status == 503


def test_only_the_engine_address_answers(application):
    assert act(application, "erase", address="gateway").status == 404
    reply = act(application, "erase", method="GET")
    assert reply.status == 405 and reply.headers["Allow"] == "POST"


def test_slots_are_listed_and_wait_for_their_turn(application):
    idle = [{"id": 0, "n_ctx": 512, "speculative": False, "is_processing": False}]
    assert ask(application, "/slots", address="engine").json == idle
    assert ask(application, "/slots").status == 404
    slots, replies = application._library.resident.engine.slots, []
    with slots.of_number(0, lambda: False):
        assert ask(application, "/slots", address="engine").json[0]["is_processing"] is True
        thread = threading.Thread(target=lambda: replies.append(act(application, "erase")))
        thread.start()
        thread.join(0.1)
        assert replies == []
    thread.join(5)
    assert replies[0].status == 200
