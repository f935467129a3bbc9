"""Records what llama.cpp's converter makes of the folders of tests/library/synthetic.py: keys, and tensors' hashes.

python -m scripts.record_conversion LLAMA_CPP PYTHON

LLAMA_CPP is the reference's source, as `make oracle` unpacks it. PYTHON is an interpreter of another environment, with
numpy, torch, sentencepiece and transformers 4.57.6: what the converter asks for. It knows a pre-tokenizer by what the
vocabulary makes of one text, which no small vocabulary can satisfy; so it is told the name.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.convert.synthetic import FOLDERS, PRE, contents, write

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "tests" / "recordings" / "library" / "conversion.json"
DRIVER = """
import runpy, sys
source, pre, folder, target = sys.argv[1:]
sys.path[:0] = [source, source + "/gguf-py"]
from conversion.base import TextModel
TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
sys.argv = ["convert_hf_to_gguf.py", folder, "--outfile", target, "--outtype", "f16"]
runpy.run_path(source + "/convert_hf_to_gguf.py", run_name="__main__")
"""


def main() -> None:
    source, python = sys.argv[1:]
    recording = {}
    with tempfile.TemporaryDirectory() as where:
        for folder in FOLDERS:
            made, target = write(folder, Path(where) / folder.name), Path(where) / f"{folder.name}.gguf"
            command = [python, "-B", "-c", DRIVER, source, PRE[folder.architecture], str(made), str(target)]
            subprocess.run(command, check=True, env={"HF_HUB_OFFLINE": "1"})
            recording[folder.name] = contents(target)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{json.dumps(name)}: {json.dumps(made, separators=(',', ':'))}" for name, made in recording.items())
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
