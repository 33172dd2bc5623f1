# `make demo` and `make test` are the two commands; both make .venv first where it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: venv demo test lint types imports unit

venv: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[torch,test,dev]'
	touch $@

demo: venv
	$(BIN)/triptych demo

test: lint types imports unit

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv
	$(BIN)/pyright

imports: venv
	$(BIN)/lint-imports

unit: venv
	$(BIN)/python -m pytest -q -n 2
