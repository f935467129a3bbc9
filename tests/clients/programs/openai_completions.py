from openai import OpenAI
from question import KEY, MODEL, MOST, PROMPT, V1, report

client = OpenAI(base_url=V1, api_key=KEY, max_retries=0)
stream = client.completions.create(model=MODEL, prompt=PROMPT, max_tokens=MOST, temperature=0, stream=True)
report(completion="".join(chunk.choices[0].text for chunk in stream))
