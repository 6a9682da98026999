/* The folder of a test: see scratch.h. */
#include "scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kith_faults_XXXXXX";

static void give_up(const char *what) {
  perror(what);
  exit(1);
}

void scratch_enter(void) {
  if (!mkdtemp(folder) || chdir(folder) != 0 || mkdir("out", 0700) != 0)
    give_up(folder);
}

static bool is_entry(const struct dirent *entry) {
  return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Looks at all entries of a folder, and removes them if asked to. */
static unsigned look(const char *path, bool remove) {
  unsigned n = 0;
  DIR *dir = opendir(path);
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (is_entry(entry)) {
      n++;
      if (remove)
        unlinkat(dirfd(dir), entry->d_name, 0);
    }
  if (dir)
    closedir(dir);
  return n;
}

unsigned scratch_entries(void) { return look("out", false); }

void scratch_sweep(void) { look("out", true); }

void scratch_leave(void) {
  scratch_sweep();
  rmdir("out");
  look(".", true);
  if (chdir("/") != 0 || rmdir(folder) != 0)
    give_up(folder);
}

void scratch_write(const char *path, const void *bytes, size_t n) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, bytes, n) != (ssize_t)n || close(fd) != 0)
    give_up(path);
}

uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t n) {
  const unsigned char *byte = bytes;
  for (size_t i = 0; i < n; i++)
    digest = (digest ^ byte[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
  return digest;
}

uint64_t digest_file(const char *path) {
  char bytes[1 << 14];
  uint64_t digest = UINT64_C(0xcbf29ce484222325);
  int fd = open(path, O_RDONLY);
  if (fd < 0)
    return 0;
  for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;)
    digest = digest_bytes(digest, bytes, (size_t)n);
  close(fd);
  return digest;
}
