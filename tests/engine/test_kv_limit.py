"""`--kv-limit`: keys and values of all slots within a limit of memory. Who has no room waits; nothing else changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.engine.active import OUTPUT_LIMIT
from bankml.engine.completion import Job
from bankml.engine.engine import Engine
from bankml.engine.kv_budget import BLOCK
from bankml.engine.prompt_cache import PromptCache
from bankml.engine.several import PromptChoices, complete_several
from bankml.errors import Cancelled, RequestError, UsageError
from tests.engine.cell_toys import CellModel, Cells
from tests.engine.engine_toys import ByteVocabulary, GreedySampler, ToyPieces
from tests.engine.test_scheduler import Crowd, alone, answered, wait_until

BLOCK_BYTES = BLOCK * Cells().cell_bytes
N_CTX = 2 * BLOCK


class WatchedModel(CellModel):
    """Fails as soon as more is in use than `limit` bytes."""

    limit, engine = 0, None

    def forward(self, spans, logits, checkpoint=lambda: None):
        assert self.engine.slots.kv_bytes <= self.limit
        return super().forward(spans, logits, checkpoint)


def limited(blocks, parallel=4, cache=True):
    model = WatchedModel(n_ctx=N_CTX)
    model.limit = blocks * BLOCK_BYTES
    model.engine = Engine(
        model, ByteVocabulary(), parallel, PromptCache(None, 4096) if cache else None, blocks * BLOCK_BYTES
    )
    return model.engine


jobs = st.builds(
    Job,
    st.tuples(st.sampled_from("ab"), st.integers(1, 300)).map(lambda made: list(made[0].encode() * made[1])),
    st.integers(1, 200),
    st.booleans(),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(jobs, min_size=1, max_size=8), st.integers(2, 5), st.integers(1, 4), st.booleans())
def test_answers_are_the_same_within_the_limit(several, blocks, parallel, cache):
    engine = limited(blocks, parallel, cache)
    crowd = Crowd(engine)
    for job in several:
        crowd.ask(job)
    answers = crowd.wait()
    assert answers == [alone(job) for job in several]
    assert engine.slots.kv_bytes <= blocks * BLOCK_BYTES
    engine.close()


def test_a_limit_has_room_for_a_context():
    with pytest.raises(UsageError, match=r"--kv-limit 0 is too small: one context of 512 tokens takes 1 MiB"):
        limited(1)
    limited(2).close()


def test_idle_slots_give_theirs_up_to_the_prompt_cache():
    engine = limited(2, parallel=2)
    first = Job([65] * 200, 20)
    answered(engine, first)
    answered(engine, Job([66] * 200, 200))
    assert [len(engine.slots[number]) for number in range(2)].count(0) == 1
    steps = list(engine.complete(first, GreedySampler(), ToyPieces()))
    assert steps[0].progress.cached_tokens == 199
    engine.close()


def test_a_request_that_waits_for_memory_can_be_cancelled_and_is_the_next():
    engine = limited(2, parallel=3)
    running = engine.complete(Job([65] * 10, 300), GreedySampler(), ToyPieces())
    next(running)
    crowd, left = Crowd(engine), []
    crowd.ask(Job([66] * 10, 300), lambda: bool(left))
    wait_until(lambda: engine.slots._short is not None)
    crowd.ask(Job([67] * 10, 30), after=0.01)
    left.append(True)
    crowd_answers = []
    wait_until(lambda: 0 in crowd.answers)
    running.close()
    crowd_answers = crowd.wait()
    assert isinstance(crowd_answers[0], Cancelled)
    assert crowd_answers[1] == alone(Job([67] * 10, 30))
    engine.close()


def test_several_prompts_in_one_request_wait_for_its_own_answers():
    """Each answer has more tokens than wait for a consumer at most, who is the one that waits for memory."""
    engine = limited(3)
    tokens = 3 * OUTPUT_LIMIT
    prompts = [Job([65 + i] * 300, tokens, False) for i in range(5)]
    asked = [PromptChoices(job, [(GreedySampler(), ToyPieces())]) for job in prompts]
    found = {}
    for index, step in complete_several(engine, asked, 4, cancelled=lambda: False, progress=lambda _: None):
        found.setdefault(index, []).append(step.token)
    assert [found[i] for i in range(5)] == [alone(job) for job in prompts]
    engine.close()


def test_copies_that_can_never_fit_are_refused():
    engine = limited(3)
    asked = [PromptChoices(Job([65] * 300, 10), [(GreedySampler(), ToyPieces()) for _ in range(4)])]
    with pytest.raises(
        RequestError, match="4 answers of up to 310 tokens take 1 MiB of keys and values, the limit is 0"
    ):
        next(complete_several(engine, asked, 4, cancelled=lambda: False, progress=lambda _: None))
    engine.close()
