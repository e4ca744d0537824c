# Everything a newcomer or CI needs. `make up` and `make test` set themselves up.

PYTHON ?= python3
BIN := .venv/bin
SEEDS ?= 1000
# How long `make storm` lasts, and what it is drawn from.
MINUTES ?= 30
SEED ?= 1

.PHONY: setup up test check format simulate storm bench docs kube lock openapi

setup: .venv/.ready

# The server and the command line: all that `make up` needs.
.venv/.server: requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# And what checks, tests and measures it.
.venv/.ready: .venv/.server requirements-dev.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

up: .venv/.server
	$(BIN)/interlock up --examples

test: check
	$(BIN)/python tools/run_tests.py

check: setup
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --quiet --fix .

simulate: setup
	$(BIN)/python -m support.simulation --seeds $(SEEDS)

storm: setup
	$(BIN)/python -m support.storm --seed $(SEED) kills --minutes $(MINUTES)

bench: setup
	$(BIN)/python -m bench

# The programs of a Kubernetes control plane for tests/e2e, and helm for the chart's tests: found, or
# built once and kept outside the tree. The last line is the folder of the control plane's.
kube: setup
	@$(BIN)/python tools/ensure_helm.py
	@$(BIN)/python tools/ensure_kube.py

# Hold a server against its own OpenAPI documents, with schemathesis in a place of its own. It takes
# some minutes.
openapi: setup
	$(BIN)/python tools/check_openapi.py

docs: setup
	$(BIN)/python tools/write_sync.py
	$(BIN)/python tools/write_docs.py
	$(BIN)/python tools/write_chart.py

# The second lock is a part of the first: both environments have the same versions.
COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11
lock: setup
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --group dev pyproject.toml -o requirements-dev.lock
	$(COMPILE) --group build --constraint requirements-dev.lock pyproject.toml -o requirements.lock
