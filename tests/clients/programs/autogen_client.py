import asyncio

from autogen_core.models import ModelFamily, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from question import KEY, MODEL, MOST, PROMPT, V1, report

INFO = {
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "family": ModelFamily.UNKNOWN,
    "structured_output": True,
    "multiple_system_messages": True,
}


async def main() -> None:
    client = OpenAIChatCompletionClient(
        model=MODEL, base_url=V1, api_key=KEY, model_info=INFO, temperature=0, max_tokens=MOST, max_retries=0
    )
    parts = [part async for part in client.create_stream([UserMessage(content=PROMPT, source="user")])]
    await client.close()
    report(text=parts[-1].content, joined="".join(part for part in parts if isinstance(part, str)))


asyncio.run(main())
