"""How a server's chats are read, for every model that it loads."""

from dataclasses import dataclass

from bankml.text.special_content import ContentSpecial


@dataclass(frozen=True)
class ChatOptions:
    """`content_special`: what becomes of control tokens' texts in messages. `reasoning`: a model that can reason does,
    unless a request says otherwise."""

    content_special: ContentSpecial = "parse"
    reasoning: bool = False


DEFAULT_CHAT = ChatOptions()
