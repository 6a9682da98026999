/* Halving: see halve.h. Items are (key, number of the point) in 64 bits, where keys are floats as integers that
 * compare alike: quickselect then needs no look elsewhere, and ties are broken by the number. */
#include "index/halve.h"

#include "base/team.h"

#include <stdbool.h>
#include <string.h>

typedef struct part {
  uint32_t begin, end;
} part;

typedef struct halving {
  const float *values;
  uint64_t stride;
  uint32_t n_dims;
  uint32_t group;
  uint32_t *order;
  uint64_t *items;
  part *parts; /* of one level */
  part *next;  /* two places for each of parts */
} halving;

static uint32_t key_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits >> 31 ? ~bits : bits | UINT32_C(0x80000000);
}

/* The dimension in which a part is widest. */
static uint32_t widest(const halving *h, part p) {
  uint32_t best = 0;
  float best_spread = -1;
  for (uint32_t d = 0; d < h->n_dims; d++) {
    const float *values = h->values + d * h->stride;
    double sum = 0;
    double sum2 = 0;
    double origin = (double)values[h->order[p.begin]];
    for (uint32_t i = p.begin; i < p.end; i++) {
      double x = (double)values[h->order[i]] - origin;
      sum += x;
      sum2 += x * x;
    }
    double n = p.end - p.begin;
    float spread = (float)((sum2 - sum * sum / n) / n);
    if (spread > best_spread) {
      best = d;
      best_spread = spread;
    }
  }
  return best;
}

static uint64_t middle_of_three(uint64_t a, uint64_t b, uint64_t c) {
  if (a > b) {
    uint64_t swap = a;
    a = b;
    b = swap;
  }
  return c < a ? a : c > b ? b : c;
}

/* Moves the `smaller` smallest of all different items[begin..end) to the front. */
static void select_items(uint64_t *items, uint32_t begin, uint32_t end, uint32_t smaller) {
  uint32_t target = begin + smaller;
  while (end - begin > 1) {
    uint64_t pivot = middle_of_three(items[begin], items[begin + (end - begin - 1) / 2], items[end - 1]);
    uint32_t i = begin;
    uint32_t j = end - 1;
    for (;; i++, j--) {
      while (items[i] < pivot)
        i++;
      while (items[j] > pivot)
        j--;
      if (i >= j)
        break;
      uint64_t swap = items[i];
      items[i] = items[j];
      items[j] = swap;
    }
    /* items[begin..j] <= pivot <= items[j + 1..end) */
    if (target <= j)
      end = j + 1;
    else
      begin = j + 1;
    if (target == begin || target == end)
      return;
  }
}

static void halve_part(void *argument, uint64_t number) {
  const halving *h = argument;
  part p = h->parts[number];
  uint32_t groups = (p.end - p.begin + h->group - 1) / h->group;
  uint32_t half = groups / 2 * h->group;
  h->next[2 * number] = (part){p.begin, p.begin + half};
  h->next[2 * number + 1] = (part){p.begin + half, p.end};
  if (half == 0)
    return;
  const float *values = h->values + widest(h, p) * h->stride;
  for (uint32_t i = p.begin; i < p.end; i++)
    h->items[i] = (uint64_t)key_of(values[h->order[i]]) << 32 | h->order[i];
  select_items(h->items, p.begin, p.end, half);
  for (uint32_t i = p.begin; i < p.end; i++)
    h->order[i] = (uint32_t)h->items[i];
}

/* Makes the halves that are worth halving again the parts of the next level; returns how many. */
static uint32_t next_level(halving *h, uint32_t n_parts) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < 2 * n_parts; i++)
    if (h->next[i].end - h->next[i].begin > h->group)
      h->parts[n++] = h->next[i];
  return n;
}

kith_status kith_halve(kith_context *ctx, const float *values, uint64_t stride, uint32_t n_dims, uint32_t n,
                       uint32_t group, uint32_t *order) {
  uint64_t groups = ((uint64_t)n + group - 1) / group + 1;
  halving h = {.values = values,
               .stride = stride,
               .n_dims = n_dims,
               .group = group,
               .order = order,
               .items = kith_alloc(&ctx->memory, n * sizeof(uint64_t)),
               .parts = kith_alloc(&ctx->memory, groups * sizeof(part)),
               .next = kith_alloc(&ctx->memory, 2 * groups * sizeof(part))};
  kith_status status = KITH_OK;
  if (!h.items || !h.parts || !h.next)
    status = kith_fail_memory(ctx, n * sizeof(uint64_t) + 3 * groups * sizeof(part), "ordering the points");
  for (uint32_t i = 0; i < n; i++)
    order[i] = i;
  if (!status && n > group) {
    uint32_t n_parts = 1;
    h.parts[0] = (part){0, n};
    while (n_parts > 0 && !kith_cancelled(ctx)) {
      kith_each_unless_cancelled(ctx, n_parts, halve_part, &h);
      n_parts = next_level(&h, n_parts);
    }
    status = kith_check_cancel(ctx);
  }
  kith_free(h.items);
  kith_free(h.parts);
  kith_free(h.next);
  return status;
}
