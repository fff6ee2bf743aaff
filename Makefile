# weir: two commands are enough, `make study` and `make test`; `make help` lists the rest.
SHELL := /bin/bash
STUDY ?= quick
# Of test hosts.
KIND ?= netns
N ?= 2
HOSTS ?=
# What is read of make's command line. A name or value that means nothing ends make before anything is done.
READ := STUDY RETRY ATTEMPTS ANSIBLE_ARGS KIND N HOSTS ROLE TRACES FIT DRIVE
# Of fuzzing.
TARGET ?=
FUZZ_S ?= 60
PYTHON := .venv/bin/python
# Examples are built by whoever runs them, and checked by lint.
CARGO_TEST := --release --locked --offline --workspace --lib --bins --tests
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# What was installed by setup/ is found first.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

ifneq (,$(filter study hosts hosts-down report figures molecule,$(MAKECMDGOALS)))
quoted = '$(subst ','\'',$(1))'
given := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
problem := $(shell python3 setup/arguments.py '$(MAKECMDGOALS)' '$(given)' $(foreach name,$(READ),$(call quoted,$(name)=$($(name)))))
ifneq (,$(problem))
$(error $(problem))
endif
endif

.DEFAULT_GOAL := help
.PHONY: help tools setup study hosts hosts-down figures report test test-rust test-analysis test-guest test-roles test-cluster test-controllers test-unsafe fuzz molecule durability durability-live lint lint-code lint-rust lint-python lint-roles fmt bench bench-replay bench-collect bench-serve bench-live bench-traces bench-caches bench-simulator bench-schedulers bench-web bench-hosts validate-drives clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What both the build and the tests begin with.
tools:
	@setup/packages.sh
	@setup/rust.sh
	@setup/crates.sh

setup: tools ## Install what is missing: Debian packages, Python environment, the weir binary
	@setup/python.sh
	@setup/build.sh

study: setup ## Run a study on this host and report on it (STUDY=quick, or a file; RETRY=invalid repeats invalid runs; ATTEMPTS=3 at once, on a disturbed host)
	@ansible-playbook ansible/study.yml -e '{"study": "$(STUDY)", "weir_retry_invalid": $(if $(filter invalid,$(RETRY)),true,false), "weir_attempts": $(or $(ATTEMPTS),1)}' $(ANSIBLE_ARGS)

hosts: setup ## Bring hosts up for studies and write their inventory (KIND=netns|qemu, N=2; KIND=ssh HOSTS=root@a,root@b:2222)
	@ansible-playbook -i ansible/inventories/localhost.yml ansible/hosts.yml -e '{"kind": "$(KIND)", "hosts_netns_count": $(N), "hosts_qemu_count": $(N), "hosts_ssh_hosts": "$(HOSTS)"}' $(ANSIBLE_ARGS)
	@ansible-playbook -i .weir/hosts/inventory.yml ansible/prepare_hosts.yml $(ANSIBLE_ARGS)

hosts-down: setup ## Take down exactly the hosts that make hosts brought up
	@ansible-playbook -i ansible/inventories/localhost.yml ansible/hosts_down.yml $(ANSIBLE_ARGS)

figures: setup ## Run the notebooks of all studies that have results (STUDY=wijayaratne: of a paper, and what is missing of its studies)
	@$(PYTHON) -m weir figures $(if $(filter-out file,$(origin STUDY)),--study $(STUDY))

report: setup ## Write the page of one study that has results (STUDY=quick)
	@$(PYTHON) -m weir report results/$(STUDY)

# Tests of devices wait for these for much of the time: the analysis is tested meanwhile.
test: tools ## Run every test: Rust, Python, end to end
	cargo test $(CARGO_TEST) --no-run
	@touch target/tests-built
	@$(MAKE) --no-print-directory --jobs 2 test-rust test-analysis
	@setup/build.sh
	$(PYTHON) -m pytest -n 2 -m binary analysis/tests
	$(PYTHON) -m pytest -n 2 --dist loadfile tests
	$(PYTHON) -m pytest -m alone tests

test-rust:
	cargo test $(CARGO_TEST)
	cargo test --release --locked --offline --workspace --doc

test-analysis:
	@setup/python.sh
	nice -n 19 $(PYTHON) -m pytest -m "not binary" analysis/tests

test-guest: setup ## Run what needs another kernel, in an emulated machine (see CONTRIBUTING.md)
	$(PYTHON) -m pytest -m guest tests/guest

test-roles: setup ## Play the roles of parallel file systems on stubs, and two on this machine (some minutes)
	$(PYTHON) -m pytest -m roles tests

test-cluster: setup ## Lose hosts, vary options of network file systems, look for secrets and listeners (some minutes, needs root)
	$(PYTHON) -m pytest -m cluster tests

test-controllers: setup ## Weights of disks, and the kernel's controller moved to version 2 and back, killed on the way (some minutes, needs root)
	WEIR_PATIENCE_S=400 $(PYTHON) -m pytest -m controllers tests

# Failing inputs are left in crates/fuzz/artifacts. It shares what is not weir's own with the other builds.
fuzz: tools ## Fuzz every parser (TARGET=study: one; FUZZ_S=60 seconds each)
	@FUZZ_S=$(FUZZ_S) crates/fuzz/run.sh $(TARGET)

test-unsafe: tools ## Run tests of unsafe code under Miri (nightly Rust) and Valgrind, as far as these are installed
	@crates/fuzz/unsafe.sh

molecule: setup ## Try out the roles on this machine, each with its way back (ROLE=nginx: one; some minutes, needs root and packages)
	@cd ansible && molecule --base-config molecule/config.yml test $(if $(ROLE),--scenario-name $(ROLE),--all)

durability: setup ## Kill database, application server and browsers of a bookshop in turn for ten minutes on each engine; no order may be lost
	WEIR_DURABILITY_S=600 cargo test --release --locked --offline --workspace --test site_killed -- --nocapture --test-threads 1

durability-live: setup ## Kill servers, clients and runs with policies and groups 50 times, and runs 100 times; no acknowledged write may be lost, nothing left, no setting changed
	WEIR_KILLS=50 cargo test --release --locked --offline -p weir-blockserver --test live a_killed_server -- --nocapture
	WEIR_KILLS=50 $(PYTHON) -m pytest -m controllers -k "whatever_is_killed or whenever_a_run_is_killed" tests
	WEIR_KILLS=100 $(PYTHON) -m pytest -m alone -s -k killed tests
	WEIR_FAULTS=all $(PYTHON) -m pytest -m alone -s tests/test_faults.py

lint: lint-code lint-roles ## Check the style of everything

lint-code: lint-rust lint-python

lint-rust: tools
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets -- -D warnings

lint-python: tools
	@setup/python.sh
	ruff check .
	ruff format --check .

lint-roles: tools
	@setup/python.sh
	ansible-lint -c ansible/.ansible-lint ansible

fmt: setup ## Put everything in style
	cargo fmt --all
	ruff check --fix .
	ruff format .

bench: bench-serve bench-live bench-replay bench-collect bench-traces bench-schedulers bench-web ## Measure the harness itself (on a quiet machine)

bench-replay: setup ## Lateness of the replayer, beside fio's
	cargo run --release --locked -p weir-replayer --example bench_replay

bench-collect: setup ## Overhead of the collector, in interleaved pairs with none
	@collectors/bench.sh

bench-serve: setup ## Service-time error and rate of the modelled disk
	cargo run --release --locked -p weir-blockserver --example bench_serve

bench-live: setup ## What a policy costs a server, in interleaved pairs with none
	cargo run --release --locked -p weir-blockserver --example bench_live

bench-traces: setup ## Speed of the trace readers, beside pandas' (and libCacheSim's, if it is installed)
	cargo run --release --locked -p weir-trace --example bench_readers
	cargo build --release --locked -p weir-trace --example count_requests
	$(PYTHON) crates/trace/benches/peers.py target/release/examples/count_requests

bench-caches: setup ## Rate of the cache simulators, beside libCacheSim's
	@crates/cache/bench_caches.sh

bench-hosts: setup ## What the playbook costs on 5 and on 50 hosts, which are network namespaces (needs root)
	$(PYTHON) ansible/bench/hosts.py

bench-simulator: setup ## Rate of the simulator, beside SimPy's
	@crates/simulator/bench.sh

bench-schedulers: setup ## Time of a decision of each scheduling policy, by requests that wait
	cargo run --release --locked -p weir-scheduler --example bench_policies
	cargo run --release --locked -p weir-scheduler --example bench_admission

bench-web: setup ## Requests per second of the browsers, beside wrk's, both asking an nginx of their own
	cargo run --release --locked -p weir-web-client --example bench_web

validate-drives: setup ## Check the disk models against traces of real drives (TRACES=folder with DiskSim's; FIT=1 fits them again)
	@test -n "$(TRACES)" || { echo "give TRACES=folder with DiskSim's validation traces (see docs/disks.md)" >&2; exit 2; }
	cargo run --release --locked -p weir-simulator --example validate_drives -- "$(TRACES)" $(if $(FIT),--fit) $(DRIVE)

clean: ## Take down devices of studies that died, remove what was built; never results
	@if [ -x target/release/weir ]; then target/release/weir clean; fi
	rm -rf target .venv .weir .pytest_cache .ruff_cache .hypothesis .ansible ansible/.ansible
