/* The choice of columns, by number or by name, and the names of those chosen. See formats.h.
 *
 * Readers of arrays and text choose columns; readers of records (HDF5, FITS) choose fields, of which one may be
 * several dimensions, and some may hold no numbers. O(columns) for a number, O(columns) comparisons for a name.
 */
#include "points/formats/formats.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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

static bool is_name(const kith_names *names, uint32_t i, column_word word) {
  const char *name = names->name[i];
  int (*compare)(const char *, const char *, size_t) = names->any_case ? strncasecmp : strncmp;
  return strlen(name) == (size_t)word.length && compare(name, word.begin, (size_t)word.length) == 0;
}

/* Finds the one column with the name. */
static kith_status find_name(const kith_input *input, const kith_names *names, uint64_t n_columns,
                             column_word word, uint64_t *column) {
  *column = UINT64_MAX;
  for (uint32_t i = 0; names && i < names->n; i++) {
    if (!is_name(names, i, word))
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

/* ---- Fields of records -------------------------------------------------------------------------------- */

/* Room for `needed` bytes in a block that holds `held` of its `room`; grows by half. */
static kith_status make_room(kith_context *ctx, void **block, uint64_t held, uint64_t needed, uint64_t *room) {
  if (needed <= *room)
    return KITH_OK;
  uint64_t bytes = needed + needed / 2;
  void *grown = kith_alloc(&ctx->memory, bytes);
  if (!grown)
    return kith_fail_memory(ctx, bytes, "the names of columns");
  if (held > 0)
    memcpy(grown, *block, held);
  kith_free(*block);
  *block = grown;
  *room = bytes;
  return KITH_OK;
}

kith_status kith_fields_add(kith_context *ctx, kith_fields *fields, const char *name, const char *refusal,
                            uint64_t repeat) {
  uint64_t length = strlen(name) + 1, n = fields->n;
  void *field = fields->field, *text = fields->text;
  kith_status status =
      make_room(ctx, &field, n * sizeof(kith_field), (n + 1) * sizeof(kith_field), &fields->field_room);
  fields->field = field;
  if (!status)
    status = make_room(ctx, &text, fields->text_bytes, fields->text_bytes + length, &fields->text_room);
  fields->text = text;
  if (status)
    return status;
  memcpy(fields->text + fields->text_bytes, name, length);
  fields->field[fields->n++] =
      (kith_field){.name_at = fields->text_bytes, .refusal = refusal, .repeat = repeat};
  fields->text_bytes += length;
  return KITH_OK;
}

void kith_fields_free(kith_fields *fields) {
  kith_free(fields->field);
  kith_free(fields->text);
  *fields = (kith_fields){0};
}

const char *kith_fields_name(const kith_fields *fields, uint32_t i) {
  return fields->text + fields->field[i].name_at;
}

/* The names of all fields, or of those that hold numbers; the block is of pointers only. */
static kith_status names_of(kith_context *ctx, const kith_fields *fields, bool only_numbers,
                            kith_names *names) {
  char **name = kith_alloc(&ctx->memory, fields->n * sizeof *name);
  if (!name)
    return kith_fail_memory(ctx, fields->n * sizeof *name, "the names of columns");
  *names = (kith_names){.name = name, .any_case = fields->any_case};
  for (uint32_t i = 0; i < fields->n; i++)
    if (!only_numbers || !fields->field[i].refusal)
      name[names->n++] = fields->text + fields->field[i].name_at;
  return KITH_OK;
}

static kith_status fail_refused(const kith_input *input, const kith_fields *fields, uint32_t i) {
  kith_names names = {0};
  kith_status status = names_of(input->ctx, fields, true, &names);
  if (status)
    return status;
  char list[512];
  list_names(&names, list, sizeof list);
  uint32_t n_numbers = names.n;
  kith_free(names.name);
  const char *name = kith_fields_name(fields, i), *holds = fields->field[i].refusal;
  if (n_numbers == 0)
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: no column holds plain numbers; '%s' holds %s",
                     input->name, name, holds);
  if (input->columns)
    return kith_fail(input->ctx, KITH_ERR_ARGUMENT, "%s: column '%s' holds %s; those that hold numbers are: %s",
                     input->name, name, holds, list);
  return kith_fail(input->ctx, KITH_ERR_ARGUMENT,
                   "%s: column '%s' holds %s; choose the columns that are coordinates, from: %s", input->name,
                   name, holds, list);
}

kith_status kith_fields_choose(const kith_input *input, const kith_fields *fields, kith_columns *chosen,
                               uint32_t *dim) {
  if (fields->n == 0)
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: there is no column in it", input->name);
  kith_names names = {0};
  kith_status status = names_of(input->ctx, fields, false, &names);
  if (!status)
    status = kith_columns_choose(input, &names, fields->n, chosen);
  kith_free(names.name);
  uint64_t dims = 0;
  for (uint32_t c = 0; !status && c < chosen->n; c++) {
    const kith_field *field = &fields->field[chosen->at[c]];
    if (field->refusal)
      return fail_refused(input, fields, chosen->at[c]);
    dims += field->repeat < KITH_MAX_DIM + 1 ? field->repeat : KITH_MAX_DIM + 1;
  }
  if (!status && dims > KITH_MAX_DIM)
    return kith_fail(input->ctx, KITH_ERR_ARGUMENT,
                     "%s: the columns are more than %d dimensions together; choose fewer", input->name,
                     KITH_MAX_DIM);
  *dim = (uint32_t)dims;
  return status;
}

kith_status kith_fields_pick(kith_context *ctx, const kith_fields *fields, const kith_columns *chosen,
                             kith_names *picked) {
  enum { ITEM_BYTES = sizeof "[4095]" };
  uint64_t bytes = 0, n = 0;
  for (uint32_t c = 0; c < chosen->n; c++) {
    uint64_t repeat = fields->field[chosen->at[c]].repeat;
    bytes += repeat * (sizeof(char *) + strlen(kith_fields_name(fields, chosen->at[c])) + ITEM_BYTES);
    n += repeat;
  }
  char **name = kith_alloc(&ctx->memory, bytes);
  if (!name)
    return kith_fail_memory(ctx, bytes, "the names of columns");
  *picked = (kith_names){.name = name};
  char *text = (char *)(name + n);
  for (uint32_t c = 0; c < chosen->n; c++) {
    const kith_field *field = &fields->field[chosen->at[c]];
    for (uint32_t item = 0; item < field->repeat; item++) {
      name[picked->n++] = text;
      text = stpcpy(text, kith_fields_name(fields, chosen->at[c]));
      text += field->repeat > 1 ? sprintf(text, "[%u]", item) : 0;
      text++;
    }
  }
  return KITH_OK;
}
