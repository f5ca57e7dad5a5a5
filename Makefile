# Every target sets up what it needs: a virtual environment with the pinned versions.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test quick coverage wheel wheel-test lowest lint format bench docs fuzz soak licences sbom clean peers

# `make demo` ends in about a minute, `DEMO=full make demo` has the paper's size and takes some seven.
demo: $(VENV)/run.stamp
	$(BIN)/breastmorph demo $(if $(filter full,$(DEMO)),--full --out demo-full,--out demo)

# The tests of a file stay in one process: they share what is costly to make. Threads inside of two such processes would
# only wait for each other; and whatever a container says, compiled code is kept: tests start hundreds of processes.
PYTEST := -m pytest -n 2 --dist loadfile
# All tests in three: many of those that `make quick` leaves out wait for a browser, a process or a limit of time.
ALL := -m pytest -n 3 --dist loadfile
test quick coverage wheel-test lowest: export OPENBLAS_NUM_THREADS := 1
test quick coverage wheel-test lowest: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/dev.stamp
	$(BIN)/python $(ALL) tests

# Without a browser, kills, a cluster and what takes long: in one to two minutes on two free cores.
QUICK := -m "not browser and not kill and not cluster and not slow"
quick: $(VENV)/dev.stamp
	$(BIN)/python $(PYTEST) $(QUICK) tests

# Lines and branches of the package that the tests reach, by package; `make coverage COVERED=quick` measures `make quick`.
coverage: $(VENV)/dev.stamp
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/python $(if $(filter quick,$(COVERED)),$(PYTEST) $(QUICK),$(ALL)) --cov --cov-report= tests
	$(BIN)/coverage json --quiet -o build/coverage/measured.json
	$(BIN)/python scripts/coverage_table.py build/coverage/measured.json

# The wheel, made from the source distribution, as others get it: in an empty environment, away from the sources.
# First with nothing but what it asks for; then the tools of the tests join it. Those are lent by the development
# environment, whose own link to src/ is not followed from there.
# What is installed is compared with src/ byte for byte, so only what depends on the installing is asked again: commands,
# public names, data files; `make wheel-test INSTALLED=tests` asks all the quick tests.
WHEEL := build/wheel-test
INSTALLED ?= tests/cli tests/template tests/test_api.py tests/test_public_api.py
wheel: $(WHEEL)/installed.stamp
wheel-test: $(WHEEL)/installed.stamp
	cd $(WHEEL) && env -u PYTHONPATH BREASTMORPH_INSTALLED=$(CURDIR)/$(WHEEL)/env env/bin/python $(PYTEST) \
		-c ../../pyproject.toml --rootdir ../.. $(QUICK) $(addprefix ../../,$(INSTALLED))

$(WHEEL)/installed.stamp: $(VENV)/dev.stamp pyproject.toml README.md $(shell find src -type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*')
	rm -rf $(WHEEL) && mkdir -p $(WHEEL)
	$(BIN)/python -m build --outdir $(WHEEL)/dist . > $(WHEEL)/build.log || (cat $(WHEEL)/build.log; false)
	$(BIN)/python -m venv $(WHEEL)/env
	$(WHEEL)/env/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c requirements.txt $(WHEEL)/dist/*.whl
	$(WHEEL)/env/bin/python -m pip check
	cd $(WHEEL) && env -u PYTHONPATH env/bin/breastmorph doctor
	diff -r -x __pycache__ src/breastmorph $(WHEEL)/env/lib/python*/site-packages/breastmorph
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $(WHEEL)/tools.pth
	cp $(WHEEL)/tools.pth $(WHEEL)/env/lib/python*/site-packages/
	touch $@

# The same tests with the lowest versions of all dependencies that pyproject.toml allows; the tests' own tools are newest.
LOWEST := .venv-lowest
lowest: requirements-lowest.txt requirements-dev.txt
	$(PYTHON) -m venv --clear $(LOWEST)
	sed -n 's/==.*//p' requirements-dev.txt > $(LOWEST)/tools.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-lowest.txt -r $(LOWEST)/tools.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(LOWEST)/bin/python $(ALL) tests

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/catalogue.py --check
	$(BIN)/python scripts/consistency.py
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/dev.stamp
	$(BIN)/python benchmarks/all.py

# The strongest peers on equal terms, in an environment of their own; by hand, takes long. N scored, TUNE to choose settings on.
N ?= 2
TUNE ?= 1
peers: $(VENV)/dev.stamp
	test -x build/peers/bin/python || python3 -m venv build/peers
	build/peers/bin/pip install -q -r benchmarks/requirements-peers.txt
	$(BIN)/python benchmarks/peers.py --python build/peers/bin/python --n $(N) --tune $(TUNE) --docs

docs: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m pytest tests/docs/test_docs_site.py
	@echo "Open build/site/index.html"

# Hostile and mutated files for every reader, new cases for the property tests; `make fuzz FUZZ=1000` is shorter.
# The whole run writes the table in docs/reliability.md anew.
FUZZ ?= 20000
fuzz: $(VENV)/dev.stamp
	$(BIN)/python -m fuzz --inputs $(FUZZ) $(if $(filter 20000,$(FUZZ)),--table docs/reliability.md)
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile=new tests

# Hundreds of small registrations with kills and faults; takes most of an hour.
soak: $(VENV)/dev.stamp
	BREASTMORPH_SOAK=1 $(BIN)/python -m pytest -s tests/trust/test_trust_soak.py

licences: $(VENV)/run.stamp
	$(BIN)/python scripts/licences.py

sbom: $(VENV)/run.stamp
	mkdir -p build
	$(BIN)/python scripts/sbom.py --out build/sbom.json

clean:
	rm -rf $(VENV) $(LOWEST) demo demo-full build

$(VENV)/python.stamp:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/run.stamp: $(VENV)/python.stamp requirements.txt pyproject.toml
	$(PIP) -r requirements.txt
	$(PIP) --no-deps --editable .
	touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements-dev.txt
	$(PIP) -r requirements-dev.txt
	touch $@
