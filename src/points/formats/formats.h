/* What the readers of files share: the input they read, the file they fill, columns and their names.
 *
 * Owns: struct kith_file, the choice of columns, arrays of elements. Only points/file.c and the readers
 * include it. A reader gets an open input and fills in file->points plus whatever owns their memory; on
 * failure it leaves a message, and file.c releases what the reader had put into the file. */
#ifndef KITH_POINTS_FORMATS_FORMATS_H
#define KITH_POINTS_FORMATS_FORMATS_H

#include "points/points.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(void *) == 8,
               "the readers are for 64-bit little-endian hosts");

/* Column names, in one block of memory: the pointers, then the texts. An empty text means "no name". */
typedef struct kith_names {
  uint32_t n;
  char **name;   /* NULL: there are no names */
  bool any_case; /* RA and ra are one */
} kith_names;

/* Which columns of the file become dimensions, in the order of the dimensions. */
typedef struct kith_columns {
  uint32_t n;
  uint32_t at[KITH_MAX_DIM];
} kith_columns;

typedef struct kith_input {
  kith_context *ctx;
  const char *name;    /* how messages call it: as the caller named it, or "standard input" */
  const char *path;    /* of the file itself */
  const char *part;    /* what the name chose within it: "/group/data", "3", "STARS"; NULL: nothing */
  const char *ending;  /* of the path, with the dot; "" if there is none */
  const char *columns; /* the option: NULL for all */
  bool is_stdin;
  int fd;
  const char *bytes; /* the whole file, mapped; NULL for a pipe */
  uint64_t n_bytes;
} kith_input;

struct kith_file {
  kith_points points;
  char *path;
  kith_names names; /* of the dimensions */
  void *values;     /* the points, where they had to be converted or parsed; else NULL */
  void *map;        /* the points, where the file itself serves; else NULL */
  uint64_t map_bytes;
  bool keeps_map; /* set by a reader whose points lie in input->bytes */
  int n_box;      /* 0, 3 or 9: see kith_file_box */
  double box[9];
};

kith_status kith_read_npy(const kith_input *input, kith_file *file);
kith_status kith_read_text(const kith_input *input, kith_file *file);
kith_status kith_read_fbin(const kith_input *input, kith_file *file);
kith_status kith_read_gro(const kith_input *input, kith_file *file);
kith_status kith_read_xyz(const kith_input *input, kith_file *file);
kith_status kith_read_hdf5(const kith_input *input, kith_file *file); /* if KITH_HAVE_HDF5 is defined */
kith_status kith_read_fits(const kith_input *input, kith_file *file); /* if KITH_HAVE_FITS is defined */

/* Allocates the values of n contiguous rows and makes them the points of the file; the reader fills them. */
kith_status kith_file_make_values(const kith_input *input, uint64_t n, uint32_t dim, kith_dtype dtype,
                                  kith_file *file);

/* Chooses columns out of n_columns as input->columns says; names may be NULL. */
kith_status kith_columns_choose(const kith_input *input, const kith_names *names, uint64_t n_columns,
                                kith_columns *chosen);

/* Copies the names of the chosen columns. */
kith_status kith_names_pick(kith_context *ctx, const kith_names *names, const kith_columns *chosen,
                            kith_names *picked);

/* A field of a record: one column, or several where it is a vector. */
typedef struct kith_field {
  uint64_t name_at;    /* in the text of the fields */
  const char *refusal; /* NULL: numbers; else what it holds instead, such as "text" */
  uint64_t repeat;     /* 1, or the length of a vector */
} kith_field;

/* The fields of a record, as a reader adds them. Begins as {0}. */
typedef struct kith_fields {
  uint32_t n;
  bool any_case; /* of names */
  kith_field *field;
  char *text;
  uint64_t field_room, text_bytes, text_room;
} kith_fields;

kith_status kith_fields_add(kith_context *ctx, kith_fields *fields, const char *name, const char *refusal,
                            uint64_t repeat);
void kith_fields_free(kith_fields *fields);
const char *kith_fields_name(const kith_fields *fields, uint32_t i);

/* Chooses fields as input->columns says; all of them, if all hold numbers, where it says nothing. *dim: how
 * many dimensions they are together. */
kith_status kith_fields_choose(const kith_input *input, const kith_fields *fields, kith_columns *chosen,
                               uint32_t *dim);

/* The names of the dimensions: that of the field, with [0], [1] ... where it is a vector. */
kith_status kith_fields_pick(kith_context *ctx, const kith_fields *fields, const kith_columns *chosen,
                             kith_names *picked);

/* A type of number in a file, and the type of points it becomes. */
typedef struct kith_element {
  const char *code; /* numpy's: kind and size */
  const char *name;
  char kind; /* 'f', 'i', 'u' or 'b' */
  uint8_t bytes;
  kith_dtype dtype;
} kith_element;

/* The element with numpy's code, such as "f4"; NULL if the readers do not take it. */
const kith_element *kith_element_find(const char *code);

/* Elements a stride apart, to become values of `dtype` another stride apart. */
typedef struct kith_element_run {
  const char *from;
  int64_t from_stride;
  char *to;
  int64_t to_stride;
  uint64_t n;
  const kith_element *element;
  kith_dtype dtype; /* not narrower than element->dtype */
} kith_element_run;

/* Converts them, in native byte order. Returns n, or the place of the first that float64 cannot hold. */
uint64_t kith_elements_convert(const kith_element_run *run);

/* The failure for such an element; `column` is a number or a name. */
kith_status kith_fail_inexact(const kith_input *input, const kith_element *element, uint64_t bits, uint64_t row,
                              const char *column);

/* A matrix of elements that lies in input->bytes. */
typedef struct kith_array {
  const char *data;
  uint64_t n_rows, n_columns;
  int64_t row_stride, column_stride;
  const kith_element *element;
  bool swapped; /* big-endian */
} kith_array;

/* Makes the array the points of the file: a view where type, byte order, alignment and choice of columns
 * allow it, else a copy. The array must lie within the input. */
kith_status kith_file_take_array(const kith_input *input, const kith_array *array, kith_file *file);

#endif
