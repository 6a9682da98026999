/* Frames of atoms in text: see frames.h.
 *
 * One pass to the frame, two where it is counted from the end. Nothing in the file is trusted: a number of
 * atoms that the rest of the file cannot hold is refused before memory is asked for. O(bytes), on one thread.
 */
#include "points/formats/frames.h"

enum { LINES_BETWEEN_CHECKS = 16 * 1024 /* looks at cancellation so often */ };

/* ---- Lines and fields --------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static slice trim(slice text) {
  while (text.begin < text.end && is_blank(*text.begin))
    text.begin++;
  while (text.end > text.begin && is_blank(text.end[-1]))
    text.end--;
  return text;
}

/* Takes the next line, without its end; false if there is none. */
static bool next_line(frame_reader *reader, slice *line) {
  if (reader->at == reader->end)
    return false;
  const char *newline = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
  *line = (slice){reader->at, newline ? newline : reader->end};
  reader->at = newline ? newline + 1 : reader->end;
  reader->line++;
  if (line->end > line->begin && line->end[-1] == '\r')
    line->end--;
  return true;
}

/* Whether nothing but blank lines is left. */
static bool is_at_end(const frame_reader *reader) {
  const char *at = reader->at;
  while (at < reader->end && (is_blank(*at) || *at == '\n'))
    at++;
  return at == reader->end;
}

slice kith_frame_field(slice *line) {
  *line = trim(*line);
  slice field = {line->begin, line->begin};
  while (field.end < line->end && !is_blank(*field.end))
    field.end++;
  line->begin = field.end;
  return field;
}

int kith_frame_numbers(const frame_reader *reader, slice line, const char *blanks, double *numbers, int most) {
  int n = 0;
  for (const char *at = line.begin; at < line.end;) {
    const char *end = at;
    while (end < line.end && !is_blank(*end) && !(*end && strchr(blanks, *end)))
      end++;
    if (end > at && (n == most || !field_value((slice){at, end}, reader->locale, &numbers[n++])))
      return -1;
    at = end + 1;
  }
  return n;
}

kith_status kith_frame_fail(const frame_reader *reader, const char *what, slice field) {
  char text[40];
  return kith_fail(reader->input->ctx, KITH_ERR_FORMAT, "%s, line %llu: %s: '%s'", reader->input->name,
                   (unsigned long long)reader->line, what, quote_field(trim(field), text));
}

static kith_status fail_short(const frame_reader *reader, const char *where) {
  return kith_fail(reader->input->ctx, KITH_ERR_FORMAT,
                   "%s: the file ends at line %llu, within %s; was it cut short?", reader->input->name,
                   (unsigned long long)reader->line, where);
}

static kith_status check_cancel(const frame_reader *reader, uint64_t line) {
  bool is_due = line % LINES_BETWEEN_CHECKS == 0;
  return is_due && kith_cancelled(reader->input->ctx) ? kith_check_cancel(reader->input->ctx) : KITH_OK;
}

/* ---- The box ------------------------------------------------------------------------------------------ */

kith_status kith_frame_set_box(frame_reader *reader, const double lattice[9], const bool periodic[3]) {
  kith_file *file = reader->file;
  double edges[3];
  bool is_along_axes = true, is_there = false;
  for (int i = 0; i < 9; i++) {
    if (!isfinite(lattice[i]))
      return kith_fail(reader->input->ctx, KITH_ERR_FORMAT, "%s, line %llu: the box holds NaN or infinity",
                       reader->input->name, (unsigned long long)reader->line);
    bool counts = !periodic || periodic[i / 3];
    file->box[i] = counts ? lattice[i] : 0;
    is_there = is_there || file->box[i] != 0;
    is_along_axes = is_along_axes && (i % 4 == 0 ? file->box[i] >= 0 : file->box[i] == 0);
    if (i % 4 == 0)
      edges[i / 4] = file->box[i];
  }
  file->n_box = !is_there ? 0 : is_along_axes ? 3 : 9;
  if (is_along_axes)
    memcpy(file->box, edges, sizeof edges);
  return KITH_OK;
}

/* ---- Frames ------------------------------------------------------------------------------------------- */

/* Takes the first two lines of a frame: the number of atoms and a title. */
static kith_status take_head(frame_reader *reader, slice *title, uint64_t *n_atoms) {
  slice head[2] = {{0}};
  const frame_form *form = reader->form;
  uint64_t number_line = 0;
  for (int i = 0; i < 2; i++) {
    do {
      if (!next_line(reader, &head[i]))
        return fail_short(reader, "the first lines of a frame");
      slice text = trim(head[i]);
      if (i > 0 || !form->skips_blank || text.begin < text.end)
        break;
    } while (true);
    number_line = i == form->count_line ? reader->line : number_line;
  }
  *title = head[!form->count_line];
  slice digits = trim(head[form->count_line]);
  bool is_number = digits.begin < digits.end;
  *n_atoms = 0;
  for (const char *at = digits.begin; at < digits.end && is_number; at++) {
    is_number = is_digit(*at);
    if (__builtin_mul_overflow(*n_atoms, 10, n_atoms) ||
        __builtin_add_overflow(*n_atoms, (uint64_t)(*at - '0'), n_atoms))
      *n_atoms = UINT64_MAX / 16; /* stays far beyond any file, whatever digits follow */
  }
  if (!is_number) {
    char text[40];
    return kith_fail(reader->input->ctx, KITH_ERR_FORMAT,
                     "%s, line %llu: the number of atoms should be here, not '%s'; is it a%s %s file?",
                     reader->input->name, (unsigned long long)number_line, quote_field(digits, text),
                     form->name[0] == 'x' ? "n" : "", form->name);
  }
  uint64_t left = (uint64_t)(reader->end - reader->at);
  if (*n_atoms > left / form->least_bytes + 1)
    return kith_fail(
        reader->input->ctx, KITH_ERR_FORMAT,
        "%s, line %llu: a frame of %llu atoms is announced, but only %llu bytes follow; was the file "
        "cut short?",
        reader->input->name, (unsigned long long)number_line, (unsigned long long)*n_atoms,
        (unsigned long long)left);
  return KITH_OK;
}

static kith_status skip_frame(frame_reader *reader) {
  slice line;
  uint64_t n_atoms = 0;
  kith_status status = take_head(reader, &line, &n_atoms);
  for (uint64_t i = 0; !status && i < n_atoms + reader->form->lines_after; i++) {
    if (!next_line(reader, &line))
      return fail_short(reader, "a frame");
    status = check_cancel(reader, i);
  }
  return status;
}

/* Skips frames to the one with the number, or to the end; *skipped says how many there were. */
static kith_status skip_frames(frame_reader *reader, uint64_t wanted, uint64_t *skipped) {
  for (*skipped = 0; *skipped < wanted && !is_at_end(reader); ++*skipped) {
    kith_status status = skip_frame(reader);
    if (!status)
      status = check_cancel(reader, *skipped);
    if (status)
      return status;
  }
  return KITH_OK;
}

/* The number within the brackets, with its sign. */
static kith_status frame_number(const kith_input *input, uint64_t *number, bool *from_end) {
  const char *digits = input->part ? input->part : "0";
  *from_end = *digits == '-';
  digits += *digits == '-' || *digits == '+';
  size_t n = strspn(digits, "0123456789");
  if (n == 0 || n > 18 || digits[n])
    return kith_fail(input->ctx, KITH_ERR_ARGUMENT,
                     "%s: '[%s]' is not the number of a frame; write [0] for the first, [-1] for the last",
                     input->path, input->part);
  *number = strtoull(digits, NULL, 10);
  *from_end = *from_end && *number > 0;
  return KITH_OK;
}

/* Goes to the frame that was asked for. */
static kith_status find_frame(frame_reader *reader) {
  const kith_input *input = reader->input;
  uint64_t wanted = 0, n_frames = 0;
  bool from_end = false;
  kith_status status = frame_number(input, &wanted, &from_end);
  if (status)
    return status;
  status = skip_frames(reader, from_end ? UINT64_MAX : wanted, &n_frames);
  if (status)
    return status;
  if (n_frames == 0 && is_at_end(reader))
    return kith_fail(input->ctx, KITH_ERR_FORMAT, "%s: there is no frame in it", input->name);
  if (from_end ? wanted > n_frames : is_at_end(reader))
    return kith_fail(input->ctx, KITH_ERR_ARGUMENT,
                     "%s: there is no frame %s; the file holds %llu frame%s, from 0", input->path, input->part,
                     (unsigned long long)n_frames, n_frames == 1 ? "" : "s");
  if (!from_end)
    return KITH_OK;
  reader->at = input->bytes;
  reader->line = 0;
  return skip_frames(reader, n_frames - wanted, &n_frames);
}

static kith_status take_atoms(frame_reader *reader, uint64_t n_atoms, const kith_columns *chosen) {
  double *row = reader->file->values;
  for (uint64_t i = 0; i < n_atoms; i++, row += chosen->n) {
    slice line;
    double position[3] = {0};
    if (!next_line(reader, &line))
      return kith_fail(reader->input->ctx, KITH_ERR_FORMAT,
                       "%s: the file ends at line %llu, behind atom %llu of %llu; was it cut short?",
                       reader->input->name, (unsigned long long)reader->line, (unsigned long long)i,
                       (unsigned long long)n_atoms);
    kith_status status = reader->form->take_atom(reader, line, position);
    if (!status)
      status = check_cancel(reader, i);
    if (status)
      return status;
    for (uint32_t c = 0; c < chosen->n; c++)
      row[c] = position[chosen->at[c]];
  }
  return KITH_OK;
}

static kith_status take_frame(frame_reader *reader) {
  char *xyz[3] = {(char[]){"x"}, (char[]){"y"}, (char[]){"z"}};
  const kith_names names = {.n = 3, .name = xyz};
  kith_columns chosen;
  slice line = {0};
  uint64_t n_atoms = 0;
  kith_status status = kith_columns_choose(reader->input, &names, 3, &chosen);
  if (!status)
    status = kith_names_pick(reader->input->ctx, &names, &chosen, &reader->file->names);
  if (!status)
    status = take_head(reader, &line, &n_atoms);
  if (!status && reader->form->take_title)
    status = reader->form->take_title(reader, line);
  if (!status)
    status = kith_file_make_values(reader->input, n_atoms, chosen.n, KITH_F64, reader->file);
  if (!status)
    status = take_atoms(reader, n_atoms, &chosen);
  if (status || !reader->form->take_last)
    return status;
  return next_line(reader, &line) ? reader->form->take_last(reader, line) : fail_short(reader, "a frame");
}

kith_status kith_frame_read(const kith_input *input, const frame_form *form, kith_file *file) {
  frame_reader reader = {.form = form,
                         .input = input,
                         .file = file,
                         .locale = newlocale(LC_ALL_MASK, "C", (locale_t)0),
                         .at = input->bytes,
                         .end = input->bytes + input->n_bytes};
  if (!reader.locale)
    return kith_fail(input->ctx, KITH_ERR_MEMORY, "%s: the system refused memory for the C locale",
                     input->name);
  kith_status status = find_frame(&reader);
  if (!status)
    status = take_frame(&reader);
  freelocale(reader.locale);
  return status;
}
