# The door to everything: each target says what it does and does it in a few lines. `make` alone
# builds. Building needs a C compiler and CMake and no network; `make deps` installs what is missing
# on Debian.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
DESTDIR ?=
MAKEFLAGS += --no-print-directory

.PHONY: build deps deps-build demo test test-release test-dev test-tsan test-clang test-cross \
        test-long lint bench install deb fuzz clean

build:                  ## the library and the command: build/iron, build/iron-mpi, build/libiron.*
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DIRON_WERROR=OFF --log-level=NOTICE
	@cmake --build build -j $(JOBS)

deps:                   ## installs what building and testing need (Debian; as root or with sudo)
	@scripts/deps all

deps-build:
	@scripts/deps build

demo: deps-build        ## the main job and a short race on the CPU, in minutes; iron-demo/report.html
	@cmake -S . -B build-demo -DIRON_BUILD_TESTS=OFF -DIRON_BUILD_BENCH=OFF -DIRON_PEERS=OFF \
	    -DIRON_MPI=OFF -DIRON_CUDA=OFF --log-level=NOTICE
	@cmake --build build-demo --target iron -j $(JOBS)
	@scripts/demo

test: deps              ## everything that CI runs, in build-ci and others; CTest comes last
	@scripts/test

test-long: deps build   ## the sweeps that take longer than CI should
	@scripts/test-long

test-release: build
	@ctest --preset release -j $(JOBS)

test-dev test-tsan test-clang: test-%:
	@cmake --preset $* --log-level=NOTICE
	@cmake --build --preset $* -j $(JOBS)
	@ctest --preset $* -j $(JOBS)

test-cross: build       ## the other architecture's selftest, under qemu
	@scripts/cross-selftest

lint: build             ## format, tidy, cppcheck, dependency law, headers, sizes
	@scripts/lint

bench: build            ## the CPU variants beside the ceiling of this machine's memory
	@build/bench-tokens --json build/bench.json

fuzz:                   ## libFuzzer, a minute each
	@scripts/fuzz

install: build          ## make install [PREFIX=/usr/local] [DESTDIR=]
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)

deb: build              ## Debian packages of this build: build/iron_*.deb, build/libiron-dev_*.deb
	@scripts/deb

clean:
	@rm -rf build build-ci build-demo build-dev build-tsan build-clang build-cross build-fuzz build-gpu iron-demo
