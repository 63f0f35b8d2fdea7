# The project's commands. They call CMake's presets (CMakePresets.json), each of which builds in its own folder.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
# SECONDS: how long `make fuzz` runs each target. LAUNCHER and ROUNDS: where `make torture` runs, and how many rounds.
# SEED: the random seed of both.
SECONDS ?= 60
LAUNCHER ?= local
ROUNDS ?= 20
SEED ?= $(shell date +%s)
# TIDY: whether `make lint` checks sources in units, or each by itself. (make has a LINT of its own.)
TIDY ?= units
SOURCES = $(shell find src include plugins tests bench -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh')
SCRIPTS = $(shell grep -rlE '^.!/(usr/bin/env bash|bin/(ba)?sh)' scripts .ci plugins tests bench 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help packages configure build programs demo test test-cuda test-cluster build-sanitized test-sanitized fuzz torture test-mutations test-kubelet test-bare test-trixie test-newest-slurm lint format bench install bundle test-bundle test-bundle-bytes release picture docs clean

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

packages:
	@scripts/install-packages.sh

# AUTO, ON or OFF: build the CUDA device if the toolkit is installed, always or never.
CUDA = AUTO
PRESET = cmake --preset release -DRIDGELINE_CUDA=$(CUDA)
# The architectures for which nvcc, if installed, compiles each kernel. An installation and CI compile for all of them,
# which is four times as slow.
ARCHITECTURES ?= 90
# The number of sources that are compiled as one. A full build, as in CI, takes an eighth less time with 32 than with 8.
# A build after a change takes longer.
UNITY ?= 8
configure: packages
	@$(PRESET) -DRIDGELINE_TESTS=ON '-DRIDGELINE_CUDA_ARCHITECTURES=$(ARCHITECTURES)' \
	  -DCMAKE_UNITY_BUILD_BATCH_SIZE=$(UNITY)

# Builds without the tests and without the packages that packages.txt lists for them. A build folder with tests keeps them.
programs:
	@scripts/install-packages.sh build
	@$(PRESET) -URIDGELINE_CUDA_ARCHITECTURES $(if $(wildcard build/CMakeCache.txt),,-DRIDGELINE_TESTS=OFF)

build: configure ## Build everything into build/ (Release)
	cmake --build build -j $(JOBS)

demo: programs ## Build what sweeps/demo.yaml needs, and run it on this machine
	cmake --build build -j $(JOBS) --target ridgeline ridgeline-train ridgeline-launcher-local
	build/bin/ridgeline run sweeps/demo.yaml

# Some tests wait, so two cores run four at once.
test: build ## Build and run every test that needs no cluster
	ctest --test-dir build --output-on-failure --no-tests=error -j 4 -LE 'slurm|k8s|kubelet'

# Every build has the tests of the second line, but the toolkit changes what they check.
test-cuda: override CUDA = ON
test-cuda: build ## Build with the CUDA toolkit, and run the tests that it adds to make test; no GPU needed
	ctest --test-dir build --output-on-failure --no-tests=error -j 4 -L cuda
	ctest --test-dir build --output-on-failure --no-tests=error -j 4 -R '^(Registration|Street|TrainCommandTest)\.|^test_install$$|^first_hour\.gpu'

# Cluster tests wait more than they work, so many run at once even on few cores.
test-cluster: ## Install real schedulers (packages.txt, "Cluster tests"), and run the launchers' tests on them
	@scripts/install-packages.sh cluster
	@$(PRESET) -DRIDGELINE_TESTS=ON
	cmake --build build -j $(JOBS)
	tests/cluster/kubernetes-build build/kubernetes || [ $$? -eq 77 ]
	ctest --test-dir build --output-on-failure -j 6 -L 'slurm|k8s'

# These tests run one after another, as they share a node. If no kubelet can run here, nothing is installed or built.
test-kubelet: ## Test the Kubernetes launcher on a real kubelet and containerd, in their own folders (as root)
	@tests/cluster/kubelet-node check machine
	@scripts/install-packages.sh kubelet
	@tests/cluster/kubelet-node check
	@$(PRESET) -DRIDGELINE_TESTS=ON
	cmake --build build -j $(JOBS) --target test_cluster_kubelet
	tests/cluster/kubernetes-build build/kubernetes kubelet
	ctest --test-dir build --output-on-failure -L kubelet

build-sanitized: packages ## Build what `make test-sanitized` runs
	@cmake --preset address
	cmake --build --preset address -j $(JOBS)
	@cmake --preset thread
	cmake --build --preset thread -j $(JOBS)

# AddressSanitizer keeps the last 16 MB of freed memory, not 256, and the last 64 KB of each size of frames, not 1 MB,
# because a program that starts, forks or ends pays for each page.
test-sanitized: build-sanitized ## Run the tests under AddressSanitizer, UBSan and ThreadSanitizer; WITHOUT=REGEX leaves some out
	ASAN_OPTIONS=detect_stack_use_after_return=1:quarantine_size_mb=16:malloc_context_size=10:max_uar_stack_size_log=16 \
	  UBSAN_OPTIONS=print_stacktrace=1 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/leak_sanitizer.supp:print_suppressions=0 \
	  ctest --test-dir build-address --output-on-failure -j 4 -LE 'slurm|k8s|kubelet' $(if $(WITHOUT),-E '$(WITHOUT)')
	TSAN_OPTIONS="suppressions=$(CURDIR)/tests/thread_sanitizer.supp history_size=7" \
	  ctest --test-dir build-thread --output-on-failure -j 4 -L threads

fuzz: packages ## Fuzz everything that reads bytes from outside: SECONDS=60 for each target of tests/fuzz
	@cmake --preset address
	cmake --build build-address -j $(JOBS) --target fuzz
	RIDGELINE_FUZZ_SEED=$(SEED) tests/fuzz/fuzz build-address $(SECONDS)

# The test program of each launcher.
torture_local = test_torture
torture_slurm = test_cluster_slurm
torture_kubernetes = test_cluster_kubernetes
torture_sagemaker = test_cluster_sagemaker
# Without this, the program skips its rounds. The cluster ends with the shell that starts both.
torture_kubernetes_before = tests/cluster/kubernetes-build build/kubernetes && tests/cluster/kubernetes-shared up build &&

torture: build ## Inject faults into sweeps at random: ROUNDS=20, SEED=… to repeat, LAUNCHER=local, slurm, kubernetes or sagemaker
	$(torture_$(LAUNCHER)_before) RIDGELINE_TORTURE_ROUNDS=$(ROUNDS) RIDGELINE_TORTURE_SEED=$(SEED) \
	  build/tests/$(torture_$(LAUNCHER)) --gtest_filter='*Torture*'

test-mutations: build ## Put faults into the CUDA kernels, one at a time, and require that the test named for each fails
	tests/cuda_on_cpu/mutations build

test-bare: ## Run make demo and make test on a fresh Debian 12 with git and make, in its own folder (as root)
	scripts/in-debian.sh bookworm bare

test-trixie: ## Build and test on Debian 13, in its own folder (as root)
	scripts/in-debian.sh trixie

test-newest-slurm: ## Run the launcher's tests on Debian testing's Slurm, in its own folder (as root)
	scripts/in-debian.sh testing slurm

lint: packages ## Run prose.py, docs.sh, clang-format, shellcheck and clang-tidy, warnings as errors; TIDY=each: source by source
	scripts/prose.py .
	scripts/docs.sh check
	clang-format --dry-run -Werror $(SOURCES)
	shellcheck $(SCRIPTS)
	@cmake --preset lint
	cmake --build build-lint --target rl_version
	@cmake --preset lint-units
	cmake --build build-lint/units --target rl_version
	scripts/clang-tidy.sh $(TIDY) $(JOBS)

format: ## Format every source by .clang-format
	clang-format -i $(SOURCES)

bench: packages ## Build and run the benchmarks of bench/
	@$(PRESET) -DRIDGELINE_BENCH=ON
	cmake --build build -j $(JOBS)
	@set -e; for bench in build/bench/bench_*; do echo "== $$bench"; $$bench; done
	bench/ranks.sh build

install: programs ## Install under PREFIX (default /usr/local)
	cmake --build build -j $(JOBS)
	cmake --install build --prefix '$(PREFIX)'

# The bundle of this version. Older ones may lie beside it.
BUNDLE = ridgeline-$$(build/bin/ridgeline version | sed -nE '1s/^ridgeline ([^ ]+).*/\1/p')-$(shell uname -m).tar.xz
bundle: programs ## Make ridgeline-VERSION-ARCHITECTURE.tar.xz, which needs no installed packages (docs/install.md)
	cmake --build build -j $(JOBS)
	scripts/bundle.sh build

SUITES ?= bullseye bookworm trixie focal jammy noble
test-bundle: bundle ## Run the bundle on Debian 11-13 and Ubuntu 20.04-24.04, through Slurm too (as root, by debootstrap)
	tests/install/other-systems.sh $(BUNDLE) $(SUITES)

test-bundle-bytes: packages ## Build the last commit in two folders, and require that both bundles have the same bytes
	tests/install/same-bytes.sh

release: bundle ## Make release/: the bundle and its checksum; and the container images, by podman, buildah or docker
	scripts/release.sh $(BUNDLE)

picture: demo ## Draw docs/report.png, the README's picture, from the demo's report
	scripts/picture.sh

docs: programs ## Build the documentation's site, build/docs/site/index.html; needs no network
	@scripts/install-packages.sh
	cmake --build build -j $(JOBS) --target ridgeline ridgeline-train ridgeline-launcher-local
	scripts/docs.sh build

clean: ## Remove the build folders
	rm -rf build build-address build-thread build-lint
