import ctypes
from dataclasses import replace
from mmap import PAGESIZE

import numpy as np
import pytest

from bankml.errors import UsageError
from bankml.model.config import read_config
from bankml.model.kv_cache import CACHE_TYPES, F16, KVCache, cache_type_from
from tests.lone_sequence import LoneSequence
from tests.tiny_model import tiny_model

CELLS = 64
Q8_0 = CACHE_TYPES["q8_0"]


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def filled(verified, request):
    cache = KVCache(read_config(verified.header), CELLS, CACHE_TYPES[request.param])
    rng = np.random.default_rng(1)
    for array in (piece for pair in cache.layers for piece in pair):
        array[...] = rng.integers(0, 256, array.shape)
    return cache


both = pytest.mark.parametrize("filled", ["f16", "q8_0"], indirect=True)


def cells_of(cache):
    return [np.array(piece) for piece in cache.view(CELLS).pieces()]


@both
def test_what_was_saved_is_put_back(filled):
    before, state = cells_of(filled), filled.save(40)
    for k, v in filled.layers:
        k[...], v[...] = 1, 1
    filled.load(state, state.cells)
    row = len(before[0]) // CELLS
    for old, new in zip(before, cells_of(filled), strict=True):
        assert np.array_equal(old[: 40 * row], new[: 40 * row])
        assert (new[40 * row :].view(filled.kind.dtype) == 1).all()


@both
def test_only_the_cells_that_are_asked_for_are_put_back(filled):
    state = filled.save(40)
    for k, v in filled.layers:
        k[...], v[...] = 1, 1
    filled.load(state, 3)
    for k, v in filled.layers:
        assert (k[:, 3:] == 1).all() and (v[:, 3:] == 1).all()
    assert np.array_equal(filled.view(3).k, state.k[:, :, :3])


@both
def test_a_state_takes_only_what_it_holds(filled):
    assert filled.save(40).nbytes == 40 * filled.cell_bytes == sum(map(len, filled.save(40).pieces()))
    assert filled.save(40).k.base is None, "a copy, not a view of all cells"
    assert filled.save(0).nbytes == 0 and list(map(len, filled.save(0).pieces())) == [0] * 8
    assert filled.cell_bytes * CELLS == filled.nbytes


@both
def test_pieces_of_a_view_are_the_cache(filled):
    for piece in filled.view(2).pieces():
        piece[:] = bytes(len(piece))
    assert not filled.view(2).k.any() and not filled.view(2).v.any() and filled.view(3).k.any()


@both
def test_cells_that_are_not_there(filled):
    for n in (-1, CELLS + 1):
        with pytest.raises(ValueError, match=f"n={n} exceeds the cache's {CELLS} cells"):
            filled.save(n)


def test_q8_0_takes_34_bytes_where_f16_takes_64(verified):
    shape = read_config(verified.header)
    f16, q8_0 = KVCache(shape, CELLS, F16), KVCache(shape, CELLS, Q8_0)
    assert q8_0.nbytes / f16.nbytes == 34 / 64


def test_heads_that_are_no_whole_blocks(verified):
    with pytest.raises(
        UsageError, match=r"q8_0 K/V cache needs heads of whole blocks of 32 values; this model's have 40"
    ):
        KVCache(replace(read_config(verified.header), head_size=40), CELLS, Q8_0)


def test_the_type_the_environment_asks_for(monkeypatch):
    monkeypatch.delenv("BANKML_CACHE_TYPE", raising=False)
    assert cache_type_from() is F16
    for text, kind in (("", F16), ("f16", F16), ("q8_0", Q8_0)):
        monkeypatch.setenv("BANKML_CACHE_TYPE", text)
        assert cache_type_from() is kind
    monkeypatch.setenv("BANKML_CACHE_TYPE", "q4_0")
    with pytest.raises(UsageError, match="BANKML_CACHE_TYPE must be f16 or q8_0, not 'q4_0'"):
        cache_type_from()


@pytest.mark.parametrize("kind", ["f16", "q8_0"])
def test_a_model_goes_on_from_cells_that_were_put_back(verified, kind, monkeypatch):
    monkeypatch.setenv("BANKML_CACHE_TYPE", kind)
    model, other = LoneSequence.open(verified, 512, threads=1), LoneSequence.open(verified, 512, threads=2)
    prompt = list(b"A prompt of some length, " * 12)
    model.forward(prompt, 0, False)
    state = model.save(len(prompt))
    model.forward([65], len(prompt), True)
    other.load(state, len(prompt))
    other.forward([65], len(prompt), True)
    assert model.cache_type == kind and np.array_equal(model.logits, other.logits) and model.logits.any()
    other.load(state, 3)
    other.forward(prompt[3:], 3, False)
    other.forward([65], len(prompt), True)
    assert np.allclose(model.logits, other.logits, atol=0.1)


def resident_kb(*arrays):
    """KiB of the pages of `arrays` that are in memory. Their mappings may be one with others' in /proc/self/smaps."""
    pages = 0
    for array in arrays:
        begin = array.__array_interface__["data"][0] // PAGESIZE * PAGESIZE
        nbytes = array.__array_interface__["data"][0] + array.nbytes - begin
        found = (ctypes.c_ubyte * -(-nbytes // PAGESIZE))()
        assert ctypes.CDLL(None).mincore(ctypes.c_void_p(begin), ctypes.c_size_t(nbytes), found) == 0
        pages += sum(one & 1 for one in found)
    return pages * PAGESIZE // 1024


@pytest.mark.parametrize("kind", CACHE_TYPES.values(), ids=CACHE_TYPES)
def test_memory_is_taken_as_cells_are_filled_and_given_back(verified, kind):
    cache = KVCache(read_config(verified.header), 1 << 16, kind)
    whole = cache.view(1 << 16)
    arrays, heads = (whole.k, whole.v), 2 * cache.view(1).k[..., 0, 0].size
    assert cache.nbytes > 16 << 20
    for cells in (1, 1000):
        for array in (one for pair in cache.layers for one in pair):
            array[:, :cells] = 7
        filled = cache.view(cells).nbytes // 1024
        assert filled <= resident_kb(*arrays) <= filled + 9 * heads, "two pages a head, the first and the last"
    cache.release(1000)
    assert (cache.view(1000).k == 7).all() and (cache.view(1000).v == 7).all()
    cache.release(1)
    assert (cache.view(1).k == 7).all() and resident_kb(*arrays) <= 9 * heads
    cache.release(0)
    assert resident_kb(*arrays) <= 4 * heads
