from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from question import KEY, MODEL, MOST, PROMPT, V1, report

model = OpenAILike(
    model=MODEL, api_base=V1, api_key=KEY, is_chat_model=True, temperature=0, max_tokens=MOST, max_retries=0
)
chat = "".join(part.delta or "" for part in model.stream_chat([ChatMessage(role="user", content=PROMPT)]))
report(text=chat, asked="".join(part.delta or "" for part in model.stream_complete(PROMPT)))
