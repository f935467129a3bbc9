"""Its default mode, tools, and JSON schemas."""

from typing import Literal

import instructor
from openai import OpenAI
from pydantic import BaseModel
from question import KEY, MESSAGES, MODEL, V1, is_weather, report


class Weather(BaseModel):
    city: Literal["Oslo", "Rome"]
    days: Literal[1, 2, 3]


read = {}
for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
    client = instructor.from_openai(OpenAI(base_url=V1, api_key=KEY, max_retries=0), mode=mode)
    made = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, response_model=Weather, temperature=0, max_tokens=200, max_retries=0
    )
    read[mode.value] = is_weather(made.model_dump())
report(**read)
