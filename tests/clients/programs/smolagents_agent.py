"""An agent whose model calls its tools."""

from question import KEY, MODEL, PROMPT, V1, is_weather, report
from smolagents import ChatMessage, OpenAIServerModel, Tool


class WeatherTool(Tool):
    name = "weather"
    description = "The weather."
    inputs = {  # noqa: RUF012
        "city": {"type": "string", "description": "A city.", "enum": ["Oslo", "Rome"]},
        "days": {"type": "integer", "description": "Days.", "enum": [1, 2, 3]},
    }
    output_type = "string"

    def forward(self, city: str, days: int) -> str:
        return "rain"


model = OpenAIServerModel(MODEL, api_base=V1, api_key=KEY, temperature=0, max_tokens=200)
messages = [ChatMessage(role="user", content=[{"type": "text", "text": PROMPT}])]
said = model.generate(messages, tools_to_call_from=[WeatherTool()])
streamed = "".join(delta.content or "" for delta in model.generate_stream(messages))
report(
    call=said.tool_calls[0].function.name, arguments=is_weather(said.tool_calls[0].function.arguments), text=streamed
)
