# weir: `make study` and `make test` are enough; `make help` lists the rest.
SHELL := /bin/bash
STUDY ?= quick
# For hosts.
KIND ?= netns
N ?= 2
HOSTS ?=
# For bench-analysis.
ROWS ?= 1e7
RUNS ?= 1000
# For test-fresh and test-packages.
DIST ?= bookworm
TESTS ?= yes
# Variables of make's command line. An unknown name or value ends make before anything is done.
READ := STUDY LABEL RETRY ATTEMPTS ANSIBLE_ARGS KIND N HOSTS ROLE TRACES FIT DRIVE DIST TESTS A B TO FORM CLASS CAPACITY_ARGS PAGE ROWS RUNS
# For fuzz.
TARGET ?=
FUZZ_S ?= 60
PYTHON := .venv/bin/python
CARGO_TEST := cargo test --locked --offline
# Molecule scenarios lie beside their roles. That of several roles lies in ansible/molecule.
SCENARIOS := {roles/*/,}molecule/*/molecule.yml
# Crates that touch no device, file system or network: their arithmetic is tested with overflow checks too.
PURE := weir-cache weir-records weir-scheduler weir-simulator weir-specs weir-study weir-trace weir-vocabulary weir-workload
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# Programs that setup/ installed come first; .weir/rust exists where the PATH has no Rust that is new enough.
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/.weir/rust:$(PATH)

# A comma, where make would read one as the end of an argument.
, := ,
# Not of the environment, where the word may mean something else.
label := $(if $(filter command,$(origin LABEL)),$(LABEL))
quoted = '$(subst ','\'',$(1))'
given := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
ARGUMENTS := python3 setup/arguments.py '$(MAKECMDGOALS)' '$(given)' $(foreach name,$(READ),$(call quoted,$(name)=$($(name))))
ifneq (,$(filter study watch hosts hosts-down report compare power precision variation capacity export figures molecule test-fresh test-packages,$(MAKECMDGOALS)))
# A new machine has no Python yet: setup installs it, then reads the arguments.
has_python := $(shell command -v python3)
problem := $(if $(has_python),$(shell $(ARGUMENTS)))
ifneq (,$(problem))
$(error $(problem))
endif
read_late := $(if $(has_python),,yes)
endif

.DEFAULT_GOAL := help
.PHONY: help tools setup study watch figures claims lab sample report compare power precision variation capacity export clean hosts hosts-down test test-rust test-python test-checked test-guest test-roles test-cluster test-controllers test-engines test-unsafe test-fresh packages test-packages test-image fuzz molecule durability durability-live lint lint-rust lint-python lint-roles lint-rust-version fmt reference docs bench bench-replay bench-collect bench-serve bench-live bench-traces bench-analysis bench-campaign bench-caches bench-simulator bench-studies bench-schedulers bench-web bench-hosts validate-drives validate-flash

help: ## Show this list
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Studies

# Debian packages, Rust and the crates: enough to build.
tools:
	@setup/packages.sh
	@setup/rust.sh
	@setup/crates.sh

setup: tools ## Install what is missing: Debian packages, Rust, the Python environment, the weir binary
	@$(if $(read_late),problem=$$($(ARGUMENTS)); [ -z "$$problem" ] || { echo "$$problem" >&2; exit 2; })
	@setup/python.sh
	@setup/build.sh

study: setup ## Run a study on this host and write its report (STUDY=quick, or a file; HOSTS=qemu N=1: on guests of this machine; LABEL=6.12 keeps its runs apart from those of other labels; RETRY=invalid repeats invalid runs; ATTEMPTS=3: attempts of a run that CPU steal made invalid)
	@$(if $(HOSTS),$(MAKE) --no-print-directory hosts KIND=$(HOSTS) HOSTS=)
	@ansible-playbook $(if $(HOSTS),-i .weir/hosts/inventory.yml) ansible/playbooks/study.yml -e '{"study": "$(STUDY)", $(if $(label),"label": "$(label)"$(,) )"weir_retry_invalid": $(if $(filter invalid,$(RETRY)),true,false), "weir_attempts": $(or $(ATTEMPTS),1)}' $(ANSIBLE_ARGS)

clean: ## Take down devices that killed studies left, remove what make built; never results
	@if [ -x target/release/weir ]; then target/release/weir clean; fi
	rm -rf target .venv .weir .pytest_cache .ruff_cache .hypothesis .ansible ansible/.ansible

##@ Hosts

hosts: setup ## Start hosts for studies and write their inventory (KIND=netns|qemu, N=2; KIND=ssh HOSTS=root@a,root@b:2222)
	@ansible-playbook -i ansible/inventories/localhost.yml ansible/playbooks/hosts.yml -e '{"kind": "$(KIND)", "hosts_netns_count": $(N), "hosts_qemu_count": $(N), "hosts_ssh_hosts": "$(HOSTS)"}' $(ANSIBLE_ARGS)
	@ansible-playbook -i .weir/hosts/inventory.yml ansible/playbooks/prepare_hosts.yml $(ANSIBLE_ARGS)

hosts-down: setup ## Take down the hosts that make hosts started, and no others
	@ansible-playbook -i ansible/inventories/localhost.yml ansible/playbooks/hosts_down.yml $(ANSIBLE_ARGS)

##@ Analysis

figures: setup ## Run the notebooks on your results, or on the sample (STUDY=mine: one study; STUDY=hds: simulate the missing runs of a paper first)
	@$(PYTHON) -m weir figures $(if $(filter-out file,$(origin STUDY)),--study $(STUDY))

claims: setup ## Write one page of all claims of papers: passage, limits, ours, status, links (after make figures)
	@$(PYTHON) -m weir claims

lab: ## Open the notebooks in JupyterLab, on this machine only (needs neither root nor results)
	@setup/python.sh
	@$(PYTHON) -m weir lab

sample: setup ## Make the sample results again, from results/ or in virtual time, and the notebooks on them
	@$(PYTHON) -m weir sample

report: setup ## Write the report of one study that has results (STUDY=quick)
	@$(PYTHON) -m weir report results/$(STUDY)

# No setup: it would build while a study runs.
watch: ## Show a study while it runs: progress, time left, effects, validity (STUDY=quick PAGE=watch.html)
	@setup/python.sh
	@$(PYTHON) -m weir watch $(call quoted,$(STUDY)) $(if $(PAGE),--page $(call quoted,$(PAGE)))

compare: setup ## Compare two results of one study: better, worse, same or undecided (A=quick@6.12 B=quick@6.18; or folders)
	@$(PYTHON) -m weir compare $(call quoted,$(A)) $(call quoted,$(B))

power: setup ## Print how many repetitions a change of 5, 10 and 20 % needs, and the time they take (STUDY=quick; its results are the pilot)
	@$(PYTHON) -m weir power $(call quoted,$(STUDY))

capacity: setup ## Search for the largest number of clients of a class at which all objectives are attained (STUDY=shenoy-limits CLASS=video)
	@$(PYTHON) -m weir capacity $(call quoted,$(STUDY)) --class $(call quoted,$(CLASS)) $(CAPACITY_ARGS)

# Exit code 4: more repetitions are needed.
precision: setup ## Print whether a study with precision needs more repetitions (STUDY=mine; make study adds them)
	@$(PYTHON) -m weir precision $(call quoted,$(STUDY)) || [ $$? -eq 4 ]

variation: setup ## Print how much of a metric's variation each factor and interaction explains (STUDY=quick)
	@$(PYTHON) -m weir variation $(call quoted,$(STUDY))

export: setup ## Write runs and requests of one study as tables for other tools (STUDY=quick TO=quick-tables FORM=parquet|csv|arrow)
	@$(PYTHON) -m weir export results/$(STUDY) $(call quoted,$(TO)) --$(or $(FORM),parquet)

##@ Tests

test: test-rust test-python ## Run every test that needs no special machine: Rust, Python, end to end

# Examples are compiled by lint.
test-rust: tools
	$(CARGO_TEST) --release --workspace --lib --bins --tests
	$(CARGO_TEST) --release --workspace --doc

# Tests marked `alone` watch the settings of the whole host.
test-python: setup
	$(PYTHON) -m pytest -n 2 analysis/tests
	$(PYTHON) -m pytest -n 2 --dist loadfile tests
	$(PYTHON) -m pytest -m alone tests

test-checked: tools ## Run the tests of crates without input or output again, with debug assertions and overflow checks
	$(CARGO_TEST) $(addprefix --package ,$(PURE)) --lib --tests

test-roles: setup ## Run the roles of parallel file systems on stub programs, and two on this machine (some minutes)
	$(PYTHON) -m pytest -m roles tests

test-cluster: setup ## Lose hosts, vary options of network file systems, look for secrets and open ports (some minutes, needs root)
	$(PYTHON) -m pytest -m cluster tests

test-controllers: setup ## Test disk weights, and the move of the I/O controller to cgroup version 2 and back (some minutes, needs root)
	WEIR_PATIENCE_S=400 $(PYTHON) -m pytest -m controllers tests

test-engines: setup ## Simulate by GNU parallel, HyperQueue, Slurm and Dask on Slurm, on this machine (installs them; needs root)
	@setup/engines/install.sh
	PYTHONPATH=.weir/engines WEIR_ENGINES=all $(PYTHON) -m pytest -rs tests/test_engines.py

test-guest: setup ## Run tests that need another kernel in an emulated machine (see CONTRIBUTING.md)
	$(PYTHON) -m pytest -m guest tests/guest

test-unsafe: tools ## Run tests of unsafe code under Miri (nightly Rust) and Valgrind, if they are installed
	@crates/fuzz/unsafe.sh

test-fresh: ## Make a clean root of Debian and set up, run a study and the tests in it (DIST=bookworm|trixie; TESTS=no: only set-up and study; needs root)
	@tests/fresh/run.sh $(DIST) $(TESTS)

# Failing inputs are left in crates/fuzz/artifacts.
fuzz: tools ## Fuzz every parser (TARGET=study: one; FUZZ_S=60: seconds for each)
	@FUZZ_S=$(FUZZ_S) crates/fuzz/run.sh $(TARGET)

molecule: setup ## Apply, check and take back the roles on this machine (ROLE=nginx: one; some minutes, needs root, installs packages)
	@cd ansible && MOLECULE_GLOB='$(SCENARIOS)' molecule --base-config molecule/config.yml test $(if $(ROLE),--scenario-name $(ROLE),--all)

durability: setup ## Kill database, server and browsers for ten minutes on each engine; every acknowledged order must survive
	WEIR_DURABILITY_S=600 $(CARGO_TEST) --release --workspace --test site_killed -- --nocapture --test-threads 1

durability-live: setup ## Kill servers, clients and runs 50 to 100 times; every acknowledged write must survive, every setting is restored
	WEIR_KILLS=50 $(CARGO_TEST) --release -p weir-blockserver --test scheduled a_killed_server -- --nocapture
	WEIR_KILLS=50 $(PYTHON) -m pytest -m controllers -k "whatever_is_killed or whenever_a_run_is_killed" tests
	WEIR_KILLS=100 $(PYTHON) -m pytest -m alone -s -k killed tests
	WEIR_KILLS=100 $(PYTHON) -m pytest -k workers_that_are_killed tests/test_dask.py
	WEIR_FAULTS=all $(PYTHON) -m pytest -m alone -s tests/test_faults.py

##@ Benchmarks

bench: bench-serve bench-live bench-replay bench-collect bench-traces bench-schedulers bench-simulator bench-web $(if $(MQSIM),validate-flash) $(if $(TRACES),validate-drives) ## Measure the harness itself (on a quiet machine; MQSIM=, TRACES=: also the comparisons of models below)

bench-replay: setup ## Lateness of the replayer, compared with fio
	cargo run --release --locked -p weir-replayer --example bench_replay

bench-collect: setup ## Overhead of the collector, in interleaved pairs with and without
	@collectors/bench.sh

bench-serve: setup ## Service-time error and request rate of the modelled disk
	cargo run --release --locked -p weir-blockserver --example bench_serve

bench-live: setup ## Overhead of a scheduler in a block server, in interleaved pairs with and without
	cargo run --release --locked -p weir-blockserver --example bench_live

bench-traces: setup ## Speed of the trace readers, compared with pandas (and libCacheSim, if it is installed)
	cargo run --release --locked -p weir-trace --example bench_readers
	cargo build --release --locked -p weir-trace --example count_requests
	$(PYTHON) crates/trace/benches/peers.py target/release/examples/count_requests

bench-analysis: setup ## Time and memory of metrics, summary and report, beside DuckDB (ROWS=1e7: requests of the largest run; RUNS=1000)
	$(PYTHON) analysis/bench/analysis.py --rows $(call quoted,$(ROWS)) --runs $(call quoted,$(RUNS))

bench-campaign: setup ## Overhead of Dask for each run, in interleaved pairs with weir simulate --jobs 2 (RUNS=2000)
	$(PYTHON) analysis/bench/campaign.py $(if $(filter command,$(origin RUNS)),--runs $(call quoted,$(RUNS)))

bench-caches: setup ## Rate of the cache simulators, compared with libCacheSim
	@crates/cache/bench_caches.sh

bench-hosts: setup ## Overhead of the playbook on 5 and 50 hosts, which are network namespaces (needs root)
	$(PYTHON) ansible/bench/hosts.py

bench-simulator: setup ## Rate of the simulator, compared with SimPy
	@crates/simulator/bench.sh

bench-studies: setup ## Rate of whole simulated studies, beside the bare simulator (STUDY=shenoy-grid: that study alone)
	cargo build --release --locked --quiet -p weir-simulator --example bench_simulator
	$(PYTHON) crates/simulator/benches/studies.py $(if $(filter command,$(origin STUDY)),$(call quoted,$(STUDY)))

bench-schedulers: setup ## Time of one decision of each scheduler, by number of waiting requests
	cargo run --release --locked -p weir-scheduler --example bench_policies
	cargo run --release --locked -p weir-scheduler --example bench_admission

bench-web: setup ## Requests per second of the browsers and of wrk, on the same nginx
	cargo run --release --locked -p weir-web-client --example bench_web

validate-flash: setup ## Compare the flash model with MQSim (MQSIM=folder of its source and binary; some minutes)
	@test -n "$(MQSIM)" || { echo "give MQSIM=folder with the source and binary of MQSim (see docs/reference/disks.md)" >&2; exit 2; }
	cargo build --release --locked --quiet -p weir-simulator --example validate_flash
	$(PYTHON) crates/simulator/benches/mqsim_peer.py $(call quoted,$(MQSIM))

validate-drives: setup ## Compare the disk models with traces of real drives (TRACES=folder of DiskSim's traces; FIT=1 fits the models again)
	@test -n "$(TRACES)" || { echo "give TRACES=folder with DiskSim's validation traces (see docs/reference/disks.md)" >&2; exit 2; }
	cargo run --release --locked -p weir-simulator --example validate_drives -- "$(TRACES)" $(if $(FIT),--fit) $(DRIVE)

##@ Packages

packages: setup ## Build the wheel, the Debian package and the Ansible collection in dist/ (on Debian 12; see docs/how-to/install.md)
	@setup/package/build.sh

test-packages: packages ## Install the packages in clean roots of Debian 12 and 13 and run a study with each (DIST=trixie: one release; DIST=noble: Ubuntu 24.04; needs root)
	@tests/packages/run.sh $(if $(filter command,$(origin DIST)),$(DIST),bookworm trixie)

test-image: packages ## Build both container images, run studies in one and set up a clone in the other (needs root and podman)
	@tests/packages/image.sh

##@ Development

lint: lint-rust lint-python lint-roles docs ## Check the style of everything, and build the documentation site

lint-rust: tools
	@setup/rust.sh --lint
	cargo fmt --all --check
	cargo clippy --release --locked --offline --workspace --all-targets -- -D warnings

lint-python: tools
	@setup/python.sh
	ruff check .
	ruff format --check .

lint-roles: tools
	@setup/python.sh
	ansible-lint -c ansible/.ansible-lint ansible

lint-rust-version: tools ## Check the workspace with the oldest Rust that Cargo.toml promises (rustup toolchain install 1.89)
	@setup/rust.sh --check-oldest

fmt: setup ## Put everything in style
	cargo fmt --all
	ruff check --fix .
	ruff format .

reference: setup ## Write generated pages and tables again: commands, fields, columns, names, labels of schedulers
	@$(PYTHON) docs/generate.py

# A warning is an error: a dead link, a page that no index names, a docstring that cannot be shown.
docs: ## Build the documentation site in .weir/docs (HTML with search; needs no binary and no root)
	@setup/python.sh
	@$(PYTHON) -c 'import furo, myst_nb, sphinx' 2>/dev/null || uv pip install --quiet --python $(PYTHON) --require-hashes -r docs/requirements.lock
	@$(PYTHON) -m sphinx -q -n -W --keep-going -c docs . .weir/docs
	@echo "documentation: .weir/docs/index.html"
