// kith.h is C++ too: it compiles, links without mangling, and answers.
#include "kith.h"
#include "kith.h" // NOLINT: twice on purpose

#include <cstdio>
#include <string>
#include <vector>

namespace {

int take(void *user, const kith_batch *batch) {
  *static_cast<std::uint64_t *>(user) += batch->offsets[batch->n_rows];
  return 0;
}

} // namespace

int main() {
  const std::vector<double> xy = {0, 0, 3, 4, 10, 10}; // one pair, at distance 5 exactly
  kith_context *ctx = nullptr;
  if (kith_context_create(nullptr, &ctx) != KITH_OK)
    return 1;
  const kith_points points = kith_points_f64(xy.data(), 3, 2);
  const kith_join_options options = kith_join_options_init(5);
  std::uint64_t pairs = 0;
  const kith_status status = kith_join_stream(ctx, &points, nullptr, &options, take, &pairs, nullptr);
  if (status != KITH_OK)
    std::fprintf(stderr, "%s\n", kith_message(ctx));
  kith_context_destroy(ctx);
  return status != KITH_OK || pairs != 2 || std::string(kith_version()) != KITH_VERSION;
}
