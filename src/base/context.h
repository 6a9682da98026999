/* The context: what a call may use, how it reports, how it is stopped.
 *
 * Owns: status messages, the memory budget (memory.h), progress, cancellation. Everything may include it. */
#ifndef KITH_BASE_CONTEXT_H
#define KITH_BASE_CONTEXT_H

#include "base/memory.h"
#include "kith.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef enum kith_isa_level { KITH_ISA_SCALAR, KITH_ISA_AVX2, KITH_ISA_AVX512 } kith_isa_level;

typedef struct kith_team kith_team;

typedef struct kith_trace kith_trace;

typedef enum kith_engine_choice {
  KITH_ENGINE_AUTO,
  KITH_ENGINE_CPU,
  KITH_ENGINE_CUDA,
  KITH_ENGINE_HYBRID
} kith_engine_choice;

enum { KITH_MAX_GPUS = 8 };

/* A GPU of a context; engine/cuda owns what is in it. */
typedef struct kith_gpu {
  uint32_t device;
  void *session; /* once it was needed */
} kith_gpu;

typedef struct kith_gpus {
  kith_gpu list[KITH_MAX_GPUS];
  uint32_t n;
  bool all;              /* of the machine: n is 0 until they were counted */
  uint64_t memory_bytes; /* of each, that may be used; 0: what is free */
  void (*close)(void *session);
  bool unusable;         /* the first of them could not be woken up */
  double missed_seconds; /* that joins took on the CPU, which a GPU would have got had it been awake */
} kith_gpus;

struct kith_context {
  kith_memory memory;
  kith_team *team; /* the threads beside the caller's (team.h), once they were needed */
  uint32_t threads;
  kith_isa_level isa;
  kith_engine_choice engine;
  kith_gpus gpus;
  kith_trace *trace; /* of the running call, if there is to be one (trace.h) */
  atomic_bool cancel;
  kith_progress_fn progress;
  void *progress_user;
  double call_began;    /* of the running call, for progress */
  double last_report;   /* time of the last progress callback */
  double fraction_base; /* the running stage covers [base, base + span] of the call's progress */
  double fraction_span;
  double fraction_resumed; /* what earlier calls did */
  const char *stage;
  bool is_useless; /* it could not be made as it was asked for: it holds only the message */
  char message[1024];
};

/* Sets the message (printf style; none if ctx is NULL) and returns the status:
 * `return kith_fail(ctx, KITH_ERR_IO, ...)`. */
kith_status kith_fail(kith_context *ctx, kith_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The message, while others may fail as well. */
void kith_copy_message(const kith_context *ctx, char *out, size_t size);

/* The message for memory that the budget or the system refused while doing `what`. */
kith_status kith_fail_memory(kith_context *ctx, uint64_t bytes, const char *what);

/* Starts a public call: clears the message, the peak and the progress. KITH_ERR_ARGUMENT if ctx is NULL: the
 * call must return that before it does anything else. */
kith_status kith_call_begin(kith_context *ctx);

/* Begins a stage that covers `span` of the call's progress. */
void kith_stage_begin(kith_context *ctx, const char *stage, double span);

/* Begins a stage whose first part, `span` of the call's progress, was done by an earlier call. */
void kith_stage_resume(kith_context *ctx, const char *stage, double span);

/* Reports that `fraction` of the stage is done, at most ten times a second. Returns false once the call is
 * to stop. Only the calling thread may use it; others look at kith_cancelled(). */
bool kith_stage_report(kith_context *ctx, double fraction, uint64_t pairs);

static inline bool kith_cancelled(const kith_context *ctx) {
  return atomic_load_explicit(&ctx->cancel, memory_order_relaxed);
}

/* KITH_ERR_CANCELLED with its message if the call was asked to stop; else KITH_OK. The request stands until the
 * call ends, so that every thread sees it. */
kith_status kith_check_cancel(kith_context *ctx);

/* Ends a public call: a request to stop that was heeded is spent. Returns the status. */
kith_status kith_call_end(kith_context *ctx, kith_status status);

#endif
