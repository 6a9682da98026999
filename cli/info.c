/* kith info: what a file of points holds. Invalid rows are counted here, not refused. */
#include "commands.h"
#include "errors.h"
#include "report.h"
#include "session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct facts {
  const kith_points *points;
  const kith_file *file;
  kith_column_stats *stats; /* a column each */
  uint64_t invalid_rows;
} facts;

static const char *type_name(const kith_points *points) {
  return points->dtype == KITH_F32 ? "float32" : "float64";
}

/* How the coordinates lie in memory. */
static const char *order_name(const kith_points *points) {
  int64_t size = points->dtype == KITH_F32 ? 4 : 8;
  if (points->col_stride == size && points->row_stride == size * (int64_t)points->dim)
    return "C";
  if (points->row_stride == size && points->col_stride == size * (int64_t)points->n)
    return "Fortran";
  return "strided";
}

static json_t *columns_json(const facts *f) {
  json_t *columns = json_array();
  for (uint32_t c = 0; c < f->points->dim; c++) {
    const kith_column_stats *stats = &f->stats[c];
    json_array_append_new(
        columns, JSON_OBJECT({"name", json_text(kith_file_column(f->file, c))},
                             {"min", json_number(stats->min)}, {"max", json_number(stats->max)},
                             {"mean", json_number(stats->mean)}, {"variance", json_number(stats->variance)}));
  }
  return columns;
}

/* The edges, or the vectors one behind the other; null where the file has no box. */
static json_t *box_json(const facts *f) {
  double box[9];
  int n = kith_file_box(f->file, box);
  json_t *list = n > 0 ? json_array() : json_null();
  for (int i = 0; i < n; i++)
    json_array_append_new(list, json_number(box[i]));
  return list;
}

static json_t *facts_json(const facts *f) {
  return JSON_OBJECT({"path", json_text(kith_file_path(f->file))}, {"n", json_count(f->points->n)},
                     {"dim", json_count(f->points->dim)}, {"type", json_text(type_name(f->points))},
                     {"mapped", json_boolean(kith_file_is_mapped(f->file))},
                     {"order", json_text(order_name(f->points))}, {"box", box_json(f)},
                     {"invalid_rows", json_count(f->invalid_rows)}, {"columns", columns_json(f)});
}

static void print_value(double value, FILE *out) {
  if (isfinite(value))
    fprintf(out, "  %14.8g", value);
  else
    fprintf(out, "  %14s", "-");
}

static void print_columns(const facts *f, FILE *out) {
  fprintf(out, "\n%-12s  %14s  %14s  %14s  %14s\n", "column", "min", "max", "mean", "variance");
  for (uint32_t c = 0; c < f->points->dim; c++) {
    const char *name = kith_file_column(f->file, c);
    if (name)
      fprintf(out, "%-12s", name);
    else
      fprintf(out, "%-12u", c);
    print_value(f->stats[c].min, out);
    print_value(f->stats[c].max, out);
    print_value(f->stats[c].mean, out);
    print_value(f->stats[c].variance, out);
    fputc('\n', out);
  }
}

static void print_box(const facts *f, FILE *out) {
  double box[9];
  int n = kith_file_box(f->file, box);
  if (n == 3)
    fprintf(out, "box         %.8g x %.8g x %.8g\n", box[0], box[1], box[2]);
  for (int i = 0; n == 9 && i < 9; i += 3)
    fprintf(out, "%s(%.8g, %.8g, %.8g)%s", i ? ", " : "box         ", box[i], box[i + 1], box[i + 2],
            i == 6 ? "\n" : "");
}

static void print_facts(const facts *f, FILE *out) {
  char text[TEXT_BYTES];
  fprintf(out, "points      %s\n", text_count(text, f->points->n));
  fprintf(out, "dimensions  %u\n", f->points->dim);
  fprintf(out, "type        %s\n", type_name(f->points));
  fprintf(out, "storage     %s, %s order\n", kith_file_is_mapped(f->file) ? "mapped" : "in memory",
          order_name(f->points));
  print_box(f, out);
  text_count(text, f->invalid_rows);
  fprintf(out, "invalid     %s row%s with NaN or infinity\n", text, plural(text));
  print_columns(f, out);
}

int command_info(const cli_options *options) {
  if (options->n_arguments < 1)
    return cli_usage("info", "no file of points given");
  if (options->n_arguments > 1)
    return cli_usage("info", "'%s' is one file too many: info describes one", options->arguments[1]);
  session s;
  facts f = {0};
  int code = session_open(&s, options, options->arguments[0], NULL);
  if (code)
    goto done;
  f.points = s.a;
  f.file = s.file_a;
  f.stats = calloc(s.a->dim, sizeof *f.stats);
  kith_status status = f.stats ? kith_points_stats(s.ctx, s.a, f.stats, &f.invalid_rows) : KITH_ERR_MEMORY;
  if (status) {
    code = session_fail(&s, status, false);
    goto done;
  }
  progress_clear(&s.progress);
  if (options->json)
    code = report_json(facts_json(&f), stdout);
  else
    print_facts(&f, stdout);
done:
  free(f.stats);
  session_close(&s);
  return code;
}
