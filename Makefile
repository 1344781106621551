# The only definition of what is built and checked; CI and hooks call these targets.
# Everything is installed into the clone: target/, .venv/, .venv-ecosystem/, .venv-bench/, out/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
ECO := .venv-ecosystem
BENCH := .venv-bench
ONCALL := target/release/oncall
SCENARIOS ?= spike,bad-build,cache-flush
EPISODES ?= 1000

# make train SCENARIO=spike STEPS=20000000 SEED=1 TRAIN_ARGS="--teacher runbook"
PPO := target/release/oncall-ppo
SCENARIO ?= spike
STEPS ?= 20000000
SEED ?= 1
TRAIN_ARGS ?=
TRAINED = out/train/$(SCENARIO)-$(SEED)
# .cargo/config.toml names the same folder.
LIBTORCH_FETCHED := third_party/libtorch/torch/build-version

.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the command line (release)
	cargo build --release --locked -p oncall-cli

.PHONY: run
run: build ## The main job: all shipped policies on the three bad mornings, score table, one page per look
	@mkdir -p out
	$(ONCALL) eval --scenarios $(SCENARIOS) --episodes $(EPISODES) --json out/eval.json --csv out/eval.csv
	$(ONCALL) report --scenarios $(SCENARIOS) --episodes $(EPISODES) --out out/report.html
	@echo "Scores, profiles and one episode per scenario: out/report.html; every episode's figures: out/eval.csv, out/eval.json"

$(LIBTORCH_FETCHED): scripts/get_libtorch.py
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python scripts/get_libtorch.py
	@touch $@

.PHONY: libtorch
ifdef LIBTORCH
libtorch:
	@echo "LIBTORCH = $(LIBTORCH) is used; unset it to fetch libtorch into this clone"
else
libtorch: $(LIBTORCH_FETCHED) ## Fetch libtorch, which only training needs (540 MB)
endif

.PHONY: ppo
ppo: libtorch ## Build the trainer (release; C++ of 1-3 minutes the first time)
	@command -v "$${CXX:-c++}" >/dev/null || { echo "make ppo: no C++ compiler (c++): install one" >&2; exit 1; }
	cargo build --release --locked -p oncall-ppo --features torch

.PHONY: train
train: ppo ## Train SCENARIO for STEPS from SEED into out/train, and compare with the tuned runbook; goes on if killed
	$(PPO) train --scenario $(SCENARIO) --steps $(STEPS) --seed $(SEED) --out $(TRAINED) --resume $(TRAIN_ARGS)
	$(PPO) evaluate --weights $(TRAINED)/policy.safetensors --scenario $(SCENARIO) --policies runbook --episodes $(EPISODES)
	@echo "Learning curve: $(TRAINED)/curve.svg; every update: $(TRAINED)/training.csv, or tensorboard --logdir out/train"

$(VENV)/.ready: python/requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --requirement python/requirements-dev.txt
	@touch $@

.PHONY: py
py: $(VENV)/.ready ## Build the Python package into .venv
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(VENV)/bin/maturin develop --quiet --release --locked

.PHONY: test
test: lint-rust test-rust py lint-py test-py ## All tests and lints (Rust, Python)

.PHONY: test-rust
test-rust: ## Rust tests of the whole workspace
	cargo test --workspace --locked

.PHONY: test-py
test-py: py ## Python tests
	$(VENV)/bin/python -m pytest python/tests

.PHONY: test-ppo
test-ppo: libtorch ## Tests of the trainer, with libtorch: gradients, kill and resume, threads, weights
	cargo clippy --locked -p oncall-ppo --features torch --all-targets -- -D warnings
	cargo test --locked -p oncall-ppo --features torch

$(ECO)/.ready: tests/ecosystem/requirements.txt tests/ecosystem/install.py
	$(PYTHON) -m venv $(ECO)
	$(ECO)/bin/python tests/ecosystem/install.py
	@touch $@

.PHONY: test-ecosystem
test-ecosystem: py $(ECO)/.ready ## Trainers on the environments: stable-baselines3, TorchRL, skrl (installs 1.5 GB)
	PYTHONPATH=python $(ECO)/bin/python -m pytest tests/ecosystem python/tests/test_sb3.py

.PHONY: compare-trainers
compare-trainers: ppo py $(ECO)/.ready ## Steps a second of oncall-ppo, one-file PyTorch and stable-baselines3, in turns
	PYTHONPATH=python $(ECO)/bin/python agents/python/compare.py --oncall-ppo $(PPO)

FUZZ_MINUTES ?= 3
.PHONY: fuzz
fuzz: build ## Random faults: 10,000 plans for the consensus, FUZZ_MINUTES of the whole control plane
	cargo run --release --locked -p oncall-consensus --example fuzz -- --schedules 10000
	$(ONCALL) discovery fuzz --minutes $(FUZZ_MINUTES)

.PHONY: lint-rust
lint-rust: ## rustfmt and clippy, warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p oncall-env -p oncall-py --features oncall-py/bench-worlds --locked -- -D warnings

.PHONY: lint-py
lint-py: py ## ruff, mypy and the stub against the extension
	$(VENV)/bin/ruff check python tests benches scripts agents/python
	$(VENV)/bin/ruff format --check python tests benches scripts agents/python
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m mypy.stubtest oncall_gym._native

.PHONY: fmt
fmt: $(VENV)/.ready ## Format everything
	cargo fmt --all
	$(VENV)/bin/ruff format python tests benches scripts agents/python
	$(VENV)/bin/ruff check --fix python tests benches scripts agents/python

.PHONY: schema
schema: ## Rewrite the JSON Schema of scenario files
	UPDATE_SCHEMA=1 cargo test --locked -p oncall-scenario schema

.PHONY: bench
bench: build ## Steps per second by batch and threads
	$(ONCALL) bench

# An environment of its own, so that the worlds that are only measured get into no other.
$(BENCH)/.ready: python/requirements-dev.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --requirement python/requirements-dev.txt
	-$(BENCH)/bin/python -m pip install --quiet envpool
	@touch $@

.PHONY: bench-cartpole
bench-cartpole: $(BENCH)/.ready ## CartPole through this engine beside other engines, like for like, in one run
	$(BENCH)/bin/maturin build --quiet --release --locked --features bench-worlds --interpreter $(BENCH)/bin/python --out out/bench-wheels
	$(BENCH)/bin/python -m pip install --quiet --no-deps --force-reinstall out/bench-wheels/oncall_gym-*.whl
	$(BENCH)/bin/python -m pytest -q benches/peers/check_cartpole.py
	$(BENCH)/bin/python benches/peers/throughput.py --only cartpole,gymnasium,envpool,pufferlib

.PHONY: clean
clean: ## Remove what was built
	rm -rf target out $(VENV) $(ECO) $(BENCH)
