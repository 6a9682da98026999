/* Frames: what the readers of molecular text files (.gro, .xyz) share.
 *
 * A file is a series of frames; a frame is two lines, of which one holds the number of atoms, then a line for
 * each atom, then perhaps more lines. frames.c walks them, finds the one that was asked for, and checks the
 * number of atoms against the length of the file before it allocates anything; a form says how to read lines.
 * Owns: the walk over lines, messages with line numbers, the box. Only frames.c, gro.c and xyz.c include it. */
#ifndef KITH_POINTS_FORMATS_FRAMES_H
#define KITH_POINTS_FORMATS_FRAMES_H

#include "points/formats/formats.h"
#include "points/formats/number.h"

typedef struct frame_form frame_form;

/* A walk over the lines of a file. */
typedef struct frame_reader {
  const frame_form *form;
  const kith_input *input;
  kith_file *file;
  locale_t locale;
  const char *at, *end; /* what is not taken yet */
  uint64_t line;        /* number of the line taken last, from 1 */
  int64_t width;        /* gro: of the columns of coordinates; 0: not measured yet */
  uint64_t first_field; /* xyz: the field that holds x */
} frame_reader;

struct frame_form {
  const char *name;
  int count_line;       /* which of the first two lines holds the number of atoms: 0 or 1 */
  bool skips_blank;     /* blank lines between frames are no lines */
  uint64_t lines_after; /* behind the atoms: 0 or 1 */
  uint64_t least_bytes; /* that the line of an atom takes */
  /* Reads the line that is not the number of atoms, the line of an atom, the line behind them. Any but the
   * second may be NULL. */
  kith_status (*take_title)(frame_reader *reader, slice line);
  kith_status (*take_atom)(frame_reader *reader, slice line, double position[3]);
  kith_status (*take_last)(frame_reader *reader, slice line);
};

/* Reads the frame that input->part asks for into the file. */
kith_status kith_frame_read(const kith_input *input, const frame_form *form, kith_file *file);

/* The failure of the line at hand; `what` is for people, `field` is quoted behind it. */
kith_status kith_frame_fail(const frame_reader *reader, const char *what, slice field);

/* The next field of a line, between blanks; empty at its end. Moves line->begin behind it. */
slice kith_frame_field(slice *line);

/* Reads the numbers of a line, at most `most`; returns how many there are, or -1 where one is no number or
 * there are more. The characters of `blanks` count as blanks too. */
int kith_frame_numbers(const frame_reader *reader, slice line, const char *blanks, double *numbers, int most);

/* Makes the lattice the box of the file, in its shortest form; `periodic` may be NULL for all three. */
kith_status kith_frame_set_box(frame_reader *reader, const double lattice[9], const bool periodic[3]);

#endif
