"""The loop of the README: every chunk has a choice."""

from openai import OpenAI
from question import KEY, MESSAGES, MODEL, MOST, V1, report

client = OpenAI(base_url=V1, api_key=KEY, max_retries=0)
stream = client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=MOST, temperature=0, stream=True)
text, role, finish, receipt = "", None, None, None
for chunk in stream:
    text += chunk.choices[0].delta.content or ""
    role = chunk.choices[0].delta.role or role
    finish = chunk.choices[0].finish_reason or finish
    receipt = getattr(chunk, "bankml_receipt", receipt)
report(text=text, role=role, finish=finish, receipt=receipt["response_sha256"])
