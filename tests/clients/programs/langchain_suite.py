"""LangChain's standard tests of a chat model, for both of its clients; run by pytest in the clients' environment."""

import os

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

ADDRESS, MODEL = os.environ["BANKML_ADDRESS"], os.environ["BANKML_MODEL"]
NEEDS_A_MIND = (
    "test_tool_calling",
    "test_tool_calling_async",
    "test_bind_runnables_as_tools",
    "test_unicode_tool_call_integration",
)
"""Tests whose question the tiny model would have to understand: the call is right, its arguments are not those."""


@pytest.fixture(autouse=True)
def left_out(request: pytest.FixtureRequest) -> None:
    if request.node.originalname in NEEDS_A_MIND:
        request.applymarker(pytest.mark.xfail(reason="the tiny model does not understand the question", strict=True))


class TestOpenAI(ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, object]:
        """It retries by default: its connections outlive the event loop of a test, and then fail once."""
        server = {"base_url": f"{ADDRESS}/v1", "api_key": "none", "model": MODEL}
        return {**server, "temperature": 0, "max_tokens": 200, "stream_usage": True}


class TestOllama(ChatModelIntegrationTests):
    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOllama

    @property
    def chat_model_params(self) -> dict[str, object]:
        return {"base_url": ADDRESS, "model": MODEL, "temperature": 0, "num_predict": 200}

    @property
    def has_tool_choice(self) -> bool:
        return False
