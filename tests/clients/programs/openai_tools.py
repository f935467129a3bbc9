"""Tools whole, streamed and through the helpers; parsed answers; the Responses API."""

from typing import Literal

import openai
from openai import OpenAI
from pydantic import BaseModel
from question import KEY, MESSAGES, MODEL, V1, WEATHER, is_weather, report


class Weather(BaseModel):
    """The weather."""

    city: Literal["Oslo", "Rome"]
    days: Literal[1, 2, 3]


client = OpenAI(base_url=V1, api_key=KEY, max_retries=0)
tool = {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": WEATHER}}
asked = {"model": MODEL, "temperature": 0, "max_tokens": 200}
message = client.chat.completions.create(messages=MESSAGES, tools=[tool], tool_choice="required", **asked).choices[0]
(call,) = message.message.tool_calls
talk = [*MESSAGES, message.message, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
after = client.chat.completions.create(messages=talk, tools=[tool], **asked).choices[0].message.content

streamed = ""
for chunk in client.chat.completions.create(messages=MESSAGES, tools=[tool], stream=True, **asked):
    for delta in chunk.choices[0].delta.tool_calls or []:
        streamed += delta.function.arguments or ""

made = openai.pydantic_function_tool(Weather, name="weather")
with client.chat.completions.stream(messages=MESSAGES, tools=[made], tool_choice="required", **asked) as stream:
    helped = stream.get_final_completion().choices[0].message.tool_calls[0].function.parsed_arguments
parsed = client.chat.completions.parse(messages=MESSAGES, response_format=Weather, **asked).choices[0].message.parsed

flat = {"type": "function", "name": "weather", "description": "The weather.", "parameters": WEATHER, "strict": True}
newer = {"model": MODEL, "temperature": 0, "max_output_tokens": 200}
response = client.responses.create(input="where is the rain?", tools=[flat], **newer)
(item,) = response.output
history = [*MESSAGES, item, {"type": "function_call_output", "call_id": item.call_id, "output": "rain"}]
text = client.responses.create(input=history, tools=[flat], **newer).output_text
events = list(client.responses.create(input="where is the rain?", stream=True, **newer))
form = client.responses.parse(input="where is the rain?", text_format=Weather, **newer).output_parsed
report(
    finish=message.finish_reason,
    call=call.function.name,
    arguments=is_weather(call.function.arguments),
    after=after,
    streamed=is_weather(streamed),
    helped=is_weather(helped.model_dump()),
    parsed=is_weather(parsed.model_dump()),
    response_call=is_weather(item.arguments),
    response_after=text,
    response_events=[events[0].type, events[-1].type],
    response_text="".join(event.delta for event in events if event.type == "response.output_text.delta"),
    response_parsed=is_weather(form.model_dump()),
)
