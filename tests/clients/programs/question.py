"""What every program asks, and how it reports what it read."""

import json
import sys

ADDRESS, MODEL = sys.argv[1:3]
V1 = f"{ADDRESS}/v1"
KEY = "none"
WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Rome"]},
        "days": {"type": "integer", "enum": [1, 2, 3]},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
"""The parameters of the one tool, "weather"."""

PROMPT = "where is the rain?"
MESSAGES = [{"role": "user", "content": PROMPT}]
MOST = 12
"""Tokens."""
STOP = ["."]
"""What the tiny model says within them."""


def report(**read: object) -> None:
    print(json.dumps(read))


def is_weather(arguments: object) -> bool:
    """Whether they are the arguments of a call."""
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    assert isinstance(arguments, dict)
    return set(arguments) == {"city", "days"} and arguments["city"] in ("Oslo", "Rome") and 1 <= arguments["days"] <= 7
