# Two commands to start with: `make demo` and `make test`. Everything happens in .venv; nothing else is touched.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find src -type f -not -name '*.so' -not -path '*/__pycache__/*')

.PHONY: demo test test-slow check format docs bench portable wheel clean

demo: $(VENV)/.installed
	$(BIN)/hushsum demo

test: $(VENV)/.tests
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" tests
	$(MAKE) --no-print-directory portable

test-slow: $(VENV)/.tests
	$(BIN)/python -m pytest -n auto tests

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev
	$(BIN)/mkdocs serve

# The hot loops once more, compiled without any processor-specific clone, must give the same bits.
portable: $(VENV)/.tests
	$(BIN)/python tests/portable_build.py

bench: $(VENV)/.tests
	for each in build_speed query_speed noise_speed import_time streaming_memory skin_accuracy; do \
	  $(BIN)/python -m benchmarks.$$each || exit 1; done

wheel: $(VENV)/.dev
	$(BIN)/pip wheel --no-deps --wheel-dir dist .

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet .
	touch $@

$(VENV)/.tests: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet ".[test]"
	touch $@ $(VENV)/.installed

$(VENV)/.dev: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet ".[dev]"
	touch $@ $(VENV)/.tests $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
