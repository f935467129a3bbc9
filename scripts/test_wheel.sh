#!/bin/sh
# Builds the wheel, installs it alone in a virtual environment of its own, and has an answer there, with a receipt that
# checks and that is replayed. Two minutes.
set -eu
cd "$(dirname "$0")/.."
bin=${1:-.venv/bin}
here=build/wheel
rm -rf "$here"
mkdir -p "$here"
"$bin/pip" wheel -q --no-deps --wheel-dir "$here" .
"$bin/python" -m venv "$here/venv"
"$here/venv/bin/pip" install -q "$here"/bankml-*.whl
"$bin/python" -c "
from pathlib import Path
from tests.tiny_model import tiny_model
tiny_model(Path('$here'))"
model=$(ls "$here"/*.gguf)
cd "$here"
bankml=venv/bin/bankml
model=$(basename "$model")
echo '{"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "seed": 1}' > request.json
"$bankml" version
fork=$(ls *FORK.json)
"$bankml" generate "$model" --fork "$fork" --json < request.json > answer.json
"$bankml" check request.json answer.json
"$bankml" replay request.json answer.json --model "$model" --fork "$fork"
