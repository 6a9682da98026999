/* Names of files: see paths.h. */
#include "paths.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_one(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Looks at what the first `length` bytes of a path lead to. */
static bool look_at(const char *path, size_t length, struct stat *info) {
  char *begin = strndup(path, length);
  bool found = begin && stat(begin, info) == 0;
  free(begin);
  return found;
}

static bool leads_to(const char *path, size_t length, const struct stat *file) {
  struct stat info;
  return look_at(path, length, &info) && is_one(&info, file);
}

bool paths_would_replace(const char *written, const char *points) {
  struct stat file;
  if (stat(written, &file) != 0 || !S_ISREG(file.st_mode))
    return false;
  bool would = leads_to(points, strlen(points), &file);
  const char *bracket = strrchr(points, '[');
  would |= bracket && leads_to(points, (size_t)(bracket - points), &file);
  for (const char *colon = strstr(points, ":/"); colon; colon = strstr(colon + 1, ":/"))
    would |= leads_to(points, (size_t)(colon - points), &file);
  return would;
}

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool look_at_folder(const char *path, struct stat *info) {
  size_t length = (size_t)(last_part(path) - path);
  return length ? look_at(path, length, info) : stat(".", info) == 0;
}

bool paths_are_one(const char *a, const char *b) {
  struct stat of_a, of_b;
  if (stat(a, &of_a) == 0 && stat(b, &of_b) == 0)
    return S_ISREG(of_a.st_mode) && is_one(&of_a, &of_b);
  return strcmp(last_part(a), last_part(b)) == 0 && look_at_folder(a, &of_a) && look_at_folder(b, &of_b) &&
         is_one(&of_a, &of_b);
}
