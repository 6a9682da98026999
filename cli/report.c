/* Numbers for people and JSON for programs: see report.h. */
#include "report.h"

#include "errors.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *text_count(char *out, uint64_t count) {
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
  char *to = out;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0)
      *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return out;
}

const char *text_amount(char *out, double amount) {
  static const char *const units[] = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  if (!(amount < 1e15)) {
    snprintf(out, TEXT_BYTES, "%.2g", amount);
    return out;
  }
  while (amount >= 999.5 && unit < 4) {
    amount /= 1000;
    unit++;
  }
  snprintf(out, TEXT_BYTES, "%.3g%s", amount, units[unit]);
  return out;
}

const char *text_bytes(char *out, uint64_t bytes) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double amount = (double)bytes;
  size_t unit = 0;
  while (amount >= 999.5 && unit < 6) {
    amount /= 1000;
    unit++;
  }
  snprintf(out, TEXT_BYTES, "%.3g %s", amount, units[unit]);
  return out;
}

const char *text_seconds(char *out, double seconds) {
  if (seconds < 10)
    snprintf(out, TEXT_BYTES, "%.3f s", seconds);
  else if (seconds < 100)
    snprintf(out, TEXT_BYTES, "%.1f s", seconds);
  else if (seconds < 6000)
    snprintf(out, TEXT_BYTES, "%.0f min %.0f s", floor(seconds / 60), fmod(seconds, 60));
  else
    snprintf(out, TEXT_BYTES, "%.3g h", seconds / 3600);
  return out;
}

const char *plural(const char *number) { return strcmp(number, "1") == 0 ? "" : "s"; }

json_t *json_count(uint64_t count) {
  return count <= INT64_MAX ? json_integer((json_int_t)count) : json_real((double)count);
}

json_t *json_number(double number) { return isfinite(number) ? json_real(number) : json_null(); }

json_t *json_text(const char *text) {
  /* File names need not be UTF-8; JSON strings must be. */
  json_t *string = text ? json_string(text) : json_null();
  return string ? string : json_null();
}

json_t *json_entries(const json_entry *entries, size_t n) {
  json_t *object = json_object();
  bool complete = object != NULL;
  for (size_t i = 0; i < n; i++) /* json_object_set_new frees the value in any case */
    complete &= json_object_set_new(object, entries[i].key, entries[i].value) == 0;
  if (complete)
    return object;
  json_decref(object);
  return NULL;
}

/* The shortest decimal that reads back as the same number, marked as a real by a point or an exponent. */
static void print_real(double number, FILE *out) {
  char text[40];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, number);
    if (strtod(text, NULL) == number)
      break;
  }
  fprintf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

/* Copies JSON text, rewriting its reals: jansson prints all 17 digits, 0.1 as 0.10000000000000001. */
static void print_json(const char *text, FILE *out) {
  while (*text) {
    size_t length = 1;
    if (*text == '"') {
      while (text[length] != '"')
        length += text[length] == '\\' ? 2 : 1;
      length++;
    } else if (strchr("-0123456789", *text)) {
      length = strspn(text, "-+.eE0123456789");
      if (strcspn(text, ".eE") < length) {
        print_real(strtod(text, NULL), out);
        text += length;
        continue;
      }
    }
    fwrite(text, 1, length, out);
    text += length;
  }
  fputc('\n', out);
}

int report_json(json_t *object, FILE *out) {
  char *text = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
  json_decref(object);
  if (!text)
    return cli_fail(CLI_MEMORY, "out of memory while writing JSON");
  print_json(text, out);
  free(text);
  return CLI_OK;
}
