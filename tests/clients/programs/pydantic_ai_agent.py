"""An agent that calls a tool, its stream, and its outputs by a tool and by a schema."""

from typing import Literal

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from question import KEY, MODEL, PROMPT, V1, is_weather, report


class Weather(BaseModel):
    city: Literal["Oslo", "Rome"]
    days: Literal[1, 2, 3]


model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=V1, api_key=KEY))
settings = {"temperature": 0, "max_tokens": 200}
asked: list[dict[str, object]] = []
agent = Agent(model, model_settings=settings, retries=0)


@agent.tool_plain
def weather(city: Literal["Oslo", "Rome"], days: Literal[1, 2, 3]) -> str:
    asked.append({"city": city, "days": days})
    return "rain"


answer = agent.run_sync(PROMPT).output
by_tool = Agent(model, output_type=Weather, model_settings=settings, retries=0).run_sync(PROMPT).output
by_schema = Agent(model, output_type=NativeOutput(Weather), model_settings=settings, retries=0).run_sync(PROMPT).output
report(
    after=answer,
    called=[is_weather(one) for one in asked],
    by_tool=is_weather(by_tool.model_dump()),
    by_schema=is_weather(by_schema.model_dump()),
)
