PYTHON ?= python3
BIN := .venv/bin

RUNS ?= fixtures
OUT ?= .venv/peers/predictions

.PHONY: demo test bench mutate gates peers readme clean

.venv/.runtime: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.dev: .venv/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: .venv/.runtime  ## install and diagnose a failed run
	$(BIN)/stabtree diagnose fixtures/phase19/fp16-overflow --fail-on never

test: .venv/.dev  ## lint, types and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q

bench: .venv/.dev  ## speed and memory, as ratios to named references
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/jsonl.py

mutate: .venv/.dev  ## which thresholds no test holds
	$(BIN)/python -m benchmarks.mutate

gates: .venv/.dev  ## every figure that was promised, and which fell
	$(BIN)/python -m benchmarks.gates

.venv/peers/.installed:
	$(PYTHON) -m venv .venv/peers
	.venv/peers/bin/python -m pip install --quiet --disable-pip-version-check losslint runmedic trainproof 'trainpulse[cli]'
	touch $@

peers: .venv/peers/.installed  ## the competitors' predictions on the runs below RUNS, one file per tool in OUT
	.venv/peers/bin/python benchmarks/peers.py $(RUNS) --all --out $(OUT)

readme: .venv/.dev  ## write the outputs in the README again
	$(BIN)/python -m tests.readme_blocks

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
