/* A file that takes the place of another: see replace.h. */
#include "base/replace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int kith_replace_open(kith_replace *file, const char *path) {
  struct stat there;
  file->out = NULL;
  if ((size_t)snprintf(file->path, sizeof file->path, "%s", path) >= sizeof file->path)
    return ENAMETOOLONG;
  if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
    return EEXIST;
  snprintf(file->fresh, sizeof file->fresh, "%s.XXXXXX", file->path);
  int fd = mkstemp(file->fresh);
  if (fd < 0)
    return errno;
  mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);
  file->out = fdopen(fd, "w");
  if (file->out)
    return 0;
  int error = errno;
  close(fd);
  unlink(file->fresh);
  return error;
}

int kith_replace_close(kith_replace *file, bool keep) {
  if (!file->out)
    return 0;
  int error = !ferror(file->out) ? 0 : errno ? errno : EIO;
  if (fclose(file->out) != 0 && !error)
    error = errno;
  file->out = NULL;
  if (keep && !error && rename(file->fresh, file->path) != 0)
    error = errno;
  if (!keep || error)
    unlink(file->fresh);
  return keep ? error : 0;
}
