/* Numbers in text: from characters to the nearest double, whatever the locale.
 *
 * A number is [sign] digits [. digits] [e [sign] digits], or nan, inf, infinity. The value is rounded
 * correctly: up to 19 digits and a power of ten up to 27 by exact integer arithmetic, the few others by
 * strtod. Everything is inline because the readers of text spend their time here. Only they include it. */
#ifndef KITH_POINTS_FORMATS_NUMBER_H
#define KITH_POINTS_FORMATS_NUMBER_H

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct slice {
  const char *begin, *end;
} slice;

/* mantissa * 10^exponent. */
typedef struct decimal {
  uint64_t mantissa;
  int exponent;
  bool negative;
  bool fits; /* false: more digits than the mantissa holds */
} decimal;

enum { MANTISSA_DIGITS = 19, EXPONENT_MOST = 100000, NUMBER_BYTES = 1024 /* the longest number taken */ };

static inline bool is_digit(char c) { return (unsigned char)(c - '0') <= 9; }

/* Appends digits to the mantissa, which may wrap: the caller counts them. */
static inline const char *scan_digits(const char *at, const char *end, uint64_t *mantissa) {
  for (; at < end && is_digit(*at); at++)
    *mantissa = *mantissa * 10 + (uint64_t)(*at - '0');
  return at;
}

/* An exponent such as "e-05"; returns `at` itself if there is none. */
static inline const char *scan_exponent(const char *at, const char *end, int *exponent) {
  const char *digit = at + 1;
  bool negative = digit < end && *digit == '-';
  if (digit < end && (*digit == '-' || *digit == '+'))
    digit++;
  if (digit >= end || !is_digit(*digit))
    return at;
  int value = 0;
  for (; digit < end && is_digit(*digit); digit++)
    value = value < EXPONENT_MOST ? value * 10 + (*digit - '0') : value;
  *exponent += negative ? -value : value;
  return digit;
}

/* The number of digits from the first that is not zero. */
static inline int64_t significant_digits(const char *at, const char *end) {
  while (at < end && (*at == '0' || *at == '.'))
    at++;
  return end - at - (memchr(at, '.', (size_t)(end - at)) != NULL);
}

/* Reads a decimal number; returns where it ends, or NULL if there is none. */
static inline const char *scan_decimal(const char *at, const char *end, decimal *out) {
  *out = (decimal){.fits = true};
  if (at < end && (*at == '-' || *at == '+'))
    out->negative = *at++ == '-';
  const char *first = at;
  at = scan_digits(at, end, &out->mantissa);
  int64_t digits = at - first;
  if (at < end && *at == '.') {
    const char *fraction = ++at;
    at = scan_digits(at, end, &out->mantissa);
    digits += at - fraction;
    out->exponent = (int)(fraction - at);
  }
  if (digits == 0)
    return NULL;
  if (digits > MANTISSA_DIGITS) /* many leading zeros are no harm; the bound keeps the exponent an int */
    out->fits = digits < NUMBER_BYTES && significant_digits(first, at) <= MANTISSA_DIGITS;
  if (at < end && (*at == 'e' || *at == 'E'))
    at = scan_exponent(at, end, &out->exponent);
  return at;
}

enum { POWERS_OF_5 = 28, POWERS_OF_10 = 23 };

/* clang-format off */
static const uint64_t POWER_OF_5[POWERS_OF_5] = {
    1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u,
    1953125u, 9765625u, 48828125u, 244140625u, 1220703125u, 6103515625u,
    30517578125u, 152587890625u, 762939453125u, 3814697265625u,
    19073486328125u, 95367431640625u, 476837158203125u, 2384185791015625u,
    11920928955078125u, 59604644775390625u, 298023223876953125u,
    1490116119384765625u, 7450580596923828125u};
/* clang-format on */

/* The powers of ten that double holds exactly. */
static const double POWER_OF_10[POWERS_OF_10] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* 2^power, for a power that gives a normal number. */
static inline double power_of_2(int power) {
  uint64_t bits = (uint64_t)(1023 + power) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* mantissa / 10^power, rounded once. Both sides are shifted to 64 bits, so the quotient has 63 or 64 bits;
 * whatever remains is folded into its last bit, far below the bit where the conversion to double rounds. */
static inline double divide(uint64_t mantissa, int power) {
  uint64_t divisor = POWER_OF_5[power];
  int mantissa_shift = __builtin_clzll(mantissa), divisor_shift = __builtin_clzll(divisor);
  unsigned __int128 dividend = (unsigned __int128)(mantissa << mantissa_shift) << 63;
  divisor <<= divisor_shift;
  uint64_t quotient = (uint64_t)(dividend / divisor);
  quotient |= (unsigned __int128)quotient * divisor != dividend;
  return (double)quotient * power_of_2(divisor_shift - mantissa_shift - power - 63);
}

/* The double nearest to the decimal; false where exact arithmetic on 64 bits does not reach. */
static inline bool decimal_value(const decimal *from, double *value) {
  int power = from->exponent < 0 ? -from->exponent : from->exponent;
  double size;
  if (!from->fits || power >= POWERS_OF_5)
    return false;
  if (from->mantissa <= UINT64_C(1) << 53 && power < POWERS_OF_10) /* both exact: one rounding (Clinger) */
    size = from->exponent < 0 ? (double)from->mantissa / POWER_OF_10[power]
                              : (double)from->mantissa * POWER_OF_10[power];
  else if (from->mantissa == 0)
    size = 0;
  else if (from->exponent < 0)
    size = divide(from->mantissa, power);
  else
    size = (double)((unsigned __int128)from->mantissa * POWER_OF_5[power]) * power_of_2(power);
  *value = from->negative ? -size : size;
  return true;
}

/* Reads nan, inf or infinity, in any case, with or without a sign. */
static inline bool word_value(slice field, double *value) {
  static const char *const WORDS[] = {"nan", "inf", "infinity"};
  bool negative = field.begin < field.end && *field.begin == '-';
  if (field.begin < field.end && (*field.begin == '-' || *field.begin == '+'))
    field.begin++;
  size_t length = (size_t)(field.end - field.begin);
  for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
    if (strlen(WORDS[i]) == length && strncasecmp(WORDS[i], field.begin, length) == 0) {
      double size = i == 0 ? (double)NAN : (double)INFINITY;
      *value = negative ? -size : size;
      return true;
    }
  return false;
}

/* The value of a whole field; false if it is not a number. */
static inline bool field_value(slice field, locale_t locale, double *value) {
  decimal number;
  if (scan_decimal(field.begin, field.end, &number) != field.end || field.begin == field.end)
    return word_value(field, value);
  if (decimal_value(&number, value))
    return true;
  char text[NUMBER_BYTES];
  size_t length = (size_t)(field.end - field.begin);
  if (length >= sizeof text)
    return false;
  memcpy(text, field.begin, length);
  text[length] = '\0';
  *value = strtod_l(text, NULL, locale);
  return true;
}

/* A field for a message: short, printable. */
static inline const char *quote_field(slice field, char out[40]) {
  size_t length = (size_t)(field.end - field.begin);
  size_t shown = length < 36 ? length : 32;
  for (size_t i = 0; i < shown; i++)
    out[i] = field.begin[i] >= ' ' && field.begin[i] <= '~' ? field.begin[i] : '?';
  strcpy(out + shown, shown < length ? "..." : "");
  return out;
}

#endif
