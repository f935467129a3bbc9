"""The streaming helper, whose message goes back for the next turn."""

from openai import OpenAI
from question import KEY, MESSAGES, MODEL, MOST, V1, report

client = OpenAI(base_url=V1, api_key=KEY, max_retries=0)
with client.chat.completions.stream(model=MODEL, messages=MESSAGES, max_tokens=MOST, temperature=0) as stream:
    text = "".join(event.delta for event in stream if event.type == "content.delta")
    message = stream.get_final_completion().choices[0].message
talk = [*MESSAGES, message, {"role": "user", "content": "and then?"}]
with client.chat.completions.stream(model=MODEL, messages=talk, max_tokens=MOST, temperature=0) as stream:
    again = stream.until_done().get_final_completion().choices[0].message
report(text=text, joined=message.content, role=message.role, next_role=again.role)
