"""ChatOllama sends each of its options, the unset ones as null."""

from langchain_ollama import ChatOllama
from question import ADDRESS, MODEL, MOST, PROMPT, report

chat = ChatOllama(base_url=ADDRESS, model=MODEL, temperature=0, num_predict=MOST)
report(text="".join(chunk.content for chunk in chat.stream(PROMPT)))
