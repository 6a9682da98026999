/* Reads .npy, versions 1 to 3, and turns arrays of elements into points (for other readers too).
 *
 * Native float32 and float64 are never copied: the points are a view of the mapped file, in C or Fortran
 * order. Other elements are converted, which is exact or refused: up to 16 bits to float32, the rest to
 * float64. The header is a literal of Python; it is read by hand, and nothing in it is trusted: every size
 * is compared with the file before it is used. O(1) for a view, O(n dim) with all threads for a copy. */
#include "points/formats/formats.h"

#include "base/team.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Elements and arrays ------------------------------------------------------------------------------ */

static const kith_element ELEMENTS[] = {
    {"f4", "float32", 'f', 4, KITH_F32}, {"f8", "float64", 'f', 8, KITH_F64},
    {"b1", "bool", 'b', 1, KITH_F32},    {"i1", "int8", 'i', 1, KITH_F32},
    {"u1", "uint8", 'u', 1, KITH_F32},   {"i2", "int16", 'i', 2, KITH_F32},
    {"u2", "uint16", 'u', 2, KITH_F32},  {"i4", "int32", 'i', 4, KITH_F64},
    {"u4", "uint32", 'u', 4, KITH_F64},  {"i8", "int64", 'i', 8, KITH_F64},
    {"u8", "uint64", 'u', 8, KITH_F64},
};

const kith_element *kith_element_find(const char *code) {
  for (size_t i = 0; i < sizeof ELEMENTS / sizeof *ELEMENTS; i++)
    if (strcmp(code, ELEMENTS[i].code) == 0)
      return &ELEMENTS[i];
  return NULL;
}

/* The bits of an element at any address, widened with zeros. */
static inline uint64_t load_bits(const char *at, uint8_t bytes, bool swapped) {
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  switch (bytes) {
  case 1:
    return (uint8_t)*at;
  case 2:
    memcpy(&two, at, 2);
    return swapped ? __builtin_bswap16(two) : two;
  case 4:
    memcpy(&four, at, 4);
    return swapped ? __builtin_bswap32(four) : four;
  default:
    memcpy(&eight, at, 8);
    return swapped ? __builtin_bswap64(eight) : eight;
  }
}

static inline int64_t sign_extend(uint64_t bits, uint8_t bytes) {
  int unused = 64 - 8 * bytes;
  return (int64_t)(bits << unused) >> unused;
}

static inline double value_of_bits(uint64_t bits, const kith_element *element) {
  if (element->kind == 'u')
    return (double)bits;
  if (element->kind == 'i')
    return (double)sign_extend(bits, element->bytes);
  if (element->kind == 'b')
    return bits != 0;
  if (element->bytes == 4) {
    uint32_t low = (uint32_t)bits;
    float narrow;
    memcpy(&narrow, &low, sizeof narrow);
    return (double)narrow;
  }
  double wide;
  memcpy(&wide, &bits, sizeof wide);
  return wide;
}

/* Whether float64 holds the element exactly: an integer may span at most 53 bits. */
static inline bool is_exact(uint64_t bits, const kith_element *element) {
  if (element->bytes < 8 || element->kind == 'f')
    return true;
  uint64_t size = element->kind == 'i' && (int64_t)bits < 0 ? 0 - bits : bits;
  return size == 0 || 64 - __builtin_clzll(size) - __builtin_ctzll(size) <= 53;
}

/* Converts one row into `to`. Returns the place in `chosen` of the first element that is not exact, or
 * chosen->n. */
static uint32_t convert_row(const kith_array *array, const kith_columns *chosen, const char *row, void *to) {
  const kith_element *element = array->element;
  for (uint32_t c = 0; c < chosen->n; c++) {
    const char *at = row + (int64_t)chosen->at[c] * array->column_stride;
    uint64_t bits = load_bits(at, element->bytes, array->swapped);
    if (!is_exact(bits, element))
      return c;
    double value = value_of_bits(bits, element);
    if (element->dtype == KITH_F32)
      ((float *)to)[c] = (float)value;
    else
      ((double *)to)[c] = value;
  }
  return chosen->n;
}

uint64_t kith_elements_convert(const kith_element_run *run) {
  for (uint64_t i = 0; i < run->n; i++) {
    uint64_t bits = load_bits(run->from + (int64_t)i * run->from_stride, run->element->bytes, false);
    if (!is_exact(bits, run->element))
      return i;
    double value = value_of_bits(bits, run->element);
    char *to = run->to + (int64_t)i * run->to_stride;
    if (run->dtype == KITH_F32)
      *(float *)(void *)to = (float)value;
    else
      *(double *)(void *)to = value;
  }
  return run->n;
}

kith_status kith_fail_inexact(const kith_input *input, const kith_element *element, uint64_t bits, uint64_t row,
                              const char *column) {
  char number[32];
  if (element->kind == 'i')
    snprintf(number, sizeof number, "%" PRId64, (int64_t)bits);
  else
    snprintf(number, sizeof number, "%" PRIu64, bits);
  return kith_fail(input->ctx, KITH_ERR_FORMAT,
                   "%s: row %" PRIu64
                   ", column %s holds %s, which float64 cannot hold exactly; scale or round the "
                   "array and save it as float64",
                   input->name, row, column, number);
}

static kith_status fail_inexact(const kith_input *input, const kith_array *array, const kith_columns *chosen,
                                uint64_t row) {
  const char *begin = array->data + (int64_t)row * array->row_stride;
  double discard[KITH_MAX_DIM];
  uint32_t column = chosen->at[convert_row(array, chosen, begin, discard)];
  uint64_t bits = load_bits(begin + (int64_t)column * array->column_stride, 8, array->swapped);
  char number[16];
  snprintf(number, sizeof number, "%u", column);
  return kith_fail_inexact(input, array->element, bits, row, number);
}

/* Rows being converted, shared by the threads. */
typedef struct conversion {
  const kith_array *array;
  const kith_columns *chosen;
  char *values;
  uint64_t row_bytes, shares;
  _Atomic uint64_t inexact_row; /* the first row that does not convert exactly, or UINT64_MAX */
} conversion;

static void lower_to(_Atomic uint64_t *least, uint64_t value) {
  uint64_t present = atomic_load(least);
  while (value < present && !atomic_compare_exchange_weak(least, &present, value)) {
  }
}

static void convert_share(void *argument, uint64_t share) {
  conversion *c = argument;
  uint64_t end = kith_share_begin(c->array->n_rows, share + 1, c->shares);
  for (uint64_t row = kith_share_begin(c->array->n_rows, share, c->shares); row < end; row++) {
    const char *from = c->array->data + (int64_t)row * c->array->row_stride;
    if (convert_row(c->array, c->chosen, from, c->values + row * c->row_bytes) < c->chosen->n)
      lower_to(&c->inexact_row, row);
  }
}

kith_status kith_file_make_values(const kith_input *input, uint64_t n, uint32_t dim, kith_dtype dtype,
                                  kith_file *file) {
  uint64_t row_bytes = (uint64_t)dim * (dtype == KITH_F32 ? 4 : 8), bytes;
  if (__builtin_mul_overflow(n, row_bytes, &bytes))
    bytes = UINT64_MAX;
  file->values = kith_alloc(&input->ctx->memory, bytes);
  if (!file->values)
    return kith_fail_memory(input->ctx, bytes, input->name);
  file->points =
      dtype == KITH_F32 ? kith_points_f32(file->values, n, dim) : kith_points_f64(file->values, n, dim);
  return kith_points_check(input->ctx, &file->points, input->name); /* before they are read, not only after */
}

static kith_status copy_array(const kith_input *input, const kith_array *array, const kith_columns *chosen,
                              kith_file *file) {
  kith_status status = kith_file_make_values(input, array->n_rows, chosen->n, array->element->dtype, file);
  if (status)
    return status;
  conversion c = {
      .array = array, .chosen = chosen, .values = file->values, .row_bytes = (uint64_t)file->points.row_stride};
  c.shares = kith_shares(input->ctx, array->n_rows, 4096);
  atomic_store(&c.inexact_row, UINT64_MAX);
  kith_each(input->ctx, c.shares, convert_share, &c);
  if (atomic_load(&c.inexact_row) != UINT64_MAX)
    return fail_inexact(input, array, chosen, atomic_load(&c.inexact_row));
  return KITH_OK;
}

/* Whether the chosen columns are evenly spaced, so that one stride walks them. */
static bool is_progression(const kith_columns *chosen, int64_t *step) {
  *step = chosen->n > 1 ? (int64_t)chosen->at[1] - chosen->at[0] : 1;
  for (uint32_t c = 2; c < chosen->n; c++)
    if ((int64_t)chosen->at[c] - chosen->at[c - 1] != *step)
      return false;
  return true;
}

kith_status kith_file_take_array(const kith_input *input, const kith_array *array, kith_file *file) {
  kith_columns chosen;
  if (array->n_columns == 0)
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: the array has no columns; points need at least one",
                     input->name);
  kith_status status = kith_columns_choose(input, NULL, array->n_columns, &chosen);
  if (status)
    return status;
  int64_t step;
  bool aligned = (uintptr_t)array->data % array->element->bytes == 0;
  if (array->element->kind != 'f' || array->swapped || !aligned || !is_progression(&chosen, &step))
    return copy_array(input, array, &chosen, file);
  file->points = (kith_points){.data = array->data,
                               .n = array->n_rows,
                               .dim = chosen.n,
                               .dtype = array->element->dtype,
                               .row_stride = array->row_stride,
                               .col_stride = array->column_stride * step};
  if (array->n_rows > 0) /* else the data may be empty, and a column's offset point past the map */
    file->points.data = array->data + (int64_t)chosen.at[0] * array->column_stride;
  file->keeps_map = true;
  return KITH_OK;
}

/* ---- The header --------------------------------------------------------------------------------------- */

/* The dictionary in the header. */
typedef struct npy_header {
  char descr[32];
  bool has_descr, has_order, has_shape;
  bool is_structured; /* descr is a list of fields */
  bool fortran_order;
  uint32_t n_axes;
  uint64_t shape[2]; /* of the first two axes */
} npy_header;

typedef struct literal {
  const char *at, *end;
} literal;

static void skip_blanks(literal *text) {
  while (text->at < text->end && (*text->at == ' ' || (*text->at >= '\t' && *text->at <= '\r')))
    text->at++;
}

static bool take_char(literal *text, char wanted) {
  skip_blanks(text);
  if (text->at == text->end || *text->at != wanted)
    return false;
  text->at++;
  return true;
}

static bool take_word(literal *text, const char *word) {
  skip_blanks(text);
  size_t length = strlen(word);
  if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0)
    return false;
  text->at += length;
  return true;
}

/* A string without escapes, cut to `size`: what is longer is no key and no type that we know. */
static bool take_string(literal *text, char *out, size_t size) {
  skip_blanks(text);
  if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
    return false;
  char quote = *text->at++;
  const char *close = memchr(text->at, quote, (size_t)(text->end - text->at));
  if (!close)
    return false;
  size_t length = (size_t)(close - text->at) < size ? (size_t)(close - text->at) : size - 1;
  memcpy(out, text->at, length);
  out[length] = '\0';
  text->at = close + 1;
  return true;
}

static bool take_count(literal *text, uint64_t *out) {
  skip_blanks(text);
  const char *begin = text->at;
  *out = 0;
  for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
    if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, (uint64_t)(*text->at - '0'), out))
      return false;
  if (text->at == begin)
    return false;
  if (text->at < text->end && *text->at == 'L') /* as Python 2 wrote it */
    text->at++;
  return true;
}

static bool take_shape(literal *text, npy_header *header) {
  header->n_axes = 0;
  if (!take_char(text, '('))
    return false;
  while (!take_char(text, ')')) {
    uint64_t count;
    if (!take_count(text, &count))
      return false;
    if (header->n_axes < 2)
      header->shape[header->n_axes] = count;
    header->n_axes++;
    if (!take_char(text, ','))
      return take_char(text, ')');
  }
  return true;
}

/* A type is a string, or for structured arrays a list; in a list nothing more is looked at. */
static bool take_descr(literal *text, npy_header *header) {
  header->is_structured = take_char(text, '[');
  return header->is_structured || take_string(text, header->descr, sizeof header->descr);
}

static bool take_entry(literal *text, npy_header *header) {
  char key[16];
  if (!take_string(text, key, sizeof key) || !take_char(text, ':'))
    return false;
  if (strcmp(key, "descr") == 0)
    return header->has_descr = take_descr(text, header);
  if (strcmp(key, "shape") == 0)
    return header->has_shape = take_shape(text, header);
  if (strcmp(key, "fortran_order") != 0)
    return false;
  header->fortran_order = take_word(text, "True");
  return header->has_order = header->fortran_order || take_word(text, "False");
}

static bool take_header(literal *text, npy_header *header) {
  *header = (npy_header){.descr = ""};
  if (!take_char(text, '{'))
    return false;
  while (!take_char(text, '}')) {
    if (!take_entry(text, header))
      return false;
    if (header->is_structured)
      return true;
    if (!take_char(text, ',')) {
      if (!take_char(text, '}'))
        return false;
      break;
    }
  }
  return header->has_descr && header->has_order && header->has_shape;
}

/* ---- The file ----------------------------------------------------------------------------------------- */

enum { MAGIC_BYTES = 6, VERSION_BYTES = 2 };

/* Finds the text of the header; the array begins where it ends. */
static kith_status find_header(const kith_input *input, literal *text) {
  kith_context *ctx = input->ctx;
  if (input->n_bytes < MAGIC_BYTES + VERSION_BYTES || memcmp(input->bytes, "\x93NUMPY", MAGIC_BYTES) != 0)
    return kith_fail(ctx, KITH_ERR_FORMAT, "%s: not an npy file, as numpy.save writes it", input->name);
  uint8_t major = (uint8_t)input->bytes[MAGIC_BYTES], minor = (uint8_t)input->bytes[MAGIC_BYTES + 1];
  if (major < 1 || major > 3)
    return kith_fail(ctx, KITH_ERR_FORMAT, "%s: npy version %u.%u; kith reads versions 1, 2 and 3", input->name,
                     major, minor);
  uint64_t length_bytes = major == 1 ? 2 : 4, begin = MAGIC_BYTES + VERSION_BYTES + length_bytes;
  if (input->n_bytes < begin)
    return kith_fail(ctx, KITH_ERR_FORMAT, "%s: the npy file ends within its header; was it cut short?",
                     input->name);
  uint32_t length = 0;
  memcpy(&length, input->bytes + MAGIC_BYTES + VERSION_BYTES, length_bytes);
  if (length > input->n_bytes - begin)
    return kith_fail(ctx, KITH_ERR_FORMAT,
                     "%s: the npy header claims %u bytes, but the file holds only %llu; was it cut short?",
                     input->name, length, (unsigned long long)(input->n_bytes - begin));
  *text = (literal){.at = input->bytes + begin, .end = input->bytes + begin + length};
  return KITH_OK;
}

/* How people call the types that are refused; `code` has no byte order. */
static const char *describe_type(const char *code) {
  static const struct {
    const char *code, *name;
  } NAMES[] = {{"f2", "float16"},    {"f", "extended precision"}, {"c", "complex"}, {"O", "Python object"},
               {"S", "byte string"}, {"a", "byte string"},        {"U", "string"},  {"V", "raw"},
               {"M", "datetime"},    {"m", "time difference"},    {"T", "string"}};
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
    if (strncmp(code, NAMES[i].code, strlen(NAMES[i].code)) == 0)
      return NAMES[i].name;
  return "unknown";
}

static kith_status choose_element(const kith_input *input, const npy_header *header, kith_array *array) {
  if (header->is_structured)
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: the array is structured; make it a plain one with "
                     "numpy.lib.recfunctions.structured_to_unstructured(a) and save that",
                     input->name);
  const char *code = header->descr;
  array->swapped = *code == '>';
  if (*code && strchr("<>=|", *code))
    code++;
  array->element = kith_element_find(code);
  if (array->element)
    return KITH_OK;
  char printable[sizeof header->descr];
  size_t i = 0;
  for (; header->descr[i]; i++)
    printable[i] = header->descr[i] >= ' ' && header->descr[i] <= '~' ? header->descr[i] : '?';
  printable[i] = '\0';
  return kith_fail(input->ctx, KITH_ERR_FORMAT,
                   "%s: holds %s values ('%s'), but kith reads float32, float64, integers and bool; save "
                   "a.astype('float32') or a.astype('float64')",
                   input->name, describe_type(code), printable);
}

/* An empty array is measured as if it had one row or column, so that its strides cannot overflow either. */
static kith_status check_size(const kith_input *input, const kith_array *array) {
  unsigned long long rows = array->n_rows, columns = array->n_columns;
  int64_t reach;
  if (__builtin_mul_overflow(rows ? rows : 1, columns ? columns : 1, &reach) ||
      __builtin_mul_overflow(reach, (int64_t)array->element->bytes, &reach))
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: the header promises %llu x %llu %s values, more than any file can hold", input->name,
                     rows, columns, array->element->name);
  uint64_t bytes = rows && columns ? (uint64_t)reach : 0;
  uint64_t held = input->n_bytes - (uint64_t)(array->data - input->bytes);
  if (bytes > held)
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: the header promises %llu x %llu %s values (%llu bytes), but the file holds only %llu",
                     input->name, rows, columns, array->element->name, (unsigned long long)bytes,
                     (unsigned long long)held);
  return KITH_OK;
}

kith_status kith_read_npy(const kith_input *input, kith_file *file) {
  literal text = {0};
  kith_status status = find_header(input, &text);
  if (status)
    return status;
  npy_header header;
  kith_array array = {.data = text.end};
  if (!take_header(&text, &header))
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: the npy header is damaged; it must give 'descr', 'fortran_order' and 'shape'",
                     input->name);
  status = choose_element(input, &header, &array);
  if (status)
    return status;
  if (header.n_axes < 1 || header.n_axes > 2)
    return kith_fail(input->ctx, KITH_ERR_FORMAT,
                     "%s: the array has %u axes; points need one row each: save a.reshape(n, dim)", input->name,
                     header.n_axes);
  array.n_rows = header.shape[0];
  array.n_columns = header.n_axes == 2 ? header.shape[1] : 1;
  status = check_size(input, &array);
  if (status)
    return status;
  int64_t size = array.element->bytes;
  array.row_stride = header.fortran_order ? size : size * (int64_t)array.n_columns;
  array.column_stride = header.fortran_order ? size * (int64_t)array.n_rows : size;
  return kith_file_take_array(input, &array, file);
}
