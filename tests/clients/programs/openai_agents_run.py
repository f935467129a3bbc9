"""Agents over chat completions and over the Responses API, which is their default."""

import asyncio
from typing import Literal

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)  # fmt: skip
from openai import AsyncOpenAI
from question import KEY, MODEL, PROMPT, V1, is_weather, report

set_tracing_disabled(True)
asked: list[dict[str, object]] = []


@function_tool
def weather(city: Literal["Oslo", "Rome"], days: Literal[1, 2, 3]) -> str:
    """The weather."""
    asked.append({"city": city, "days": days})
    return "rain"


async def main() -> None:
    client = AsyncOpenAI(base_url=V1, api_key=KEY, max_retries=0)
    read = {}
    for name, kind in (("chat", OpenAIChatCompletionsModel), ("responses", OpenAIResponsesModel)):
        settings = ModelSettings(temperature=0, max_tokens=200)
        agent = Agent("meteorologist", tools=[weather], model=kind(MODEL, client), model_settings=settings)
        whole = await Runner.run(agent, PROMPT)
        streamed = Runner.run_streamed(agent, PROMPT)
        async for _ in streamed.stream_events():
            pass
        read[name] = [whole.final_output, streamed.final_output]
    report(**read, called=[is_weather(one) for one in asked])


asyncio.run(main())
