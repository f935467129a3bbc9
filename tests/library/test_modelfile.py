import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankml.api.ollama.model_fields import read_model_fields
from bankml.errors import RequestError
from bankml.library.modelfile import Modelfile, can_be_spelled, read_modelfile, write_modelfile
from bankml.library.parameters import PARAMETERS


def read(text):
    return read_modelfile(text.encode())


def test_all_of_it():
    found = read(
        "# a comment\n"
        "from base:latest\r\n"
        "  # another\n"
        "PARAMETER temperature 1\n"
        'parameter stop "### User: "\n'
        "PARAMETER stop </s>   \n"
        "PARAMETER   num_predict   -2\n"
        'SYSTEM """\n'
        'You are "Mario".\n'
        "  # no comment\n"
        '"""   \n'
        "MESSAGE user Hey there!\n"
        'Message assistant "It\'s-a\nme"\n'
        "LICENSE MIT\n"
        '\tLICENSE """more"""\n'
        "TEMPLATE {{ x }}\n"
        "REQUIRES v0.14.0"
    )
    assert found == Modelfile(
        source="base:latest",
        system='\nYou are "Mario".\n  # no comment\n',
        parameters={"temperature": 1.0, "num_predict": -2},
        stop=("### User: ", "</s>"),
        messages=({"role": "user", "content": "Hey there!"}, {"role": "assistant", "content": "It's-a\nme"}),
        license=("MIT", "more"),
        template="{{ x }}",
        requires="0.14.0",
    )
    assert isinstance(found.parameters["temperature"], float) and isinstance(found.parameters["num_predict"], int)


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        ("plain text  ", "plain text"),
        ('"  kept  "', "  kept  "),
        ('""', ""),
        ('""""""', ""),
        ('"\'"', "'"),
        ('"""one line"""', "one line"),
        ('"""\nfour\n"""', "\nfour\n"),
        ('"""a\r\nb"""', "a\r\nb"),
        ('"two\nlines"', "two\nlines"),
        ('"a"b"', 'a"b'),
        ('"""\'\'"\'""\'""\'"\'\'\'\'\'""\'""\'"""', "''\"'\"\"'\"\"'\"'''''\"\"'\"\"'"),
        ('say "hello"', 'say "hello"'),
        ("é — 🙂\u200d", "é — 🙂\u200d"),
        (" ", ""),
    ],
)
def test_values_are_spelled_as_ollama_spells_them(spelling, value):
    for end in ("", "\n", "\n\t\t\t", "\r\n# more"):
        assert read(f"FROM foo\nSYSTEM {spelling}{end}").system == value
    assert read(f"SYSTEM {spelling}\nFROM foo").source == "foo"


def test_of_what_stands_twice_the_last_counts():
    found = read("FROM a\nSYSTEM b\nSYSTEM c\nPARAMETER top_k 1\nPARAMETER top_k 2\nREQUIRES 1\nREQUIRES 2")
    assert (found.system, dict(found.parameters), found.requires) == ("c", {"top_k": 2}, "2")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(encoding):
    assert read_modelfile("FROM bob\nSYSTEM ünï".encode(encoding)).system == "ünï"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "^the Modelfile has no FROM line$"),
        ("PARAMETER top_k 1", "^the Modelfile has no FROM line$"),
        ("FROM a\nBADCOMMAND x y", "^Modelfile line 2: 'BADCOMMAND x y': expected one of FROM, "),
        ("FROM a\nFROMb c", "^Modelfile line 2: 'FROMb c': expected one of"),
        ("FROM", "^Modelfile line 1: FROM has no value$"),
        ("FROM \n", "^Modelfile line 1: FROM has no value$"),
        ("FROM: a", "^Modelfile line 1: FROM has no value$"),
        ("FROM a\nFROM b", "^Modelfile line 2: FROM occurs more than once$"),
        ('FROM a\nSYSTEM """\nb\n""\nc', '^Modelfile line 2: the """ of SYSTEM is not closed at the end of a lin'),
        ('FROM a\n\nSYSTEM "', '^Modelfile line 3: the " of SYSTEM is not closed'),
        ('FROM a\nSYSTEM "b" c', '^Modelfile line 2: the " of SYSTEM is not closed'),
        ("FROM a\nMESSAGE system", "^Modelfile line 2: MESSAGE system has no value$"),
        ("FROM a\nMESSAGE", "^Modelfile line 2: MESSAGE has no name after it$"),
        (
            "FROM a\nMESSAGE tool x",
            "^Modelfile line 2: the role of a MESSAGE must be system, user or assistant, not 'tool'",
        ),
        ("FROM a\nMESSAGE User x", "role of a MESSAGE"),
        ("FROM a\nPARAMETER top_k", "^Modelfile line 2: PARAMETER top_k has no value$"),
        ("FROM a\nPARAMETER tfs_z 1", "^Modelfile line 2: unsupported parameter 'tfs_z' "),
        ("FROM a\nPARAMETER Top_K 1", "unsupported parameter 'Top_K'"),
        ("FROM a\nPARAMETER num_gpus 1", "unsupported parameter 'num_gpus'"),
        ("FROM a\nPARAMETER top_k 1.5", "^Modelfile line 2: the parameter top_k must be a whole number from "),
        ("FROM a\nPARAMETER top_k 1_0", "not '1_0'$"),
        ("FROM a\nPARAMETER top_k ١", "the parameter top_k must be a whole number"),
        ("FROM a\nPARAMETER temperature warm", "the parameter temperature must be a number, not 'warm'$"),
        ("FROM a\nPARAMETER temperature nan", "the parameter temperature must be a number, not 'nan'$"),
        ("FROM a\nPARAMETER temperature 1e39", "the parameter temperature must be a number, not '1e39'$"),
        ("FROM a\nPARAMETER repeat_penalty 0", "the parameter repeat_penalty must be a number above 0, not '0'$"),
        ("FROM a\nPARAMETER repeat_last_n -2", "the parameter repeat_last_n must be a whole number from -1 "),
        ("FROM a\nPARAMETER num_ctx 0", "the parameter num_ctx must be a whole number from 1 "),
        ("FROM a\nPARAMETER seed 18446744073709551616", "the parameter seed must be a whole number from -"),
        ('FROM a\nPARAMETER stop ""', "^Modelfile line 2: the parameter stop must be a non-empty string$"),
        ("FROM a\nADAPTER ./lora", "^Modelfile line 2: ADAPTER is refused: adapters are unsupported$"),
        ("FROM a\nRENDERER x", "^Modelfile line 2: RENDERER is refused"),
        ("FROM a\nPARSER x", "^Modelfile line 2: PARSER is refused"),
        ("FROM a\nDRAFT x", "^Modelfile line 2: DRAFT is refused"),
        ("FROM a\nREQUIRES soon", "^Modelfile line 2: REQUIRES must be a version such as 0.14.0, not 'soon'$"),
        ("FROM a\nSYSTEM b\0c", r"^Modelfile line 2: it contains the character '\\x00'$"),
        ('FROM a\r\rSYSTEM "\r\n\n"\r\nBAD x', "^Modelfile line 6: 'BAD x'"),
    ],
)
def test_what_is_refused_is_named_with_its_line(text, says):
    with pytest.raises(RequestError, match=says):
        read(text)


def test_bytes_that_are_no_text():
    with pytest.raises(RequestError, match=r"^the Modelfile is not UTF-8: byte 5$"):
        read_modelfile(b"FROM \xff")
    with pytest.raises(RequestError, match=r"^the Modelfile is not UTF-16: byte "):
        read_modelfile(b"\xff\xfea")
    with pytest.raises(RequestError, match="the limit is"):
        read_modelfile(b"#" * (5 << 20))


def test_a_long_value_costs_its_length():
    """A million lines before the closing quote; a reader that joins them anew at each would not end."""
    body = '"x' + "\n " * 1_000_000
    assert read(f'FROM a\nSYSTEM """{body}"""').system == body


text = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from(list('\n\t\r "#')), max_size=30
)
sayable = text.filter(lambda value: '"""' not in value)
words = st.text(string.ascii_letters + string.digits + "-_.:/", min_size=1, max_size=12)


def number(parameter):
    """A value that the parameter takes."""
    if parameter.type is float:
        return st.floats(1e-30, 1e30) | st.integers(1, 9).map(float)
    return st.integers(1, min(2**31 - 1, int(parameter.most)))


modelfiles = st.builds(
    Modelfile,
    source=words,
    system=st.none() | sayable,
    parameters=st.fixed_dictionaries({}, optional={name: number(one) for name, one in PARAMETERS.items()}),
    stop=st.lists(sayable.filter(bool), max_size=3).map(tuple),
    messages=st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": sayable}),
        max_size=3,
    ).map(tuple),
    license=st.lists(sayable, max_size=2).map(tuple),
    template=st.none() | sayable,
    requires=st.none() | st.sampled_from(["0.14.0", "1", "1.2.3-rc.1"]),
)


@given(modelfiles)
def test_what_is_written_is_read_back(modelfile):
    assert read(write_modelfile(modelfile)) == modelfile


@given(modelfiles)
def test_the_fields_of_a_request_say_the_same(modelfile):
    body = {
        "from": modelfile.source,
        "system": modelfile.system,
        "template": modelfile.template,
        "parameters": {**modelfile.parameters, "stop": list(modelfile.stop)},
        "messages": [dict(message) for message in modelfile.messages],
        "license": list(modelfile.license),
        "requires": modelfile.requires,
    }
    assert read_model_fields(body) == modelfile


@given(st.binary(max_size=200) | text.map(str.encode))
def test_any_file_is_read_or_refused_in_one_sentence(raw):
    try:
        read_modelfile(b"FROM a\n" + raw)
    except RequestError as error:
        assert error.message.isprintable() and len(error.message) < 600


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"from": 3}, "from must be a string"),
        ({"parameters": []}, "parameters must be an object"),
        ({"parameters": {"num_gpus": 1}}, "unsupported parameter 'num_gpus'"),
        ({"parameters": {"top_k": "1"}}, "top_k must be a whole number"),
        ({"parameters": {"top_k": True}}, "top_k must be a whole number"),
        ({"parameters": {"stop": [""]}}, "stop must be a non-empty string"),
        ({"parameters": {"stop": 3}}, "stop must be a string or a list"),
        ({"messages": {}}, "messages must be a list"),
        ({"messages": [{"role": "user"}]}, r"messages\[0\] must be an object with a role and a content"),
        ({"messages": [{"role": "user", "content": "a", "images": ["x"]}]}, r"messages\[0\] has 'images'"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "role of a MESSAGE"),
        ({"license": [3]}, "license must be a string or a list"),
        ({"requires": "x"}, "REQUIRES must be a version"),
        ({"parameters": {"stop": ["x"] * 1025}}, "stop occurs 1025 times, the limit is 1024"),
        ({"parameters": {"num_gpus": None}}, "unsupported parameter 'num_gpus'"),
        ({"system": "a\0b"}, r"^system contains the character '\\x00', which no Modelfile can contain$"),
        ({"system": 'a\n"""\nb'}, r'^system has a line that ends with """, which no Modelfile can contain$'),
        ({"parameters": {"stop": ['"""\n']}}, "^the parameter stop has a line that ends with"),
        ({"messages": [{"role": "user", "content": "\x1b[2J"}]}, r"^messages\[0\] contains the character '\\x1b'"),
        ({"license": "\x85"}, r"^license contains the character '\\x85'"),
    ],
)
def test_fields_that_are_refused(body, says):
    with pytest.raises(RequestError, match=says):
        read_model_fields(body)


def test_no_more_stop_strings_than_a_request_may_have():
    assert len(read("FROM a\n" + "PARAMETER stop x\n" * 1024).stop) == 1024
    with pytest.raises(RequestError, match=r"^the parameter stop occurs 2000 times, the limit is 1024$"):
        read("FROM a\n" + "PARAMETER stop x\n" * 2000)


def test_null_parameters_are_left_out():
    assert read_model_fields({"from": "a", "parameters": {**dict.fromkeys(PARAMETERS), "stop": None}}) == Modelfile("a")


@given(st.text(st.characters() | st.sampled_from(list('\n\r "\0')), max_size=12))
def test_any_text_is_refused_or_can_be_written_and_read_back(value):
    """In each of its places."""
    body = {"system": value, "license": value, "messages": [{"role": "user", "content": value}]}
    try:
        made = read_model_fields({"from": "a", **body, "parameters": {"stop": [value] if value else []}})
    except RequestError as error:
        assert error.message.startswith("system contains ") and not can_be_spelled(value)
    else:
        assert can_be_spelled(value) and read(write_modelfile(made)) == made


def test_one_license_one_stop_and_whole_numbers():
    found = read_model_fields(
        {"from": "a", "license": "MIT", "parameters": {"stop": "x", "top_k": 5.0, "temperature": 1}}
    )
    assert found == Modelfile("a", license=("MIT",), stop=("x",), parameters={"top_k": 5, "temperature": 1.0})


def test_parameters_about_ollama_s_runner_are_accepted_and_not_kept():
    text = "FROM a\nPARAMETER num_gpu 99\nPARAMETER num_thread 4\nPARAMETER num_keep 24\nPARAMETER top_k 5\n"
    assert dict(read(text).parameters) == {"top_k": 5}
    assert dict(read_model_fields({"from": "a", "parameters": {"num_gpu": 99, "top_k": 5}}).parameters) == {"top_k": 5}
