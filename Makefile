# Two commands do everything: `make demo` and `make test`. Both make .venv where it is missing.
# What takes longer: `make sanitize`, `make soak`, `make test-min`, `make test-new`, `make dist`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := -m pip --quiet --disable-pip-version-check
# The versions of everything that tests run with; on a Python they were not made for: `make LOCK=`.
LOCK ?= tests/locked.txt
LOCKED := $(if $(LOCK),--constraint $(LOCK))
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
SOURCES := pyproject.toml CMakeLists.txt $(LOCK) $(wildcard native/*)
# Hundreds of processes are started by tests: what the first has compiled, the others read.
export PYTHONDONTWRITEBYTECODE :=
# Tests run on all cores already: a second thread of BLAS or OpenMP in each of them only waits.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# The real datasets, where they lie beside the checkout; without them their tests are skipped.
METRICBOOST_DATA ?= $(wildcard ../shared/data)
ifneq ($(METRICBOOST_DATA),)
export METRICBOOST_DATA := $(abspath $(METRICBOOST_DATA))
endif

.PHONY: demo test test-min test-new newest lint bench reproduce pages docs sanitize soak dist lock audit clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py

ON_ALL_CORES := -m "not slow" -n auto --dist loadfile --no-loadscope-reorder --durations=12
test: $(STAMP) lint
	$(ONE_THREAD) $(BIN)/python -m pytest $(ON_ALL_CORES)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m experiments.speed
	$(BIN)/python -m experiments.quality interactions --models defaults "screening + logistic" --seeds 0 5

# The paper's tables and figures, computed again; goes on where it was stopped. All of it takes days.
# `make reproduce ARGS="table1 --no-run"` only writes the page, `make reproduce ARGS=--fast` takes minutes.
ARGS ?= all
reproduce: $(STAMP)
	$(BIN)/python -m experiments.paper $(ARGS)

# The tables of README.md and docs/ from the results in experiments/results.
pages: $(STAMP)
	$(BIN)/python -m experiments.pages
	$(BIN)/python -m experiments.paper all --no-run

docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx -W --keep-going -n -q docs docs/_build

# The kernels with AddressSanitizer and UBSan, in an environment of their own that borrows all other
# packages; then every kernel in threads, with ThreadSanitizer.
SANITIZED := build/sanitized
sanitize: $(STAMP)
	$(BIN)/python -m venv --clear $(SANITIZED)
	$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$($(SANITIZED)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/borrowed.pth
	$(SANITIZED)/bin/python $(PIP) install --no-deps \
		--config-settings=cmake.define.METRICBOOST_SANITIZE=ON --config-settings=install.strip=false .
	$(WATCHED) $(SANITIZED)/bin/python -m pytest -p no:cacheprovider $(KERNEL_TESTS)
	$(WATCHED) $(SANITIZED)/bin/python tests/fuzz.py --cases $(FUZZ_CASES)
	$(CXX) -std=c++17 -O1 -g -fsanitize=thread -pthread -ffp-contract=off \
		native/tests/threads.cpp $(filter-out native/bindings.cpp,$(wildcard native/*.cpp)) -o build/threads
	build/threads
FUZZ_CASES ?= 20000
KERNEL_TESTS ?= tests/test_engines.py tests/test_oracle.py
# Both libraries before any other; Python itself keeps what it has to the end, which is no leak.
WATCHED = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 OPENBLAS_NUM_THREADS=1

# About a quarter of an hour: 200 kills, 10,000 bad tables, 200 of them as processes, 2000 fits and loads.
soak: $(STAMP)
	$(BIN)/python -m pytest -m slow
	$(BIN)/python tests/soak.py kills --cases 200
	$(BIN)/python tests/soak.py bad --cases 10000
	$(BIN)/python tests/soak.py command --cases 200
	$(BIN)/python tests/soak.py flat --cases 2000

# PyTorch by itself first: of this release an index may have a build without CUDA's gigabytes.
TORCH ?= torch==2.13.0
# The suite with the oldest versions that are promised, and with the newest there are, each in an
# environment of its own.
OLDEST := build/oldest
NEWEST := build/newest
PROMISED := "^(numpy|scipy|scikit-learn|joblib)="
test-min:
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python $(PIP) install --no-compile --constraint tests/oldest.txt "$(TORCH)"
	$(OLDEST)/bin/python $(PIP) install --no-compile --constraint tests/oldest.txt --editable ".[test]"
	$(OLDEST)/bin/python -m pip list --format freeze | grep -Ei $(PROMISED)
	$(OLDEST)/bin/python -m pytest $(ON_ALL_CORES) -p no:cacheprovider

test-new: newest
	$(NEWEST)/bin/python -m pip list --format freeze | grep -Ei $(PROMISED)
	$(NEWEST)/bin/python -m pytest $(ON_ALL_CORES) -p no:cacheprovider

newest:
	$(PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python $(PIP) install --no-compile "$(TORCH)"
	$(NEWEST)/bin/python $(PIP) install --no-compile --editable ".[dev]"

# The newest versions become those that `make test` runs with.
lock: newest
	{ head -n 1 tests/locked.txt; $(NEWEST)/bin/python -m pip freeze --exclude-editable \
		| sed 's/+cpu$$//' | grep -E "^[A-Za-z0-9_.-]+=="; } > build/locked.txt
	mv build/locked.txt tests/locked.txt

# Known holes in the locked versions; what cannot be looked up counts as one.
audit:
	$(PYTHON) -m venv --clear build/audit
	build/audit/bin/python $(PIP) install pip-audit
	build/audit/bin/python -m pip_audit --requirement tests/locked.txt --no-deps --disable-pip --strict

# The source distribution and a wheel, each installed into an empty environment and tried.
dist: $(STAMP)
	rm -rf dist build/empty
	$(BIN)/python $(PIP) install build twine
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	for file in dist/*; do \
		$(PYTHON) -m venv --clear build/empty && \
		build/empty/bin/python $(PIP) install $$file && \
		(cd build && empty/bin/python ../tests/smoke.py) || exit 1; \
	done

$(STAMP): $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) install --no-compile $(LOCKED) --editable ".[dev]"
	touch $(STAMP)

$(DOCS_STAMP): $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) install $(LOCKED) --editable ".[docs]"
	touch $(DOCS_STAMP)

clean:
	rm -rf $(VENV) build dist
