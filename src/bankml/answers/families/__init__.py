"""Families of templates whose answers have a parser of their own in b11192, in the order in which it asks."""

from collections.abc import Callable
from dataclasses import dataclass

from bankml.answers.families import (
    cohere2moe,
    deepseek,
    functionary,
    gemma4,
    gigachat,
    gpt_oss,
    kimi_k2,
    kimi_k3,
    lfm2,
    ling3,
    minicpm5,
    minimax_m3,
    ministral,
    muse,
    qwen3_coder,
)
from bankml.answers.format import AnswerFormat
from bankml.answers.request import FormatRequest


@dataclass(frozen=True)
class TemplateFamily:
    """Templates with all of `has` and none of `lacks` in their source."""

    name: str
    has: tuple[str, ...]
    describe: Callable[[FormatRequest], AnswerFormat]
    lacks: tuple[str, ...] = ()

    def is_of(self, source: str) -> bool:
        return all(text in source for text in self.has) and not any(text in source for text in self.lacks)


FAMILIES: tuple[TemplateFamily, ...] = (
    TemplateFamily("Ministral 3", ("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"), ministral.describe, ("[CALL_ID]",)),
    TemplateFamily("gpt-oss", ("<|channel|>",), gpt_oss.describe),
    TemplateFamily("Muse Glimmer", ("<atem:function_calls>", "<|eom|>"), muse.describe),
    TemplateFamily("Functionary v3.2", (">>>all", ">>>${recipient}"), functionary.describe),
    TemplateFamily("Kimi K2", ("<|tool_calls_section_begin|>", "<|tool_call_begin|>"), kimi_k2.describe),
    TemplateFamily("Kimi K3", ("<|open|>", "<|close|>", "<|end_of_msg|>"), kimi_k3.describe),
    TemplateFamily("Ling 3", ("<role>ASSISTANT</role>", "<arg_key>"), ling3.describe),
    TemplateFamily("Cohere2 MoE", ("<|START_TEXT|>", "<|START_ACTION|>"), cohere2moe.describe),
    TemplateFamily("LFM2", ("<|tool_list_start|>", "<|tool_list_end|>"), lfm2.describe_lfm2),
    TemplateFamily("LFM2.5", ("List of tools: [",), lfm2.describe_lfm2_5, ("<|tool_list_start|>",)),
    TemplateFamily("GigaChat 3", ("<|role_sep|>", "<|message_sep|>"), gigachat.describe, ("<|function_call|>",)),
    TemplateFamily("MiniMax M3", ("]<]minimax[>[", "<tool_call>", "<invoke name="), minimax_m3.describe),
    TemplateFamily("DeepSeek V3.2", ("dsml_token", "DSML", "function_calls"), deepseek.describe),
    TemplateFamily("DeepSeek V4", ("dsml_token", "DSML", "tool_calls"), deepseek.describe),
    TemplateFamily("Gemma 4", ("'<|tool_call>call:'",), gemma4.describe),
    TemplateFamily("MiniCPM5", ("Tool usage guidelines:", '<function name="', '<param name="'), minicpm5.describe),
    TemplateFamily(
        "Qwen3-Coder",
        ("<tool_call>", "<function=", "<parameter="),
        qwen3_coder.describe,
        ("'<tool_call><function=' ~ tool_call.name ~ '>'",),
    ),
)


def family_of(source: str) -> TemplateFamily | None:
    return next((family for family in FAMILIES if family.is_of(source)), None)
