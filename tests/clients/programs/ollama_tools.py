"""Tools with the result of one, whole and streamed, and `think`."""

import ollama
from question import ADDRESS, MESSAGES, MODEL, WEATHER, is_weather, report

client = ollama.Client(ADDRESS)
tool = {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": WEATHER}}
options = {"temperature": 0, "num_predict": 200}
message = client.chat(MODEL, MESSAGES, tools=[tool], options=options).message
(call,) = message.tool_calls
talk = [*MESSAGES, message, {"role": "tool", "tool_name": "weather", "content": "rain"}]
after = client.chat(MODEL, talk, tools=[tool], options=options).message.content
calls = [
    one
    for part in client.chat(MODEL, MESSAGES, tools=[tool], options=options, stream=True)
    for one in part.message.tool_calls or []
]
thought = client.chat(MODEL, MESSAGES, think=True, options=options).message
report(
    call=call.function.name,
    arguments=is_weather(dict(call.function.arguments)),
    after=after,
    streamed=[is_weather(dict(one.function.arguments)) for one in calls],
    thought=[thought.content, thought.thinking],
    capabilities=client.show(MODEL).capabilities,
)
