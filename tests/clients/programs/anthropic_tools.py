"""Messages, tools and their results, whole and streamed; the token counter."""

from anthropic import Anthropic
from question import ADDRESS, KEY, MESSAGES, MODEL, WEATHER, is_weather, report

client = Anthropic(base_url=ADDRESS, api_key=KEY, max_retries=0)
tool = {"name": "weather", "description": "The weather.", "input_schema": WEATHER}
asked = {"model": MODEL, "max_tokens": 200, "extra_body": {"temperature": 0}}
plain = client.messages.create(messages=MESSAGES, system="Be brief.", **asked)
with client.messages.stream(messages=MESSAGES, **asked) as stream:
    streamed = "".join(stream.text_stream)
    final = stream.get_final_message()
called = client.messages.create(messages=MESSAGES, tools=[tool], tool_choice={"type": "any"}, **asked)
(use,) = called.content
result = {"type": "tool_result", "tool_use_id": use.id, "content": [{"type": "text", "text": "rain"}]}
talk = [*MESSAGES, {"role": "assistant", "content": called.content}, {"role": "user", "content": [result]}]
after = client.messages.create(messages=talk, tools=[tool], **asked)
with client.messages.stream(messages=MESSAGES, tools=[tool], **asked) as stream:
    (streamed_use,) = stream.get_final_message().content
counted = client.messages.count_tokens(model=MODEL, messages=MESSAGES, system="Be brief.").input_tokens
report(
    text=plain.content[0].text,
    reason=plain.stop_reason,
    streamed=streamed,
    joined=final.content[0].text,
    stopped=called.stop_reason,
    arguments=is_weather(use.input),
    after=after.content[0].text,
    streamed_arguments=is_weather(streamed_use.input),
    counts=counted == plain.usage.input_tokens + plain.usage.cache_read_input_tokens,
)
