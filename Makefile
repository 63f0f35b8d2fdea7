# The commands people type. They call CMake's presets (CMakePresets.json); each builds in its own folder.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
# Of `make fuzz`: each target's. Of `make torture`: where, how many rounds; of both, what they are drawn from.
SECONDS ?= 60
LAUNCHER ?= local
ROUNDS ?= 20
SEED ?= $(shell date +%s)
# Of `make lint`: sources by units, or each by itself. (make has a LINT of its own.)
TIDY ?= units
SOURCES = $(shell find src include plugins tests bench -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh')
SCRIPTS = $(shell grep -rlE '^.!/(usr/bin/env bash|bin/(ba)?sh)' scripts .ci plugins tests bench 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help packages configure build programs demo test test-cuda test-cluster build-sanitized test-sanitized fuzz torture test-mutations test-kubelet test-bare test-trixie test-newest-slurm lint format bench install bundle test-bundle test-bundle-bytes release picture clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

packages:
	@scripts/install-packages.sh

# AUTO, ON or OFF: build the CUDA device where the toolkit is, always or never.
CUDA = AUTO
PRESET = cmake --preset release -DRIDGELINE_CUDA=$(CUDA)
# What nvcc compiles each kernel for, where there is one: all is what is installed and what CI checks, and takes four times
# as long.
ARCHITECTURES ?= 90
# Sources that are compiled at once: 32 take an eighth less than 8 where all is built, as in CI, and longer after a change.
UNITY ?= 8
configure: packages
	@$(PRESET) -DRIDGELINE_TESTS=ON '-DRIDGELINE_CUDA_ARCHITECTURES=$(ARCHITECTURES)' \
	  -DCMAKE_UNITY_BUILD_BATCH_SIZE=$(UNITY)

# Without the tests, and without what packages.txt lists for them; a build folder that has them keeps them.
programs:
	@scripts/install-packages.sh build
	@$(PRESET) -URIDGELINE_CUDA_ARCHITECTURES $(if $(wildcard build/CMakeCache.txt),,-DRIDGELINE_TESTS=OFF)

build: configure ## Build everything into build/ (Release)
	cmake --build build -j $(JOBS)

demo: programs ## Build what sweeps/demo.yaml takes, and run it on this machine
	cmake --build build -j $(JOBS) --target ridgeline ridgeline-train ridgeline-launcher-local
	build/bin/ridgeline run sweeps/demo.yaml

# Some of the tests wait: twice as many at once as two cores have to do.
test: build ## Build and run every test that needs no cluster
	ctest --test-dir build --output-on-failure --no-tests=error -j 4 -LE 'slurm|k8s|kubelet'

# Every build has the tests of the second line, and what they look at is not the same with the toolkit.
test-cuda: override CUDA = ON
test-cuda: build ## Build with the CUDA toolkit, and run the tests that it adds to make test; they need no GPU
	ctest --test-dir build --output-on-failure --no-tests=error -j 4 -L cuda
	ctest --test-dir build --output-on-failure --no-tests=error -j 4 -R '^(Registration|Street|Install|TrainCommandTest)\.|^first_hour\.gpu'

# They wait more than they work: many at once, however few the cores.
test-cluster: ## Install real schedulers (packages.txt, "Cluster tests"), and run the launchers' tests on them
	@scripts/install-packages.sh cluster
	@$(PRESET) -DRIDGELINE_TESTS=ON
	cmake --build build -j $(JOBS)
	tests/cluster/kubernetes-build build/kubernetes || [ $$? -eq 77 ]
	ctest --test-dir build --output-on-failure -j 6 -L 'slurm|k8s'

# One after another, as they share a node. Nothing is installed or built where no kubelet can run.
test-kubelet: ## The Kubernetes launcher on a real kubelet and containerd, in folders of their own (as root)
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

# AddressSanitizer keeps the last 16 MB that were freed, not 256, and the last 64 KB of each size of frames, not 1 MB: a
# program that starts, forks or ends pays for each page.
test-sanitized: build-sanitized ## The tests under AddressSanitizer + UBSan, and under ThreadSanitizer where threads meet
	ASAN_OPTIONS=detect_stack_use_after_return=1:quarantine_size_mb=16:malloc_context_size=10:max_uar_stack_size_log=16 \
	  UBSAN_OPTIONS=print_stacktrace=1 LSAN_OPTIONS=suppressions=$(CURDIR)/tests/leak_sanitizer.supp:print_suppressions=0 \
	  ctest --test-dir build-address --output-on-failure -j 4 -LE 'slurm|k8s|kubelet'
	TSAN_OPTIONS="suppressions=$(CURDIR)/tests/thread_sanitizer.supp history_size=7" \
	  ctest --test-dir build-thread --output-on-failure -j 4 -L threads

fuzz: packages ## Give what reads bytes from outside any bytes at all: SECONDS=60 for each target of tests/fuzz
	@cmake --preset address
	cmake --build build-address -j $(JOBS) --target fuzz
	RIDGELINE_FUZZ_SEED=$(SEED) tests/fuzz/fuzz build-address $(SECONDS)

# The program of each launcher's rounds.
torture_local = test_torture
torture_slurm = test_cluster_slurm
torture_kubernetes = test_cluster_kubernetes
# What it skips its rounds without; the cluster is gone with the shell that starts both.
torture_kubernetes_before = tests/cluster/kubernetes-build build/kubernetes && tests/cluster/kubernetes-shared up build &&

torture: build ## Strike sweeps at random moments: ROUNDS=20, SEED=… to see one again, LAUNCHER=local, slurm or kubernetes
	$(torture_$(LAUNCHER)_before) RIDGELINE_TORTURE_ROUNDS=$(ROUNDS) RIDGELINE_TORTURE_SEED=$(SEED) \
	  build/tests/$(torture_$(LAUNCHER)) --gtest_filter='*Torture*'

test-mutations: build ## Put faults into the CUDA kernels, one at a time, and ask that the test named for each fails
	tests/cuda_on_cpu/mutations build

test-bare: ## make demo and make test on a fresh Debian 12 with git and make, in a folder of its own (as root)
	scripts/in-debian.sh bookworm bare

test-trixie: ## Build and test on Debian 13, in a folder of its own (as root)
	scripts/in-debian.sh trixie

test-newest-slurm: ## The launcher's tests on Debian testing's Slurm, in a folder of its own (as root)
	scripts/in-debian.sh testing slurm

lint: packages ## clang-format, clang-tidy and shellcheck, all with warnings as errors; TIDY=each: every source by itself
	clang-format --dry-run -Werror $(SOURCES)
	shellcheck $(SCRIPTS)
	@cmake --preset lint
	cmake --build build-lint --target rl_version
	@cmake --preset lint-units
	cmake --build build-lint/units --target rl_version
	scripts/clang-tidy.sh $(TIDY) $(JOBS)

format: ## Lay out every source as .clang-format says
	clang-format -i $(SOURCES)

bench: packages ## Build and run the benchmarks of bench/
	@$(PRESET) -DRIDGELINE_BENCH=ON
	cmake --build build -j $(JOBS)
	@set -e; for bench in build/bench/bench_*; do echo "== $$bench"; $$bench; done
	bench/ranks.sh build

install: programs ## Install under PREFIX (default /usr/local)
	cmake --build build -j $(JOBS)
	cmake --install build --prefix '$(PREFIX)'

bundle: programs ## Make ridgeline-VERSION-ARCHITECTURE.tar.xz, which runs where nothing is installed (docs/install.md)
	cmake --build build -j $(JOBS)
	scripts/bundle.sh build

SUITES ?= bullseye bookworm trixie focal jammy noble
test-bundle: bundle ## Run the bundle on Debian 11-13 and Ubuntu 20.04-24.04, through Slurm too (as root, by debootstrap)
	tests/install/other-systems.sh ridgeline-*-$(shell uname -m).tar.xz $(SUITES)

test-bundle-bytes: packages ## Build the last commit in two folders, and ask that both bundles are the same bytes
	tests/install/same-bytes.sh

release: bundle ## Make release/: the bundle and its checksum; and the container images, by podman, buildah or docker
	scripts/release.sh ridgeline-*-$(shell uname -m).tar.xz

picture: demo ## Draw docs/report.png, the README's picture, from the demo's report
	scripts/picture.sh

clean: ## Remove the build folders
	rm -rf build build-address build-thread build-lint
