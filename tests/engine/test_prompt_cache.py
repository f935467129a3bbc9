import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.engine.completion import Job
from bankml.engine.engine import Engine
from bankml.engine.memory import MIB, available_memory, cache_limit
from bankml.engine.prompt_cache import CachedPrompt, PromptCache, can_extend, swap_prefix
from bankml.engine.slot import Slot
from bankml.engine.trace import ComputedSpan
from bankml.errors import UsageError
from tests.engine.cell_toys import CellModel, Cells, entry, filled
from tests.engine.engine_toys import ByteVocabulary, GreedySampler, ToyPieces


def tokens(text):
    return np.array(list(text), np.int32)


def cache_of(*entries, limit_bytes=None, limit_tokens=10**6):
    cache = PromptCache(limit_bytes, limit_tokens)
    for one in entries:
        cache.add(one)
    return cache


def texts(cache):
    return [bytes(one.tokens.astype(np.uint8)) for one in cache._entries]


# ---- whether the slot can_extend as it is


@pytest.mark.parametrize(
    "held,prompt,keeps",
    [
        (b"", b"abc", False),
        (b"abcdef", b"abcdefgh", True),
        (b"abcdef", b"abcxyz", True),  # half of the slot is kept
        (b"abcdefg", b"abcxyz", False),  # less than half
        (b"a", b"a" + bytes(9), False),  # a tenth of the prompt is found, not more
        (b"a", b"a" + bytes(8), True),
        (b"xyz", b"abc", False),
    ],
)
def test_when_the_slot_stays(held, prompt, keeps):
    assert can_extend(tokens(held), tokens(prompt)) is keeps


# ---- what is kept


def test_what_an_entry_holds_whole_is_not_kept_again():
    cache = cache_of(entry(b"abcdef", 100))
    assert not cache.admit(tokens(b"abcd"), 10) and not cache.admit(tokens(b"abcdef"), 10)
    assert texts(cache) == [b"abcdef"]


def test_what_a_new_entry_holds_whole_goes():
    cache = cache_of(entry(b"abc", 10), entry(b"abx", 10), entry(b"abcd", 10))
    assert cache.admit(tokens(b"abcdef"), 10)
    assert texts(cache) == [b"abx"]


def test_the_oldest_make_room():
    cache = cache_of(*(entry(bytes([i]), 30) for i in range(3)), limit_bytes=100)
    assert cache.admit(tokens(b"abc"), 40)
    assert texts(cache) == [b"\1", b"\2"]
    cache.add(entry(b"abc", 40))
    assert cache.nbytes == 100


def test_what_could_never_fit_disturbs_nothing():
    cache = cache_of(entry(b"a", 30), entry(b"b", 70), limit_bytes=100)
    assert not cache.admit(tokens(b"ab"), 101)
    assert texts(cache) == [b"a", b"b"]


def test_real_bytes_are_counted():
    cells = Cells(width=5)
    slot, cache = filled(list(b"abcdef"), cells), PromptCache(None, 10**6)
    swap_prefix(b"xyz", slot, cache)
    assert cache.nbytes == 6 * 4 + cells.k[:, :, :6].nbytes + cells.v[:, :, :6].nbytes
    assert cells.saved == [6]


def test_nothing_is_copied_that_is_not_kept():
    cells = Cells(width=5)
    slot, cache = filled(list(b"abcdef"), cells), PromptCache(6 * 44 - 1, 10**6)
    swap_prefix(b"xyz", slot, cache)
    assert len(cache) == 0 and cells.saved == []
    swap_prefix(b"abc", slot, cache)  # can_extend: half is kept
    assert len(cache) == 0 and cells.saved == []


# ---- what comes back


def test_an_entry_must_beat_the_slot_in_both_ways():
    better = entry(b"abcdxxxx")
    assert cache_of(better).take(tokens(b"abyyyyyy"), tokens(b"abcdef")) is better
    assert cache_of(entry(b"abcdxxxxxxxxxxxx")).take(tokens(b"abyy"), tokens(b"abcdef")) is None  # keeps less of itself
    assert cache_of(entry(b"ab")).take(tokens(b"abyy"), tokens(b"abcdef")) is None  # finds no more of the prompt


def test_an_entry_that_would_lose_most_of_itself_stays():
    assert cache_of(entry(b"ab" + bytes(7))).take(tokens(b""), tokens(b"abc")) is None
    cache = cache_of(entry(b"ab" + bytes(6)))
    assert cache.take(tokens(b""), tokens(b"abc")) is not None
    assert len(cache) == 0, "it was taken out"


def test_the_best_is_taken_and_the_first_of_equals():
    first, best, last = entry(b"abcx"), entry(b"abcdex"), entry(b"abcdey")
    cache = cache_of(first, best, last)
    assert cache.take(tokens(b""), tokens(b"abcdefgh")) is best
    assert texts(cache) == [b"abcx", b"abcdey"]


def test_only_the_common_cells_come_back():
    cells = Cells()
    cache, slot = PromptCache(None, 10**6), filled(list(b"abcdef"), cells)
    swap_prefix(b"xyz", slot, cache)
    slot = filled(list(b"xyz"), cells)
    swap_prefix(b"abcdzz", slot, cache)
    assert slot.tokens == tuple(b"abcd") == cells.held(4)
    assert texts(cache) == [b"xyz"]


def test_nothing_comes_back_for_a_prompt_that_wants_nothing_of_it():
    cells = Cells()
    cache, slot = PromptCache(None, 10**6), filled(list(b"abcdef"), cells)
    swap_prefix(b"xyz", slot, cache)
    slot = filled(list(b"xyz"), cells)
    swap_prefix(b"abcdzz", slot, cache, reuse=False)
    assert len(slot) == 0 and cells.held(3) == tuple(b"xyz")
    assert texts(cache) == [b"xyz"]


def test_a_slot_without_its_likes_is_saved_and_left_standing():
    cells = Cells()
    cache, slot = PromptCache(None, 10**6), filled(list(b"abcdef"), cells)
    swap_prefix(b"abzzzzzz", slot, cache)
    assert slot.tokens == tuple(b"abcdef") and texts(cache) == [b"abcdef"]


# ---- limits


def test_the_limit_of_tokens_grows_to_what_fits_into_the_bytes():
    cache = cache_of(*(entry(bytes([i]) * 10, 100) for i in range(5)), limit_bytes=None, limit_tokens=30)
    cache.trim()
    assert cache.n_tokens == 30
    cache = cache_of(*(entry(bytes([i]) * 10, 100) for i in range(5)), limit_bytes=400, limit_tokens=30)
    cache.trim()
    assert (cache.n_tokens, cache.nbytes) == (40, 400)


def test_running_out_of_memory_gives_some_back():
    class Full(Cells):
        def save(self, n):
            raise MemoryError

    cache = cache_of(*(entry(bytes([i]) * 10, 100) for i in range(5)), limit_bytes=1000)
    slot = filled(list(b"abcdef"), Full())
    swap_prefix(b"xyz", slot, cache)
    assert cache.limit_bytes == 200 and cache.nbytes == 200 and slot.tokens == tuple(b"abcdef")


@pytest.mark.parametrize(
    "text,available,limit",
    [
        (None, 100 << 30, 8192 * MIB),
        ("", 4 << 30, 1 << 30),
        ("0", 1, 0),
        ("-1", 1, None),
        ("7", 1, 7 * MIB),
        ("16777216", 1, 1 << 44),
    ],
)
def test_the_limit_that_is_asked_for(text, available, limit):
    assert cache_limit(text, available) == limit


@pytest.mark.parametrize("text", ["-2", "x", "1.5", "16777217", "9" * 5000, "٣", " 1"])
def test_a_limit_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="BANKML_CACHE_RAM must be a whole number of MiB"):
        cache_limit(text, 1)


def test_available_memory(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:    1234 kB\nSwapFree: 1 kB\n")
    assert available_memory(meminfo) == 1234 * 1024
    assert available_memory(tmp_path / "none") > 1 << 20


# ---- in use


@given(
    st.lists(st.tuples(st.binary(max_size=12), st.booleans()), min_size=1, max_size=12),
    st.sampled_from([None, 0, 300, 1000]),
    st.integers(1, 40),
)
def test_the_cache_never_changes_an_answer(prompts, limit_bytes, limit_tokens):
    model = CellModel(n_ctx=64)
    cache = PromptCache(limit_bytes, limit_tokens)
    engine = Engine(model, ByteVocabulary(), prompt_cache=cache)
    for raw, reuse in prompts:
        prompt = [65 + byte % 2 for byte in raw] or [65]

        def answer(engine, prompt=prompt, reuse=reuse):
            return [s.token for s in engine.complete(Job(prompt, 4, reuse), GreedySampler(), ToyPieces())]

        assert answer(engine) == answer(Engine(CellModel(n_ctx=64), ByteVocabulary()))
        slot = engine.slots[0]
        assert slot.cells.held(len(slot)) == slot.tokens
        assert limit_bytes is None or cache.nbytes <= limit_bytes
        for one in cache._entries:
            assert one.state.k[0, 0, :, 0].tolist() == one.tokens.tolist()


def test_two_conversations_in_turns():
    engine = Engine(CellModel(), ByteVocabulary(), prompt_cache=PromptCache(None, 4096))
    first, second = list(b"The first conversation"), list(b"Another one altogether")
    seen = []
    for turn in range(4):
        for prompt in (first, second):
            steps = list(engine.complete(Job(prompt, 5), GreedySampler(), ToyPieces()))
            seen.append(steps[-1].progress.cached_tokens)
            assert turn == 0 or seen[-1] == len(prompt) - 3 - 1
            prompt.extend([*(step.token for step in steps), *b"and"])
    assert seen[:2] == [0, 0]


def test_an_entry_is_gone_once_it_is_in_the_slot():
    cells, cache = Cells(), PromptCache(None, 4096)
    cache.add(CachedPrompt(tokens(b"abc"), filled(list(b"abc"), cells) and cells.save(3), (ComputedSpan(0, 3, 3),)))
    slot = Slot(cells)
    swap_prefix(b"abcd", slot, cache)
    assert slot.tokens == tuple(b"abc") and len(cache) == 0
