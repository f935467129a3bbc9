"""The routes openai/, ollama_chat/ (a POST without Content-Type) and text-completion-openai/."""

import litellm
from question import ADDRESS, KEY, MESSAGES, MODEL, MOST, PROMPT, V1, report

QUIET = {"temperature": 0, "max_tokens": MOST, "stream": True, "num_retries": 0}


def chat(model: str, base: str) -> str:
    stream = litellm.completion(model=model, messages=MESSAGES, api_base=base, api_key=KEY, **QUIET)
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream)


text = litellm.text_completion(
    model=f"text-completion-openai/{MODEL}", prompt=PROMPT, api_base=V1, api_key=KEY, **QUIET
)
report(
    text=chat(f"openai/{MODEL}", V1),
    ollama=chat(f"ollama_chat/{MODEL}", ADDRESS),
    completion="".join(chunk.choices[0].text or "" for chunk in text),
)
