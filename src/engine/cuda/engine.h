/* The CUDA engine as libkith sees it: libkith_cuda.so, loaded on first use.
 *
 * Without the library, a driver or a GPU everything else works, and kith_cuda_load says why this does not.
 * May include engine.h and api.h; the operations include it. */
#ifndef KITH_ENGINE_CUDA_ENGINE_H
#define KITH_ENGINE_CUDA_ENGINE_H

#include "engine/cuda/api.h"
#include "engine/engine.h"

/* The library, loaded; or NULL, and why not. */
const kith_cuda_api *kith_cuda_load(const char **why);

/* Whether a join of so many points should run on a GPU, as the context's choice of engine and the machine have
 * it. A GPU that was asked for, by name or by what lies in its memory, is wanted whatever the size. */
bool kith_cuda_wanted(kith_context *ctx, uint64_t n_points, uint32_t dim, bool device_memory);

/* A join ran on the CPU for so long, since no GPU was awake or there is none. */
void kith_cuda_missed(kith_context *ctx, uint64_t n_points, double seconds);

/* The GPUs of the context: how many there are; 0, and why, if none can be used. */
kith_status kith_cuda_count(kith_context *ctx, uint32_t *gpus);

/* An engine that has its points, plan and index on GPU number `gpu` of the context. The points lie in the space
 * as they are to be joined, unless the GPU is to find their places; what the spec says of the space is set from
 * it. */
kith_status kith_engine_cuda_create(kith_context *ctx, uint32_t gpu, const kith_cuda_spec *spec,
                                    const kith_space *space, kith_cuda_info *info, kith_engine **out);

/* The whole neighbour table, left in device memory. */
kith_status kith_engine_cuda_table(kith_engine *engine, kith_table *table, kith_tally *tally);

/* Releases device memory of a table. */
void kith_cuda_free(uint32_t device, const void *memory);

#endif
