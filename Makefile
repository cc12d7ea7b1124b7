# Every target does its own set-up: the first call makes .venv from requirements.lock, later calls start at once.
#
#   make demo    an import killed in the middle and resumed, in a real PostgreSQL
#   make test    all tests
#   make lint    ruff, types, layers
#   make soak    1,000 imports killed at random points, damaged workbooks by the thousand
#   make bench   the benchmarks
#   make dev     Dagster's web page with the pipelines, on 127.0.0.1
#   make lock    bring requirements.lock to what pyproject.toml asks (ARGS=--upgrade takes the newest)
#
# PYTHON names the interpreter to make .venv with, when `python3` is not the one wanted.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint bench soak dev lock clean
help:
	@sed -n '3,9p' Makefile | cut -c3-

demo: .venv/.ready
	@$(BIN)/rowlease demo

test: .venv/.ready
	@$(BIN)/pytest -q $(ARGS)

lint: .venv/.ready
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo
	@mkdir -p .tmp/dagster # a home without dagster.yaml, whose storage wants a database
	@DAGSTER_HOME=$(CURDIR)/.tmp/dagster PYTHONWARNINGS=ignore $(BIN)/dagster definitions validate -w workspace.yaml --log-level error

bench: .venv/.ready
	@$(BIN)/python -m benchmarks $(ARGS)

soak: .venv/.ready
	@$(BIN)/pytest -q -s -m soak $(ARGS)
	@$(BIN)/python -m tests.fuzz_scanner 200000

dev: .venv/.ready
	@$(BIN)/python -m pipelines.dev $(ARGS)

# What is installed must be exactly what requirements.lock names, with its hashes.
.venv/.ready: requirements.lock pyproject.toml $(wildcard importer/excel/*.c)
	@command -v '$(PYTHON)' >/dev/null || { echo "Python is missing: no '$(PYTHON)' here. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed, and '$(PYTHON)' is $$('$(PYTHON)' -c 'import platform; print(platform.python_version())'). Name another: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up .venv (once, about a minute) ..."
	@rm -f .venv/.ready
	@test -x $(BIN)/pip || '$(PYTHON)' -m venv --clear .venv || { echo "The virtual environment could not be made. On Debian and Ubuntu the module venv is a package of its own: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps -e .
	@$(BIN)/python -m compileall -q importer pipelines || true
	@touch .venv/.ready

# uv stands in an environment of its own: it resolves, nothing of it is installed with the project.
.venv-lock/bin/uv:
	@'$(PYTHON)' -m venv .venv-lock
	@.venv-lock/bin/pip install -q --disable-pip-version-check uv

# No name of an index, machine or folder may get into the lock; tests/house looks.
lock: .venv-lock/bin/uv
	@.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras \
	    --no-emit-index-url --no-emit-find-links --extra dagster --group dev \
	    --custom-compile-command 'make lock' $(ARGS) pyproject.toml -o requirements.lock
	@echo "requirements.lock: $$(grep -c '==' requirements.lock) packages"

clean:
	@rm -rf .venv .venv-lock .dagster build dist *.egg-info
