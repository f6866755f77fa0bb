# The entrance. `make` alone lists what there is.

.DEFAULT_GOAL := help
PY := .venv/bin/python
# Forecasts are many small computations in many processes: more threads each only get in each other's way.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export PYTHON
# Many processes of ours start in a test run and in a demo: each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check bench soak chaos fuzz kills clean distclean lock system-packages testbed-packages

help: ## list what there is to do
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 24

demo: .venv/.runtime ## watch seven real sites on this machine (ARGS="--help" for more)
	@.ci/system-packages demo
	$(PY) manage.py demo $(ARGS)

# Those that run alone come first: they compile all tests, which four at a time would do four times.
test: check ## check, and run every test
	@.ci/system-packages test
	$(PY) -m pytest -m alone; alone=$$?; \
	$(PY) -m pytest -n 4 --dist loadscope --no-loadscope-reorder -m "not alone" && exit $$alone

check: .venv/.development ## format, lint, types, layers, migrations: in seconds
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	GRIDCAST_SECRET_KEY=unused $(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

bench: .venv/.development ## measure; writes var/bench.json (ARGS="ingest refresh" for some benchmarks)
	$(PY) -m tests.bench $(ARGS)

testbed-packages: ## install the servers of grid middleware that the tests use, where that is allowed
	@.ci/system-packages testbed

soak: .venv/.development ## two hundred runs with random faults over every way to reach sites
	GRIDCAST_SOAK_RUNS=$${GRIDCAST_SOAK_RUNS:-200} GRIDCAST_SOAK_SEED=$${GRIDCAST_SOAK_SEED:-$$(date +%s)} \
		$(PY) -m pytest -s tests/probes/test_soak.py

chaos: .venv/.development ## twenty thousand runs while beat, workers and broker are killed and flushed
	GRIDCAST_CHAOS_RUNS=$${GRIDCAST_CHAOS_RUNS:-20000} GRIDCAST_CHAOS_SEED=$${GRIDCAST_CHAOS_SEED:-$$(date +%s)} \
		$(PY) -m pytest -s tests/monitor/test_chaos.py

fuzz: .venv/.development ## ten thousand bodies that are no reports, sent to the API
	GRIDCAST_FUZZ_BODIES=$${GRIDCAST_FUZZ_BODIES:-10000} GRIDCAST_FUZZ_SEED=$${GRIDCAST_FUZZ_SEED:-$$(date +%s)} \
		$(PY) -m pytest -s tests/monitor/api/test_malformed.py

kills: .venv/.development ## two hundred kills of web and PostgreSQL while reports come in
	GRIDCAST_KILLS=$${GRIDCAST_KILLS:-200} GRIDCAST_KILLS_SEED=$${GRIDCAST_KILLS_SEED:-$$(date +%s)} \
		$(PY) -m pytest -s tests/monitor/test_kills.py

clean: ## stop what runs and remove all state (var)
	@python=$$(command -v $(PY) || command -v python3); $$python -m monitor.embedded.clean

distclean: clean ## remove .venv and the tools' caches as well
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

system-packages: ## install all programs that are not Python's, where that is allowed
	@.ci/system-packages test

LOCK := uv pip compile pyproject.toml --extra embedded --extra testbed --generate-hashes --no-emit-index-url \
	--no-emit-find-links --universal --python-version 3.11 --no-header --quiet

lock: ## write requirements*.txt for what pyproject.toml says (needs uv; ARGS=--upgrade for newer versions)
	$(LOCK) $(ARGS) -o requirements.txt
	$(LOCK) $(ARGS) --group dev -c requirements.txt -o requirements-dev.txt

.venv/.runtime: requirements.txt
	@.ci/venv requirements.txt
	@touch $@

.venv/.development: requirements-dev.txt requirements.txt
	@.ci/venv requirements-dev.txt
	@touch .venv/.runtime $@
