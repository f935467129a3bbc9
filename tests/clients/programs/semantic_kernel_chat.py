import asyncio

from openai import AsyncOpenAI
from question import KEY, MODEL, MOST, PROMPT, V1, report
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory


async def main() -> None:
    client = AsyncOpenAI(base_url=V1, api_key=KEY, max_retries=0)
    service = OpenAIChatCompletion(ai_model_id=MODEL, async_client=client)
    history = ChatHistory()
    history.add_user_message(PROMPT)
    settings = OpenAIChatPromptExecutionSettings(temperature=0, max_tokens=MOST)
    stream = service.get_streaming_chat_message_content(history, settings)
    report(text="".join([str(part) async for part in stream if part is not None]))


asyncio.run(main())
