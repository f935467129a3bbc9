"""`bankml create`: makes a derived model from a Modelfile.

FROM names a model, a pinned GGUF file, or a folder of safetensors, which is first converted to F16 and pinned with the
sha256 of every source file.
"""

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import bankml
from bankml.errors import FileProblem, NotFound, Refused, UsageError
from bankml.files import atomic_write, problem, temporary_directory
from bankml.gate.digest import sha256_file
from bankml.gate.verify import verify
from bankml.library.derived import check_free
from bankml.library.derived import create as create_derived
from bankml.library.json_file import parse_object, read_bytes
from bankml.library.manifest import manifest_path
from bankml.library.modelfile import Modelfile
from bankml.library.names import aliases, derived_name, names
from bankml.library.reference import Derived, PinnedFile
from bankml.library.registry import Registry

MOST_FORK_BYTES = 16 << 20

Say = Callable[[str], None]
Bar = Callable[[str, int], AbstractContextManager[Callable[[int], object] | None]]


@dataclass(frozen=True)
class Folders:
    """Folders: `modelfile` is the base of a relative FROM, `registry` has the records, `models` has model files that
    are not in there, and converted ones."""

    modelfile: str
    registry: str
    models: str


def create(name: str, modelfile: Modelfile, folders: Folders, say: Say, bar: Bar) -> Derived | PinnedFile:
    """Makes the model `name`. Returns a derived model, or the converted file itself if the Modelfile has only FROM and
    `name` is one of that file's own names.

    `say` is called with each step, `bar` makes the progress bar of a step over so many bytes. Raises RequestError,
    NotFound, Refused, UsageError or FileProblem; nothing incomplete is left.
    """
    derived_name(name)
    registry = Registry(folders.registry, also=(folders.models,))
    path = from_path(modelfile.source, folders.modelfile)
    if path is None or _is_pinned_model(registry, modelfile.source):
        _require_found(registry, modelfile.source, folders)
        return create_derived(registry, name, modelfile)
    if os.path.isdir(path):
        return _from_folder(registry, name, modelfile, path, folders, say, bar)
    source = _pinned(registry, path, bar)
    return create_derived(registry, name, replace(modelfile, source=source.name))


def from_path(source: str, relative_to: str) -> str | None:
    """The path in FROM, or None if it is a model's name. Paths contain a slash, begin with `~`, or name an existing
    `.gguf` file or a folder with a model."""
    path = os.path.join(relative_to, os.path.expanduser(source))
    if "/" in source or source.startswith("~") or source in (".", ".."):
        return os.path.abspath(path)
    if source.lower().endswith(".gguf"):
        return os.path.abspath(path) if os.path.isfile(path) else None
    from bankml.convert.hugging_face.convert import is_model_folder

    return os.path.abspath(path) if is_model_folder(path) else None


def _is_pinned_model(registry: Registry, source: str) -> bool:
    """A name without a slash is that of a model before it is that of a folder."""
    if "/" in source or source.startswith("~") or source.lower().endswith(".gguf"):
        return False
    try:
        return registry.resolve(source) is not None
    except NotFound:
        return False


def _require_found(registry: Registry, name: str, folders: Folders) -> None:
    """Raises what `registry.resolve` raises, and Refused if the model's file is missing: both name the folders that
    were searched."""
    try:
        source = registry.resolve(name).source
    except NotFound as error:
        raise NotFound(f"{error.message} (the registry is {folders.registry})") from None
    if source.path is None:
        searched = " or ".join(dict.fromkeys((folders.registry, folders.models)))
        raise Refused(
            f"{source.file} is pinned by {source.fork}, but the file is not in {searched}: refused (--models DIR names"
            " its folder)"
        )


def _pinned(registry: Registry, path: str, bar: Bar) -> PinnedFile:
    """The pin of the GGUF at `path`, after verifying the file."""
    if not os.path.lexists(path):
        raise FileProblem(f"cannot read {path}: no such file or directory")
    file = os.path.basename(path)
    if not file.lower().endswith(".gguf"):
        raise UsageError(
            f"FROM {path}: expected a model's name, a GGUF file or a folder of safetensors; a model in Hugging Face's"
            f" format is its folder: FROM {os.path.dirname(path)}"
        )
    source = next((pin for pin in registry.pins() if pin.file == file), None)
    if source is None:
        raise Refused(
            f"{file} has no sha256 record in FORK.json: unpinned, refused "
            f"(bankml pin FILE --record --fork {registry.folder}/{file}.FORK.json makes one)"
        )
    if source.path is None:
        raise UsageError(
            f"{path} is not in {registry.folder}, the folder of its record: give --models {os.path.dirname(path)}"
        )
    if not os.path.exists(path) or not os.path.samefile(source.path, path):
        raise UsageError(f"{path} is not where the registry finds {file}: {source.path}; use FROM {source.name}")
    with bar(f"verifying {file}", os.path.getsize(path)) as progress:
        verify(path, source.fork, progress)
    return source


def _from_folder(
    registry: Registry, name: str, modelfile: Modelfile, folder: str, folders: Folders, say: Say, bar: Bar
) -> Derived | PinnedFile:
    file = _file_name(folder)
    own = aliases([*(pin.file for pin in registry.pins()), file]).get(derived_name(name)) == file
    if own and replace(modelfile, source="") != Modelfile(""):
        raise UsageError(f"{name} is the name of the converted file {file} itself: choose another name")
    if not own:
        check_free(registry, name)
    source = _converted_before(registry, file, folder, say)
    if source is None:
        _check_not_there(registry, file, folders)
        source = _convert(folder, file, folders, say, bar)
    return source if own else create_derived(registry, name, replace(modelfile, source=source.name))


def _file_name(folder: str) -> str:
    """The GGUF's name: the folder's, with invalid characters replaced by dashes."""
    stem = re.sub(r"[^A-Za-z0-9_.-]+|\.\.+", "-", os.path.basename(folder)).strip("-.") or "model"
    return f"{stem[:60]}-F16.gguf"


def _converted_before(registry: Registry, file: str, folder: str, say: Say) -> PinnedFile | None:
    """The pinned file that an earlier call made of the same source files; None for another file or other sources."""
    from bankml.convert.hugging_face.convert import source_names

    source = next((pin for pin in registry.pins() if pin.file == file), None)
    if source is None or source.path is None:
        return None
    converted = parse_object(read_bytes(source.fork, MOST_FORK_BYTES), source.fork).get("converted")
    inputs = converted.get("inputs") if isinstance(converted, dict) else None
    if not isinstance(inputs, list):
        return None
    recorded = {one["path"]: one["sha256"] for one in inputs}
    if not source_names(folder) <= recorded.keys():
        return None
    paths = {name: os.path.join(folder, name) for name in recorded}
    if not all(os.path.isfile(path) and sha256_file(path) == recorded[name] for name, path in paths.items()):
        return None
    say(f"{folder} is converted already: {source.path}")
    return source


def _check_not_there(registry: Registry, file: str, folders: Folders) -> None:
    """Raises UsageError rather than overwrite an existing file."""
    for source in registry.pins():
        if source.name == names(file)[0]:
            raise UsageError(f"{source.file} is pinned already ({source.fork}): use FROM {source.name}")
    hidden = (manifest_path(folders.registry, alias) for alias in names(file))
    for path in (os.path.join(folders.models, file), _fork_path(folders, file), *hidden):
        if os.path.lexists(path):
            raise UsageError(f"{path} exists: move it away first")


def _fork_path(folders: Folders, file: str) -> str:
    return os.path.join(folders.registry, f"{file}.FORK.json")


def _convert(folder: str, file: str, folders: Folders, say: Say, bar: Bar) -> PinnedFile:
    from bankml.convert.hugging_face.convert import convert_folder, weight_bytes

    target, fork = os.path.join(folders.models, file), _fork_path(folders, file)
    try:
        for place in (folders.models, folders.registry):
            os.makedirs(place, exist_ok=True)
        with temporary_directory(Path(folders.models), ".making-") as making:
            made = os.path.join(making, file)
            say(f"converting {folder} to F16: {target}")
            with bar("converting", 2 * weight_bytes(folder)) as progress:
                inputs = convert_folder(folder, made, os.path.basename(folder), progress)
            size = os.path.getsize(made)
            with bar("hashing", size) as progress:
                sha256 = sha256_file(made, progress)
            os.replace(made, target)
    except OSError as error:
        raise problem("write", folders.models, error) from error
    try:
        _record(fork, file, size, sha256, folder, [asdict(one) for one in inputs])
    except BaseException:
        os.unlink(target)
        raise
    say(f"pinned {file} sha256 {sha256} in {fork}")
    return PinnedFile(names(file)[0], file, sha256, fork, target)


def _record(path: str, file: str, size: int, sha256: str, folder: str, inputs: Sequence[dict[str, object]]) -> None:
    document = {
        "files": [{"path": file, "bytes": size, "sha256": sha256}],
        "converted": {"bankml": bankml.__version__, "from": os.path.basename(folder), "inputs": inputs},
    }
    with atomic_write(path, follow=False) as out:
        out.write((json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape"))
