/* Finds groups of friends of friends, from a stream of pairs that is never held in memory.
 *
 *     stream                 30,000 points of its own, eps 0.004
 *     stream FILE EPS        a file: .npy, .csv, .tsv, .txt or .fbin
 *
 * Two points within eps are friends; a group is everybody who is connected by friends. The pairs arrive batch
 * by batch and are forgotten at once: what stays is one number per point, however many pairs there are.
 * Progress is shown on standard error; Ctrl-C stops the join. */
#include <kith.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Groups as a forest: the parent of a root is itself (union-find). */
typedef struct groups {
  uint32_t *parent;
  uint64_t n;
  uint64_t pairs;
} groups;

static uint32_t root_of(groups *g, uint32_t i) {
  while (g->parent[i] != i)
    i = g->parent[i] = g->parent[g->parent[i]]; /* halve the path for the next time */
  return i;
}

/* Takes some consecutive rows of the neighbour table. The arrays are valid until it returns; returning
 * anything but 0 would stop the join. */
static int take_batch(void *user, const kith_batch *batch) {
  groups *g = user;
  for (uint64_t r = 0; r < batch->n_rows; r++) {
    uint32_t mine = root_of(g, (uint32_t)(batch->first_row + r));
    for (uint64_t k = batch->offsets[r]; k < batch->offsets[r + 1]; k++) {
      uint32_t other = root_of(g, batch->neighbors[k]);
      g->parent[other] = mine;
    }
  }
  g->pairs += batch->offsets[batch->n_rows];
  return 0;
}

/* Called about ten times a second. */
static int show_progress(void *user, const kith_progress *progress) {
  (void)user;
  fprintf(stderr, "\r%3.0f %%, %llu pairs ", 100 * progress->fraction, (unsigned long long)progress->pairs);
  return 0;
}

static kith_context *running;

/* kith_cancel is safe in a signal handler; the join then returns KITH_ERR_CANCELLED. */
static void on_interrupt(int signal_number) {
  (void)signal_number;
  kith_cancel(running);
}

/* Points in the unit square, the same on every machine: whole numbers below 2^24 are exact in float. */
static kith_points make_points(void) {
  enum { N = 30000 };
  static float xy[2 * N];
  uint64_t state = 1;
  for (int i = 0; i < 2 * N; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    xy[i] = (float)(state >> 40) * 0x1p-24F;
  }
  return kith_points_f32(xy, N, 2);
}

static int print_groups(groups *g) {
  uint64_t *size = calloc(g->n + 1, sizeof *size);
  if (!size)
    return 1;
  uint64_t n_groups = 0, largest = 0;
  for (uint64_t i = 0; i < g->n; i++) {
    uint64_t members = ++size[root_of(g, (uint32_t)i)];
    n_groups += members == 1;
    largest = members > largest ? members : largest;
  }
  printf("%llu points, %llu pairs: %llu groups, the largest of %llu points\n", (unsigned long long)g->n,
         (unsigned long long)g->pairs, (unsigned long long)n_groups, (unsigned long long)largest);
  free(size);
  return 0;
}

static int find_groups(kith_context *ctx, const kith_points *points, double eps) {
  groups g = {.parent = malloc((points->n + 1) * sizeof *g.parent), .n = points->n};
  if (!g.parent)
    return 1;
  for (uint64_t i = 0; i < g.n; i++)
    g.parent[i] = (uint32_t)i;

  kith_join_options options = kith_join_options_init(eps);
  options.half = 1; /* each pair once */
  kith_status status = kith_join_stream(ctx, points, NULL, &options, take_batch, &g, NULL);
  fprintf(stderr, "\r%30s\r", ""); /* wipe the progress line */
  if (status)
    fprintf(stderr, "stream: %s\n", kith_message(ctx));
  int code = status == KITH_OK ? print_groups(&g) : status == KITH_ERR_CANCELLED ? 130 : 1;
  free(g.parent);
  return code;
}

int main(int argc, char **argv) {
  if (argc != 1 && argc != 3) {
    fprintf(stderr, "usage: stream [FILE EPS]\n");
    return 2;
  }
  kith_context_options options = kith_context_options_init();
  options.progress = show_progress;
  if (kith_context_create(&options, &running) != KITH_OK)
    return 1;
  signal(SIGINT, on_interrupt);

  int code = 1;
  if (argc == 1) {
    kith_points points = make_points();
    code = find_groups(running, &points, 0.004);
  } else {
    kith_file *file;
    if (kith_file_open(running, argv[1], NULL, &file) == KITH_OK)
      code = find_groups(running, kith_file_points(file), strtod(argv[2], NULL));
    else
      fprintf(stderr, "stream: %s\n", kith_message(running));
    kith_file_close(file);
  }
  signal(SIGINT, SIG_DFL); /* the context is about to go */
  kith_context_destroy(running);
  return code;
}
