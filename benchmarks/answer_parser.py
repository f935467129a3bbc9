"""What parsing an answer costs a token, at its beginning and at its end.

python -m benchmarks.answer_parser [TOKENS]
"""

import statistics
import sys
import time

from bankml.answers.describe import describe
from bankml.answers.format import AnswerFormat
from bankml.answers.parser import FormattedAnswer
from bankml.answers.request import FormatRequest
from bankml.text.messages import Conversation
from bankml.text.template import ChatTemplate

TEMPLATE = (
    "{%- if tools %}{{ tools|tojson }}{% endif %}"
    "{%- for m in messages %}{{ '<|' + m.role + '|>' }}"
    "{%- if m.reasoning_content %}{{ '<think>' + m.reasoning_content + '</think>' }}{% endif %}{{ m.content }}"
    "{%- for call in m.tool_calls or [] %}"
    "{{ '<tool_call>' + {'name': call.function.name, 'arguments': call.function.arguments}|tojson + '</tool_call>' }}"
    "{%- endfor %}{{ '<|end|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|assistant|>' }}{%- endif %}"
)
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOL = {"type": "function", "function": {"name": "say", "description": "", "parameters": SCHEMA}}
ANSWERS = {
    "content": ("", " word"),
    "reasoning": ("<think>", " word"),
    "arguments": ('<tool_call>{"name": "say", "arguments": {"text": "', " word"),
}


def form() -> AnswerFormat:
    conversation = Conversation([{"role": "user", "content": "hi"}], tools=[TOOL])
    return describe(FormatRequest(ChatTemplate(TEMPLATE), conversation))


def costs(made: AnswerFormat, start: str, piece: str, tokens: int) -> list[float]:
    """Microseconds of each token."""
    parser = FormattedAnswer(made, lambda: "id")
    parser.push(start, last=False)
    out = []
    for _ in range(tokens):
        began = time.perf_counter()
        assert parser.push(piece, last=False)
        out.append((time.perf_counter() - began) * 1e6)
    return out


def main() -> None:
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    made = form()
    print(f"{'':12} {'first 100':>10} {'last 100':>10}  µs a token, median")
    for name, (start, piece) in ANSWERS.items():
        taken = costs(made, start, piece, tokens)
        print(f"{name:12} {statistics.median(taken[:100]):10.1f} {statistics.median(taken[-100:]):10.1f}")


if __name__ == "__main__":
    main()
