"""Records what llama-server answers on the tiny models of tests/end_to_end, for the ordinary test run.

python scripts/record_end_to_end.py LLAMA_SERVER        (the llama-server of `make oracle`)
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.end_to_end.answers import essence  # noqa: E402
from tests.end_to_end.cases import cases  # noqa: E402
from tests.end_to_end.servers import ask, free_port, waiting  # noqa: E402
from tests.end_to_end.tiny import MODELS, write  # noqa: E402

RECORDING = ROOT / "tests/recordings/end_to_end/llama-server.json"
FLAGS = ["-t", "2", "-c", "2048", "-np", "1", "--jinja", "--reasoning", "off", "--no-webui", "--cache-ram", "0"]


def record(server: str, path: Path) -> list[object]:
    port = free_port()
    command = [server, "-m", str(path), "--host", "127.0.0.1", "--port", str(port), *FLAGS]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            waiting(port, process)
            return [essence(*ask(port, path, body)) for _, path, body in cases()]
        finally:
            process.terminate()


def main() -> None:
    models = {}
    with tempfile.TemporaryDirectory() as folder:
        for tiny in MODELS:
            path = Path(folder) / f"{tiny.name}.gguf"
            write(path, tiny)
            answers = record(sys.argv[1], path)
            models[tiny.name] = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "answers": answers}
    lines = [json.dumps({"name": n, "path": p, "body": b}, ensure_ascii=False) for n, p, b in cases()]
    blocks = [
        f'"{name}": {{"sha256": "{m["sha256"]}", "answers": [\n'
        + ",\n".join(json.dumps(a, ensure_ascii=False, separators=(",", ":")) for a in m["answers"])
        + "\n]}"
        for name, m in models.items()
    ]
    text = '{"cases": [\n' + ",\n".join(lines) + '\n],\n"models": {\n' + ",\n".join(blocks) + "\n}}\n"
    RECORDING.parent.mkdir(parents=True, exist_ok=True)
    RECORDING.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
