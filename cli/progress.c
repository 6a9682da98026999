/* The progress line: see progress.h. Short work shows nothing, so that the line never flickers. */
#include "progress.h"

#include "report.h"

#include <stdio.h>
#include <string.h>

static const double FIRST_SECONDS = 0.5;
static const double REDRAW_SECONDS = 1.0 / 6;
enum { BAR = 20 };

static void draw(const kith_progress *progress) {
  char bar[BAR + 1], pairs[TEXT_BYTES], rate[TEXT_BYTES], left[32] = "";
  double fraction = progress->fraction < 0 ? 0 : progress->fraction > 1 ? 1 : progress->fraction;
  int full = (int)(fraction * BAR);
  memset(bar, '#', (size_t)full);
  memset(bar + full, '.', (size_t)(BAR - full));
  bar[BAR] = '\0';
  text_count(pairs, progress->pairs);
  text_amount(rate, (double)progress->pairs / progress->seconds);
  /* In the first moments a guess of the time left would only jump about. */
  double done = fraction - progress->resumed;
  double seconds = done > 0.02 ? progress->seconds * (1 - fraction) / done : 0;
  if (seconds >= 120)
    snprintf(left, sizeof left, "  %.0f min left", seconds / 60);
  else if (seconds > 0)
    snprintf(left, sizeof left, "  %.0f s left", seconds);
  fprintf(stderr, "\r%-5s [%s] %3.0f %%  %s pair%s  %s/s%s\x1b[K", progress->stage, bar, 100 * fraction, pairs,
          plural(pairs), rate, left);
}

int progress_update(void *user, const kith_progress *progress) {
  progress_line *line = user;
  if (progress->seconds < line->last) /* a new call began */
    line->last = 0;
  if (!line->wanted || progress->seconds < FIRST_SECONDS || progress->seconds - line->last < REDRAW_SECONDS)
    return 0;
  line->last = progress->seconds;
  line->drawn = true;
  draw(progress);
  return 0;
}

void progress_clear(progress_line *line) {
  if (line->drawn)
    fputs("\r\x1b[K", stderr);
  line->drawn = false;
}
