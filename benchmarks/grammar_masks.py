"""How long one mask over a whole vocabulary takes, and how long libllama's own takes for the same.

    python benchmarks/grammar_masks.py MODEL.gguf [--reference] [--positions 60]

For every grammar of tests/recordings/grammar/grammars.json a text is drawn at random from what the grammar allows, and
at each of its positions the mask of the whole vocabulary is made: "first" counts masks that were not met before in that
text, "all" every one. libllama's figure is llama_sampler_apply of its grammar sampler on the same logits.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bankml.gguf.header import read_header  # noqa: E402
from bankml.grammar.matcher import Grammar, Matcher  # noqa: E402
from bankml.library.resident import grammar_tree  # noqa: E402
from bankml.text.tokenizer import Tokenizer  # noqa: E402

GRAMMARS = ROOT / "tests" / "recordings" / "grammar" / "grammars.json"


def walk(text, tree, tokenizer, n_positions, seed, reference=None):
    """Yields (our seconds, was the state new, the reference's seconds or None) for every position."""
    random = np.random.default_rng(seed)
    grammar = Grammar.parse(text, tokenize=tokenizer.encode)
    matcher, theirs = Matcher(grammar, tree), reference and reference(text)
    logits = random.standard_normal(tokenizer.n_vocab).astype(np.float32)
    met = set()
    ends = set(tokenizer.vocabulary.end_of_generation)
    for _ in range(n_positions):
        start = time.perf_counter()
        masked = matcher.mask(logits)
        ours = time.perf_counter() - start
        allowed = np.flatnonzero(np.isfinite(masked))
        key = hash(allowed.tobytes())
        new = key not in met
        met.add(key)
        yield ours, new, theirs and theirs.seconds(logits)
        choices = [t for t in allowed[random.permutation(len(allowed))[:20]] if t not in ends]
        if not choices:
            matcher, theirs = Matcher(grammar, tree), reference and reference(text)
            continue
        token = int(choices[0])
        matcher.accept(token)
        if theirs:
            theirs.accept(token)


def row(name, seconds):
    ms = np.array(seconds) * 1000
    return f"{name:24s} {len(ms):6d} {np.median(ms):9.3f} {np.percentile(ms, 99):9.3f} {ms.max():9.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--reference", action="store_true", help="time libllama beside it (tests/grammar/reference.py)")
    parser.add_argument("--positions", type=int, default=60)
    options = parser.parse_args()
    tokenizer = Tokenizer.from_header(read_header(options.model))
    start = time.perf_counter()
    tree = grammar_tree(tokenizer)
    print(f"{options.model.name}: {tokenizer.n_vocab} tokens, tree made in {time.perf_counter() - start:.2f} s")
    reference = None
    if options.reference:
        from tests.grammar.reference import ReferenceGrammars

        reference = ReferenceGrammars(options.model).sampler
    print(f"{'ms':24s} {'masks':>6s} {'median':>9s} {'p99':>9s} {'max':>9s}")
    every, first, theirs = [], [], []
    for seed, (name, text) in enumerate(json.loads(GRAMMARS.read_text()).items()):
        rows = list(walk(text, tree, tokenizer, options.positions, seed, reference))
        every += [ours for ours, _, _ in rows]
        first += [ours for ours, new, _ in rows if new]
        theirs += [t for _, _, t in rows if t]
        print(row(name, [ours for ours, _, _ in rows]))
    print(row("all", every))
    print(row("first", first))
    if theirs:
        print(row("libllama", theirs))
        print(f"libllama's median is {np.median(theirs) / np.median(every):.1f} times ours")


if __name__ == "__main__":
    main()
