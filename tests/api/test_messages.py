"""What a request may say of its conversation, and in which words it is refused."""

import pytest

from bankml.api.reading.messages import read_conversation, read_messages
from bankml.errors import RequestError

USER = {"role": "user", "content": "hi"}
ASSISTANT = {"role": "assistant", "content": "The sky"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "body, says",
    [
        ({}, "'messages' is required"),
        ({"messages": "hi"}, "Expected 'messages' to be an array"),
        ({"messages": {}}, "Expected 'messages' to be an array"),
        ({"messages": []}, "'messages' is empty"),
        ({"messages": ["hi"]}, "All non-assistant messages must contain 'content'"),
        ({"messages": [{"role": "user"}]}, "All non-assistant messages must contain 'content'"),
        ({"messages": [{"role": "assistant"}]}, "Assistant message must contain either 'content' or 'tool_calls'!"),
        ({"messages": [{"content": "x"}]}, "Missing 'role' in message"),
        ({"messages": [{"role": 1, "content": "x"}]}, "messages[0].role must be a string, got 1"),
        ({"messages": [{"role": "user", "content": 5}]}, "Expected 'content' to be a string or an array"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "image input is not supported"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "audio input is not supported"),
        ({"messages": [{"role": "user", "content": [{"type": "video_url"}]}]}, "video input is not supported"),
        ({"messages": [{"role": "user", "content": [{"type": "x"}]}]}, "unsupported content[].type"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "unsupported content[].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text is missing"),
        ({"messages": [USER | {"name": 5}]}, "messages[0].name must be a string"),
        ({"messages": [USER | {"tool_calls": 5}]}, "messages[0].tool_calls must be an array"),
        ({"messages": [USER | {"tool_calls": [{}]}]}, "Missing tool call type"),
        ({"messages": [USER | {"tool_calls": [{"type": "x"}]}]}, "Unsupported tool call type"),
        ({"messages": [USER | {"tool_calls": [{"type": "function"}]}]}, "Missing tool call function"),
        ({"messages": [USER, ASSISTANT, ASSISTANT]}, "Cannot have 2 or more assistant messages"),
        (
            {"messages": [USER, ASSISTANT | {"tool_calls": [CALL]}]},
            "Cannot continue an assistant message that contains",
        ),
        ({"messages": [USER], "continue_final_message": True}, "Cannot set both add_generation_prompt and"),
        ({"messages": [USER], "continue_final_message": 5}, "continue_final_message must be"),
        ({"messages": [USER], "add_generation_prompt": "x"}, "add_generation_prompt must be true or false"),
        ({"messages": [USER], "chat_template_kwargs": 5}, "chat_template_kwargs must be an object"),
        ({"messages": [USER], "chat_template_kwargs": {"enable_thinking": "x"}}, 'invalid type for "enable_thinking"'),
        ({"messages": [USER], "tool_choice": "x"}, "Invalid tool_choice: x"),
        ({"messages": [USER], "tools": 5}, "Expected 'tools' to be an array"),
    ],
)
def test_a_bad_request_is_refused_in_one_line(body, says):
    with pytest.raises(RequestError) as refusal:
        read_conversation(body)
    assert says in str(refusal.value)
    assert refusal.value.status == 400
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 400


def test_tools_are_reduced_to_what_templates_see():
    given = [{"type": "function", "function": {"name": "f", "strict": True}, "more": 1}]
    conversation = read_conversation({"messages": [USER], "tools": given, "parallel_tool_calls": False})
    assert conversation.tools == [{"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}]
    assert (conversation.tool_choice, conversation.parallel_tool_calls) == ("auto", False)
    assert read_conversation({"messages": [USER], "tools": [], "tool_choice": "none"}).tool_choice == "none"


NAMED = {"type": "function", "function": {"name": "f"}}


def test_a_choice_that_names_a_function_requires_it():
    body = {"messages": [USER], "tools": [NAMED], "tool_choice": NAMED}
    conversation = read_conversation(body)
    assert (conversation.tool_choice, conversation.called) == ("required", "f")
    assert read_conversation(body | {"tool_choice": {"type": "function"}}).tool_choice == "auto"
    with pytest.raises(RequestError, match='there is no tool of the name "g"'):
        read_conversation(body | {"tool_choice": {"type": "function", "function": {"name": "g"}}})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"tools": {}}, "Failed to parse tools: Expected 'tools' to be an array, got {}"),
        ({"tools": [{}]}, "Failed to parse tools: Missing tool type: {}"),
        ({"tools": [{"type": "custom"}]}, "Failed to parse tools: Unsupported tool type"),
        ({"tools": [{"type": "function"}]}, "Failed to parse tools: Missing tool function"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name is missing"),
        ({"tools": [{"type": "function", "function": {"name": "f", "description": 5}}]}, "tools[0].function.descr"),
        ({"tools": [NAMED], "grammar": ""}, "Cannot use custom grammar constraints with tools."),
        ({"tools": [NAMED], "logprobs": True, "stream": True}, "logprobs is not supported with tools + stream"),
        ({"reasoning_format": "loud"}, "Unknown reasoning format: loud"),
    ],
)
def test_what_tools_cannot_be(fields, says):
    with pytest.raises(RequestError) as refusal:
        read_conversation({"messages": [USER], **fields})
    assert says in str(refusal.value)


def test_messages_are_reduced_to_what_templates_see():
    given = [
        {"content": None, "role": "user", "name": "", "extra": 1},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "text", "text": "a", "more": 1}]},
        {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {"a": 1.0}}}]},
        {"role": "assistant", "content": "x", "reasoning_content": "", "tool_call_id": "t"},
        {"role": "robot", "content": "beep", "name": "bob"},
    ]
    assert read_messages(given) == [
        {"role": "user", "content": ""},
        {"role": "user", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": '{"a":1.0}'}, "id": "c"}],
        },
        {"role": "assistant", "content": "x", "tool_call_id": "t"},
        {"role": "robot", "content": "beep", "name": "bob"},
    ]


def test_an_assistant_message_at_the_end_is_continued():
    assert read_conversation({"messages": [USER]}).continues == ""
    assert read_conversation({"messages": [USER, ASSISTANT]}).continues == "content"
    assert not read_conversation({"messages": [USER, ASSISTANT]}).add_generation_prompt
    thinking = {"role": "assistant", "content": "", "reasoning_content": "hm"}
    assert read_conversation({"messages": [USER, thinking]}).continues == "reasoning"
    asked = {"messages": [USER], "continue_final_message": "content", "add_generation_prompt": False}
    assert read_conversation(asked).continues == "content"


def test_thinking_is_off_unless_asked_for():
    assert not read_conversation({"messages": [USER]}).enable_thinking
    asked = {"messages": [USER], "chat_template_kwargs": {"enable_thinking": True, "x": 1}, "reasoning_effort": "low"}
    assert read_conversation(asked).enable_thinking
    assert read_conversation(asked).template_arguments == {"enable_thinking": True, "x": 1, "reasoning_effort": "low"}
    none = read_conversation(asked | {"reasoning_effort": "none"})
    assert not none.enable_thinking
