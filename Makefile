# Two commands on a machine that has only Python and pip: `make demo` and `make test`. Each sets itself up the first time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types tests bench bench-all bench-gpu clean

demo: $(VENV)/.demo
	$(BIN)/python -m nearkin demo

test: lint types tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .

types: $(VENV)/.dev
	$(BIN)/mypy

tests: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n auto

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/evaluation.py
	$(BIN)/python benchmarks/index.py
	$(BIN)/python benchmarks/plots.py

# Every figure of docs/performance.md: the part above, and this one where there is a GPU.
bench-all: bench bench-gpu

bench-gpu: $(VENV)/.dev
	$(BIN)/python benchmarks/everything.py --root "$(CUB)" --weights "$(WEIGHTS)" --network-settings '$(or $(NETWORK),{})' \
	  --steps engine exact million huge $(if $(CUB),training) tests sizes profile; \
	  code=$$?; $(BIN)/python benchmarks/gpu_page.py && exit $$code

$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || ($(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv $(VENV))

# A stamp is made anew when the files that say what to install change.
$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[demo,serve,report]"
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[demo,data,lite,tournament,report,tune,ray,onnx,lancedb,qdrant,pgvector,serve,dev]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache
