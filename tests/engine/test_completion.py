import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.engine.completion import MICRO_BATCH, Job
from bankml.engine.engine import Engine
from bankml.errors import Cancelled, ContextExceeded
from tests.engine.engine_toys import END, ByteVocabulary, GreedySampler, ToyModel, ToyPieces, hashing, saying


def run(job, model, engine=None, sampler=None, stops=(), **more):
    engine = engine or Engine(model, ByteVocabulary())
    return list(engine.complete(job, sampler or GreedySampler(), ToyPieces(stops, chat=True), **more))


def slot_and_model(model=None):
    """A model's engine, its only slot, and the model."""
    model = model or ToyModel()
    engine = Engine(model, ByteVocabulary())
    return engine, engine.slots[0], model


def text_of(steps):
    return "".join(step.text for step in steps)


def test_the_end_token_ends_with_stop_and_counts():
    steps = run(Job(b"A:"), ToyModel(saying("Oslo.")))
    assert (text_of(steps), steps[-1].finish, steps[-1].token) == ("Oslo.", "stop", END)
    assert steps[-1].progress.completion_tokens == 6
    assert all(step.finish is None for step in steps[:-1])


@pytest.mark.parametrize(("limit", "text"), [(3, "Osl"), (1, "O"), (0, "O"), (-1, "Oslo.")])
def test_the_token_limit(limit, text):
    steps = run(Job(b"A:", max_tokens=limit), ToyModel(saying("Oslo.")))
    assert (text_of(steps), steps[-1].finish) == (text, "stop" if limit < 0 else "length")


def test_a_stop_string_is_cut_and_its_tokens_count():
    steps = run(Job(b"A:"), ToyModel(saying("one two three")), stops=["two"])
    assert (text_of(steps), steps[-1].finish, steps[-1].progress.completion_tokens) == ("one ", "stop", 7)


def test_a_partial_stop_string_is_released_at_the_end():
    for limit in (-1, 5):
        assert text_of(run(Job(b"A:", limit), ToyModel(saying("one t")), stops=["two"])) == "one t"


def test_text_comes_in_whole_characters():
    steps = run(Job(b"A:", max_tokens=3), ToyModel(saying("a€")))
    assert text_of(steps) == "a"
    assert [step.text for step in run(Job(b"A:"), ToyModel(saying("a€")))] == ["a", "", "", "€", ""]


def test_a_prompt_must_leave_room_for_a_token():
    engine, _, model = slot_and_model(ToyModel(n_ctx=16))
    with pytest.raises(ContextExceeded) as caught:
        run(Job(bytes(16)), model, engine)
    assert str(caught.value) == "request (16 tokens) exceeds the available context size (16 tokens), try increasing it"
    assert (caught.value.n_prompt_tokens, caught.value.n_ctx, model.calls) == (16, 16, [])


@pytest.mark.parametrize("prompt_tokens", [1, 9, 15])
def test_a_generation_that_fills_the_context_ends_with_length(prompt_tokens):
    steps = run(Job(bytes(prompt_tokens)), ToyModel(n_ctx=16))
    assert (len(steps), steps[-1].finish) == (16 - prompt_tokens, "length")


def test_a_full_context_outdoes_a_stop_string_but_not_the_end_token():
    model = ToyModel(saying("xyz"), n_ctx=5)
    assert run(Job(b"A:"), model, stops=["z"])[-1].finish == "length"
    assert run(Job(b"A:"), ToyModel(saying("xy"), n_ctx=5))[-1].finish == "stop"


def test_prompts_are_computed_in_micro_batches_and_only_the_last_gives_logits():
    model = ToyModel()
    run(Job(bytes(1100), max_tokens=2), model)
    assert model.calls == [(0, 512, False), (512, 512, False), (1024, 76, True), (1100, 1, True)]


def test_every_prompt_token_is_accepted_before_the_first_draw_even_if_cached():
    engine, _slot, model = slot_and_model()
    run(Job(b"abc", max_tokens=2), model, engine)
    sampler = GreedySampler()
    steps = run(Job(b"abc", max_tokens=2), model, engine, sampler)
    assert sampler.accepted == [*b"abc", *(step.token for step in steps)]


def test_the_slot_holds_all_but_the_last_sampled_token():
    engine, slot, model = slot_and_model()
    steps = run(Job(b"abc", max_tokens=4), model, engine)
    assert slot.tokens == (*b"abc", *(step.token for step in steps[:-1]))
    again = run(Job([*b"abc", *(step.token for step in steps)], max_tokens=1), model, engine)
    assert again[0].progress.cached_tokens == 6


def test_a_prompt_that_is_all_cached_computes_its_last_token():
    engine, _slot, model = slot_and_model()
    first = run(Job(b"abc", max_tokens=3), model, engine)
    again = run(Job(b"abc", max_tokens=3), model, engine)
    assert again[0].progress.cached_tokens == 2
    assert text_of(first) == text_of(again)


def test_cache_prompt_false_starts_from_nothing():
    engine, slot, model = slot_and_model()
    run(Job(b"abc", max_tokens=1), model, engine)
    assert run(Job(b"abc", 1, cache_prompt=False), model, engine)[0].progress.cached_tokens == 0
    assert slot.tokens == tuple(b"abc")


@given(st.lists(st.binary(min_size=1, max_size=20).map(lambda b: bytes(c % 3 for c in b)), min_size=1, max_size=8))
def test_reuse_never_changes_an_answer(prompts):
    engine, slot, shared = slot_and_model(ToyModel(hashing))
    for prompt in prompts:
        fresh = run(Job(prompt, max_tokens=4), ToyModel(hashing))
        assert text_of(run(Job(prompt, max_tokens=4), shared, engine)) == text_of(fresh)
        assert slot.tokens == tuple(shared.cache)


def test_cancelled_between_tokens():
    engine, slot, model = slot_and_model()
    with pytest.raises(Cancelled):
        run(Job(b"A:"), model, engine, cancelled=lambda: len(model.calls) == 3)
    assert len(model.calls) == 3
    assert slot.tokens == tuple(model.cache)


def test_a_consumer_that_stops_leaves_the_slot_true():
    engine, slot, model = slot_and_model()
    steps = engine.complete(Job(b"A:"), GreedySampler(), ToyPieces())
    seen = [next(steps) for _ in range(3)]
    steps.close()
    assert not engine.slots.busy(0) and slot.tokens == tuple(model.cache)
    again = run(Job([*b"A:", *(step.token for step in seen)], 1), model, engine)
    assert again[0].progress.cached_tokens == 4


def test_cancelled_between_micro_batches():
    engine, slot, model = slot_and_model()
    with pytest.raises(Cancelled):
        run(Job(bytes(2000)), model, engine, cancelled=lambda: len(model.calls) == 2)
    assert len(slot) == 2 * MICRO_BATCH


def test_a_forward_pass_that_fails_leaves_the_slot_true():
    engine, slot, model = slot_and_model()

    def fail():
        if len(model.calls) == 3:
            raise OSError("no more")

    model.before = fail
    with pytest.raises(OSError, match="no more"):
        run(Job(b"abc"), model, engine)
    assert slot.tokens == tuple(model.cache)


def test_times():
    ticks = iter([1.0, 3.0, 3.5, 4.0])
    last = run(Job(b"abc", max_tokens=3), ToyModel(), clock=lambda: next(ticks))[-1].progress
    assert (last.prompt_ms, last.predicted_ms, last.decode_steps, last.computed_tokens) == (2000.0, 1000.0, 2, 3)
