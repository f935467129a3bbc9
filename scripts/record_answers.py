"""Writes tests/recordings/text/answers.json.gz: what llama-server b11192 makes of chat templates and of answers.

    python -m scripts.record_answers ANALYSIS.jsonl.gz TEMPLATES

ANALYSIS has a JSON object a line, made by a program that links b11192's common library: it reads each template of the
folder TEMPLATES with bos and eos "" at 2026-01-15 12:00 UTC, gives common_chat_templates_apply a request's `body`
(through server-common's oaicompat_chat_params_parse), and keeps the prompt, the grammar's text, its laziness, triggers
and preserved tokens (`made`); then it parses texts (`outputs`) with common_chat_parse, whole and every `step`
characters, and keeps the message and the differences of successive messages with the byte offset of each. This keeps
one template of each kind and the requests that differ most.
"""

import gzip
import json
import sys
from pathlib import Path

TARGET = Path(__file__).parents[1] / "tests" / "recordings" / "text" / "answers.json.gz"

TEMPLATES = (
    *("Qwen-Qwen3-0.6B", "meta-llama-Llama-3.1-8B-Instruct", "mistralai-Mistral-Nemo-Instruct-2407"),
    *("Mistral-Small-3.2-24B-Instruct-2506", "GLM-4.7-Flash", "MiniMax-M2", "deepseek-ai-DeepSeek-V3.1"),
    *("meetkai-functionary-medium-v3.1", "Apertus-8B-Instruct", "CohereForAI-c4ai-command-r7b-12-2024-tool_use"),
    *("poolside-Laguna-XS.2", "upstage-Solar-Open-100B", "mistralai-Ministral-3-14B-Reasoning-2512"),
    *("openai-gpt-oss-120b", "muse-glimmer", "meetkai-functionary-medium-v3.2", "Kimi-K2-Thinking", "Kimi-K3"),
    *("inclusionai-ling-3.0-flash", "Cohere2MoE", "LFM2-8B-A1B", "LFM2.5-8B-A1B", "GigaChat3-10B-A1.8B"),
    *("MiniMax-M3", "deepseek-ai-DeepSeek-V3.2", "deepseek-ai-DeepSeek-V4", "google-gemma-4-31B-it"),
    *("openbmb-MiniCPM5-1B", "Qwen3.5-4B", "Qwen3-Coder"),
)
REQUESTS = ("auto", "required-off-many", "required-schemas", "format", "history", "go-on-both")
ANSWERS = ("answers", "answers-raw", "answers-go-on")
OUTPUTS = ("call", "calls", "thought-words", "hard", "call-cut", "words")


def main() -> None:
    analysis, folder = sys.argv[1:]
    rows = []
    with gzip.open(analysis, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            kind = row["id"].rpartition("/")[2]
            if row["template"] in TEMPLATES and "made" in row and kind in (*REQUESTS, *ANSWERS):
                rows.append(trimmed(row, with_grammar=kind in REQUESTS))
    names = sorted({row["template"] for row in rows})
    sources = {name: Path(folder, f"{name}.jinja").read_bytes().decode() for name in names}
    data = json.dumps({"templates": sources, "rows": rows}, ensure_ascii=False).encode()
    TARGET.write_bytes(gzip.compress(data, 9, mtime=0))


def trimmed(row: dict[str, object], *, with_grammar: bool) -> dict[str, object]:
    made, outputs = dict(row["made"]), row["outputs"]
    for name in ("format", "delimiters", "parallel_tool_calls"):
        made.pop(name, None)
    if not with_grammar:
        made.pop("grammar")
    kept = [one for one in outputs if one["name"] in OUTPUTS]
    names = ("template", "id", "enable_thinking", "supports_thinking", "body")
    return {name: row[name] for name in names} | {"made": made, "outputs": kept}


if __name__ == "__main__":
    main()
