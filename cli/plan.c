/* kith plan: what a join would do, as EXPLAIN does for SQL. */
#include "commands.h"
#include "errors.h"
#include "report.h"
#include "session.h"
#include "space.h"

#include <stdlib.h>
#include <string.h>

static json_t *dims_json(const kith_plan *plan) {
  json_t *dims = json_array();
  for (uint32_t i = 0; i < plan->index_dims && i < 16; i++)
    json_array_append_new(dims, json_count(plan->dims[i]));
  return dims;
}

/* Calls `take` with every line of plan->why. */
static void each_reason(const kith_plan *plan, void (*take)(void *user, const char *line), void *user) {
  char reasons[sizeof plan->why + 1];
  snprintf(reasons, sizeof reasons, "%s", plan->why);
  char *rest = NULL;
  for (char *line = strtok_r(reasons, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
    take(user, line);
}

static void append_reason(void *user, const char *line) { json_array_append_new(user, json_text(line)); }

static void print_reason(void *user, const char *line) { fprintf(user, "            %s\n", line); }

/* What each engine would take by itself, and both together; null where the machine was not measured. */
static json_t *predicted_json(const kith_plan *plan) {
  json_t *cpu = plan->seconds_cpu > 0 ? json_number(plan->seconds_cpu) : json_null();
  json_t *cuda = plan->seconds_cuda > 0 ? json_number(plan->seconds_cuda) : json_null();
  bool both = plan->seconds_hybrid > 0;
  return JSON_OBJECT({"cpu", cpu}, {"cuda", cuda},
                     {"hybrid", both ? json_number(plan->seconds_hybrid) : json_null()},
                     {"share_cuda", both ? json_number(plan->share_cuda) : json_null()});
}

static void print_predicted(const kith_plan *plan, FILE *out) {
  char one[TEXT_BYTES], two[TEXT_BYTES], three[TEXT_BYTES];
  if (plan->seconds_cpu <= 0)
    return;
  fprintf(out, "engines     a table would take the CPU %s", text_seconds(one, plan->seconds_cpu));
  if (plan->seconds_hybrid > 0)
    fprintf(out, ", the GPU %s, both %s with %.0f %% of the candidates on the GPU",
            text_seconds(two, plan->seconds_cuda), text_seconds(three, plan->seconds_hybrid),
            100 * plan->share_cuda);
  fprintf(out, " (kith devices --calibrate)\n");
}

static json_t *plan_json(const kith_plan *plan, const cli_options *options) {
  json_t *why = json_array();
  each_reason(plan, append_reason, why);
  return JSON_OBJECT(
      {"n_queries", json_count(plan->n_queries)}, {"n_candidates", json_count(plan->n_candidates)},
      {"dim", json_count(plan->dim)}, {"metric", json_text(space_metric_name(options))},
      {"index_dims", json_count(plan->index_dims)}, {"dims", dims_json(plan)},
      {"directions", json_boolean(plan->directions)}, {"cell_side", json_number(plan->cell_side)},
      {"cell_width", json_number(plan->cell_width)}, {"cells", json_count(plan->cells)},
      {"rows", json_count(plan->rows)}, {"runs", json_count(plan->runs)},
      {"algorithm", json_text(plan->algorithm)}, {"kernel", json_text(plan->kernel)},
      {"engine", json_text(plan->engine)}, {"isa", json_text(plan->isa)},
      {"threads", json_count(plan->threads)}, {"pairs", json_number(plan->pairs)},
      {"pairs_error", json_number(plan->pairs_error)}, {"candidates", json_number(plan->candidates)},
      {"inside", json_number(plan->inside)}, {"seconds", json_number(plan->seconds)},
      {"index_bytes", json_count(plan->index_bytes)}, {"work_bytes", json_count(plan->work_bytes)},
      {"result_bytes", json_count(plan->result_bytes)}, {"budget_bytes", json_count(plan->budget_bytes)},
      {"batches", json_count(plan->batches)}, {"fits", json_boolean(plan->fits)},
      {"seconds_predicted", predicted_json(plan)}, {"why", why});
}

static void print_task(const kith_plan *plan, const cli_options *options, FILE *out) {
  static const char *const results[] = {"count the pairs", "count the neighbours of every point",
                                        "neighbour table", "list of pairs"};
  char queries[TEXT_BYTES], candidates[TEXT_BYTES];
  text_count(queries, plan->n_queries);
  fprintf(out, "task        %s within ", results[options->what]);
  if (options->eps_column)
    fprintf(out, "%s (column) ", options->eps_column);
  else
    fprintf(out, "%.15g ", options->eps);
  fprintf(out, "in %u dimension%s: ", plan->dim, plan->dim == 1 ? "" : "s");
  fprintf(out, "%s point%s ", queries, plural(queries));
  if (options->n_arguments > 2)
    fprintf(out, "of A, %s of B\n", text_count(candidates, plan->n_candidates));
  else
    fprintf(out, "with %s\n", plan->n_queries == 1 ? "itself" : "themselves");
}

static void print_dims(const kith_plan *plan, const char *what, FILE *out) {
  fprintf(out, "index       %s %s%s ", what, plan->directions ? "direction" : "dimension",
          plan->index_dims > 1 ? "s" : "");
  for (uint32_t i = 0; i < plan->index_dims && i < 16; i++)
    fprintf(out, "%s%u", i ? ", " : "", plan->dims[i]);
  fprintf(out, "\n");
}

/* Epsilon grid order: there are cells, but no rows of them. */
static void print_order(const kith_plan *plan, FILE *out) {
  char cells[TEXT_BYTES];
  print_dims(plan, "epsilon grid order by", out);
  text_count(cells, plan->cells);
  fprintf(out, "            %s non-empty cell%s of side %.4g\n", cells, plural(cells), plan->cell_side);
}

static void print_index(const kith_plan *plan, const cli_options *options, FILE *out) {
  char cells[TEXT_BYTES], rows[TEXT_BYTES];
  if (plan->index_dims == 0) {
    fprintf(out, "index       none\n");
    return;
  }
  if (strcmp(plan->algorithm, "ego") == 0) {
    print_order(plan, out);
    return;
  }
  bool grid = plan->cells > 0 || plan->runs > 0;
  print_dims(plan, grid ? "grid over" : "none; points in the order of", out);
  if (!grid)
    return;
  text_count(cells, plan->cells);
  text_count(rows, plan->rows);
  fprintf(out, "            %s non-empty cell%s in %s row%s of cells\n", cells, plural(cells), rows,
          plural(rows));
  fprintf(out, "            cell side %.4g", plan->cell_side);
  if (options->eps > 0 && options->metric < KITH_COSINE)
    fprintf(out, " (%.3g eps)", plan->cell_side / options->eps);
  fprintf(out, ", %.4g along the rows; %u row%s looked at per row\n", plan->cell_width, plan->runs,
          plan->runs == 1 ? "" : "s");
}

static void print_plan(const kith_plan *plan, const cli_options *options, FILE *out) {
  char one[TEXT_BYTES], two[TEXT_BYTES], three[TEXT_BYTES];
  print_task(plan, options, out);
  space_print(options, out);
  print_index(plan, options, out);
  text_amount(one, plan->candidates);
  fprintf(out, "work        %s pair%s to test, %s accepted untested\n", one, plural(one),
          text_amount(two, plan->inside));
  fprintf(out, "engine      %s, %s, threads: %u; kernel: %s\n", plan->engine, plan->isa, plan->threads,
          plan->kernel);
  fprintf(out, "pairs       %s", text_amount(one, plan->pairs));
  if (plan->pairs_error > 0)
    fprintf(out, " +- %s (sampled)", text_amount(one, plan->pairs_error));
  fprintf(out, "\nresult      %s in %s batch%s\n", text_bytes(one, plan->result_bytes),
          text_count(two, plan->batches), plan->batches == 1 ? "" : "es");
  fprintf(out, "memory      index %s, work %s, budget %s: %s\n", text_bytes(one, plan->index_bytes),
          text_bytes(two, plan->work_bytes), text_bytes(three, plan->budget_bytes),
          plan->fits ? "fits" : "DOES NOT FIT, would be refused");
  fprintf(out, "time        about %s\n", text_seconds(one, plan->seconds));
  print_predicted(plan, out);
  fprintf(out, "why\n");
  each_reason(plan, print_reason, out);
}

/* What would be planned is itself a command: "kith plan join A --eps E". */
static int check(const cli_options *options) {
  if (options->n_arguments < 1)
    return cli_usage("plan", "plan what? Write 'kith plan join A --eps E'");
  if (strcmp(options->arguments[0], "join") != 0)
    return cli_usage("plan", "cannot plan '%s', only a join: write 'kith plan join A --eps E'",
                     options->arguments[0]);
  return session_check_join(options, "plan", 1);
}

int command_plan(const cli_options *options) {
  int code = check(options);
  if (code)
    return code;
  session s;
  kith_plan plan = kith_plan_init();
  code = session_open(&s, options, options->arguments[1], options->arguments[2]);
  if (code)
    goto done;
  kith_join_options join = session_join_options(&s, options);
  int streamed = options->output || options->what == KITH_PAIRS;
  kith_status status = kith_plan_join(s.ctx, s.a, s.b, &join, (kith_what)options->what, streamed, &plan);
  if (status) {
    code = session_fail(&s, status, false);
    goto done;
  }
  progress_clear(&s.progress);
  if (options->json)
    code = report_json(plan_json(&plan, options), stdout);
  else
    print_plan(&plan, options, stdout);
done:
  session_close(&s);
  return code;
}
