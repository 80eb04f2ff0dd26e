# Everything a developer or a curious user types. Each target makes .venv when it is missing.
#
#   make demo            tune a real pipeline with every sampler (two minutes), draw demo.png
#   make test            the fast tests, in about three minutes on two cores; make test-slow has the others
#   make docs            the documentation as a site, in build/site; a warning is an error
#   make test PYTHON=python3.12              another interpreter
#   make test TORCH_INDEX=URL               the index of a CPU build, if yours differs
#   make test LOCK=                         the newest versions instead of those of requirements-ci.txt

PYTHON ?= python3
# Installed first and pinned: a bare `torch` takes gigabytes of CUDA packages on Linux.
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
# Exact versions of the rest, for the Python that they were written down with; LOCK= takes the newest.
LOCK_FILE := requirements-ci.txt
LOCK ?= $(shell $(PYTHON) -c 'import sys; print("-c $(LOCK_FILE)" * (sys.version_info[:2] == (3, 11) and sys.platform == "linux"))')

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Python compiles what is imported; to compile all of torch ahead takes pip 64 s instead of 20 s.
PIP_TORCH = -m pip install --disable-pip-version-check --no-compile $(TORCH) $(addprefix --extra-index-url ,$(TORCH_INDEX))

.DELETE_ON_ERROR:
.PHONY: help test test-slow slower-tests demo docs notebook lint format types examples bench-speed gate gate-update
.PHONY: properties fuzz soak restarts matrix lock audit priors learner-priors dist wheel-check extras-check clean

help:
	@sed -n '1,/^$$/s/^# \{0,1\}//p' Makefile

# Each worker computes on one core; make test WORKERS=1 is one after the other.
WORKERS ?= auto
TESTS ?= not slow and not slower
test: export OMP_NUM_THREADS = 1
test: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "$(TESTS)"

# make test-slow SLOW="slow and not ray": some of them
SLOW ?= slow or slower
test-slow:
	$(MAKE) test TESTS="$(SLOW)"

# Measure which tests take half a second or more, on an idle machine.
slower-tests: export OMP_NUM_THREADS = 1
slower-tests: $(INSTALLED)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" --junitxml build/tests.xml
	$(BIN)/python .ci/slower.py build/tests.xml

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py

# NO_MKDOCS_2_WARNING: of the theme's, about its successor
docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/mkdocs build --strict
	@echo "Open build/site/index.html in a browser."

# The outputs that are shown in the notebook, made anew (in CI its cells run without Jupyter).
notebook: $(INSTALLED)
	$(BIN)/python -m pip install --quiet nbconvert ipykernel ipywidgets
	$(BIN)/python -m jupyter nbconvert --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False examples/quickstart.ipynb

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(INSTALLED)
	$(BIN)/mypy

# Fewer seeds and trials than a user gets, as CI asks whether they run.
examples: export OMP_NUM_THREADS = 1
examples: $(INSTALLED)
	@for example in examples/*.py; do \
		case $$example in \
			*/demo.py|*/sorting.py) options=--quick;; \
			*/memory.py) options="--trials 10";; \
			*/shipped_prior.py|*/transfer_from_my_studies.py) options="--seeds 1 --trials 6";; \
			*/sinusoid_transfer.py) options="--seeds 1";; \
			*) options=;; \
		esac; \
		echo "== $$example"; MPLBACKEND=Agg $(BIN)/python $$example $$options || exit 1; \
	done

bench-speed: $(INSTALLED)
	$(BIN)/dre-bench speed

# Whether a change has made search worse (about 2 minutes of a core); a quarter of it is in CI.
gate: $(INSTALLED)
	$(BIN)/python -m dre_bench.gate --jobs 2

# After a change that is meant to: store what search does now.
gate-update: $(INSTALLED)
	$(BIN)/python -m dre_bench.gate --jobs 2 --update

# make properties TIMES=400 JOBS=8: random studies in all frameworks, 400 times as many as CI tries
TIMES ?= 400
JOBS ?= 2
properties: export OMP_NUM_THREADS = 1
properties: $(INSTALLED)
	DRE_PROPERTY_FACTOR=$(TIMES) $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --timeout=0 \
		--show-capture=no -m "" tests/properties

# make priors DATA=path/to/yahpo: rebuild the priors that ship (about 2 minutes on two cores)
priors: $(INSTALLED)
	@test -n "$(DATA)" || { echo "Name the folder of the YAHPO scenarios: make $@ DATA=path"; exit 1; }
	$(BIN)/python -m dre_bench.priors --data $(DATA) --jobs 2

# The priors of learners that were evaluated here.
learner-priors: $(INSTALLED)
	$(BIN)/python -m dre_bench.learner_priors \
		--evaluations benchmarks/data/learner_evaluations/evaluations.npz
	$(BIN)/python -m dre_bench.learner_priors.networks train

# ---- reliability (docs/reliability.md); none of these is part of .ci/run

# Every reader, 10 000 damaged files of each kind; files that claim more than they hold, saves that
# are interrupted; 2000 studies with odd trials on each kind of storage. One of them:
# make fuzz KIND="Ray Tune" or KIND=SQLite
KIND ?= damaged or claims or interrupted
fuzz: $(INSTALLED)
	$(BIN)/python -m pytest --hypothesis-profile=fuzz --timeout=0 \
		tests/reliability/test_hostile_files.py tests/reliability/test_files.py \
		tests/reliability/test_stored_trials.py \
		-m "slow or not slow" -k "(damaged or claims or interrupted) and ($(KIND))"

# 5000 asks by 8 threads in 4 processes on each kind of storage; make soak SOAK="--preset default --trials 500"
SOAK ?= --preset start-up
soak: export PYTHONPATH = tests/shared:tests/reliability
soak: $(INSTALLED)
	$(BIN)/python benchmarks/scripts/soak.py journal $(SOAK)
	$(BIN)/python benchmarks/scripts/soak.py postgresql $(SOAK)

# Workers killed at 20 moments, and a PostgreSQL server killed during a study
restarts: $(INSTALLED)
	$(BIN)/python -m pytest -m "slow or slower" tests/reliability

# Oldest and newest versions on every Python that is found (gigabytes of torch; see the script)
matrix:
	.ci/matrix

lock: $(INSTALLED)
	{ echo "# What CI installs beside torch (make lock); only for the Python that made it: 3.11 on Linux."; \
		$(BIN)/python -m pip freeze --exclude-editable | grep -v '^torch=='; } > $(LOCK_FILE)

audit: $(INSTALLED)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet pip-audit
	$(BIN)/python -m pip_audit

# The wheel is built from the sdist, so that nothing is missing there.
dist: $(INSTALLED)
	rm -rf dist
	$(BIN)/python -m build --installer uv
	$(BIN)/python .ci/check_sdist.py dist/*.tar.gz

# What a user gets: the wheel in an empty environment, without any framework.
wheel-check: dist
	rm -rf build/empty
	$(PYTHON) -m venv build/empty
	build/empty/bin/python $(PIP_TORCH)
	$(BIN)/uv pip install --python build/empty/bin/python dist/*.whl || \
		build/empty/bin/python -m pip install --disable-pip-version-check dist/*.whl
	cd build/empty && bin/python -I ../../.ci/check_wheel.py

# Each extra alone, in an environment of its own (some minutes, hence not part of .ci/run).
extras-check: dist
	rm -rf build/extras && mkdir -p build/extras
	for extra in optuna ray syne-tune; do \
		$(PYTHON) -m venv build/extras/$$extra && \
		build/extras/$$extra/bin/python $(PIP_TORCH) --quiet && \
		build/extras/$$extra/bin/python -m pip install --disable-pip-version-check --quiet "$$(ls $(CURDIR)/dist/*.whl)[$$extra]" && \
		build/extras/$$extra/bin/python -m pip check && \
		(cd build/extras && $$extra/bin/python -I ../../.ci/check_extra.py $$extra) || exit 1; \
	done

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The package and its benchmarks, which are a distribution of their own.
EDITABLE := --editable '.[dev]' --editable './benchmarks[rivals]'

$(INSTALLED): pyproject.toml benchmarks/pyproject.toml $(LOCK_FILE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo "dre-plugins needs Python 3.10 or newer, and $(PYTHON) is not: $$($(PYTHON) --version 2>&1)."; \
		echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
		echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Installing into $(VENV); the first time takes some minutes."
	@$(BIN)/python $(PIP_TORCH) || { \
		echo "$(TORCH) could not be installed for $$($(BIN)/python --version)."; \
		echo "Name another: make TORCH='torch==2.8.0' $(MAKECMDGOALS), or another PYTHON=…"; exit 1; }
	@# uv takes seconds where pip takes minutes; pip knows more indexes and proxies.
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet uv && \
		$(BIN)/uv pip install --quiet --python $(BIN)/python $(EDITABLE) $(LOCK) || \
		$(BIN)/python -m pip install --disable-pip-version-check --quiet $(EDITABLE) $(LOCK)
	@touch $@
