# Two commands do everything: `make demo` and `make test`. Both make .venv where it is missing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
SOURCES := pyproject.toml CMakeLists.txt $(wildcard native/*)
# The real datasets, where they lie beside the checkout; without them their tests are skipped.
METRICBOOST_DATA ?= $(wildcard ../shared/data)
ifneq ($(METRICBOOST_DATA),)
export METRICBOOST_DATA := $(abspath $(METRICBOOST_DATA))
endif

.PHONY: demo test lint bench docs clean

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP) lint
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.quality interactions --models defaults "screening + logistic" --seeds 0 5

docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx -W --keep-going -n -q docs docs/_build

$(STAMP): $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable ".[dev]"
	touch $(STAMP)

$(DOCS_STAMP): $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $(DOCS_STAMP)

clean:
	rm -rf $(VENV) build dist
