/* The space of a join: see space.h. */
#include "space.h"

#include "errors.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_BOX = 64 };

/* What a session owns for the sake of the space. */
struct space_parts {
  double *eps_of;     /* by row of A */
  void *coordinates;  /* of A without the column of the radii, if it had to be copied */
  kith_points points; /* A without that column, */
  uint32_t radius;    /* which is this one of those opened */
  double box[MAX_BOX];
  uint32_t n_box;
};

bool space_radius_is_listed(const cli_options *options) {
  size_t length = strlen(options->eps_column);
  for (const char *word = options->columns; *word; word += *word == ',') {
    size_t n = strcspn(word, ",");
    if (n == length && strncmp(word, options->eps_column, n) == 0)
      return true;
    word += n;
  }
  return false;
}

char *space_columns(const cli_options *options) {
  size_t size = strlen(options->columns) + strlen(options->eps_column) + 2;
  char *columns = malloc(size);
  if (columns)
    snprintf(columns, size, "%s,%s", options->columns, options->eps_column);
  return columns;
}

/* Whether an opened column is one of several that a column of the file has: POS[0]. */
static bool is_part(const session *s, uint32_t c) {
  const char *name = kith_file_column(s->file_a, c);
  return name && strchr(name, '[');
}

/* The opened column that has a name, by one way to compare them; dim: there is none. */
static uint32_t named_column(const session *s, const char *wanted, int (*compare)(const char *, const char *)) {
  uint32_t dim = s->a->dim;
  for (uint32_t c = 0; c < dim; c++) {
    const char *name = kith_file_column(s->file_a, c);
    if (name && compare(name, wanted) == 0)
      return c;
  }
  return dim;
}

/* The place of the column of the radii among those that were opened; dim: there is none. FITS has names in any
 * case. Numbers count columns of the file, which are those opened only if each has one value. */
static uint32_t radius_column(const session *s, const cli_options *options) {
  uint32_t dim = s->a->dim;
  uint64_t number;
  if (options->columns)
    return is_part(s, dim - 1) ? dim : dim - 1;
  uint32_t named = named_column(s, options->eps_column, strcmp);
  if (named == dim)
    named = named_column(s, options->eps_column, strcasecmp);
  bool parts = false;
  for (uint32_t c = 0; c < dim; c++)
    parts |= is_part(s, c);
  bool is_number = !parts && value_count(options->eps_column, &number) && number < dim;
  return named < dim || !is_number ? named : (uint32_t)number;
}

static const char *at(const kith_points *points, uint64_t row, uint32_t column) {
  return (const char *)points->data + (int64_t)row * points->row_stride + (int64_t)column * points->col_stride;
}

/* Points without column `column`: a narrower view where it is the last or the first, else a copy. */
static int drop_column(struct space_parts *parts, const kith_points *points, uint32_t column) {
  kith_points *left = &parts->points;
  *left = *points;
  left->dim--;
  if (column == left->dim)
    return CLI_OK;
  if (column == 0) {
    left->data = at(points, 0, 1);
    return CLI_OK;
  }
  size_t width = points->dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  char *to = parts->coordinates = malloc((points->n * left->dim + 1) * width);
  if (!to)
    return cli_fail(CLI_MEMORY, "out of memory");
  left->data = to;
  left->col_stride = (int64_t)width;
  left->row_stride = (int64_t)(left->dim * width);
  for (uint64_t i = 0; i < points->n; i++)
    for (uint32_t c = 0; c < points->dim; c++)
      if (c != column) {
        memcpy(to, at(points, i, c), width);
        to += width;
      }
  return CLI_OK;
}

/* Writes the item of a list such as "3,0" that is the number of a column; false if there is none, as where
 * columns are called by name. */
static bool listed_column(const char *list, uint32_t item, char *out, size_t size) {
  uint64_t number;
  for (; list && item > 0; item--) {
    list = strchr(list, ',');
    list = list ? list + 1 : NULL;
  }
  if (!list)
    return false;
  snprintf(out, size, "%.*s", (int)strcspn(list, ","), list);
  return value_count(out, &number);
}

/* The opened column that dimension c of a file's points is: one farther behind that of the radii. */
static uint32_t opened_column(const session *s, const kith_file *file, uint32_t c) {
  bool has_dropped = file == s->file_a && s->space && s->a == &s->space->points;
  return has_dropped && c >= s->space->radius ? c + 1 : c;
}

void space_column_name(const session *s, const kith_file *file, uint32_t c, char *out, size_t size) {
  bool is_a = file == s->file_a;
  const cli_options *options = s->options;
  c = opened_column(s, file, c);
  const char *name = kith_file_column(file, c);
  const char *list = !is_a && options->columns_b ? options->columns_b : options->columns;
  if (name)
    snprintf(out, size, "'%s'", name);
  else if (!listed_column(list, c, out, size))
    snprintf(out, size, "%u", (unsigned)c);
}

/* Radii are data: the message says where it is, as for coordinates. */
static int check_radius(const session *s, uint64_t row, double radius) {
  char name[64];
  if (radius >= 0 && isfinite(radius))
    return CLI_OK;
  space_column_name(s, s->file_a, s->space->radius, name, sizeof name);
  return cli_fail(
      CLI_INPUT,
      "%s: row %llu, column %s is %.15g (counted from 0), but a radius must be a finite number, 0 or "
      "greater%s",
      session_file_name(s->file_a), (unsigned long long)row, name, radius,
      s->options->skip_invalid ? "; --skip-invalid is for coordinates only" : "");
}

static int take_radii(session *s, const cli_options *options) {
  struct space_parts *parts = s->space;
  const kith_points *points = s->a;
  uint32_t column = strchr(options->eps_column, ',') ? points->dim : radius_column(s, options);
  if (column == points->dim)
    return cli_fail(CLI_USAGE,
                    "%s has no column '%s' of one value a row: --eps-column takes one name from its header, or "
                    "one number from 0",
                    kith_file_path(s->file_a), options->eps_column);
  if (points->dim == 1)
    return cli_fail(CLI_USAGE, "--eps-column %s leaves no column for the coordinates", options->eps_column);
  parts->eps_of = malloc((points->n + 1) * sizeof *parts->eps_of);
  if (!parts->eps_of)
    return cli_fail(CLI_MEMORY, "out of memory");
  parts->radius = column;
  for (uint64_t i = 0; i < points->n; i++) {
    const void *value = at(points, i, column);
    parts->eps_of[i] = points->dtype == KITH_F32 ? (double)*(const float *)value : *(const double *)value;
    int bad = check_radius(s, i, parts->eps_of[i]);
    if (bad)
      return bad;
  }
  int code = drop_column(parts, points, column);
  s->a = &parts->points;
  return code;
}

static int read_box(struct space_parts *parts, const char *text) {
  char *copy = strdup(text);
  if (!copy)
    return cli_fail(CLI_MEMORY, "out of memory");
  int code = CLI_OK;
  char *rest = copy;
  for (char *word; !code && (word = strsep(&rest, ","));) {
    double value;
    if (!value_real(word, &value))
      code = cli_fail(CLI_USAGE, "--box is '%s', but must be numbers such as 10,10,10, or the word file", text);
    else if (parts->n_box == MAX_BOX)
      code = cli_fail(CLI_USAGE, "--box has more than %d values", MAX_BOX);
    else
      parts->box[parts->n_box++] = value;
  }
  free(copy);
  return code;
}

/* Which of x, y and z dimension c of A is; 3: none of them. */
static uint32_t axis_of(const session *s, uint32_t c) {
  const char *name = kith_file_column(s->file_a, opened_column(s, s->file_a, c));
  return name && name[0] >= 'x' && name[0] <= 'z' && name[1] == '\0' ? (uint32_t)(name[0] - 'x') : 3;
}

/* Takes the box of x, y and z for the columns that were chosen, in their order: lengths of each, or what
 * vectors have along each. */
static int fit_box(session *s, const double *box) {
  struct space_parts *parts = s->space;
  uint32_t dim = s->a->dim;
  uint32_t seen = 0;
  for (uint32_t c = 0; c < dim && c < 3; c++) {
    uint32_t axis = axis_of(s, c);
    seen |= 1U << axis;
    if (parts->n_box == 3)
      parts->box[c] = box[axis];
    for (uint32_t i = 0; i < 3 && parts->n_box == 9; i++)
      parts->box[3 * i + c] = axis < 3 ? box[3 * i + axis] : 0;
  }
  if (parts->n_box == 3)
    parts->n_box = dim;
  else if (dim != 3 || seen != 7)
    return cli_fail(CLI_USAGE,
                    "the box of %s is one of vectors, for x, y and z: leave --columns out, or choose all three",
                    kith_file_path(s->file_a));
  return CLI_OK;
}

/* The box that A carries; that of B, if it has one, must be the same. */
static int take_box(session *s) {
  struct space_parts *parts = s->space;
  double other[9] = {0};
  parts->n_box = (uint32_t)kith_file_box(s->file_a, parts->box);
  if (parts->n_box == 0)
    return cli_fail(CLI_USAGE, "%s carries no periodic box: give it, such as --box 10,10,10",
                    kith_file_path(s->file_a));
  uint32_t n_other = s->file_b ? (uint32_t)kith_file_box(s->file_b, other) : 0;
  if (n_other > 0 && (n_other != parts->n_box || memcmp(other, parts->box, n_other * sizeof *other) != 0))
    return cli_fail(CLI_USAGE, "%s and %s carry different boxes: give the one to use, such as --box 10,10,10",
                    kith_file_path(s->file_a), kith_file_path(s->file_b));
  double box[9];
  memcpy(box, parts->box, sizeof box);
  return fit_box(s, box);
}

int space_open(session *s, const cli_options *options) {
  if (!options->eps_column && !options->box)
    return CLI_OK;
  s->space = calloc(1, sizeof *s->space);
  if (!s->space)
    return cli_fail(CLI_MEMORY, "out of memory");
  int code = options->eps_column ? take_radii(s, options) : CLI_OK;
  if (code || !options->box)
    return code;
  return strcmp(options->box, "file") == 0 ? take_box(s) : read_box(s->space, options->box);
}

void space_close(session *s) {
  if (!s->space)
    return;
  free(s->space->eps_of);
  free(s->space->coordinates);
  free(s->space);
  s->space = NULL;
}

void space_join_options(const session *s, const cli_options *options, kith_join_options *join) {
  join->metric = (kith_metric)options->metric;
  join->radius = options->radius;
  if (!s->space)
    return;
  join->box = s->space->n_box ? s->space->box : NULL;
  join->n_box = s->space->n_box;
  join->eps_of = s->space->eps_of;
}

const char *space_metric_name(const cli_options *options) {
  static const char *const names[] = {"euclidean", "manhattan", "chebyshev", "cosine", "angular", "haversine"};
  return names[options->metric];
}

const char *space_invalid_rows(const cli_options *options) {
  if (options->metric == KITH_HAVERSINE)
    return "NaN, infinity or a latitude beyond the poles";
  if (options->box)
    return "NaN, infinity or a place too many boxes away";
  return options->metric >= KITH_COSINE ? "NaN, infinity or nothing but zeros" : "NaN or infinity";
}

void space_print(const cli_options *options, FILE *out) {
  if (options->metric == KITH_EUCLIDEAN && !options->box)
    return;
  fprintf(out, "space       %s", space_metric_name(options));
  if (options->radius > 0)
    fprintf(out, " on a sphere of radius %.15g", options->radius);
  else if (options->metric == KITH_HAVERSINE || options->metric == KITH_ANGULAR)
    fprintf(out, ", in degrees");
  if (options->box)
    fprintf(out, ", periodic box %s%s", strcmp(options->box, "file") == 0 ? "of the " : "", options->box);
  fputc('\n', out);
}
