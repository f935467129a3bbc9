import json
import os
from dataclasses import replace
from hashlib import sha256

import pytest

from bankml.errors import NotFound, Refused, RequestError
from bankml.files import atomic_write
from bankml.library import manifest as manifest_module
from bankml.library.derived import copy, create, delete
from bankml.library.layer import context_of, with_layer
from bankml.library.manifest import digest_of
from bankml.library.modelfile import Modelfile
from bankml.library.reference import ModelLayer, PinnedFile
from bankml.library.registry import Registry
from bankml.library.request import GenerationRequest, RawPrompt
from bankml.sampling.overrides import SamplingOverrides
from bankml.text.messages import Conversation
from tests.end_to_end import tiny
from tests.library.folders import TEMPLATE, make_odd, pin, templated

MARIO = Modelfile(
    "base",
    system="You are Mario.",
    parameters={"temperature": 0.7, "num_ctx": 512, "num_predict": -2, "seed": 7},
    stop=("Luigi:",),
    messages=({"role": "user", "content": "Who?"}, {"role": "assistant", "content": "It's-a me! 🍄"}),
    license=("MIT",),
    requires="0.14.0",
)


@pytest.fixture
def registry(tmp_path):
    templated(tmp_path / "Base-F16.gguf")
    pin(tmp_path, "Base-F16.gguf")
    return Registry(str(tmp_path))


def manifest_of(registry, name):
    with open(os.path.join(registry.folder, f"{name}.MODEL.json")) as file:
        return json.load(file)


def edited(registry, name, edit, sealed=False):
    """Edits a manifest; `sealed` is how somebody would who knows how its hashes are made."""
    document = manifest_of(registry, name)
    edit(document)
    if sealed:
        document["digest"] = digest_of(document["layer"])
        document["manifest_sha256"] = digest_of({k: v for k, v in document.items() if k != "manifest_sha256"})
    with open(os.path.join(registry.folder, f"{name}.MODEL.json"), "w") as file:
        json.dump(document, file)


def test_what_is_made_can_be_asked_for(registry, tmp_path):
    made = create(registry, "Mario:latest", MARIO)
    for name in ("mario", "MARIO", "mario:latest"):
        found = registry.resolve(name)
        assert found.derived == made and found.layer == made.layer and found.name == "mario"
        assert found.source == registry.resolve("base").source
    assert registry.derived() == [made] and registry.problems() == []
    assert [reference.name for reference in registry.references()] == ["base-f16", "mario"]
    assert made.layer.base_sha256 == found.source.sha256
    assert made.layer.template_sha256 == sha256(TEMPLATE.encode()).hexdigest()
    document = manifest_of(registry, "mario")
    assert list(document) == ["kind", "bankml", "name", "created_at", "base", "layer", "digest", "manifest_sha256"]
    assert document["base"] == {
        "name": "base-f16",
        "file": "Base-F16.gguf",
        "sha256": found.source.sha256,
        "fork": str(tmp_path / "Base-F16.gguf.FORK.json"),
        "path": str(tmp_path / "Base-F16.gguf"),
    }

    # The digests by hand, as the manifest's docstring says it.
    def hashed(value):
        return sha256(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    assert document["digest"] == made.digest == hashed(document["layer"])
    assert document.pop("manifest_sha256") == hashed(document)


def test_a_name_with_a_tag(registry):
    create(registry, "mario:V2", MARIO)
    assert registry.resolve("Mario:v2").name == "mario:v2"
    with pytest.raises(NotFound):
        registry.resolve("mario")


@pytest.mark.parametrize("name", ["base", "base:latest", "Base-F16", "base-f16:latest", "base-f16.gguf"])
def test_no_pin_is_ever_hidden(registry, name):
    create(registry, "mario", MARIO)
    for attempt in (lambda: create(registry, name, MARIO), lambda: copy(registry, "mario", name)):
        with pytest.raises(RequestError, match="is the name of a pinned file: choose another name"):
            attempt()
    with pytest.raises(RequestError, match="is a pinned file, and bankML deletes no weights"):
        delete(registry, name)
    assert os.listdir(registry.folder).count("mario.MODEL.json") == 1 and len(os.listdir(registry.folder)) == 3


def test_a_pin_that_comes_later_takes_its_name(registry, tmp_path):
    create(registry, "mario", MARIO)
    pin(tmp_path, "mario.gguf")
    assert registry.resolve("mario").layer is None
    assert registry.derived() == []
    assert "a pinned file has the name 'mario'" in registry.problems()[0].reason


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\0", ".hidden", "-a", "a b", "é", "a:b:c", "a:", ":a", "a" * 81])
def test_names_no_manifest_may_have(registry, name):
    before = sorted(os.listdir(registry.folder))
    for attempt in (
        lambda: create(registry, name, MARIO),
        lambda: copy(registry, "base", name),
        lambda: delete(registry, name),
    ):
        with pytest.raises(RequestError) as refusal:
            attempt()
        assert refusal.value.status == 400
    assert sorted(os.listdir(registry.folder)) == before


def test_layers_are_stacked(registry):
    create(registry, "mario", MARIO)
    more = Modelfile("mario", parameters={"temperature": 1.5, "top_k": 3}, license=("more",), system="")
    assert create(registry, "second", more).layer == ModelLayer(
        system="You are Mario.",
        parameters={"temperature": 1.5, "num_ctx": 512, "num_predict": -2, "seed": 7, "top_k": 3},
        stop=MARIO.stop,
        messages=MARIO.messages,
        license=("MIT", "more"),
        template_sha256=sha256(TEMPLATE.encode()).hexdigest(),
        base_sha256=registry.resolve("base").source.sha256,
        requires="0.14.0",
    )
    third = create(
        registry,
        "third",
        Modelfile("second", system="You are Luigi.", stop=("a", "b"), messages=({"role": "user", "content": "x"},)),
    )
    assert third.layer.system == "You are Luigi." and third.layer.stop == ("a", "b")
    assert third.layer.messages == ({"role": "user", "content": "x"},) and third.layer.parameters["top_k"] == 3
    # Nothing of it depends on the models in between.
    delete(registry, "mario")
    delete(registry, "second")
    assert registry.resolve("third").derived == third


def test_only_the_bases_own_template(registry):
    assert create(registry, "same", Modelfile("base", template=TEMPLATE)).layer.system is None
    with pytest.raises(RequestError, match=r"^the TEMPLATE is not the one in Base-F16\.gguf: "):
        create(registry, "other", Modelfile("base", template="{{ .Prompt }}"))
    with pytest.raises(NotFound):
        registry.resolve("other")


def test_bases_that_will_not_do(registry, tmp_path):
    with pytest.raises(NotFound, match="unknown model 'none'"):
        create(registry, "mario", Modelfile("none"))
    with pytest.raises(RequestError, match="from is missing"):
        create(registry, "mario", Modelfile(""))
    with pytest.raises(RequestError, match="start it with --registry"):
        create(Registry(None, PinnedFile("a", "a.gguf", "0" * 64, "f", None)), "mario", Modelfile("a"))
    pin(tmp_path, "raw.gguf", content=b"no GGUF")
    with pytest.raises(Refused, match="bad magic"):
        create(registry, "mario", Modelfile("raw"))
    (tmp_path / "raw.gguf").unlink()
    with pytest.raises(Refused, match=r"^raw\.gguf is pinned, but the file is missing: refused$"):
        create(registry, "mario", Modelfile("raw"))
    tiny.write(tmp_path / "odd.gguf", tiny.MODELS[1])
    make_odd(tmp_path / "odd.gguf")
    pin(tmp_path, "odd.gguf")
    with pytest.raises(Refused, match=r"^odd\.gguf: tokenizer\.ggml\.pre: unsupported pre-tokenizer 'pluto'"):
        create(registry, "mario", Modelfile("odd"))
    assert not any(name.endswith(".MODEL.json") for name in os.listdir(tmp_path))


def test_copies_and_deletions(registry):
    mario = create(registry, "mario", MARIO)
    copied = copy(registry, "mario:latest", "Luigi")
    assert copied.layer == mario.layer and copied.digest == mario.digest and copied.name == "luigi"
    plain = copy(registry, "base", "plain")
    assert plain.layer == ModelLayer(template_sha256=mario.layer.template_sha256, base_sha256=mario.layer.base_sha256)
    delete(registry, "mario:latest")
    with pytest.raises(NotFound, match=r"^there is no model 'mario' to delete$"):
        delete(registry, "mario")
    assert [one.name for one in registry.derived()] == ["luigi", "plain"]
    with pytest.raises(NotFound):
        copy(registry, "mario", "peach")
    copy(registry, "luigi", "plain")
    assert registry.resolve("plain").layer == mario.layer


def test_what_was_there_stays_when_the_write_fails(registry, monkeypatch):
    first = create(registry, "mario", MARIO)

    def failing(path, mode=0o644, **how):
        context = atomic_write(path, mode, **how)

        class Failing:
            def __enter__(self):
                out = context.__enter__()
                out.write(b"half")
                raise KeyboardInterrupt

            def __exit__(self, *error):
                return context.__exit__(*error)

        return Failing()

    monkeypatch.setattr(manifest_module, "atomic_write", failing)
    with pytest.raises(KeyboardInterrupt):
        create(registry, "mario", Modelfile("base"))
    assert registry.resolve("mario").derived == first


EDITS = {
    "edited by hand": [
        lambda it: it["layer"].update(system="You are Bowser."),
        lambda it: it["layer"]["parameters"].update(temperature=0.8),
        lambda it: it["layer"]["messages"][0].update(content="x"),
        lambda it: it["layer"].pop("license"),
        lambda it: it.update(digest="0" * 64),
        lambda it: it["base"].update(sha256="0" * 64),
        lambda it: it["base"].update(name="other"),
        lambda it: it["base"].update(file="other.gguf"),
        lambda it: it["base"].update(fork="/elsewhere/FORK.json"),
        lambda it: it["base"].update(path=None),
        lambda it: it["base"].update(extra=1),
        lambda it: it.update(created_at="2020-01-01T00:00:00Z"),
        lambda it: it.update(bankml="0.0.1"),
        lambda it: it.update(base=None),
        lambda it: it.update(manifest_sha256="0" * 64),
        lambda it: it.update(manifest_sha256=None),
    ],
    "its kind is 'bankml.derived.v2'": [lambda it: it.update(kind="bankml.derived.v2")],
    "its kind is 'None'": [lambda it: it.pop("kind")],
    "it names the model 'luigi'": [lambda it: it.update(name="luigi")],
    "it names the model '../mario'|slash": [lambda it: it.update(name="../mario")],
    "has an unknown key 'extra'": [lambda it: it.update(extra=1)],
    "lacks 'created_at'": [lambda it: it.pop("created_at")],
    "lacks 'manifest_sha256'": [lambda it: it.pop("manifest_sha256")],
    "created_at is": [lambda it: it.update(created_at="yesterday")],
    "its layer is not an object": [lambda it: it.update(layer=[])],
}


@pytest.mark.parametrize(("says", "edit"), [(says, edit) for says, edits in EDITS.items() for edit in edits])
def test_an_edited_manifest_is_refused(registry, says, edit):
    create(registry, "mario", MARIO)
    create(registry, "other", MARIO)
    edited(registry, "mario", edit)
    with pytest.raises(Refused, match=says):
        registry.resolve("mario")
    with pytest.raises(Refused, match=says):
        create(registry, "son", Modelfile("mario"))
    assert [one.name for one in registry.derived()] == ["other"]
    (problem,) = registry.problems()
    assert problem.file == "mario.MODEL.json" and len(problem.reason) < 400
    delete(registry, "mario")
    assert registry.problems() == []


BASES = {
    "its base is not an object": lambda it: it.update(base=None),
    "its base has an unknown key 'extra'": lambda it: it["base"].update(extra=1),
    "file is not a string": lambda it: it["base"].update(file=3),
    "its base and its layer have different sha256 values": lambda it: it["base"].update(sha256="0" * 64),
    "which no FORK.json pins any more": lambda it: it["base"].update(file="other.gguf"),
}


@pytest.mark.parametrize("says", BASES)
def test_a_base_with_a_right_digest_is_still_read_strictly(registry, says):
    create(registry, "mario", MARIO)
    edited(registry, "mario", BASES[says], sealed=True)
    with pytest.raises(Refused, match=says):
        registry.resolve("mario")


LAYERS = {
    "parameters is not an object": lambda layer: layer.update(parameters=[]),
    "unsupported parameter 'tfs_z'": lambda layer: layer["parameters"].update(tfs_z=1),
    "temperature must be a number": lambda layer: layer["parameters"].update(temperature="hot"),
    "stop is not a list": lambda layer: layer.update(stop="x"),
    "stop must be a non-empty string": lambda layer: layer.update(stop=[""]),
    "stop occurs 1025 times, the limit is 1024": lambda layer: layer.update(stop=["x"] * 1025),
    "one of messages is not an object": lambda layer: layer.update(messages=["x"]),
    "the role of a message": lambda layer: layer.update(messages=[{"role": "tool", "content": "x"}]),
    "template_sha256 is not 64 hex": lambda layer: layer.update(template_sha256="x"),
    "system is not a string": lambda layer: layer.update(system=3),
    "license is not a string": lambda layer: layer.update(license=[3]),
    "lacks 'requires'": lambda layer: layer.pop("requires"),
}


@pytest.mark.parametrize("says", LAYERS)
def test_a_layer_with_a_right_digest_is_still_read_strictly(registry, says):
    create(registry, "mario", MARIO)

    edited(registry, "mario", lambda document: LAYERS[says](document["layer"]), sealed=True)
    with pytest.raises(Refused, match=says):
        registry.resolve("mario")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"[" * 100_000, b"\xff", b'{"a": NaN}', b'{"kind": "\\ud800"}', b"{}"]
)
def test_what_is_no_manifest_at_all(registry, content):
    with open(os.path.join(registry.folder, "mario.MODEL.json"), "wb") as file:
        file.write(content)
    with pytest.raises(Refused, match=r"^mario\.MODEL\.json is not a manifest") as refusal:
        registry.resolve("mario")
    assert registry.folder not in refusal.value.public_message
    assert [problem.file for problem in registry.problems()] == ["mario.MODEL.json"]


@pytest.mark.parametrize("target", ["new.json", "old.json"])
def test_no_manifest_is_a_symbolic_link(registry, tmp_path, target):
    """Neither written through nor read through, and deleted without what it leads to."""
    outside, link = tmp_path / "outside", tmp_path / "vic.MODEL.json"
    outside.mkdir()
    (outside / "old.json").write_text('{"secret": "x"}')
    link.symlink_to(outside / target)
    create(registry, "mario", MARIO)
    for attempt in (
        lambda: create(registry, "vic", MARIO),
        lambda: copy(registry, "mario", "vic"),
        lambda: copy(registry, "base", "vic"),
        lambda: registry.resolve("vic"),
    ):
        with pytest.raises(Refused, match=r"^vic\.MODEL\.json is .*a symbolic link") as refusal:
            attempt()
        assert str(tmp_path) not in refusal.value.public_message and "secret" not in refusal.value.public_message
    assert [problem.file for problem in registry.problems()] == ["vic.MODEL.json"]
    delete(registry, "vic")
    assert os.listdir(outside) == ["old.json"] and (outside / "old.json").read_text() == '{"secret": "x"}'
    assert create(registry, "vic", MARIO) == registry.resolve("vic").derived


def test_a_link_that_comes_while_a_manifest_is_written_is_replaced(registry, tmp_path, monkeypatch):
    outside = tmp_path / "outside.json"
    monkeypatch.setattr(manifest_module, "require_plain", lambda path: os.symlink(outside, path))
    made = create(registry, "vic", MARIO)
    assert not outside.exists() and registry.resolve("vic").derived == made


def test_a_folder_with_a_manifests_name(registry, tmp_path):
    (tmp_path / "dd.MODEL.json").mkdir()
    for attempt in (lambda: create(registry, "dd", MARIO), lambda: delete(registry, "dd")):
        with pytest.raises(Refused, match=r"^dd\.MODEL\.json is not a regular file: refused$"):
            attempt()
    with pytest.raises(Refused, match=r"^dd\.MODEL\.json is not a manifest: cannot read dd.MODEL.json: not a reg"):
        registry.resolve("dd")


def test_a_registry_may_be_a_link_and_have_any_name(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    templated(folder / "base.gguf")
    pin(folder, "base.gguf")
    (tmp_path / "link").symlink_to(folder)
    made = create(Registry(str(tmp_path / "link")), "a", MARIO)
    assert create(Registry(str(folder)), "b", MARIO).digest == made.digest
    assert [one.name for one in Registry(str(folder)).derived()] == ["a", "b"]
    assert manifest_of(Registry(str(folder)), "b")["base"]["path"] == str(tmp_path / "caf\ufffd" / "base.gguf")


@pytest.mark.parametrize("depth", range(100, 1000, 50))
def test_a_layer_as_deep_as_json_is_read(registry, depth):
    create(registry, "mario", MARIO)
    path = os.path.join(registry.folder, "mario.MODEL.json")
    document = manifest_of(registry, "mario")
    document["layer"]["system"] = "DEEP"
    with open(path, "w") as file:
        file.write(json.dumps(document).replace('"DEEP"', "[" * depth + "]" * depth))
    with pytest.raises(Refused, match=r"edited by hand|nested too deep|not JSON"):
        registry.resolve("mario")


def test_a_base_whose_pin_changed_or_went(registry, tmp_path):
    made = create(registry, "mario", MARIO)
    templated(tmp_path / "Base-F16.gguf", "other")
    (now,) = pin(tmp_path, "Base-F16.gguf")
    was = made.base.sha256
    with pytest.raises(
        Refused, match=rf"^mario was made of Base-F16\.gguf pinned to {was}, which is now pinned to {now}: refused$"
    ):
        registry.resolve("mario")
    (tmp_path / "Base-F16.gguf.FORK.json").unlink()
    with pytest.raises(
        Refused, match=r"^mario was made of Base-F16\.gguf, which no FORK\.json pins any more: refused$"
    ):
        registry.resolve("mario")


# Applying

LAYER = ModelLayer(
    system="S",
    parameters={"temperature": 0.5, "num_predict": 9, "num_ctx": 512, "top_k": 3},
    stop=("x",),
    messages=({"role": "user", "content": "m1"}, {"role": "assistant", "content": "m2"}),
)
SYSTEM, USER = {"role": "system", "content": "own"}, {"role": "user", "content": "u"}
LATE = [USER, {"role": "assistant", "content": "a"}, SYSTEM]


@pytest.mark.parametrize(
    ("messages", "applied"),
    [
        ([USER], ["S", "m1", "m2", "u"]),
        ([SYSTEM, USER], ["own", "m1", "m2", "u"]),
        ([SYSTEM, SYSTEM, USER], ["own", "own", "m1", "m2", "u"]),
        ([SYSTEM], ["own", "m1", "m2"]),
        (LATE, ["S", "m1", "m2", "u", "a", "own"]),
    ],
)
def test_where_the_layers_messages_go(messages, applied):
    request = GenerationRequest(None, Conversation(messages))
    assert [message["content"] for message in with_layer(LAYER, request).prompt.messages] == applied
    assert request.prompt.messages == messages
    without = ModelLayer(messages=LAYER.messages)
    contents = [message["content"] for message in with_layer(without, request).prompt.messages]
    assert contents == [one for one in applied if one != "S"]


def test_a_layer_s_answer_before_a_continued_one_is_refused():
    layer = ModelLayer(messages=({"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}))
    request = GenerationRequest(None, Conversation.of([{"role": "assistant", "content": "b"}]))
    with pytest.raises(RequestError, match="Cannot have 2 or more assistant messages at the end"):
        with_layer(layer, request)


def test_parameters_stand_under_the_requests_own():
    request = GenerationRequest(None, RawPrompt(("x",)), sampling=SamplingOverrides(temperature=0.0, seed=1))
    applied = with_layer(LAYER, request)
    assert applied.sampling == SamplingOverrides(temperature=0.0, seed=1, top_k=3)
    assert (applied.max_tokens, applied.stop, applied.prompt) == (9, ("x",), request.prompt)
    limited = with_layer(LAYER, replace(request, max_tokens=4, stop=("y",)))
    assert (limited.max_tokens, limited.stop) == (4, ("y",))
    assert with_layer(LAYER, replace(request, stop=())).stop == ()
    assert with_layer(ModelLayer(parameters={"num_predict": -2}), request).max_tokens == -1
    assert with_layer(None, request) is request


def test_a_layers_context():
    assert context_of("m", LAYER, 4096) == 512 == context_of("m", LAYER, 512)
    assert context_of("m", ModelLayer(), 4096) == context_of("m", None, 4096) == 4096
    with pytest.raises(RequestError, match=r"^m requires num_ctx 512, but this server's context is 511 \(--ctx\)$"):
        context_of("m", LAYER, 511)
