# The two commands are `make demo` and `make test`; each first makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q -c constraints.txt

.PHONY: venv demo test lint types imports unit bench docs

# The package alone, as a user has it.
venv: $(VENV)/.package

$(VENV)/.package: pyproject.toml constraints.txt
	@echo "Installing triptych and what it needs into $(VENV), about 1.5 GB: the first time this takes minutes."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

# With what the tests and the checks need.
$(VENV)/.develop: $(VENV)/.package
	@echo "Installing what the tests and the checks need into $(VENV), about 1 GB: the first time this takes minutes."
	$(PIP) torch==2.13.0
	$(PIP) -e '.[torch,test,dev]'
	touch $@

demo: venv
	$(BIN)/triptych demo

# Types are checked, by one process, while the tests run.
test: lint imports
	$(MAKE) --no-print-directory -j 2 types unit

lint: $(VENV)/.develop
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.develop
	$(BIN)/pyright

imports: $(VENV)/.develop
	$(BIN)/lint-imports

unit: $(VENV)/.develop
	OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 2 --dist worksteal

bench: $(VENV)/.develop
	$(PIP) -e '.[bench]'
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.develop
	$(BIN)/python docs/generate.py
