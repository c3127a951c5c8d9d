# Two commands are promised: `make demo` (needs Python 3.11+ and a network) and `make test` (brings everything the tests need).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
ifndef BESIDE # only `make test` runs targets beside each other
.NOTPARALLEL:
endif
unexport PYTHONDONTWRITEBYTECODE # hundreds of processes would compile the same files again
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
TORCH ?= torch==2.13.0
DEMO_FLAGS ?=
PYTEST_FLAGS ?=
# processes of the tests; those with a browser run after the others, for they wait for what a page shows
WORKERS ?= 2
PEER_BIN ?=
# msprobe, which dumps of our own are held to; `make test MSPROBE=` leaves those tests out
PEER := .peer
MSPROBE ?= mindstudio-probe==26.2.0
NODES ?= 100000
MATRIX ?= .matrix
MATRIX_FLAGS ?= --docs
export PATH := $(BIN):$(PATH)

CAPTURE_TESTS := $(wildcard tests/capture/test_*.py)
DEVELOPER := $(VENV)/.developer $(if $(CAPTURE_TESTS),$(VENV)/.torch)
ifneq ($(and $(CAPTURE_TESTS),$(MSPROBE)),)
OWN_PEER := $(abspath $(PEER))/bin/python
DUMPSCOPE_PEER_PYTHON ?= $(OWN_PEER)
export DUMPSCOPE_PEER_PYTHON
ifeq ($(DUMPSCOPE_PEER_PYTHON),$(OWN_PEER)) # a make inside this one is told the name as well
PEER_MADE := $(PEER)/.made
endif
endif
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo check dev test lint types interpreters frontend-tests python-tests ui modules screenshots bench matrix browser postgres \
    peer clean

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(VENV)/.server ui ## compare two bundled real dumps and serve the result
	@$(BIN)/dumpscope demo $(DEMO_FLAGS)

# What waits for a network runs beside what computes; `types` comes first, for nothing takes longer than all that it needs.
test: ## everything the tests need, then all of them (Python, frontend, browser)
	@$(MAKE) -j $(WORKERS) --output-sync BESIDE=1 types interpreters frontend-tests ui lint $(PEER_MADE)
	@$(MAKE) python-tests

check: $(DEVELOPER) modules ## quick checks of a change, under 90 seconds: lint, types, contracts, tests of what changed and a core
	@$(BIN)/python .ci/check.py

dev: $(VENV)/.developer modules ## server and web UI together, both reload when a file changes
	@.ci/dev

lint: $(VENV)/.developer ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

types: $(DEVELOPER) ## mypy --strict
	$(BIN)/mypy

interpreters: $(VENV)/.made ## the recorder under every other Python that is here: compiled, tests without torch
	@$(BIN)/python .ci/interpreters.py

frontend-tests: $(VENV)/.developer modules ## biome, tsc, vitest
	cd frontend && npm run --silent lint && npm run --silent types && npm run --silent test

python-tests: $(DEVELOPER) $(PEER_MADE) ui modules browser postgres ## pytest: contracts, stages, REST, wheel, browser
	@status=0; \
	.ci/with-postgres $(BIN)/python -m pytest --ignore tests/ui -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_FLAGS) || status=1; \
	$(BIN)/python -m pytest tests/ui -n $(WORKERS) --dist loadfile $(PYTEST_FLAGS) || status=1; \
	exit $$status

ui: $(VENV)/.server $(if $(BESIDE),modules)
	@$(BIN)/python frontend/hatch_build.py bundle

modules: $(VENV)/.server
	@$(BIN)/python frontend/hatch_build.py modules

screenshots: $(VENV)/.developer ui browser ## pictures of every screen and state to screenshots/, and README's to docs/images
	$(BIN)/python docs/screenshots.py

bench: $(VENV)/.developer ui ## PEER_BIN=venv/bin adds the side-by-side; NODES=100000 nodes a side
	$(BIN)/python bench/compare_statistics.py --nodes $(NODES) $(if $(PEER_BIN),--peer-bin $(PEER_BIN))
	$(BIN)/python bench/api_latency.py --nodes $(NODES)
	$(BIN)/python bench/export_speed.py --nodes $(NODES)

matrix: $(DEVELOPER) ## the recorder under Python 3.8 to 3.13 and torch 2.1 to the newest; MATRIX=folder keeps the environments (20 GB)
	$(BIN)/python bench/torch_versions/matrix.py --folder $(MATRIX) $(MATRIX_FLAGS)

browser: $(VENV)/.developer
	@$(BIN)/python -m playwright --version >/dev/null 2>&1 || .ci/need "Playwright's Node links it" libatomic1
	@.ci/need "The browser tests drive Chromium, without a window in a seventh less time" chromium-headless-shell chromium-headless-shell 2>/dev/null || \
	    .ci/need "The browser tests drive Chromium" chromium chromium chromium-browser google-chrome

postgres:
	@[ -n "$${DUMPSCOPE_TEST_POSTGRES_URL:-}" ] || .ci/need "The tests start a private PostgreSQL" postgresql initdb

peer: $(PEER_MADE) ## msprobe in a venv of its own, for the tests that hold our dumps to its

clean: ## drop what was built here
	rm -rf $(VENV) $(PEER) .interpreters backend/dumpscope/static frontend/node_modules dist build .pytest_cache .mypy_cache .ruff_cache

# Stamps: each step runs once, and again when what it depends on changed.

$(VENV)/.made:
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or newer is needed (Debian: apt-get install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Python 3.11 or newer is needed, $(PYTHON) is older: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	    || { echo "$(PYTHON) cannot make virtual environments: as root, apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.server: pyproject.toml $(VENV)/.made
	$(PIP) install 'hatchling>=1.27'
	$(PIP) install --no-build-isolation -e .
	@touch $@

$(VENV)/.developer: pyproject.toml $(VENV)/.server
	$(PIP) install --no-compile --no-build-isolation -e '.[dev,cluster]'
	@touch $@

$(VENV)/.torch: Makefile $(VENV)/.made $(if $(BESIDE),| $(VENV)/.developer) # one pip at a time
	$(PIP) install '$(TORCH)'
	@touch $@

# msprobe is installed here and nowhere else; torch and numpy are found in $(VENV), so that both engines compute with the same ones.
$(PEER)/.made: Makefile $(VENV)/.torch
	$(BIN)/python -m venv --clear $(PEER)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	    >"$$($(PEER)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/shared.pth"
	$(PEER)/bin/python -m pip --disable-pip-version-check -q install --no-compile '$(TORCH)' '$(MSPROBE)'
	@touch $@
