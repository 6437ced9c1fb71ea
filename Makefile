# The commands of this repository. `make` alone lists them.
#
# They need python3 (3.11 or later), a C++ compiler and make; everything else is installed into $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python tools/install.py

SOURCES := pyproject.toml CMakeLists.txt README.md \
	$(shell find src recorder analyzer format-spec native cmake -type f ! -name '*.pyc' ! -path '*/vectors/*')
OUR_PYTHON := benchmarks cmake examples noxfile.py tests tools
OUR_CPP = $(shell find benchmarks native tests -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp')

.DEFAULT_GOAL := help
.PHONY: help demo check check-unit test test-slow test-arm soak lint lint-imports format generate dev bench bench-overhead bench-allocation bench-memory bench-accuracy bench-analyze bench-smoke wheels docs clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.with-analyze ## record a real program (examples/backup.py) and show where its time went
	@mkdir -p build/demo
	$(BIN)/tachograph record --force --output build/demo/backup.tacho examples/backup.py
	$(BIN)/tachograph analyze build/demo/backup.tacho

check: $(VENV)/.with-dev ## lint and the unit tests, but for those that start commands or go through many recordings
	@$(MAKE) --no-print-directory --jobs 2 lint check-unit

# Where no bytecode may be written, pytest would rewrite all tests each time.
PYTEST_WRITES := env -u PYTHONDONTWRITEBYTECODE

check-unit: $(VENV)/.with-dev
	$(PYTEST_WRITES) $(BIN)/pytest -m 'not slow and not quiet and not recording and not broad' -n 2 \
		--dist loadfile tests/unit

# By another name than MAKE, for which `make -n` would run the line.
TYPES = $(MAKE) --no-print-directory lint-types

# What compares times has the machine for itself; all else shares it.
test: lint-style ## lint, then the tests (a quarter of an hour on two cores); installs Debian's chromium if there is no browser
	@$(BIN)/python tests/browser/chromium.py --bring || true
	$(PYTEST_WRITES) $(BIN)/python tools/run_tests.py $(TYPES)
	@$(BIN)/python tests/browser/chromium.py > /dev/null || \
		echo "the HTML report was not tested: $$($(BIN)/python tests/browser/chromium.py)"

test-slow: $(VENV)/.with-dev ## the tests that take long, and further cases of others
	$(BIN)/pytest -m slow

test-arm: ## the tests on aarch64 under qemu, in a root of Debian's packages; goes on where it was; ARGS="--python 3.13 --minutes 30"
	@$(PYTHON) -m tools.arm $(ARGS)

soak: $(VENV)/.with-dev ## all that takes hours, each part with its verdict; ARGS="--only containers kills --kills 50" is short
	cd tests && $(abspath $(BIN))/python -m soak $(ARGS)

lint: lint-style lint-types ## ruff, clang-format, mypy --strict, and the direction of includes and imports

lint-style: $(VENV)/.with-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(if $(strip $(OUR_CPP)),$(BIN)/clang-format --dry-run -Werror $(OUR_CPP))
	$(BIN)/python tools/check_includes.py
	@$(BIN)/python tools/lint_imports.py

lint-types: $(VENV)/.with-dev
	$(BIN)/mypy -p tachograph
	$(BIN)/mypy $(OUR_PYTHON)
	$(BIN)/mypy docs/case-studies

# It reads sources, so it does not install them anew: an editable install (`make dev`) stays one.
lint-imports: ## which package of the Python code may import which (pyproject.toml, tool.importlinter)
	@$(BIN)/python tools/lint_imports.py

format: $(VENV)/.with-dev ## let ruff and clang-format rewrite the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	@$(if $(strip $(OUR_CPP)),$(BIN)/clang-format -i $(OUR_CPP))

generate: $(VENV)/.with-dev ## make what follows from tables.toml and records.toml: layouts, constants, tables of SPEC.md
	$(BIN)/python -m tools.generate

dev: $(BIN)/pip ## an editable install with all tools: edits to Python sources are live
	@echo "installing tachograph, editable, and its tools into $(VENV) ..."
	@$(INSTALL) --editable '.[dev]' --config-settings cmake.define.TACHOGRAPH_WERROR=ON
	@touch $(VENV)/.editable $(VENV)/.with-dev $(VENV)/.with-analyze

bench: $(VENV)/.with-dev ## all benchmarks, beside other profilers, and docs/benchmarks.md (about 70 minutes on a quiet machine)
	$(BIN)/python benchmarks/bench.py $(ARGS)

bench-overhead: $(VENV)/.with-dev ## what recording costs: ten pyperformance programs, bare and recorded (about an hour)
	$(BIN)/python benchmarks/overhead.py $(ARGS)

bench-allocation: $(VENV)/.with-dev ## what recording costs loops that only allocate or copy, and where (needs valgrind)
	$(BIN)/python benchmarks/allocation.py $(ARGS)
	$(BIN)/python benchmarks/instructions.py

bench-memory: $(VENV)/.with-dev ## threshold samples against rate-based ones on the ten programs
	$(BIN)/python benchmarks/sampling_rate.py $(ARGS)

bench-accuracy: $(VENV)/.with-dev ## time by function and size of an array, beside other profilers (installs them)
	$(BIN)/python benchmarks/cpu_accuracy.py
	$(BIN)/python benchmarks/memory_accuracy.py

bench-analyze: $(VENV)/.with-dev ## what analyzing costs: recordings of up to 10^8 samples
	$(BIN)/python benchmarks/analyze.py $(ARGS)

bench-smoke: $(VENV)/.with-dev ## does every benchmark still run? (needs valgrind; two to three minutes)
	$(BIN)/python benchmarks/smoke.py

wheels: ## the wheels of a release, into dist/ (brings auditwheel and a compiler; docs/releasing.md); ARGS="--pure"
	@$(PYTHON) tools/check_python.py
	$(PYTHON) tools/wheels.py $(ARGS)

docs: build/site/.tools ## the documentation as a site, into build/site/html (brings mkdocs-material)
	$(PYTHON) tools/docs_site.py build/site/made
	NO_MKDOCS_2_WARNING=1 build/site/tools/bin/mkdocs build --strict --config-file build/site/made/mkdocs.yml
	cd build/site/made/source && find . -name '*.md' -exec cp --parents {} ../../html/ ';'
	@echo "the site is in build/site/html/index.html"

build/site/.tools: Makefile
	@$(PYTHON) tools/check_python.py
	$(PYTHON) -m venv build/site/tools
	build/site/tools/bin/python -m pip --disable-pip-version-check install --quiet 'mkdocs-material~=9.8'
	@touch $@

clean: ## remove everything that these commands made
	rm -rf $(VENV) build .nox .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/pip:
	@$(PYTHON) tools/check_python.py
	@$(PYTHON) -m venv $(VENV)

# An editable install stays one, and is made anew only for what is built: edits of Python are live.
BUILT_FROM := pyproject.toml CMakeLists.txt native cmake
IS_LIVE = [ -e $(VENV)/.editable ] && [ -e $@ ] && [ -z "$$(find $(BUILT_FROM) -type f -newer $@)" ]

$(VENV)/.with-analyze: $(SOURCES) | $(BIN)/pip
	@if $(IS_LIVE); then touch $@; elif [ -e $(VENV)/.editable ]; then $(MAKE) --no-print-directory dev; else \
		echo "building tachograph and installing it into $(VENV) ..." && $(INSTALL) '.[analyze]' && touch $@; fi

$(VENV)/.with-dev: $(SOURCES) | $(BIN)/pip
	@if $(IS_LIVE); then touch $@; elif [ -e $(VENV)/.editable ]; then $(MAKE) --no-print-directory dev; else \
		echo "building tachograph and installing it, with its tools, into $(VENV) ..." && \
		$(INSTALL) '.[dev]' --config-settings cmake.define.TACHOGRAPH_WERROR=ON && touch $@ $(VENV)/.with-analyze; fi
