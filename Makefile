# Every target does all the set-up it needs: a machine with Python 3.11+, a JDK 17+ and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One stamp for each set of dependencies, so that a target installs only what it needs.
RUNTIME := $(VENV)/.ready-runtime
TESTS := $(VENV)/.ready-tests
CHECKS := $(VENV)/.ready-checks
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: help setup demo test test-slow test-all lint bench clean jdk

help:            ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: $(RUNTIME) ## a virtual environment with Springtide and what it needs to run

$(BIN)/python:
	$(if $(shell $(PYTHON) -c 'import sys; print("ok" * (sys.version_info >= (3, 11)))' 2>/dev/null),, \
	  $(error Springtide needs Python 3.11 or newer, which '$(PYTHON)' is not: run make PYTHON=/path/to/python3.11))
	@$(PYTHON) -m venv $(VENV)

$(RUNTIME): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Springtide into $(VENV) (a minute or two the first time: PySpark alone is 445 MB)"
	@$(INSTALL) .
	@touch $@

$(TESTS): $(RUNTIME)
	@echo "Installing the test dependencies into $(VENV)"
	@$(INSTALL) '.[test]'
	@touch $@

$(CHECKS): $(RUNTIME)
	@echo "Installing linters and type stubs into $(VENV)"
	@$(INSTALL) '.[lint]'
	@touch $@

jdk:
	$(if $(shell java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | grep -E '^(1[7-9]|[2-9][0-9])$$'),, \
	  $(error Springtide needs a JDK 17 or newer for Spark, and 'java -version' shows none: install one and put it on PATH))

demo: jdk setup  ## a bursty stream on real Spark, watched while executors and shards move (4 minutes)
	@$(BIN)/springtide demo

# Two processes or more: all tests on Spark share the session of one, the files of the others are dealt out (tests/conftest.py).
PYTEST = $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist loadgroup --no-loadscope-reorder

test: jdk $(TESTS) ## all fast tests, and the live ones that must never break (7 minutes on 2 cores)
	@$(PYTEST) -m 'not slow and not full'

test-slow: jdk $(TESTS) ## exactly once under changes, faults, the browser, every command of the README, the wheel (22 minutes)
	@$(PYTEST) -m slow

test-all: test test-slow ## all of it: studies, every policy live, long pages, new random examples, benchmarks with their bars (hours)
	@HYPOTHESIS_PROFILE=explore $(PYTEST) -m full
	@HYPOTHESIS_PROFILE=explore $(PYTEST) -m 'not spark and not slow and not full'
	@$(BIN)/springtide bench simulator --check
	@$(BIN)/springtide bench policies --check
	@$(BIN)/springtide bench forecasts --check
	@$(BIN)/springtide bench dashboard --check
	@$(BIN)/springtide bench spark --check
	@$(BIN)/springtide bench elasticity --check

lint: $(CHECKS)  ## style, types and layers
	@$(BIN)/ruff check src tests
	@$(BIN)/ruff format --check src tests
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: jdk setup ## how fast simulator, policies, forecasts and dashboard are on this machine, and what changes cost and how hosts are sized on live Spark (90 minutes)
	@$(BIN)/springtide bench simulator
	@$(BIN)/springtide bench policies
	@$(BIN)/springtide bench forecasts
	@$(BIN)/springtide bench dashboard
	@$(BIN)/springtide bench spark
	@$(BIN)/springtide bench elasticity

clean:           ## remove what make made
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
