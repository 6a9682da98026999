/* Gives every file named as an argument to a fuzzer's function: the committed corpus, at every test run. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct input {
  uint8_t bytes[1 << 20];
  size_t n;
} input;

/* A block of its own size each, so that a sanitizer sees who reads beyond it. */
static int replay(const char *path) {
  static input in;
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    return 1;
  }
  in.n = fread(in.bytes, 1, sizeof in.bytes, file);
  fclose(file);
  uint8_t *copy = malloc(in.n + !in.n);
  if (!copy)
    return 1;
  for (size_t i = 0; i < in.n; i++)
    copy[i] = in.bytes[i];
  LLVMFuzzerTestOneInput(copy, in.n);
  free(copy);
  return 0;
}

int main(int argc, char **argv) {
  int failed = 0;
  for (int i = 1; i < argc; i++)
    failed |= replay(argv[i]);
  return failed;
}
