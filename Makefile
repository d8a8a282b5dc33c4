PYTHON ?= python3
WORKERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv pip
# Where versions of Python differ: asyncio, types, regular expressions, SQLite, start-up.
SMOKE := tests/test_loop.py tests/test_public.py tests/core/test_regex.py tests/tools/test_schemas.py tests/wire/test_golden.py tests/story/test_home.py
SMOKE_NEEDS := hypothesis pytest pytest-timeout pytest-xdist
INSTALL := $(UV) install --quiet --python $(BIN)/python --compile-bytecode

export UV_SYSTEM_CERTS := 1
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-rights test-long smoke trials check format lock bench peer lab docs pictures clean packages

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed ## run the main job with a scripted model: no key, no server
	@$(BIN)/hone demo

test: check packages ## install what the tests need, then run linters and tests
	$(BIN)/pytest -n $(WORKERS)

test-rights: $(VENV)/.installed-dev packages ## as an ordinary user, the tests that turn on what a user may do
	@scripts/as-ordinary-user.sh $(BIN)/pytest -n $(WORKERS) -m rights -p no:cacheprovider

test-long: check packages ## the same with the full counts
	$(BIN)/pytest -n $(WORKERS) --long --timeout 7200

smoke: $(VENV)/.installed-smoke ## the demo and a few tests; with another Python: scripts/smoke.sh 3.13
	$(BIN)/hone demo >/dev/null
	$(BIN)/python -m pytest -q -n $(WORKERS) -p no:cacheprovider $(SMOKE)

trials: $(VENV)/.installed-dev packages ## faults and attacks, each with its full count (TRIALS="--only urls --seed 7")
	$(BIN)/python -m tests.trials $(TRIALS)

check: $(VENV)/.installed-dev ## linters only: ruff, mypy, import-linter
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.installed-dev ## rewrite the code in the house style
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

# The dev lock comes first and constrains the others: one version of a package in all of them.
LOCK := $(UV) compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command "make lock" $(LOCK_FLAGS)
lock: $(VENV)/.uv ## renew the locks after a change in pyproject.toml (LOCK_FLAGS=--upgrade: newest versions)
	$(LOCK) pyproject.toml --group dev -o requirements-dev.lock
	$(LOCK) pyproject.toml -c requirements-dev.lock -o requirements.lock
	$(LOCK) pyproject.toml --extra postgres --extra mcp --extra otel -c requirements-dev.lock -o requirements-server.lock
	$(LOCK) --group build -c requirements-dev.lock -o requirements-build.lock
	$(LOCK) --group docs -o requirements-docs.lock
	$(LOCK) --group peer -o requirements-peer.lock
	@git diff --quiet requirements-build.lock && touch $(VENV)/.uv || true

bench: $(VENV)/.installed-dev ## measure Hone beside its floor and, after `make peer`, beside its peer
	$(BIN)/python -m benchmarks

peer: $(VENV)-peer/.installed ## an environment with the peer that `make bench` measures too

lab: $(VENV)/.installed-dev $(VENV)-peer/.installed ## learning curves of Hone and its peer in scripted worlds: docs/lab (LAB="--worlds 3")
	$(BIN)/python -m benchmarks.lab $(LAB)

docs: $(VENV)-docs/.installed ## make the documents a site in site/, without any request to elsewhere
	@$(VENV)-docs/bin/zensical build --strict --clean

pictures: $(VENV)/.installed-dev ## draw the pictures of docs/page.md anew (needs chromium)
	$(BIN)/python -m tests.browser.pictures

clean: ## remove the environment and all caches
	rm -rf $(VENV) $(VENV)-* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist site .cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

packages:
	@scripts/system-packages.sh strace:strace bwrap:bubblewrap curl:curl chromium:chromium
	@scripts/node-packages.sh $(VENV)

# pip comes from $(PYTHON) itself: Debian's Python has no ensurepip to put one into the new environment.
$(VENV)/.uv: requirements-build.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Hone needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || \
		{ echo "$(PYTHON) has no pip; install it (Debian, Ubuntu: apt install python3-pip)"; exit 1; }
	@echo "preparing $(VENV)"
	@$(PYTHON) -m venv --without-pip --clear $(VENV) || \
		{ echo "$(PYTHON) cannot make environments (Debian, Ubuntu: apt install python3-venv)"; exit 1; }
	@$(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check -qq install --require-hashes -r $<
	@touch $@

$(VENV)/.installed: $(VENV)/.uv requirements.lock pyproject.toml
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.installed-smoke: $(VENV)/.installed requirements-dev.lock
	@$(INSTALL) -c requirements-dev.lock $(SMOKE_NEEDS)
	@touch $@

$(VENV)-%/.installed: requirements-%.lock | $(VENV)/.uv
	@echo "preparing $(VENV)-$*"
	@$(PYTHON) -m venv --without-pip --clear $(VENV)-$*
	@$(UV) install --quiet --python $(VENV)-$*/bin/python --compile-bytecode --require-hashes -r $<
	@touch $@
