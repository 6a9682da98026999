/* Values as people type them: see values.h. The command never calls setlocale, so the decimal point is ".". */
#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool value_real(const char *text, double *out) {
  if (!*text || isspace((unsigned char)*text) || strpbrk(text, "xX"))
    return false;
  char *end;
  *out = strtod(text, &end);
  return end != text && *end == '\0';
}

/* Splits "1.5GiB" into 1.5 and "GiB". Hexadecimal and NaN are not amounts. */
static bool split_amount(const char *text, double *number, const char **unit) {
  size_t digits = strspn(text, "0123456789.");
  if (digits == 0 || text[strspn(text, "0")] == 'x')
    return false;
  char *end;
  *number = strtod(text, &end);
  *unit = end;
  return end >= text + digits && isfinite(*number);
}

static bool whole(double number, uint64_t *out) {
  /* Beyond 2^53 a double no longer says which whole number was meant. */
  if (!(number >= 0 && number <= 9007199254740992.0 && number == floor(number)))
    return false;
  *out = (uint64_t)number;
  return true;
}

bool value_count(const char *text, uint64_t *out) {
  size_t digits = strspn(text, "0123456789");
  if (digits > 0 && text[digits] == '\0') {
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno == 0;
  }
  double number;
  const char *unit;
  if (!split_amount(text, &number, &unit))
    return false;
  if (*unit == '\0')
    return whole(number, out);
  if (unit[1] != '\0')
    return false;
  switch (*unit) {
  case 'k':
  case 'K':
    return whole(number * 1e3, out);
  case 'M':
    return whole(number * 1e6, out);
  case 'G':
    return whole(number * 1e9, out);
  default:
    return false;
  }
}

bool value_size(const char *text, uint64_t *out) {
  double number;
  const char *unit;
  if (!split_amount(text, &number, &unit))
    return false;
  static const char prefixes[] = "kmgt";
  const char *prefix = *unit ? strchr(prefixes, tolower((unsigned char)*unit)) : NULL;
  if (prefix) {
    unit++;
    bool binary = *unit == 'i';
    unit += binary;
    for (long i = 0; i <= prefix - prefixes; i++)
      number *= binary ? 1024.0 : 1000.0;
  }
  if (*unit == 'B')
    unit++;
  return *unit == '\0' && whole(floor(number), out);
}

int value_choice(const char *text, const char *words) {
  size_t length = strlen(text);
  for (int i = 0;; i++) {
    size_t word = strcspn(words, "|");
    if (word == length && strncmp(text, words, length) == 0)
      return i;
    if (words[word] == '\0')
      return -1;
    words += word + 1;
  }
}

enum { LONGEST_WORD = 31 };

static unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }

unsigned value_distance(const char *a, const char *b) {
  size_t na = strlen(a), nb = strlen(b);
  if (na > LONGEST_WORD || nb > LONGEST_WORD)
    return LONGEST_WORD;
  unsigned d[LONGEST_WORD + 1][LONGEST_WORD + 1];
  for (size_t i = 0; i <= na; i++)
    d[i][0] = (unsigned)i;
  for (size_t j = 0; j <= nb; j++)
    d[0][j] = (unsigned)j;
  for (size_t i = 1; i <= na; i++)
    for (size_t j = 1; j <= nb; j++) {
      d[i][j] = smaller(d[i - 1][j], d[i][j - 1]) + 1;
      d[i][j] = smaller(d[i][j], d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[na][nb];
}

bool value_similar(const char *typed, const char *word) {
  size_t length = strlen(typed);
  bool shortened = length >= 3 && strncmp(typed, word, length) == 0;
  return shortened || value_distance(typed, word) <= 1 + strlen(word) / 4;
}
