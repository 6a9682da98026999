/* The memory budget: see memory.h.
 *
 * Layout of a block: a 64-byte header, then the bytes handed out. Blocks of 4 MiB and more are aligned to
 * huge pages and ask for them: the join touches its arrays once, and page faults would cost more than the
 * arithmetic. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER_BYTES = 64, HUGE_FROM = 4 << 20, HUGE_PAGE = 2 << 20 };

typedef struct block_header {
  kith_memory *memory; /* NULL once released */
  uint64_t bytes;
  bool is_result;
} block_header;

_Static_assert(sizeof(block_header) <= HEADER_BYTES, "the header must fit in front of a block");

static _Atomic uint64_t fail_countdown;

void kith_memory_fail_nth(uint64_t n) { atomic_store(&fail_countdown, n); }

static bool injected_failure(void) {
  uint64_t left = atomic_load(&fail_countdown);
  while (left > 0)
    if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
      return left == 1;
  return false;
}

static void raise_peak(kith_memory *memory) {
  uint64_t now = atomic_load(&memory->used) + atomic_load(&memory->results);
  uint64_t peak = atomic_load(&memory->peak);
  while (now > peak && !atomic_compare_exchange_weak(&memory->peak, &peak, now)) {
  }
}

static bool reserve(kith_memory *memory, uint64_t bytes, bool is_result) {
  if (is_result) {
    atomic_fetch_add(&memory->results, bytes);
    return true;
  }
  uint64_t used = atomic_load(&memory->used);
  do {
    if (bytes > memory->limit || used > memory->limit - bytes)
      return false;
  } while (!atomic_compare_exchange_weak(&memory->used, &used, used + bytes));
  return true;
}

static void unreserve(kith_memory *memory, uint64_t bytes, bool is_result) {
  atomic_fetch_sub(is_result ? &memory->results : &memory->used, bytes);
}

static void *system_alloc(uint64_t bytes) {
  bool huge = bytes >= HUGE_FROM;
  uint64_t align = huge ? HUGE_PAGE : 64;
  uint64_t total = (bytes + HEADER_BYTES + align - 1) / align * align;
  void *base = aligned_alloc(align, total);
  if (base && huge)
    madvise(base, total, MADV_HUGEPAGE);
  return base;
}

static void *allocate(kith_memory *memory, uint64_t bytes, bool is_result) {
  if (bytes > (UINT64_MAX >> 2) || injected_failure() || !reserve(memory, bytes, is_result))
    return NULL;
  char *base = system_alloc(bytes);
  if (!base) {
    unreserve(memory, bytes, is_result);
    return NULL;
  }
  *(block_header *)base = (block_header){.memory = memory, .bytes = bytes, .is_result = is_result};
  raise_peak(memory);
  return base + HEADER_BYTES;
}

void *kith_alloc(kith_memory *memory, uint64_t bytes) { return allocate(memory, bytes, false); }

void *kith_alloc_result(kith_memory *memory, uint64_t bytes) { return allocate(memory, bytes, true); }

static block_header *header_of(void *block) { return (block_header *)((char *)block - HEADER_BYTES); }

void kith_release_result(void *block) {
  if (!block)
    return;
  block_header *header = header_of(block);
  if (header->memory)
    unreserve(header->memory, header->bytes, header->is_result);
  header->memory = NULL;
}

void kith_free(void *block) {
  if (!block)
    return;
  kith_release_result(block);
  free(header_of(block));
}

uint64_t kith_memory_left(const kith_memory *memory) {
  uint64_t used = atomic_load(&memory->used);
  return used < memory->limit ? memory->limit - used : 0;
}

/* Reads one number from a file whose line starts with `prefix` (the whole file if prefix is ""). */
static uint64_t read_number(const char *path, const char *prefix) {
  FILE *file = fopen(path, "re");
  if (!file)
    return UINT64_MAX;
  char line[256];
  uint64_t value = UINT64_MAX;
  size_t skip = strlen(prefix);
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, prefix, skip) != 0)
      continue;
    char *end;
    unsigned long long number = strtoull(line + skip, &end, 10);
    if (end != line + skip)
      value = number;
    break;
  }
  fclose(file);
  return value;
}

uint64_t kith_system_memory_free(void) {
  uint64_t kib = read_number("/proc/meminfo", "MemAvailable:");
  uint64_t bytes = kib == UINT64_MAX ? UINT64_C(1) << 30 : kib * 1024;
  uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "");
  uint64_t current = read_number("/sys/fs/cgroup/memory.current", "");
  uint64_t cache = read_number("/sys/fs/cgroup/memory.stat", "file "); /* given back when needed */
  if (limit != UINT64_MAX && current != UINT64_MAX) {
    uint64_t taken = cache < current ? current - cache : current;
    uint64_t left = limit > taken ? limit - taken : 0;
    if (left < bytes)
      bytes = left;
  }
  return bytes;
}
