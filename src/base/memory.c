/* The memory budget: see memory.h.
 *
 * Layout of a block: a 64-byte header, then the bytes handed out. Blocks of 3 MiB and more are aligned to
 * huge pages and ask for them: the join touches its arrays once, and page faults would cost more than the
 * arithmetic.
 *
 * For the same reason the last few large blocks that were released are kept aside. Their pages are lazily free
 * (MADV_FREE): the system takes them whenever it needs memory, and until then the next block has them without
 * a page fault and without clearing, which halves the time of writing a large result. */
#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER_BYTES = 64, HUGE_FROM = 3 << 20, HUGE_PAGE = 2 << 20 };

typedef struct block_header {
  kith_memory *memory; /* NULL once released */
  uint64_t bytes;
  uint64_t room; /* that the system gave, header included */
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

/* ---- large blocks kept aside ---------------------------------------------------------------------------- */

enum { SPARES = 16, WIDEST_SPARE = 4 };

typedef struct spare_block {
  void *base;
  uint64_t room;
} spare_block;

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static spare_block spares[SPARES]; /* the longest kept first; behind the last one base is NULL */

/* Takes entry i out of the list. */
static spare_block take_entry(int i) {
  spare_block taken = spares[i];
  memmove(&spares[i], &spares[i + 1], (size_t)(SPARES - 1 - i) * sizeof *spares);
  spares[SPARES - 1] = (spare_block){0};
  return taken;
}

/* The smallest block kept that has the room, and not so many times more that others will miss it; none: base is
 * NULL. */
static spare_block take_spare(uint64_t room) {
  int best = -1;
  pthread_mutex_lock(&spare_lock);
  for (int i = 0; i < SPARES && spares[i].base; i++)
    if (spares[i].room >= room && (best < 0 || spares[i].room < spares[best].room))
      best = i;
  if (best >= 0 && spares[best].room / WIDEST_SPARE > room)
    best = -1;
  spare_block taken = best < 0 ? (spare_block){0} : take_entry(best);
  pthread_mutex_unlock(&spare_lock);
  return taken;
}

/* Keeps a block, and lets go of the one kept longest if there are too many. */
static void keep_spare(void *base, uint64_t room) {
  spare_block last = {.base = base};
  if (madvise(base, room, MADV_FREE) == 0) {
    pthread_mutex_lock(&spare_lock);
    last = spares[SPARES - 1].base ? take_entry(0) : (spare_block){0};
    int n = 0;
    while (spares[n].base)
      n++;
    spares[n] = (spare_block){.base = base, .room = room};
    pthread_mutex_unlock(&spare_lock);
  }
  free(last.base);
}

static uint64_t spare_bytes(void) {
  uint64_t bytes = 0;
  pthread_mutex_lock(&spare_lock);
  for (int i = 0; i < SPARES; i++)
    bytes += spares[i].room;
  pthread_mutex_unlock(&spare_lock);
  return bytes;
}

/* ---- blocks -------------------------------------------------------------------------------------------- */

static void *system_alloc(uint64_t bytes, uint64_t *room) {
  bool huge = bytes >= HUGE_FROM;
  uint64_t align = huge ? HUGE_PAGE : 64;
  *room = (bytes + HEADER_BYTES + align - 1) / align * align;
  if (!huge)
    return aligned_alloc(align, *room);
  spare_block spare = take_spare(*room);
  if (spare.base) {
    *room = spare.room;
    return spare.base;
  }
  void *base = aligned_alloc(align, *room);
  if (base)
    madvise(base, *room, MADV_HUGEPAGE);
  return base;
}

static void *allocate(kith_memory *memory, uint64_t bytes, bool is_result) {
  if (bytes > (UINT64_MAX >> 2) || injected_failure() || !reserve(memory, bytes, is_result))
    return NULL;
  uint64_t room;
  char *base = system_alloc(bytes, &room);
  if (!base) {
    unreserve(memory, bytes, is_result);
    return NULL;
  }
  *(block_header *)base =
      (block_header){.memory = memory, .bytes = bytes, .room = room, .is_result = is_result};
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
  block_header *header = header_of(block);
  if (header->bytes >= HUGE_FROM)
    keep_spare(header, header->room);
  else
    free(header);
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
    uint64_t ours = spare_bytes(); /* likewise */
    uint64_t taken = cache < current ? current - cache : current;
    taken = ours < taken ? taken - ours : 0;
    uint64_t left = limit > taken ? limit - taken : 0;
    if (left < bytes)
      bytes = left;
  }
  return bytes;
}
