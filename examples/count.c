/* Counts the pairs of points that lie within eps of each other.
 *
 *     count                  a lattice of 100 x 100 points, eps 1
 *     count FILE EPS         a file: .npy, .csv, .tsv, .txt or .fbin
 *
 * Build: cc count.c -o count $(pkg-config --cflags --libs kith) */
#include <kith.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 100 };

/* Points at all (x, y) with whole x and y from 0 to SIDE - 1: within a distance of 1, each has its neighbours
 * left, right, above and below, which makes 4 * SIDE * (SIDE - 1) ordered pairs. */
static kith_points make_lattice(void) {
  static float xy[SIDE * SIDE][2];
  for (int i = 0; i < SIDE * SIDE; i++) {
    xy[i][0] = (float)(i % SIDE);
    xy[i][1] = (float)(i / SIDE);
  }
  return kith_points_f32(&xy[0][0], SIDE * SIDE, 2);
}

/* The message is for people; programs look at the status. */
static int fail(kith_context *ctx, kith_status status) {
  fprintf(stderr, "count: %s (%s)\n", kith_message(ctx), kith_status_name(status));
  kith_context_destroy(ctx);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 1 && argc != 3) {
    fprintf(stderr, "usage: count [FILE EPS]\n");
    return 2;
  }
  kith_context *ctx;
  if (kith_context_create(NULL, &ctx) != KITH_OK)
    return 1;

  kith_points points = make_lattice();
  kith_file *file = NULL;
  double eps = 1;
  kith_status status = KITH_OK;
  if (argc == 3) {
    eps = strtod(argv[2], NULL);
    if ((status = kith_file_open(ctx, argv[1], NULL, &file)))
      return fail(ctx, status);
    points = *kith_file_points(file); /* a view: valid until the file is closed */
  }

  kith_join_options options = kith_join_options_init(eps);
  kith_join_report report = kith_join_report_init();
  uint64_t pairs = 0;
  status = kith_join_count(ctx, &points, NULL, &options, &pairs, &report);
  kith_file_close(file); /* NULL is legal here */
  if (status)
    return fail(ctx, status);

  printf("%llu points have %llu ordered pairs within %g\n", (unsigned long long)points.n,
         (unsigned long long)pairs, eps);
  printf("%llu distances were computed in %.3f s, on %u threads with %s\n", (unsigned long long)report.tested,
         report.seconds_join, kith_threads(ctx), kith_isa(ctx));
  kith_context_destroy(ctx);
  return 0;
}
