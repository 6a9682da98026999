/* Preparing a join in epsilon grid order: decide, make its grid. What follows is as with any grid. */
#include "ops/join.h"

kith_status kith_join_check_algorithm(kith_join *j) {
  const kith_join_options *opt = &j->options;
  if ((unsigned)opt->algorithm > KITH_ALGORITHM_EGO)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT, "algorithm has a value that has no meaning");
  if (opt->algorithm != KITH_ALGORITHM_AUTO && opt->brute)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT,
                     "brute force is an algorithm of its own: leave the choice between grid and ego out");
  if (opt->algorithm != KITH_ALGORITHM_EGO)
    return KITH_OK;
  if (j->space.lattice.n > 0)
    return kith_fail(
        j->ctx, KITH_ERR_ARGUMENT,
        "the algorithm ego does not know periodic boxes: choose grid, or leave the choice to kith");
  if (opt->index_dims || opt->cell_side != 0)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT,
                     "the algorithm ego has cells of side eps in as many dimensions as it can: index_dims and "
                     "cell_side are for the grid");
  if (j->ctx->engine == KITH_ENGINE_CUDA || kith_join_needs_gpu(j))
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT,
                     "the algorithm ego is one of the CPU: choose the engine cpu and points in host memory");
  return KITH_OK;
}

kith_status kith_join_choose_ego(kith_join *j, const kith_question *question) {
  const kith_join_options *opt = &j->options;
  bool asked = opt->algorithm == KITH_ALGORITHM_EGO;
  bool may = opt->algorithm == KITH_ALGORITHM_AUTO && j->space.lattice.n == 0 && question->slanted == 0 &&
             !opt->index_dims && opt->cell_side == 0 && !j->predicate.everything;
  if (!asked && !may)
    return KITH_OK;
  kith_status status = kith_choose_ego(j->ctx, question, &j->choice, asked, &j->ego_choice);
  if (status || !j->ego_choice.ego)
    return status;
  j->in_ego_order = true;
  kith_ego_grid(&j->grid, &j->choice.spec, j->ego_choice.dims, j->ego_choice.n_dims, &j->predicate);
  return KITH_OK;
}
