"""Records what the reference's llama-server renders of template_cases.py, into tests/recordings/text/templates.json.

    python -m scripts.record_templates MODEL.gguf

Any small model will do: only its template is replaced. One server is started for all snippets (a template that picks
one by `case`), and one for each whole template.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests import oracle
from tests.text.template_cases import CONVERSATION, CONVERSATIONS, SNIPPETS, TEMPLATES

ROOT = Path(__file__).resolve().parents[1]

OUTPUT = ROOT / "tests" / "recordings" / "text" / "templates.json"


class LlamaServer:
    """llama-server with a template of ours, on a port of its own, until the block ends."""

    def __init__(self, folder: Path, model: Path, template: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.file = tempfile.NamedTemporaryFile("w", suffix=".jinja")  # noqa: SIM115 (closed when the block ends)
        self.file.write(template)
        self.file.flush()
        flags = ["--jinja", "--reasoning", "off", "--no-webui", "-c", "256", "-t", "1", "-np", "1", "--no-warmup"]
        command = [folder / "llama-server", "-m", model, "--host", "127.0.0.1", "--port", str(self.port), *flags]
        self.process = subprocess.Popen(
            [*command, "--chat-template-file", self.file.name],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(os.environ, LD_LIBRARY_PATH=str(folder)),
        )

    def __enter__(self) -> "LlamaServer":
        for _ in range(300):
            if self.process.poll() is not None:
                raise RuntimeError("the server does not start")
            try:
                if self.ask("GET", "/health", None)[0] == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError("the server does not answer")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(10)
        self.file.close()

    def ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def prompt(self, body: dict[str, Any]) -> str | None:
        """The prompt of a request; None where the server refuses it."""
        status, answer = self.ask("POST", "/apply-template", body)
        return answer["prompt"] if status == 200 else None


def dispatcher(snippets: list[str]) -> str:
    """A template that renders the snippet `case` names. A snippet begins after a marker, so that nothing is
    stripped."""
    return "{{ '' }}" + "".join(
        f"{{% if case == {i} %}}{{{{ '@' }}}}{snippet}{{{{ '@' }}}}{{% endif %}}{{{{ '' }}}}"
        for i, snippet in enumerate(snippets)
    )


def main() -> None:
    folder = oracle.find("llama-server").parent
    model = Path(sys.argv[1])
    recording: dict[str, Any] = {"snippets": [], "templates": {}}
    with LlamaServer(folder, model, dispatcher(SNIPPETS)) as server:
        for i, snippet in enumerate(SNIPPETS):
            prompt = server.prompt({"messages": CONVERSATION, "chat_template_kwargs": {"case": i}})
            recording["snippets"].append({"template": snippet, "prompt": prompt})
    for name, template in TEMPLATES.items():
        with LlamaServer(folder, model, template) as server:
            recording["templates"][name] = [server.prompt(body) for body in CONVERSATIONS]
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(recording, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
