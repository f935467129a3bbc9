"""What a chat template needs of the vocabulary."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TemplateTokens:
    """The texts of the tokens that begin and end a sequence, and whether the tokenizer adds them: what a template
    writes of them is then left out, so that they are not there twice."""

    bos: str = ""
    eos: str = ""
    adds_bos: bool = False
    adds_eos: bool = False

    def without_added(self, prompt: str) -> str:
        """A rendered prompt without what the tokenizer adds."""
        if self.adds_bos:
            prompt = prompt.removeprefix(self.bos)
        return prompt.removesuffix(self.eos) if self.adds_eos else prompt
