/* Requests to the system that can be refused: see refusals.h. */
#include "refusals.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static _Atomic uint64_t countdown;
static atomic_bool fired;
static _Atomic int64_t blocks, maps, files, threads;

void refuse_nth(uint64_t n) {
  atomic_store(&fired, false);
  atomic_store(&countdown, n);
}

bool has_refused(void) { return atomic_load(&fired); }

holdings holdings_now(void) {
  return (holdings){.blocks = atomic_load(&blocks),
                    .maps = atomic_load(&maps),
                    .files = atomic_load(&files),
                    .threads = atomic_load(&threads)};
}

bool holdings_equal(holdings a, holdings b) {
  return a.blocks == b.blocks && a.maps == b.maps && a.files == b.files && a.threads == b.threads;
}

static bool is_refused(int error) {
  uint64_t left = atomic_load(&countdown);
  while (left > 0 && !atomic_compare_exchange_weak(&countdown, &left, left - 1)) {
  }
  if (left != 1)
    return false;
  atomic_store(&fired, true);
  errno = error;
  return true;
}

static void *counted(void *given, _Atomic int64_t *held) {
  if (given)
    atomic_fetch_add(held, 1);
  return given;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
char *__real_strdup(const char *text);
void __real_free(void *block);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t bytes);
FILE *__real_fopen(const char *path, const char *mode);
int __real_fclose(FILE *file);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument);
int __real_pthread_join(pthread_t thread, void **result);

void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) { return is_refused(ENOMEM) ? NULL : counted(__real_malloc(bytes), &blocks); }

void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes) {
  return is_refused(ENOMEM) ? NULL : counted(__real_calloc(n, bytes), &blocks);
}

void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes) {
  if (is_refused(ENOMEM))
    return NULL;
  void *given = __real_realloc(block, bytes);
  return block ? given : counted(given, &blocks);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes) {
  return is_refused(ENOMEM) ? NULL : counted(__real_aligned_alloc(align, bytes), &blocks);
}

char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) {
  return is_refused(ENOMEM) ? NULL : counted(__real_strdup(text), &blocks);
}

void __wrap_free(void *block);
void __wrap_free(void *block) {
  if (block)
    atomic_fetch_sub(&blocks, 1);
  __real_free(block);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (is_refused(ENOMEM))
    return MAP_FAILED;
  void *map = __real_mmap(at, bytes, protection, flags, fd, offset);
  atomic_fetch_add(&maps, map != MAP_FAILED);
  return map;
}

int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes) {
  atomic_fetch_sub(&maps, 1);
  return __real_munmap(at, bytes);
}

FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
  return is_refused(ENOMEM) ? NULL : counted(__real_fopen(path, mode), &files);
}

int __wrap_fclose(FILE *file);
int __wrap_fclose(FILE *file) {
  atomic_fetch_sub(&files, 1);
  return __real_fclose(file);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument) {
  if (is_refused(EAGAIN))
    return EAGAIN;
  int error = __real_pthread_create(thread, attr, run, argument);
  atomic_fetch_add(&threads, error == 0);
  return error;
}

int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result) {
  atomic_fetch_sub(&threads, 1);
  return __real_pthread_join(thread, result);
}
