# Every task of the project. `make help` lists them; each does the set-up that it needs.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV ?= .venv
VENV_SAM ?= .venv-sam
PY := $(VENV)/bin/python
SAM := $(VENV_SAM)/bin/sam
# Prints the first Python that fits (3.11 to 3.13, able to make a virtual environment); PYTHON=... overrides the choice.
FIND_PYTHON := for p in $${PYTHON:-python3 python3.13 python3.12 python3.11}; do \
	"$$p" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1 \
	&& { command -v "$$p"; exit 0; }; done; \
	echo "No fitting Python: $${PYTHON:-python3, python3.13, python3.12 and python3.11} tried. Install Python 3.11, 3.12 or 3.13 with its venv module, or name one: make PYTHON=/path/to/python3.13 ..." >&2; exit 1
# --no-deps: a lock is complete, so there is nothing to resolve.
PIP_INSTALL := -m pip install -qq --disable-pip-version-check --no-input
INSTALL_LOCK := $(PIP_INSTALL) --require-hashes --no-deps --only-binary :all: --requirement
LOCK := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--no-header --no-annotate $(if $(UPGRADE),--upgrade)
# What each cloud's adapter needs beside the runtime's libraries: a new folder is gathered without a change here.
PROVIDER_SDKS = $(wildcard layers/shared/spotferry/providers/*/requirements.txt)
# What runs on Google Cloud, beside the platform's own.
RELAY = functions/relay_gcp_preemption/requirements.txt
# `sam build` looks for the interpreter of the functions' runtime on PATH: the one of .venv is the one that fits the tests.
RUNTIME = $$($(PY) -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
# Most end-to-end tests wait for machines, most others compute: side by side they take half the time. They come in the
# order of their files, so that the long ones do not all come last.
WORKERS ?= 3
SPREAD = --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
ARCH ?= $(if $(filter arm64 aarch64,$(shell uname -m)),arm64,x86_64)
SAM_PARAMETERS = PythonRuntime=$(RUNTIME) Architecture=$(ARCH)

export PYTHON
export SAM_CLI_TELEMETRY := 0
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# No task reads the caller's cloud account: a region is all that the SDK asks for.
export AWS_DEFAULT_REGION ?= us-east-1

.PHONY: help
help: ## List the tasks
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | awk -F '\t' '{ printf "  make %-13s %s\n", $$1, $$2 }'

.PHONY: setup
setup: $(VENV)/.complete ## Make .venv: the locked packages, and the command `spotferry` from this tree

$(VENV)/.complete: requirements/dev.txt pyproject.toml
	@python="$$($(FIND_PYTHON))"; echo "Setting up $(VENV) with $$python"; test -x $(PY) || "$$python" -m venv $(VENV)
	@$(PY) $(INSTALL_LOCK) requirements/dev.txt
	@$(PY) $(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: setup-sam
setup-sam: $(VENV_SAM)/.complete ## Make .venv-sam: the SAM CLI, whose pins clash with the emulator's

$(VENV_SAM)/.complete: requirements/sam.txt
	@python="$$($(FIND_PYTHON))"; echo "Setting up $(VENV_SAM) with $$python"; test -x $(VENV_SAM)/bin/python || "$$python" -m venv $(VENV_SAM)
	@$(VENV_SAM)/bin/python $(INSTALL_LOCK) requirements/sam.txt
	@touch $@

.PHONY: demo
demo: setup ## Run the main job on this machine (JOB=path INTERRUPT_AT=7 SEED=3)
	@exec $(PY) -m local.demo $(if $(JOB),--job "$(JOB)") $(if $(INTERRUPT_AT),--interrupt-at "$(INTERRUPT_AT)") $(if $(SEED),--seed "$(SEED)")

.PHONY: new-provider
new-provider: setup ## Begin a cloud: its folder, and a contract test that fails until it is filled (NAME=hetzner)
	@$(PY) -m local.new_provider "$(NAME)"

.PHONY: demo-clouds
demo-clouds: setup ## Run one job over AWS, Google Cloud, Azure and Paperspace on this machine (CLOUDS=aws,paperspace SEED=3)
	@exec $(PY) -m local.demo_clouds $(if $(CLOUDS),--clouds "$(CLOUDS)") $(if $(SEED),--seed "$(SEED)")

.PHONY: check
check: lint ## The gate of every commit: linters, types, import law, unit tests
	@$(PY) -m pytest -q $(SPREAD) tests/unit tests/functions tests/budgets

.PHONY: test
test: setup setup-sam ## Run every test, the end-to-end ones too (ARGS="-k name")
	@$(PY) -m pytest $(SPREAD) $(ARGS)

.PHONY: contract-live
contract-live: setup ## Run a cloud's contract against your account; it costs money (SPOTFERRY_LIVE=yes PROVIDER=aws)
	@exec $(PY) -m tests.contract.live "$(PROVIDER)"

.PHONY: lint
lint: setup ## Ruff, mypy and the import law
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

.PHONY: format
format: setup ## Write the code as ruff formats it
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

.PHONY: bench
bench: setup ## Measure what docs and budgets promise
	@exec $(PY) -m benchmarks $(ARGS)

.PHONY: simulate
simulate: setup ## Try what always holds under faults (RUNS=10000 WIRE=200, or SEED=42 to see one run)
	@exec $(PY) -m tests.simulation.run --runs $(or $(RUNS),1000) --wire $(or $(WIRE),0) $(if $(SEED),--seed "$(SEED)")

.PHONY: build
build: setup setup-sam ## Build functions and layer into .aws-sam (ARCH=x86_64 or arm64)
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" LAYER_PYTHON="$(CURDIR)/$(PY)" LAYER_ARCH="$(ARCH)" \
		$(SAM) build --parameter-overrides $(SAM_PARAMETERS)

.PHONY: deploy
deploy: build ## Build for this machine's Python and deploy to your account (PARAMETERS="Auth=JWT ..." ARGS=--guided)
	@$(SAM) deploy --parameter-overrides $(SAM_PARAMETERS) $(PARAMETERS) $(ARGS)

.PHONY: validate
validate: setup-sam ## Check both templates as SAM and CloudFormation will
	@$(SAM) validate --lint
	@$(SAM) validate --lint --template-file template-region.yaml

.PHONY: invoke
invoke: build ## Run one built function with an event of events/ (FN=create_instance CASE=placement)
	@exec $(PY) -m local.invoke "$(FN)" "$(CASE)" --sam $(SAM)

.PHONY: lock
lock: setup ## Write requirements/*.txt anew from the .in files (UPGRADE=1 takes newer releases)
	@$(LOCK) requirements/dev.in $(PROVIDER_SDKS) $(RELAY) --output-file requirements/dev.txt
	@$(LOCK) requirements/runtime.in --constraint requirements/dev.txt --output-file requirements/runtime.txt
	@$(LOCK) layers/shared/requirements.in --constraint requirements/dev.txt --output-file layers/shared/requirements.txt
	@$(LOCK) $(PROVIDER_SDKS) --constraint requirements/dev.txt --output-file layers/shared/provider-sdks.txt
	@$(LOCK) $(RELAY) --constraint requirements/dev.txt --output-file requirements/relay.txt
	@$(LOCK) requirements/sam.in --output-file requirements/sam.txt

.PHONY: docs
docs: setup ## Write the generated parts of docs/ (state diagram, API reference) anew
	@exec $(PY) -m local.docs

.PHONY: clean
clean: ## Remove what the tasks made, but for the two environments
	@rm -rf .aws-sam .spotferry .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist *.egg-info
	@find . -path ./$(VENV) -prune -o -path ./$(VENV_SAM) -prune -o -name __pycache__ -type d -exec rm -rf {} +
