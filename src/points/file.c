/* Files of points: opening, the choice of a reader, the choice of columns. See section 2 of kith.h.
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

/* ---- Columns ------------------------------------------------------------------------------------------ */

/* One entry of the columns option, blanks around it removed. */
typedef struct column_word {
  const char *begin;
  int length;
} column_word;

static column_word next_word(const char **at) {
  const char *begin = *at + strspn(*at, " \t"), *end = begin + strcspn(begin, ",");
  *at = *end ? end + 1 : end;
  while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
    end--;
  return (column_word){.begin = begin, .length = (int)(end - begin)};
}

/* The word as a number; false if it is not made of digits. A number too long to count is UINT64_MAX. */
static bool word_number(column_word word, uint64_t *number) {
  *number = 0;
  for (int i = 0; i < word.length; i++) {
    if (word.begin[i] < '0' || word.begin[i] > '9')
      return false;
    if (__builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, (uint64_t)(word.begin[i] - '0'), number))
      *number = UINT64_MAX / 16; /* stays far beyond any column, whatever digits follow */
  }
  return word.length > 0;
}

/* Writes the names as "ra, dec, ...", as many as fit. */
static void list_names(const kith_names *names, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (uint32_t i = 0; i < names->n; i++) {
    size_t length = strlen(names->name[i]);
    if (used + length + sizeof ", ..." > size) {
      snprintf(out + used, size - used, "...");
      return;
    }
    used += (size_t)snprintf(out + used, size - used, "%s%s", names->name[i], i + 1 < names->n ? ", " : "");
  }
}

static kith_status fail_no_name(const kith_input *input, const kith_names *names, uint64_t n_columns,
                                column_word word) {
  if (!names)
    return kith_fail(
        input->ctx, KITH_ERR_ARGUMENT,
        "%s: there is no column '%.*s', for the columns have no names; choose by number, 0 to %llu",
        input->name, word.length, word.begin, (unsigned long long)(n_columns - 1));
  char list[512];
  list_names(names, list, sizeof list);
  return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "%s: there is no column '%.*s'; there are: %s", input->name,
                   word.length, word.begin, list);
}

/* Finds the one column with the name. */
static kith_status find_name(const kith_input *input, const kith_names *names, uint64_t n_columns,
                             column_word word, uint64_t *column) {
  *column = UINT64_MAX;
  for (uint32_t i = 0; names && i < names->n; i++) {
    if (strncmp(names->name[i], word.begin, (size_t)word.length) != 0 || names->name[i][word.length] != '\0')
      continue;
    if (*column != UINT64_MAX)
      return kith_fail(input->ctx, KITH_ERR_ARGUMENT,
                       "%s: columns %llu and %u are both called '%.*s'; choose by number", input->name,
                       (unsigned long long)*column, i, word.length, word.begin);
    *column = i;
  }
  return *column == UINT64_MAX ? fail_no_name(input, names, n_columns, word) : KITH_OK;
}

static kith_status find_column(const kith_input *input, const kith_names *names, uint64_t n_columns,
                               column_word word, uint64_t *column) {
  if (word.length == 0)
    return kith_fail(input->ctx, KITH_ERR_ARGUMENT,
                     "columns '%s': a column is empty; write numbers or names with commas between",
                     input->columns);
  if (!word_number(word, column))
    return find_name(input, names, n_columns, word, column);
  if (*column >= n_columns)
    return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "%s: there is no column %.*s; they are numbered 0 to %llu",
                     input->name, word.length, word.begin, (unsigned long long)(n_columns - 1));
  return KITH_OK;
}

static kith_status choose_all(const kith_input *input, uint64_t n_columns, kith_columns *chosen) {
  if (n_columns > KITH_MAX_DIM)
    return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "%s: %llu columns; choose at most %d of them as dimensions",
                     input->name, (unsigned long long)n_columns, KITH_MAX_DIM);
  chosen->n = (uint32_t)n_columns;
  for (uint32_t c = 0; c < chosen->n; c++)
    chosen->at[c] = c;
  return KITH_OK;
}

kith_status kith_columns_choose(const kith_input *input, const kith_names *names, uint64_t n_columns,
                                kith_columns *chosen) {
  if (!input->columns)
    return choose_all(input, n_columns, chosen);
  const char *at = input->columns;
  bool more = true;
  for (chosen->n = 0; more; chosen->n++) {
    uint64_t column = 0;
    column_word word = next_word(&at);
    more = *at != '\0' || (at > input->columns && at[-1] == ',');
    kith_status status = find_column(input, names, n_columns, word, &column);
    if (status)
      return status;
    if (chosen->n == KITH_MAX_DIM || column > UINT32_MAX)
      return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "%s: too many columns; choose at most %d", input->name,
                       KITH_MAX_DIM);
    for (uint32_t c = 0; c < chosen->n; c++)
      if (chosen->at[c] == column)
        return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "columns '%s': column %llu is there twice",
                         input->columns, (unsigned long long)column);
    chosen->at[chosen->n] = (uint32_t)column;
  }
  return KITH_OK;
}

kith_status kith_names_pick(kith_context *ctx, const kith_names *names, const kith_columns *chosen,
                            kith_names *picked) {
  uint64_t bytes = (uint64_t)chosen->n * sizeof(char *);
  for (uint32_t c = 0; c < chosen->n; c++)
    bytes += strlen(names->name[chosen->at[c]]) + 1;
  char **name = kith_alloc(&ctx->memory, bytes);
  if (!name)
    return kith_fail_memory(ctx, bytes, "the names of columns");
  char *text = (char *)(name + chosen->n);
  for (uint32_t c = 0; c < chosen->n; c++) {
    name[c] = text;
    text = stpcpy(text, names->name[chosen->at[c]]) + 1;
  }
  *picked = (kith_names){.n = chosen->n, .name = name};
  return KITH_OK;
}

/* ---- The input ---------------------------------------------------------------------------------------- */

static kith_status open_input(kith_input *input, const char *path) {
  if (strcmp(path, "-") == 0) {
    input->name = "standard input";
    input->is_stdin = true;
    input->fd = STDIN_FILENO;
    return KITH_OK;
  }
  const char *base = strrchr(path, '/'), *dot = strrchr(base ? base : path, '.');
  input->name = path;
  input->ending = dot ? dot : "";
  input->fd = open(path, O_RDONLY | O_CLOEXEC);
  if (input->fd < 0 && errno == ENOENT)
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: there is no such file", path);
  if (input->fd < 0)
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: the file cannot be opened: %s", path, strerror(errno));
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
  kith_status (*read)(const kith_input *input, kith_file *file);
} file_reader;

static const file_reader READERS[] = {{"npy", ".npy", kith_read_npy},
                                      {"text", ".csv", kith_read_text},
                                      {"text", ".tsv", kith_read_text},
                                      {"text", ".txt", kith_read_text},
                                      {"fbin", ".fbin", kith_read_fbin}};

static kith_status choose_reader(const kith_input *input, const char *format, const file_reader **out) {
  bool is_pipe = !input->bytes;
  if (!format && (input->is_stdin || (is_pipe && !*input->ending)))
    format = "text"; /* the only one that a pipe may carry */
  *out = NULL;
  for (size_t i = 0; i < sizeof READERS / sizeof *READERS && !*out; i++)
    if (format ? strcmp(format, READERS[i].format) == 0 : strcasecmp(input->ending, READERS[i].ending) == 0)
      *out = &READERS[i];
  if (!*out && format)
    return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "unknown format '%s'; use npy, text or fbin", format);
  if (!*out)
    return kith_fail(
        input->ctx, KITH_ERR_ARGUMENT,
        "%s: the ending of the name tells no format that kith reads (.npy .csv .tsv .txt .fbin); give "
        "the format: npy, text or fbin",
        input->name);
  if (is_pipe && (*out)->read != kith_read_text)
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: %s cannot be read from a pipe; save it as a file first",
                     input->name, (*out)->format);
  return KITH_OK;
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

static kith_status read_file(kith_input *input, const char *path, const char *format, kith_file **out) {
  const file_reader *reader = NULL;
  kith_status status = open_input(input, path);
  if (!status)
    status = map_input(input);
  if (!status)
    status = choose_reader(input, format, &reader);
  if (!status)
    status = create_file(input->ctx, path, out);
  if (!status)
    status = reader->read(input, *out);
  return status ? status : kith_points_check(input->ctx, &(*out)->points, input->name);
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
  status = kith_check_cancel(ctx);
  if (status)
    return kith_call_end(ctx, status);
  kith_file_options opt = kith_file_options_init();
  if (options)
    memcpy(&opt, options, options->struct_size < sizeof opt ? options->struct_size : sizeof opt);
  kith_input input = {.ctx = ctx, .name = path, .ending = "", .columns = opt.columns, .fd = -1};
  kith_file *file = NULL;
  status = read_file(&input, path, opt.format, &file);
  if (!status && file->keeps_map) {
    file->map = (void *)(uintptr_t)input.bytes;
    file->map_bytes = input.n_bytes;
  } else if (input.bytes) {
    munmap((void *)(uintptr_t)input.bytes, input.n_bytes);
  }
  if (input.fd >= 0 && !input.is_stdin)
    close(input.fd);
  if (status) {
    kith_file_close(file);
    file = NULL;
  } else {
    ctx->message[0] = '\0'; /* a reader may have tried something that failed, and found another way */
  }
  *out = file;
  return kith_call_end(ctx, status);
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

const kith_points *kith_file_points(const kith_file *file) { return &file->points; }

const char *kith_file_column(const kith_file *file, uint32_t c) {
  return c < file->names.n && file->names.name[c][0] ? file->names.name[c] : NULL;
}

const char *kith_file_path(const kith_file *file) { return file->path; }

int kith_file_is_mapped(const kith_file *file) { return file->map != NULL; }
