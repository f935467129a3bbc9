"""The streaming helper, whose message goes back for the next turn. It raises for an answer that a limit ended."""

from openai import OpenAI
from question import KEY, MESSAGES, MODEL, MOST, STOP, V1, report

client = OpenAI(base_url=V1, api_key=KEY, max_retries=0)
asked = {"model": MODEL, "max_tokens": MOST, "temperature": 0, "stop": STOP}
with client.chat.completions.stream(messages=MESSAGES, **asked) as stream:
    text = "".join(event.delta for event in stream if event.type == "content.delta")
    message = stream.get_final_completion().choices[0].message
talk = [*MESSAGES, message, {"role": "user", "content": "and then?"}]
again = client.chat.completions.create(messages=talk, **asked).choices[0].message
report(stopped=text, stopped_too=message.content, role=message.role, next_role=again.role)
