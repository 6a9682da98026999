/* Numbers as decimal text, fast and without the locale.
 *
 * Owns: nothing; static functions for the text sink. Each writes at `text`, without a terminating zero, and
 * returns the end of what it wrote.
 *
 * Doubles come out in the fewest digits that read back as the same double, as Python's repr() has them. From
 * 1e-14 to 1e15 the arithmetic is exact: value = m * 2^e with m < 2^53, and value * 10^s with s <= 31 is the
 * integer m * 5^s < 2^126 shifted by e + s. Other values, rare among distances, take the slow road of printf.
 */
#ifndef KITH_SINK_DECIMAL_H
#define KITH_SINK_DECIMAL_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KITH_DECIMAL_BYTES = 32 }; /* room that no number exceeds */

static inline unsigned kith_decimal_length(uint64_t value) {
  for (unsigned length = 1;; length += 4, value /= 10000) {
    if (value < 10)
      return length;
    if (value < 100)
      return length + 1;
    if (value < 1000)
      return length + 2;
    if (value < 10000)
      return length + 3;
  }
}

static inline char *kith_decimal_integer(char *text, uint64_t value) {
  static const char DIGITS[] =
      "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
      "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
      "8081828384858687888990919293949596979899";
  char *end = text + kith_decimal_length(value), *at = end;
  for (; value >= 100; value /= 100)
    memcpy(at -= 2, DIGITS + 2 * (value % 100), 2);
  if (value >= 10)
    memcpy(at - 2, DIGITS + 2 * value, 2);
  else
    at[-1] = (char)('0' + value);
  return end;
}

/* The slow road: 15 digits may do, 17 always do. */
static inline char *kith_decimal_any_double(char *text, double value) {
  char digits[64];
  for (int precision = 15; precision <= 17; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    if (precision == 17 || strtod(digits, NULL) == value)
      break;
  }
  /* The locale's decimal point may be a comma, or several bytes. */
  bool in_point = false;
  for (const char *c = digits; *c; c++) {
    bool part = strchr("0123456789+-einfa", *c) != NULL;
    if (part)
      *text++ = *c;
    else if (!in_point)
      *text++ = '.';
    in_point = !part;
  }
  return text;
}

__extension__ typedef unsigned __int128 kith_u128;

/* d.ddd * 10^exponent, where `digits` is the integer dddd without trailing zeros. */
typedef struct kith_decimal {
  uint64_t digits;
  int exponent;
} kith_decimal;

/* 5^n for n <= 31; 5^27 is the last that fits 64 bits. */
static inline kith_u128 kith_power_of_5(int n) {
  static const uint64_t SMALL[8] = {1, 5, 25, 125, 625, 3125, 15625, 78125};
  static const uint64_t STEPS[4] = {1, 390625, 152587890625, 59604644775390625}; /* 5^(8 i) */
  return (kith_u128)STEPS[n / 8] * SMALL[n % 8];
}

/* A double scaled to 17 digits before the point: the integers that would read back as it, and where in the
 * middle of them it lies itself. */
typedef struct kith_scaled {
  int exponent;         /* of its first digit */
  uint64_t first, last; /* these integers and those between them */
  uint64_t whole;       /* itself, rounded down; */
  int rest;             /* what that left out, against one half: -2 nothing, -1 less, 0 as much, 1 more */
} kith_scaled;

/* Scales m * 2^e, whose decimal exponent is `exponent` or one more. Everything is kept times 4, so that the
 * borders, half or (below a power of 2) a quarter of the way to the next double, are whole too. */
static inline kith_scaled kith_scale(uint64_t m, int e, int exponent) {
  const uint64_t TOO_LARGE = UINT64_C(100000000000000000);
  kith_u128 five = kith_power_of_5(16 - exponent);
  int shift = 2 - (e + 16 - exponent);
  if (4 * m * five >> shift >= TOO_LARGE) {
    exponent++;
    shift++;
    five = kith_power_of_5(16 - exponent);
  }
  kith_u128 value = 4 * m * five, below_point = ((kith_u128)1 << shift) - 1, half = (below_point >> 1) + 1;
  kith_u128 low = value - (m == UINT64_C(1) << 52 ? 1 : 2) * five, high = value + 2 * five;
  kith_u128 part = value & below_point;
  bool even = m % 2 == 0; /* then the borders themselves read back as m */
  return (kith_scaled){.exponent = exponent,
                       .first = (uint64_t)(low >> shift) + !(even && (low & below_point) == 0),
                       .last = (uint64_t)(high >> shift) - (!even && (high & below_point) == 0),
                       .whole = (uint64_t)(value >> shift),
                       .rest = part == 0 ? -2 : (part > half) - (part < half)};
}

/* The nearest multiple of `unit` that reads back as the number, or 0: near a power of 2, where the lower
 * border is closer, that may be the second nearest. */
static inline uint64_t kith_round_within(const kith_scaled *number, uint64_t unit) {
  uint64_t rest = number->whole % unit, down = number->whole - rest, up = down + unit;
  bool exact = number->rest == -2, odd = down / unit % 2 == 1;
  bool nearer_up = unit == 1 ? number->rest > 0 || (number->rest == 0 && odd)
                             : rest > unit / 2 || (rest == unit / 2 && (!exact || odd));
  if (!nearer_up && number->first <= down)
    return down;
  return up <= number->last ? up : 0;
}

/* The fewest digits: 15 always hold what had no more, as trailing zeros show; 17 always suffice, since scaled
 * doubles are at least 1.1 apart. */
static inline kith_decimal kith_shortest_decimal(const kith_scaled *number) {
  uint64_t digits = kith_round_within(number, 100);
  if (digits == 0)
    digits = kith_round_within(number, 10);
  if (digits == 0)
    digits = kith_round_within(number, 1);
  unsigned carried = kith_decimal_length(digits) - 17; /* 9.99... became 10 */
  while (digits % 10 == 0)
    digits /= 10;
  return (kith_decimal){.digits = digits, .exponent = number->exponent + (int)carried};
}

/* As %g would: 1.5e-07, 0.00015, 1.5, 150. */
static inline char *kith_decimal_layout(char *text, kith_decimal number) {
  char digits[KITH_DECIMAL_BYTES];
  size_t length = (size_t)(kith_decimal_integer(digits, number.digits) - digits);
  bool scientific = number.exponent < -4;
  size_t before = scientific || number.exponent < 0 ? 1 : (size_t)number.exponent + 1; /* the point */
  if (number.exponent < 0 && !scientific) {
    size_t zeros = (size_t)(1 - number.exponent); /* with the one before the point: "0.00" */
    memcpy(text, "0.000", zeros);
    memcpy(text + zeros, digits, length);
    return text + zeros + length;
  }
  if (length <= before) {
    memcpy(text, digits, length);
    memset(text + length, '0', before - length);
    text += before;
  } else {
    memcpy(text, digits, before);
    text[before] = '.';
    memcpy(text + before + 1, digits + before, length - before);
    text += length + 1;
  }
  if (scientific) {
    *text++ = 'e';
    *text++ = '-';
    if (number.exponent > -10)
      *text++ = '0';
    text = kith_decimal_integer(text, (uint64_t)-number.exponent);
  }
  return text;
}

static inline char *kith_decimal_double(char *text, double value) {
  if (!(value >= 1e-14 && value < 1e15))
    return kith_decimal_any_double(text, value);
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  int binary_exponent = (int)(bits >> 52) - 1023;
  uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  /* floor(binary_exponent * log10(2)), right for this range */
  int exponent = (binary_exponent * 1233 - (binary_exponent < 0 ? 4095 : 0)) / 4096;
  kith_scaled scaled = kith_scale(m, binary_exponent - 52, exponent);
  return kith_decimal_layout(text, kith_shortest_decimal(&scaled));
}

#endif
