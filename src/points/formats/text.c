/* Reads text: .csv (commas), .tsv (tabs), .txt and pipes (commas if the first line has one, else blanks).
 *
 * Line by line: blank lines and lines that begin with '#' are skipped; the first other line is a header if
 * one of the chosen fields in it is a word, or if it is the one that pandas writes for columns without names:
 * nothing, 0, 1, 2 ... Fields that are not chosen may hold anything. All lines must
 * have as many fields as the first. What a number is, number.h says.
 *
 * A regular file is parsed where it is mapped, and its lines are counted first, so the values are allocated
 * once; a pipe is read in chunks, and the values grow by half. One pass, O(bytes), on one thread. */
#include "points/formats/formats.h"
#include "points/formats/number.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  FIELDS_MOST = 1 << 20,
  CHUNK_BYTES = 1 << 20,           /* first size of the buffer for a pipe; it grows with the longest line */
  FIRST_VALUES = 32 * 1024,        /* first room for values from a pipe */
  LINES_BETWEEN_CHECKS = 16 * 1024 /* looks at cancellation so often */
};

/* ---- Fields ------------------------------------------------------------------------------------------- */

/* A walk over the fields of a line. The delimiter ' ' stands for any run of blanks and tabs. */
typedef struct field_walk {
  const char *at, *end;
  char delimiter;
  bool more;
} field_walk;

static inline bool is_blank(char c, char delimiter) {
  return c == ' ' || c == '\r' || (c == '\t' && delimiter != '\t');
}

static inline const char *skip_blank(const char *at, const char *end, char delimiter) {
  while (at < end && is_blank(*at, delimiter))
    at++;
  return at;
}

static inline field_walk walk_line(slice line, char delimiter) {
  while (line.end > line.begin && is_blank(line.end[-1], delimiter))
    line.end--;
  return (field_walk){
      .at = skip_blank(line.begin, line.end, delimiter), .end = line.end, .delimiter = delimiter, .more = true};
}

/* Steps from the end of a field, blanks skipped, to the next one. */
static inline void step(field_walk *walk, const char *at) {
  walk->more = at < walk->end;
  walk->at = at + (walk->more && walk->delimiter != ' ');
}

/* The quote that closes a quoted field; two in a row stand for one and do not close. NULL: there is none. */
static const char *closing_quote(const char *at, const char *end) {
  while ((at = memchr(at, '"', (size_t)(end - at)))) {
    if (at + 1 == end || at[1] != '"')
      return at;
    at += 2;
  }
  return NULL;
}

/* Takes the next field, without the blanks and quotes around it. */
static slice next_field(field_walk *walk) {
  const char *begin = skip_blank(walk->at, walk->end, walk->delimiter), *at = begin;
  if (at < walk->end && *at == '"') {
    const char *close = closing_quote(at + 1, walk->end);
    at = close ? close + 1 : at;
  }
  if (walk->delimiter == ' ')
    while (at < walk->end && !is_blank(*at, ' '))
      at++;
  else
    while (at < walk->end && *at != walk->delimiter)
      at++;
  slice field = {begin, at};
  step(walk, skip_blank(at, walk->end, walk->delimiter));
  while (field.end > field.begin && is_blank(field.end[-1], walk->delimiter))
    field.end--;
  if (field.end - field.begin >= 2 && *field.begin == '"' && field.end[-1] == '"') {
    field.begin++;
    field.end--;
  }
  return field;
}

/* Takes the next field as a number, if it is one. Nearly all are plain decimals followed by a delimiter. */
static inline bool next_number(field_walk *walk, locale_t locale, double *value) {
  decimal number;
  const char *begin = skip_blank(walk->at, walk->end, walk->delimiter);
  const char *after = scan_decimal(begin, walk->end, &number);
  if (after && decimal_value(&number, value)) {
    const char *at = skip_blank(after, walk->end, walk->delimiter);
    if (at == walk->end || (walk->delimiter == ' ' ? at > after : *at == walk->delimiter)) {
      step(walk, at);
      return true;
    }
  }
  return field_value(next_field(walk), locale, value);
}

static uint32_t count_fields(slice line, char delimiter) {
  uint32_t n = 0;
  for (field_walk walk = walk_line(line, delimiter); walk.more && n <= FIELDS_MOST; n++)
    next_field(&walk);
  return n;
}

/* ---- The table ---------------------------------------------------------------------------------------- */

typedef struct text_reader {
  const kith_input *input;
  kith_file *file;
  locale_t locale;
  char delimiter; /* '\0': not known yet */
  uint64_t line;  /* number of the line at hand, from 1 */
  char *comment;  /* the last comment before the table, which may be its header */
  uint64_t comment_bytes;
  uint32_t n_fields;
  int32_t *dim_of_field;  /* -1: the field is not chosen; NULL: the table has not begun */
  uint64_t expected_rows; /* at most so many; 0: unknown */
  uint64_t n_rows, room;
} text_reader;

static kith_status fail_field(const text_reader *reader, slice line, uint32_t field_number) {
  field_walk walk = walk_line(line, reader->delimiter);
  slice field = next_field(&walk);
  for (uint32_t i = 0; i < field_number; i++)
    field = next_field(&walk);
  const char *name = kith_file_column(reader->file, (uint32_t)reader->dim_of_field[field_number]);
  char text[40];
  if (field.begin == field.end)
    return kith_fail(
        reader->input->ctx, KITH_ERR_FORMAT,
        "%s, line %llu, column %u%s%s: the field is empty; fill in a number, or leave the line out",
        reader->input->name, (unsigned long long)reader->line, field_number, name ? " " : "", name ? name : "");
  bool has_comma = memchr(field.begin, ',', (size_t)(field.end - field.begin));
  return kith_fail(
      reader->input->ctx, KITH_ERR_FORMAT, "%s, line %llu, column %u%s%s: '%s' is not a number (%s)",
      reader->input->name, (unsigned long long)reader->line, field_number, name ? " " : "", name ? name : "",
      quote_field(field, text), has_comma ? "decimals take a point, not a comma" : "columns count from 0");
}

static kith_status fail_ragged(const text_reader *reader, slice line) {
  uint32_t n = count_fields(line, reader->delimiter);
  return kith_fail(reader->input->ctx, KITH_ERR_FORMAT,
                   "%s, line %llu: %s column %u; the line has %u field%s where the first line has %u",
                   reader->input->name, (unsigned long long)reader->line,
                   n < reader->n_fields ? "there is no" : "unexpected",
                   n < reader->n_fields ? n : reader->n_fields, n, n == 1 ? "" : "s", reader->n_fields);
}

/* Makes room for one more row. */
static kith_status make_room(text_reader *reader) {
  kith_file *file = reader->file;
  uint64_t row_bytes = (uint64_t)file->points.dim * sizeof(double);
  uint64_t room = reader->room + reader->room / 2 + 1;
  if (reader->room == 0)
    room = reader->expected_rows ? reader->expected_rows : FIRST_VALUES / file->points.dim + 1;
  uint64_t bytes;
  if (__builtin_mul_overflow(room, row_bytes, &bytes))
    bytes = UINT64_MAX;
  void *values = kith_alloc(&reader->input->ctx->memory, bytes);
  if (!values)
    return kith_fail_memory(reader->input->ctx, bytes, reader->input->name);
  if (file->values)
    memcpy(values, file->values, reader->n_rows * row_bytes);
  kith_free(file->values);
  file->values = values;
  reader->room = room;
  return KITH_OK;
}

static kith_status take_row(text_reader *reader, slice line) {
  if (reader->n_rows == reader->room) {
    kith_status status = make_room(reader);
    if (status)
      return status;
  }
  double *row = (double *)reader->file->values + reader->n_rows * reader->file->points.dim;
  field_walk walk = walk_line(line, reader->delimiter);
  uint32_t field = 0;
  for (; walk.more && field < reader->n_fields; field++) {
    int32_t dim = reader->dim_of_field[field];
    if (dim < 0)
      next_field(&walk);
    else if (!next_number(&walk, reader->locale, &row[dim]))
      return fail_field(reader, line, field);
  }
  if (walk.more || field < reader->n_fields)
    return fail_ragged(reader, line);
  reader->n_rows++;
  return KITH_OK;
}

/* ---- The beginning of the table ----------------------------------------------------------------------- */

/* Whether a field that is not empty is a number, or else a word. chosen may be NULL for all fields. */
static bool has_field(const text_reader *reader, slice line, const kith_columns *chosen, bool wants_number) {
  double value;
  uint32_t number = 0;
  for (field_walk walk = walk_line(line, reader->delimiter); walk.more; number++) {
    slice field = next_field(&walk);
    bool matters = !chosen;
    for (uint32_t c = 0; !matters && c < chosen->n; c++)
      matters = chosen->at[c] == number;
    if (matters && field.begin < field.end && field_value(field, reader->locale, &value) == wants_number)
      return true;
  }
  return false;
}

static bool has_word(const text_reader *reader, slice line, const kith_columns *chosen) {
  return has_field(reader, line, chosen, false);
}

/* Whether a line is what pandas writes above an index and columns without names: nothing, 0, 1, 2 ... */
static bool is_numbered_header(const text_reader *reader, slice line) {
  field_walk walk = walk_line(line, reader->delimiter);
  slice index = next_field(&walk);
  if (index.begin < index.end || !walk.more)
    return false;
  for (uint32_t number = 0; walk.more; number++) {
    char text[16];
    int length = snprintf(text, sizeof text, "%u", number);
    slice field = next_field(&walk);
    if (field.end - field.begin != length || memcmp(field.begin, text, (size_t)length) != 0)
      return false;
  }
  return true;
}

/* Whether the line can only be a header, going by the chosen fields, or by all of them (NULL). */
static bool is_header(const text_reader *reader, slice line, const kith_columns *chosen) {
  return is_numbered_header(reader, line) || has_word(reader, line, chosen);
}

/* A first column that a header gives no name is an index, as pandas writes it, rather than a coordinate. */
static kith_status check_index(const text_reader *reader, const kith_names *names) {
  if (reader->input->columns || names->n < 2 || names->name[0][0])
    return KITH_OK;
  return kith_fail(
      reader->input->ctx, KITH_ERR_FORMAT,
      "%s: column 0 has no name in the header, like an index: choose the columns that are coordinates",
      reader->input->name);
}

/* Splits a line into names. The block holds as many pointers as fields, then the texts. */
static kith_status split_names(const text_reader *reader, slice line, kith_names *names) {
  uint64_t bytes = reader->n_fields * (sizeof(char *) + 1) + (uint64_t)(line.end - line.begin);
  char **name = kith_alloc(&reader->input->ctx->memory, bytes);
  if (!name)
    return kith_fail_memory(reader->input->ctx, bytes, "the names of columns");
  *names = (kith_names){.n = reader->n_fields, .name = name};
  char *text = (char *)(name + reader->n_fields);
  field_walk walk = walk_line(line, reader->delimiter);
  for (uint32_t i = 0; i < names->n; i++) {
    slice field = next_field(&walk);
    name[i] = text;
    for (const char *at = field.begin; at < field.end; at++) {
      if (*at == '"' && at + 1 < field.end && at[1] == '"')
        at++;
      *text++ = *at ? *at : '?';
    }
    *text++ = '\0';
  }
  return KITH_OK;
}

static kith_status set_columns(text_reader *reader, const kith_columns *chosen) {
  uint64_t bytes = reader->n_fields * sizeof(int32_t);
  reader->dim_of_field = kith_alloc(&reader->input->ctx->memory, bytes);
  if (!reader->dim_of_field)
    return kith_fail_memory(reader->input->ctx, bytes, reader->input->name);
  for (uint32_t i = 0; i < reader->n_fields; i++)
    reader->dim_of_field[i] = -1;
  for (uint32_t c = 0; c < chosen->n; c++)
    reader->dim_of_field[chosen->at[c]] = (int32_t)c;
  reader->file->points.dim = chosen->n;
  return KITH_OK;
}

/* Takes names and columns from `header`, a comment or the first line; tells whether `line`, the first line, is
 * then a row. The names are kept where that is as it should be: a row below a comment, no row where the line is
 * the header. A header that does not serve is no failure here, but a status with a message. */
static kith_status try_header(text_reader *reader, const slice *header, slice line, kith_columns *chosen,
                              bool *is_row) {
  kith_names names = {0};
  kith_status status = header ? split_names(reader, *header, &names) : KITH_OK;
  if (!status)
    status = kith_columns_choose(reader->input, header ? &names : NULL, reader->n_fields, chosen);
  *is_row = !status && !is_header(reader, line, chosen);
  bool is_comment = header && header->begin != line.begin;
  if (!status && header && is_comment == *is_row)
    status = kith_names_pick(reader->input->ctx, &names, chosen, &reader->file->names);
  if (!status && !*is_row && !is_comment)
    status = check_index(reader, &names);
  kith_free(names.name);
  return status;
}

/* What separates the fields of the first line: blanks if nothing else does, but in a .csv. */
static char guess_delimiter(const kith_input *input, slice line) {
  size_t bytes = (size_t)(line.end - line.begin);
  if (memchr(line.begin, ',', bytes))
    return ',';
  if (memchr(line.begin, ';', bytes))
    return ';';
  return strcasecmp(input->ending, ".csv") == 0 ? ',' : ' ';
}

/* Decides what the first line that is not a comment is: a header or a row. The comment above it may hold
 * the names, as numpy.savetxt writes them. */
static kith_status begin_table(text_reader *reader, slice line, bool *is_row) {
  kith_context *ctx = reader->input->ctx;
  if (!reader->delimiter)
    reader->delimiter = guess_delimiter(reader->input, line);
  reader->n_fields = count_fields(line, reader->delimiter);
  if (reader->n_fields > FIELDS_MOST)
    return kith_fail(ctx, KITH_ERR_FORMAT, "%s, line %llu: more than %d fields; is it a text of points?",
                     reader->input->name, (unsigned long long)reader->line, FIELDS_MOST);
  kith_columns chosen;
  kith_status status = KITH_OK;
  slice comment = {reader->comment, reader->comment ? reader->comment + reader->comment_bytes : NULL};
  bool may_be_header = is_header(reader, line, NULL);
  bool has_comment = reader->comment && count_fields(comment, reader->delimiter) == reader->n_fields &&
                     has_word(reader, comment, NULL);
  *is_row = false;
  if (has_comment)
    status = try_header(reader, &comment, line, &chosen, is_row);
  if (status == KITH_ERR_MEMORY || status == KITH_ERR_BUDGET)
    return status;
  if (!has_comment || (may_be_header && !*is_row))
    status = try_header(reader, may_be_header ? &line : NULL, line, &chosen, is_row);
  bool is_named = !status && !*is_row && !is_numbered_header(reader, line); /* by words */
  if (is_named && has_field(reader, line, &chosen, true))
    return kith_fail(ctx, KITH_ERR_FORMAT,
                     "%s, line %llu: neither a header (it holds numbers) nor a row (it holds words)",
                     reader->input->name, (unsigned long long)reader->line);
  return status ? status : set_columns(reader, &chosen);
}

static kith_status remember_comment(text_reader *reader, slice line) {
  while (line.begin < line.end && *line.begin == '#')
    line.begin++;
  line.begin = skip_blank(line.begin, line.end, ' ');
  if (line.begin == line.end)
    return KITH_OK;
  uint64_t bytes = (uint64_t)(line.end - line.begin);
  char *comment = kith_alloc(&reader->input->ctx->memory, bytes);
  if (!comment)
    return kith_fail_memory(reader->input->ctx, bytes, reader->input->name);
  memcpy(comment, line.begin, bytes);
  kith_free(reader->comment);
  reader->comment = comment;
  reader->comment_bytes = bytes;
  return KITH_OK;
}

/* ---- Lines -------------------------------------------------------------------------------------------- */

static kith_status take_line(text_reader *reader, slice line) {
  const char *first = skip_blank(line.begin, line.end, ' ');
  if (first == line.end)
    return KITH_OK;
  if (*first == '#')
    return reader->dim_of_field ? KITH_OK : remember_comment(reader, (slice){first, line.end});
  if (!reader->dim_of_field) {
    bool is_row = false;
    kith_status status = begin_table(reader, line, &is_row);
    if (status || !is_row)
      return status;
  }
  return take_row(reader, line);
}

/* Looks at how the text begins: skips a byte order mark, and refuses what is no text of bytes. */
static kith_status begin_text(const text_reader *reader, const char **at, const char *end) {
  const unsigned char *bytes = (const unsigned char *)*at;
  if (end - *at < 3)
    return KITH_OK;
  if (bytes[0] == 0x1F && bytes[1] == 0x8B)
    return kith_fail(reader->input->ctx, KITH_ERR_FORMAT, "%s: it is compressed (gzip); unpack it first",
                     reader->input->name);
  if ((bytes[0] == 0xFF && bytes[1] == 0xFE) || (bytes[0] == 0xFE && bytes[1] == 0xFF))
    return kith_fail(reader->input->ctx, KITH_ERR_FORMAT, "%s: it is text in UTF-16; save it as UTF-8",
                     reader->input->name);
  if (bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF)
    *at += 3;
  return KITH_OK;
}

/* Takes the lines in [*at, end) and moves *at behind them; the last may lack its newline if is_last. */
static kith_status take_lines(text_reader *reader, const char **at, const char *end, bool is_last) {
  if (reader->line == 0) {
    kith_status status = begin_text(reader, at, end);
    if (status)
      return status;
  }
  while (*at < end) {
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    if (!newline && !is_last)
      break;
    slice line = {*at, newline ? newline : end};
    if (++reader->line % LINES_BETWEEN_CHECKS == 0 && kith_cancelled(reader->input->ctx))
      return kith_check_cancel(reader->input->ctx);
    kith_status status = take_line(reader, line);
    if (status)
      return status;
    *at = newline ? newline + 1 : end;
  }
  return KITH_OK;
}

/* ---- Sources ------------------------------------------------------------------------------------------ */

static kith_status read_map(text_reader *reader) {
  const char *at = reader->input->bytes, *end = at + reader->input->n_bytes;
  madvise((void *)(uintptr_t)at, reader->input->n_bytes, MADV_SEQUENTIAL);
  uint64_t newlines = 0;
  for (const char *byte = at; byte < end; byte++)
    newlines += *byte == '\n';
  reader->expected_rows = newlines + 1;
  return take_lines(reader, &at, end, true);
}

/* A buffer whose bytes [0, held) wait to be parsed. */
typedef struct chunk {
  char *bytes;
  uint64_t held, room;
} text_chunk;

/* Reads more into the chunk; *is_last says that there is no more. */
static kith_status fill_chunk(const kith_input *input, text_chunk *chunk, bool *is_last) {
  if (chunk->held == chunk->room) {
    uint64_t room = chunk->room ? 2 * chunk->room : CHUNK_BYTES;
    char *bytes = kith_alloc(&input->ctx->memory, room);
    if (!bytes)
      return kith_fail_memory(input->ctx, room, input->name);
    if (chunk->held > 0)
      memcpy(bytes, chunk->bytes, chunk->held);
    kith_free(chunk->bytes);
    chunk->bytes = bytes;
    chunk->room = room;
  }
  ssize_t got = read(input->fd, chunk->bytes + chunk->held, chunk->room - chunk->held);
  if (got < 0 && errno != EINTR)
    return kith_fail(input->ctx, KITH_ERR_IO, "%s: reading failed: %s", input->name, strerror(errno));
  chunk->held += got > 0 ? (uint64_t)got : 0;
  *is_last = got == 0;
  return kith_cancelled(input->ctx) ? kith_check_cancel(input->ctx) : KITH_OK;
}

static kith_status read_pipe(text_reader *reader) {
  text_chunk chunk = {0};
  bool is_last = false;
  kith_status status = KITH_OK;
  while (!status && !is_last) {
    status = fill_chunk(reader->input, &chunk, &is_last);
    if (status)
      break;
    const char *at = chunk.bytes;
    status = take_lines(reader, &at, chunk.bytes + chunk.held, is_last);
    chunk.held -= (uint64_t)(at - chunk.bytes);
    if (chunk.bytes && chunk.held > 0)
      memmove(chunk.bytes, at, chunk.held);
  }
  kith_free(chunk.bytes);
  return status;
}

kith_status kith_read_text(const kith_input *input, kith_file *file) {
  text_reader reader = {.input = input, .file = file, .locale = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
  if (!reader.locale)
    return kith_fail(input->ctx, KITH_ERR_MEMORY, "%s: the system refused memory for the C locale",
                     input->name);
  if (strcasecmp(input->ending, ".tsv") == 0)
    reader.delimiter = '\t';
  kith_status status = input->bytes ? read_map(&reader) : read_pipe(&reader);
  if (!status && reader.n_rows == 0)
    status = kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: there is no line of numbers in it", input->name);
  if (!status)
    file->points = kith_points_f64(file->values, reader.n_rows, file->points.dim);
  freelocale(reader.locale);
  kith_free(reader.comment);
  kith_free(reader.dim_of_field);
  return status;
}
