"""The texts by which llama.cpp b11192 recognizes tokens with a purpose where a header does not name them."""

from dataclasses import dataclass

ENDS = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
)
ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")


@dataclass(frozen=True)
class Purpose:
    """A purpose of a token: the header keys that name it, else the texts it is recognized by."""

    keys: tuple[str, ...]
    names: tuple[str, ...]
    ends_generation: bool = False


FILL_IN_THE_MIDDLE = (
    Purpose(
        ("fim_pre_token_id", "prefix_token_id"),
        (
            "<|fim_prefix|>",
            "<fim-prefix>",
            "<fim_prefix>",
            "<｜fim▁begin｜>",
            "<PRE>",
            "▁<PRE>",
            "<|code_prefix|>",
            "<|prefix|>",
        ),
    ),
    Purpose(
        ("fim_suf_token_id", "suffix_token_id"),
        (
            "<|fim_suffix|>",
            "<fim-suffix>",
            "<fim_suffix>",
            "<｜fim▁hole｜>",
            "<SUF>",
            "▁<SUF>",
            "<|code_suffix|>",
            "<|suffix|>",
        ),
    ),
    Purpose(
        ("fim_mid_token_id", "middle_token_id"),
        (
            "<|fim_middle|>",
            "<fim-middle>",
            "<fim_middle>",
            "<｜fim▁end｜>",
            "<MID>",
            "▁<MID>",
            "<|code_middle|>",
            "<|middle|>",
        ),
    ),
    Purpose(("fim_pad_token_id",), ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"), ends_generation=True),
    Purpose(
        ("fim_rep_token_id",),
        ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
        ends_generation=True,
    ),
    Purpose(("fim_sep_token_id",), ("<|file_sep|>",), ends_generation=True),
)
