# `make` alone lists the targets.

.DEFAULT_GOAL := help
PY := .venv/bin/python
# Forecasts run many small computations in many processes: BLAS threads in each would only compete.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
export PYTHON
# A test run and a demo start many Python processes: without byte code each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo serve reporter test check nightly bench growth lighthouse proofs screens cross soak chaos agents fuzz kills ends study sbom audit clean distclean lock system-packages testbed-packages

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 24

demo: .venv/.runtime ## run the service over seven real SSH sites on this machine (ARGS="--help" for more)
	@.ci/system-packages demo
	$(PY) manage.py demo $(ARGS)

serve: .venv/.runtime ## run the service for a grid of your own (ARGS="--help" for more)
	@$(PY) manage.py serve $(ARGS)

reporter: .venv/.runtime ## pack the reporter for sites into one file, gridcast-reporter.pyz
	$(PY) -m reporters.remote.archive gridcast-reporter.pyz

test: .venv/.development ## check, and run the tests: the verdict on a change, in minutes
	@.ci/system-packages test
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target check-types tests $(CHECKS)

# Beside the checks: that of types keeps one processor busy. The + has its output shown as it comes.
tests:
	+$(PY) -m pytest -n 5 --dist loadscope --no-loadscope-reorder -m "not nightly"

nightly: .venv/.development ## the long proofs, some hours: a release needs them
	@.ci/system-packages test
	$(MAKE) --keep-going proofs screens cross soak fuzz kills ends chaos agents study growth

# Each part runs singly, too, within an hour.
PROOF := $(PY) -m pytest -n 2 -m "nightly or hypothesis" --hypothesis-profile=nightly
proofs: .venv/.development ## the long versions of tests: special cases, whole tables, more examples of properties
	$(PROOF) --dist loadscope --ignore=tests/monitor/cross --ignore=tests/monitor/web/pages tests

screens: .venv/.development ## every page on every screen, light and dark, over full, empty, huge, stale and broken depots
	$(PROOF) --dist load tests/monitor/web/pages

cross: .venv/.development ## every kind of row with every page, operation and user
	$(PROOF) --dist load tests/monitor/cross

CHECKS := check-format check-lint check-prose check-types check-layers check-oldest-python check-migrations
.PHONY: $(CHECKS) tests

check: .venv/.development ## format, lint, types, layers, prose, oldest Python, migrations: in seconds
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(CHECKS)

check-format:
	$(PY) -m ruff format --check .

check-lint:
	$(PY) -m ruff check .

check-prose:
	$(PY) .ci/prose.py

check-types:
	$(PY) .ci/check_types.py

check-layers:
	PYTHONPATH=client $(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'

check-oldest-python: # of the reporters and the client, which run at sites
	.venv/bin/vermin --quiet --no-tips --target=3.9- --violations reporters probes client integrations

check-migrations:
	GRIDCAST_SECRET_KEY=unused $(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run

bench: .venv/.development ## measure; writes var/bench.json (ARGS="ingest refresh" for some benchmarks)
	$(PY) -m tests.bench $(ARGS)

growth: .venv/.development ## measure with 26 million samples and with ten times as many (52 GB of disk)
	$(PY) -m tests.bench growth

lighthouse: .venv/.development ## Lighthouse over every page, with a demo and a year of data; writes var/lighthouse.json (needs node)
	$(PY) -m tests.lighthouse $(ARGS)

testbed-packages: ## install the servers of grid middleware that the tests use (root)
	@.ci/system-packages testbed

soak: .venv/.development ## two hundred runs with random faults over every way to reach sites
	GRIDCAST_SOAK_RUNS=$${GRIDCAST_SOAK_RUNS:-200} GRIDCAST_SOAK_SEED=$${GRIDCAST_SOAK_SEED:-$$(date +%s)} \
		$(PY) -m pytest -s tests/probes/test_soak.py

chaos: .venv/.development ## twenty thousand runs while beat, workers and broker are killed and flushed
	GRIDCAST_CHAOS_RUNS=$${GRIDCAST_CHAOS_RUNS:-20000} GRIDCAST_CHAOS_ROUNDS=$${GRIDCAST_CHAOS_ROUNDS:-4} \
		GRIDCAST_CHAOS_SEED=$${GRIDCAST_CHAOS_SEED:-$$(date +%s)} \
		$(PY) -m pytest -s tests/monitor/test_chaos.py

agents: .venv/.development ## twenty sites' agents on a bad network, with a thousand kills of agents and server
	GRIDCAST_AGENT_SITES=$${GRIDCAST_AGENT_SITES:-20} GRIDCAST_AGENT_KILLS=$${GRIDCAST_AGENT_KILLS:-1000} \
		GRIDCAST_AGENT_SEED=$${GRIDCAST_AGENT_SEED:-$$(date +%s)} \
		$(PY) -m pytest -s tests/monitor/test_agent_chaos.py

fuzz: .venv/.development ## ten thousand malformed reports and a hundred thousand random requests, sent to the API
	GRIDCAST_FUZZ_BODIES=$${GRIDCAST_FUZZ_BODIES:-10000} GRIDCAST_FUZZ_SEED=$${GRIDCAST_FUZZ_SEED:-$$(date +%s)} \
		GRIDCAST_FUZZ_REQUESTS=$${GRIDCAST_FUZZ_REQUESTS:-100000} GRIDCAST_API_EXAMPLES=$${GRIDCAST_API_EXAMPLES:-50} \
		$(PY) -m pytest -s tests/monitor/web/api/test_malformed.py tests/monitor/web/api/test_fuzz.py tests/monitor/web/api/test_schemathesis.py

kills: .venv/.development ## two hundred kills of web and PostgreSQL during ingest
	GRIDCAST_KILLS=$${GRIDCAST_KILLS:-200} GRIDCAST_KILLS_SEED=$${GRIDCAST_KILLS_SEED:-$$(date +%s)} \
		$(PY) -m pytest -s tests/monitor/test_kills.py

ends: .venv/.development ## a hundred thousand ends of runs, reported in every way, during fifty kills of web and broker
	GRIDCAST_ENDS=$${GRIDCAST_ENDS:-100000} GRIDCAST_ENDS_KILLS=$${GRIDCAST_ENDS_KILLS:-50} \
		GRIDCAST_ENDS_SEED=$${GRIDCAST_ENDS_SEED:-$$(date +%s)} \
		$(PY) -m pytest -s tests/monitor/test_ends.py

study: .venv/.development ## the study of two grids, by a demo of 130 rounds at 40 times the speed of the grid
	GRIDCAST_STUDY_ROUNDS=$${GRIDCAST_STUDY_ROUNDS:-130} $(PY) -m pytest -s tests/monitor/testbed/demo/test_study_rounds.py

sbom: .venv/.development ## write the bill of materials of all dependencies, gridcast.cdx.json
	.ci/sbom $(PY) gridcast.cdx.json

audit: .venv/.development ## compare the locked dependencies with a copy of an advisory database (ADVISORIES=DIRECTORY or ZIP)
	$(PY) .ci/audit.py $(ADVISORIES)

clean: ## stop the service and remove all state (var); FORCE=1 for that of `make serve`
	@python=$$(command -v $(PY) || command -v python3); $$python -m monitor.operations.embedded.clean

distclean: clean ## clean, and remove .venv and the tools' caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

system-packages: ## install the Debian packages that the tests use (root)
	@.ci/system-packages test

LOCK := uv pip compile pyproject.toml --extra embedded --extra testbed --extra pdf --extra otlp --generate-hashes --no-emit-index-url \
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
