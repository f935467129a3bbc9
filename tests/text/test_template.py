# ruff: noqa: E501
"""Prompts as llama-server renders them (recorded by record_templates.py), and templates that mean harm."""

import json
import resource
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.answers.describe import analysis_of, describe
from bankml.answers.request import FormatRequest
from bankml.api.reading.messages import read_conversation
from bankml.errors import Refused, RequestError
from bankml.text.messages import Conversation
from bankml.text.template import ChatTemplate
from bankml.text.template_tokens import TemplateTokens
from scripts.record_templates import dispatcher
from tests.text.template_cases import CONVERSATION, CONVERSATIONS, SNIPPETS, TEMPLATES

BOS, EOS = "<|endoftext|>", "<|im_end|>"
HELLO = Conversation([{"role": "user", "content": "hello"}])


def rendered(template: ChatTemplate, conversation: Conversation, now: float | None = None) -> str:
    return describe(FormatRequest(template, conversation, now=now)).prompt


def prompt(template: ChatTemplate, body) -> str | None:
    try:
        return rendered(template, read_conversation(body))
    except RequestError:
        return None


def marks_of(source):
    return analysis_of(FormatRequest(ChatTemplate(source), HELLO)).reasoning


def test_snippets_render_as_recorded(recorded_templates):
    assert [case["template"] for case in recorded_templates["snippets"]] == SNIPPETS
    template = ChatTemplate(dispatcher(SNIPPETS), TemplateTokens(BOS, EOS))
    got = [
        {
            "template": snippet,
            "prompt": prompt(template, {"messages": CONVERSATION, "chat_template_kwargs": {"case": i}}),
        }
        for i, snippet in enumerate(SNIPPETS)
    ]
    assert got == recorded_templates["snippets"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_render_as_recorded(name, recorded_templates):
    template = ChatTemplate(TEMPLATES[name], TemplateTokens(BOS, EOS))
    assert [prompt(template, body) for body in CONVERSATIONS] == recorded_templates["templates"][name]


def test_what_a_template_was_written_for():
    assert ChatTemplate(TEMPLATES["typed"]).capabilities.typed_content
    assert not ChatTemplate(TEMPLATES["typed"]).capabilities.string_content
    assert not ChatTemplate(TEMPLATES["no_system"]).capabilities.system_role
    assert ChatTemplate(TEMPLATES["object_arguments"]).capabilities.object_arguments
    assert not ChatTemplate(TEMPLATES["plain"]).capabilities.tool_calls


def test_the_marks_of_reasoning():
    thinks, plain = (FormatRequest(ChatTemplate(TEMPLATES[name]), HELLO) for name in ("thinks", "plain"))
    marks = analysis_of(thinks).reasoning
    assert (marks.start, marks.end) == ("<think>\n", "\n</think>\n\n")
    assert analysis_of(plain).reasoning.start == ""


def test_the_generation_prompt_is_what_asking_adds():
    form = describe(FormatRequest(ChatTemplate(TEMPLATES["thinks"]), HELLO))
    assert form.opening == "<|assistant|>\n<think>\n\n</think>\n\n"


def test_a_continued_answer_brings_its_beginning():
    body = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "The sky"}]}
    form = describe(FormatRequest(ChatTemplate(TEMPLATES["thinks"]), read_conversation(body)))
    assert form.prompt.endswith("<|assistant|>\n<think>\n\n</think>\n\nThe sky")
    assert form.prompt.endswith(form.opening)
    assert form.continues


def test_an_answer_is_continued_inside_its_reasoning():
    body = {
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "reasoning_content": "hm", "content": ""}]
    }
    assert prompt(ChatTemplate(TEMPLATES["thinks"]), body).endswith("<|assistant|>\n<think>\nhm")


def test_a_template_that_refuses_says_why():
    template = ChatTemplate("{{ raise_exception('Only users may speak') }}")
    with pytest.raises(RequestError, match="Only users may speak"):
        rendered(template, HELLO)


def test_the_time_is_given():
    template = ChatTemplate("{{ strftime_now('%Y-%m-%d') }}|{{ date_string }}|{{ datetime }}")
    noon = time.mktime((2024, 2, 29, 12, 0, 0, 0, 0, -1))
    assert rendered(template, HELLO, noon) == "2024-02-29|29 Feb 2024|Feb 29 2024"


def test_options_have_several_names():
    template = ChatTemplate("{{ preserve_thinking }}{{ clear_thinking }}{{ reasoning_strength }}")
    arguments = {"preserve_reasoning": True, "reasoning_effort": "low"}
    assert rendered(template, Conversation(HELLO.messages, template_arguments=arguments)) == "TrueFalselow"


@pytest.mark.parametrize(
    "source, says",
    [
        ("{% for x in y %}", "does not parse: line 1"),
        ("a\n{{ 1 +", "does not parse: line 2"),
        ("{% include 'x' %}", "Include"),
        ("{% extends 'x' %}", "Extends"),
        ("{% import 'x' as y %}", "Import"),
        ("{% block a %}{% endblock %}", "Block"),
        ("{{ 2 ** 9 }}", "Pow"),
        ("{{ f(*a) }}", "unpacks arguments"),
        ("{% for a in b recursive %}{% endfor %}", "recursive loop"),
        ("x" * 300_000, "the limit is 262144"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nests too deeply"),
        ("{{ " + "9" * 5000 + " }}", "does not parse"),
        ("{{ 99999999999999999999 }}", "64 bits"),
        ("{% " + "x" * 200_000 + " %}", "unknown tag 'xxx"),
    ],
)
def test_a_source_that_cannot_be_played_is_refused(source, says):
    with pytest.raises(Refused) as refusal:
        ChatTemplate(source)
    assert says in str(refusal.value)
    assert len(str(refusal.value)) < 1100


DOUBLING = "{%% set ns = namespace(s=%s) %%}{%% for i in range(60) %%}{%% set ns.s = %s %%}{%% endfor %%}%s"
BOMBS = {
    "repeated string": "{{ 'a' * 300000000 }}",
    "long loop": "{% for i in range(1000000000) %}x{% endfor %}",
    "long range": "{{ range(100000000)|length }}",
    "nested loops": "{% for i in range(999) %}{% for j in range(999) %}{% for k in range(999) %}x{% endfor %}{% endfor %}{% endfor %}",
    "doubled string": DOUBLING % ("'a'", "ns.s ~ ns.s", "{{ ns.s }}"),
    "doubled list": DOUBLING % ("[1]", "ns.s + ns.s", ""),
    "shared list as JSON": DOUBLING % ("[1]", "[ns.s, ns.s]", "{{ ns.s|tojson }}"),
    "shared list printed": DOUBLING % ("[1]", "[ns.s, ns.s]", "{{ ns.s }}"),
    "shared tuples compared": DOUBLING % ("(1, 2)", "(ns.s, ns.s)", "{{ ns.s == ns.s }}"),
    "shared tuples as a key": DOUBLING % ("(1, 2)", "(ns.s, ns.s)", "{{ {ns.s: 1} }}"),
    "list in itself": "{% set l = [] %}{% set _ = l.append(l) %}{{ l|tojson }}{{ l }}",
    "endless macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "wide indent": "{{ 'a\\nb'|indent(500000000) }}",
    "many indents": "{{ ('a\\n' * 100000)|indent(100000) }}",
    "JSON indent": "{{ [[[1]]]|tojson(indent=300000000) }}",
    "replacing": "{% set s = 'a' * 30000 %}{{ s.replace('a', s).replace('a', s) }}",
    "replacing nothing": "{% set s = 'a' * 300000 %}{% for i in range(99999) %}{% set x = s.replace('b', 'c') %}{% endfor %}",
    "searching": "{% set s = 'a' * 3000000 %}{% for i in range(99999) %}{% if 'b' in s %}{% endif %}{% endfor %}",
    "comparing": "{% set s = 'a' * 3000000 %}{% set t = 'a' * 3000000 %}{% for i in range(99999) %}{% if s == t %}{% endif %}{% endfor %}",
    "splitting": "{% set s = ('a,' * 3000000).split(',') %}",
    "joining": "{% set s = 'a' * 1000000 %}{{ [s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s,s]|join(s) }}",
    "sorting": "{% set s = 'a' * 1000000 %}{% set l = [] %}{% for i in range(20000) %}{% set _ = l.append(s) %}{% endfor %}{{ l|sort }}",
    "time format": "{{ strftime_now('%1000000000Y') }}",
    "many names": "".join(f"{{% set v{i} = 1 %}}" for i in range(3000)) + "{% for i in range(99999) %}{% for j in [1] %}{% endfor %}{% endfor %}",
    "kept strings": "{% set l = [] %}{% for i in range(99999999) %}{% set _ = l.append('abcdefgh' ~ i) %}{% endfor %}",
    "set block": "{% set x %}{% for i in range(9999999) %}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{% endfor %}{% endset %}",
    "stripping": "{{ ('a' * 3000000).strip('b' * 3000000 ~ 'a') }}" * 9,
    "beginnings": "{% set s = 'a' * 3000000 %}{% for i in range(9999) %}{% if s.startswith(s) %}{% endif %}{% endfor %}",
    "ends": "{% set s = 'a' * 3000000 %}{% for i in range(9999) %}{% if s.endswith(s) %}{% endif %}{% endfor %}",
    "numbers": "{% set s = ' ' ~ 'a' * 3000000 %}{% for i in range(9999) %}{% set x = s|int %}{% endfor %}",
    "asking for the case": "{% set s = 'a' * 3000000 %}{% for i in range(9999) %}{% if s is lower %}{% endif %}{% endfor %}",
    "titles": "{{ ('a ' * 7000000)|title }}",
    "lines": "{{ ('\n' * 20000000)|indent }}",
    "places": "{{ ('{}' * 15000000).format(1) }}",
    "escapes": "{{ ('\x01' * 20000000)|tojson }}",
    "deep blocks": "{% set s = 'a' * 9000000 %}" + "{% if 1 %}a" * 150 + "{{ s }}" + "{% endif %}" * 150,
    "long sum": "{{ " + "+".join(["1"] * 5000) + " }}",
    "long chain": "{{ messages" + ".a" * 5000 + " }}",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_goes_off(name):
    template = ChatTemplate(BOMBS[name])
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    with pytest.raises(RequestError) as refusal:
        rendered(template, HELLO)
    # Under a second on the machine this was written on, the probes of the template included.
    assert time.thread_time() - started < 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10
    assert str(refusal.value).startswith("the chat template cannot render these messages: ")


@pytest.mark.parametrize("name", ["a role", "a test"])
def test_a_long_string_is_no_name(name):
    """Half a character, many times: as text each byte of it is another sentence of the decoder's."""
    asked = {"a role": "messages[0][s]", "a test": "s is test"}[name]
    source = "{% set s = 'é'[1:] * 9000000 %}{% for i in range(300) %}{% if " + asked + " %}{% endif %}{% endfor %}x"
    assert rendered(ChatTemplate(source), HELLO) == "x"


@pytest.mark.parametrize("marks", ["<", "[", "< [", "<>", "<" + "REASON_PART I am thinking END_R"])
def test_brackets_that_are_never_closed_are_searched_once(marks):
    source = "{% for m in messages %}{{ '" + marks + "' * 30000 }}{{ m.reasoning_content }}{% endfor %}"
    assert marks_of(source).start == ""


@pytest.mark.parametrize(
    ("around", "start", "end"),
    [
        (("<think>\n", "\n</think>\n"), "<think>\n", "\n</think>\n"),
        (("a < b [x]", " </x>"), "[x]", " </x>"),
        (("a < b <x> ", "[/x]"), "< b <x> ", "[/x]"),
        (("a > b <x>", "<y> c"), "<x>", "<y> "),
        (("x>", "<y>"), "", "<y>"),
    ],
)
def test_the_marks_are_the_brackets_around_the_thought(around, start, end):
    shown = "{{ " + repr(around[0]) + " ~ m.reasoning_content ~ " + repr(around[1]) + " }}"
    source = "{% for m in messages %}{% if m.reasoning_content %}" + shown + "{% endif %}{% endfor %}"
    marks = marks_of(source)
    assert (marks.start, marks.end) == (start, end)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(2) %}{% set x = messages.pop() %}{% endfor %}",
        "{% for m in messages %}{% set m.content = 1 %}{% set m.tool_calls = [] %}{% endfor %}",
    ],
)
def test_a_template_that_changes_its_messages_is_judged_by_what_they_were(source):
    template = ChatTemplate("x" + source)
    assert not template.capabilities.typed_content
    two = Conversation([*HELLO.messages, {"role": "assistant", "content": "hi"}])
    assert rendered(template, two) == "x"


@pytest.mark.parametrize("expression", ["1e300|int", "'a b'.split(' ', 1e300|int)", "-(-9223372036854775807 - 1000)"])
def test_numbers_that_are_computed_have_64_bits(expression):
    with pytest.raises(RequestError, match=r"too large for an integer|has no value"):
        rendered(ChatTemplate("{{ " + expression + " }}"), HELLO)


def test_of_a_sentence_of_the_templates_a_little_is_told():
    with pytest.raises(RequestError) as refusal:
        rendered(ChatTemplate("{{ raise_exception('x' * 3000000) }}"), HELLO)
    assert "Jinja Exception: xxx" in str(refusal.value) and len(str(refusal.value)) < 1100


def test_a_long_conversation_is_no_bomb():
    messages = [{"role": "user", "content": "x" * 1000}, {"role": "assistant", "content": "y" * 1000}] * 2000
    text = rendered(ChatTemplate(TEMPLATES["thinks"]), Conversation(messages))
    assert text.count("<|user|>") == 2000


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_in_a_prompt_is_the_value(value):
    template = ChatTemplate("{{ value|tojson }}")
    text = template.render([], variables={"value": value})
    assert json.loads(text) == value or "\ud800" <= max(text) <= "\udfff"
