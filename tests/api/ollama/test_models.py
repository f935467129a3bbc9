"""What is said of the models: real files in a registry, one of them missing, one that is not played."""

import json
import os
from datetime import datetime

import pytest
from ollama import ListResponse, ProcessResponse, ShowResponse

from bankml import __version__
from bankml.api.ollama.models import OLLAMA_VERSION, human_count
from bankml.api.routes import Serving, build_application
from bankml.gate.verify import record, verify
from bankml.library.load import LoadOptions
from tests.api.api_toys import ask
from tests.end_to_end import tiny
from tests.library.folders import make_odd
from tests.tiny_model import tiny_model

TINY = "tiny"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """An application over a folder with a model, one whose file is gone, and one that is not played."""
    folder = tmp_path_factory.mktemp("registry")
    verified = tiny_model(folder)
    for name in ("gone", "odd"):
        model = next(model for model in tiny.MODELS if model.name == "tiny-qwen3-q2_0")
        tiny.write(folder / f"{name}.gguf", model)
        if name == "odd":
            make_odd(folder / "odd.gguf")
        record(folder / f"{name}.gguf", folder / f"{name}.FORK.json")
    os.unlink(folder / "gone.gguf")
    return build_application(verified, LoadOptions(256, 1), Serving(registry=str(folder))), folder


def get(house, path):
    return ask(house[0], path).json


def test_the_version_is_one_that_clients_accept_and_ours(house):
    assert get(house, "/api/version") == {"version": OLLAMA_VERSION, "bankml": __version__}


def test_every_pin_is_listed_with_what_is_known_of_it(house):
    _, folder = house
    listed = get(house, "/api/tags")
    ListResponse.model_validate(listed)
    found = {model["name"]: model for model in listed["models"]}
    assert list(found) == ["tiny:latest", "gone:latest", "odd:latest"]
    verified = verify(folder / "tiny.gguf", folder / "tiny.gguf.FORK.json")
    tiny_, count = found["tiny:latest"], sum(tensor.elements for tensor in verified.header.tensors)
    assert tiny_["model"] == "tiny:latest" and tiny_["digest"] == verified.sha256
    assert tiny_["size"] == os.path.getsize(folder / "tiny.gguf")
    assert tiny_["details"] == {
        "parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"],
        "parameter_size": human_count(count), "quantization_level": "F16",
    }  # fmt: skip
    assert tiny_["bankml"] == {"native": True, "reason": None, "file": "tiny.gguf", "found": True}
    gone = found["gone:latest"]
    assert gone["size"] == 0 and gone["details"]["family"] == "" and len(gone["digest"]) == 64
    assert gone["bankml"] == {
        "native": False, "reason": "gone.gguf is pinned, but the file is missing", "file": "gone.gguf", "found": False,
    }  # fmt: skip
    odd = found["odd:latest"]["bankml"]
    assert odd["found"] and not odd["native"] and "unsupported pre-tokenizer 'pluto'" in odd["reason"]
    assert found["odd:latest"]["details"]["quantization_level"] == "Q2_0"


def test_openai_clients_are_offered_what_is_played_and_told_when_its_file_was_written(house):
    _, folder = house
    resident, *others = get(house, "/v1/models")["data"]
    assert (resident["id"], resident["created"]) == ("tiny", int(os.stat(folder / "tiny.gguf").st_mtime))
    assert others == []
    reasons = {model["name"]: model["reason"] for model in get(house, "/bankml")["models"]}
    assert reasons == {
        model["name"].removesuffix(":latest"): model["bankml"]["reason"] for model in get(house, "/api/tags")["models"]
    }
    assert reasons["tiny"] is None and "unsupported pre-tokenizer 'pluto'" in reasons["odd"]


def test_a_file_that_changes_is_looked_at_again(house):
    _, folder = house
    assert get(house, "/api/tags")["models"][2]["bankml"]["native"] is False
    before = (folder / "odd.gguf").read_bytes()
    (folder / "odd.gguf").write_bytes(before[:40])
    reason = get(house, "/api/tags")["models"][2]["bankml"]["reason"]
    assert "truncated" in reason
    (folder / "odd.gguf").write_bytes(before)
    assert "tokenizer.ggml.pre" in get(house, "/api/tags")["models"][2]["bankml"]["reason"]


def test_show_tells_the_header(house):
    shown = ask(house[0], "/api/show", {"model": "tiny:latest"}).json
    ShowResponse.model_validate(shown)
    assert shown["template"].startswith("{% for m in messages %}") and shown["template"] in shown["modelfile"]
    assert "FROM tiny\n" in shown["modelfile"] and shown["capabilities"] == ["completion"]
    info = shown["model_info"]
    assert info["general.architecture"] == "llama" and info["llama.block_count"] == 2
    assert info["tokenizer.ggml.tokens"] == [] and "tokenizer.chat_template" not in info
    assert human_count(info["general.parameter_count"]) == shown["details"]["parameter_size"] != ""
    assert not {"system", "parameters", "license", "messages", "tensors"} & set(shown)
    verbose = ask(house[0], "/api/show", {"name": "tiny.gguf", "verbose": True}).json
    assert len(verbose["model_info"]["tokenizer.ggml.tokens"]) == 257
    assert verbose["tensors"][0] == {"name": "token_embd.weight", "type": "F16", "shape": [64, 257]}
    odd = ask(house[0], "/api/show", {"model": "odd"}).json
    assert odd["bankml"]["native"] is False and odd["details"]["family"] == "qwen3"
    assert ask(house[0], "/api/show", {"model": "gone"}).status == 404


def test_only_the_resident_model_is_running_and_expires(house):
    application, _ = house
    ask(application, "/api/chat", {"model": TINY, "keep_alive": -1})
    running = get(house, "/api/ps")
    ProcessResponse.model_validate(running)
    (model,) = running["models"]
    assert (model["name"], model["size_vram"], model["context_length"]) == ("tiny:latest", 0, 256)
    assert model["digest"] == get(house, "/api/tags")["models"][0]["digest"]
    assert model["expires_at"] > "2300" and set(model) == {
        "name", "model", "size", "digest", "details", "expires_at", "size_vram", "context_length",
    }  # fmt: skip


def test_what_is_not_played_or_not_here_is_refused_and_costs_nobody_the_resident_model(house):
    application, _ = house
    assert ask(application, "/api/chat", {"model": TINY}).status == 200
    for name, code, why in (("odd", 501, "tokenizer.ggml.pre"), ("gone", 404, "is pinned, but the file is missing")):
        reply = ask(application, "/api/chat", {"model": name, "messages": [{"role": "user", "content": "x"}]})
        assert reply.status == code and why in reply.json["error"]
        assert [model["name"] for model in get(house, "/api/ps")["models"]] == [TINY + ":latest"]


def test_derived_models_are_made_shown_listed_copied_and_deleted(house):
    application, folder = house
    made = ask(
        application,
        "/api/create",
        {
            "model": "pirate", "from": "tiny", "system": "Say arr.", "license": "MIT",
            "parameters": {"temperature": 0, "stop": ["!", "\n"]},
            "messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Me."}],
        },
    )  # fmt: skip
    assert made.content_type == "application/x-ndjson" and made.lines[-1] == {"status": "success"}
    listed = {model["name"]: model for model in get(house, "/api/tags")["models"]}["pirate:latest"]
    manifest = json.loads((folder / "pirate.MODEL.json").read_text())
    created = {model["id"]: model["created"] for model in get(house, "/v1/models")["data"]}["pirate"]
    assert created == int(datetime.fromisoformat(manifest["created_at"]).timestamp())
    assert listed["digest"] == manifest["digest"] and listed["modified_at"] == manifest["created_at"]
    assert listed["details"]["parent_model"] == "tiny" and listed["bankml"]["native"]
    shown = ask(application, "/api/show", {"model": "pirate"}).json
    assert (shown["system"], shown["license"]) == ("Say arr.", "MIT") and len(shown["messages"]) == 2
    assert [line.split() for line in shown["parameters"].split("\n")][1:] == [["stop", '"!"'], ["stop", '"\\n"']]
    again = ask(application, "/api/create", {"model": "again", "modelfile": shown["modelfile"], "stream": False})
    assert again.json == {"status": "success"}
    assert ask(application, "/api/copy", {"source": "pirate", "destination": "twin"}).status == 200
    for name in ("again", "twin"):
        other = ask(application, "/api/show", {"model": name}).json
        assert {**other, "modelfile": "", "modified_at": ""} == {**shown, "modelfile": "", "modified_at": ""}
    for name in ("pirate", "again", "twin"):
        assert ask(application, "/api/delete", {"model": name}, method="DELETE").status == 200
        assert ask(application, "/api/delete", {"model": name}, method="DELETE").status == 404
    assert ask(application, "/api/delete", {"model": "tiny"}, method="DELETE").status == 400
    names = [model["name"] for model in get(house, "/api/tags")["models"]]
    assert names == ["tiny:latest", "gone:latest", "odd:latest"]


def test_what_cannot_be_made_is_a_refusal_without_a_path(house):
    application, folder = house
    (folder / "dd.MODEL.json").mkdir()
    (folder / "out.MODEL.json").symlink_to(folder / "nowhere.txt")
    (folder / "damaged.FORK.json").write_text("{")
    (folder / "linked.FORK.json").symlink_to(folder / "none")
    for path, method, body, status, why in (
        ("/api/create", "POST", {"model": "dd", "from": "tiny"}, 422, "dd.MODEL.json is not a regular file"),
        ("/api/delete", "DELETE", {"model": "dd"}, 422, "dd.MODEL.json is not a regular file"),
        ("/api/show", "POST", {"model": "dd"}, 422, "cannot read dd.MODEL.json: not a regular file"),
        ("/api/create", "POST", {"model": "out", "from": "tiny"}, 422, "out.MODEL.json is a symbolic link: refused"),
        ("/api/copy", "POST", {"source": "tiny", "destination": "out"}, 422, "out.MODEL.json is a symbolic link"),
        ("/api/create", "POST", {"model": "x", "from": "gone"}, 404, "gone.gguf is pinned, but the file is missing"),
        ("/api/create", "POST", {"model": "x", "from": "odd"}, 501, "odd.gguf: tokenizer.ggml.pre: unsupported"),
        ("/api/show", "POST", {"model": "nix"}, 404, "skipped damaged.FORK.json: cannot read damaged.FORK.json: "),
        ("/v1/chat/completions", "POST", {"model": "nix", "messages": [{"role": "user", "content": "x"}]}, 404,
         "skipped damaged.FORK.json: "),
        ("/api/create", "POST", {"model": "x", "from": "tiny", "parameters": {"stop": ["x"] * 1025}}, 400, "is 1024"),
        ("/api/create", "POST", {"model": "x", "from": "tiny", "system": 'a\n"""\n'}, 400, "no Modelfile can contain"),
    ):  # fmt: skip
        reply = ask(application, path, body, method=method)
        assert reply.status == status and why in reply.body.decode(), reply.body
        assert str(folder) not in reply.body.decode() and "cannot read /" not in reply.body.decode()
    assert not (folder / "nowhere.txt").exists()
    (folder / "dd.MODEL.json").rmdir()
    for name in ("out.MODEL.json", "damaged.FORK.json", "linked.FORK.json"):
        (folder / name).unlink()


def test_what_is_told_of_files_has_no_folder(house, monkeypatch):
    """A base that cannot be opened, and a folder that cannot be written to."""
    application, folder = house
    os.rename(folder / "odd.gguf", folder / "odd.was")
    (folder / "odd.gguf").symlink_to(folder)  # no file: not here
    assert ask(application, "/api/create", {"model": "x", "from": "odd"}).status == 404
    (folder / "odd.gguf").unlink()
    os.rename(folder / "odd.was", folder / "odd.gguf")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    reply = ask(application, "/api/create", {"model": "x", "from": "tiny"})
    assert (reply.status, reply.json) == (500, {"error": "cannot write x.MODEL.json: no space left on device"})
    assert not [name for name in os.listdir(folder) if name.startswith((".", "x"))]


def test_a_derived_model_that_was_deleted_or_made_anew_is_not_the_running_one(house):
    application, _ = house

    def running():
        (model,) = get(house, "/api/ps")["models"]
        return model["name"], model["digest"]

    digests = {model["name"]: model["digest"] for model in get(house, "/api/tags")["models"]}
    for system in ("one", "two"):
        ask(application, "/api/create", {"model": "temp", "from": "tiny", "system": system})
        if system == "one":
            ask(application, "/api/chat", {"model": "temp", "keep_alive": -1})
        digest = {model["name"]: model["digest"] for model in get(house, "/api/tags")["models"]}["temp:latest"]
        assert running() == ("temp:latest", digest)
    ask(application, "/api/delete", {"model": "temp"}, method="DELETE")
    assert running() == ("tiny:latest", digests["tiny:latest"])


def test_a_format_that_cannot_be_is_refused_before_a_model_is_loaded(house):
    application, _ = house
    ask(application, "/api/chat", {"model": TINY, "keep_alive": 0})
    for path in ("/api/chat", "/api/generate"):
        for schema in ({"type": "nonsense"}, {"$ref": "#/nowhere"}):
            reply = ask(application, path, {"model": TINY, "format": schema})
            assert reply.status == 400 and reply.json["error"].startswith("Field 'format': "), reply.body
    assert get(house, "/api/ps") == {"models": []}
    good = {"model": TINY, "format": {"type": "object"}}
    assert ask(application, "/api/generate", good).json["done_reason"] == "load"


def test_a_layer_is_the_same_on_every_api(house):
    application, _ = house
    layer = {
        "system": "Be brief.", "parameters": {"temperature": 0, "num_predict": 6, "num_ctx": 60},
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    }  # fmt: skip
    made = ask(application, "/api/create", {"model": "brief", "from": "tiny", **layer})
    assert made.lines[-1] == {"status": "success"}
    messages = [{"role": "user", "content": "hello"}]
    prompt = "s:Be brief.\nu:a\na:b\nu:hello\na:"
    assert ask(application, "/apply-template", {"model": "brief", "messages": messages}).json == {"prompt": prompt}
    chat = ask(application, "/api/chat", {"model": "brief", "messages": messages, "stream": False}).json
    generate = ask(application, "/api/generate", {"model": "brief", "prompt": "hello", "stream": False}).json
    v1 = ask(application, body={"model": "brief", "messages": messages}).json
    raw = ask(application, "/api/generate", {"model": "brief", "prompt": prompt, "raw": True, "stream": False}).json
    completion = ask(application, "/completion", {"model": "brief", "prompt": prompt}).json
    assert chat["prompt_eval_count"] == len(prompt) and chat["eval_count"] == 6
    texts = {chat["message"]["content"], generate["response"], v1["choices"][0]["message"]["content"]}
    assert len(texts) == 1 and raw["response"] == completion["content"]
    assert [generate["prompt_eval_count"], raw["prompt_eval_count"]] == [len(prompt)] * 2
    assert v1["usage"]["completion_tokens"] == completion["tokens_predicted"] == raw["eval_count"] == 6
    two = {"model": "brief", "messages": messages, "options": {"num_predict": 2}, "stream": False}
    own = ask(application, "/api/chat", two).json
    assert own["eval_count"] == 2
    long = [*messages, {"role": "user", "content": "y" * 30}]
    fitted = ask(application, body={"model": "brief", "messages": long}).json
    assert fitted["usage"]["prompt_tokens"] == len(f"s:Be brief.\na:b\nu:hello\nu:{'y' * 30}\na:")
    assert ask(application, body={"model": "tiny", "messages": [{"role": "user", "content": "z" * 300}]}).status == 400
    wide = {"model": "wide", "from": "tiny", "parameters": {"num_ctx": 4096}}
    ask(application, "/api/create", wide)
    for path, more in (("/api/chat", {}), ("/v1/chat/completions", {}), ("/completion", {"prompt": "x"})):
        refused = ask(application, path, {"model": "wide", "messages": messages, **more})
        assert refused.status == 400 and b"num_ctx 4096" in refused.body
    for name in ("brief", "wide"):
        ask(application, "/api/delete", {"model": name}, method="DELETE")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(999, "999"), (27_000, "27K"), (147_904, "148K"), (134_515_008, "134.52M"), (7_000_000, "7M"), (8 * 10**9, "8B"),
     (7_615_616_512, "7.6B")],
)  # fmt: skip
def test_counts_as_ollama_shows_them(count, shown):
    assert human_count(count) == shown
