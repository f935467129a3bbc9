"""Chat templates of our own, and answers behind them: what b11192 makes of them is in tests/recordings/grammar."""
# ruff: noqa: E501 (a case a line)

_TURNS = "{%- for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>\n' }}{%- endfor %}"

TEMPLATES = {
    "plain": _TURNS + "{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}{%- endif %}",
    "nothing asked": _TURNS,
    "think": (
        "{%- for m in messages %}{{ '<|' + m.role + '|>' }}"
        "{%- if m.role == 'assistant' and m.reasoning_content %}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}"
        "{%- endif %}{{ m.content + '<|end|>\n' }}{%- endfor %}"
        "{%- if add_generation_prompt %}{{ '<|assistant|>\n' }}"
        "{%- if enable_thinking is defined and not enable_thinking %}{{ '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %}"
    ),
    "opened": (
        "{%- for m in messages %}{{ '[' + m.role + ']' }}"
        "{%- if m.reasoning_content %}{{ '[THINK]' + m.reasoning_content + '[/THINK]' }}{%- endif %}"
        "{{ m.content + '[END]' }}{%- endfor %}{%- if add_generation_prompt %}{{ '[assistant][THINK]' }}{%- endif %}"
    ),
    "only an end": (
        "{%- for m in messages %}{{ '<|' + m.role + '|>' }}"
        "{%- if m.reasoning_content %}{{ m.reasoning_content + '\n<fin é-\"]>' }}{%- endif %}"
        "{{ m.content }}{%- endfor %}{%- if add_generation_prompt %}{{ '<|assistant|>' }}{%- endif %}"
    ),
}

MESSAGES = [{"role": "user", "content": "Hi"}]
CONTINUED = [*MESSAGES, {"role": "assistant", "content": '{"a'}]

SCHEMAS = [
    '{"type": "object"}',
    '{"properties": {"a": {"type": "integer"}, "json-value": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"pattern": "^.a$"}}}',
    '{"type": "frob"}',
    '{"type": "string", "pattern": "^(a$"}',
    '{"type": "integer", "minimum": -9223372036854775807}',
]

ANSWERS = [
    '{"a": 1}',
    '\n {"a" : [1, -2.5e+7, true , null],\n"b":{} }\n',
    '```json\n{"a": "x"}\n```',
    "```json\n[]",
    "```js\n{}",
    '<think>\nhm { </think>\n\n{"a": "\\u00e9\\n\\"é日😀"}',
    '<thin>{"a": 1}',
    '[THINK]hm[/THINK] "x\\u12',
    'I think 1 <fin é-"]> 12',
    'thinking without an end {"a": 1}',
    "-0.5",
    "12 ",
    "tru",
    '"a\tb\\',
    '"',
    "",
    " \n",
    "`",
    '{"a": 1} ```',
    '["x"]garbage',
    "007",
    '{"a": }',
    '{"a", 1}',
    '"\\x"',
    "1.5.2",
    "[1,]",
    "nul1",
    '{"a":[{"b":[[]]}],"c":""}',
]
