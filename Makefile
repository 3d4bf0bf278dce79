# One command interface for people and machines. `make help` lists the targets.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := advisor training serving dashboards

# make run DATA=trace.csv FORMAT=philly [MAPPING=mapping.toml] [PORT=8080] [HOST=127.0.0.1]
DATA ?=
FORMAT ?= table
MAPPING ?=
PORT ?= 8080
HOST ?= 127.0.0.1

.PHONY: help setup setup-test setup-docs run test test-browser test-cluster test-prometheus fmt lint types arch check bench docs reference screenshots lock clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

# A stamp per set: made again when its lock, or the project's own metadata, changes.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; $(PYTHON) is older. Try: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-setup.lock
	@touch $@

$(VENV)/.run: $(VENV)/.python requirements.lock pyproject.toml
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements-test.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-test.lock
	@touch $@

$(VENV)/.docs: $(VENV)/.run requirements-docs.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-docs.lock
	@touch $@

setup: $(VENV)/.run ## make .venv with what running needs
setup-test: $(VENV)/.test
setup-docs: $(VENV)/.docs

TRACE := $(strip $(if $(DATA),--data $(DATA) --format $(FORMAT)) $(if $(MAPPING),--mapping $(MAPPING)))
run: setup ## train on DATA (or a labelled synthetic workload), print advice, serve on HOST:PORT
	$(strip $(BIN)/gsa demo --serve --host $(HOST) --port $(PORT) $(TRACE))

test: setup-test ## every test that needs no extra server
	$(BIN)/pytest -m "not browser and not postgres and not prometheus and not cluster" -n 2 --cov --cov-report=term

test-browser: setup-test ## the dashboard in a real Chromium
	$(BIN)/pytest -m browser

test-cluster: setup-test ## a real control plane on loopback; Go builds what of it is missing
	$(BIN)/python -m tests.servers.programs.build etcd kube-apiserver kube-controller-manager kube-scheduler
	$(BIN)/pytest -m cluster

test-prometheus: setup-test ## a real Prometheus and VictoriaMetrics on loopback
	$(BIN)/pytest -m prometheus -n 2 --dist worksteal

fmt: setup-test ## format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix --exit-zero --quiet .

lint: setup-test ## style, unused code, complexity
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup-test ## strict types
	$(BIN)/mypy
	$(BIN)/mypy -p docs.generators
	$(BIN)/mypy tests/builders.py $(filter-out tests/telemetry_world/test_%,$(wildcard tests/telemetry_world/*.py))
	$(BIN)/mypy tests/servers/programs/build.py tests/cluster/story.py $(filter-out tests/servers/test_%,$(wildcard tests/servers/*.py))

arch: setup-test ## who may import whom
	$(BIN)/lint-imports --verbose

check: lint types arch test ## everything before a commit

bench: setup-test ## measured speed, as ratios within one run
	$(BIN)/python -m benchmarks

docs: setup-docs ## the guide, scope, changelog and how to contribute as a site, in docs/_build
	$(BIN)/sphinx-build --fail-on-warning --quiet docs docs/_build

reference: setup-test ## the generated pages of the reference, anew from the code
	$(BIN)/python -m docs.generators

screenshots: setup-test ## pictures for the documentation, of what make run serves on HOST:PORT
	$(BIN)/python -m docs.generators.screenshots http://$(HOST):$(PORT)

UV_COMPILE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11
lock: setup ## resolve the locked sets again
	$(UV_COMPILE) --upgrade pyproject.toml -o requirements.lock
	$(UV_COMPILE) --upgrade -c requirements.lock --group test pyproject.toml -o requirements-test.lock
	$(UV_COMPILE) --upgrade -c requirements.lock --group docs -o requirements-docs.lock
	$(UV_COMPILE) --upgrade requirements-setup.in -o requirements-setup.lock

clean: ## remove what was built; history and models in .gsa stay
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
