# Every target sets up what it needs: Python 3.11 or newer and make are enough. No Docker, no root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PACKAGES := libs/contracts libs/runtime libs/adapters services/ingest services/dispatcher services/monitor services/bot simulator cli bench
PYPROJECTS := $(addsuffix /pyproject.toml,$(PACKAGES))
SOURCES := libs services cli simulator bench tests requirements tools docs examples

# Four services start at once: without its bytecode each of them would compile the same libraries again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run demo test again quick check bench format lock audit shape clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## make .venv with everything in it; the command is .venv/bin/autopost

$(READY): requirements/dev.txt requirements/bootstrap.txt $(PYPROJECTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "autopost needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Set PYTHON=python3.11 (or newer)."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "The venv module is missing; on Debian: apt install python3-venv"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --quiet --require-hashes requirements/dev.txt
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation $(addprefix -e ./,$(PACKAGES))
	@touch $(READY)

run: $(READY) ## Postgres, NATS, S3, the simulator and the four services; Ctrl-C ends them all
	@$(BIN)/autopost up

demo: $(READY) ## watch one post reach 40 channels, and the six criteria one by one
	@$(BIN)/autopost demo

test: $(READY) ## every test, against a real Postgres, NATS and S3
	@$(BIN)/pytest

again: $(READY) ## the tests that failed last, one after the other, at most five of them
	@$(BIN)/python tools/again.py

quick: $(READY) ## the path of a post and what needs no server; tests/harness/slow.py says what is left out
	@$(BIN)/pytest -m 'not slow'

check: $(READY) ## look, change nothing: format, lint, types, boundaries, SQL, Dockerfile
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/squawk --config db/squawk.toml db/tables/*.sql $(wildcard db/migrations/*.sql)
	@$(BIN)/hadolint Dockerfile

bench: $(READY) ## measure it against PgQueuer, procrastinate and the machine; make bench BENCH=--quick for 3 minutes
	@$(BIN)/autopost bench $(BENCH)

format: $(READY) ## let ruff rewrite the files
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix $(SOURCES)

lock: $(READY) ## write the hashed locks anew; make lock UPGRADE=--upgrade for newer versions
	@PATH=$(BIN):$$PATH $(BIN)/python requirements/lock.py $(UPGRADE)

audit: $(READY) ## ask whether a pinned version is known to be vulnerable; writes CycloneDX bills of materials to build/
	@$(BIN)/python requirements/audit.py $(AUDIT)

shape: ## the shape of the tree in numbers beside what it aims at; never fails
	@$(PYTHON) tools/shape.py

clean: ## remove the venv and every cache
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
