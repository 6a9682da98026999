/* Engines: what runs a piece of a join.
 *
 * A task is a join whose index is built. Work is one operation on a range of query positions. An engine has
 * lanes, each of which runs one piece of work at a time; the schedule feeds the lanes. Engines write only the
 * entries of the queries in their range, so pieces of work never meet.
 *
 * May include index, space, base. The schedule and the operations include it. */
#ifndef KITH_ENGINE_ENGINE_H
#define KITH_ENGINE_ENGINE_H

#include "index/ego.h"
#include "index/index.h"
#include "space/space.h"

typedef struct kith_task {
  const kith_predicate *predicate;
  const kith_space *space;     /* tells what distance a size is, and which images there are */
  const double *limits;        /* by id of the queries: each has its own; NULL: the predicate's */
  const kith_stencil *stencil; /* of the grid; NULL: the indexes are in epsilon grid order, */
  const kith_ego *ego;         /* and these are the blocks of the candidates */
  const kith_index *queries;
  const kith_index *candidates; /* the same index when a set is joined with itself */
  bool half;                    /* only pairs with query id < candidate id */
  bool drop_self;               /* leave out (i, i) */
  bool sorted;                  /* rows by id, instead of by position in the index */
  bool no_shortc;               /* distances are added up to the end */
  bool collects;                /* KITH_DO_COLLECT may be asked for */
} kith_task;

typedef enum kith_operation {
  KITH_DO_COUNT,   /* pairs in all, whatever half and drop_self say; by symmetry, unless it is one-sided */
  KITH_DO_DEGREES, /* degrees[id] of every query */
  KITH_DO_FILL,    /* the rows of the neighbour table, at their offsets */
  KITH_DO_COLLECT, /* the rows, one after the other in a pool: where looking for neighbours twice (to count,
                      then to fill) would cost more than moving them */
  KITH_DO_PAIRS,   /* the pairs, in any order: where finding them costs much more than putting them in order */
} kith_operation;

/* Rows in the order in which they were found. */
typedef struct kith_pool {
  uint32_t *ids;
  uint64_t capacity; /* below 2^32 */
  _Atomic uint64_t used;
  _Atomic bool overflow; /* the rows did not fit: nothing here is of use */
} kith_pool;

/* Takes room for n ids, and tells where it begins; KITH_NO_ROOM: there is none left. */
static const uint64_t KITH_NO_ROOM = UINT64_MAX;
static inline uint64_t kith_pool_reserve(kith_pool *pool, uint64_t n) {
  uint64_t at = atomic_fetch_add(&pool->used, n);
  if (at + n <= pool->capacity)
    return at;
  atomic_store(&pool->overflow, true);
  return KITH_NO_ROOM;
}

/* The queries in pieces, as they are handed out to engines that share a join: block b has the positions
 * [begin[b], begin[b + 1]) of the engine that cut them. */
typedef struct kith_blocks {
  uint32_t n;
  uint32_t *begin;      /* n + 1 */
  uint64_t *candidates; /* of its queries together: how much work a block is */
  uint32_t *ids;        /* of the positions */
} kith_blocks;

/* Pairs in lists of chunks, one list for each lane. Of one set, pairs come in either order, but of a task with
 * `half` the smaller id first. */
enum { KITH_PAIRS_CHUNK = 8190 };
typedef struct kith_pairs_chunk {
  struct kith_pairs_chunk *next;
  uint64_t n;
  uint64_t pairs[KITH_PAIRS_CHUNK]; /* query << 32 | candidate: positions, or ids of an engine without `ids` */
} kith_pairs_chunk;

typedef struct kith_pairs_found {
  kith_context *ctx;
  kith_pairs_chunk **lists; /* one for each lane */
  uint32_t lanes;
  _Atomic bool overflow; /* they did not fit the memory: nothing here is of use */
} kith_pairs_found;

typedef struct kith_work {
  kith_operation operation;
  uint32_t begin, end;    /* query positions; if there is a list, entries of it */
  const uint32_t *list;   /* positions, ascending; NULL: all from begin to end */
  const uint32_t *blocks; /* numbers of n_blocks blocks to take in place of positions; NULL: none */
  uint32_t n_blocks;
  uint64_t run;   /* of which this is a part: another number than before, if arrays are others than before */
  bool one_sided; /* KITH_DO_COUNT: look at pairs from both of their queries. So it is with a list */
  uint64_t first_row, end_row; /* only queries with ids in this window; end_row UINT64_MAX: all queries */
  uint64_t *degrees;           /* indexed by id; KITH_DO_COLLECT: place in the pool << 32 | degree */
  kith_pool *pool;             /* KITH_DO_COLLECT */
  kith_pairs_found *found;     /* KITH_DO_PAIRS */
  /* KITH_DO_FILL: the row of query id starts at neighbors[offsets[id - first_row] - offsets[0]] and has the
   * length that the next offset implies. */
  const uint64_t *offsets;
  uint32_t *neighbors;
  double *distances; /* NULL: not asked for */
} kith_work;

typedef struct kith_tally {
  uint64_t pairs;  /* found, (i, i) and both orders included for KITH_DO_COUNT */
  uint64_t tested; /* distances computed */
  uint64_t inside; /* pairs accepted without */
} kith_tally;

typedef struct kith_engine kith_engine;
struct kith_engine {
  const char *name;
  uint32_t lanes;
  uint32_t n_queries;   /* positions: the valid points of the query side */
  const uint32_t *ids;  /* of the positions; NULL: the engine cannot take lists */
  bool whole;           /* work is not cut into pieces: all queries at once, on lane 0 */
  bool traces;          /* it notes what it does in the trace itself */
  bool all_pairs;       /* it meets all with all, and has no KITH_DO_COLLECT; rows are always by id */
  bool lists_pairs;     /* it has KITH_DO_PAIRS */
  bool images_last;     /* rows that it fills have what lies across the faces of a box in the end */
  uint32_t grain;       /* pieces of work should be multiples of this; 0: any */
  uint32_t block_lanes; /* lanes that take blocks, if it cuts them */
  /* Runs work on a lane and adds to the tally; stops early once the call is cancelled. The CPU never fails for
   * lack of memory, since lanes own their buffers; a GPU may, and can then be asked for less. */
  kith_status (*run)(kith_engine *engine, uint32_t lane, const kith_work *work, kith_tally *tally);
  /* The offsets of all rows (id_end + 1 of them) in one go; NULL: the caller adds up degrees. They must stay
   * where they are while rows are filled. */
  kith_status (*offsets)(kith_engine *engine, uint64_t *offsets, kith_tally *tally);
  /* Cuts the queries into blocks, so that work may name them; NULL: it takes positions and lists only. The
   * arrays are the caller's to release, with kith_blocks_release, and stay until the engine is destroyed. */
  kith_status (*cut)(kith_engine *engine, kith_blocks *blocks);
  /* Tells the candidates of the blocks, which may have to be waited for; NULL: cut has told them. */
  kith_status (*weigh)(kith_engine *engine, kith_blocks *blocks);
  double weigh_seconds; /* about how long that takes after cut */
  /* Gives an engine that is to share the join its index, that of the candidates or else of the queries, as far
   * as grid, dim and id_end do not tell it; once, after cut. NULL: it has none to give. */
  kith_status (*give_index)(kith_engine *engine, bool candidates, kith_index *index);
  void (*destroy)(kith_engine *engine);
};

/* The CPU engine, with one lane per thread of ctx. */
kith_status kith_engine_cpu_create(kith_context *ctx, const kith_task *task, kith_engine **out);

void kith_engine_destroy(kith_engine *engine);

/* An empty list for each of so many lanes; false: there is no memory for them. */
bool kith_pairs_open(kith_context *ctx, uint32_t lanes, kith_pairs_found *found);
void kith_pairs_release(kith_pairs_found *found);

/* Adds a pair to the list of a lane; where there is no memory for it found->overflow says so. */
void kith_pairs_add(kith_pairs_found *found, uint32_t lane, uint32_t first, uint32_t second);

/* Room for n blocks of so many positions, from the memory of ctx; KITH_OK, or nothing is allocated. */
kith_status kith_blocks_allocate(kith_context *ctx, uint32_t n, uint32_t positions, kith_blocks *out);
void kith_blocks_release(kith_blocks *blocks);

#endif
