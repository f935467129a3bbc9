"""A slot knows how each of its cells was computed, whatever was reused, copied, cached or restored."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankml.engine.completion import MICRO_BATCH, Job
from bankml.engine.engine import Engine
from bankml.engine.prompt_cache import PromptCache
from bankml.engine.slot_actions import restore, save
from bankml.engine.slot_folder import SlotFolder
from bankml.engine.trace import ComputedSpan, Trace, checked_trace
from tests.engine.cell_toys import CellModel
from tests.engine.engine_toys import ByteVocabulary, GreedySampler, ToyPieces


def test_tokens_computed_one_by_one_are_one_span():
    trace = Trace()
    for rows in (512, 100, 1, 1, 1, 7, 1):
        trace.append(rows)
    assert trace.spans == (
        ComputedSpan(0, 512, 512),
        ComputedSpan(512, 100, 100),
        ComputedSpan(612, 1, 3),
        ComputedSpan(615, 7, 7),
        ComputedSpan(622, 1, 1),
    )
    assert trace.first(600) == (ComputedSpan(0, 512, 512), ComputedSpan(512, 100, 88))
    assert trace.first(614)[-1] == ComputedSpan(612, 1, 2) and len(trace) == 623


@given(st.lists(st.integers(1, 20), max_size=12), st.integers(0, 300))
def test_a_trace_that_is_cut_is_the_trace_of_its_first_tokens(batches, n):
    trace = Trace()
    for rows in batches:
        trace.append(rows)
    n = min(n, len(trace))
    assert checked_trace(trace.first(n), n).spans == trace.first(n)


@pytest.mark.parametrize(
    "spans", [[(0, 1, 2), (3, 1, 1)], [(1, 4, 4)], [(0, 4, 5)], [(0, 4, 0)], [(0, 0, 3)], [(0, 4, 3)]]
)
def test_spans_that_are_no_trace_of_four_tokens(spans):
    with pytest.raises(ValueError, match="spans"):
        checked_trace([ComputedSpan(*span) for span in spans], 4)


class RecordingModel(CellModel):
    """Notes for every cell in which micro-batch it was computed, by the cells' own memory."""

    def __init__(self):
        super().__init__()
        self.rows = {}

    def forward(self, spans, logits, checkpoint=lambda: None):
        for span in spans:
            for i in range(len(span.tokens)):
                self.rows[id(span.cells), span.position + i] = (span.position, len(span.tokens))
        return super().forward(spans, logits)


conversations = st.lists(
    st.tuples(st.binary(min_size=1, max_size=6), st.integers(0, 2), st.integers(1, 6), st.booleans()),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(conversations)
def test_the_trace_is_what_was_computed(requests):
    model = RecordingModel()
    engine = Engine(model, ByteVocabulary())
    slot, prompt = engine.slots[0], []
    for head, more, tokens, goes_on in requests:
        begun = prompt if goes_on else []
        prompt = [*begun, *(65 + b % 3 for b in head), *(65 + i % 3 for i in range(more * MICRO_BATCH // 2))]
        steps = list(engine.complete(Job(prompt, tokens), GreedySampler(), ToyPieces()))
        assert steps[-1].trace == slot.trace.spans
        computed = {}
        for span in slot.trace:
            for at in range(span.position, span.end):
                computed[at] = (at, 1) if span.rows == 1 else (span.position, span.rows)
        assert computed == {at: model.rows[id(slot.cells), at] for at in range(len(slot))}
        prompt = list(slot.tokens)
    engine.close()


def test_the_prompt_cache_and_slot_files_keep_it(tmp_path):
    engine = Engine(CellModel(), ByteVocabulary(), prompt_cache=PromptCache(None, 4096))
    first, second = list(b"The first conversation"), list(b"Another one altogether")
    one = list(engine.complete(Job(first, 5), GreedySampler(), ToyPieces()))[-1].trace
    list(engine.complete(Job(second, 5), GreedySampler(), ToyPieces()))
    last = list(engine.complete(Job([*first, 65, 66], 1), GreedySampler(), ToyPieces()))[-1]
    assert last.progress.cached_tokens == len(first)
    assert last.trace == (*Trace(one).first(len(first)), ComputedSpan(len(first), 2, 2))
    folder = SlotFolder(str(tmp_path))
    save(engine, engine.slots[0], "ab" * 32, folder, "a")
    other = Engine(CellModel(), ByteVocabulary())
    restore(other, other.slots[0], "ab" * 32, folder, "a")
    assert other.slots[0].trace.spans == engine.slots[0].trace.spans
    for one in (engine, other):
        one.close()
