from langchain_openai import ChatOpenAI
from question import KEY, MODEL, MOST, PROMPT, V1, report

chat = ChatOpenAI(base_url=V1, api_key=KEY, model=MODEL, temperature=0, max_tokens=MOST, max_retries=0)
whole = None
for chunk in chat.stream(PROMPT):
    whole = chunk if whole is None else whole + chunk
report(text=whole.content, role="assistant" if whole.type == "AIMessageChunk" else whole.type)
