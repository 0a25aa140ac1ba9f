# Every target sets .venv up first; a second time that costs nothing, because .venv/.stamp is newer than what it depends on.
SHELL := /bin/bash
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest --quiet --durations=10

.DEFAULT_GOAL := bench
.PHONY: bench microbench test soak mutants check lint types tidy gate asv asv-publish docs lock clean

bench: .venv/.stamp ## the main job: run the benchmarks, write the report
	$(BIN)/icebench run

asv: .venv/.stamp ## the same measurements as an asv suite
	$(BIN)/python -m icebench.bench.asv_run

asv-publish: .venv/.stamp ## the history and the results of asv as a site, to be read by `asv preview`
	$(BIN)/python -m icebench.bench.asv_run --publish

microbench: .venv/.stamp ## single hot functions, kept in .benchmarks/ and compared with the last time
	@compared=; compgen -G ".benchmarks/*/*.json" >/dev/null && compared=--benchmark-compare; \
	$(BIN)/python -m pytest --quiet tests/microbench --benchmark-enable --benchmark-autosave --benchmark-group-by=name \
		--benchmark-columns=min,median,iqr,rounds --benchmark-timer=time.process_time $$compared

# Each of these processes and of those that they start would compile all modules and rewrite all tests again.
test: export PYTHONDONTWRITEBYTECODE =
# Those on Spark take longest, so the others leave them the processors; the rules of tests/tidy are in `make check`.
test: .venv/.stamp .venv/.test-stamp ## all tests: those that share one Spark session in a process beside the others
	@TMPDIR=$$(.ci/test-directory) || exit; export TMPDIR; trap 'rm -rf "$$TMPDIR"; exit 130' INT TERM; \
	status=0; log=$$TMPDIR/spark.log; \
	$(PYTEST) -m spark >"$$log" 2>&1 & \
	nice -n 3 $(PYTEST) -m "not spark" --ignore=tests/tidy --numprocesses=auto --maxprocesses=4 --dist worksteal || status=1; \
	echo "The tests on Spark:"; wait $$! || status=1; cat "$$log"; \
	if [ $$status = 0 ]; then rm -rf "$$TMPDIR"; else echo "Their files are kept in $$TMPDIR"; fi; exit $$status

soak: .venv/.stamp ## full campaigns of crashes, contention, damage and random histories, planted bugs: hours
	$(BIN)/python -m icebench.bench.s3_jars
	$(PYTEST) -m soak
	$(BIN)/python -m tests.mutants

mutants: .venv/.stamp .venv/.test-stamp ## plant the bugs of tests/mutants/, or with BASE=main those of changed lines
	$(BIN)/python -m tests.mutants $(if $(BASE),--base $(BASE))

check: lint types tidy gate ## what must hold before the tests are worth running: `make --jobs=2 check` takes half the time

lint: .venv/.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/.stamp
	$(BIN)/mypy

tidy: .venv/.stamp
	$(BIN)/python -m pytest --quiet tests/tidy

gate: .venv/.stamp
	$(BIN)/icebench gate

docs: .venv/.stamp ## the documentation, to be read from docs/_build/html/index.html without a network
	$(BIN)/sphinx-build --quiet --fail-on-warning --builder html docs docs/_build/html
	@echo docs/_build/html/index.html

lock: .venv/.stamp ## pin the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile pyproject.toml --upgrade --quiet --all-extras --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --output-file requirements.lock

clean: ## everything that can be made again
	rm -rf .venv .benchmarks .mypy_cache .ruff_cache .pytest_cache .hypothesis datasets/cache results/reports results/runs results/asv/env results/asv/html docs/_build
	find engine bench tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.stamp: pyproject.toml requirements.lock
	@.ci/setup

.venv/.test-stamp: .venv/.stamp tests/services/rest_jars.py tests/services/browser.py
	@$(BIN)/python -m tests.services.rest_jars
	@$(BIN)/python -m tests.services.browser
	@touch $@
