# The front door: `make demo` shows kith at work, `make check` tests it. CMake does the building.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
MAKEFLAGS += --no-print-directory
# What sanitizers and the second compiler see of the long lists of cases moves on with every commit.
TURN := $(shell git rev-list --count HEAD 2>/dev/null || echo 0)

.PHONY: all demo check test sanitize threads clang format-check tidy bench install clean
all: $(BUILD)/Makefile
	@cmake --build $(BUILD) -j $(JOBS)

$(BUILD)/Makefile:
	@scripts/install-deps build
	@cmake -S . -B $(BUILD) -DKITH_WERROR=ON >/dev/null

# The command alone, so that a first impression does not wait for the tests to be built.
demo: $(BUILD)/Makefile
	@cmake --build $(BUILD) -j $(JOBS) --target kith
	@examples/demo.sh $(BUILD)/cli/kith

# Everything that must hold before a change lands.
check: dependencies format-check test sanitize threads clang
	@echo "make check: all passed"

.PHONY: dependencies
dependencies:
	@scripts/install-deps check

# CUDA code is compiled for one kind of GPU here; `make` builds it for all, which takes ten minutes on two cores.
test:
	@scripts/install-deps build
	@cmake -S . -B $(BUILD)-check -DKITH_WERROR=ON -DKITH_CUDA_ARCHITECTURES=90 >/dev/null
	@cmake --build $(BUILD)-check -j $(JOBS)
	@ctest --test-dir $(BUILD)-check --output-on-failure -j $(JOBS)

# The tests again under the address and undefined-behaviour sanitizers; -g1 is enough for their reports.
sanitize:
	@cmake -S . -B $(BUILD)-sanitize -DKITH_WERROR=ON -DKITH_FAULTS=ON -DKITH_SANITIZE=address,undefined \
	  -DKITH_TURN=$(TURN) -DCMAKE_C_FLAGS_RELEASE="-O2 -g1" >/dev/null
	@cmake --build $(BUILD)-sanitize -j $(JOBS)
	@ctest --test-dir $(BUILD)-sanitize --output-on-failure -j $(JOBS)

# Those where threads meet, under the thread sanitizer; little optimised, since that is built sooner.
threads:
	@cmake -S . -B $(BUILD)-threads -DKITH_WERROR=ON -DKITH_CUDA=OFF -DKITH_FAULTS=ON -DKITH_SANITIZE=thread \
	  -DCMAKE_C_FLAGS_RELEASE="-O1 -g1" >/dev/null
	@cmake --build $(BUILD)-threads -j $(JOBS) --target test_base test_sink test_deque test_hybrid conformance fault_races
	@ctest --test-dir $(BUILD)-threads --output-on-failure -j $(JOBS) -R '^(unit_base|unit_sink|unit_deque|unit_hybrid|conformance|fault_races)$$'

# The second compiler must be free of warnings too, and answer alike: other cases than the sanitizers see.
clang:
	@CC=clang CXX=clang++ cmake -S . -B $(BUILD)-clang -DKITH_WERROR=ON -DKITH_CUDA=OFF -DKITH_EVERY=7 \
	  -DKITH_TURN=$$(($(TURN) + 3)) >/dev/null
	@cmake --build $(BUILD)-clang -j $(JOBS)
	@ctest --test-dir $(BUILD)-clang --output-on-failure -j $(JOBS) -R 'conformance|header|random'

format-check:
	@git ls-files '*.c' '*.h' '*.cc' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror

tidy: all
	@git ls-files 'src/*.c' 'cli/*.c' | grep -v kernels_avx | xargs clang-tidy -quiet -p $(BUILD)

bench: all
	@scripts/install-deps bench
	@bench/run.sh $(BUILD)

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	@rm -rf $(BUILD) $(BUILD)-check $(BUILD)-sanitize $(BUILD)-threads $(BUILD)-clang
