# Every target works from a bare checkout: set-up runs first, and takes no time when nothing changed.

PYTHON ?= python3
ARGS ?=

# Programs and tests are started many hundred times: without bytecode each of them compiles its modules anew, for a second.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
SHELL := /bin/sh

# One clear sentence instead of the shell's "not found"; prepare.py judges the version and finds a better one on PATH.
PREPARE = $(PYTHON) -c '' 2>/dev/null || { echo "Python 3.11 to 3.13 is needed, and '$(PYTHON)' does not run: install one \
	(for example the package python3.11), or name one: make PYTHON=/path/to/python3.11" >&2; exit 2; }; \
	$(PYTHON) infra/setup/prepare.py

# Tests without servers take every core. Those with real servers wait for a third of their time: three run side by side
# on two cores, with servers of each process's own. A few would be judged by how busy the others are, and run alone.
# (pytest's status 5: the arguments chose nothing here.)
SERVERS = kafka or spark or end_to_end or containers
# Clusters of several brokers are a tier of their own: see test-clusters.
SIDE_BY_SIDE = -n 3 --dist loadfile -m "($(SERVERS)) and not alone and not clusters"

# What needs neither Java nor a Docker engine, and ends within two minutes on two cores (ARGS="-n 0" takes one process,
# for a debugger).
FAST = not kafka and not spark and not end_to_end and not containers and not slow

.PHONY: help
help: ## Show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Prepare everything and run nothing (the other targets do it by themselves)
	@$(PREPARE) --java

.PHONY: demo
demo: ## Run a whole cluster on this machine, break it, measure it (ARGS=--keep leaves it running)
	@$(PREPARE) --java -- controlplane demo $(ARGS)

.PHONY: test
test: ## Run every test on one broker; the summaries say why a test was skipped (ARGS="-k name" chooses)
	@$(PREPARE) --java
	@.venv/bin/python -m pytest -n logical --dist worksteal -m "not ($(SERVERS)) and not alone" $(ARGS); quick=$$?; \
	.venv/bin/python -m pytest $(SIDE_BY_SIDE) $(ARGS); servers=$$?; \
	.venv/bin/python -m pytest -m "alone and not clusters" $(ARGS); alone=$$?; \
	case "$$quick $$servers $$alone" in \
		"5 5 5") exit 1;; [05]" "[05]" "[05]) ;; *) exit 1;; esac

.PHONY: thorough
thorough: ## Run every test at its full size: more examples, longer logs, deeper searches, in some two hours
	@CONTROLPLANE_TEST_THOROUGH=1 $(MAKE) test ARGS="$(ARGS)"

.PHONY: test-fast
test-fast: ## Run the tests that need no Java, on every core: two minutes on two cores
	@$(PREPARE) -- python -m pytest -n logical --hypothesis-profile=fast -m "$(FAST)" $(ARGS)

.PHONY: test-clusters
test-clusters: ## Run the tests that need several real brokers, one after the other
	@$(PREPARE) --java -- python -m pytest -m clusters $(ARGS)

SEEDS ?= 2000
FRESH ?= $$(($(SEEDS) / 2))

.PHONY: simulate
simulate: ## Run clusters in virtual time with faults, on every core: SEEDS=2000, half of them (or FRESH=N) never seen before
	@$(PREPARE) -- python -m tests.simulation --seeds 0-$$(($(SEEDS) - $(FRESH) - 1)) --fresh $(FRESH) $(ARGS)

.PHONY: mutants
mutants: ## Put bugs into the rules and into the running code, and see that each is found (ARGS="--like words" chooses)
	@$(PREPARE)
	@.venv/bin/python -m tests.mutants $(ARGS); rules=$$?; \
	.venv/bin/python -m tests.simulation.mutants $(ARGS); running=$$?; \
	case "$$rules $$running" in "0 0" | "0 2" | "2 0") ;; *) exit 1;; esac

.PHONY: lint
lint: ## Check style, formatting, types and the import contracts; all of them, even when one fails
	@$(PREPARE)
	@failed=""; \
	for tool in "ruff check ." "ruff format --check ." "mypy" "lint-imports"; do \
		echo "== $$tool"; \
		.venv/bin/$$tool || failed="$$failed '$$tool'"; \
	done; \
	if [ -n "$$failed" ]; then echo "lint failed:$$failed" >&2; exit 1; fi

.PHONY: dist
dist: ## Build the wheel and the source archive into dist/
	@rm -rf dist
	@$(PREPARE) -- python -m hatchling build

.PHONY: pipeline-env
pipeline-env: ## Pack the pipeline for executors that have only Spark and Python: dist/pipeline-env.zip
	@$(PREPARE) --java -- python infra/spark/pack.py dist/pipeline-env.zip

.PHONY: lock
lock: ## Pin, with hashes, what pyproject.toml asks for (ARGS=--upgrade takes the newest versions)
	@$(PREPARE)
	@.venv/bin/python -m pip install --quiet --require-hashes -r infra/python/lock.txt
	@for list in build lock; do .venv/bin/uv pip compile infra/python/$$list.in $(LOCK_OPTIONS) \
		--output-file infra/python/$$list.txt; done
	@.venv/bin/uv pip compile pyproject.toml --all-extras --group dev $(LOCK_OPTIONS) \
		--output-file infra/python/requirements.txt
	@.venv/bin/uv pip compile pyproject.toml --extra cli --extra pipeline --constraint infra/python/requirements.txt \
		$(LEFT_OUT) $(LOCK_OPTIONS) --output-file infra/python/pipeline.txt

# What executors have (Spark's Python) or never use (the engine of `controlplane sql`).
LEFT_OUT = --no-emit-package pyspark --no-emit-package py4j --no-emit-package duckdb

# No header and no annotations: the lists hold versions and hashes, and nothing of the machine that made them.
LOCK_OPTIONS = --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet $(ARGS)

.PHONY: clean
clean: ## Remove what builds and tests leave behind (not .venv, not the cache of Java libraries)
	@rm -rf dist build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache metastore_db spark-warehouse derby.log
	@find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
