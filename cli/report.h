/* Numbers for people and JSON for programs: what the commands share when they print. */
#ifndef KITH_CLI_REPORT_H
#define KITH_CLI_REPORT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum { TEXT_BYTES = 40 };

/* 1234567 as "1,234,567". Every text_ function fills a buffer of TEXT_BYTES and returns it. */
const char *text_count(char *out, uint64_t count);

/* About how many: "0.5", "123", "12.3 k", "4.56 M", "1.2e+16". */
const char *text_amount(char *out, double amount);

/* Bytes in powers of 1000: "812 B", "1.36 GB". */
const char *text_bytes(char *out, uint64_t bytes);

/* "0.123 s", "12.3 s", "2 min 5 s", "1.7 h". */
const char *text_seconds(char *out, double seconds);

/* The ending of the noun behind a number, as text_count and text_amount write it: "" after "1", else "s". */
const char *plural(const char *number);

/* JSON values: whole numbers stay whole, and what JSON cannot say (NaN, infinity) becomes null. */
json_t *json_count(uint64_t count);
json_t *json_number(double number);
json_t *json_text(const char *text); /* null for NULL */

/* An object of the entries, in their order; takes over the values. NULL if one of them is NULL. */
typedef struct json_entry {
  const char *key;
  json_t *value;
} json_entry;
json_t *json_entries(const json_entry *entries, size_t n);
#define JSON_OBJECT(...)                                                                                       \
  json_entries((const json_entry[]){__VA_ARGS__},                                                              \
               sizeof((const json_entry[]){__VA_ARGS__}) / sizeof(json_entry))

/* Prints the object and frees it. Numbers appear in their shortest form that reads back the same. NULL (out
 * of memory while building it) is reported. Returns an exit code. */
int report_json(json_t *object, FILE *out);

#endif
