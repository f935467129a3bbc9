"""Records what the reference makes of the small vocabulary, into tests/recordings/text/tokenizer.json.

python -m scripts.record_tokenizer
"""

import base64
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from tests.text.reference import ReferenceTokenizer
from tests.text.small_vocabulary import SPECIALS, metadata, write_gguf
from tests.text.strings import random_bytes, random_text

ROOT = Path(__file__).resolve().parents[1]

OUTPUT = ROOT / "tests" / "recordings" / "text" / "tokenizer.json"
SEED, N_TEXTS = 15, 150


def record(pretokenizer: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.gguf"
        write_gguf(path, metadata(pretokenizer))
        reference = ReferenceTokenizer(path)
    random_ = random.Random(SEED)
    specials = [text for text in SPECIALS if text]
    texts = []
    for i in range(N_TEXTS):
        data = random_bytes(random_, specials) if i % 5 == 0 else random_text(random_, specials).encode()
        texts.append([base64.b64encode(data).decode(), *(reference.encode(data, special) for special in (True, False))])
    ids = range(reference.n_vocab)
    return {
        "texts": texts,
        "ends": [id for id in ids if reference.is_end_of_generation(id)],
        "pieces": [reference.piece(id, False).hex() for id in ids],
        "spellings": [reference.piece(id, True).hex() for id in ids],
    }


if __name__ == "__main__":
    recording = {name: record(name) for name in ("qwen2", "smollm")}
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(recording, separators=(",", ":")) + "\n")
