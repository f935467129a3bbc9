"""llama-server's `/slots`: what the slots are doing, and their tokens to and from a file."""

import re
import time
from collections.abc import Callable
from urllib.parse import parse_qs

from bankml.api.reading import fields
from bankml.api.reading.json_body import read_object
from bankml.engine import slot_actions
from bankml.engine.engine import Engine
from bankml.engine.slot import Slot
from bankml.engine.slot_folder import SlotFolder, is_slot_name
from bankml.errors import NotSupported, RequestError
from bankml.http.exchange import Reply, Request, RequestOutcome
from bankml.http.json_out import json_bytes
from bankml.library.residency import Library
from bankml.library.resident import Resident

Json = dict[str, object]
Handler = Callable[[Library, Request, Reply], RequestOutcome]

PREFIX = "/slots/"


def slots(library: Library, request: Request, reply: Reply) -> RequestOutcome:
    """`GET /slots`: each slot, with what llama-server says of a slot that has done nothing yet."""
    resident = library.look(reply.cancelled)
    taken = resident.engine.slots
    found = [
        {"id": number, "n_ctx": resident.n_ctx, "speculative": False, "is_processing": taken.busy(number)}
        for number in range(len(taken))
    ]
    reply.whole(200, json_bytes(found))
    return RequestOutcome(200)


def slot_action(folder: SlotFolder | None) -> Handler:
    """`POST /slots/{id}?action=save|restore|erase`, with files in `folder`; without one it answers 501."""

    def handler(library: Library, request: Request, reply: Reply) -> RequestOutcome:
        if folder is None:
            # llama-server's words; its --slot-save-path is --slot-dir here.
            raise NotSupported("This server does not support slots action. Start it with `--slot-save-path`")
        slot_id = request.path.removeprefix(PREFIX)
        number = re.fullmatch("0*([0-9]{1,10})", slot_id)
        if number is None or int(number[1]) > fields.INT32_MAX:
            raise RequestError("Invalid slot ID")
        action = parse_qs(request.query).get("action", [""])[0]
        if action not in ("save", "restore", "erase"):
            raise RequestError("Invalid action")
        name = "" if action == "erase" else _filename(request.body)
        reference = library.resolve(None) if library.resident is None else library.asked
        with library.share(reference, reply.cancelled):
            resident = library.ready(reference)
            slots_there = resident.engine.slots
            if slot_id != str(int(number[1])) or int(slot_id) >= len(slots_there):
                raise RequestError("Invalid slot ID")
            resident.check_unchanged()
            with slots_there.of_number(int(slot_id), reply.cancelled) as slot:
                answer = _act(action, resident, slot, folder, name)
        reply.whole(200, json_bytes({"id_slot": slot.number, **answer}))
        return RequestOutcome(200, note=action)

    return handler


def _filename(body: bytes) -> str:
    name = fields.string(read_object(body), "filename")
    if name is None:
        raise fields.refuse("filename", "it is required")
    if not is_slot_name(name):
        raise RequestError("Invalid filename")
    return name


def _act(action: str, resident: Resident, slot: Slot, folder: SlotFolder, name: str) -> Json:
    engine: Engine = resident.engine
    started = time.monotonic()
    if action == "erase":
        return {"n_erased": slot_actions.erase(slot)}
    sha256 = resident.provenance.model_sha256
    if action == "save":
        done = slot_actions.save(engine, slot, sha256, folder, name)
        counts, timing = {"n_saved": done.n_tokens, "n_written": done.nbytes}, "save_ms"
    else:
        done = slot_actions.restore(engine, slot, sha256, folder, name)
        counts, timing = {"n_restored": done.n_tokens, "n_read": done.nbytes}, "restore_ms"
    return {"filename": name, **counts, "timings": {timing: (time.monotonic() - started) * 1000}}
