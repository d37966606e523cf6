# Two commands do everything on a fresh machine: `make crawl` and `make test`.

# the newest Python that runs: version managers leave commands for versions that are not active
PYTHON ?= $(or $(shell for python in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import ensurepip, venv' 2>/dev/null && echo $$python && break; done),python3)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# commands start a second faster from compiled modules
unexport PYTHONDONTWRITEBYTECODE
# pytest-xdist processes; every test has a separate database
# more than there are cores, because many tests wait for processes and timers
JOBS   ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() + 4)")

.PHONY: help setup crawl docs test services test-services dist test-packages test-upgrade test-containers check screenshots fuzz bench bench-queue bench-crawl bench-render bench-search bench-index bench-scheduler bench-products bench-api bench-dispatch bench-growth bench-idle bench-startup bench-agents bench-hosts bench-fleet bench-million bench-compare quality quality-search conformance chaos chaos-services format lock reference schema-dump revision clean
.DEFAULT_GOAL := help

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

setup: $(READY) ## Install everything into .venv (other commands do this automatically)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Forager needs Python 3.11 or newer; this is %s. Try: make PYTHON=python3.12 ..." % sys.version.split()[0])'
	@$(PYTHON) -m venv $(VENV)
	@echo "installing dependencies into $(VENV) with $$($(BIN)/python --version) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src
	@touch $@

crawl: $(READY) ## Crawl the bundled site, or URL=https://... instead
	@$(BIN)/forager $(if $(URL),crawl $(URL),demo)

test: $(READY) ## Run the tests
	@$(BIN)/pytest -n $(JOBS) --dist worksteal $(ARGS)

DOCS := .venv-docs
$(DOCS)/.ready: docs/requirements.lock
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

docs: $(DOCS)/.ready ## Build the documentation site into build/site and check its links
	@$(PYTHON) scripts/site.py
	@$(DOCS)/bin/zensical build --strict --clean --config-file build/zensical.toml

services: $(READY) ## Install the servers for test-services (15 minutes the first time)
	@$(BIN)/python -c 'import chdb, kubernetes_validate' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'chdb>=4,<5' 'kubernetes-validate>=1.34' uv
	@scripts/services build

test-services: services ## Run the tests that need RabbitMQ, MinIO, OpenSearch and PgBouncer
	@$(BIN)/pytest tests/services $(ARGS)

dist: $(READY) ## Build the wheel and the sdist of the last commit into dist/, and check them
	@$(BIN)/python -c 'import twine' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'twine>=6,<8'
	@$(BIN)/python scripts/dist.py

test-packages: dist ## Install the packages on clean machines: Python 3.11 to 3.14, every extra (needs root, podman)
	@$(BIN)/pytest tests/packages $(ARGS)

test-upgrade: $(READY) ## Upgrade the database while a worker of each earlier version runs (needs uv, git history)
	@$(BIN)/pytest tests/db/old_worker.py $(ARGS)

test-containers: $(READY) ## Build the image and run compose.yaml with podman: core and full profile (needs root)
	@$(PYTHON) -m venv build/podman-compose && build/podman-compose/bin/pip install --quiet --disable-pip-version-check 'podman-compose==1.6.*'
	@$(BIN)/pytest tests/containers $(ARGS)

check: $(READY) ## Format, lint, types, package boundaries
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

screenshots: $(READY) ## Take screenshots of all dashboard pages into build/screenshots (needs Chromium)
	@PYTHONPATH=tests $(BIN)/python -m tests.screenshots

bench: $(READY) ## Run all benchmarks (about 35 minutes; PARTS=queue,crawl for some, QUICK=1 for a short run)
	@$(BIN)/python -m benchmarks.bench --parts "$(PARTS)" $(if $(QUICK),--quick)

fuzz: $(READY) ## Fuzz every target for one minute (TARGET=name, MINUTES=5)
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris==3.0.0'
	@for target in $(or $(TARGET),$$(PYTHONPATH=tests $(BIN)/python -c 'from fuzz.targets import PLACES; print(*PLACES)')); do \
		echo "$$target ..." >&2; \
		PYTHONPATH=tests $(BIN)/python -m tests.fuzz $$target $(or $(MINUTES),1) || exit 1; \
	done

bench-queue: $(READY) ## Measure the queue (a few minutes)
	@$(BIN)/python -m benchmarks.bench_queue

bench-crawl: $(READY) ## Compare crawls with Scrapy, Crawlee, Colly, spider and the in-memory limit
	@$(BIN)/python -m benchmarks.bench_crawl

bench-render: $(READY) ## Compare rendering with Crawlee's PlaywrightCrawler (needs npm, Chromium)
	@$(BIN)/python -m benchmarks.bench_render

bench-search: $(READY) ## Measure search over a million sections (several minutes)
	@$(BIN)/python -m benchmarks.bench_search

bench-index: $(READY) ## Compare search with OpenSearch and with PostgreSQL (starts OpenSearch; several minutes)
	@eval "$$(scripts/services start opensearch)" && $(BIN)/python -m benchmarks.bench_index; code=$$?; \
		scripts/services stop opensearch; exit $$code

bench-scheduler: $(READY) ## Measure a tick of the scheduler over a million tasks
	@$(BIN)/python -m benchmarks.bench_scheduler

bench-products: $(READY) ## Measure writing and searching products
	@$(BIN)/python -m benchmarks.bench_products

bench-api: $(READY) ## Measure the API and the dashboard over a large database (several minutes)
	@$(BIN)/python -m benchmarks.bench_api

bench-dispatch: $(READY) ## Compare task dispatch by Celery and by PostgreSQL (starts RabbitMQ; a few minutes)
	@eval "$$(scripts/services start rabbitmq)" && $(BIN)/python -m benchmarks.bench_dispatch; code=$$?; \
		scripts/services stop rabbitmq; exit $$code

bench-growth: $(READY) ## Measure memory, commit times and resuming of crawls with millions of URLs
	@$(BIN)/python -m benchmarks.bench_memory
	@$(BIN)/python -m benchmarks.bench_commit
	@$(BIN)/python -m benchmarks.bench_resume

bench-idle: $(READY) ## Measure `forager up` without work, for ten minutes
	@$(BIN)/python -m benchmarks.bench_idle $(ARGS)

bench-agents: $(READY) ## Ask the questions of programmers through MCP (needs python3.11-doc, postgresql-doc-15)
	@$(BIN)/python -m benchmarks.bench_agents $(ARGS)

bench-startup: $(READY) ## Measure the start-up time of commands and crawls
	@$(BIN)/python -m benchmarks.bench_startup $(ARGS)

bench-hosts: $(READY) ## Measure one worker on 5,000 hosts, at one request per second each
	@$(BIN)/python -m benchmarks.bench_hosts $(ARGS)

bench-fleet: $(READY) ## Measure many polite crawls on one worker, compared with Scrapy (OTHER=folder: also one crawl with that checkout)
	@$(BIN)/python -m benchmarks.bench_fleet $(ARGS)
	@$(if $(OTHER),$(BIN)/python -m benchmarks.compare $(OTHER) --parts crawl)

bench-million: $(READY) ## Crawl, pause, refresh and delete a site of a million pages (over an hour, 35 GB)
	@$(BIN)/python -m benchmarks.bench_million $(ARGS)

bench-compare: $(READY) ## Run quick benchmarks of two checkouts in turn (OTHER=folder PARTS=queue,commit ROUNDS=5)
	@$(BIN)/python -m benchmarks.compare $(OTHER) $(if $(PARTS),--parts $(PARTS)) $(if $(ROUNDS),--rounds $(ROUNDS))

chaos-services: services ## Kill workers, RabbitMQ, MinIO and OpenSearch while 10,000 tasks run (TASKS=500)
	@FORAGER_TEST_CHAOS_TASKS=$(or $(TASKS),10000) $(BIN)/pytest tests/services/test_dispatch_chaos.py $(ARGS)

chaos: $(READY) ## Inject faults and check every promise (MINUTES=2 SEED=7)
	@$(BIN)/python -m chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(ARGS)
	@PYTHONPATH=tests $(BIN)/python -m market $(if $(SEED),--seed $(SEED))

quality: $(READY) ## Score extraction on real pages, and count losses by generator (CORPORA=folder, SITES=folders of pages)
	@$(BIN)/python -m benchmarks.quality $(CORPORA) $(SITES)

quality-search: $(READY) ## Score search on real documentation (CORPORA=folder; crawls Debian packages once)
	@$(BIN)/python -m benchmarks.quality_search $(CORPORA)/search-queries.json $(ARGS)

conformance: $(READY) ## Check URLs and robots.txt against public cases (CORPORA=folder)
	@$(BIN)/python benchmarks/conformance_urls.py $(CORPORA)
	@$(BIN)/python benchmarks/conformance_robots.py $(CORPORA)

format: $(READY) ## Format the code and apply automatic lint fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

reference: $(READY) ## Regenerate docs/reference from commands, settings and tables
	@PYTHONPATH=tests $(BIN)/python -m tests.reference

schema-dump: $(READY) ## Write the schema of the migrations to tests/db/schema.txt
	@PYTHONPATH=tests/db $(BIN)/python -m schema_dump

revision: $(READY) ## Start a migration (MESSAGE="add a column")
	@$(BIN)/alembic revision -m "$(MESSAGE)"

lock: ## Update requirements.lock and docs/requirements.lock from pyproject.toml
	@$(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install --quiet uv
	@$(VENV)-lock/bin/uv pip compile --quiet --universal --upgrade --generate-hashes --no-emit-index-url \
		--no-header --no-annotate pyproject.toml --group dev --output-file requirements.lock
	@$(VENV)-lock/bin/uv pip compile --quiet --universal --upgrade --generate-hashes --no-emit-index-url \
		--no-header --no-annotate --python-version 3.11 --group docs --output-file docs/requirements.lock
	@rm -rf $(VENV)-lock

clean: ## Remove all files created by these commands, except crawled data
	@rm -rf $(VENV) $(DOCS) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
