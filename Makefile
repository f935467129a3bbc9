# `make demo` serves a verified model; `make test` runs the tests. Everything is built in a virtual environment of its own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint develop
demo: $(VENV)/installed
	$(BIN)/bankml demo

test: develop
	$(BIN)/pytest -q

develop: $(VENV)/bin/python
	$(BIN)/pip install -q "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.18" "ninja>=1.10"
	$(BIN)/pip install -q --no-build-isolation -e ".[test,lint]"

lint: develop
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install -q .
	touch $@
