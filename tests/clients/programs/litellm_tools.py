"""Tools by the routes of OpenAI's and Ollama's APIs, and the APIs that it translates to a chat itself."""

import litellm
from question import ADDRESS, KEY, MESSAGES, MODEL, V1, WEATHER, is_weather, report

tool = {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": WEATHER}}
quiet = {"temperature": 0, "max_tokens": 200, "num_retries": 0, "api_key": KEY}


def called(model: str, base: str) -> bool:
    said = litellm.completion(model=model, api_base=base, messages=MESSAGES, tools=[tool], **quiet)
    return is_weather(said.choices[0].message.tool_calls[0].function.arguments)


response = litellm.responses(model=f"openai/{MODEL}", input="hi", api_base=V1, api_key=KEY, temperature=0)
report(
    openai=called(f"openai/{MODEL}", V1),
    ollama=called(f"ollama_chat/{MODEL}", ADDRESS),
    anthropic=called(f"anthropic/{MODEL}", ADDRESS),
    responses=response.output[0].content[0].text,
)
