# Commands for development. `make help` lists the targets.

# Python 3.11 or newer; PYTHON=... selects another interpreter than the first one in PATH.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Touched when the environment is complete; it is updated only after a change of its inputs.
INSTALLED := $(VENV)/.installed
# Tests without Kafka and Spark run on all cores, in up to eight workers. A worker takes up to 1.4 GB.
# Workers share their compiled kernels (tests/support/kernel_cache.py).
STACKED := kafka or spark
STACKED_FOLDERS := tests/integration tests/rest
# A crash of a worker is a failed test. With a new worker, the run may not end.
CRASHES := --max-worker-restart=0
SPREAD := -q -n auto --maxprocesses=8 $(CRASHES)
PARALLEL = $(CHECKED) $(BIN)/pytest $(SPREAD)
# Tests with Kafka or Spark run in three processes, each with its own broker: they often wait. The
# tests of a file run in one process, because they share a job. tests/conftest.py orders the files.
THREE = $(CHECKED) $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder $(CRASHES)
# While those wait, the other tests run with a lower priority, in up to four workers. Their output
# comes at the end.
FAST_LOG := build/fast_tests.log
# Run all tests, or those without the marker $(1).
define run_both
	@mkdir -p build
	@echo "Tests without Kafka and Spark run at the same time: see $(FAST_LOG)"
	nice env $(PARALLEL) --maxprocesses=4 -p no:cacheprovider -m "not ($(STACKED)$(if $(1), or $(1)))" > $(FAST_LOG) 2>&1 & fast=$$!; \
	$(THREE) -m "($(STACKED))$(if $(1), and not $(1))" $(STACKED_FOLDERS); stacked=$$?; \
	wait $$fast; fast=$$?; cat $(FAST_LOG); [ $$stacked = 0 ] && [ $$fast = 0 ]
endef
# Pictures of the console in the documentation, as tests/integration/test_console.py names them.
PICTURES := overview-desktop-light streams-desktop-light stream-desktop-light \
  conditions-desktop-light condition-desktop-light list-desktop-light alarms-desktop-light \
  alarm-desktop-light validate-desktop-light sign-in-desktop-light query-desktop-dark \
  combination-desktop-light change-desktop-light alarm-phone-dark
# A compiled kernel contains code of other files: after a change of any file all are compiled again.
export NUMBA_CACHE_DIR := $(or $(shell $(PYTHON) -m cli.kernels 2>/dev/null),$(CURDIR)/.cache/numba/none)
# Processes start faster with compiled modules, which images often disable.
unexport PYTHONDONTWRITEBYTECODE
# In kernels that are compiled with it, an index out of bounds raises an error. Tests use such kernels,
# but for the million pairs at night, which use those of users.
CHECKED := NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(NUMBA_CACHE_DIR)-checked
# Touched when the kernels of the job are compiled. Jobs that start together would each do it.
KERNELS := $(NUMBA_CACHE_DIR)-checked/.compiled

.DEFAULT_GOAL := help
.PHONY: help setup jars clients kernels classes pins dashboards docs sbom screenshots check static test \
  nightly demo bench clean purge

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: $(INSTALLED) ## create the virtual environment with the pinned packages

$(INSTALLED): requirements/dev.txt requirements/build.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)." \
	       "Install it and run: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Python's venv module is missing: on Debian or Ubuntu apt-get install python3-venv" >&2; \
	  exit 1; }
	$(BIN)/python -m pip install --require-hashes -r requirements/dev.txt -r requirements/build.txt
	$(BIN)/python -m pip install --no-build-isolation --no-deps -e .
	@touch $@

jars: setup ## fetch the Java archives of the embedded broker
	$(BIN)/coincide jars

clients: ## fetch the packages of the example for kafkajs, if npm is installed
	@cd tests/clients && npm ci --no-audit --no-fund \
	  || echo "kafkajs could not be installed: its test will be skipped, or fail if CI is set" >&2

kernels: $(KERNELS) ## compile the kernels of the jobs of tests, which their first job does otherwise

$(KERNELS): $(INSTALLED)
	$(CHECKED) $(BIN)/python -m spark_jobs.worker.warm_up
	@touch $@

classes: jars kernels ## store Java's classes, with which the jobs of tests start faster
	@mkdir -p build
	$(CHECKED) $(BIN)/python -m tests.support.java_archive > build/java_archive.log 2>&1 \
	  || echo "Java's classes are not stored: jobs start slower; see build/java_archive.log" >&2

pins: setup ## update the SHA-256 of the archives after a change of cli/stack/ivy.xml
	$(BIN)/python -c 'from cli.stack.jars import pin; pin()'

dashboards: setup ## generate the dashboards, their list of panels, and the rules again
	$(BIN)/python -m deploy.dashboards

docs: setup ## build the documentation as a site, into build/site
	$(BIN)/python -m deploy.site

screenshots: setup jars ## take pictures of the console: all into build/, those of the documentation into docs/images
	COINCIDE_SCREENSHOTS=build/screenshots $(CHECKED) $(BIN)/pytest -q tests/integration/test_console.py -k views_fit
	cp $(PICTURES:%=build/screenshots/console-%.png) docs/images/
	$(BIN)/python -m tests.support.picture_digests > docs/images/console.sha256

sbom: setup ## write a software bill of materials (CycloneDX) of the image into build/sbom.json
	$(BIN)/python -m deploy.sbom

check: static ## lint, types, import contracts and the fast tests
	$(PARALLEL) -m "not ($(STACKED) or slow)"

static: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

test: setup jars clients kernels classes ## run the tests that every change must pass, on a real Kafka and a real Spark
	$(call run_both,nightly)

nightly: export HYPOTHESIS_PROFILE := thorough
nightly: setup jars clients kernels classes ## all tests, with more examples
	$(call run_both)
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest $(SPREAD) tests/conformance/test_many_pairs.py

demo: setup ## flights, weather and chat messages through Kafka and Spark, with results that are checked
	$(BIN)/coincide demo

bench: setup jars ## measure speed and memory, and write the tables and figures of docs/
	$(BIN)/python -m benchmarks --write

clean: ## remove files of runs and tools
	rm -rf .coincide .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

purge: clean ## clean, and remove the environment and the fetched archives
	rm -rf $(VENV) .cache *.egg-info
