/* Files of points: their names, opening, the choice of a reader. See section 2 of kith.h.
 *
 * A regular file is mapped as a whole; the reader either keeps the map (file->keeps_map), and the points lie
 * in it, or fills memory of its own, and the map goes when the file is open. Pipes are for text only. The
 * memory of a file is counted in the budget of its context until it is closed. */
#include "points/formats/formats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The name ----------------------------------------------------------------------------------------- */

/* A name, taken apart: "file.h5:/group/data" and "file.fits[1]" choose a part of a file. */
typedef struct file_name {
  char *path;       /* owned; NULL: the name is the path */
  const char *part; /* behind the path, in the same block */
  char form;        /* ':' or '[', or '\0' without a part */
} file_name;

static bool exists(const char *path) {
  struct stat about;
  return stat(path, &about) == 0;
}

/* Copies the name and cuts it where the part begins; keeps the copy if the path is that of a file. */
static kith_status cut_name(kith_context *ctx, const char *name, uint64_t at, file_name *out) {
  uint64_t length = strlen(name);
  char *copy = kith_alloc(&ctx->memory, length + 1);
  if (!copy)
    return kith_fail_memory(ctx, length + 1, "the name of a file");
  memcpy(copy, name, length + 1);
  copy[at] = '\0';
  if (!exists(copy)) {
    kith_free(copy);
    return KITH_OK;
  }
  if (name[at] == '[')
    copy[length - 1] = '\0';
  *out = (file_name){.path = copy, .part = copy + at + 1, .form = name[at]};
  return KITH_OK;
}

/* Takes a name apart. A file that has the whole name wins, and a part needs a file in front of it; so a name
 * that leads nowhere stays whole. */
static kith_status split_name(kith_context *ctx, const char *name, file_name *out) {
  *out = (file_name){0};
  size_t length = strlen(name);
  if (exists(name) || strcmp(name, "-") == 0 || length == 0)
    return KITH_OK;
  const char *bracket = name[length - 1] == ']' ? strrchr(name, '[') : NULL;
  kith_status status = bracket ? cut_name(ctx, name, (uint64_t)(bracket - name), out) : KITH_OK;
  for (const char *at = strstr(name, ":/"); at && !status && !out->path; at = strstr(at + 1, ":/"))
    status = cut_name(ctx, name, (uint64_t)(at - name), out);
  return status;
}

/* ---- The input ---------------------------------------------------------------------------------------- */

static kith_status open_input(kith_input *input) {
  if (strcmp(input->path, "-") == 0) {
    input->name = "standard input";
    input->is_stdin = true;
    input->fd = STDIN_FILENO;
    return KITH_OK;
  }
  const char *base = strrchr(input->path, '/'), *dot = strrchr(base ? base : input->path, '.');
  input->ending = dot ? dot : "";
  input->fd = open(input->path, O_RDONLY | O_CLOEXEC);
  if (input->fd < 0 && errno == ENOENT)
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: there is no such file", input->path);
  if (input->fd < 0)
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: the file cannot be opened: %s", input->path,
                     strerror(errno));
  return KITH_OK;
}

/* Maps a regular file; leaves a pipe or a terminal to be read. */
static kith_status map_input(kith_input *input) {
  struct stat about;
  if (fstat(input->fd, &about) != 0)
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: the file cannot be looked at: %s", input->name,
                     strerror(errno));
  if (S_ISDIR(about.st_mode))
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: this is a directory; give a file of points", input->name);
  if (!S_ISREG(about.st_mode) || input->is_stdin)
    return KITH_OK;
  if (about.st_size == 0)
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: the file is empty", input->name);
  void *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, input->fd, 0);
  if (map == MAP_FAILED)
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: the file cannot be mapped: %s", input->name,
                     strerror(errno));
  input->bytes = map;
  input->n_bytes = (uint64_t)about.st_size;
  return KITH_OK;
}

/* ---- The readers -------------------------------------------------------------------------------------- */

typedef struct file_reader {
  const char *format, *ending;
  char part; /* what may choose within the file: ':' a path, '[' a number or a name, '\0' nothing */
  kith_status (*read)(const kith_input *input, kith_file *file); /* NULL: not in this build */
} file_reader;

#ifdef KITH_HAVE_HDF5
#define READ_HDF5 kith_read_hdf5
#else
#define READ_HDF5 NULL
#endif
#ifdef KITH_HAVE_FITS
#define READ_FITS kith_read_fits
#else
#define READ_FITS NULL
#endif

static const file_reader READERS[] = {
    {"npy", ".npy", 0, kith_read_npy},    {"text", ".csv", 0, kith_read_text},
    {"text", ".tsv", 0, kith_read_text},  {"text", ".txt", 0, kith_read_text},
    {"fbin", ".fbin", 0, kith_read_fbin}, {"gro", ".gro", '[', kith_read_gro},
    {"xyz", ".xyz", '[', kith_read_xyz},  {"xyz", ".extxyz", '[', kith_read_xyz},
    {"hdf5", ".h5", ':', READ_HDF5},      {"hdf5", ".hdf5", ':', READ_HDF5},
    {"hdf5", ".he5", ':', READ_HDF5},     {"hdf5", ".nc4", ':', READ_HDF5},
    {"fits", ".fits", '[', READ_FITS},    {"fits", ".fit", '[', READ_FITS},
    {"fits", ".fts", '[', READ_FITS},
};

enum { N_READERS = sizeof READERS / sizeof *READERS };

static const char FORMATS[] = "npy, text, fbin, gro, xyz, hdf5 or fits";

const char *kith_file_formats(void) {
#if defined KITH_HAVE_HDF5 && defined KITH_HAVE_FITS
  return "npy text fbin gro xyz hdf5 fits";
#elif defined KITH_HAVE_HDF5
  return "npy text fbin gro xyz hdf5";
#elif defined KITH_HAVE_FITS
  return "npy text fbin gro xyz fits";
#else
  return "npy text fbin gro xyz";
#endif
}

static const file_reader *find_reader(const kith_input *input, const char *format) {
  for (int i = 0; i < N_READERS; i++)
    if (format ? strcmp(format, READERS[i].format) == 0 : strcasecmp(input->ending, READERS[i].ending) == 0)
      return &READERS[i];
  return NULL;
}

static kith_status fail_no_reader(const kith_input *input, const char *format) {
  if (format)
    return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "unknown format '%s'; use %s", format, FORMATS);
  return kith_fail(input->ctx, KITH_ERR_ARGUMENT,
                   "%s: the ending of the name tells no format that kith reads (.npy .csv .tsv .txt .fbin .gro "
                   ".xyz .h5 .hdf5 .fits); give the format: %s",
                   input->name, FORMATS);
}

static kith_status fail_not_built(const kith_input *input, const file_reader *reader) {
  bool is_hdf5 = strcmp(reader->format, "hdf5") == 0;
  return kith_fail(input->ctx, KITH_ERR_UNSUPPORTED,
                   "%s: this kith was built without %s; install %s and build it again, or convert the file to "
                   ".npy",
                   input->name, is_hdf5 ? "HDF5" : "CFITSIO", is_hdf5 ? "libhdf5-dev" : "libcfitsio-dev");
}

/* A part in a form that the format does not have. */
static kith_status fail_part(const kith_input *input, const file_reader *reader, const file_name *name) {
  const char *open = name->form == '[' ? "[" : ":", *close = name->form == '[' ? "]" : "";
  static const char NONE[] = "nothing within such a file can be chosen; leave it out";
  const char *hint = reader->part == ':' ? "write FILE:/path/to/dataset"
                     : reader->part == '[' && strcmp(reader->format, "fits") == 0
                         ? "write FILE[1] for a table by its number, or FILE[NAME]"
                     : reader->part == '[' ? "write FILE[3] for a frame, counted from 0"
                                           : NONE;
  return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "%s: '%s%s%s' does not suit the format %s: %s", input->path,
                   open, input->part, close, reader->format, hint);
}

static kith_status choose_reader(const kith_input *input, const char *format, const file_name *name,
                                 const file_reader **out) {
  bool is_pipe = !input->bytes;
  if (!format && (input->is_stdin || (is_pipe && !*input->ending)))
    format = "text"; /* the only one that a pipe may carry */
  const file_reader *reader = *out = find_reader(input, format);
  if (!reader)
    return fail_no_reader(input, format);
  if (is_pipe && reader->read != kith_read_text)
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: %s cannot be read from a pipe; save it as a file first",
                     input->name, reader->format);
  if (name->form && name->form != reader->part)
    return fail_part(input, reader, name);
  return reader->read ? KITH_OK : fail_not_built(input, reader);
}

/* ---- The file ----------------------------------------------------------------------------------------- */

kith_file_options kith_file_options_init(void) {
  return (kith_file_options){.struct_size = sizeof(kith_file_options)};
}

static kith_status create_file(kith_context *ctx, const char *path, kith_file **out) {
  uint64_t path_bytes = strlen(path) + 1;
  kith_file *file = *out = kith_alloc(&ctx->memory, sizeof *file + path_bytes);
  if (!file)
    return kith_fail_memory(ctx, sizeof *file + path_bytes, "the record of a file");
  *file = (kith_file){.path = (char *)(file + 1)};
  memcpy(file->path, path, path_bytes);
  return KITH_OK;
}

static kith_status read_file(kith_input *input, const char *format, const file_name *name, kith_file **out) {
  const file_reader *reader = NULL;
  kith_status status = open_input(input);
  if (!status)
    status = map_input(input);
  if (!status)
    status = choose_reader(input, format, name, &reader);
  if (!status)
    status = create_file(input->ctx, input->is_stdin ? input->path : input->name, out);
  if (!status)
    status = reader->read(input, *out);
  return status ? status : kith_points_check(input->ctx, &(*out)->points, input->name);
}

/* Opens the file that the options describe, and closes what served to read it. */
static kith_status open_file(kith_context *ctx, const char *path, const kith_file_options *options,
                             kith_file **out) {
  file_name name;
  kith_status status = split_name(ctx, path, &name);
  if (status)
    return status;
  kith_input input = {.ctx = ctx,
                      .name = path,
                      .path = name.path ? name.path : path,
                      .part = name.part,
                      .ending = "",
                      .columns = options->columns,
                      .fd = -1};
  kith_file *file = NULL;
  status = read_file(&input, options->format, &name, &file);
  if (!status && file->keeps_map) {
    file->map = (void *)(uintptr_t)input.bytes;
    file->map_bytes = input.n_bytes;
  } else if (input.bytes) {
    munmap((void *)(uintptr_t)input.bytes, input.n_bytes);
  }
  if (input.fd >= 0 && !input.is_stdin)
    close(input.fd);
  kith_free(name.path);
  if (status) {
    kith_file_close(file);
    return status;
  }
  ctx->message[0] = '\0'; /* a reader may have tried something that failed, and found another way */
  *out = file;
  return KITH_OK;
}

kith_status kith_file_open(kith_context *ctx, const char *path, const kith_file_options *options,
                           kith_file **out) {
  if (out)
    *out = NULL;
  kith_status status = kith_call_begin(ctx);
  if (status)
    return status;
  if (!path || !out)
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "kith_file_open needs a path and a place for the file; one is NULL");
  if (options && options->struct_size == 0)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "the options say nothing: begin with kith_file_options_init()");
  kith_file_options opt = kith_file_options_init();
  if (options)
    memcpy(&opt, options, options->struct_size < sizeof opt ? options->struct_size : sizeof opt);
  status = kith_check_cancel(ctx);
  return kith_call_end(ctx, status ? status : open_file(ctx, path, &opt, out));
}

void kith_file_close(kith_file *file) {
  if (!file)
    return;
  if (file->map)
    munmap(file->map, file->map_bytes);
  kith_free(file->values);
  kith_free(file->names.name);
  kith_free(file);
}

const kith_points *kith_file_points(const kith_file *file) { return file ? &file->points : NULL; }

const char *kith_file_column(const kith_file *file, uint32_t c) {
  return file && c < file->names.n && file->names.name[c][0] ? file->names.name[c] : NULL;
}

const char *kith_file_path(const kith_file *file) { return file ? file->path : ""; }

int kith_file_is_mapped(const kith_file *file) { return file && file->map; }

int kith_file_box(const kith_file *file, double box[9]) {
  if (!file || file->n_box == 0)
    return 0;
  memcpy(box, file->box, (size_t)file->n_box * sizeof *box);
  return file->n_box;
}
