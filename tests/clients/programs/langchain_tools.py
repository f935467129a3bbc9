"""bind_tools and with_structured_output of both chat models."""

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from question import ADDRESS, KEY, MODEL, PROMPT, V1, WEATHER, is_weather, report

SCHEMA = {"title": "weather", "description": "The weather.", **WEATHER}
read: dict[str, object] = {}
for name, chat in (
    ("openai", ChatOpenAI(base_url=V1, api_key=KEY, model=MODEL, temperature=0, max_tokens=200, max_retries=0)),
    ("ollama", ChatOllama(base_url=ADDRESS, model=MODEL, temperature=0, num_predict=200)),
):
    bound = chat.bind_tools([SCHEMA])
    said = bound.invoke(PROMPT)
    (call,) = said.tool_calls
    result = ToolMessage("rain", tool_call_id=call["id"], name="weather")
    after = bound.invoke([HumanMessage(PROMPT), said, result]).content
    whole = None
    for chunk in bound.stream(PROMPT):
        whole = chunk if whole is None else whole + chunk
    structured = chat.with_structured_output(SCHEMA).invoke(PROMPT)
    read[name] = [is_weather(call["args"]), after, is_weather(whole.tool_calls[0]["args"]), is_weather(structured)]
report(**read)
