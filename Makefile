PYTHON ?= python3
BIN := .venv/bin

# Where the public logs lie, if somebody has fetched them: a folder with INDEX.csv.
PUBLIC ?= $(wildcard ../shared/wild)
PEERS := .venv/peers
# What `test-floors` and `test-pythons` run: all, unless told otherwise.
TESTS ?= tests
PYTHONS ?= $(wildcard $(foreach v,3.12 3.13 3.14,$(HOME)/.pyenv/versions/$(v).*/bin/python))

# On all processors; each takes half of what is left of another, so that neighbours that share a run stay together.
PYTEST := pytest -q -n auto --dist worksteal

.PHONY: demo test lint lint-platforms test-floors test-integrations test-pythons bench fit golden lower gates peers docs readme dist release clean

.venv/.runtime: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.dev: .venv/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs,release]'
	touch $@

demo: .venv/.runtime  ## install and diagnose a failed run
	$(BIN)/stabtree diagnose fixtures/phase19/fp16-overflow --fail-on never

test: lint .venv/.dev  ## lint, types and all tests
	$(BIN)/$(PYTEST)

lint: .venv/.dev  ## lint, limits of size and complexity, and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m release.style
	$(BIN)/python -m release.budget
	$(BIN)/mypy

lint-platforms: .venv/.dev  ## types as on Windows and macOS: what these lack is asked for behind a guard
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 stabtree tests fixtures
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin stabtree tests fixtures

# The oldest versions that pyproject.toml allows, each pinned: numpy>=1.26 becomes numpy==1.26.
FLOORS = import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	extra = p["optional-dependencies"]; runtime = [*p["dependencies"], *extra["parquet"], *extra["zstd"]]; \
	print(*(item.replace(">=", "==") for item in runtime), sep="\n")

.venv/floors/.installed: pyproject.toml
	$(PYTHON) -m venv .venv/floors
	$(PYTHON) -c '$(FLOORS)' > .venv/floors/floors.txt
	.venv/floors/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv/floors/floors.txt \
		--editable '.[dev]'
	touch $@

test-floors: .venv/floors/.installed  ## the tests with the oldest dependencies that are allowed
	.venv/floors/bin/$(PYTEST) -p no:cacheprovider $(TESTS)

# Some gigabytes, so an environment of its own; where the trainers can't be installed their tests are skipped, and say so.
.venv/integrations/.installed: pyproject.toml
	$(PYTHON) -m venv .venv/integrations
	.venv/integrations/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	.venv/integrations/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test-integrations]' \
		&& touch $@ || echo "the trainers can't be installed here: their tests are skipped"

test-integrations: .venv/integrations/.installed  ## the callbacks with the real trainers
	KERAS_BACKEND=torch .venv/integrations/bin/$(PYTEST) -p no:cacheprovider -rs tests/tools/live/integrations tests/whole/test_docs.py

test-pythons:  ## the tests on the other Pythons that we promise, where they are installed
	@set -e; for python in $(PYTHONS); do \
		venv=.venv/$$($$python -c 'import sys; print("python%d.%d" % sys.version_info[:2])'); echo "$$venv"; \
		$$python -m venv $$venv; \
		$$venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'; \
		$$venv/bin/$(PYTEST) -p no:cacheprovider $(TESTS); \
	done

bench: .venv/.dev  ## speed and memory, as ratios to named references
	$(BIN)/python -m benchmarks.speed

# The labelled logs are read once; remove .venv/logs after they change, or after the readers of logs do.
fit: .venv/.dev  ## trees/calibration.yaml: limits and slopes, and what they are worth on unseen repositories
	$(BIN)/python -m benchmarks.fit --cache .venv/logs

golden: .venv/.dev  ## every run at hand against its golden record
	$(BIN)/python -m benchmarks.golden

lower: .venv/.dev  ## write the counts that fell into budget.yaml
	$(BIN)/python -m release.budget --lower

gates: .venv/.dev  ## every figure that was promised, and which fell; which verdicts changed since the last release
	$(BIN)/python -m benchmarks.gates

$(PEERS)/.installed: benchmarks/peers.py
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check \
		$$($(PYTHON) benchmarks/peers.py --requirements)
	touch $@

# Everybody's predictions on each set below RUNS, those of the competitors with their own interpreter.
peers: .venv/.dev $(PEERS)/.installed  ## stabtree and the competitors on faultbench: predictions, table, docs/figures/peers.json
	$(BIN)/python -m faultbench unpack $(PEERS)/runs
	$(BIN)/python -m benchmarks.probes $(PEERS)/runs/probes
	$(PEERS)/bin/python benchmarks/peers.py $(PEERS)/runs/dev --all --out $(PEERS)/predictions/dev
	for folder in $(PEERS)/runs/trainers $(PEERS)/runs/probes; do \
		$(PEERS)/bin/python -m benchmarks.peers_logs $$folder --out $(PEERS)/predictions/$$(basename $$folder) || exit 1; done
	for folder in $(PEERS)/runs/*; do \
		$(BIN)/python -m benchmarks.peers_own $$folder --out $(PEERS)/predictions/$$(basename $$folder) || exit 1; done
	if [ -n "$(PUBLIC)" ]; then \
		$(PEERS)/bin/python -m benchmarks.peers_logs $(PUBLIC) --out $(PEERS)/predictions/public && \
		$(BIN)/python -m benchmarks.peers_own $(PUBLIC) --out $(PEERS)/predictions/public; fi
	$(BIN)/python -m benchmarks.peers_table --record $(PEERS)/predictions --runs $(PEERS)/runs $(if $(PUBLIC),--public $(PUBLIC))

docs: .venv/.dev  ## the site, in .venv/docs/html
	$(BIN)/python -m docs.site .venv/docs

readme: .venv/.dev  ## write the outputs on all written pages again
	$(BIN)/python -m tests.whole.pages --write
	$(BIN)/python docs/pictures.py

dist: .venv/.dev  ## wheel and sdist in dist, checked and installed once
	rm -rf dist
	$(BIN)/python -m release.dist dist --install

release: .venv/.dev  ## VERSION=x.y.z: measure, check, build, commit and tag; pushes nothing
	@test -n "$(VERSION)" || { echo "say which: make release VERSION=x.y.z" >&2; exit 2; }
	$(BIN)/python -m release $(VERSION)

clean:
	rm -rf dist .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
