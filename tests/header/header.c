/* kith.h stands alone, may be included twice, and the shared library answers through it. */
#include "kith.h"
#include "kith.h" /* NOLINT: twice on purpose */

#include <stdio.h>
#include <string.h>

/* The statuses are pinned: programs store them. */
_Static_assert(KITH_OK == 0 && KITH_ERR_ARGUMENT == 1 && KITH_ERR_MEMORY == 2 && KITH_ERR_BUDGET == 3 &&
                   KITH_ERR_IO == 4 && KITH_ERR_FORMAT == 5 && KITH_ERR_POINTS == 6 &&
                   KITH_ERR_CANCELLED == 7 && KITH_ERR_UNSUPPORTED == 8,
               "the values of kith_status never change");

int main(void) {
  const float xy[] = {0, 0, 3, 4, 10, 10}; /* one pair, at distance 5 exactly */
  kith_context *ctx;
  kith_points points = kith_points_f32(xy, 3, 2);
  kith_join_options options = kith_join_options_init(5);
  uint64_t pairs = 0;
  kith_status status = kith_context_create(NULL, &ctx);
  if (!status)
    status = kith_join_count(ctx, &points, NULL, &options, &pairs, NULL);
  if (status)
    fprintf(stderr, "%s: %s\n", kith_status_name(status), ctx ? kith_message(ctx) : "no context");
  kith_context_destroy(ctx);
  printf("kith %s: %llu pairs\n", kith_version(), (unsigned long long)pairs);
  return status || pairs != 2 || strcmp(kith_version(), KITH_VERSION) != 0;
}
