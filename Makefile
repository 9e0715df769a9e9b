# Everything runs inside .venv, which the first target makes. Needs Python 3.11 to 3.13, pip and make, nothing else.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LINES ?= 5000000
SECTIONS ?= bill standard
export PYTHONDONTWRITEBYTECODE =
export DO_NOT_TRACK = 1

.DEFAULT_GOAL := help

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Bytecode is compiled while installing: without it each start of dbt costs seconds.
$(VENV)/installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "Apportion needs Python 3.11 to 3.13; this is %d.%d. Choose another one: make PYTHON=python3.12" % v)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m uv --version >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	UV_COMPILE_BYTECODE=1 $(BIN)/python -m uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	UV_COMPILE_BYTECODE=1 $(BIN)/python -m uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

setup: $(VENV)/installed ## install what is needed into .venv

demo: $(VENV)/installed ## generate the demo company, run it, show who pays
	$(BIN)/apportion demo

test: $(VENV)/installed ## run all tests
	$(BIN)/python -m pytest -n auto --dist loadfile

bench: $(VENV)/installed ## measure large inputs against DuckDB alone and hand-written peers (SECTIONS="bill standard large")
	$(BIN)/python tests/bench/run.py $(SECTIONS) --lines $(LINES)

lint: $(VENV)/installed ## check the style of Python and SQL
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/sqlfluff lint dbt_project

ui: $(VENV)/installed ## open Dagster on the demo data (or on APPORTION_DATA; TARGET=bigquery)
	$(BIN)/apportion ui $(if $(TARGET),--target $(TARGET))

docs: $(VENV)/installed ## build dbt's documentation as one static page
	$(BIN)/apportion docs

lock: $(VENV)/installed ## resolve the dependencies of pyproject.toml anew
	$(BIN)/python -m uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --upgrade -o requirements.lock

clean: ## remove what was made: data, environment, caches
	rm -rf data $(VENV) .venv-emulator .venv-focus .pytest_cache .hypothesis .ruff_cache dbt_project/target dbt_project/logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup demo test bench lint ui docs lock clean
