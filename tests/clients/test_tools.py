"""The field's clients call tools, send their results back, and get objects (`make test-clients`)."""

import os
import subprocess

import pytest

from tests.clients.calling_model import NAME, write_calling_model
from tests.clients.served import HERE, ROOT, run, serving

pytestmark = pytest.mark.clients

REPORTS = {
    "openai_tools.py": {
        "finish": "tool_calls",
        "call": "weather",
        "arguments": True,
        "after": "Done.",
        "streamed": True,
        "helped": True,
        "parsed": True,
        "response_call": True,
        "response_after": "Done.",
        "response_events": ["response.created", "response.completed"],
        "response_text": "Done.",
        "response_parsed": True,
    },
    "anthropic_tools.py": {
        "text": "Done.",
        "reason": "end_turn",
        "streamed": "Done.",
        "joined": "Done.",
        "stopped": "tool_use",
        "arguments": True,
        "after": "Done.",
        "streamed_arguments": True,
        "counts": True,
    },
    "ollama_tools.py": {
        "call": "weather",
        "arguments": True,
        "after": "Done.",
        "streamed": [True],
        "thought": ["Done.", None],
        "capabilities": ["completion", "tools"],
    },
    "langchain_tools.py": {"openai": [True, "Done.", True, True], "ollama": [True, "Done.", True, True]},
    "pydantic_ai_agent.py": {"after": "Done.", "called": [True], "by_tool": True, "by_schema": True},
    "instructor_create.py": {"tool_call": True, "json_schema_mode": True},
    "smolagents_agent.py": {"call": "weather", "arguments": True, "text": "Done."},
    "openai_agents_run.py": {
        "chat": ["Done.", "Done."],
        "responses": ["Done.", "Done."],
        "called": [True, True, True, True],
    },
    "litellm_tools.py": {"openai": True, "ollama": True, "anthropic": True, "responses": "Done."},
    "ai_tools.mjs": {"after": "Done.", "text": "Done.", "called": [True, True], "object": True},
}


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served"), NAME, write_calling_model) as gate:
        yield gate


def test_langchains_standard_tests(port):
    suite = HERE / "programs/langchain_suite.py"
    server = {"BANKML_ADDRESS": f"http://127.0.0.1:{port}", "BANKML_MODEL": NAME}
    options = ["-q", "-c", os.devnull, "--noconftest", "-p", "no:cacheprovider", "--asyncio-mode=auto"]
    done = subprocess.run(
        [str(ROOT / "venv/bin/python"), "-m", "pytest", *options, str(suite)],
        env={**os.environ, **server}, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("program", REPORTS)
def test_a_client_calls_a_tool_and_gets_objects(program, port):
    assert run(program, port, NAME) == REPORTS[program]
