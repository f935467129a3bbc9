from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret
from question import KEY, MODEL, MOST, PROMPT, V1, report

chunks: list[str] = []
generator = OpenAIChatGenerator(
    api_key=Secret.from_token(KEY),
    api_base_url=V1,
    model=MODEL,
    generation_kwargs={"temperature": 0, "max_tokens": MOST},
    streaming_callback=lambda chunk: chunks.append(chunk.content),
    max_retries=0,
)
replies = generator.run([ChatMessage.from_user(PROMPT)])["replies"]
report(text=replies[0].text, joined="".join(chunks), finish=replies[0].meta["finish_reason"])
