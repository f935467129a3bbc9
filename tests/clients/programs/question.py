"""What every program asks, and how it reports what it read."""

import json
import sys

ADDRESS, MODEL = sys.argv[1:3]
V1 = f"{ADDRESS}/v1"
KEY = "none"
PROMPT = "where is the rain?"
MESSAGES = [{"role": "user", "content": PROMPT}]
MOST = 12
"""Tokens."""
STOP = ["."]
"""What the tiny model says within them."""


def report(**read: object) -> None:
    print(json.dumps(read))
