"""simonw/llm's command line, which streams."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from question import MODEL, MOST, PROMPT, V1, report

with tempfile.TemporaryDirectory() as folder:
    Path(folder, "extra-openai-models.yaml").write_text(
        f"- model_id: local\n  model_name: {MODEL}\n  api_base: {V1}\n  api_key_name: none\n"
    )
    options = ["-o", "temperature", "0", "-o", "max_tokens", str(MOST)]
    command = [str(Path(sys.executable).with_name("llm")), "-m", "local", PROMPT, "--key", "none", *options]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "LLM_USER_PATH": folder})
report(text=done.stdout.decode().removesuffix("\n"))
