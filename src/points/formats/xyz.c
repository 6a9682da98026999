/* Reads .xyz: the number of atoms, a comment, a line "symbol x y z ..." for each atom.
 *
 * In an extended XYZ file the comment is a series of key=value: Lattice gives the box (9 numbers, a vector
 * behind the other, or 3 edges), pbc the directions that are periodic, Properties the fields of an atom's line,
 * of which pos is the position. Everything else in the comment, and what follows x, y and z, is skipped. */
#include "points/formats/frames.h"

/* ---- The comment -------------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t'))
    at++;
  return at;
}

/* The end of a value that begins at `at`; quotes and brackets hold blanks together. */
static const char *value_end(const char *at, const char *end) {
  static const char OPEN[] = "\"{[", CLOSE[] = "\"}]";
  const char *open = at < end && *at ? strchr(OPEN, *at) : NULL;
  if (!open) {
    while (at < end && *at != ' ' && *at != '\t')
      at++;
    return at;
  }
  char close = CLOSE[open - OPEN];
  int depth = 1;
  for (at++; at < end && depth > 0; at++)
    if (*at == close)
      depth--;
    else if (*at == *open)
      depth++;
  return at;
}

/* Finds the value of a key, with the quotes or brackets around it. */
static bool find_value(slice comment, const char *key, slice *value) {
  for (const char *at = skip_blanks(comment.begin, comment.end); at < comment.end;) {
    const char *name = at;
    while (at < comment.end && *at != '=' && *at != ' ' && *at != '\t')
      at++;
    size_t length = (size_t)(at - name);
    const char *equals = skip_blanks(at, comment.end);
    at = equals;
    if (equals == comment.end || *equals != '=')
      continue; /* a word on its own */
    const char *begin = skip_blanks(equals + 1, comment.end);
    at = value_end(begin, comment.end);
    if (length == strlen(key) && strncasecmp(name, key, length) == 0) {
      *value = (slice){begin, at};
      return true;
    }
    at = skip_blanks(at, comment.end);
  }
  return false;
}

/* The next part of "species:S:1:pos:R:3", up to a colon; moves text->begin behind it. */
static slice next_part(slice *text) {
  const char *colon = memchr(text->begin, ':', (size_t)(text->end - text->begin));
  slice part = {text->begin, colon ? colon : text->end};
  text->begin = colon ? colon + 1 : text->end;
  return part;
}

static bool is_word(slice text, const char *word) {
  return (size_t)(text.end - text.begin) == strlen(word) && strncasecmp(text.begin, word, strlen(word)) == 0;
}

/* Finds the field where the position begins. */
static kith_status take_properties(frame_reader *reader, slice value) {
  slice text = value;
  if (text.end - text.begin >= 2 && *text.begin == '"')
    text.begin++, text.end--;
  uint64_t field = 0;
  while (text.begin < text.end) {
    slice name = next_part(&text), kind = next_part(&text), digits = next_part(&text);
    uint64_t count = 0;
    for (const char *at = digits.begin; at < digits.end && is_digit(*at) && count < UINT32_MAX; at++)
      count = count * 10 + (uint64_t)(*at - '0');
    if (count == 0 || count >= UINT32_MAX)
      break;
    if (is_word(name, "pos") && is_word(kind, "R") && count == 3) {
      reader->first_field = field;
      return KITH_OK;
    }
    field += count;
  }
  return kith_frame_fail(reader, "Properties should hold pos:R:3, such as species:S:1:pos:R:3", value);
}

/* Three flags, T or F, true or false, 1 or 0, with blanks, commas or brackets around them. */
static bool take_flags(slice flags, bool periodic[3]) {
  static const char SEPARATORS[] = "\"{}[], \t";
  int seen = 0;
  for (const char *at = flags.begin; at < flags.end;) {
    if (strchr(SEPARATORS, *at)) {
      at++;
      continue;
    }
    size_t length = 0;
    while (at + length < flags.end && !strchr(SEPARATORS, at[length]))
      length++;
    bool yes = *at == 'T' || *at == 't' || *at == '1';
    bool word = length == 1 || (length == 4 && strncasecmp(at, "true", 4) == 0) ||
                (length == 5 && strncasecmp(at, "false", 5) == 0);
    if (seen == 3 || !word || !strchr("TtFf01", *at))
      return false;
    periodic[seen++] = yes;
    at += length;
  }
  return seen == 3;
}

static kith_status take_lattice(frame_reader *reader, slice value, slice comment) {
  static const char BLANKS[] = "\"{}[],";
  double numbers[9] = {0}, lattice[9] = {0};
  int n = kith_frame_numbers(reader, value, BLANKS, numbers, 9);
  if (n != 3 && n != 9)
    return kith_frame_fail(reader, "Lattice should be 9 numbers, or 3 edges", value);
  for (int i = 0; i < n; i++)
    lattice[n == 3 ? 4 * i : i] = numbers[i];
  bool periodic[3] = {true, true, true};
  slice flags;
  if (find_value(comment, "pbc", &flags) && !take_flags(flags, periodic))
    return kith_frame_fail(reader, "pbc should be three flags, such as \"T T F\"", flags);
  return kith_frame_set_box(reader, lattice, periodic);
}

static kith_status take_comment(frame_reader *reader, slice comment) {
  slice value;
  kith_status status = KITH_OK;
  reader->first_field = 1;
  if (find_value(comment, "Properties", &value))
    status = take_properties(reader, value);
  if (!status && find_value(comment, "Lattice", &value))
    status = take_lattice(reader, value, comment);
  return status;
}

/* ---- Atoms -------------------------------------------------------------------------------------------- */

static kith_status take_atom(frame_reader *reader, slice line, double position[3]) {
  slice rest = line;
  for (uint64_t i = 0; i < reader->first_field && rest.begin < rest.end; i++)
    kith_frame_field(&rest);
  for (int c = 0; c < 3; c++) {
    slice field = kith_frame_field(&rest);
    if (field.begin == field.end)
      return kith_frame_fail(reader, "the line of an atom is too short; it needs a symbol, x, y and z", line);
    if (!field_value(field, reader->locale, &position[c]))
      return kith_frame_fail(reader,
                             c == 0   ? "x is not a number"
                             : c == 1 ? "y is not a number"
                                      : "z is not a number",
                             field);
  }
  return KITH_OK;
}

kith_status kith_read_xyz(const kith_input *input, kith_file *file) {
  static const frame_form XYZ = {.name = "xyz",
                                 .count_line = 0,
                                 .skips_blank = true,
                                 .least_bytes = 6,
                                 .take_title = take_comment,
                                 .take_atom = take_atom};
  return kith_frame_read(input, &XYZ, file);
}
