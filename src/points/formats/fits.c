/* Reads binary tables of FITS files through CFITSIO: "file.fits[1]" or "file.fits[NAME]", or the first table.
 *
 * The library reads from the open file under a name of ours, so that its own is never parsed as one of the
 * extended names; not from the mapped one, since it reads on behind the end of memory where a header is cut
 * short. It applies TSCAL and TZERO, and gives NaN where TNULL says that there is no value. Columns of numbers
 * become dimensions, vectors several. float32 stays so if all chosen columns are; everything else becomes
 * float64, and 64-bit integers only if that is exact. Pieces of a few MiB; the rows that the header promises
 * are compared with the length of the file first. One thread at a time is in here, for the library's errors are
 * global. Damaged headers are as safe as that library is, but for what it is known to copy without looking. */
#include "points/formats/formats.h"

#include <fitsio.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE_VALUES = 256 * 1024, BLOCK_BYTES = 2880, CARD_BYTES = 80 };

/* A table that is open; status is CFITSIO's, which skips every call once it is set. */
typedef struct fits_table {
  const kith_input *input;
  kith_file *file;
  fitsfile *fits;
  int status;
  LONGLONG n_rows;
  int padded; /* a copy of the file in whole blocks; -1: it has them itself */
} fits_table;

/* ---- Errors ------------------------------------------------------------------------------------------- */

static kith_status fail_fits(fits_table *table, const char *what) {
  char text[FLEN_STATUS] = "", detail[FLEN_ERRMSG] = "";
  fits_get_errstatus(table->status, text);
  fits_read_errmsg(detail); /* the oldest, which says most */
  fits_clear_errmsg();
  bool is_memory = table->status == MEMORY_ALLOCATION;
  return kith_fail(table->input->ctx, is_memory ? KITH_ERR_MEMORY : KITH_ERR_FORMAT,
                   "%s: CFITSIO cannot %s: %s%s%s", table->input->name, what, text, *detail ? "; " : "",
                   detail);
}

/* Writes "1 STARS, 2 GALAXIES", the tables of the file, as many as fit. */
static void list_tables(fits_table *table, char *out, size_t size) {
  int n_units = 0, status = 0, kind;
  size_t used = 0;
  out[0] = '\0';
  fits_get_num_hdus(table->fits, &n_units, &status);
  for (int i = 2; i <= n_units && used + 100 < size; i++) {
    char name[FLEN_VALUE] = "";
    int no_name = 0;
    if (fits_movabs_hdu(table->fits, i, &kind, &status))
      break;
    fits_read_key(table->fits, TSTRING, "EXTNAME", name, NULL, &no_name);
    if (kind == BINARY_TBL)
      used +=
          (size_t)snprintf(out + used, size - used, "%s[%d] %s", used ? ", " : "", i - 1, no_name ? "" : name);
  }
  fits_clear_errmsg();
}

static kith_status fail_no_table(fits_table *table, const char *what) {
  char list[512];
  list_tables(table, list, sizeof list);
  if (!*list)
    return kith_fail(table->input->ctx, KITH_ERR_FORMAT, "%s: there is no binary table in it",
                     table->input->path);
  return kith_fail(table->input->ctx, KITH_ERR_ARGUMENT, "%s: %s; the binary tables are: %s",
                   table->input->name, what, list);
}

/* ---- The table ---------------------------------------------------------------------------------------- */

/* CFITSIO reads whole blocks. A file whose last one is not, as some programs leave it, is copied and filled up.
 */
static kith_status pad_file(fits_table *table) {
  const kith_input *input = table->input;
  uint64_t at = 0, missing = (BLOCK_BYTES - input->n_bytes % BLOCK_BYTES) % BLOCK_BYTES;
  if (missing == 0)
    return KITH_OK;
  if (input->n_bytes > kith_memory_left(&input->ctx->memory))
    return kith_fail_memory(input->ctx, input->n_bytes, input->name);
  table->padded = memfd_create("points.fits", MFD_CLOEXEC);
  for (ssize_t done = 1; at < input->n_bytes && done > 0; at += done > 0 ? (uint64_t)done : 0)
    done = write(table->padded, input->bytes + at, input->n_bytes - at);
  if (at < input->n_bytes || ftruncate(table->padded, (off_t)(input->n_bytes + missing)) != 0)
    return kith_fail(input->ctx, KITH_ERR_MEMORY, "out of memory for a copy of %s", input->name);
  return KITH_OK;
}

/* Opens the file, or its copy, by the descriptor that is open already. */
static kith_status open_fits(fits_table *table) {
  const kith_input *input = table->input;
  if (input->n_bytes >= 2 && memcmp(input->bytes, "\x1f\x8b", 2) == 0)
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: the file is packed by gzip; unpack it with gunzip",
                     input->name);
  if (input->n_bytes < BLOCK_BYTES || memcmp(input->bytes, "SIMPLE  =", 9) != 0)
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: not a FITS file: it does not begin with a header of 2880 bytes", input->name);
  kith_status status = pad_file(table);
  if (status)
    return status;
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", table->padded >= 0 ? table->padded : input->fd);
  fits_open_diskfile(&table->fits, path, READONLY, &table->status);
  return table->status ? fail_fits(table, "open the file") : KITH_OK;
}

/* The length of a card's value as CFITSIO would copy it, or a little more: what is between quotes, or all of
 * it.
 */
static size_t value_length(const char *card) {
  const char *at = card + 10;
  const char *end = card + CARD_BYTES;
  while (at < end && *at == ' ')
    at++;
  if (at < end && *at == '\'') {
    const char *quote = ++at;
    while (quote < end && (*quote != '\'' || (quote + 1 < end && quote[1] == '\'')))
      quote += *quote == '\'' ? 2 : 1; /* two quotes stand for one */
    return (size_t)(quote - at);
  }
  while (end > at && end[-1] == ' ')
    end--;
  return (size_t)(end - at);
}

/* The longest value that CFITSIO 4.2 has room for, of cards that it copies without looking: names of columns,
 * and texts for missing values, which are integers in binary tables. */
static size_t most_of_value(const char *card, bool is_binary) {
  enum { MOST_NAME = 68, MOST_TEXT = 19, MOST_INTEGER = 20 };
  if (memcmp(card, "TTYPE", 5) == 0)
    return MOST_NAME;
  if (memcmp(card, "TNULL", 5) == 0)
    return is_binary ? MOST_INTEGER : MOST_TEXT;
  return CARD_BYTES;
}

static kith_status check_header(const fits_table *table, uint64_t at, int extension) {
  const kith_input *input = table->input;
  const char *first = (const char *)input->bytes + at;
  bool is_binary = at + CARD_BYTES <= input->n_bytes && memmem(first, CARD_BYTES, "BINTABLE", 8);
  for (; at + CARD_BYTES <= input->n_bytes; at += CARD_BYTES) {
    const char *card = (const char *)input->bytes + at;
    if (memcmp(card, "END     ", 8) == 0)
      break;
    if (value_length(card) > most_of_value(card, is_binary))
      return kith_fail(input->ctx, KITH_ERR_FORMAT,
                       "%s: the header of extension %d is damaged: the value of %.8s is longer than any can be",
                       input->name, extension, card);
  }
  return KITH_OK;
}

/* Visits all units once, each after a look at its header: CFITSIO reads it when it gets there. */
static kith_status count_units(fits_table *table, int *n_units) {
  kith_status status = KITH_OK;
  for (*n_units = 1; !status && !table->status; ++*n_units) {
    LONGLONG head = 0, begin = 0, end = 0;
    int kind, no_more = 0;
    fits_get_hduaddrll(table->fits, &head, &begin, &end, &table->status);
    if (table->status || end <= head || (uint64_t)end >= table->input->n_bytes)
      break;
    status = check_header(table, (uint64_t)end, *n_units); /* units are counted from 1, extensions from 0 */
    if (!status && fits_movrel_hdu(table->fits, 1, &kind, &no_more)) {
      fits_clear_errmsg(); /* what follows the last unit is nobody's */
      break;
    }
  }
  return status;
}

/* Goes to the first binary table, the one with the number, or the one with the name. */
static kith_status find_table(fits_table *table) {
  const char *part = table->input->part;
  char what[120] = "there is no table";
  int kind = IMAGE_HDU, n_units = 0;
  kith_status status = count_units(table, &n_units);
  if (status)
    return status;
  if (!part) {
    for (int i = 2; i <= n_units && kind != BINARY_TBL; i++)
      fits_movabs_hdu(table->fits, i, &kind, &table->status);
  } else if (*part && strspn(part, "0123456789") == strlen(part)) {
    int number = strlen(part) < 8 ? atoi(part) + 1 : n_units + 1;
    if (number <= n_units)
      fits_movabs_hdu(table->fits, number, &kind, &table->status);
    snprintf(what, sizeof what, "extension %.8s is not a binary table", part);
    if (number > n_units)
      snprintf(what, sizeof what, "there is no extension %.20s", part);
  } else {
    char name[FLEN_VALUE];
    snprintf(name, sizeof name, "%s", part);
    snprintf(what, sizeof what, "there is no binary table '%.70s'", part);
    fits_movnam_hdu(table->fits, BINARY_TBL, name, 0, &table->status);
    if (table->status == BAD_HDU_NUM) {
      table->status = 0;
      fits_clear_errmsg();
    } else {
      kind = BINARY_TBL;
    }
  }
  if (table->status)
    return fail_fits(table, "find the table");
  return kind == BINARY_TBL ? KITH_OK : fail_no_table(table, what);
}

/* Compares what the header promises with what the file holds. */
static kith_status check_size(fits_table *table) {
  const kith_input *input = table->input;
  LONGLONG row_bytes = 0, begin = 0, head, end;
  int is_packed = 0, no_key = 0;
  fits_get_num_rowsll(table->fits, &table->n_rows, &table->status);
  fits_read_key(table->fits, TLONGLONG, "NAXIS1", &row_bytes, NULL, &table->status);
  fits_get_hduaddrll(table->fits, &head, &begin, &end, &table->status);
  if (table->status)
    return fail_fits(table, "read the size of the table");
  fits_read_key(table->fits, TLOGICAL, "ZTABLE", &is_packed, NULL, &no_key);
  fits_clear_errmsg();
  if (!no_key && is_packed)
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: the table is packed by fpack; unpack it with funpack",
                     input->name);
  LONGLONG needed;
  if (table->n_rows < 0 || row_bytes < 0 || __builtin_mul_overflow(table->n_rows, row_bytes, &needed) ||
      begin > (LONGLONG)input->n_bytes || needed > (LONGLONG)input->n_bytes - begin)
    return kith_fail(
        input->ctx, KITH_ERR_FORMAT,
        "%s: the header promises %lld rows of %lld bytes, but the file holds only %lld bytes of them; "
        "was it cut short?",
        input->name, table->n_rows, row_bytes,
        (LONGLONG)input->n_bytes > begin ? (LONGLONG)input->n_bytes - begin : 0);
  return KITH_OK;
}

/* ---- Columns ------------------------------------------------------------------------------------------ */

/* How a column is read. */
typedef struct fits_column {
  int number;                  /* CFITSIO's, from 1 */
  int type;                    /* that its values are asked for in: TFLOAT, TDOUBLE, TLONGLONG or TULONGLONG */
  const kith_element *element; /* the same */
  LONGLONG repeat;
} fits_column;

/* What a column holds that is no number; NULL for numbers. */
static const char *refuse_type(int type, LONGLONG repeat) {
  if (type < 0)
    return "lists of varying length";
  if (repeat < 1)
    return "nothing";
  switch (type) {
  case TBYTE:
  case TSBYTE:
  case TSHORT:
  case TUSHORT:
  case TINT:
  case TUINT:
  case TLONG:
  case TULONG:
  case TLONGLONG:
  case TULONGLONG:
  case TFLOAT:
  case TDOUBLE:
    return NULL;
  case TSTRING:
    return "text";
  case TLOGICAL:
    return "truth values";
  case TBIT:
    return "bits";
  case TCOMPLEX:
  case TDBLCOMPLEX:
    return "complex numbers";
  default:
    return "no numbers";
  }
}

static kith_status list_columns(fits_table *table, kith_fields *fields) {
  int n = 0;
  kith_status status = KITH_OK;
  fields->any_case = true;
  fits_get_num_cols(table->fits, &n, &table->status);
  for (int i = 1; i <= n && !status && !table->status; i++) {
    char key[FLEN_KEYWORD], name[FLEN_VALUE] = "";
    int type = 0, no_name = 0;
    LONGLONG repeat = 0, width = 0;
    fits_get_coltypell(table->fits, i, &type, &repeat, &width, &table->status);
    fits_make_keyn("TTYPE", i, key, &table->status);
    fits_read_key(table->fits, TSTRING, key, name, NULL, &no_name);
    status = kith_fields_add(table->input->ctx, fields, no_name ? "" : name, refuse_type(type, repeat),
                             repeat > 0 ? (uint64_t)repeat : 0);
  }
  fits_clear_errmsg();
  return status ? status : table->status ? fail_fits(table, "list the columns") : KITH_OK;
}

/* Chooses the type to ask for: that of the file where float32, or 64-bit integers, are to stay exact. */
static kith_status look_at_column(fits_table *table, uint32_t field, fits_column *column) {
  int stored = 0, scaled = 0;
  LONGLONG repeat, width;
  column->number = (int)field + 1;
  fits_get_coltypell(table->fits, column->number, &stored, &column->repeat, &width, &table->status);
  fits_get_eqcoltypell(table->fits, column->number, &scaled, &repeat, &width, &table->status);
  bool keeps = (stored == TFLOAT && scaled == TFLOAT) ||
               (stored == TLONGLONG && (scaled == TLONGLONG || scaled == TULONGLONG));
  column->type = keeps ? scaled : TDOUBLE;
  column->element = kith_element_find(column->type == TFLOAT       ? "f4"
                                      : column->type == TLONGLONG  ? "i8"
                                      : column->type == TULONGLONG ? "u8"
                                                                   : "f8");
  return table->status ? fail_fits(table, "describe a column") : KITH_OK;
}

/* ---- Rows --------------------------------------------------------------------------------------------- */

/* A piece of a column: its values, and which of them are null. */
typedef struct fits_piece {
  LONGLONG first, n_rows; /* from 0 */
  char *values;
  char *nulls;
} fits_piece;

/* Turns the piece of one element of a column into points; nulls become NaN. */
static kith_status convert_piece(fits_table *table, const fits_column *column, const fits_piece *piece,
                                 LONGLONG item, uint32_t dim) {
  const kith_points *points = &table->file->points;
  int64_t size = column->element->bytes;
  char *to = (char *)table->file->values + piece->first * points->row_stride + dim * points->col_stride;
  kith_element_run run = {.from = piece->values + item * size,
                          .from_stride = column->repeat * size,
                          .to = to,
                          .to_stride = points->row_stride,
                          .n = (uint64_t)piece->n_rows,
                          .element = column->element,
                          .dtype = points->dtype};
  uint64_t done = kith_elements_convert(&run);
  if (done < run.n) {
    uint64_t bits;
    memcpy(&bits, run.from + (int64_t)done * run.from_stride, sizeof bits);
    const char *name = kith_file_column(table->file, dim);
    return kith_fail_inexact(table->input, column->element, bits, (uint64_t)piece->first + done,
                             name ? name : "without a name");
  }
  for (LONGLONG i = 0; i < piece->n_rows; i++) {
    char *at = to + i * points->row_stride;
    if (!piece->nulls[i * column->repeat + item])
      continue;
    if (points->dtype == KITH_F32)
      *(float *)(void *)at = NAN;
    else
      *(double *)(void *)at = (double)NAN;
  }
  return KITH_OK;
}

static kith_status read_column(fits_table *table, const fits_column *column, fits_piece *piece, uint32_t dim) {
  LONGLONG at_once = PIECE_VALUES / column->repeat;
  at_once = at_once > 0 ? at_once : 1;
  kith_status status = KITH_OK;
  for (piece->first = 0; piece->first < table->n_rows && !status; piece->first += at_once) {
    LONGLONG left = table->n_rows - piece->first;
    piece->n_rows = left < at_once ? left : at_once;
    LONGLONG n_values = piece->n_rows * column->repeat;
    int any = 0;
    status = kith_check_cancel(table->input->ctx);
    if (status)
      break;
    memset(piece->values, 0, (size_t)n_values * column->element->bytes); /* nulls leave their places alone */
    fits_read_colnull(table->fits, column->type, column->number, piece->first + 1, 1, n_values, piece->values,
                      piece->nulls, &any, &table->status);
    if (table->status)
      return fail_fits(table, "read the table");
    for (LONGLONG i = 0; i < n_values && any; i++)
      if (piece->nulls[i])
        memset(piece->values + i * column->element->bytes, 0, column->element->bytes);
    for (LONGLONG item = 0; item < column->repeat && !status; item++)
      status = convert_piece(table, column, piece, item, dim + (uint32_t)item);
  }
  return status;
}

static kith_status read_columns(fits_table *table, const fits_column *columns, uint32_t n) {
  kith_context *ctx = table->input->ctx;
  uint64_t values = PIECE_VALUES;
  for (uint32_t c = 0; c < n; c++) /* at least a row */
    values = (uint64_t)columns[c].repeat > values ? (uint64_t)columns[c].repeat : values;
  uint64_t bytes = values * (sizeof(double) + 1);
  char *buffer = kith_alloc(&ctx->memory, bytes);
  if (!buffer)
    return kith_fail_memory(ctx, bytes, table->input->name);
  fits_piece piece = {.values = buffer, .nulls = buffer + values * sizeof(double)};
  kith_status status = KITH_OK;
  uint32_t dim = 0;
  for (uint32_t c = 0; c < n && !status; dim += (uint32_t)columns[c++].repeat)
    status = read_column(table, &columns[c], &piece, dim);
  kith_free(buffer);
  return status;
}

static kith_status look_at_columns(fits_table *table, const kith_columns *chosen, fits_column *columns,
                                   kith_dtype *dtype) {
  kith_status status = KITH_OK;
  *dtype = KITH_F32;
  for (uint32_t c = 0; c < chosen->n && !status; c++) {
    status = look_at_column(table, chosen->at[c], &columns[c]);
    *dtype = columns[c].type == TFLOAT ? *dtype : KITH_F64;
  }
  return status;
}

/* Reads the chosen columns, which are `dim` dimensions. */
static kith_status read_chosen(fits_table *table, const kith_columns *chosen, uint32_t dim) {
  kith_context *ctx = table->input->ctx;
  fits_column *columns = kith_alloc(&ctx->memory, chosen->n * sizeof *columns);
  if (!columns)
    return kith_fail_memory(ctx, chosen->n * sizeof *columns, "the columns of a file");
  kith_dtype dtype;
  kith_status status = look_at_columns(table, chosen, columns, &dtype);
  if (!status)
    status = kith_file_make_values(table->input, (uint64_t)table->n_rows, dim, dtype, table->file);
  if (!status)
    status = read_columns(table, columns, chosen->n);
  kith_free(columns);
  return status;
}

static kith_status read_table(fits_table *table) {
  kith_fields fields = {0};
  kith_columns chosen = {0};
  uint32_t dim = 0;
  kith_status status = list_columns(table, &fields);
  if (!status)
    status = kith_fields_choose(table->input, &fields, &chosen, &dim);
  if (!status)
    status = kith_fields_pick(table->input->ctx, &fields, &chosen, &table->file->names);
  if (!status)
    status = read_chosen(table, &chosen, dim);
  kith_fields_free(&fields);
  return status;
}

kith_status kith_read_fits(const kith_input *input, kith_file *file) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  fits_table table = {.input = input, .file = file, .padded = -1};
  kith_status status = open_fits(&table);
  if (!status)
    status = find_table(&table);
  if (!status)
    status = check_size(&table);
  if (!status)
    status = read_table(&table);
  int closing = 0;
  if (table.fits)
    fits_close_file(table.fits, &closing);
  if (table.padded >= 0)
    close(table.padded);
  fits_clear_errmsg();
  pthread_mutex_unlock(&lock);
  return status;
}
