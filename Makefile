# `make demo` serves a verified model; `make test` runs the tests. Everything is built in a virtual environment of its own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD_TOOLS := "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.18" "ninja>=1.10"
# Warnings are errors here, not in a user's `pip install`.
WERROR := -C cmake.define.BANKML_WERROR=ON
# The C++ that clang-format keeps in shape; the tables of Unicode are generated.
CPP := $(shell find native -name '*.cpp' -o -name '*.h' -o -name '*.inc' | grep -v -e native/capi/ -e unicode_tables -e iq/codes.h)
SOURCES := $(shell find src native include -type f -not -name '*.pyc') CMakeLists.txt pyproject.toml

.PHONY: demo test test-wheel soak coverage test-clients test-ray capi develop lint docs sanitize tsan oracle test-oracle clean
demo: $(VENV)/installed
	$(BIN)/bankml demo

test: develop
	$(BIN)/pytest -q

# The field's own clients read a running server's answers. They are installed beside the project, and `make test` leaves
# these tests out.
CLIENTS := build/clients
test-clients: develop
	$(PYTHON) -m venv $(CLIENTS)/venv
	$(CLIENTS)/venv/bin/pip install -q -r tests/clients/requirements.txt
	mkdir -p $(CLIENTS)/node
	cp tests/clients/package.json $(CLIENTS)/node
	npm install --prefix $(CLIENTS)/node --no-audit --no-fund --loglevel=error
	$(BIN)/pytest -q -m clients

# Batches on a Ray cluster, whose nodes are processes of this machine. `make test` leaves these tests out: Ray is large.
test-ray: develop
	$(BIN)/pip install -q "ray>=2.9"
	$(BIN)/pytest -q -m ray

# The wheel, installed without anything else in an environment of its own, answers from a model.
test-wheel: develop
	scripts/test_wheel.sh $(BIN)

# Mixed clients for some minutes; fails where something grows or gets lost.
MINUTES ?= 10
soak: develop
	$(BIN)/python -m benchmarks.soak $(MODEL) --minutes $(MINUTES)

# Which lines of the Python code the ordinary tests run.
coverage: develop
	$(BIN)/pip install -q "coverage>=7.4"
	$(BIN)/coverage run --source=bankml --data-file=build/coverage -m pytest -q
	$(BIN)/coverage report --data-file=build/coverage --skip-covered --sort=cover

# libbankml.so, libbankml.a, bankml.h and bankml.pc, in the environment's own bankml package.
capi: $(VENV)/installed
	@echo "cc app.c \$$($(CURDIR)/$(BIN)/bankml capi --cflags --libs) -o app"

# An editable install: Python changes count at once, native ones after `make develop`.
develop: $(BIN)/python
	$(BIN)/pip install -q $(BUILD_TOOLS)
	$(BIN)/pip install -q --no-build-isolation $(WERROR) -e ".[test,lint,docs]"

lint: develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(CPP)

# The pages of docs/ as a site that needs nothing from elsewhere; a link that leads nowhere fails it.
docs: $(BIN)/python
	$(BIN)/pip install -q "$$($(BIN)/python -c 'import tomllib; \
	  print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')"
	$(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

# The native code under the address and undefined-behaviour sanitizers, in an environment of its own. Left out are the
# tests that kill servers, which run no code that the others do not, and forty conversations, which take half a minute.
SANITIZED := build/sanitize
# Random addresses may collide with the sanitizer's own maps.
FIXED_ADDRESSES := $(shell command -v setarch >/dev/null && echo setarch -R)
SLOW := tests/engine/test_killed.py tests/engine/test_conversations.py::test_forty_interleaved_conversations_under_64_mib
sanitize:
	$(PYTHON) -m venv $(SANITIZED)
	$(SANITIZED)/bin/pip install -q $(WERROR) -C cmake.define.BANKML_SANITIZE=ON -C build-dir=build/sanitized ".[test]"
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
	  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 $(FIXED_ADDRESSES) $(SANITIZED)/bin/pytest -q -p no:cacheprovider \
	  tests/model tests/text tests/sampling tests/grammar tests/engine $(SLOW:%=--deselect %)

# What several threads share in the arithmetic, under ThreadSanitizer.
tsan: develop
	$(BIN)/pytest -q tests/model/test_thread_sanitizer.py

# The reference build that tests marked `oracle` compare with.
oracle: develop
	scripts/build_oracle.sh $(BIN)

test-oracle: develop
	$(BIN)/pytest -q -m oracle

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(BIN)/python $(SOURCES)
	$(BIN)/pip install -q .
	touch $@

clean:
	rm -rf build $(VENV)
