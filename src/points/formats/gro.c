/* Reads .gro, as GROMACS writes it: a title, the number of atoms, a line for each atom, the box.
 *
 * The line of an atom has fixed columns: 20 characters of names and numbers, which may touch, then x, y and z
 * in columns as wide as their decimal points lie apart, measured in the first line of a frame as GROMACS does;
 * what follows (velocities) is skipped. The box is v1x v2y v3z, or those and v1y v1z v2x v2z v3x v3y. Lengths
 * are in nm and stay so. */
#include "points/formats/frames.h"

enum { NAMES_BYTES = 20 };

/* The distance between the decimal points of x, y and z. */
static kith_status measure(frame_reader *reader, slice line) {
  const char *at = line.begin + NAMES_BYTES, *dot[3] = {NULL};
  for (int i = 0; i < 3 && at && at < line.end; i++) {
    dot[i] = memchr(at, '.', (size_t)(line.end - at));
    at = dot[i] ? dot[i] + 1 : NULL;
  }
  if (!dot[2] || dot[2] - dot[1] != dot[1] - dot[0])
    return kith_frame_fail(reader, "x, y and z should begin at character 21, with decimal points evenly apart",
                           line);
  reader->width = dot[1] - dot[0];
  return KITH_OK;
}

static kith_status take_atom(frame_reader *reader, slice line, double position[3]) {
  static const char *const WHAT[3] = {"x, behind character 20, is not a number", "y is not a number",
                                      "z is not a number"};
  if (line.end - line.begin <= NAMES_BYTES)
    return kith_frame_fail(reader, "the line of an atom needs 20 characters of names, then x, y and z", line);
  kith_status status = reader->width ? KITH_OK : measure(reader, line);
  const char *at = line.begin + NAMES_BYTES;
  for (int c = 0; c < 3 && !status; c++) {
    slice column = {at, line.end - at > reader->width ? at + reader->width : line.end}, rest = column;
    slice field = kith_frame_field(&rest);
    if (!field_value(field, reader->locale, &position[c]) || rest.begin != rest.end)
      status = kith_frame_fail(reader, WHAT[c], column);
    at = column.end;
  }
  return status;
}

static kith_status take_box(frame_reader *reader, slice line) {
  double b[9] = {0};
  int n = kith_frame_numbers(reader, line, "", b, 9);
  if (n != 3 && n != 9)
    return kith_frame_fail(reader, "the box should be 3 or 9 numbers", line);
  if (n == 3 && (b[0] < 0 || b[1] < 0 || b[2] < 0))
    return kith_frame_fail(reader, "an edge of the box is negative", line);
  const double lattice[9] = {b[0], b[3], b[4], b[5], b[1], b[6], b[7], b[8], b[2]};
  return kith_frame_set_box(reader, lattice, NULL);
}

kith_status kith_read_gro(const kith_input *input, kith_file *file) {
  static const frame_form GRO = {.name = "gro",
                                 .count_line = 1,
                                 .lines_after = 1,
                                 .least_bytes = NAMES_BYTES,
                                 .take_atom = take_atom,
                                 .take_last = take_box};
  return kith_frame_read(input, &GRO, file);
}
