/* kith join: runs the join asked for and tells what it found. */
#include "commands.h"
#include "degrees.h"
#include "errors.h"
#include "report.h"
#include "session.h"
#include "space.h"

#include <stdlib.h>
#include <string.h>

static const char *const WHAT_NAMES[] = {"count", "degrees", "neighbors", "pairs"};

typedef struct outcome {
  kith_join_report report;
  bool has_degrees;
  degree_summary degrees;
  const char *output; /* NULL: none, or standard output */
  double total_seconds;
} outcome;

static kith_status run_degrees(session *s, const kith_join_options *join, outcome *found) {
  uint64_t *degrees = malloc((s->a->n + 1) * sizeof *degrees);
  if (!degrees)
    return KITH_ERR_MEMORY;
  kith_status status = kith_join_degrees(s->ctx, s->a, s->b, join, degrees, &found->report);
  if (!status) {
    degrees_summarize(degrees, s->a->n, &found->degrees);
    found->has_degrees = true;
  }
  free(degrees);
  return status;
}

static kith_status run_table(session *s, const kith_join_options *join, outcome *found) {
  kith_table *table = NULL;
  kith_status status = kith_join_table(s->ctx, s->a, s->b, join, &table, &found->report);
  kith_table_destroy(table);
  return status;
}

static kith_status run(session *s, const cli_options *options, outcome *found) {
  kith_join_options join = session_join_options(s, options);
  *found = (outcome){.report = kith_join_report_init()};
  if (options->output || options->what == KITH_PAIRS) {
    found->output = session_writes_stdout(options) ? NULL : options->output;
    return kith_join_write(s->ctx, s->a, s->b, &join, (kith_what)options->what,
                           found->output ? found->output : "-", &found->report);
  }
  uint64_t pairs;
  switch ((kith_what)options->what) {
  case KITH_DEGREES:
    return run_degrees(s, &join, found);
  case KITH_NEIGHBORS:
    return run_table(s, &join, found);
  default:
    return kith_join_count(s->ctx, s->a, s->b, &join, &pairs, &found->report);
  }
}

/* Pairs per point, without (i, i): the selectivity of the literature. */
static double selectivity(const session *s, const cli_options *options, const kith_join_report *report) {
  uint64_t self = options->self ? s->a->n - report->invalid_rows : 0;
  return s->a->n ? (double)(report->pairs - self) / (double)s->a->n : 0;
}

static json_t *seconds_json(const session *s, const outcome *found) {
  const kith_join_report *report = &found->report;
  return JSON_OBJECT({"load", json_number(s->load_seconds)}, {"index", json_number(report->seconds_index)},
                     {"plan", json_number(report->seconds_plan)}, {"join", json_number(report->seconds_join)},
                     {"write", json_number(report->seconds_write)},
                     {"total", json_number(found->total_seconds)});
}

/* What each of the engines did that shared the join. */
static json_t *engines_json(const kith_join_report *report) {
  json_t *list = json_array();
  for (uint32_t i = 0; list && i < report->n_engines; i++) {
    const kith_engine_report *e = &report->engines[i];
    json_array_append_new(
        list, JSON_OBJECT({"name", json_text(e->name)}, {"batches", json_count(e->batches)},
                          {"queries", json_count(e->queries)}, {"candidates", json_count(e->candidates)},
                          {"pairs", json_count(e->pairs)}, {"busy_seconds", json_number(e->busy_seconds)},
                          {"failure", json_text(e->failure[0] ? e->failure : NULL)}));
  }
  return list;
}

static bool add_engines(json_t *object, const kith_join_report *report) {
  return report->n_engines == 0 ||
         (json_object_set_new(object, "engines", engines_json(report)) == 0 &&
          json_object_set_new(object, "imbalance", json_number(report->imbalance)) == 0);
}

static json_t *resumed_json(const kith_join_report *report) {
  return JSON_OBJECT({"rows", json_count(report->resumed_rows)}, {"pairs", json_count(report->resumed_pairs)});
}

static json_t *outcome_json(const session *s, const cli_options *options, const outcome *found) {
  const kith_join_report *report = &found->report;
  json_t *object = JSON_OBJECT(
      {"n", json_count(s->a->n)}, {"n_b", s->b ? json_count(s->b->n) : json_null()},
      {"dim", json_count(s->a->dim)}, {"eps", options->eps_column ? json_null() : json_number(options->eps)},
      {"eps_column", json_text(options->eps_column)}, {"metric", json_text(space_metric_name(options))},
      {"engine", json_text(report->engine)}, {"algorithm", json_text(report->algorithm)},
      {"isa", json_text(kith_isa(s->ctx))}, {"threads", json_count(kith_threads(s->ctx))},
      {"what", json_text(WHAT_NAMES[options->what])}, {"pairs", json_count(report->pairs)},
      {"selectivity", json_number(selectivity(s, options, report))},
      {"candidates", json_count(report->tested + report->inside)}, {"tested", json_count(report->tested)},
      {"inside", json_count(report->inside)}, {"cells", json_count(report->cells)},
      {"index_dims", json_count(report->index_dims)}, {"cell_side", json_number(report->cell_side)},
      {"invalid_rows", json_count(report->invalid_rows)}, {"batches", json_count(report->batches)},
      {"resumed", resumed_json(report)}, {"output", json_text(found->output)},
      {"seconds", seconds_json(s, found)}, {"peak_bytes", json_count(report->peak_bytes)});
  if (!s->b)
    json_object_del(object, "n_b");
  if (!options->eps_column)
    json_object_del(object, "eps_column");
  if (object && !options->checkpoint)
    json_object_del(object, "resumed");
  bool complete = object && add_engines(object, report);
  if (complete && found->has_degrees)
    complete = json_object_set_new(object, "degrees", degrees_json(&found->degrees)) == 0;
  if (!complete) {
    json_decref(object);
    return NULL;
  }
  return object;
}

static void print_time(const session *s, const outcome *found, FILE *out) {
  const kith_join_report *report = &found->report;
  char text[TEXT_BYTES];
  fprintf(out, "time        %s: load %.3f, ", text_seconds(text, found->total_seconds), s->load_seconds);
  fprintf(out, "plan %.3f, index %.3f, ", report->seconds_plan, report->seconds_index);
  fprintf(out, "join %.3f, write %.3f\n", report->seconds_join, report->seconds_write);
}

static void print_engines(const kith_join_report *report, FILE *out) {
  char queries[TEXT_BYTES], candidates[TEXT_BYTES], busy[TEXT_BYTES];
  for (uint32_t i = 0; i < report->n_engines; i++) {
    const kith_engine_report *e = &report->engines[i];
    fprintf(out, "  %-10s%s queries, %s candidates in %llu batches, busy for %s\n", e->name,
            text_amount(queries, (double)e->queries), text_amount(candidates, (double)e->candidates),
            (unsigned long long)e->batches, text_seconds(busy, e->busy_seconds));
  }
  if (report->n_engines > 0)
    fprintf(out, "  imbalance %.3f\n", report->imbalance);
}

static void print_summary(const session *s, const cli_options *options, const outcome *found, FILE *out) {
  const kith_join_report *report = &found->report;
  char text[TEXT_BYTES], other[TEXT_BYTES];
  fprintf(out, "pairs       %s\n", text_count(text, report->pairs));
  /* A pair that is listed once still gives both of its points a neighbour. */
  double mean = selectivity(s, options, report) * (options->half ? 2 : 1);
  fprintf(out, "neighbours  %s per point on average", text_amount(text, mean));
  if (found->has_degrees)
    fprintf(out, ", from %s to %s", text_count(text, found->degrees.min),
            text_count(other, found->degrees.max));
  fputc('\n', out);
  print_time(s, found, out);
  double rate = (double)report->pairs / found->total_seconds;
  fprintf(out, "rate        %s pairs/s, ", text_amount(text, rate));
  double candidates = (double)(report->tested + report->inside);
  double work = report->seconds_join > 0 ? candidates / report->seconds_join : 0;
  fprintf(out, "%s candidates/s in the join\n", text_amount(text, work));
  fprintf(out, "engine      %s, %s, threads: %u\n", report->engine, kith_isa(s->ctx), kith_threads(s->ctx));
  print_engines(report, out);
  fprintf(out, "memory      %s at most\n", text_bytes(text, report->peak_bytes));
  if (report->resumed_rows > 0)
    fprintf(out, "resumed     after %s points, %s pairs\n", text_count(text, report->resumed_rows),
            text_count(other, report->resumed_pairs));
  bool is_lost = !found->output && options->what == KITH_NEIGHBORS;
  if (found->output || is_lost)
    fprintf(out, "output      %s\n", is_lost ? "none: -o FILE writes it" : found->output);
  if (found->has_degrees)
    degrees_print(&found->degrees, out);
}

static int tell(const session *s, const cli_options *options, const outcome *found) {
  FILE *out = session_writes_stdout(options) ? stderr : stdout;
  char text[TEXT_BYTES];
  text_count(text, found->report.invalid_rows);
  bool in_words = !options->quiet && !(options->json && out == stderr); /* else JSON alone says it, there */
  if (found->report.invalid_rows > 0 && in_words)
    fprintf(stderr, "kith: left out %s row%s with %s (--skip-invalid)\n", text, plural(text),
            space_invalid_rows(options));
  for (uint32_t i = 0; i < found->report.n_engines && in_words; i++)
    if (found->report.engines[i].failure[0])
      fprintf(stderr, "kith: the engine %s gave up, the others finished: %s\n", found->report.engines[i].name,
              found->report.engines[i].failure);
  if (found->report.checkpoint_damaged)
    fprintf(stderr, "kith: the checkpoint in %s was damaged: the join began anew\n", options->checkpoint);
  if (options->json)
    return report_json(outcome_json(s, options, found), out);
  if (!options->quiet)
    print_summary(s, options, found, out);
  else if (options->what == KITH_COUNT)
    fprintf(out, "%llu\n", (unsigned long long)found->report.pairs);
  return CLI_OK;
}

int command_join(const cli_options *options) {
  int code = session_check_join(options, "join", 0);
  if (code)
    return code;
  session s;
  outcome found;
  code = session_open(&s, options, options->arguments[0], options->arguments[1]);
  if (code)
    goto done;
  s.checkpoint = options->checkpoint;
  kith_status status = run(&s, options, &found);
  if (found.report.engine) { /* it is done; all that may have failed is its trace */
    progress_clear(&s.progress);
    found.total_seconds = session_clock() - s.began;
    code = cli_finish_stdout(tell(&s, options, &found), found.output);
  }
  if (status)
    code = session_fail(&s, status, true);
done:
  session_close(&s);
  return code;
}
