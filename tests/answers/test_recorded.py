"""Formats and answers of templates, as llama-server b11192 has them."""

import os

import pytest

from tests.answers.recorded import (
    Templates,
    all_recorded,
    answer_differences,
    form_of,
    format_differences,
    kept,
)

RECORDED = kept()
TEMPLATES = Templates(RECORDED["templates"])


@pytest.mark.parametrize("name", RECORDED["templates"])
def test_prompts_and_grammars_are_the_reference_s(name):
    rows = [row for row in RECORDED["rows"] if row["template"] == name]
    assert rows
    assert [(row["id"], found) for row in rows if (found := format_differences(row, TEMPLATES[name]))] == []


@pytest.mark.parametrize("name", RECORDED["templates"])
def test_answers_are_parsed_as_the_reference_parses_them(name):
    wrong = []
    for row in RECORDED["rows"]:
        if row["template"] == name and row["outputs"]:
            form = form_of(row, TEMPLATES[name])
            for output in row["outputs"]:
                if found := answer_differences(output, form):
                    wrong.append((row["id"], output["name"], found))
    assert wrong == []


def test_there_are_many_answers():
    assert sum(len(row["outputs"]) for row in RECORDED["rows"]) > 250


@pytest.mark.oracle
@pytest.mark.skipif("BANKML_ANALYSIS" not in os.environ, reason="BANKML_ANALYSIS names no folder of recordings")
def test_all_recordings():
    recorded = all_recorded()
    templates, wrong = Templates(recorded["templates"]), []
    for row in recorded["rows"]:
        if "made" not in row:
            continue
        template = templates[row["template"]]
        wrong += [(row["id"], found) for found in format_differences(row, template)]
        form = form_of(row, template) if row["outputs"] else None
        wrong += [(row["id"], one["name"]) for one in row["outputs"] if answer_differences(one, form)]
    assert wrong == []
