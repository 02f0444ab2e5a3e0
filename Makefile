# Every target does all the set-up it needs: a machine with Python 3.11+, a JDK 17+ and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test test-slow test-all lint bench clean jdk

help:            ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: $(READY)  ## a virtual environment with Springtide and everything it needs

$(READY): pyproject.toml constraints.txt
	$(if $(shell $(PYTHON) -c 'import sys; print("ok" * (sys.version_info >= (3, 11)))' 2>/dev/null),, \
	  $(error Springtide needs Python 3.11 or newer, which '$(PYTHON)' is not: run make PYTHON=/path/to/python3.11))
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Springtide and its dependencies into $(VENV) (a few minutes the first time: PySpark alone is 445 MB)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

jdk:
	$(if $(shell java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | grep -E '^(1[7-9]|[2-9][0-9])$$'),, \
	  $(error Springtide needs a JDK 17 or newer for Spark, and 'java -version' shows none: install one and put it on PATH))

demo: jdk setup  ## a bursty stream on real Spark, watched while executors and shards move (3 minutes)
	@$(BIN)/springtide demo

test: jdk setup  ## the test suite
	@$(BIN)/python -m pytest -q -m 'not slow'

test-slow: jdk setup ## whole live runs: a policy up and down a trace, killed drivers, workers and executors; pages, browser, studies (an hour)
	@$(BIN)/python -m pytest -q -m slow

test-all: test test-slow ## both, and the benchmarks checked against their bars (more than an hour)
	@$(BIN)/springtide bench simulator --check
	@$(BIN)/springtide bench policies --check
	@$(BIN)/springtide bench forecasts --check
	@$(BIN)/springtide bench dashboard --check
	@$(BIN)/springtide bench spark --check

lint: setup      ## style, types and layers
	@$(BIN)/ruff check src tests
	@$(BIN)/ruff format --check src tests
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: jdk setup ## how fast simulator, policies, forecasts and dashboard are on this machine, and what changes cost on live Spark (an hour)
	@$(BIN)/springtide bench simulator
	@$(BIN)/springtide bench policies
	@$(BIN)/springtide bench forecasts
	@$(BIN)/springtide bench dashboard
	@$(BIN)/springtide bench spark

clean:           ## remove what make made
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
