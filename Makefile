# `make` builds the product. Building needs a C compiler and CMake, and no network; `make deps`
# installs what is missing on Debian. `make test` is for every change, CI also runs `make test-all`.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
DESTDIR ?=
MAKEFLAGS += --no-print-directory

.PHONY: build deps deps-build demo test test-all test-long test-cross lint bench install deb wheel dist fuzz clean

build:                  ## the library and the commands: build/iron, build/iron-mpi, build/libiron.*
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DIRON_WERROR=OFF --log-level=NOTICE
	@cmake --build build -j $(JOBS)

deps:                   ## installs what building and testing need (Debian; as root or with sudo)
	@scripts/deps all

deps-build:
	@scripts/deps build

demo: deps-build        ## a short demonstration and race on the CPU, in minutes; iron-demo/report.html
	@cmake -S . -B build-demo -DIRON_BUILD_TESTS=OFF -DIRON_BUILD_BENCH=OFF -DIRON_PEERS=OFF \
	    -DIRON_MPI=OFF -DIRON_CUDA=OFF --log-level=NOTICE
	@cmake --build build-demo --target iron -j $(JOBS)
	@scripts/demo

test: deps              ## the tests to run before sending a change; 6 minutes on two cores
	@scripts/test quick

test-all: deps          ## the rest of CI: other compilers, sanitizers, full counts, browser, package
	@scripts/test all

test-long: deps build   ## sweeps, kill tests, fuzzing, Slurm and PyTorch, which are too long or large for CI
	@scripts/deps long
	@cmake --build build -j $(JOBS) --target tests
	@scripts/test-long

test-cross: build       ## the other architecture's selftest, under qemu
	@scripts/cross-selftest

lint: build             ## format, tidy, cppcheck, dependency law, headers
	@scripts/lint

bench: build            ## CPU variants compared with the measured memory bandwidth of this machine
	@cmake --build build -j $(JOBS) --target bench-tokens
	@build/bench-tokens --json build/bench.json

fuzz:                   ## libFuzzer, one minute per harness
	@scripts/fuzz

install: build          ## make install [PREFIX=/usr/local] [DESTDIR=]
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)

deb: build              ## Debian packages of this build: build/iron_*.deb, build/libiron-dev_*.deb
	@scripts/deb

wheel: build            ## a Python wheel with this build's library: build/iron_tokens-*.whl
	@scripts/wheel

dist: build             ## the files of a release: source, packages, SBOM, checksums: build/dist/
	@scripts/dist

clean:
	@rm -rf build build-ci build-demo build-dev build-tsan build-clang build-cross build-fuzz build-gpu iron-demo
